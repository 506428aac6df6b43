"""The bound for additive noise: against the tables, closed forms, and what it must be beside others."""

import itertools
import math

import numpy as np
import pytest
from scipy import linalg

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    IndependentLevels,
    Privacy,
    Toeplitz,
    additive_bound,
    constant,
    optimal,
    robust,
    running_sum,
    square_root,
)
from dpfast.design.bounds.additive import additive_bound_on_worst_input
from dpfast.design.bounds.least_linear_mse import _bound_by_circulants
from dpfast.design.horizon.unbiased_factorization import factorize_after_delay
from dpfast.privacy.least_noise import least_variance
from tests.helpers.noise_tables import CHAIN, LN3, REFERENCE, TARGETS

# Section 5 of the mathematics: the RMSE for lags 0 and 5
TABLE = {
    (1, 1e-6): "4.6428 4.1284 0.1411 0.1223 0.1177 0.0977 2.2220 2.0732 0.8013 0.7995",
    (3, 1e-6): "1.3628 1.2501 0.0497 0.0450 0.0440 0.0380 0.7788 0.7036 0.5373 0.5362",
    (LN3, 0.05): "3.4745 3.0446 0.1124 0.0963 0.0961 0.0780 1.8071 1.6456 0.7661 0.7631",
}
CELLS = [
    (privacy, name, lag, value)
    for privacy, row in TABLE.items()
    for (name, lag), value in zip([(x, lag) for x in TARGETS for lag in (0, 5)], row.split(), strict=True)
]


@pytest.mark.parametrize(("privacy", "name", "lag", "value"), CELLS)
def test_cells_of_the_table(privacy, name, lag, value):
    assert f"{additive_bound(TARGETS[name], Privacy(*privacy), CHAIN, lag=lag).rmse:.4f}" == value


@pytest.mark.parametrize("case", [x for x in REFERENCE["cases"] if x["model"]["type"] == "markov"][:2])
def test_it_is_that_of_the_reference(case):
    found = additive_bound(Filter(**case["target"]), Privacy(case["epsilon"], case["delta"]), CHAIN, lag=case["lag"])
    assert found.rmse == pytest.approx(case["bound_a_rmse"], rel=2e-6)
    assert found.rmse <= case["bound_a_rmse"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("pole", "values"),
    [(0.998, [5.394, 1.553]), (0.9995, [6.515, 1.841]), (0.9999, [7.809, 2.175]), (0.99995, [8.366, 2.318])],
)
def test_it_holds_for_long_memories(pole, values):
    target = Filter([1, pole], [1, -pole])
    found = [additive_bound(target, Privacy(x, 1e-6), CHAIN).rmse for x in (1, 3)]
    assert found == pytest.approx(values, abs=6e-4)  # to the digits of the table


def test_of_inputs_alone_it_is_the_least_noise():
    """F = 1 with a loud input: nothing is better than the noise itself, and a constant for a quiet one."""
    privacy = Privacy(1, 0.01, max_change=3)
    loud, quiet = (additive_bound(Filter([1.0]), privacy, ARMA([x])).mse for x in (1e5, 1e-5))
    assert loud == pytest.approx(9 * least_variance(privacy), rel=1e-6)
    assert quiet == pytest.approx(1e-10, rel=1e-6)


def test_without_a_model_it_is_the_noise_of_what_does_not_distort():
    """White inputs of no bound: d² V m <|F|>², here by the trapezoidal rule."""
    target, privacy = Filter([1, 0.5, 0.2]), Privacy(2, max_change=2, max_events=3)
    mean = np.abs(np.fft.fft([1, 0.5, 0.2], 4096)).mean()
    assert additive_bound(target, privacy).mse == pytest.approx(3 * 4 * least_variance(privacy) * mean**2, rel=1e-8)
    assert "undistorted" in additive_bound(target, privacy).holds_for


def test_several_events_count_as_more_noise():
    """m events of any signs: that of a change that is √m as large, without end, and of one event over a horizon."""
    several, larger = Privacy(1, max_events=4), Privacy(1, max_change=2)
    assert additive_bound(TARGETS["MA12"], several, CHAIN).mse == additive_bound(TARGETS["MA12"], larger, CHAIN).mse
    one = additive_bound(running_sum(16), Privacy(1)).mse
    assert additive_bound(running_sum(16), several).mse == one


def test_waiting_lowers_it_down_to_the_smoother():
    bounds = [additive_bound(TARGETS["exp .9"], Privacy(1), CHAIN, lag=x).mse for x in (0, 1, 5, 30, None)]
    assert all(later < sooner * (1 + 1e-9) for sooner, later in itertools.pairwise(bounds))
    assert bounds[-1] == additive_bound(TARGETS["exp .9"], Privacy(1), CHAIN, lag="smoother").mse


@pytest.mark.parametrize("lag", [0, 3, None])
def test_it_is_the_optimum_at_the_least_noise(lag):
    privacy = Privacy(1, 1e-6)
    smaller = Privacy(1, 1e-6, max_change=math.sqrt(least_variance(privacy)) / privacy.noise_multiplier)
    mechanism = optimal(TARGETS["exp .9"], smaller, CHAIN, lag=lag, tolerance=0.1)
    bound = additive_bound(TARGETS["exp .9"], privacy, CHAIN, lag=lag).mse
    assert bound <= mechanism.ideal_mse
    assert bound == pytest.approx(mechanism.lower_bound_mse, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "value"), [pytest.param(1, "2.599", marks=pytest.mark.long), (3, "0.790")])
def test_over_a_horizon_it_is_that_of_the_best_strategy(epsilon, value):
    assert f"{additive_bound(running_sum(256), Privacy(epsilon), CHAIN).rmse:.3f}" == value


def test_over_a_horizon_without_a_model_it_is_below_every_unbiased_one():
    privacy = Privacy(1, 1e-6)
    bound = additive_bound(running_sum(64), privacy).mse
    assert bound < square_root(running_sum(64), privacy).predicted_mse
    # for a sum of one step it is the noise itself
    assert additive_bound(Toeplitz([1.0]), privacy).mse == pytest.approx(least_variance(privacy), rel=1e-5)
    assert "a horizon" not in str(bound)


HARD = {
    "zero on the circle": ARMA([1, -1]),
    "two zeros": ARMA([1, 0, 1.0]),
    "slow": ARMA([0.01], [1, -0.9999]),
    "loud": ARMA([1e4]),
    "quiet": ARMA([1e-4]),
    "white": IndependentLevels([0, 1], [0.9, 0.1]),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("privacy", [(0.01, 0.3), (30, 1e-9), (700, 0)], ids=str)
def test_it_stays_between_nothing_and_what_is_easily_reached(name, privacy):
    """Publishing the mean, and noise on the inputs with nothing behind it, are of the kind that it bounds."""
    target, model, given = Filter([1, 0.9], [1, -0.7]), HARD[name], Privacy(*privacy)
    noise = least_variance(given) * target.h2_norm() ** 2
    for lag in (0, None) if name != "two zeros" else (None,):  # a lag takes a second there
        bound = additive_bound(target, given, model, lag=lag).mse
        assert 0 <= bound <= min(constant(target, model).predicted_mse, noise) * (1 + 1e-9)
    assert bound > 0 or privacy[0] >= 30


def test_on_the_worst_input_it_is_that_of_a_robust_smoother():
    privacy, target = Privacy(1), TARGETS["exp .9"]
    bound = additive_bound_on_worst_input(target, privacy, 0.25)
    assert "the worst input" in str(bound)
    white = additive_bound(target, privacy, ARMA([0.5]), lag=None)
    assert white.mse < bound.mse < additive_bound(target, privacy).mse
    gaussian = Privacy.from_gdp(1, 1e-6, max_change=math.sqrt(least_variance(privacy)))  # noise of that variance
    smoother = robust(target, gaussian, mean_square=0.25, tolerance=0.5)
    assert bound.mse == pytest.approx(smoother.lower_bound_mse, rel=1e-6)


def test_hardly_any_noise_beside_a_loud_input_leaves_the_noise_of_what_does_not_distort():
    found = additive_bound(TARGETS["MA12"], Privacy(30, 1e-9), ARMA([1e4]), lag=None).mse
    assert found == pytest.approx(additive_bound(TARGETS["MA12"], Privacy(30, 1e-9)).mse, rel=1e-4)


@pytest.mark.parametrize("target", [running_sum(256), Toeplitz(0.9 ** np.arange(200)), Toeplitz([0, 0, 1, -2, 1.5, 3])])
def test_long_horizons_have_a_bound_by_circulants(target):
    """It is below (sum of singular values)²/n, which is below the dense bound, and mostly near to it."""
    n = target.horizon
    singular = np.linalg.svd(linalg.toeplitz(target.coefficients, np.zeros(n)), compute_uv=False)
    found = _bound_by_circulants(target)
    assert 0.7 * singular.sum() ** 2 / n < found <= singular.sum() ** 2 / n * (1 + 1e-9)
    assert found <= factorize_after_delay(target).lower_bound * (1 + 1e-9)


def test_a_running_sum_of_a_million_steps():
    bound = additive_bound(running_sum(2**20), Privacy(1, 1e-6)).rmse
    exact = (1 / np.sin(np.pi * (2 * np.arange(1, 2**20 + 1) - 1) / (4 * 2**20 + 2))).sum() / 2 / 2**20
    assert 0.97 * exact < bound / math.sqrt(least_variance(Privacy(1, 1e-6))) < exact


def test_what_it_refuses():
    with pytest.raises(DesignError, match="target must not be zero"):
        additive_bound(Filter([0.0]), Privacy(1), CHAIN)
    with pytest.raises(ValueError, match="target must be a Filter"):
        additive_bound([1.0, 2.0], Privacy(1), CHAIN)
    with pytest.raises(ValueError, match="privacy must be a Privacy"):
        additive_bound(Filter([1.0]), 1.0, CHAIN)
    with pytest.raises(ValueError, match="model must be"):
        additive_bound(Filter([1.0]), Privacy(1), 3)
    with pytest.raises(ValueError, match="lag must be"):
        additive_bound(Filter([1.0]), Privacy(1), CHAIN, lag=-1)
    with pytest.raises(DesignError, match=r"at most 2048 steps for a bound with a model, .* got 2049: leave the model"):
        additive_bound(running_sum(2049), Privacy(1), CHAIN)
