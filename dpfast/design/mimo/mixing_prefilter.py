"""Prefilters that mix inputs behind which the noise of a product K = H G is least, K at the nodes of a circle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint
from dpfast.filters.matrix_spectral_factor import matrix_minimum_phase

_ROUNDING = 1e-6  # of the largest singular value: what is smaller is taken as that


class MixingPrefilter(NamedTuple):
    """A prefilter with G*G = K*Y⁻¹K, and its receiver with HH* = Y, Y = (KΦK*)^½.

    Attributes
    ----------
    problem : SampledChannels
    mixture : array, (m, m)
        Φ, of what a person may change.
    causal : bool
        Whether K is.
    """

    problem: SampledChannels
    mixture: Array
    causal: bool = True

    def squared_norm(self, k: Complex) -> float:
        """Return the squared sensitivity of G times the power of the noise behind H."""
        basis, sizes = self._split(k, _ROUNDING)
        noise = float(self.problem.mean(sizes.sum(axis=1)))
        return self.problem.squared_sensitivity(self._gram(k, basis, sizes)) * noise

    def prefilter(self, k: Complex, least: float) -> Complex:
        """Return a causal G (nodes, q, m), raised by a little.

        With fewer outputs, and a causal K, it is H⁻¹K in as many channels, H the minimum-phase factor of Y; else the
        minimum-phase factor of G*G, in as many as there are inputs.
        """
        _, p, m = k.shape
        if self.causal and p < m:
            basis, sizes = self._split(k, _ROUNDING)
            sizes = sizes + least * float(self.problem.mean(sizes.sum(axis=1)))
            factor = matrix_minimum_phase((basis * sizes[:, None]) @ adjoint(basis)).factor
            return np.asarray(np.linalg.solve(factor, k))
        gram = self._gram(k, *self._split(k, _ROUNDING))
        squares = self.problem.changes**2
        spread: Array = self.problem.mean(gram).real
        raised = gram + least * float(squares @ np.diagonal(spread)) * np.diag(1 / squares)
        return matrix_minimum_phase(raised, side="right").factor

    def _split(self, k: Complex, least: float) -> tuple[Complex, Array]:
        """Return eigenvectors and eigenvalues of Y, which are not smaller than a share of the largest."""
        squares, basis = np.linalg.eigh(k @ self.mixture @ adjoint(k))
        sizes = np.sqrt(np.maximum(squares, 0))
        return basis, np.maximum(sizes, least * sizes.max())

    @staticmethod
    def _gram(k: Complex, basis: Complex, sizes: Array) -> Complex:
        rows = adjoint(basis) @ k
        return np.asarray(adjoint(rows) @ (rows / sizes[:, :, None]))
