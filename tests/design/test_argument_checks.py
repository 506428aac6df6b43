"""What the design functions refuse, and that they name it."""

import math

import control
import numpy as np
import pytest
from helpers.plants import CHAIN, EXAMPLE, PRIVACY

from dpfast import (
    DesignError,
    Filter,
    FilterMatrix,
    Mechanism,
    Privacy,
    VectorARMA,
    adaptive_blocks,
    additive_bound,
    best,
    binary_tree,
    block_sums,
    bounds_of,
    buffered_toeplitz,
    compressive,
    constant,
    decayed_sum,
    decision_feedback,
    fourier_perturbation,
    gaussian_bound,
    input_perturbation,
    linear_mean_bound,
    lmmse,
    optimal,
    optimal_factorization,
    output_perturbation,
    randomized_response,
    robust,
    running_sum,
    shared_noise,
    square_root,
    tree,
    unbiased_bound,
    unbounded_sum,
    zero_forcing,
)


@pytest.mark.parametrize("lag", [-1, 1.5, "1", math.nan, True])
def test_a_bad_lag_is_named(lag):
    with pytest.raises(ValueError, match="lag must be"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag)


@pytest.mark.parametrize("tolerance", [0, -1, math.nan, math.inf, "small", None, 1])
def test_a_bad_tolerance_is_named(tolerance):
    with pytest.raises(ValueError, match="tolerance must be"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, tolerance=tolerance)
    with pytest.raises(ValueError, match="tolerance must be"):
        zero_forcing(EXAMPLE, PRIVACY, tolerance=tolerance)


DESIGNS = {
    "zero_forcing": lambda f: zero_forcing(f, PRIVACY),
    "lmmse": lambda f: lmmse(f, PRIVACY, CHAIN),
    "lag": lambda f: lmmse(f, PRIVACY, CHAIN, lag=2),
    "input": lambda f: input_perturbation(f, PRIVACY),
    "output": lambda f: output_perturbation(f, PRIVACY),
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@pytest.mark.parametrize("target", [[1, 2], 3, None, (np.ones(2), np.ones(1)), control.tf([1], [1, -0.5], True)])
def test_a_target_that_is_no_filter_is_named(design, target):
    with pytest.raises(ValueError, match="target must be a Filter"):
        design(target)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_a_zero_target_is_named(design):
    with pytest.raises(DesignError, match="target must not be zero"):
        design(Filter([0.0]))


def test_a_bad_prefilter_is_named():
    with pytest.raises(DesignError, match="prefilter must not be zero"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, prefilter=Filter([0.0]))
    with pytest.raises(ValueError, match="prefilter must be a Filter"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, prefilter="lmmse")


@pytest.mark.parametrize("design", [*DESIGNS.values()][:2], ids=[*DESIGNS][:2])
def test_swapped_arguments_are_an_error_that_names_them(design):
    with pytest.raises((ValueError, TypeError), match="target"):
        design(PRIVACY)


@pytest.mark.parametrize("privacy", [None, 1.0, EXAMPLE])
def test_a_bad_privacy_is_named(privacy):
    for design in (
        lambda: zero_forcing(EXAMPLE, privacy),
        lambda: lmmse(EXAMPLE, privacy, CHAIN),
        lambda: input_perturbation(EXAMPLE, privacy),
    ):
        with pytest.raises((ValueError, TypeError), match="privacy must be"):
            design()


@pytest.mark.parametrize("model", [None, EXAMPLE, 1.0])
def test_a_bad_model_is_named(model):
    with pytest.raises((ValueError, TypeError), match="model must be"):
        lmmse(EXAMPLE, PRIVACY, model)


def test_what_has_no_unit_says_what_takes_real_inputs():
    counts = Privacy(1, max_change=1.3)
    for design in (tree, optimal_factorization):
        with pytest.raises(
            ValueError, match=r'^max_change must be .*, got 1\.3: .*; for real inputs take noise="laplace"$'
        ):
            design(running_sum(8), counts, noise="geometric")


@pytest.mark.parametrize(
    "design",
    [
        lambda **given: lmmse(EXAMPLE, PRIVACY, CHAIN, **given),
        lambda **given: optimal(EXAMPLE, PRIVACY, CHAIN, **given),
        lambda **given: robust(EXAMPLE, PRIVACY, mean_square=1, **given),
        lambda **given: randomized_response(EXAMPLE, PRIVACY, CHAIN, **given),
        lambda **given: tree(running_sum(8), PRIVACY, **given),
        lambda **given: optimal_factorization(running_sum(8), PRIVACY, **given),
        lambda **given: optimal_factorization(running_sum(8), PRIVACY, CHAIN, **given),
        lambda **given: unbounded_sum(PRIVACY, **given),
    ],
)
@pytest.mark.parametrize("name", [np.array([1, 2]), 0, [], b"x"])
def test_a_name_that_is_no_text_is_refused(design, name):
    with pytest.raises(ValueError, match=r"^name must be text, got"):
        design(name=name)


@pytest.mark.parametrize("progress", [np.array([1, 2]), None, "x", 1])
def test_a_bar_is_shown_or_not(progress):
    with pytest.raises(ValueError, match=r"^progress must be True or False, got"):
        best(EXAMPLE, PRIVACY, CHAIN, progress=progress)
    for noise in ("gaussian", "laplace"):
        with pytest.raises(ValueError, match=r"^progress must be True or False, got"):
            optimal_factorization(running_sum(8), PRIVACY, noise=noise, progress=progress)


@pytest.mark.parametrize("target", [[1, 2], None])
def test_where_a_toeplitz_serves_the_message_says_so(target):
    for design in (additive_bound, linear_mean_bound, adaptive_blocks, block_sums, best):
        with pytest.raises(ValueError, match=r"^target must be a Filter, .*, or a Toeplitz, got"):
            design(target, PRIVACY, CHAIN)


def test_a_bound_of_filters_says_which_takes_a_toeplitz():
    with pytest.raises(ValueError, match=r"^target must be a Filter for this bound \(.* additive_bound\), got"):
        gaussian_bound(running_sum(8), PRIVACY, CHAIN)


def test_a_class_is_no_mechanism():
    with pytest.raises(ValueError, match=r"^mechanism must be a mechanism, .*, got <class"):
        bounds_of(Mechanism)


SEVERAL, OF_THREE = FilterMatrix([[EXAMPLE, 1, 0], [0, 1, -1]]), Privacy(1, 1e-6, adjacency="one_input")


@pytest.mark.parametrize(
    "call",
    [
        lambda: adaptive_blocks(SEVERAL, OF_THREE, CHAIN),
        lambda: additive_bound(SEVERAL, OF_THREE),
        lambda: binary_tree(SEVERAL, OF_THREE),
        lambda: buffered_toeplitz(SEVERAL, OF_THREE),
        lambda: compressive(SEVERAL, OF_THREE, n_measurements=4),
        lambda: decayed_sum(SEVERAL, OF_THREE),
        lambda: decision_feedback(SEVERAL, OF_THREE, CHAIN),
        lambda: fourier_perturbation(SEVERAL, OF_THREE, n_coefficients=4),
        lambda: gaussian_bound(SEVERAL, OF_THREE, CHAIN),
        lambda: linear_mean_bound(SEVERAL, OF_THREE, CHAIN),
        lambda: optimal_factorization(SEVERAL, OF_THREE),
        lambda: randomized_response(SEVERAL, OF_THREE, CHAIN),
        lambda: robust(SEVERAL, OF_THREE, mean_square=1),
        lambda: shared_noise(SEVERAL, OF_THREE),
        lambda: square_root(SEVERAL, OF_THREE),
        lambda: tree(SEVERAL, OF_THREE),
        lambda: unbiased_bound(SEVERAL, OF_THREE),
    ],
)
def test_what_is_for_one_stream_says_what_there_is_for_several(call):
    with pytest.raises(
        ValueError, match=r"target must be of one stream here, got <FilterMatrix from 3 inputs to 2"
    ) as e:
        call()
    assert "for several streams there is best" in str(e.value)
    assert str(e.value).endswith("from input j to output i alone is target[i, j]")
    assert SEVERAL[0, 0] == EXAMPLE  # which that is


def test_a_constant_of_several_streams_is_a_row_of_their_study():
    with pytest.raises(ValueError, match=r"target must be of one stream here, .* have the constant as a row"):
        constant(SEVERAL, CHAIN)


@pytest.mark.parametrize("design", [lmmse, optimal, block_sums, decision_feedback, randomized_response, best])
def test_a_model_of_several_streams_has_one_of_each(design):
    both = VectorARMA([np.eye(2) / 2])
    with pytest.raises(
        ValueError, match=r"model must be of one stream here, .* of 2 channels.*: take model.channel\(i\)"
    ):
        design(EXAMPLE, PRIVACY, both)
    assert lmmse(EXAMPLE, PRIVACY, both.channel(1), tolerance=0.5).predicted_mse > 0  # which serves
