"""What rounding to a lattice adds to inputs: nothing on the lattice, and a warning where it is no white noise."""

import math
import warnings

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.rounding import _innovation_std

SLOW = dp.ARMA([0.1], [1, -0.95], mean=0.3)
SMOOTHED, SHORT, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Filter([1, 0.5]), dp.Privacy(3)
COIN = dp.IndependentLevels([0, 1], [0.75, 0.25])
STEPS = 300
OVER = dp.Toeplitz.of(SMOOTHED, STEPS)
MAKES = {
    "block sums": lambda target: dp.block_sums(target, PRIVACY, dp.ARMA([1], [1, -0.5]), unit=1, length=1),
    "input perturbation": lambda target: dp.input_perturbation(target, PRIVACY, noise="geometric", unit=1),
}


def seen(mechanism, model):
    """The simulated MSE over the predicted one, and its standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.AccuracyWarning)
        (x,) = dp.monte_carlo(mechanism, model, n_streams=4000, n_samples=mechanism.horizon or 200, seed=1)
    ratios = x.stream_mse / x.predicted_rmse**2
    return ratios.mean(), ratios.std() / math.sqrt(len(ratios))


# --- inputs on the lattice ------------------------------------------------------------------------


@pytest.mark.slow_nojit
@pytest.mark.parametrize("target", [SHORT, dp.Toeplitz.of(SHORT, STEPS)], ids=["settled", "horizon"])
@pytest.mark.parametrize("make", MAKES)
def test_rounding_adds_nothing_to_inputs_on_the_lattice(make, target):
    mechanism = MAKES[make](target)
    fine = dp.IndependentLevels([0, 1.0000000001], [0.75, 0.25])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = mechanism.predict(COIN)
        assert mechanism.predict(fine) == pytest.approx(predicted, rel=1e-6)
    ratio, error = seen(mechanism, COIN)
    assert abs(ratio - 1) < 5.5 * error < 0.02  # of 5 % that rounding would add; by chance once in 10^7 runs


@pytest.mark.slow_nojit
def test_a_receiver_over_a_horizon_is_designed_without_what_rounding_does_not_add():
    rounding = dp.input_perturbation(dp.Toeplitz.of(SHORT, STEPS), dp.Privacy(3), noise="geometric", unit=1)
    dense = rounding.with_receiver(COIN)
    others = dense.with_receiver(dp.ARMA([COIN.variance**0.5], mean=COIN.mean))  # the same spectrum, off the lattice
    assert dense.predicted_mse < 0.99 * others.predicted_mse
    assert dense.predicted_mse == pytest.approx(dense.predict(COIN), rel=1e-12)
    ratio, error = seen(dense, COIN)
    assert abs(ratio - 1) < 5.5 * error < 0.02


# --- inputs off the lattice -----------------------------------------------------------------------

WHITE = r"the prediction takes .* to the unit 1 for white noise, and may be far off, as "


@pytest.mark.slow_nojit
def test_block_sums_warn_at_design_and_in_predictions_where_little_is_new():
    """The prediction is half of what is seen."""
    few = WHITE + r"what is new in an input .* deviation of 0\.1 only: choose a unit of at most 0\.2, or simulate"
    with pytest.warns(dp.AccuracyWarning, match=few) as caught:
        mechanism = dp.block_sums(SMOOTHED, PRIVACY, SLOW, unit=1)
    assert len(caught) == 1
    assert mechanism.predicted_mse < 0.6 * seen(mechanism, SLOW)[0] * mechanism.predicted_mse
    for run in (mechanism.predict, lambda x: mechanism.step_mse(5, x), lambda x: mechanism.predict_first(5, x)):
        with pytest.warns(dp.AccuracyWarning, match=few):
            run(SLOW)


@pytest.mark.parametrize("target", [SMOOTHED, OVER], ids=["settled", "horizon"])
def test_input_perturbation_warns_in_predictions(target):
    mechanism = dp.input_perturbation(target, PRIVACY, noise="geometric", unit=1)
    for run in (mechanism.predict, lambda x: mechanism.predict_first(STEPS, x)):
        with pytest.warns(dp.AccuracyWarning, match=WHITE + "what is new in an input") as caught:
            run(SLOW)
        assert len(caught) == 1
    with pytest.warns(dp.AccuracyWarning, match=WHITE + "the levels of the model are no multiples"):
        mechanism.predict(dp.IndependentLevels([0, 0.5], [0.5, 0.5]))


@pytest.mark.slow_nojit
def test_where_half_a_unit_is_new_there_is_no_warning_and_the_prediction_holds():
    """From there on its error is within 1 %; the input itself spreads much more, which alone would not help."""
    enough = dp.ARMA([0.5], [1, -0.95], mean=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocks = dp.block_sums(SMOOTHED, PRIVACY, enough, unit=1)
        inputs = dp.input_perturbation(SMOOTHED, PRIVACY, noise="geometric", unit=1)
        for x in (blocks, inputs):
            x.predict(enough)
            ratio, error = seen(x, enough)
            assert abs(ratio - 1) < 0.01 + 5.5 * error < 0.05
        dp.block_sums(SMOOTHED, PRIVACY, SLOW, unit=0.2)
        dp.block_sums(SMOOTHED, PRIVACY, COIN)
        dp.input_perturbation(SMOOTHED, PRIVACY, noise="geometric").predict(SLOW)  # counts are not rounded
    with pytest.warns(dp.AccuracyWarning, match="deviation of 0.49 only: choose a unit of at most 0.98"):
        blocks.predict(dp.ARMA([0.49], [1, -0.95]))


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (SLOW, 0.1),
        (dp.ARMA([2, 1]), 2),
        (dp.ARMA([1, 2]), 2),  # a zero outside of the circle: less of what comes is known before
        (dp.ARMA([0, 0, 1, 2], [1, -0.9]), 2),
        (dp.ARMA([1, -1]), 1),
        (dp.ARMA([1, 0, 1], [1, -0.99995]), 1),
        (dp.ARMA(np.full(12, 1 / 12)), 1 / 12),
    ],
)
def test_innovations_are_those_of_the_factor_that_has_all_zeros_inside(model, wanted):
    assert _innovation_std(model) == pytest.approx(wanted, rel=1e-3)
