"""Randomised response as designed: against all covariances at once, and the noise of a person's events."""

import math

import numpy as np
import pytest
from helpers.dense_blocks import DenseBlocks, chain_autocovariance, impulse_response
from scipy import stats

from dpfast import Filter, IndependentLevels, MarkovChain, Privacy, monte_carlo, randomized_response

STICKY, LEVELS = [[0.9, 0.1], [0.3, 0.7]], [2.0, 3.5]
CHAIN = MarkovChain(STICKY, LEVELS)
TARGETS = {
    "recursive": ([1, 0.5], [1, -0.9]),
    "pair": ([1], [1, -1.5, 0.7]),
    "1-2z": ([1, -2], [1]),
}
WINDOW = 500


def variance_of(epsilon, delta, span):
    """(high - low)² (1 - r)/(4 r) with r = δ + (1 - δ) tanh²(ε/2)."""
    r = delta + (1 - delta) * math.tanh(epsilon / 2) ** 2
    return span**2 * (1 - r) / (4 * r)


def dense(target, variance, transition=STICKY):
    """White noise on every input: blocks of one step."""
    r = chain_autocovariance(transition, LEVELS, WINDOW)
    return DenseBlocks(impulse_response(*TARGETS[target], WINDOW), r, (1,), (variance,))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lag", [0, 4])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (math.log(3), 0.05)])
def test_no_linear_estimate_errs_less(target, lag, epsilon, delta):
    mechanism = randomized_response(Filter(*TARGETS[target]), Privacy(epsilon, delta, max_change=2), CHAIN, lag=lag)
    twin = dense(target, variance_of(epsilon, delta, 1.5))
    weights = twin.best_weights(WINDOW - 1 - lag, WINDOW - 1)
    assert mechanism.predicted_mse == pytest.approx(twin.mse(WINDOW - 1 - lag, weights), rel=1e-9)
    other = [[0.2, 0.8], [0.5, 0.5]]
    actual = dense(target, variance_of(epsilon, delta, 1.5), other)
    model = MarkovChain(other, LEVELS)
    expected = actual.mse(WINDOW - 1 - lag, weights, model.mean - CHAIN.mean)
    assert mechanism.predict(model) == pytest.approx(expected, rel=1e-8)


def test_a_smoother_is_a_large_lag():
    mechanism = randomized_response(Filter(*TARGETS["pair"]), Privacy(1, max_change=2), CHAIN, lag=None)
    twin, middle = dense("pair", variance_of(1.0, 0.0, 1.5)), WINDOW // 2
    expected = twin.mse(middle, twin.best_weights(middle, WINDOW))
    assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(3.0, 0.0), (2.0, 0.06)])
@pytest.mark.parametrize("n_events", [1, 2, 3])
def test_each_event_of_a_person_pays_for_itself(epsilon, delta, n_events):
    """At (ε/m, δ/m), wherever they fall: m-fold composition."""
    privacy = Privacy(epsilon, delta, max_change=1.5, max_events=n_events)
    mechanism = randomized_response(Filter([1]), privacy, CHAIN)
    assert mechanism.noise_std**2 == pytest.approx(variance_of(epsilon / n_events, delta / n_events, 1.5), rel=1e-12)


def test_levels_far_inside_of_a_change_are_answered_alike():
    """What is hidden are the two levels: a larger change of the input makes no more noise."""
    given = Filter([1]), CHAIN
    near, far = (randomized_response(given[0], Privacy(1, max_change=x), given[1]) for x in (1.5, 1000))
    assert near.noise_std == far.noise_std


@pytest.mark.slow_nojit
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_answers_are_the_input_plus_white_noise(delta):
    """Values about the mean and their frequencies, of inputs on the levels and of others: 24 comparisons at 4e-8."""
    n, r = 200_000, delta + (1 - delta) / 4  # tanh(ln(3)/2) = 1/2
    privacy, model = Privacy(math.log(3), delta), IndependentLevels([0, 1], [0.5, 0.5])
    mechanism = randomized_response(Filter([1]), privacy, model)
    for u, sign in ((0.0, -1), (1.0, 1), (0.49, -1), (7.0, 1)):
        v = mechanism.simulate(np.full(n, u), seed=1).privatized
        for z, chance in ((1, delta), (0.5, (1 - delta) * 0.75), (-0.5, (1 - delta) * 0.25)):
            count = int(np.isclose(v, sign * z / (2 * r), rtol=1e-9).sum())
            assert stats.binomtest(count, n, chance).pvalue > 4e-8 if chance else count == 0


@pytest.mark.slow_nojit
def test_a_wrong_model_errs_as_predicted():
    mechanism = randomized_response(Filter(*TARGETS["pair"]), Privacy(1, max_change=2), CHAIN, lag=3)
    other = MarkovChain([[0.2, 0.8], [0.5, 0.5]], LEVELS)
    errors = monte_carlo(mechanism, other, n_streams=1_000, n_samples=2_000, seed=1)[mechanism.name].stream_mse
    z = (errors.mean() - mechanism.predict(other)) / (errors.std(ddof=1) / math.sqrt(len(errors)))
    assert abs(z) < stats.norm.isf(1e-7)
