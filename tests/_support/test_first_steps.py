import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support import first_steps
from dpfast._support.first_steps import distinct_steps, mean_of_first
from dpfast.filters.toeplitz import MAX_HORIZON


@given(n=st.integers(1, 300), settled=st.integers(0, 80), period=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_mean_is_that_of_all_steps(n, settled, period, seed):
    rng = np.random.default_rng(seed)
    steps = np.concatenate([rng.random(settled), np.tile(rng.random(period), 300)])[:n]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_steps, "_LONG", 0)
        k = distinct_steps(n, settled, period)
        assert k <= max(settled + period, 1)
        assert mean_of_first(steps[:k], n, period) == pytest.approx(steps.mean(), rel=1e-13)


def test_so_many_steps_as_before_are_all_looked_at():
    assert distinct_steps(2**16, 5) == 2**16
    assert distinct_steps(2**20, 2**19) == 2**19 + 1


def test_no_more_steps_are_looked_at_than_a_prediction_takes():
    """By then the slowest poles that filters may have, several at one place too, have decayed."""
    slow = dp.Filter.from_zpk([], [0.99998] * 3, 1.0)
    settled = 2 * slow.settling_time(first_steps.SETTLED)
    assert settled > MAX_HORIZON
    assert distinct_steps(10**9, settled) == MAX_HORIZON
    impulse = slow.impulse(MAX_HORIZON)
    assert np.abs(impulse[-1000:]).max() < 1e-18 * np.abs(impulse).max()


TARGET, PRIVACY = dp.Filter([1, 0.5], [1, -0.8]), dp.Privacy(1.0, 0.05)
CHAIN = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])
OTHER = dp.IndependentLevels([0.0, 1.0], [0.3, 0.7])
MECHANISMS = [
    dp.zero_forcing(TARGET, PRIVACY),
    dp.lmmse(TARGET, PRIVACY, CHAIN),
    dp.lmmse(TARGET, PRIVACY, CHAIN, lag=7),
    dp.block_sums(TARGET, dp.Privacy(1.0), CHAIN, length=(3, 6), lag=2),
    dp.constant(TARGET, CHAIN),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda x: x.name)
@pytest.mark.parametrize("model", [CHAIN, OTHER], ids=["its model", "another model"])
def test_a_long_prediction_is_the_mean_over_all_its_steps(mechanism, model, monkeypatch):
    monkeypatch.setattr(first_steps, "_LONG", 0)
    for n in (1, 500, 5003):
        assert mechanism.predict_first(n, model) == pytest.approx(mechanism.step_mse(n, model).mean(), rel=1e-12)


def test_a_study_may_be_longer_than_any_horizon():
    study = dp.monte_carlo(MECHANISMS[0], CHAIN, n_streams=2, n_samples=2**22 + 1, burn_in=0, seed=1)
    result = study["LZF"]
    assert result.predicted_rmse == pytest.approx(MECHANISMS[0].predicted_rmse, rel=1e-5)
    assert result.variance == pytest.approx(dp.constant(TARGET, CHAIN).predicted_mse, rel=1e-5)
