"""Taps at the nodes of a circle and back: against shifts, and with any number of threads."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.node_transforms import NodeTransforms


@pytest.mark.parametrize("threads", ["1", "3"])
def test_taps_come_back_as_they_were_or_later(monkeypatch, threads):
    monkeypatch.setattr("dpfast.design.mimo.node_transforms._WORTH_A_THREAD", 1)
    monkeypatch.setenv("DPFAST_NUM_THREADS", threads)
    transforms, taps = NodeTransforms(2, 3, 64), np.random.default_rng(0).standard_normal((2, 3, 32))
    late = np.exp(-2j * np.pi * np.arange(33) * 5 / 64)

    def delay(nodes):
        nodes[:, :, :33] *= late

    same = transforms.through(lambda nodes: None, taps).copy()
    np.testing.assert_allclose(same, np.concatenate([taps, np.zeros_like(taps)], axis=2), atol=1e-14)
    np.testing.assert_allclose(transforms.through(delay, taps), np.roll(same, 5, axis=2), atol=1e-14)
    assert transforms.n_threads == int(threads)


def test_designs_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("dpfast.design.mimo.node_transforms._WORTH_A_THREAD", 1)
    slow, quick = dp.Filter([0.2], [1, -0.8]), dp.Filter([0.5, 0.5])
    target = dp.FilterMatrix([[slow, slow, slow], [quick, -1 * quick, 0]])
    model = dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=np.eye(3) + 0.8)
    designs = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("DPFAST_NUM_THREADS", threads)
        designs.append(dp.optimal(target, dp.Privacy(1, 1e-6, adjacency="each_input"), model, lag=3))
    for other in designs[1:]:
        assert (other.ideal_mse, other.lower_bound_mse) == (designs[0].ideal_mse, designs[0].lower_bound_mse)
        omega = np.linspace(0, np.pi, 20)
        np.testing.assert_array_equal(other.prefilter.response(omega), designs[0].prefilter.response(omega))
