r"""How much noise behind K = H G costs, G a prefilter for each input.

K is given at the nodes of a circle. The least noise power of all such H G = K is κ²γ(K)², γ² = Σ d_i²<|K_i|₂>², or
γ = Σ d_i<|K_i|₂> where one person may be at all inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.event_times import placed_products
from dpfast.filters.warped_circle import WarpedCircle
from dpfast.privacy.sensitivity_of_matrix import Adjacency, largest_change, placed_change

_LOUD = 1e4  # times the noise behind which K would publish all: what is left of such a power has fewer digits


class SampledChannels(NamedTuple):
    """A problem of several streams at the nodes of a circle.

    Attributes
    ----------
    circle : WarpedCircle
    wanted : array, (nodes, p, m)
        z^{-D} F.
    psd : array, (nodes, m, m)
        P.
    noise : float
        κ.
    changes : array, (m,)
        d.
    adjacency : {"one_input", "each_input_same_time", "each_input"}
    loud : bool
        Whether streams are so much louder than the noise that a search must look for what K has beside z^{-D} F.
    """

    circle: WarpedCircle
    wanted: Complex
    psd: Complex
    noise: float
    changes: Array
    adjacency: Adjacency
    loud: bool = False

    @property
    def known(self) -> Complex:
        """The part of K that a search begins with, (nodes, p, m): z^{-D} F of loud streams, and else nothing.

        Of loud streams K is near to it, and rounding of z^{-D} F - K would be loud, too.
        """
        return self.wanted if self.loud else np.zeros_like(self.wanted)

    @property
    def unknown(self) -> Complex:
        """The part of z^{-D} F that `known` leaves to the search, (nodes, p, m)."""
        return np.asarray(self.wanted - self.known)

    def mean(self, values: Any) -> Any:
        """Return the mean over the circle of values (nodes, ...)."""
        return np.tensordot(self.circle.grid.weights, values, axes=1)

    def mean_power(self, rows: Complex) -> float:
        """Return <tr X P X*>."""
        return float(self.mean(inner(rows @ self.psd, rows)))

    def causal_part(self, values: Complex) -> Complex:
        """Return the causal part of values (nodes, ...)."""
        return np.moveaxis(self.circle.causal_part(np.moveaxis(values, 0, -1)), -1, 0)

    def squared_sensitivity(self, gram: Complex) -> float:
        """Return the most that an event of a person changes what prefilters with G*G (nodes, m, m) put out."""
        if self.adjacency == "each_input":
            return placed_change(placed_products(self.circle, gram), self.changes)
        products: Array = self.mean(gram).real
        return largest_change(np.outer(self.changes, self.changes) * products, self.adjacency)


class DiagonalWeights:
    """A prefilter for each input at the nodes of a circle, and what noise costs behind it."""

    def __init__(self, problem: SampledChannels) -> None:
        self.problem = problem

    def squared_norm(self, k: Complex) -> float:
        """Return γ(K)², the square of the norm of K that the noise is proportional to."""
        means: Array = self.problem.mean(self._gains(k))
        return float((means**2).sum() if self.problem.adjacency == "one_input" else means.sum() ** 2)

    def error(self, k: Complex) -> float:
        """Return what K errs behind the best prefilters for it."""
        return self.problem.mean_power(self.problem.wanted - k) + self.problem.noise**2 * self.squared_norm(k)

    def prefilter(self, k: Complex, least: float) -> Complex:
        """Return the factors of x_i on the diagonal, raised by a share.

        Inputs that tell nothing have none: beside the others, or where those are loud, beside the error.
        """
        gains = self._gains(k)
        means: Array = self.problem.mean(gains)
        told: Array = self.problem.mean((np.abs(k) ** 2).sum(axis=1) * np.einsum("wii->wi", self.problem.psd).real)
        seen = np.flatnonzero(told > least**2 * min(float(told.max()), self.error(k)))
        alone = self.problem.adjacency == "one_input"
        raised = (gains + least * means)[:, seen] / (means[seen] if alone else 1.0)
        factors = [self.problem.circle.outer_factor(x) for x in (raised / self.problem.changes[seen] ** 2).T]
        return np.asarray(np.stack(factors, axis=1)[:, :, None] * np.eye(len(means))[seen], dtype=np.complex128)

    def _gains(self, k: Complex) -> Array:
        """Return d_i|K_i|₂, the size of each column of K at each frequency, weighted by the largest change."""
        return np.asarray(self.problem.changes * np.linalg.norm(k, axis=1))


def are_loud(problem: SampledChannels) -> bool:
    """Tell whether what is wanted has so much power that what is left of it loses digits behind this noise."""
    noise = problem.noise**2 * DiagonalWeights(problem).squared_norm(problem.wanted)
    return problem.mean_power(problem.wanted) > _LOUD * noise


def adjoint(x: Complex) -> Complex:
    """Return the conjugate transpose."""
    return np.swapaxes(x, -1, -2).conj()


def invert(x: Complex) -> Complex:
    """Return the inverse of matrices."""
    return np.asarray(np.linalg.inv(x), dtype=np.complex128)


def inner(a: Complex, b: Complex) -> Array:
    """Return Re tr a b*."""
    return np.asarray((a * b.conj()).real.sum(axis=(1, 2)))
