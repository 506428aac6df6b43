"""Zero forcing distorts nothing, and errs at most as input and output perturbation do."""

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed
from helpers.plants import EXAMPLE, NASTY_TARGETS, PRIVACY, privacies, targets
from hypothesis import given, settings

from dpfast import MarkovChain, input_perturbation, output_perturbation, zero_forcing
from dpfast.mechanisms.receivers.linear import LinearReceiver

QUICK = [
    *("difference", "comb", "notch", "outside zero, slow pole", "pole at the limit", "delay"),
]


@pytest.fixture(scope="module", params=long_but(NASTY_TARGETS, QUICK))
def nasty(request):
    return request.param


@pytest.fixture(scope="module")
def forced(nasty):
    return zero_forcing(nasty, PRIVACY, tolerance=0.01)


def test_zero_forcing_has_no_distortion(nasty, forced):
    omega = np.concatenate([np.linspace(0, np.pi, 301), np.geomspace(1e-7, 0.1, 50)])
    through = forced.receiver.response(omega) * forced.prefilter.response(omega)
    wanted = nasty.response(omega)
    np.testing.assert_allclose(through, wanted, rtol=1e-7, atol=1e-9 * np.abs(wanted).max())


def test_zero_forcing_is_within_its_tolerance(forced):
    assert 1 - 1e-8 <= forced.predicted_mse / forced.ideal_mse <= 1.01 + 1e-6


def test_zero_forcing_is_at_most_the_perturbations(nasty, forced):
    energy = np.sum(nasty.impulse(2**20) ** 2)
    for other in (input_perturbation(nasty, PRIVACY), output_perturbation(nasty, PRIVACY)):
        assert forced.predicted_mse <= other.predicted_mse * (1.01 + 1e-6)
        assert other.predicted_mse == pytest.approx(PRIVACY.noise_multiplier**2 * energy, rel=1e-6)


@given(targets, privacies)
@settings(max_examples=6)
def test_zero_forcing_is_within_its_tolerance_whatever_the_target(target, privacy):
    mechanism = zero_forcing(target, privacy, tolerance=0.01)
    omega = np.linspace(0, np.pi, 64)
    through = mechanism.receiver.response(omega) * mechanism.prefilter.response(omega)
    np.testing.assert_allclose(through, target.response(omega), rtol=1e-7, atol=1e-9 * target.hinf_norm())
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1.01 + 1e-6


def test_it_is_within_a_thousandth_unless_another_tolerance_is_asked_for():
    mechanism = designed(zero_forcing, EXAMPLE, PRIVACY)
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1 + 1.001e-3


def test_its_receiver_is_linear():
    assert isinstance(designed(zero_forcing, EXAMPLE, PRIVACY).receiver, LinearReceiver)


def test_zero_forcing_does_not_care_about_the_mean():
    mechanism = designed(zero_forcing, EXAMPLE, PRIVACY)
    moved = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[100.5, 101.5])
    assert mechanism.predict(moved) == pytest.approx(mechanism.predicted_mse, rel=1e-9)
