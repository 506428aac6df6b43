"""Prefilters that mix inputs behind which the noise of a product K = H G is least, K at the nodes of a circle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint
from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture
from dpfast.design.mimo.event_times import placed_products, worst_events
from dpfast.filters.matrix_spectral_factor import matrix_minimum_phase

_NEARLY = 0.5  # of what an event must change the more: those that nearly do come with it
_ROUNDING = 1e-7  # of the largest singular value: what is smaller is taken as that


class MixingPrefilter(NamedTuple):
    """A prefilter with G*G = K*Y⁻¹K, and its receiver with HH* = Y, Y = (KΦK* + θ²)^½.

    Attributes
    ----------
    problem : SampledChannels
    mixture : EventMixture
        Of what a person may change; it has the spectrum Φ.
    causal : bool
        Whether K is.
    smoothed : float
        θ: where K tells little, a little more noise may cost less than what events of small shares would change.
    """

    problem: SampledChannels
    mixture: EventMixture
    causal: bool = True
    smoothed: float = 0.0

    def squared_norm(self, k: Complex) -> float:
        """Return the squared sensitivity of G times the power of the noise behind H."""
        basis, sizes = self._split(k, _ROUNDING)
        noise = float(self.problem.mean(sizes.sum(axis=1)))
        return self.problem.squared_sensitivity(self._gram(k, basis, sizes)) * noise

    def error(self, k: Complex) -> float:
        """Return what K errs behind it: what it tells too little or too much of the streams, and the noise."""
        return self.problem.mean_power(self.problem.wanted - k) + self.problem.noise**2 * self.squared_norm(k)

    def known_norm(self, k: Complex, events: Complex) -> float:
        """Return the same where persons may do no more than some events (n_atoms, nodes, m)."""
        basis, sizes = self._split(k, _ROUNDING)
        rows = (adjoint(basis) @ k / np.sqrt(sizes)[:, :, None]) @ np.moveaxis(events, 0, -1)
        changes: Array = self.problem.mean((np.abs(rows) ** 2).sum(axis=1))
        return float(changes.max() * self.problem.mean(sizes.sum(axis=1)))

    def missed_events(self, k: Complex, slack: float) -> EventAtoms:
        """Return events at times of their own that change more than the mixture does, by more than a share of it.

        If there are any, those that nearly do are among them: they would be the next ones.
        """
        if self.problem.adjacency != "each_input":
            return EventAtoms(np.zeros((0, k.shape[2])), np.zeros((0, k.shape[2]), np.int64))
        basis, sizes = self._split(k, _ROUNDING)
        products = placed_products(self.problem.circle, self._gram(k, basis, sizes))
        mixed = float(self.problem.mean(sizes.sum(axis=1)))  # <tr ΦG*G> = <tr Y>
        least, close = (1 + slack) * mixed, (1 + _NEARLY * slack) * mixed
        return worst_events(products, self.problem.changes, least, close)

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
        mixture = self.mixture.at(self.problem.circle.grid.omega)
        squares, basis = np.linalg.eigh(k @ mixture @ adjoint(k))
        sizes = np.hypot(np.sqrt(np.maximum(squares, 0)), self.smoothed)
        return basis, np.maximum(sizes, least * sizes.max())

    @staticmethod
    def _gram(k: Complex, basis: Complex, sizes: Array) -> Complex:
        rows = adjoint(basis) @ k
        return np.asarray(adjoint(rows) @ (rows / sizes[:, :, None]))
