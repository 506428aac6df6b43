r"""Tests of means, powers, spectra and dependence on channels that are white together where a model holds.

Each of the four has a chance for all channels together: that of the means by the law of χ² and by each mean alone, the
others by each channel, or each pair of them, times how many there are (Bonferroni). So it finds what is wrong in one
channel, as well as a little in each.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpfast._support.validation import Array, Complex
from dpfast.releases.model_check.pair_coherence import Ordinates, Tie, find_tie, rank_ties
from dpfast.releases.model_check.simulated_chances import DrawV, count_as_little, draws_for, settle_chances
from dpfast.releases.model_check.whiteness_tests import Excess, Powers, find_powers, rank_powers

_INVISIBLE = 1e-12  # square of what a mean adds
_ALIKE = 1e-9  # of the largest: combinations of means that v does not tell apart
_TOLD = 1 - 1e-6  # of a mean, that is not mixed with others
_KEPT = 0.1  # of an ordinate, beside what the means take of it


class Means(NamedTuple):
    """Hold what the means add to the white values of all channels.

    Attributes
    ----------
    basis : array, (r, q time)
        Orthonormal: the values that means can add.
    errors : array, (m, r)
        Of each mean, for each value along the basis.
    told : array of bool, (m,)
        Which means v tells.
    """

    basis: Array
    errors: Array
    told: NDArray[np.bool_]

    @classmethod
    def of(cls, rises: Array) -> Means:
        """Make it of what a mean that is larger by one adds, (m, q, time)."""
        flat = rises.reshape(len(rises), -1)
        sizes, turned = np.linalg.eigh(flat @ flat.T)
        seen = sizes > max(_INVISIBLE, _ALIKE * float(sizes.max(initial=0.0)))
        root, axes = np.sqrt(sizes[seen]), turned[:, seen]
        return cls((axes / root).T @ flat, axes / root, (axes**2).sum(axis=1) > _TOLD)

    @property
    def deviations(self) -> Array:
        """Return the standard deviation of each mean, as v tells it."""
        return np.asarray(np.sqrt((self.errors**2).sum(axis=1)))

    def chance(self, along: Array) -> Array:
        """Return the chance of values (..., r) along the basis: of all together, and of the least likely mean."""
        rank = along.shape[-1]
        if not rank:
            return np.ones(along.shape[:-1])
        whole = special.chdtrc(rank, (along**2).sum(axis=-1))
        if rank == 1 or not self.told.any():
            return np.asarray(whole)
        each = np.abs(along @ self.errors[self.told].T) / self.deviations[self.told]
        least = 2 * special.ndtr(-each.max(axis=-1)) * self.told.sum()
        return np.asarray(np.minimum(1.0, 2 * np.minimum(whole, least)))


class JointWhiteness(NamedTuple):
    """Hold what the tests found.

    Attributes
    ----------
    mean_errors, mean_deviations : array, (m,)
        By how much the mean of each input is above that of the model, and how far that is known; NaN where v does not
        tell it.
    powers : tuple of Powers
        Of each channel.
    ties : tuple of Tie
        Of pairs of channels.
    chances : array, (4,)
        Of means, variances, spectra and dependence, each for all channels; of one channel the first three.
    """

    mean_errors: Array
    mean_deviations: Array
    powers: tuple[Powers, ...]
    ties: tuple[Tie, ...]
    chances: Array


class WhiteChannels(NamedTuple):
    """Hold what should be white, and how to draw the like.

    Attributes
    ----------
    z : array, (q, time)
        Whitened channels.
    rises : array, (m, q, time)
        What a mean of an input that is larger by one adds to each of them.
    shares : array, (q, k)
        The part of the power of each white channel that is signal, at k angles from 0 to π.
    excess : Excess
    draw : callable
        Gives as many (v, q, time) as one wants, of v of the model that are whitened like z.
    cost : int
        Values of v behind each z.
    """

    z: Array
    rises: Array
    shares: Array
    excess: Excess
    draw: DrawV
    cost: int

    @property
    def n_tests(self) -> int:
        """Count the tests: one channel alone depends on no other."""
        return 3 if len(self.z) == 1 else 4

    def compare(self, level: float) -> JointWhiteness | None:
        """Find departures, each with a chance that is not stated too small; None where that takes fewer values."""
        means = Means.of(self.rises)
        found = self._find(means)

        def simulate(doubted: NDArray[np.bool_]) -> Array:
            observed = self._rank(self.z[np.newaxis], means)[0]
            draws = draws_for(level, self.n_tests)
            return count_as_little(lambda z: self._rank(z, means), self.draw, observed, doubted, draws, self.cost)

        count, shares = self.z.shape[1], self.shares
        settled = settle_chances(found.chances, level, self.excess, shares, count, self.cost, simulate)
        return None if settled is None else found._replace(chances=settled)

    def _find(self, means: Means) -> JointWhiteness:
        """Test what was published for all departures, as if the channels were normal."""
        along = means.basis @ self.z.ravel()
        ordinates, seen, angles = self._ordinates(self.z[np.newaxis], means)
        size = 1, self.z.shape[1]
        powers = tuple(
            find_powers(np.abs(x[there]) ** 2, angles[there], share, self.excess, size)
            for x, there, share in zip(ordinates[0], seen, self.shares, strict=True)
        )
        ties = []
        for i, j in itertools.combinations(range(len(self.z)), 2):
            there = seen[i] & seen[j]
            x, y = (self._pick(ordinates, k, there, angles) for k in (i, j))
            tie = find_tie(x, y, (i, j))
            ties += [] if tie is None else [tie]
        chances = [
            float(means.chance(along)),
            min(1.0, len(powers) * min(x.p_variance for x in powers)),
            min(1.0, len(powers) * min(x.p_spectrum for x in powers)),
            min([1.0, *(len(ties) * x.p_value for x in ties)]),
        ]
        untold = np.where(means.told, 1.0, np.nan)
        given = untold * (means.errors @ along), untold * means.deviations
        return JointWhiteness(*given, powers, tuple(ties), np.array(chances[: self.n_tests]))

    def _rank(self, z: Array, means: Means) -> Array:
        """Return (v, tests) numbers for each of many v (v, q, time): the smaller, the less white, each by its own."""
        found = np.ones((len(z), 4))
        found[:, 0] = means.chance(z.reshape(len(z), -1) @ means.basis.T)
        ordinates, seen, angles = self._ordinates(z, means)
        size = 1, z.shape[2]
        for i, there in enumerate(seen):
            powers = np.abs(ordinates[:, i, there]) ** 2
            ranks = rank_powers(powers, angles[there], self.shares[i], self.excess, size)
            found[:, 1:3] = np.minimum(found[:, 1:3], ranks)
        for i, j in itertools.combinations(range(z.shape[1]), 2):
            there = seen[i] & seen[j]
            x, y = (self._pick(ordinates, k, there, angles) for k in (i, j))
            found[:, 3] = np.minimum(found[:, 3], rank_ties(x, y))
        return found[:, : self.n_tests]

    def _pick(self, ordinates: Complex, channel: int, there: NDArray[np.bool_], angles: Array) -> Ordinates:
        """Return some of the ordinates of a channel."""
        return Ordinates(ordinates[:, channel, there], angles[there], self.z.shape[1])

    def _ordinates(self, z: Array, means: Means) -> tuple[Complex, NDArray[np.bool_], Array]:
        """Return the ordinates (v, q, n) of z without what means add, which of them are seen, and their angles.

        Their squares have the expectation one. Those at 0 and π are left out.
        """
        count = z.shape[-1]
        half = (count - 1) // 2
        flat = z.reshape(len(z), -1)
        rest = (flat - (flat @ means.basis.T) @ means.basis).reshape(z.shape)
        taken = np.abs(np.fft.rfft(means.basis.reshape(-1, *z.shape[1:]))[..., 1 : half + 1]) ** 2
        kept = count - taken.sum(axis=0)
        ordinates = np.fft.rfft(rest)[..., 1 : half + 1] / np.sqrt(np.maximum(kept, _KEPT))
        return ordinates, kept > _KEPT * count, 2 * np.pi * np.arange(1, half + 1) / count
