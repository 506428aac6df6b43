"""Transform the whole series: a Fourier basis, random projections, and their products with a target."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import Toeplitz

MOST_STEPS = 4096  # the longest horizon of a dense matrix


def check_steps(horizon: int, shortest: int = 1) -> None:
    """Refuse a horizon for which dense matrices are too large."""
    if not shortest <= horizon <= MOST_STEPS:
        raise DesignError(
            f"the horizon must be from {shortest} to {MOST_STEPS} steps for a transform of the whole series, got "
            f"{horizon}: its matrices are dense; square_root and binary_tree take any"
        )


def fourier_basis(horizon: int, n_vectors: int) -> Array:
    """Return the first real orthonormal Fourier vectors as rows: the constant, cos, sin, cos of twice, ..."""
    order = np.arange(n_vectors)
    turns = np.outer((order + 1) // 2, np.arange(horizon)) % horizon / horizon
    quarter = np.where(order % 2 == 0, 0.25, 0.0)[:, None]  # sin x = cos(x - π/2)
    rows = np.cos(2 * math.pi * (turns - quarter)) * math.sqrt(2 / horizon)
    rows[0] = 1 / math.sqrt(horizon)
    if n_vectors == horizon and horizon % 2 == 0:
        rows[-1] = np.cos(2 * math.pi * turns[-1]) / math.sqrt(horizon)
    return rows


def random_signs(n_rows: int, horizon: int, seed: int) -> Array:
    """Draw a matrix of ±1/√n_rows from a public seed; NumPy may draw another one in a later version."""
    signs = np.random.default_rng(seed).integers(0, 2, (n_rows, horizon))
    return np.where(signs == 1, 1.0, -1.0) / math.sqrt(n_rows)


def rows_of_product(rows: Array, target: Toeplitz) -> Array:
    """Multiply `rows` by the matrix of the target: the transposed filter runs backwards."""
    return np.ascontiguousarray(target.apply(rows[:, ::-1])[:, ::-1])
