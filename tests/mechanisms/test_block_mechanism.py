"""Block sums as a mechanism: the noise that hides a person's events, in the units of the input."""

import math

import numpy as np
import pytest
from scipy import stats

from dpfast import (
    ARMA,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    block_sums,
    input_perturbation,
    randomized_response,
    running_sum,
)

TARGET = Filter([0.1], [1, -0.9])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[1.0, 1.5])
COUNTS = ARMA([1.2], [1, -0.9], mean=5)


def geometric(epsilon, d):
    """2q/(1 - q)² with q = e^{-ε/d}."""
    q = math.exp(-epsilon / d)
    return 2 * q / (1 - q) ** 2


def canonical(epsilon, delta):
    """2 Σ (2k - 1) T_k with T_{k+1} = max(0, e^{-ε}(T_k - δ))."""
    tail, k, total = (1 - delta) / (1 + math.exp(epsilon)), 1, 0.0
    while tail > 0:
        total, tail, k = total + 2 * (2 * k - 1) * tail, math.exp(-epsilon) * (tail - delta), k + 1
    return total


def staircase(epsilon, d):
    """The least of the variances of all stairs, summed over integers."""
    n = np.arange(-400 * d, 400 * d + 1)
    stair, place = np.divmod(np.abs(n), d)
    laws = [np.exp(-epsilon * (stair + (place >= r))) for r in range(1, d + 1)]
    return min(float(p @ n**2 / p.sum()) for p in laws)


def group_delta(epsilon, delta, m):
    return delta / sum(math.exp(epsilon * i / m) for i in range(m))


VARIANCES = {  # of a share of (epsilon, delta) for m changes, each of at most d steps: section 3 of the mathematics
    "geometric": lambda epsilon, delta, d, m: geometric(epsilon, m * d),
    "canonical": lambda epsilon, delta, d, m: canonical(epsilon / m, group_delta(epsilon, delta, m)),
    "staircase": lambda epsilon, delta, d, m: staircase(epsilon / m, d),
}
EVENTS = pytest.mark.parametrize("m", [1, 2, 5])
KINDS = pytest.mark.parametrize(
    ("kind", "epsilon", "delta", "d"),
    [("geometric", 1.0, 0.0, 3), ("canonical", 2.0, 0.05, 1), ("staircase", 6.0, 0.0, 4), ("geometric", 0.5, 0.01, 1)],
)


@EVENTS
@KINDS
def test_noise_is_that_of_group_privacy(kind, epsilon, delta, d, m):
    """On levels half a unit apart, over a horizon too, and of every level its share."""
    privacy = Privacy(epsilon, delta, max_change=0.5 * d, max_events=m)
    expected = 0.25 * VARIANCES[kind](epsilon, delta, d, m)
    for target in (TARGET, running_sum(20)):
        mechanism = block_sums(target, privacy, CHAIN, length=5, noise=kind)
        assert mechanism.noise_std**2 == pytest.approx(expected, rel=1e-9)
    parts = (0.3, 0.7)
    two = block_sums(TARGET, privacy, CHAIN, length=(2, 6), shares=parts, noise=kind)
    expected = [VARIANCES[kind](epsilon * x, delta * x, d, m) for x in parts]
    assert [x.variance for x in two.noise] == pytest.approx(expected, rel=1e-9)


@EVENTS
@KINDS
def test_noise_on_every_input_is_that_of_group_privacy(kind, epsilon, delta, d, m):
    privacy = Privacy(epsilon, delta, max_change=d, max_events=m)
    expected = VARIANCES[kind](epsilon, delta, d, m)
    assert input_perturbation(TARGET, privacy, noise=kind).noise_std ** 2 == pytest.approx(expected, rel=1e-9)
    over_horizon = input_perturbation(running_sum(20), privacy, noise=kind)
    assert over_horizon.noise_std**2 == pytest.approx(expected, rel=1e-7)  # that of the table of 32 bits


@EVENTS
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_best_noise_has_the_least_variance(epsilon, delta, d, m):
    serve = ["geometric", "staircase"] + ["canonical"] * (delta > 0 and d == 1)
    privacy = Privacy(epsilon, delta, max_change=d, max_events=m)
    least = min(VARIANCES[kind](epsilon, delta, d, m) for kind in serve)
    best = block_sums(TARGET, privacy, COUNTS, length=4)
    assert best.noise_std**2 == pytest.approx(least, rel=1e-8)
    assert input_perturbation(TARGET, privacy, noise="best").noise_std ** 2 == pytest.approx(least, rel=1e-8)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize(("change", "unit", "d"), [(0.9, 1.0, 1), (1.0, 1.0, 2), (1.0, 0.25, 5), (3.3, 0.5, 7)])
def test_real_inputs_are_hidden_on_their_lattice(change, unit, d, m):
    """⌊d/unit⌋ + 1 steps, as both ends of a change may be rounded; on every input rounding adds to the noise."""
    privacy, expected = Privacy(1.5, max_change=change, max_events=m), geometric(1.5, m * d)
    rounded = block_sums(TARGET, privacy, COUNTS, length=4, unit=unit, noise="geometric")
    assert rounded.noise_std**2 == pytest.approx(unit**2 * expected, rel=1e-9)
    both = unit**2 * (expected + 1 / 12)
    per_input = input_perturbation(TARGET, privacy, noise="geometric", unit=unit)
    assert per_input.noise_std**2 == pytest.approx(both, rel=1e-9)
    assert per_input.predicted_mse == pytest.approx(both * 0.01 / (1 - 0.81), rel=1e-9)


def test_when_events_are_close_together_changes_nothing():
    """Group privacy holds wherever they fall."""
    near, far = (Privacy(1, max_events=3, min_separation=x) for x in (1, 50))
    assert block_sums(TARGET, near, COUNTS).predicted_mse == block_sums(TARGET, far, COUNTS).predicted_mse
    model = IndependentLevels([0, 1], [0.5, 0.5])
    first, second = (randomized_response(TARGET, x, model) for x in (near, far))
    assert first.predicted_mse == second.predicted_mse


@pytest.mark.slow_nojit
@pytest.mark.parametrize("m", [1, 3])
@KINDS
def test_released_sums_have_that_noise(kind, epsilon, delta, d, m):
    """The variance of 400,000 values against the designed one; 8 comparisons at 1e-7.

    The error of a variance is that of squares, whose own variance is as seen.
    """
    privacy = Privacy(epsilon, delta, max_change=0.5 * d, max_events=m)
    mechanism = block_sums(TARGET, privacy, CHAIN, length=5, noise=kind, phase=2)
    v = mechanism.simulate(np.full((1_000, 2_000), 1.5), seed=1).privatized
    expected = 0.25 * VARIANCES[kind](epsilon, delta, d, m)
    squares = (v[:, 2::5] - np.where(np.arange(400) == 0, 3, 5) * (1.5 - CHAIN.mean)) ** 2
    z = (squares.mean() - expected) / (squares.std() / math.sqrt(squares.size))
    assert abs(z) < stats.norm.isf(0.5e-7)


@pytest.mark.parametrize("lengths", [(5,), (2, 10, 60)])
def test_a_slow_receiver_has_settled_after_its_settling_time(lengths):
    """A start is forgotten but for 1e-3 of its amplitude."""
    slow = ARMA([0.1], [1, -0.995])  # of which the receiver remembers more than the target does
    mechanism = block_sums(Filter([1.0]), Privacy(0.3), slow, length=lengths)
    settled, cycle = mechanism.settling_time(1e-3), lengths[-1]
    steps = mechanism.step_mse(settled + cycle)
    start = abs(steps[:cycle].mean() / mechanism.predicted_mse - 1)
    assert start > 0.1
    assert abs(steps[settled:].mean() / mechanism.predicted_mse - 1) < 1e-5
