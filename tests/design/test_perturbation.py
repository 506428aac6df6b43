"""Noise on the input and on the output, as filters and over a horizon."""

import inspect
import math
from typing import get_overloads

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.plants import EXAMPLE, NASTY_TARGETS, PRIVACY

from dpfast import Toeplitz, binary_tree, input_perturbation, output_perturbation, running_sum


@pytest.mark.parametrize("target", long_but(NASTY_TARGETS, {*NASTY_TARGETS} - {"butterworth", "elliptic"}))
def test_the_noise_of_a_nasty_prefilter_is_that_of_its_impulse_response(target):
    """Privacy hangs on this: too small a norm is too little noise."""
    norm = math.sqrt(np.sum(target.impulse(2**20) ** 2))
    assert output_perturbation(target, PRIVACY).noise_std == pytest.approx(PRIVACY.noise_multiplier * norm, rel=1e-8)


@pytest.mark.parametrize("design", [input_perturbation, output_perturbation])
def test_laplace_noise_over_a_horizon_is_that_of_the_largest_column(design):
    target = Toeplitz.of(EXAMPLE, 50)
    laplace, gaussian = (design(target, PRIVACY, noise=x) for x in ("laplace", "gaussian"))
    sizes = np.abs(target.coefficients)
    norm = 1.0 if design is input_perturbation else sizes.sum()
    assert laplace.noise_scale == pytest.approx(PRIVACY.max_change * norm / PRIVACY.epsilon)
    assert gaussian.noise == "gaussian"


def test_noise_on_the_output_of_a_filter_is_gaussian():
    with pytest.raises(ValueError, match="noise must be 'gaussian' for a Filter, got 'laplace'"):
        output_perturbation(EXAMPLE, PRIVACY, noise="laplace")


@pytest.mark.parametrize("design", [output_perturbation, binary_tree])
def test_noise_on_the_integers_is_for_inputs_alone(design):
    with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'laplace', got 'canonical'"):
        design(running_sum(8), PRIVACY, noise="canonical")


def test_types_allow_of_every_target_what_runs():
    """An overload that knows fewer arguments, or fewer kinds of noise, refuses what is right."""
    whole = inspect.signature(input_perturbation).parameters
    for overloaded in get_overloads(input_perturbation):
        found = inspect.signature(overloaded).parameters
        assert list(found) == list(whole)
        assert [found[x].annotation for x in ("noise", "unit")] == [whole[x].annotation for x in ("noise", "unit")]
    assert len(get_overloads(input_perturbation)) == 3
