"""Orthonormal bases, and the sparse decoder against its optimality and cvxpy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft

from dpfast import ConvergenceWarning, DesignError
from dpfast.design.horizon.transform_matrices import random_signs
from dpfast.mechanisms.operators.operator_protocol import NotLinearError
from dpfast.mechanisms.operators.sparse_decoder import SparseDecoder, analysis, check_basis, synthesis

# --- oracles --------------------------------------------------------------------------------------


def explicit_haar(n):
    """Haar's wavelets one by one: rows."""
    rows = [np.full(n, n**-0.5)]
    width = n
    while width > 1:
        for start in range(0, n, width):
            row = np.zeros(n)
            row[start : start + width // 2] = width**-0.5
            row[start + width // 2 : start + width] = -(width**-0.5)
            rows.append(row)
        width //= 2
    return np.array(rows)


def explicit_dct(n):
    """The cosines of the DCT-II, rows."""
    rows = np.cos(np.pi * np.outer(np.arange(n), np.arange(n) + 0.5) / n) * math.sqrt(2 / n)
    rows[0] /= math.sqrt(2)
    return rows


def explicit_basis(basis, n):
    return explicit_haar(n) if basis == "haar" else explicit_dct(n)


def lasso(dictionary, v, penalty):
    """argmin ½‖Dx - v‖² + λ‖x‖₁ by a cone solver."""
    import cvxpy as cp

    x = cp.Variable(dictionary.shape[1])
    loss = cp.sum_squares(dictionary @ x - v) / 2 + penalty * cp.norm1(x)
    cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL", tol_gap_rel=1e-11, tol_gap_abs=1e-12, tol_feas=1e-11)
    return x.value


# --- bases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("basis", "n"), [("dct", 1), ("dct", 2), ("dct", 13), ("haar", 1), ("haar", 2), ("haar", 32)])
def test_bases_are_the_explicit_ones_and_orthonormal(basis, n):
    rows = explicit_basis(basis, n)
    np.testing.assert_allclose(analysis(basis, np.eye(n)).T, rows, atol=1e-13)
    np.testing.assert_allclose(synthesis(basis, np.eye(n)), rows, atol=1e-13)
    np.testing.assert_allclose(rows @ rows.T, np.eye(n), atol=1e-13)


def test_cosines_are_those_of_scipy_and_any_leading_axes_go():
    x = np.random.default_rng(2).normal(size=(2, 3, 16))
    np.testing.assert_allclose(analysis("dct", x), fft.dct(x, norm="ortho"), rtol=0, atol=0)
    for basis in ("dct", "haar"):
        np.testing.assert_allclose(synthesis(basis, analysis(basis, x)), x, atol=1e-14)
        np.testing.assert_array_equal(analysis(basis, x)[1, 2], analysis(basis, x[1, 2]))


def test_haar_needs_a_power_of_two():
    with pytest.raises(DesignError, match="power of two for basis='haar', got 12: use basis='dct'"):
        check_basis("haar", 12)
    with pytest.raises(ValueError, match="basis must be one of 'dct', 'haar', got 'db4'"):
        check_basis("db4", 16)
    assert check_basis("haar", 16) == "haar"
    assert check_basis("dct", 12) == "dct"


# --- the decoder ----------------------------------------------------------------------------------


def noisy(basis, n, m, seed, n_streams=3, noise=0.1):
    """Projections of series with four coefficients that are not zero."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n_streams, n))
    for row in x:
        row[rng.choice(n, 4, replace=False)] = rng.normal(size=4) * 3
    phi = random_signs(m, n, seed)
    y = synthesis(basis, x)
    return phi, y, y @ phi.T + noise * rng.normal(size=(n_streams, m))


@given(
    basis=st.sampled_from(["dct", "haar"]),
    log_n=st.integers(0, 7),
    share=st.floats(0.05, 1),
    penalty=st.floats(0.01, 10),
    seed=st.integers(0, 2**32),
)
def test_estimates_meet_the_conditions_of_optimality(basis, log_n, share, penalty, seed):
    """|correlation| ≤ λ, and = λ with the sign of the coefficient where that is not zero."""
    n = 2**log_n
    m = math.ceil(share * n)
    rng = np.random.default_rng(seed)
    phi, v = random_signs(m, n, seed), rng.normal(size=(2, m)) * 3
    dictionary = phi @ explicit_basis(basis, n).T
    x = analysis(basis, SparseDecoder(phi, basis, penalty, tolerance=1e-11).apply(v))
    x[np.abs(x) < 1e-9] = 0  # rounding of the way there and back
    correlation = (v - x @ dictionary.T) @ dictionary
    assert np.abs(correlation).max() <= penalty * (1 + 1e-4)
    used = x != 0
    np.testing.assert_allclose(correlation[used], penalty * np.sign(x[used]), atol=1e-4 * max(penalty, 1))


@pytest.mark.parametrize(("basis", "n", "m"), [("dct", 24, 12), ("haar", 16, 10), ("dct", 30, 30)])
def test_estimates_are_those_of_a_cone_solver(basis, n, m):
    phi, _, v = noisy(basis, n, m, 5)
    rows = explicit_basis(basis, n)
    got = SparseDecoder(phi, basis, 0.3, tolerance=1e-12).apply(v)
    for stream, estimate in zip(v, got, strict=True):
        x = lasso(phi @ rows.T, stream, 0.3)
        np.testing.assert_allclose(estimate, x @ rows, atol=1e-6)


@pytest.mark.parametrize("basis", ["dct", "haar"])
def test_sparse_series_are_recovered_without_noise(basis):
    phi, y, v = noisy(basis, 128, 64, 7, noise=0.0)
    estimate = SparseDecoder(phi, basis, 1e-4, tolerance=1e-9).apply(v)
    np.testing.assert_allclose(estimate, y, atol=1e-3)


def test_a_large_penalty_decodes_to_nothing():
    phi, _, v = noisy("dct", 64, 32, 8)
    largest = np.abs(v @ analysis("dct", phi)).max()
    assert (SparseDecoder(phi, "dct", largest * 1.001).apply(v) == 0).all()
    assert (SparseDecoder(phi, "dct", largest * 0.99).apply(v) != 0).any()


def test_zeros_decode_to_zeros():
    assert (SparseDecoder(random_signs(4, 8, 0), "haar", 1.0).apply(np.zeros((2, 4))) == 0).all()


def test_every_stream_is_decoded_as_if_it_were_alone():
    phi, _, v = noisy("dct", 200, 60, 9, n_streams=21)
    decoder = SparseDecoder(phi, "dct", 0.3)
    together = decoder.apply(v)
    for k, stream in enumerate(v):
        np.testing.assert_array_equal(decoder.apply(stream), together[k])
    np.testing.assert_array_equal(decoder.apply(v.reshape(3, 7, 60)), together.reshape(3, 7, 200))
    np.testing.assert_array_equal(decoder.apply(v[::-1])[::-1], together)


def test_nothing_decodes_to_nothing():
    decoder = SparseDecoder(random_signs(4, 8, 0), "dct", 1.0)
    assert decoder.apply(np.empty((0, 4))).shape == (0, 8)
    assert decoder.apply(np.empty((2, 0, 4))).shape == (2, 0, 8)


def test_too_few_iterations_are_told():
    phi, _, v = noisy("dct", 64, 32, 8)
    decoder = SparseDecoder(phi, "dct", 0.01, max_iterations=3)
    with pytest.warns(ConvergenceWarning, match="the lasso stopped after 3 iterations"):
        decoder.apply(v)


def test_a_decoder_is_no_matrix():
    decoder = SparseDecoder(random_signs(4, 8, 0), "dct", 1.0)
    assert decoder.shape == (8, 4)
    for ask in (decoder.products, decoder.largest_l1, decoder.squared_rows, decoder.matrix):
        with pytest.raises(NotLinearError, match="found by simulation"):
            ask()
