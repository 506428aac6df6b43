"""Noise on the input and on the output, as filters and over a horizon."""

import math

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.plants import EXAMPLE, NASTY_TARGETS, PRIVACY

from dpfast import Toeplitz, input_perturbation, output_perturbation


@pytest.mark.parametrize("target", long_but(NASTY_TARGETS, {*NASTY_TARGETS} - {"butterworth", "elliptic"}))
def test_the_noise_of_a_nasty_prefilter_is_that_of_its_impulse_response(target):
    """Privacy hangs on this: too small a norm is too little noise."""
    norm = math.sqrt(np.sum(target.impulse(2**20) ** 2))
    assert output_perturbation(target, PRIVACY).noise_std == pytest.approx(PRIVACY.noise_multiplier * norm, rel=1e-8)


@pytest.mark.parametrize("design", [input_perturbation, output_perturbation])
def test_laplace_noise_is_for_a_horizon(design):
    target = Toeplitz.of(EXAMPLE, 50)
    laplace, gaussian = (design(target, PRIVACY, noise=x) for x in ("laplace", "gaussian"))
    sizes = np.abs(target.coefficients)
    norm = 1.0 if design is input_perturbation else sizes.sum()
    assert laplace.noise_scale == pytest.approx(PRIVACY.max_change * norm / PRIVACY.epsilon)
    assert gaussian.noise == "gaussian"
    with pytest.raises(ValueError, match="noise must be 'gaussian' for a Filter, got 'laplace'"):
        design(EXAMPLE, PRIVACY, noise="laplace")
