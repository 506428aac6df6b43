"""Taps at the nodes of a circle and back: against shifts, and with any number of threads."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.node_transforms import NodesAlone, NodeTransforms


@pytest.mark.parametrize("threads", ["1", "3"])
def test_taps_come_back_as_they_were_or_later(monkeypatch, threads):
    monkeypatch.setattr("dpfast.design.mimo.node_transforms._WORTH_A_THREAD", 1)
    monkeypatch.setenv("DPFAST_NUM_THREADS", threads)
    transforms, given = NodeTransforms(2, 3, 128), np.random.default_rng(0).standard_normal((64, 2, 3))
    late = np.exp(-2j * np.pi * transforms.order * 5 / 128)

    def delay(nodes):
        turned = (nodes[:, 0, :65] + 1j * nodes[:, 1, :65]) * late
        nodes[:, 0, :65], nodes[:, 1, :65] = turned.real, turned.imag

    rows, padded = transforms.rows(given), np.concatenate([given, np.zeros_like(given)])
    np.testing.assert_array_equal(transforms.matrices(rows), given)
    same = transforms.matrices(transforms.through(lambda nodes: None, rows))
    np.testing.assert_allclose(same, padded, atol=1e-14)
    later = transforms.matrices(transforms.through(delay, rows))
    np.testing.assert_allclose(later, np.roll(padded, 5, axis=0), atol=1e-14)
    assert transforms.n_kept == 32
    assert transforms.n_threads == int(threads)


def test_taps_of_values_are_what_goes_through_to_them():
    transforms, given = NodeTransforms(2, 3, 128), np.random.default_rng(0).standard_normal((128, 2, 3))
    values, seen = np.fft.rfft(given, axis=0), []
    np.testing.assert_allclose(transforms.matrices(transforms.taps(values)), given, atol=1e-14)
    transforms.through(lambda nodes: seen.append(nodes[:, 0, :65] + 1j * nodes[:, 1, :65]), transforms.taps(values))
    np.testing.assert_allclose(seen[0].reshape(2, 3, -1), np.moveaxis(values[transforms.order], 0, 2), atol=1e-13)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_entries_are_prepared_before_and_read_after(monkeypatch, threads):
    monkeypatch.setattr("dpfast.design.mimo.node_transforms._WORTH_A_THREAD", 1)
    monkeypatch.setenv("DPFAST_NUM_THREADS", threads)
    transforms, taps, sums = NodeTransforms(2, 3, 128), np.ones((6, 2, 64)), np.full(6, np.nan)

    def raise_by_one(first, count):
        taps[first : first + count] += 1

    def add_up(first, count):
        sums[first : first + count] = transforms.found[first : first + count].sum(axis=(1, 2))

    transforms.through(lambda nodes: None, taps, raise_by_one, add_up)
    np.testing.assert_array_equal(taps, np.full((6, 2, 64), 2.0))
    np.testing.assert_allclose(sums, 256, rtol=1e-14)


def test_parts_of_values_are_those_of_matrices_at_nodes():
    """Products of them are means over the whole circle, and what is done at nodes is done to nothing else."""
    rng, nodes, calls = np.random.default_rng(1), NodesAlone(2, 3, 8), []
    e, f = rng.standard_normal((2, 5, 2, 3)) + 1j * rng.standard_normal((2, 5, 2, 3))
    weights = np.array([1, 2, 2, 2, 1])[:, None, None] / 8
    assert (nodes.taps(e) * nodes.taps(f)).sum() == pytest.approx((weights * (e.conj() * f).real).sum(), rel=1e-13)
    np.testing.assert_allclose(nodes.values(nodes.parts(e)), e, rtol=1e-13)
    np.testing.assert_array_equal(nodes.matrices(nodes.rows(nodes.parts(e))), nodes.parts(e))
    factors = rng.standard_normal(5)

    def scale(room):
        assert not room[:, :, 5:].any()
        room[:, :, :5] *= factors
        room[:, :, 5:] = np.nan

    found = nodes.through(scale, nodes.taps(e), lambda *rows: calls.append(rows), lambda *rows: calls.append(rows))
    np.testing.assert_allclose(found, nodes.taps(factors[:, None, None] * e), rtol=1e-13, atol=0)
    assert calls == [(0, 6), (0, 6)]


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
