"""A running sum without a horizon: what it guarantees, predicts and simulates."""

import dataclasses
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpfast as dp
from dpfast.filters.endless_sum import EndlessSum
from dpfast.mechanisms.guarantee_text import describe

PRIVACY = dp.Privacy(1, 1e-6, max_change=2)
MECHANISM = dp.unbounded_sum(PRIVACY)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])


def test_the_noise_is_that_of_columns_of_norm_one():
    assert MECHANISM.sensitivity == 2
    assert MECHANISM.noise_std == pytest.approx(2 * PRIVACY.noise_multiplier)


def test_several_events_of_a_person_add_up():
    """However they lie: the change of C u has at most that norm, and near to it where they are together."""
    m = 3
    mechanism = dp.unbounded_sum(dp.Privacy(1, 1e-6, max_events=m, min_separation=4))
    assert mechanism.sensitivity == m
    C = mechanism.over_first(64).strategy.matrix()
    rng = np.random.default_rng(1)
    for _ in range(200):
        steps = rng.choice(16, m, replace=False) * 4
        assert np.linalg.norm(C[:, steps] @ rng.choice([-1, 1], m)) <= m


def test_errors_of_steps_are_those_of_the_first_steps_over_a_horizon():
    steps = MECHANISM.step_mse(200)
    over = MECHANISM.over_first(200)
    np.testing.assert_allclose(steps, over.step_mse(), rtol=1e-12)
    assert MECHANISM.mse_at(150) == pytest.approx(steps[150], rel=1e-12)
    assert MECHANISM.predict_first(200, CHAIN) == pytest.approx(over.predicted_mse)
    assert over.noise_std == MECHANISM.noise_std


def test_there_is_no_mean_over_all_time():
    figures = [MECHANISM.predicted_mse, MECHANISM.ideal_mse, MECHANISM.worst_step_mse, MECHANISM.explained]
    assert figures == [None] * 4
    assert MECHANISM.predict(CHAIN) is None
    assert (MECHANISM.horizon, MECHANISM.lag, MECHANISM.settling_time(1e-3)) == (None, 0, 0)


def test_first_steps_are_the_same_to_the_bit_however_many_follow():
    u = np.random.default_rng(1).normal(size=(3, 5000))
    whole = MECHANISM.simulate(u, seed=7)
    for n in (1, 15, 16, 17, 600, 4097):
        part = MECHANISM.simulate(u[:, :n], seed=7)
        assert (part.estimate == whole.estimate[:, :n]).all()
        assert (part.privatized == whole.privatized[:, :n]).all()


def test_a_stream_depends_on_the_seed_and_its_number_alone():
    u = np.random.default_rng(2).normal(size=(11, 50))
    whole = MECHANISM.simulate(u, seed=3).estimate
    assert (MECHANISM.simulate(u[:9], seed=3).estimate == whole[:9]).all()
    assert (MECHANISM.simulate(u.reshape(11, 1, 50), seed=3).estimate[:, 0] == whole).all()
    assert (MECHANISM.simulate(u[0], seed=3).estimate == whole[0]).all()
    assert not (MECHANISM.simulate(u, seed=4).estimate == whole).any()


def test_the_first_steps_over_a_horizon_are_the_same_runs():
    u = np.random.default_rng(2).normal(size=(11, 50))
    mine, over = MECHANISM.simulate(u, seed=3), MECHANISM.over_first(50).simulate(u, seed=3)
    assert (mine.estimate == over.estimate).all()
    assert (mine.privatized == over.privatized).all()


def test_what_has_no_steps_gives_none():
    paths = MECHANISM.simulate(np.empty((2, 0)), seed=1)
    assert paths.estimate.shape == paths.privatized.shape == (2, 0)
    assert MECHANISM.simulate(np.empty((0, 4)), seed=1).estimate.shape == (0, 4)


def test_labels_come_back():
    frame = pd.DataFrame(np.ones((6, 2)), columns=["a", "b"])
    estimate = MECHANISM.simulate(frame, seed=1).estimate
    assert list(estimate.columns) == ["a", "b"]
    assert estimate.shape == (6, 2)


def test_the_error_is_noise_of_the_predicted_variance():
    """χ² with 4,000 degrees at 8 steps: 1e-7 to each side of each, 1.6e-6 in all; and means within 5.5 σ."""
    n, streams = 600, 4000
    u = np.random.default_rng(5).normal(10, 3, size=n)
    error = MECHANISM.simulate(np.broadcast_to(u, (streams, n)), seed=11).estimate - np.cumsum(u)
    steps = np.array([0, 1, 5, 16, 40, 150, 333, 599])
    variance = MECHANISM.step_mse(n)[steps]
    ratio = (error[:, steps] ** 2).sum(axis=0) / variance
    assert (ratio > stats.chi2.ppf(1e-7, streams)).all()
    assert (ratio < stats.chi2.isf(1e-7, streams)).all()
    assert (np.abs(error[:, steps].mean(axis=0)) < 5.5 * np.sqrt(variance / streams)).all()


def test_it_is_studied_beside_others_over_the_samples_of_the_study():
    others = [dp.square_root(dp.running_sum(128), PRIVACY), dp.constant(dp.running_sum(128), CHAIN)]
    study = dp.monte_carlo([MECHANISM, *others], CHAIN, n_streams=600, n_samples=128, seed=1, confidence=1 - 1e-6)
    found = study["unbounded sum"]
    low, high = found.interval
    assert low < math.sqrt(MECHANISM.predict_first(128, CHAIN)) < high
    assert found.predicted_rmse == pytest.approx(math.sqrt(MECHANISM.predict_first(128, CHAIN)))


def test_it_goes_through_files_and_pickles():
    made = dp.unbounded_sum(PRIVACY, name="mine").with_sources(epsilon="public")
    again = pickle.loads(pickle.dumps(made))
    assert again.noise_std == made.noise_std
    assert again.sources == made.sources
    assert again.target == EndlessSum()
    assert dataclasses.replace(made, name="other").summary().splitlines()[0] == "other"


@pytest.mark.parametrize("mechanism", [MECHANISM, MECHANISM.over_first(20)], ids=["endless", "first steps"])
def test_files_give_back_the_same_bits(mechanism, tmp_path):
    dp.save(mechanism, tmp_path / "it.json")
    again = dp.load(tmp_path / "it.json")
    u = np.random.default_rng(2).normal(size=(2, 20))
    assert (again.simulate(u, seed=1).estimate == mechanism.simulate(u, seed=1).estimate).all()
    assert again.sources == mechanism.sources
    assert type(again) is type(mechanism)
    assert '"version": 4' in (tmp_path / "it.json").read_text()


def test_sweeps_take_its_first_steps():
    grid = {"mechanism": MECHANISM.over_first(16), "model": CHAIN}
    (row,) = dp.sweep(grid, n_samples=16, seed=1, width=0.1)
    assert math.isclose(row.predicted_rmse, math.sqrt(MECHANISM.predict_first(16, CHAIN)), rel_tol=1e-9)
    with pytest.raises(ValueError, match=r"give mechanism\.over_first"):
        dp.sweep({"mechanism": MECHANISM, "model": CHAIN}, n_samples=16, seed=1)


def test_under_another_privacy_the_noise_is_another():
    other = MECHANISM.under(dp.Privacy(2, 1e-6))
    assert other.noise_std == pytest.approx(dp.Privacy(2, 1e-6).noise_multiplier)


def test_words_say_that_it_has_no_end():
    text = describe(MECHANISM)
    assert "streams of any length" in text.replace("\n  ", " ")
    assert "It has no end" in text.replace("\n  ", " ")
    assert "without a horizon" in MECHANISM.summary()
    assert "at step 1, 1e3, 1e6, 1e9" in MECHANISM.summary()


def test_what_it_cannot_do_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="delta must be above 0"):
        dp.unbounded_sum(dp.Privacy(1))
    with pytest.raises(dp.ReleaseError, match="a pole just below 1 is near to a running sum"):
        dp.exact(MECHANISM, dp.Inputs(0, 1))
    with pytest.raises(ValueError, match=r"give mechanism\.over_first"):
        MECHANISM.compiled()
    with pytest.raises(ValueError, match="n must be an integer, at least 9"):
        dp.unbounded_sum(dp.Privacy(1, 1e-6, max_events=3, min_separation=4)).over_first(8)
    with pytest.raises(ValueError, match="t must"):
        MECHANISM.mse_at(-1)
    with pytest.raises(ValueError, match="n must"):
        MECHANISM.step_mse(0)
    with pytest.raises(ValueError, match="model must be None"):
        dataclasses.replace(MECHANISM, model=CHAIN)
    with pytest.raises(ValueError, match="target must be an EndlessSum"):
        dataclasses.replace(MECHANISM, target=dp.running_sum(3))
