"""Descent on strategies whose columns have the ℓ₁ norm one, for Laplace noise: lower triangular, or of any rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import blas, lapack

from dpfast._support.validation import Array

_MEMORY = 20  # steps that L-BFGS remembers
_NEGLIGIBLE = 1e-6  # entries of a strategy that are taken for zero
_FLAT = 1e-9  # relative decrease of the error in a step at which a search ends

ErrorBehind = Callable[[Array], tuple[float, Array]]  # of a strategy: the sum of squared errors, and its gradient


class Descent(NamedTuple):
    """A strategy with columns of ℓ₁ norm one, and the sum of squared errors behind unit noise."""

    strategy: Array
    error: float


def error_behind_lower(c: Array, a: Array) -> tuple[float, Array]:
    """Return ‖B‖²_F of B = A C⁻¹, C lower triangular, and its gradient -2 Bᵀ B C⁻ᵀ."""
    b = linalg.solve_triangular(c, a.T, lower=True, trans=1, check_finite=False).T
    half = linalg.solve_triangular(c, b.T @ b, lower=True, check_finite=False)
    return float((b * b).sum()), -2 * half.T


def error_behind_any(c: Array, a: Array) -> tuple[float, Array]:
    """Return ‖A C⁺‖²_F = tr A M Aᵀ, M = (CᵀC)⁻¹, and its gradient -2 C M AᵀA M; infinite where C has not full rank."""
    root, failed = lapack.dpotrf(c.T @ c, lower=1, clean=1, overwrite_a=1)
    if failed:
        return np.inf, np.zeros_like(c)
    inverse, _ = lapack.dpotri(root, lower=1, overwrite_c=1)
    half = _mirrored(inverse) @ a.T
    square = _mirrored(blas.dsyrk(1.0, half, lower=1))
    return float((half * a.T).sum()), -2 * (c @ square)


def _mirrored(lower: Array) -> Array:
    return np.asarray(lower + np.tril(lower, -1).T)


class ColumnsOnSimplex(NamedTuple):
    """Strategies C = Z/‖Z‖₁ by columns, Z = X|X|, of the entries X that start other than zero.

    Squares let L-BFGS, which knows no constraints, run along the faces of the ℓ₁ ball, where the optimum is: most
    entries of a column vanish. What is zero at the start stays zero, so that a start says which entries there are.
    """

    places: tuple[NDArray[np.intp], ...]
    shape: tuple[int, ...]
    error_behind: ErrorBehind

    def strategy(self, x: Array) -> tuple[Array, Array, Array]:
        """Return X, the ℓ₁ norms of the columns of Z, and C."""
        entries = np.zeros(self.shape)
        entries[self.places] = x
        z = entries * np.abs(entries)
        norms = np.abs(z).sum(axis=0)
        return entries, norms, z / norms

    def log_error(self, x: Array) -> tuple[float, Array]:
        """Return the logarithm of the error, and its gradient with respect to X."""
        entries, norms, c = self.strategy(x)
        error, slope = self.error_behind(c)
        along = (slope - np.sign(c) * (slope * c).sum(axis=0)) / norms
        return np.log(error), (2 * np.abs(entries) * along)[self.places] / error


def descend(start: Array, error_behind: ErrorBehind, n_steps: int, advance: Callable[[int], None]) -> Descent:
    """Search from a start by L-BFGS, on its entries that are not zero, for so many steps at the most."""
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    places = np.nonzero(start)
    problem = ColumnsOnSimplex(places, start.shape, error_behind)
    first = start[places]
    minimize: Any = optimize.minimize
    found = minimize(
        problem.log_error,
        np.sign(first) * np.sqrt(np.abs(first)),
        jac=True,
        method="L-BFGS-B",
        callback=lambda _: advance(1),
        options={"maxiter": n_steps, "maxfun": 2 * n_steps, "ftol": _FLAT, "gtol": 0.0, "maxcor": _MEMORY},
    )
    return Descent(problem.strategy(found.x)[2], float(np.exp(found.fun)))


def without_small_entries(c: Array) -> Array:
    """Return a strategy with its small entries zero, and columns of ℓ₁ norm one again."""
    kept = np.where(np.abs(c) > _NEGLIGIBLE, c, 0.0)
    return np.asarray(kept / np.abs(kept).sum(axis=0))
