"""Who explains less than half is warned, and told what helps."""

import re
import warnings

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.design.low_accuracy_warning import HALF, advice_text, warn_of_low_accuracy

pytestmark = pytest.mark.filterwarnings("error::dpfast.AccuracyWarning")
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
AVERAGE = dp.Filter(np.ones(12) / 12)
WHITE = dp.IndependentLevels([-1, 1], [0.5, 0.5])  # of variance 1


def privacy(epsilon):
    return dp.Privacy(epsilon, 1e-6)


def number(pattern, text):
    return float(re.search(pattern, text)[1])


def smoother(epsilon, target=AVERAGE, model=CHAIN):
    return dp.lmmse(target, privacy(epsilon), model, tolerance=0.3)


def test_the_epsilon_that_is_named_is_where_the_best_smoother_explains_half():
    named = number(r"an epsilon of at least ([\d.]+);", advice_text(AVERAGE, privacy(0.3), CHAIN, 5))
    below, above = (1 - smoother(x).ideal_mse / dp.constant(AVERAGE, CHAIN).predicted_mse for x in (named, 1.1 * named))
    assert below < HALF < above
    assert f"{named:.2g}" == f"{named:g}"


def test_for_white_inputs_and_no_memory_it_is_the_epsilon_of_noise_as_strong_as_the_signal():
    named = number(r"an epsilon of at least ([\d.]+);", advice_text(dp.Filter([1.0]), privacy(0.3), WHITE, 0))
    assert privacy(named).noise_multiplier == pytest.approx(1, rel=0.05)  # explained: 1/(1 + σ²)
    assert privacy(named).noise_multiplier > 1 > privacy(named + 0.1).noise_multiplier


def test_a_larger_lag_is_advised_where_it_is_enough():
    most = 1 - smoother(1.8).ideal_mse / dp.constant(AVERAGE, CHAIN).predicted_mse
    assert most > HALF > dp.optimal(AVERAGE, privacy(1.8), CHAIN, lag=0, tolerance=0.1).explained
    assert advice_text(AVERAGE, privacy(1.8), CHAIN, 0).startswith(
        f"a larger lag would help, up to {most:.0%} with the whole signal; so would a larger epsilon; and a target"
    )
    assert advice_text(AVERAGE, privacy(1.8), CHAIN, None).startswith("another mechanism would help")


def test_where_no_epsilon_is_enough_none_is_named():
    faint = dp.ARMA([1], innovation_std=1e-9)
    assert "half of it takes a larger epsilon; and a target" in advice_text(AVERAGE, privacy(1), faint, 0)


def test_a_narrower_band_does_help():
    model, three = dp.ARMA([1.0]), privacy(3)
    parts = [dp.lmmse(dp.Filter(np.ones(n) / n), three, model, tolerance=0.05).explained for n in (3, 12, 24)]
    assert parts == sorted(parts)


# --- where it is said

INPUTS = dp.Inputs(0, 20)


def test_a_plan_that_explains_little_warns_once(tmp_path):
    mechanism = designed(dp.optimal, AVERAGE, privacy(1), CHAIN, lag=0)
    with pytest.warns(dp.AccuracyWarning, match=r"^'optimal lag 0' explains 18% of the variance of the true") as caught:
        plan = dp.exact(mechanism, INPUTS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "no lag brings a linear mechanism with Gaussian noise above 29% here" in str(caught[0].message)
    dp.release(plan, np.array([1, 2, 3]), tmp_path / "plan")  # warnings are errors here
    with pytest.warns(dp.AccuracyWarning) as caught:
        dp.release(mechanism, np.array([1, 2, 3]), tmp_path / "mechanism", INPUTS)
    assert len(caught) == 1


def test_the_warning_does_not_depend_on_the_data(tmp_path):
    mechanism, said = designed(dp.optimal, AVERAGE, privacy(1), CHAIN, lag=0), []
    for i, u in enumerate((np.zeros(50, int), np.arange(50))):
        with pytest.warns((dp.AccuracyWarning, dp.ModelWarning)) as caught:
            dp.release(mechanism, u, tmp_path / str(i), INPUTS)
        said.append([str(x.message) for x in caught if not issubclass(x.category, dp.ModelWarning)])  # which is of v
    assert said[0] == said[1]
    assert len(said[0]) == 1


def test_what_is_worse_than_the_mean_is_told_so():
    receiver = dp.input_perturbation(dp.Filter([1.0]), privacy(1)).receiver
    poor = dp.Mechanism("poor", dp.Filter([1.0]), privacy(1), CHAIN, dp.Filter([1.0]), receiver)
    assert poor.explained == pytest.approx(1 - privacy(1).noise_multiplier ** 2 / 0.25, rel=1e-9)
    with pytest.warns(dp.AccuracyWarning, match=r"^'poor' explains -7039% .* \(publishing the mean, .* errs less\)"):
        warn_of_low_accuracy(poor.name, poor.target, poor.privacy, CHAIN, 0, poor.predicted_mse)


def test_without_a_model_or_with_enough_there_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = dp.Filter([1.0, 0.5])
        dp.exact(dp.zero_forcing(short, privacy(0.1), tolerance=0.1), INPUTS)
        dp.exact(dp.robust(short, privacy(0.1), mean_square=1.0, tolerance=0.1), INPUTS)
        dp.exact(dp.lmmse(short, privacy(20), CHAIN, lag=2, tolerance=0.1), INPUTS)
