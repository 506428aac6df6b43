"""Errors follow the units of the target and of the signal, and do not depend on its mean."""

from dataclasses import replace

import pytest
from helpers.covers import long_but
from helpers.designs import designed
from helpers.plants import CHAIN, EXAMPLE, PRIVACY, privacies
from hypothesis import given, settings

from dpfast import ARMA, Filter, MarkovChain, input_perturbation, lmmse, output_perturbation, zero_forcing


@pytest.mark.parametrize(
    "factor", [pytest.param(3.0, marks=pytest.mark.long), -1e-4, pytest.param(1e5, marks=pytest.mark.long)]
)
def test_errors_scale_with_the_square_of_the_target(factor):
    target = Filter([1, 0.5], [1, -0.95])
    for design in (
        lambda f: designed(zero_forcing, f, PRIVACY, tolerance=0.1),
        lambda f: designed(lmmse, f, PRIVACY, CHAIN, tolerance=0.1),
        lambda f: designed(lmmse, f, PRIVACY, CHAIN, lag=2, tolerance=0.1),
        lambda f: input_perturbation(f, PRIVACY),
        lambda f: output_perturbation(f, PRIVACY),
    ):
        one, scaled = design(target), design(factor * target)
        assert scaled.ideal_mse == pytest.approx(factor**2 * one.ideal_mse, rel=1e-8)
        assert scaled.predicted_mse == pytest.approx(factor**2 * one.predicted_mse, rel=2e-3)


@pytest.mark.parametrize(
    ("unit", "lag"),
    [
        (1e4, 2),
        *(
            pytest.param(*x, marks=pytest.mark.long)
            for x in ((1e-3, None), (7.0, None), (1e4, None), (1e-3, 2), (7.0, 2))
        ),
    ],
)
def test_errors_scale_with_the_square_of_the_unit_of_the_signal(unit, lag):
    target = Filter([1, 0.5], [1, -0.95])
    one = designed(lmmse, target, PRIVACY, ARMA([0.5], [1, -0.5]), lag=lag, tolerance=0.1)
    other = lmmse(target, replace(PRIVACY, max_change=unit), ARMA([0.5 * unit], [1, -0.5]), lag=lag, tolerance=0.1)
    assert other.ideal_mse == pytest.approx(unit**2 * one.ideal_mse, rel=1e-8)
    assert other.predicted_mse == pytest.approx(unit**2 * one.predicted_mse, rel=2e-3)


@given(privacies)
@settings(max_examples=3)
def test_zero_forcing_scales_with_the_square_of_the_noise_multiplier(privacy):
    target = Filter([1, 0.5], [1, -0.95])
    one, other = (designed(zero_forcing, target, x, tolerance=0.01) for x in (PRIVACY, privacy))
    ratio = (privacy.noise_multiplier / PRIVACY.noise_multiplier) ** 2
    assert other.ideal_mse == pytest.approx(ratio * one.ideal_mse, rel=1e-10)
    assert other.predicted_mse == pytest.approx(ratio * one.predicted_mse, rel=1e-10)
    assert other.prefilter == one.prefilter


@pytest.mark.parametrize("lag", long_but([None, 0, 4], [4]))
def test_the_mean_does_not_change_the_error(lag):
    centred, shifted = (MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=x) for x in ([-0.5, 0.5], [9.5, 10.5]))
    one, other = (lmmse(EXAMPLE, PRIVACY, model, lag=lag, tolerance=0.01) for model in (centred, shifted))
    assert other.receiver.mean == 10
    assert other.predicted_mse == pytest.approx(one.predicted_mse, rel=1e-9)
    assert other.ideal_mse == pytest.approx(one.ideal_mse, rel=1e-9)
