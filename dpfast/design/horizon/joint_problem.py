"""The error of a strategy over a horizon together with its best linear receiver, and its gradient."""

from __future__ import annotations

import functools
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.design.horizon.triangular_blocks import TriangularBlocks, inverse_of_root
from dpfast.mechanisms.least_squares import Innovations, innovations

_ROUNDING = 2.0**-52  # of the error without any estimate: less of it cannot be told


def single(x: Array) -> Array:
    """Round to single precision; annotations do not tell the two apart."""
    return cast(Array, x.astype(np.float32))


class BestReceiver(NamedTuple):
    """The best receiver B behind a lower-triangular strategy C.

    Attributes
    ----------
    receiver : array, (n, n)
        B.
    through : array, (n, n)
        K = B C.
    residual : array, (n, n)
        (A - K) R, as far as the lag reaches.
    error : float
        The sum of the squared errors.
    """

    receiver: Array
    through: Array
    residual: Array
    error: float


class FactorizationProblem:
    """Errors of the best receivers behind strategies, which are given by the entries on and below the diagonal."""

    def __init__(self, a: Array, covariance: Array, noise_variance: float, kept: NDArray[np.bool_]) -> None:
        self.a, self.covariance, self.noise_variance, self.kept = a, covariance, noise_variance, kept
        self.cross = a @ covariance
        self.total = float((self.cross * a).sum())
        self.places = np.tri(len(a), dtype=bool)

    @functools.cached_property
    def blocks(self) -> TriangularBlocks:
        """Return what is kept, by blocks, where there is a row of the strategy for each step."""
        return TriangularBlocks(self.kept)

    def in_own_units(self) -> FactorizationProblem:
        """Return the problem of the same strategies whose A and R are about one; powers of two round nothing."""
        gain, power = (2.0 ** -float(np.frexp(np.abs(x).max())[1]) for x in (self.a, self.covariance))
        return FactorizationProblem(gain * self.a, power * self.covariance, power * self.noise_variance, self.kept)

    def in_single_precision(self) -> FactorizationProblem:
        """Return the same problem with half of the digits, which takes half of the time."""
        return FactorizationProblem(single(self.a), single(self.covariance), self.noise_variance, self.kept)

    def strategy(self, entries: Array) -> tuple[Array, Array]:
        """Return C with columns of norm one, and the norms by which they were divided."""
        c = np.zeros_like(self.a)
        c[self.places] = entries
        norms = np.sqrt(np.einsum("ij,ij->j", c, c))
        return c / norms, norms

    def innovations(self, c: Array) -> Innovations:
        """Return the innovations of what C and the noise let through."""
        return innovations(c, self.covariance, self.noise_variance, self.a)

    def error(self, entries: Array) -> tuple[float, Array]:
        """Return the sum of the squared errors of columns of norm one, and its gradient."""
        c, norms = self.strategy(entries)
        error, slope = self.error_behind_lower(c)
        slope -= c * np.einsum("ij,ij->j", c, slope)
        return error, (slope / norms)[self.places]

    def error_behind(self, c: Array) -> tuple[float, Array]:
        """Return the sum of the squared errors behind a strategy, of any rows if all are kept, and its gradient.

        With hardly any noise what is left of the difference is rounding, which may not look like an error of 0 or less.
        With P the lower half of (M ∘ W)ᵀ W, half of its diagonal: -2 L⁻ᵀ [(M ∘ W)ᵀ A R - (P + Pᵀ) L⁻¹ C R].
        """
        found = self.innovations(c)
        used = found.gains * self.kept
        lower = np.tril(used.T @ found.gains, -1)
        inner = lower + lower.T + np.diag(np.einsum("ij,ij->j", used, found.gains))
        slope = used.T @ self.cross - inner @ found.signal
        slope = -2 * linalg.solve_triangular(found.root, slope, lower=True, trans=1, check_finite=False)
        return max(self.total - float((used**2).sum()), _ROUNDING * self.total), slope

    def error_behind_lower(self, c: Array) -> tuple[float, Array]:
        """Return the same behind a lower-triangular strategy, the gradient on and below the diagonal only.

        B has no slope where it is best, so that the gradient is that of the error at B, -2 Bᵀ (A - B C) R.
        """
        best = self.best_receiver(c)
        slope = np.zeros_like(c)
        for (i, j), first in zip(self.blocks.strips, self.blocks.first, strict=True):
            np.matmul(-2 * best.receiver[first:, i:j].T, best.residual[first:, :j], out=slope[i:j, :j])
        return best.error, slope

    def best_receiver(self, c: Array) -> BestReceiver:
        """Return the best receiver behind a lower-triangular strategy: B = (M ∘ A R Cᵀ L⁻ᵀ) L⁻¹.

        Products leave out what is zero or not asked for: two thirds of the multiplications. The terms of the error,
        ‖(A - K) R^{1/2}‖² + σ²‖B‖², are positive: it has the digits of its precision.
        """
        blocks, noise = self.blocks, self.noise_variance
        inverse = inverse_of_root(self._power(c))
        whitened, used, residual = blocks.of_lower(inverse, c), np.zeros_like(c), np.zeros_like(c)
        for (i, j), first in zip(blocks.strips, blocks.first, strict=True):
            np.matmul(self.cross[first:, :j], whitened[i:j, :j].T, out=used[first:, i:j])
        used *= self.kept
        receiver, through = blocks.of_kept(used, inverse), blocks.of_kept(used, whitened)
        for (i, j), end in zip(blocks.strips, blocks.reach, strict=True):
            residual[i:j, :end] = self.cross[i:j, :end] - through[i:j, :end] @ self.covariance[:end, :end]
        signal = np.einsum("ij,ij->", residual, self.a - through, dtype=np.float64)
        error = float(signal + noise * np.einsum("ij,ij->", receiver, receiver, dtype=np.float64))
        return BestReceiver(receiver, through, residual, max(error, _ROUNDING * self.total))

    def _power(self, c: Array) -> Array:
        """Return C R Cᵀ + σ² I on and below its diagonal."""
        seen, power = np.zeros_like(c), np.zeros_like(c)
        for i, j in self.blocks.strips:
            np.matmul(c[i:j, :j], self.covariance[:j, :j], out=seen[i:j, :j])
        for i, j in self.blocks.strips:
            np.matmul(seen[i:, :j], c[i:j, :j].T, out=power[i:, i:j])
        power.flat[:: len(c) + 1] += self.noise_variance
        return power
