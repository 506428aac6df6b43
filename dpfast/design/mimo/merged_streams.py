r"""Streams that are multiples of one another are designed as one, as no receiver can tell them apart.

Of inputs c_j u only Σ K_j c_j = K matters for the distortion, and no other way to share it costs less noise than the
columns K_j = α_j K, Σ α_j c_j = 1, with the least Σ d_j²α_j², or the least Σ d_j|α_j| where one person may be at all
inputs: the means of gains have Σ |c_j| g_j ≥ g, that of K. As inputs of their own they would make P singular in a
direction of which a design sees rounding alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels

_ROUNDING = 16 * float(np.finfo(float).eps)  # of an entry of P, as a few operations leave it


class MergedStreams(NamedTuple):
    """The streams that inputs are multiples of.

    Attributes
    ----------
    first : array of int, (streams,)
        The first input of each.
    scales : array, (streams, m)
        How often each is in an input: c.
    """

    first: Array
    scales: Array

    @classmethod
    def of(cls, psd: Complex) -> MergedStreams:
        """Find them in P (nodes, m, m), in which their rows are multiples to the last digits."""
        left, first, scales = list(range(psd.shape[1])), [], []
        while left:
            at = left[0]
            times = [_multiple(psd, at, other) if other in left else 0.0 for other in range(psd.shape[1])]
            left = [x for x in left if times[x] == 0]
            first.append(at)
            scales.append(times)
        return cls(np.array(first), np.array(scales))

    def merge(self, problem: SampledChannels) -> SampledChannels:
        """Return the problem of as many inputs as there are streams."""
        if len(self.first) == len(problem.changes):
            return problem
        costs = np.abs(self._shares(problem)) * problem.changes
        return problem._replace(
            wanted=problem.wanted @ self.scales.T,
            psd=problem.psd[:, self.first][:, :, self.first],
            changes=np.linalg.norm(costs, axis=1) if problem.adjacency == "one_input" else costs.sum(axis=1),
        )

    def spread(self, product: Complex, problem: SampledChannels) -> Complex:
        """Return K of all inputs of a problem from that of the streams."""
        return np.asarray(product @ self._shares(problem))

    def _shares(self, problem: SampledChannels) -> Array:
        """Return how much of a stream's column is that of each input: α."""
        cheap = np.abs(self.scales) / problem.changes
        if problem.adjacency == "one_input":
            shares = np.sign(self.scales) * cheap / problem.changes
        else:
            shares = np.sign(self.scales) * (np.arange(cheap.shape[1]) == cheap.argmax(axis=1)[:, None])
        return np.asarray(shares / (shares * self.scales).sum(axis=1, keepdims=True))


def _multiple(psd: Complex, one: int, other: int) -> float:
    """Return by what number one row of P must be multiplied to be the other; 0 if there is none."""
    powers = psd[:, one, one].real
    node = int(powers.argmax())
    times = float(psd[node, other, one].real / powers[node]) if powers[node] > 0 else float(one == other)
    left = np.abs(psd[:, other] - times * psd[:, one])
    return times if (left <= _ROUNDING * np.abs(psd[:, other])).all() else 0.0
