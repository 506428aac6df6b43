"""Numerics of the designs that transform the whole series: a Fourier basis, random projections, sparse decoding."""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn

import numpy as np

from dpfast import _validate
from dpfast._validate import Array
from dpfast.errors import ConvergenceWarning, DesignError, warn
from dpfast.operators import NotLinearError
from dpfast.toeplitz import Toeplitz

BASES = ("dct", "haar")
MOST_STEPS = 4096  # of dense matrices
_GROUP = 8  # streams that are decoded together: of a fixed number, as a product's rounding depends on it
_BETWEEN_CHECKS = 10  # iterations
_SAFE = 1 + 1e-9  # a step of the gradient may be too short, not too long


def check_steps(horizon: int) -> None:
    """Refuse a horizon for which dense matrices are too large."""
    if horizon > MOST_STEPS:
        raise DesignError(
            f"the horizon must be at most {MOST_STEPS} steps for a transform of the whole series, got {horizon}: "
            "its matrices are dense; split the series, or use square_root or binary_tree"
        )


def fourier_basis(horizon: int, n_vectors: int) -> Array:
    """The first real orthonormal Fourier vectors, (n_vectors, horizon): the constant, cos, sin, cos of twice, ..."""
    order = np.arange(n_vectors)
    turns = np.outer((order + 1) // 2, np.arange(horizon)) % horizon / horizon
    quarter = np.where(order % 2 == 0, 0.25, 0.0)[:, None]  # sin x = cos(x - π/2)
    rows: Array = np.cos(2 * math.pi * (turns - quarter)) * math.sqrt(2 / horizon)
    rows[0] = 1 / math.sqrt(horizon)
    if n_vectors == horizon and horizon % 2 == 0:
        rows[-1] = np.cos(2 * math.pi * turns[-1]) / math.sqrt(horizon)
    return rows


def random_signs(n_rows: int, horizon: int, seed: int) -> Array:
    """A matrix of ±1/√n_rows from a public seed; NumPy may give another one in a later version."""
    signs = np.random.default_rng(seed).integers(0, 2, (n_rows, horizon))
    return (2.0 * signs - 1) / math.sqrt(n_rows)


def rows_of_product(rows: Array, target: Toeplitz) -> Array:
    """`rows` times the matrix of the target: the transposed filter runs backwards."""
    return np.ascontiguousarray(target.apply(rows[:, ::-1])[:, ::-1])


def check_basis(basis: str, horizon: int) -> str:
    """A basis that there is for this horizon."""
    _validate.choice("basis", basis, BASES)
    if basis == "haar" and horizon & (horizon - 1):
        raise DesignError(f"the horizon must be a power of two for basis='haar', got {horizon}: use basis='dct'")
    return basis


def analysis(basis: str, x: Array) -> Array:
    """Coefficients (..., n) of series (..., n) in an orthonormal basis."""
    from scipy import fft  # late: only a decoder needs it

    return _haar(x) if basis == "haar" else np.asarray(fft.dct(x, norm="ortho"))


def synthesis(basis: str, coefficients: Array) -> Array:
    """Series of coefficients."""
    from scipy import fft

    return _inverse_haar(coefficients) if basis == "haar" else np.asarray(fft.idct(coefficients, norm="ortho"))


def _haar(x: Array) -> Array:
    """The mean first, then from the widest difference to the narrowest."""
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
    r"""Series that are sparse in an orthonormal basis, from noisy projections of them: ŷ = Ψ x̂.

    x̂ = argmin ½‖ΦΨx - v‖₂² + λ‖x‖₁ (Tibshirani 1996; Chen, Donoho and Saunders 1998), by FISTA (Beck and Teboulle 2009)
    with restarts (O'Donoghue and Candès 2015), until the duality gap is below `tolerance` times the objective. A
    stream's estimate does not depend, to the bit, on the streams beside it.

    Attributes
    ----------
    projection : array (measurements, steps)
        Φ.
    basis : {"dct", "haar"}
        Ψ: the cosines of the DCT-II, or Haar's wavelets.
    penalty : float
        λ, above 0.
    tolerance : float
        Relative duality gap.
    max_iterations : int
        Where it is reached first, a ConvergenceWarning tells the gap.
    """

    projection: Array
    basis: str
    penalty: float
    tolerance: float = 1e-6
    max_iterations: int = 20_000

    @property
    def shape(self) -> tuple[int, int]:
        """Steps, measurements."""
        n_measurements, horizon = self.projection.shape
        return horizon, n_measurements

    def apply(self, v: Array) -> Array:
        """Estimates (..., steps) from projections (..., measurements)."""
        streams = v.reshape(-1, v.shape[-1])
        padded = np.pad(streams, ((0, -len(streams) % _GROUP), (0, 0)))
        dictionary = analysis(self.basis, self.projection)
        step = 1 / (float(np.linalg.eigvalsh(dictionary @ dictionary.T)[-1]) * _SAFE)
        groups = [self._coefficients(dictionary, step, x) for x in padded.reshape(-1, _GROUP, v.shape[-1])]
        coefficients = np.concatenate(groups or [np.empty((0, self.shape[0]))])[: len(streams)]
        return synthesis(self.basis, coefficients).reshape(*v.shape[:-1], self.shape[0])

    def _coefficients(self, dictionary: Array, step: float, v: Array) -> Array:
        """x̂ of a group: a stream that has converged stays as it is."""
        x = ahead = np.zeros((_GROUP, dictionary.shape[1]))
        momentum = np.ones((_GROUP, 1))
        done = np.zeros((_GROUP, 1), dtype=bool)
        for iteration in range(1, self.max_iterations + 1):
            descended = ahead - step * ((ahead @ dictionary.T - v) @ dictionary)
            new = descended - np.clip(descended, -step * self.penalty, step * self.penalty)
            backwards = ((ahead - new) * (new - x)).sum(axis=1, keepdims=True) > 0
            momentum = np.where(backwards, 1.0, momentum)
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / following * (new - x)
            x, momentum = np.where(done, x, new), following
            if iteration % _BETWEEN_CHECKS == 0 or iteration == self.max_iterations:
                gap = self._relative_gap(dictionary, x, v)
                done |= gap <= self.tolerance
                if done.all():
                    return x
        warn(
            f"the sparse decoder stopped after {self.max_iterations} iterations at a relative duality gap of "
            f"{gap.max():.1g}, above its tolerance {self.tolerance:g}: raise its max_iterations or its tolerance",
            ConvergenceWarning,
        )
        return x

    def _relative_gap(self, dictionary: Array, x: Array, v: Array) -> Array:
        """Duality gap at the residual, scaled until it is feasible, relative to the objective: (streams, 1).

        With the residual r, c = (ΦΨ)ᵀ r and s ≤ 1 for which |s c| ≤ λ: ½(1 - s)²‖r‖² + Σ (λ|x| - s c x), two sums that
        are not negative, so that nothing cancels.
        """
        residual = v - x @ dictionary.T
        correlation = residual @ dictionary
        energy = (residual**2).sum(axis=1, keepdims=True)
        largest = np.abs(correlation).max(axis=1, keepdims=True)
        scale = self.penalty / np.maximum(largest, self.penalty)
        norm = self.penalty * np.abs(x).sum(axis=1, keepdims=True)
        gap = (1 - scale) ** 2 * energy / 2 + norm - scale * (correlation * x).sum(axis=1, keepdims=True)
        objective = energy / 2 + norm
        return np.asarray(gap / np.where(objective > 0, objective, 1.0))

    def products(self) -> NoReturn:
        """There are none."""
        self._refuse()

    def largest_l1(self) -> NoReturn:
        """There is none."""
        self._refuse()

    def squared_rows(self) -> NoReturn:
        """There are none: the error is found by simulation."""
        self._refuse()

    def matrix(self) -> NoReturn:
        """There is none."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotLinearError("a sparse decoder is not linear and has no matrix: its error is found by simulation")
