"""Which bounds hold for which mechanism, and what is said where none does."""

from dataclasses import replace

import pytest

import dpfast as dp
from dpfast import Filter, MarkovChain, Privacy, bounds_of, running_sum
from dpfast.mechanisms.operators.dense import Dense
from tests.helpers.designs import MadeOnce
from tests.helpers.noise_tables import CHAIN

SHORT, PRIVACY = Filter([1, 0.5]), Privacy(1, 1e-3)
ASYMMETRIC = MarkovChain([[0.9, 0.1], [0.3, 0.7]], levels=[-0.5, 0.5])
FAMILY, ADDITIVE, LINEAR, UNBIASED, GAUSSIAN = (
    *("bound of its family", "additive bound", "linear-mean bound", "unbiased bound"),
    "Gaussian bound",
)
SUM, WEAK = running_sum(16), Privacy(3, 0.05)


def dense_without_a_lag():
    """A strategy that looks ahead, though a lag of 0 is given for it."""
    made = dp.optimal_factorization(SUM, WEAK, CHAIN, lag="smoother")
    return dp.MatrixMechanism(
        "ahead",
        SUM,
        WEAK,
        Dense(made.strategy.matrix()),
        Dense(made.reconstruction.matrix()),
        model=CHAIN,
        centre=0.0,
        lag=0,
        unbiased=False,
    )


MECHANISMS = MadeOnce(
    {
        "optimal": lambda: dp.optimal(SHORT, PRIVACY, CHAIN, tolerance=0.1),
        "optimal, other chain": lambda: dp.optimal(SHORT, PRIVACY, ASYMMETRIC, tolerance=0.1),
        "smoother": lambda: dp.lmmse(SHORT, PRIVACY, CHAIN, tolerance=0.1),
        "zero forcing": lambda: dp.zero_forcing(SHORT, PRIVACY, tolerance=0.1),
        "decision feedback": lambda: dp.decision_feedback(SHORT, PRIVACY, CHAIN),
        "decision feedback, other chain": lambda: dp.decision_feedback(SHORT, PRIVACY, ASYMMETRIC),
        "block sums": lambda: dp.block_sums(SHORT, PRIVACY, CHAIN),
        "block sums, posterior mean": lambda: dp.block_sums(SHORT, PRIVACY, CHAIN, receiver="bayes"),
        "response": lambda: dp.randomized_response(SHORT, PRIVACY, CHAIN),
        "response, posterior mean": lambda: dp.randomized_response(SHORT, PRIVACY, CHAIN, receiver="bayes"),
        "geometric noise on the inputs": lambda: dp.input_perturbation(SHORT, PRIVACY, noise="geometric"),
        "robust": lambda: dp.robust(SHORT, PRIVACY, mean_square=0.25, tolerance=0.1),
        "constant": lambda: dp.constant(SHORT, CHAIN),
        "square root": lambda: dp.square_root(SUM, PRIVACY),
        "factorization": lambda: dp.optimal_factorization(SUM, WEAK, CHAIN),
        "looks ahead": dense_without_a_lag,
        "Fourier, all": lambda: dp.fourier_perturbation(SUM, PRIVACY, n_coefficients=16),
        "Fourier, a few": lambda: dp.fourier_perturbation(SUM, PRIVACY, n_coefficients=3),
        "compressive": lambda: dp.compressive(SUM, PRIVACY, n_measurements=4),
        "block sums over a horizon": lambda: dp.block_sums(SUM, PRIVACY, CHAIN),
        "long horizon": lambda: dp.square_root(running_sum(4096), PRIVACY),
        "long horizon with a model": lambda: dp.block_sums(running_sum(2049), PRIVACY, CHAIN, length=8),
    }
)
WHICH = {
    "optimal": {FAMILY, ADDITIVE, GAUSSIAN},
    "optimal, other chain": {FAMILY, ADDITIVE},
    "smoother": {FAMILY, ADDITIVE, GAUSSIAN},
    "zero forcing": {FAMILY, ADDITIVE, UNBIASED},
    "decision feedback": {GAUSSIAN},
    "decision feedback, other chain": set(),
    "block sums": {ADDITIVE},
    "block sums, posterior mean": set(),
    "response": {LINEAR},
    "response, posterior mean": set(),
    "geometric noise on the inputs": {ADDITIVE, UNBIASED},
    "robust": {FAMILY, ADDITIVE},
    "constant": set(),
    "square root": {ADDITIVE, UNBIASED},
    "factorization": {FAMILY, ADDITIVE},
    "looks ahead": {ADDITIVE},
    "Fourier, all": {ADDITIVE, UNBIASED},
    "Fourier, a few": set(),
    "compressive": set(),
    "block sums over a horizon": {ADDITIVE},
    "long horizon": {ADDITIVE, UNBIASED},
    "long horizon with a model": set(),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_which_hold(name):
    mechanism = MECHANISMS[name]
    bounds = bounds_of(mechanism)
    assert {x.name for x in bounds} == WHICH[name]
    assert [x.mse for x in bounds] == sorted((x.mse for x in bounds), reverse=True)
    for bound in bounds:
        assert bound.mse > 0
        assert mechanism.predicted_mse is None or bound.mse <= mechanism.predicted_mse * (1 + 1e-9)
        assert str(bound).count(".") >= 3  # three sentences


@pytest.mark.parametrize("name", [x for x in WHICH if x != "constant"])
def test_the_additive_bound_of_a_mechanism(name):
    mechanism = MECHANISMS[name]
    known = [x.mse for x in bounds_of(mechanism) if x.name == ADDITIVE]
    if known:
        assert [mechanism.additive_bound_mse] == known
        return
    words = {
        "response": "add noise .* what holds for it: linear-mean bound",
        "decision feedback": "add noise .* what holds for it: Gaussian bound",
        "Fourier, a few": "have a model .* as it distorts, got the MatrixMechanism 'FPA'",
        "long horizon with a model": "at most 2048 steps",
    }
    with pytest.raises(dp.DesignError, match=words.get(name, "add noise .* what holds for it: no other is known")):
        _ = mechanism.additive_bound_mse


def test_what_looks_ahead_is_bounded_as_a_smoother():
    ahead = MECHANISMS["looks ahead"]
    assert ahead.additive_bound_mse == dp.additive_bound(SUM, WEAK, CHAIN, lag=None).mse
    assert ahead.additive_bound_mse < dp.additive_bound(SUM, WEAK, CHAIN, lag=0).mse * (1 - 1e-3)
    assert MECHANISMS["factorization"].additive_bound_mse == dp.additive_bound(SUM, WEAK, CHAIN, lag=0).mse


def test_a_sum_without_a_horizon_has_bounds_over_its_first_steps():
    endless = dp.unbounded_sum(PRIVACY)
    assert bounds_of(endless) == ()
    with pytest.raises(dp.DesignError, match=r"whose error grows with time: take that of over_first\(n\)"):
        _ = endless.additive_bound_mse
    first = endless.over_first(64)
    assert first.additive_bound_mse == dp.additive_bound(running_sum(64), PRIVACY).mse < first.predicted_mse


def test_bounds_are_those_of_the_lag():
    response = dp.randomized_response(Filter([1, 0.9]), PRIVACY, CHAIN, lag=4)
    assert [x.mse for x in bounds_of(response)] == [dp.linear_mean_bound(Filter([1, 0.9]), PRIVACY, CHAIN, lag=4).mse]
    late = dp.decision_feedback(Filter([1, 0.9]), PRIVACY, CHAIN, lag=3)
    assert [x.mse for x in bounds_of(late)] == [dp.gaussian_bound(Filter([1, 0.9]), PRIVACY, CHAIN, lag=3).mse]


def test_a_model_does_not_lower_the_bound_of_what_does_not_distort():
    made = replace(MECHANISMS["square root"], model=CHAIN)
    assert made.unbiased
    assert made.additive_bound_mse == MECHANISMS["square root"].additive_bound_mse


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(ValueError, match=r"mechanism must be a mechanism, .*, got 3"):
        bounds_of(3)


def test_a_bound_over_a_horizon_says_that_it_counts_one_event():
    several, target = dp.Privacy(1, max_events=3), dp.running_sum(8)
    words = "counting one event only of the 3 that a person may have. Below it"
    mechanism = dp.optimal_factorization(target, several, noise="laplace")
    found = [*dp.bounds_of(mechanism), dp.linear_mean_bound(target, several, CHAIN)]
    assert {x.name for x in found} == {"bound of its family", "additive bound", "unbiased bound", "linear-mean bound"}
    assert all(words in str(x) for x in found)
    assert "counting" not in str(dp.additive_bound(dp.Filter([1, 0.5]), several))  # all are counted without an end
    assert "counting" not in str(dp.additive_bound(target, dp.Privacy(1)))
