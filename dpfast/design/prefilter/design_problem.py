"""The problem that a linear design solves, and the frequencies at which its spectra change fast."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.canonical_factor import canonical_factor, move_zeros_off_circle
from dpfast.design.prefilter.several_events import ONE_EVENT, Contributions
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.quadrature import ON_CIRCLE, QuadratureGrid, graded_grid
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

_KINK = 1e-3  # distance of a zero of the target from the circle below which it is taken for a kink on it


@dataclass(frozen=True)
class Problem:
    """A target, a model (None if the design needs none), the noise, and how a person's events count in it.

    The variance of the noise is c²<ψ²|G|²>; for one event c = κ d, the noise multiplier times the largest change. Where
    several outputs are wanted of an input, `entries` are the filters to them, and the target is as loud as all of them.
    """

    target: Filter
    model: Model | None
    cost: float  # c²
    contributions: Contributions = ONE_EVENT
    entries: tuple[Filter, ...] = ()

    def response(self, omega: Array) -> Complex:
        """Return the frequency responses of what is wanted, a row for each output."""
        return np.array([entry.response(omega) for entry in self.entries or (self.target,)])

    def gain(self, omega: Array) -> Array:
        """Return |F|, the gain of the target."""
        return np.asarray(np.abs(self.target.response(omega)))

    def psd(self, omega: Array) -> Array:
        """Return P_u, the spectrum of the input."""
        assert self.model is not None
        return self.model.psd(omega)

    def weight(self, omega: Array) -> Array:
        """Return ψ, which is one if a person contributes one event."""
        return self.contributions.weight(omega)

    @functools.cached_property
    def log_mean_output(self) -> float:
        """The geometric mean of the output's spectrum, γ_u² γ_F² = exp <ln P_u|F|²>."""
        assert self.model is not None
        return canonical_factor(self.model.shaping)[0] * canonical_factor(self.target)[0]

    @property
    def degree(self) -> int:
        """The orders of target and spectrum together, or the longest lag in ψ if that is more."""
        longest = max(entry.order for entry in (self.target, *self.entries))
        taps = longest + (0 if self.model is None else self.model.shaping.order)
        return max(taps, self.contributions.longest)

    @functools.cached_property
    def poles(self) -> Complex:
        """The poles of the target and of the spectrum inside the circle."""
        shaping = Filter([1.0]) if self.model is None else self.model.shaping
        return np.concatenate([*(x.poles for x in self.entries or (self.target,)), shaping.poles])

    @property
    def slowest(self) -> float:
        """The largest modulus of a pole."""
        return float(np.abs(self.poles).max(initial=0.0))

    @functools.cached_property
    def _zeros(self) -> Complex:
        """The zeros of the spectrum inside the circle or on it, without those at zero."""
        zeros = _reflect_inside(Filter([1.0]).zeros if self.model is None else self.model.shaping.zeros)
        return np.asarray(zeros[zeros != 0])

    def spectrum_zeros(self, cutoffs: tuple[float, ...] = ()) -> Complex:
        """Return the zeros of the spectrum inside the circle, at least as far from it as from the nearest cutoff.

        Between the cutoffs beside a zero P_u is so small that nothing passes: there is no finer detail than they are.
        """
        distance = -np.log(np.abs(self._zeros))
        if cutoffs:
            nearest = np.abs(np.abs(np.angle(self._zeros))[:, None] - np.array(cutoffs)).min(axis=1)
            distance = np.maximum(distance, nearest)
        return np.asarray(np.exp(1j * np.angle(self._zeros) - distance))

    def resolved_roots(self, cutoffs: tuple[float, ...]) -> Complex:
        """Return the roots inside the circle that its steps must resolve: poles, and zeros of spectrum and target.

        Zeros of the target too near to the circle are left out, as they are kinks.
        """
        zeros = _reflect_inside(self.target.zeros)
        return np.concatenate([self.poles, self.spectrum_zeros(cutoffs), zeros[np.abs(zeros) < 1 - _KINK]])

    def finest_detail(self, cutoffs: tuple[float, ...] = ()) -> complex:
        """Return the pole, zero (not one on the circle) or cutoff inside the circle that is nearest to it.

        It is moved away if it is nearer than the pole of a filter may be.
        """
        roots = np.concatenate([self.poles, _reflect_inside(self.target.zeros), self.spectrum_zeros(cutoffs)])
        ends = [1 - x if x < np.pi / 2 else np.pi - x - 1 for x in cutoffs if min(x, np.pi - x) < 0.5]
        near = np.concatenate([[0.5], roots[np.abs(roots) < 1 - ON_CIRCLE], ends])
        finest = complex(near[np.argmax(np.abs(near))])
        return finest * min(1.0, MAX_POLE_RADIUS / abs(finest))

    def grid(self, roots: Any = (), degree: int = 0, breaks: tuple[float, ...] = ()) -> QuadratureGrid:
        """Return a grid that resolves the problem, further roots and so many taps; breaks are cutoffs."""
        every = np.concatenate([self.poles, self.spectrum_zeros(breaks), np.asarray(roots, dtype=np.complex128)])
        return graded_grid(every, kinks=self.target.zeros, breaks=breaks, degree=max(2 * degree, self.degree))

    def with_zeros_off_circle(self, distance: float) -> Problem:
        """Return the problem with no zero of the spectrum nearer to the circle than a distance."""
        assert self.model is not None
        return replace(self, model=move_zeros_off_circle(self.model, distance))


def noise_cost(privacy: Privacy, prefilter: Filter | None) -> float:
    """Return c², the variance of the noise per unit of ‖G‖₂²; without a G, for events too far apart to overlap."""
    if prefilter is None:
        return float((privacy.noise_multiplier * privacy.max_change) ** 2 * privacy.max_events)
    return (privacy.noise_std(prefilter) / prefilter.h2_norm()) ** 2


def _reflect_inside(roots: Complex) -> Complex:
    """Reflect the roots outside of the circle into it."""
    modulus = np.maximum(np.abs(roots), 1)
    return roots / modulus / modulus
