r"""Chances of departures by v that are drawn from the model, for inputs or noise that are not normal.

The laws that ``whiteness_tests`` takes are those of normal values, widened by fourth moments: with few events of a
rare level they are far off in the tails. Where they find a departure, as many v as it takes are drawn from the model
and its noise, by a fixed seed: if the model holds, what was published is one among B + 1 that are alike, and less white
than all others by a chance of 1/(B + 1) at most, whatever the law. Of many values sums are nearly normal, and a margin
is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.releases.model_check.whiteness_tests import (
    NORMAL,
    Excess,
    Whiteness,
    find_departures,
    rank_departures,
)

_TESTS = 3  # mean, variance and spectrum, each at a third of the level
_MANY = 200  # values for each unit of excess kurtosis, about as many rare events: sums are nearly normal
_MARGIN = 10  # by which chances are larger than they seem there
_WORK = 2**25  # values that are drawn at most
_BATCH = 2**18  # values that are drawn at once
_SEED = 20_061

Found = TypeVar("Found", covariant=True)  # what a comparison finds
DrawV = Callable[[int, np.random.Generator], Array]


class WhiteValues(NamedTuple):
    """Hold what should be white, and how to draw the like.

    Attributes
    ----------
    z : array, (streams, time)
        As of :func:`find_departures`, with `rise`, `share` and `excess`.
    rise, share : array
    excess : Excess
    draw : callable
        Gives as many rows (rows, time) as one wants, of v of the model that are whitened like z.
    cost : int
        Values of v behind each z.
    """

    z: Array
    rise: Array
    share: Array
    excess: Excess
    draw: DrawV
    cost: int

    @property
    def n_tests(self) -> int:
        """Count the tests: of mean, variance and spectrum."""
        return _TESTS

    def compare(self, level: float) -> Whiteness | None:
        """Find departures, each with a chance that is not stated too small; None where that takes fewer values."""
        found = find_departures(self.z, self.rise, self.share, self.excess)
        draws = draws_for(level)

        def simulate(doubted: NDArray[np.bool_]) -> Array:
            streams, time = self.z.shape
            observed = rank_departures(self.z[np.newaxis], self.rise, self.share, self.excess)[0]

            def rank(z: Array) -> Array:
                return rank_departures(z.reshape(-1, streams, time), self.rise, self.share, self.excess)

            def draw(many: int, rng: np.random.Generator) -> Array:
                return self.draw(many * streams, rng)

            return count_as_little(rank, draw, observed, doubted, draws, self.cost)

        settled = settle_chances(found.chances, level, self.excess, self.share, self.z.size, self.cost, simulate)
        return None if settled is None else found.with_chances(settled)


def settle_chances(
    chances: Array,
    level: float,
    excess: Excess,
    share: Array,
    n_values: int,
    cost: int,
    simulate: Callable[[NDArray[np.bool_]], Array],
) -> Array | None:
    """Return chances of tests that are not stated too small; None where that takes fewer values.

    Parameters
    ----------
    chances : array, (tests,)
        By the laws of nearly normal values.
    level : float
        Of all of them together, to which each has an equal part.
    excess : Excess
    share : array
        The parts of the power of v that are signal.
    n_values : int
        Of which each test has a sum, at the least.
    cost : int
        Values of v that are drawn for each imitation of it.
    simulate : callable
        Gives the chances among draws, of those that are doubted.
    """
    doubted = chances < level / len(chances)
    if excess == NORMAL or not doubted.any():
        return chances
    if n_values >= _MANY * _visible_excess(excess, share):
        return np.minimum(1, _MARGIN * chances)
    if cost * draws_for(level, len(chances)) > _WORK:
        return None
    return np.maximum(chances, simulate(doubted))


def _visible_excess(excess: Excess, share: Array) -> float:
    """Return by how much fourth moments of z exceed normal ones at most, where the signal is the clearest."""
    signal, noise = float(share.max()), 1 - float(share.min())
    return max(0.0, excess.signal) * signal**2 + max(0.0, excess.noise) * noise**2


def count_as_little(
    rank: Callable[[Array], Array],
    draw: DrawV,
    observed: Array,
    doubted: NDArray[np.bool_],
    draws: int,
    cost: int,
) -> Array:
    """Return of each test the share of v, with the one observed, that are as little white; 1 where that is certain.

    Parameters
    ----------
    rank : callable
        Gives of what was drawn (v, ...) numbers (v, tests): the smaller, the less white.
    draw : callable
        Gives as many v of the model as one wants.
    observed : array, (tests,)
        The numbers of the v that was published.
    doubted : array of bool, (tests,)
        Drawing ends where none of these tests comes below its threshold any more.
    draws, cost : int
        How many are drawn, and of how many values each is.
    """
    rng = np.random.default_rng(_SEED)
    batch = max(1, _BATCH // cost)
    as_little, done = np.ones(len(observed)), 0
    while done < draws and (as_little[doubted] == 1).any():
        many = min(batch, draws - done)
        as_little += (rank(draw(many, rng)) <= observed).sum(axis=0)
        done += many
    return as_little / (done + 1)


def draws_for(level: float, tests: int = _TESTS) -> int:
    """Return how many v are drawn for a level of all tests: one among them and v has a chance below that of each."""
    return math.floor(tests / level)


class Comparable(Protocol[Found]):
    """Values that should be white, and that can be compared with such."""

    @property
    def cost(self) -> int:
        """Count the values of v behind them."""

    @property
    def n_tests(self) -> int:
        """Count the tests that share a level."""

    def compare(self, level: float) -> Found | None:
        """Find departures; None where their chances would take too long to simulate."""


def compare_first(steps: int, whiten: Callable[[int], Comparable[Found]], level: float) -> Found | None:
    """Compare the first steps, so many of them as can be compared; None without any.

    Parameters
    ----------
    steps : int
        That there are.
    whiten : callable
        Makes so many of the first steps white.
    level : float
        Of all tests together.
    """
    while steps > 0:
        white = whiten(steps)
        if (found := white.compare(level)) is not None:
            return found
        steps = fewer_steps(steps, white.cost, level, white.n_tests)
    return None


def fewer_steps(steps: int, cost: int, level: float, tests: int = _TESTS) -> int:
    """Return how many of the steps can be compared, where those of all cost so many values."""
    return min(steps - 1, steps * (_WORK // draws_for(level, tests)) // cost)
