"""The bound for linear means, against the values of the mathematics, and the one for no bias beside zero forcing."""

import math

import pytest

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    MarkovChain,
    Privacy,
    additive_bound,
    linear_mean_bound,
    randomized_response,
    running_sum,
    unbiased_bound,
    zero_forcing,
)
from tests.helpers.noise_tables import CHAIN, LN3, TARGETS

# Section 7 of the mathematics: lags 0 and 5 at (1, 1e-6)
VALUES = {
    "paper": "3.523 3.088",
    "MA12": "0.1136 0.0974",
    "exp .9": "0.0971 0.0789",
    "resonator": "1.827 1.665",
    "1-2z": "0.768 0.765",
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    bounds = [linear_mean_bound(TARGETS[name], Privacy(1, 1e-6), CHAIN, lag=x).rmse for x in (0, 5)]
    assert [f"{x:.{len(y) - 2}f}" for x, y in zip(bounds, VALUES[name].split(), strict=True)] == VALUES[name].split()
    wider = additive_bound(TARGETS[name], Privacy(1, 1e-6), CHAIN).rmse
    assert bounds[1] < bounds[0] < wider


def test_without_a_delta_the_deviation_is_one_over_twice_the_hyperbolic_sine():
    loud = ARMA([1e5])
    found = linear_mean_bound(Filter([1.0]), Privacy(2, max_change=3, max_events=2), loud).mse
    assert found == pytest.approx(9 * 2 / (2 * math.sinh(1)) ** 2, rel=1e-6)


def test_levels_limit_what_an_event_changes():
    """On levels 0, 1, 2.5 a change of at most 2 is one of 1.5; randomised response between near levels is not below."""
    p = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    chain = MarkovChain(p, levels=[0, 1, 2.5])
    given = [linear_mean_bound(TARGETS["exp .9"], Privacy(1, max_change=x), chain).mse for x in (2, 1.5)]
    assert given[0] == given[1]
    assert given[0] < additive_bound(TARGETS["exp .9"], Privacy(1, max_change=2), chain).mse
    response = randomized_response(TARGETS["exp .9"], Privacy(1, max_change=7), CHAIN)
    assert linear_mean_bound(TARGETS["exp .9"], Privacy(1, max_change=7), CHAIN).mse <= response.predicted_mse


def test_levels_out_of_reach_are_refused():
    with pytest.raises(
        DesignError, match=r"max_change must be at least the distance .* got 0\.5: no event .* take add"
    ):
        linear_mean_bound(TARGETS["exp .9"], Privacy(1, max_change=0.5), CHAIN)


@pytest.mark.parametrize(("privacy", "ratio"), [((LN3, 0.05), "1.60"), ((1, 1e-6), "4.40")])
def test_zero_forcing_is_that_far_above_the_bound_for_no_bias(privacy, ratio):
    mechanism = zero_forcing(TARGETS["paper"], Privacy(*privacy))
    bound = unbiased_bound(TARGETS["paper"], Privacy(*privacy))
    assert f"{mechanism.ideal_rmse / bound.rmse:.2f}" == ratio


def test_the_bound_for_no_bias_knows_events_and_horizons():
    one, four = (unbiased_bound(Filter([1, 0.5]), Privacy(1, max_events=x)).mse for x in (1, 4))
    assert four == pytest.approx(4 * one, rel=1e-12)
    assert 0 < unbiased_bound(running_sum(32), Privacy(1)).mse < additive_bound(running_sum(32), Privacy(1)).mse
    assert linear_mean_bound(running_sum(32), Privacy(1), CHAIN).mse < unbiased_bound(running_sum(32), Privacy(1)).mse
    with pytest.raises(DesignError, match="target must not be zero"):
        unbiased_bound(Filter([0.0]), Privacy(1))
