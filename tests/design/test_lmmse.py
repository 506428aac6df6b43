"""The prefilters of lmmse, for nasty targets and signals, and in the limits of the noise."""

import itertools
import math

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed
from helpers.plants import CHAIN, EXAMPLE, NASTY_TARGETS, PRIVACY

from dpfast import ARMA, Filter, IndependentLevels, MarkovChain, Privacy, lmmse, zero_forcing
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import zero_forcing_mse
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother

# --- nasty targets --------------------------------------------------------------------------------


QUICK = ["difference", "outside zero, slow pole", "pole at the limit"]


@pytest.mark.parametrize("target", long_but(NASTY_TARGETS, QUICK))
def test_smoother_of_a_nasty_target_is_within_its_tolerance(target):
    mechanism = designed(lmmse, target, PRIVACY, CHAIN, tolerance=0.01)
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1.01 + 1e-6
    assert mechanism.ideal_mse <= zero_forcing_mse(Problem(target, None, PRIVACY.noise_multiplier**2))


NARROW_BANDED = ["difference", "comb", "moving average", "outside zero, slow pole", "delay", "butterworth"]


@pytest.mark.parametrize(
    "target",
    long_but({name: NASTY_TARGETS[name] for name in NARROW_BANDED}, ["difference"]),
)
def test_finite_lag_of_a_nasty_target_is_between_the_smoother_and_the_identity(target):
    smoother = designed(lmmse, target, PRIVACY, CHAIN, tolerance=0.01)
    for lag in (2, 60):
        mechanism = lmmse(target, PRIVACY, CHAIN, lag=lag, tolerance=0.01)
        assert mechanism.predicted_mse >= smoother.ideal_mse * (1 - 1e-8)
        assert mechanism.predicted_mse <= mechanism.ideal_mse * (1.01 + 1e-6)
        identity = lmmse(target, PRIVACY, CHAIN, lag=lag, prefilter=Filter([1]))  # the filling of endless θ
        assert mechanism.ideal_mse <= identity.ideal_mse * (1 + 1e-3)


# --- nasty signals --------------------------------------------------------------------------------

MODELS = {
    "zero at 0": ARMA([1, -1]),
    "zero at π": ARMA([1, 1], [1, -0.5]),
    "moving average": ARMA(np.full(12, 1 / 12)),
    "notch": ARMA([1, -2 * 0.9999 * math.cos(1), 0.9999**2]),
    "slow": ARMA([0.01], [1, -0.9999]),
    "outside zero": ARMA([1, -2]),
    "three levels": MarkovChain([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], levels=[0, 1, 5]),
    "coin": IndependentLevels([0, 1], [0.99, 0.01]),
}


AVERAGE, STRONG, WEAK = Filter(np.full(12, 1 / 12)), Privacy(0.01, 1e-9), Privacy(50, 0.1)


SETTINGS = {
    "slow, weak": (EXAMPLE, WEAK),
    "moving average, strong": (AVERAGE, STRONG),
    "slow, strong": (EXAMPLE, STRONG),
    "moving average, weak": (AVERAGE, WEAK),
}


@pytest.mark.parametrize(
    ("setting", "name"),
    long_but(
        [*itertools.product(SETTINGS, MODELS)],
        [
            *(("slow, weak", name) for name in ("zero at π", "outside zero")),
            *(("moving average, strong", name) for name in ("zero at 0", "notch", "coin")),
        ],
    ),
)
def test_smoother_of_a_nasty_signal_is_within_its_tolerance(setting, name):
    mechanism = lmmse(*SETTINGS[setting], MODELS[name], tolerance=0.01)
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1.01 + 1e-6


@pytest.mark.parametrize("model", long_but(MODELS, ["outside zero"]))
def test_finite_lag_of_a_nasty_signal_is_no_worse_than_asked(model):
    mechanism = lmmse(EXAMPLE, PRIVACY, model, lag=3, tolerance=0.01)
    assert lmmse(EXAMPLE, PRIVACY, model, tolerance=0.3).ideal_mse * (1 - 1e-8) <= mechanism.predicted_mse
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1.01 + 1e-6)


# --- limits of the noise --------------------------------------------------------------------------


@pytest.mark.parametrize("target", long_but([EXAMPLE, Filter([1, -2]), Filter(np.full(5, 0.2))], [Filter([1, -2])]))
def test_without_noise_the_smoother_becomes_zero_forcing(target):
    ratios = []
    for change in (1e-1, 1e-3, 1e-5):
        privacy = Privacy(1, 1e-3, max_change=change)
        smoother = lmmse(target, privacy, CHAIN, tolerance=0.3)
        ratios.append(smoother.ideal_mse / zero_forcing(target, privacy, tolerance=0.3).ideal_mse)
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(1, abs=1e-4)


def test_with_endless_noise_the_estimate_is_the_mean():
    for lag in (None, 0, 5):
        mechanism = lmmse(EXAMPLE, Privacy(1e-6, 1e-12), CHAIN, lag=lag, tolerance=0.1)
        variance = (EXAMPLE * CHAIN.shaping).h2_norm() ** 2
        assert mechanism.predicted_mse == pytest.approx(variance, rel=1e-6)


def test_a_wrong_mean_costs_the_bias():
    mechanism = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=2, tolerance=0.1)
    moved = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0.5, 1.5])
    through = 399 - (mechanism.receiver.response(0.0) * mechanism.prefilter.response(0.0)).real.item()
    assert mechanism.predict(moved) - mechanism.predicted_mse == pytest.approx(through**2, rel=1e-6)


def test_the_receiver_without_a_lag_is_a_smoother():
    assert isinstance(lmmse(EXAMPLE, PRIVACY, CHAIN, lag=1, tolerance=0.3).receiver, LinearReceiver)
    smoother = designed(lmmse, EXAMPLE, PRIVACY, CHAIN, tolerance=0.3)
    assert isinstance(smoother.receiver, Smoother)
    assert smoother.lag is None
