"""Whole signals in pieces: but for the noise all is that of the whole, to the bit; stores hold several rows."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

import dpfast as dp
from dpfast.releases import batch_run
from dpfast.releases.store import push_limits

COUNTS = dp.IndependentLevels([0, 1, 2], [0.25, 0.5, 0.25])
TARGET, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)
MODEL = dp.ARMA([1], [1, -0.5], mean=1.0)
MECHANISMS = {
    "filter": dp.lmmse(TARGET, PRIVACY, MODEL, lag=3),
    "smoother": dp.lmmse(TARGET, PRIVACY, MODEL, lag=None),
    "blocks": dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=4, lag=2),
    "geometric": dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric"),
}
N = 53
X = np.random.default_rng(1).integers(0, 3, (5, N))


def run(plan, monkeypatch, samples):
    monkeypatch.setattr(batch_run, "_SAMPLES", samples)
    return batch_run.run_mechanism(plan, X)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("samples", [1, 35, 5 * N, 5 * (N + 1)])
def test_estimates_of_pieces_are_those_of_all_of_v(monkeypatch, name, samples):
    plan = dp.exact(MECHANISMS[name], dp.Inputs(0, 2, n_streams=5))
    pieces = run(plan, monkeypatch, samples)
    assert [x.shape for x in run(plan, monkeypatch, 10**6)] == [x.shape for x in pieces]
    assert pieces[1].tobytes() == plan.estimate(pieces[0], end=N)[:, plan.lag or 0 :].tobytes()


@pytest.mark.parametrize("name", ["filter", "blocks"])
def test_v_without_noise_does_not_depend_on_pieces(monkeypatch, name):
    plan = dp.exact(MECHANISMS[name], dp.Inputs(0, 2, n_streams=5))
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))
    monkeypatch.setattr(batch_run, "_SAMPLES", 10**6)
    whole = batch_run.run_mechanism(plan, X)
    monkeypatch.setattr(batch_run, "_SAMPLES", 20)
    pieces = batch_run.run_mechanism(plan, X)
    assert (whole[0] == pieces[0]).all()
    assert whole[1].tobytes() == pieces[1].tobytes()


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_store_holds_a_release_in_several_rows(monkeypatch, tmp_path, name):
    monkeypatch.setattr(push_limits, "MAX_SAMPLES", 60)
    inputs = dp.Inputs(0, 2, n_streams=5)
    result = dp.release(MECHANISMS[name], X, tmp_path / "store", inputs)
    with closing(sqlite3.connect(tmp_path / "store/store.sqlite")) as connection:
        counts = [n for (n,) in connection.execute("SELECT count FROM pushes ORDER BY id")]
    assert len(counts) > 3
    assert all(5 * n <= 60 for n in counts)
    again = dp.read_release(tmp_path / "store")
    assert (again.privatized == result.privatized).all()
    assert np.array_equal(again.estimate, result.estimate)
    later = dp.release(MECHANISMS[name], X, tmp_path / "store", inputs, first=N) if name != "smoother" else None
    assert later is None or later.number == 2
