"""How large errors are of wrong decisions, and of noise that mostly is zero."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation.rare_error_sizes import error_sizes, input_range

LEVELS = dp.IndependentLevels([0.0, 1.0, 3.0], [0.5, 0.3, 0.2])


TARGETS = [dp.Filter([0.25, 0.5, 0.25]), dp.Filter([1, -0.4], [1, -0.9]), dp.Filter([1.0], [1, 0.5])]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("decision", ["quantizer", "soft"])
def test_sizes_are_those_of_wrong_decisions(target, decision):
    mechanism = dp.decision_feedback(target, dp.Privacy(5, 1e-3), LEVELS, lag=1, decision=decision)
    sizes = error_sizes(mechanism.compiled(), (0.0, 3.0), 400, 8)
    one = np.zeros(400)
    one[0] = 0.5  # half of the least distance
    assert sizes.smallest == pytest.approx(np.mean(target.filter(one).y ** 2) / 8, rel=1e-12)
    worst = np.where(target.impulse(400) >= 0, 3.0, -3.0)[::-1]
    assert sizes.largest == pytest.approx(target.filter(worst).y[-1] ** 2, rel=1e-9)
    for wrong in np.random.default_rng(1).choice([-3.0, -2.0, 0.0, 1.0, 3.0], (50, 400)):
        assert np.mean(target.filter(wrong).y ** 2) < sizes.largest
    assert error_sizes(mechanism.compiled(), (-7.0, 1.0), 400).largest == pytest.approx(sizes.largest * (10 / 3) ** 2)
    assert error_sizes(mechanism.compiled(), (-math.inf, math.inf), 400).largest == math.inf


def test_linear_mechanisms_have_no_error_events():
    target, privacy = dp.Filter([1.0], [1, -0.5]), dp.Privacy(1, 1e-3)
    linear = (
        dp.zero_forcing(target, privacy),
        dp.lmmse(target, privacy, LEVELS),
        dp.square_root(dp.Toeplitz([1.0], 4), privacy),
    )
    assert [error_sizes(x.compiled(), (0.0, 3.0), 4) for x in linear] == [None] * 3


COIN = dp.IndependentLevels([-0.5, 0.5], [0.5, 0.5])
RARE = {
    "block sums": lambda e, target: dp.block_sums(target, dp.Privacy(e), COIN, length=1),
    "randomised response": lambda e, target: dp.randomized_response(target, dp.Privacy(e), COIN),
    "inputs": lambda e, target: dp.input_perturbation(target, dp.Privacy(e), noise="geometric"),
}


@pytest.mark.parametrize("design", RARE.values(), ids=RARE)
def test_sizes_are_those_of_a_draw_that_is_not_zero(design):
    """A step of noise through the receiver, which is the target but for a few per cent, makes about this error."""
    target = dp.Filter([0.25, 0.5, 0.25])
    found = design(12, target).compiled()
    chance = found.noise_steps.chance
    two_sided = 2 * math.exp(-12) / (1 + math.exp(-12))  # of the geometric law
    told = two_sided if "CompiledResponse" not in type(found).__name__ else 1 / (1 + math.exp(12))
    assert chance == pytest.approx(told, rel=1e-4)
    sizes = error_sizes(found, (-0.5, 0.5), 400, 8)
    assert sizes.smallest == pytest.approx(0.25 * (1 / 16 + 1 / 4 + 1 / 16) / (400 * 8), rel=1e-4)
    assert sizes.largest >= 1
    assert error_sizes(found, (-0.5, 0.5), math.ceil(1 / chance)) is None  # such noise is seen
    assert error_sizes(design(1, target).compiled(), (-0.5, 0.5), 400) is None


def test_sizes_over_a_horizon_are_those_of_its_steps():
    sums = dp.running_sum(10)
    for mechanism in (RARE["inputs"](12, sums), RARE["block sums"](12, sums)):
        sizes = error_sizes(mechanism.compiled(), (-0.5, 0.5), 10)
        assert sizes.smallest == pytest.approx(0.25, rel=1e-12)
        assert sizes.largest >= 100


@pytest.mark.parametrize("design", RARE.values(), ids=RARE)
@pytest.mark.parametrize("epsilon", [14, 20, 40])
def test_noise_that_was_hardly_seen_is_bounded(design, epsilon):
    """The spread of streams without any noise tells nothing: intervals of it did not hold what is predicted."""
    mechanism = design(epsilon, dp.Filter([0.25, 0.5, 0.25]))
    (found,) = dp.monte_carlo(mechanism, COIN, n_streams=64, n_samples=1000, seed=1).results
    assert found.error_events < 16
    assert found.is_rare
    inputs = RARE["inputs"](epsilon, mechanism.target)  # nearly the same, where rounding hides what sums err
    assert found.interval[0] <= (mechanism.predicted_rmse or inputs.predicted_rmse) <= found.interval[1]


def test_the_inputs_of_a_source():
    assert input_range(LEVELS.compiled()) == (0, 3)
    assert input_range(dp.ARMA([0.5], mean=1).compiled()) == (-math.inf, math.inf)
    assert input_range(dp.ARMA([0.5], mean=1, levels=[0, 1, 2]).compiled()) == (0, 2)
    assert input_range(dp.MarkovChain([[0.5, 0.5], [0.5, 0.5]], levels=[4, -2]).compiled()) == (-2, 4)
