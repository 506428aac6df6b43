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
from typing import NamedTuple

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

    def compare(self, level: float) -> Whiteness | None:
        """Find departures, each with a chance that is not stated too small; None where that takes fewer values."""
        found = find_departures(self.z, self.rise, self.share, self.excess)
        chances = found.chances
        if self.excess == NORMAL or (chances >= level / _TESTS).all():
            return found
        if self.z.size >= _MANY * self._visible_excess():
            return found.with_chances(np.minimum(1, _MARGIN * chances))
        if self.cost * draws_for(level) > _WORK:
            return None
        return found.with_chances(np.maximum(chances, self._simulate(chances < level / _TESTS, draws_for(level))))

    def _visible_excess(self) -> float:
        """Return by how much fourth moments of z exceed normal ones at most, where the signal is the clearest."""
        signal, noise = float(self.share.max()), 1 - float(self.share.min())
        return max(0.0, self.excess.signal) * signal**2 + max(0.0, self.excess.noise) * noise**2

    def _simulate(self, doubted: NDArray[np.bool_], draws: int) -> Array:
        """Return of each test the share of v, with this one, that are as little white; 1 where that is beyond doubt."""
        streams, time = self.z.shape
        observed = rank_departures(self.z[np.newaxis], self.rise, self.share, self.excess)[0]
        rng = np.random.default_rng(_SEED)
        batch = max(1, _BATCH // self.cost)
        as_little, done = np.ones(_TESTS), 0
        while done < draws and (as_little[doubted] == 1).any():  # no test comes below its threshold any more
            many = min(batch, draws - done)
            z = self.draw(many * streams, rng).reshape(many, streams, time)
            as_little += (rank_departures(z, self.rise, self.share, self.excess) <= observed).sum(axis=0)
            done += many
        return as_little / (done + 1)


def draws_for(level: float) -> int:
    """Return how many v are drawn for a test of a level: a chance of one among them and v is below a third of it."""
    return math.floor(_TESTS / level)


def fewer_steps(steps: int, cost: int, level: float) -> int:
    """Return how many of the steps can be compared, where those of all cost so many values."""
    return min(steps - 1, steps * (_WORK // draws_for(level)) // cost)
