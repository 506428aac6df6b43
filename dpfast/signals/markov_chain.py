"""The model MarkovChain: a stream that is a stationary Markov chain on levels."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from dpfast._kernels import signal_sources
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.privacy.provenance import Provenance, check_source
from dpfast.signals.markov_spectrum import shaping_filter
from dpfast.signals.model import ShapedModel, center_levels, normalize_rows, set_fields
from dpfast.signals.stationary_distribution import stationary_distribution


@dataclass(frozen=True, eq=False)
class MarkovChain(ShapedModel):
    r"""Assume that a stream is a stationary Markov chain over finitely many levels.

    Parameters
    ----------
    transition : array_like, (k, k)
        ``transition[i, j]`` is the probability of level j after level i. Rows sum to one; every level can be reached
        from every other, without a period.
    levels : array_like, (k,)
        The values of the states, not all equal.
    source : {"assumed", "public", "fitted-from-private"}
        Where the chain comes from. Numbers that were found from private data make the design depend on them.

    Examples
    --------
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> chain.variance
    0.25
    >>> chain.shaping.b.round(6).tolist(), chain.shaping.a.round(6).tolist()
    ([0.433013], [1.0, -0.5])
    """

    transition: Array
    states: Array
    mean: float
    variance: float
    shaping: Filter
    source: Provenance
    _stationary: Array

    def __init__(self, transition: ArrayLike, levels: ArrayLike, *, source: Provenance = "assumed") -> None:
        p = validation.array("transition", transition, ndim=2, empty=False)
        states = validation.array("levels", levels, ndim=1, empty=False)
        if p.shape != (len(states), len(states)):
            raise ValueError(
                f"transition must have a row and a column for each of the {len(states)} levels, got shape {p.shape}"
            )
        if (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > 1e-9:
            worst = int(np.argmax(np.abs(p.sum(axis=1) - 1)))
            raise ValueError(
                "transition must be stochastic (no negative entries, rows that sum to one), "
                f"got row {worst} with sum {p[worst].sum():.9g} and smallest entry {p.min():.9g}"
            )
        p = normalize_rows(p)
        _check_mixing(p)
        pi = stationary_distribution(p)
        _check_spread(states)
        mean, centred = center_levels(pi, states)
        variance = float(pi @ centred**2)
        set_fields(
            self,
            transition=validation.freeze(p),
            states=validation.freeze(states),
            mean=mean,
            variance=variance,
            source=check_source("source", source),
        )
        set_fields(self, shaping=shaping_filter(p, pi, centred), _stationary=validation.freeze(pi))

    @functools.cached_property
    def levels(self) -> Array:
        """The distinct values, sorted."""
        return validation.freeze(np.unique(self.states))

    @functools.cached_property
    def probabilities(self) -> Array:
        """The stationary probabilities of the distinct values."""
        index = np.searchsorted(self.levels, self.states)
        return validation.freeze(np.bincount(index, self._stationary))

    def compiled(self) -> signal_sources.SignalSource:
        """Return the source that the compiled simulation draws from."""
        return signal_sources.LevelSource(np.cumsum(self._stationary), np.cumsum(self.transition, axis=1), self.states)


def _check_spread(levels: Array) -> None:
    """Refuse levels that are equal, or too near to one another for their squares."""
    if levels.min() == levels.max():
        raise ValueError("levels must not all be equal: a constant stream needs no publication")
    if np.ptp(levels) < validation.SMALLEST:
        raise ValueError(f"levels must differ by more than {validation.SMALLEST:g}: scale them")


def _check_mixing(p: Array) -> None:
    """Refuse a chain that is reducible or periodic, or nearly so."""
    from scipy.sparse import csgraph

    k = len(p)
    n_parts, part = csgraph.connected_components(p > 0, connection="strong")
    if n_parts > 1:
        other = int(np.argmax(part != part[0]))
        raise ValueError(
            "transition must be irreducible, "
            f"got a chain in {n_parts} parts: there is no way from state 0 to state {other} and back"
        )
    moduli = np.sort(np.abs(linalg.eigvals(p)))
    if k > 1 and moduli[-2] > MAX_POLE_RADIUS:
        raise ValueError(
            f"transition must be aperiodic and mixing, got a second eigenvalue of modulus {moduli[-2]:.9g} "
            f"(the limit is {MAX_POLE_RADIUS:g}): its spectrum has a line"
        )
