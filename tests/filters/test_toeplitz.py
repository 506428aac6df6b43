import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal
from scipy.linalg import toeplitz

import dpfast as dp
from dpfast.filters.toeplitz import convolve_series, inverse_series, square_root_series

COEFFICIENTS = st.lists(st.floats(-3, 3), min_size=1, max_size=12).filter(lambda x: max(map(abs, x)) > 1e-3)
LEADING = st.floats(0.2, 3)


@given(COEFFICIENTS, st.integers(0, 3))
def test_the_output_is_that_of_the_matrix(f, n_more):
    target = dp.Toeplitz(f, len(f) + n_more)
    u = np.random.default_rng(1).normal(size=(3, target.horizon))
    matrix = np.tril(toeplitz(target.coefficients))
    np.testing.assert_allclose(target.apply(u), u @ matrix.T, atol=1e-13 * np.abs(f).sum() * 10)
    assert target.h2_norm() == pytest.approx(math.sqrt(sum(x * x for x in f)))


def test_a_filter_over_a_horizon_gives_its_first_samples():
    filter = dp.Filter([1, 0.5], [1, -0.8])
    target = dp.Toeplitz.of(filter, 40)
    u = np.random.default_rng(1).normal(size=40)
    np.testing.assert_allclose(target.apply(u), filter.filter(u).y, atol=1e-12)


def test_running_sums_and_polynomial_decays():
    np.testing.assert_array_equal(dp.running_sum(4).coefficients, 1)
    np.testing.assert_allclose(dp.polynomial_decay(2, 3).coefficients, [1, 1 / 4, 1 / 9])


def test_horizons_cut_and_pad():
    assert dp.Toeplitz([1, 2, 3], 2) == dp.Toeplitz([1, 2])
    assert dp.Toeplitz.of([1, 2], 3) == dp.Toeplitz([1, 2, 0])
    longer = dp.running_sum(8)
    assert dp.Toeplitz.of(longer) is longer
    assert dp.Toeplitz.of(longer, 5) == dp.running_sum(5)


def test_targets_are_values():
    target = dp.Toeplitz([1, 2, 3])
    assert hash(target) == hash(dp.Toeplitz([1.0, 2.0, 3.0]))
    assert hash(dp.Toeplitz([1.0, -0.0])) == hash(dp.Toeplitz([1.0, 0.0]))  # as they are equal
    assert target != dp.Toeplitz([1, 2, 4])
    assert target != [1, 2, 3]
    assert pickle.loads(pickle.dumps(target)) == target
    assert repr(dp.running_sum(9)) == "Toeplitz([1, 1, 1, 1, ...], horizon=9)"
    with pytest.raises(AttributeError, match="cannot be changed: make another one"):
        target.horizon = 3
    with pytest.raises(ValueError, match="read-only"):
        target.coefficients[0] = 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dp.Toeplitz([]), "coefficients"),
        (lambda: dp.Toeplitz([0, 0]), "coefficients must not all be zero"),
        (lambda: dp.Toeplitz([0, 1], 1), "give a longer one"),
        (lambda: dp.Toeplitz([1, math.nan]), "coefficients must be finite"),
        (lambda: dp.Toeplitz([[1]]), "coefficients"),
        (lambda: dp.Toeplitz([1], 0), "horizon must be an integer"),
        (lambda: dp.Toeplitz.of(dp.Filter([1, 1])), "horizon must be given for a Filter"),
        (lambda: dp.Toeplitz.of(dp.running_sum(4), 5), "horizon must be at most that of the target, 4, got 5"),
        (lambda: dp.Toeplitz.of("running-sum:4"), "target must be a Filter"),
        (lambda: dp.Toeplitz.of(3), "target must be a Filter"),
        (lambda: dp.running_sum(4).apply([1, 2, 3]), "u must have the horizon's 4 steps along its last axis, got 3"),
        (lambda: dp.running_sum(2.5), "horizon must be an integer"),
        (lambda: dp.polynomial_decay(0, 4), "power must be"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@given(LEADING, COEFFICIENTS)
def test_square_roots_and_inverses_of_power_series(first, rest):
    f = np.array([first, *rest])
    c, b = square_root_series(f), inverse_series(f)
    # each term to the rounding of what it is the sum of
    squares = np.convolve(np.abs(c), np.abs(c))[: len(f)]
    np.testing.assert_array_less(np.abs(np.convolve(c, c)[: len(f)] - f), 1e-13 * squares)
    products = np.convolve(np.abs(b), np.abs(f))[: len(f)]
    one = np.eye(1, len(f))[0]
    np.testing.assert_array_less(np.abs(np.convolve(b, f)[: len(f)] - one), 1e-13 * products + 1e-300)
    np.testing.assert_allclose(convolve_series(f, f), np.convolve(f, f)[: len(f)], atol=1e-12 * (f @ f))


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2048, 2049, 10_000])
@pytest.mark.parametrize("pole", [1.0, 0.9995])
def test_the_square_root_of_one_pole_is_a_binomial_series(pole, n):
    binomial = np.cumprod(np.concatenate([[1], 1 - 1 / (2 * np.arange(1, n))]))
    powers = pole ** np.arange(n)
    np.testing.assert_allclose(square_root_series(4 * powers), 2 * binomial * powers, rtol=1e-9)


@pytest.mark.parametrize(
    "design",
    [
        lambda x, p, u: dp.lmmse(x, p, u, lag=1),
        dp.optimal,
        dp.decision_feedback,
        dp.optimal_program,
        dp.lmmse_program,
        dp.feedback_program,
        lambda x, p, u: dp.ideal_feedback(x, p, u, dp.Filter([1])),
        lambda x, p, u: dp.robust(x, p, mean_square=1),
        lambda x, p, u: dp.zero_forcing(x, p),
        lambda x, p, u: dp.zero_forcing(x, p, tolerance=0.1),
    ],
)
def test_designs_of_filters_name_those_over_a_horizon(design):
    coin = dp.IndependentLevels([0, 1], [0.5, 0.5])
    with pytest.raises(
        ValueError, match=r"target must be a Filter here, got a Toeplitz of 8 steps.* optimal_factorization"
    ):
        design(dp.running_sum(8), dp.Privacy(1, 1e-6), coin)


@pytest.mark.parametrize("a", [[1, -1], [1, -2, 1], [1, 0, 1]])
def test_a_filter_that_never_settles_is_told_of_a_horizon(a):
    with pytest.raises(dp.UnstableFilterError, match=r"running_sum\(n\) .* Toeplitz\(impulse_response, horizon=n\)"):
        dp.Filter([1], a)
    response = signal.lfilter([1], a, np.eye(1, 16)[0])  # as the message says
    assert dp.optimal_factorization(dp.Toeplitz(response, horizon=16), dp.Privacy(1, 1e-6)).horizon == 16
