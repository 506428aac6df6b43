"""Decoding by sparsity in a basis."""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.mechanisms.operators.lasso import lasso
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, check_shape

BASES = ("dct", "haar")


def check_basis(basis: str, horizon: int) -> str:
    """Return a basis that there is for this horizon; refuse all else."""
    validation.choice("basis", basis, BASES)
    if basis == "haar" and horizon & (horizon - 1):
        raise DesignError(f"the horizon must be a power of two for basis='haar', got {horizon}: use basis='dct'")
    return basis


def analysis(basis: str, x: Array) -> Array:
    """Return the coefficients (..., n) of series (..., n) in an orthonormal basis."""
    from scipy import fft  # late: only a decoder needs it

    return _haar(x) if basis == "haar" else np.asarray(fft.dct(x, norm="ortho"))


def synthesis(basis: str, coefficients: Array) -> Array:
    """Return the series (..., n) of coefficients (..., n) in an orthonormal basis."""
    from scipy import fft

    return _inverse_haar(coefficients) if basis == "haar" else np.asarray(fft.idct(coefficients, norm="ortho"))


def _haar(x: Array) -> Array:
    """Return Haar's coefficients: the mean first, then from the widest difference to the narrowest."""
    details: list[Array] = []
    while x.shape[-1] > 1:
        even, odd = x[..., ::2], x[..., 1::2]
        details.insert(0, (even - odd) * math.sqrt(0.5))
        x = (even + odd) * math.sqrt(0.5)
    return np.concatenate([x, *details], axis=-1)


def _inverse_haar(coefficients: Array) -> Array:
    x = coefficients[..., :1]
    while (size := x.shape[-1]) < coefficients.shape[-1]:
        detail = coefficients[..., size : 2 * size]
        pairs = np.stack([x + detail, x - detail], axis=-1) * math.sqrt(0.5)
        x = pairs.reshape(*pairs.shape[:-2], 2 * size)
    return x


class SparseDecoder(NamedTuple):
    r"""A decoder of series that are sparse in an orthonormal basis, from noisy projections of them: ŷ = Ψ x̂.

    x̂ = argmin ½‖ΦΨx - v‖₂² + λ‖x‖₁ (Tibshirani 1996; Chen, Donoho and Saunders 1998), see
    :func:`dpfast.mechanisms.operators.lasso.lasso`. Stream by stream: none depends, to the bit, on those beside it.

    Attributes
    ----------
    projection : array (measurements, steps)
        Φ.
    basis : {"dct", "haar"}
        Ψ: the cosines of the DCT-II, or Haar's wavelets.
    penalty : float
        λ, above 0.
    tolerance : float
        Duality gap, relative to the objective.
    max_iterations : int
        Where it is reached first, a ConvergenceWarning tells the gap.
    """

    projection: Array
    basis: str
    penalty: float
    tolerance: float = 1e-6
    max_iterations: int = 5000

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of steps and of measurements."""
        n_measurements, horizon = self.projection.shape
        return horizon, n_measurements

    def apply(self, x: Array) -> Array:
        """Estimate series (..., steps) from projections (..., measurements)."""
        horizon, n_measurements = self.shape
        dictionary = analysis(self.basis, self.projection)
        coefficients = np.empty((*x.shape[:-1], horizon))
        for found, v in zip(coefficients.reshape(-1, horizon), x.reshape(-1, n_measurements), strict=True):
            found[:] = lasso(dictionary, v, self.penalty, self.tolerance, self.max_iterations)
        return synthesis(self.basis, coefficients)

    def products(self) -> NoReturn:
        """Refuse, as a decoder that is not linear has no products."""
        self._refuse()

    def largest_l1(self) -> NoReturn:
        """Refuse, as a decoder that is not linear has no columns to measure."""
        self._refuse()

    def squared_rows(self) -> NoReturn:
        """Refuse, as a decoder that is not linear has no rows: its error is found by simulation."""
        self._refuse()

    def matrix(self) -> NoReturn:
        """Refuse, as a decoder that is not linear has no matrix."""
        self._refuse()

    def check(self) -> None:
        """Refuse a basis that there is not, and parameters out of their ranges."""
        check_shape("projection", self.projection, 2)
        check_basis(self.basis, self.shape[0])
        validation.number("penalty", self.penalty, above=0)
        validation.number("tolerance", self.tolerance, above=0, below=1)
        validation.integer("max_iterations", self.max_iterations, 1)

    def _refuse(self) -> NoReturn:
        raise NotLinearError("a sparse decoder is not linear and has no matrix: its error is found by simulation")
