"""The check of block sums of several streams, each released at steps of its own: each against its model, and pairs."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.releases.model_check.block_check import BlockValues, WhiteSums
from dpfast.releases.model_check.joint_verdict import NO_ERROR, TESTS, Names, say_tie
from dpfast.releases.model_check.pair_coherence import Ordinates, Tie, find_tie, rank_ties
from dpfast.releases.model_check.simulated_chances import (
    count_as_little,
    draws_for,
    fewer_steps,
    settle_chances,
)
from dpfast.releases.model_check.verdict import NOTHING_TO_TEST, Judgement
from dpfast.releases.model_check.whiteness_tests import Excess
from dpfast.signals.model import Model

Dependence = tuple[float, str]  # the chance of it for all pairs, and what it is in words


class SummedChannels(NamedTuple):
    """Hold what was published as sums of blocks of several streams, as far as a check needs it.

    Each stream has the tests of one stream, and each pair that of dependence, at parts of the level that add up to it
    (Bonferroni). For a pair the white values are summed over the least time in which both have whole blocks.

    Attributes
    ----------
    rows : tuple of BlockValues
        Of each stream that is published.
    names : Names
        Of these streams, for words.
    """

    rows: tuple[BlockValues, ...]
    names: Names

    @property
    def model(self) -> tuple[Model, ...]:
        """Return the models of the streams that are published."""
        return tuple(x.model for x in self.rows)

    @property
    def steps(self) -> int:
        """Count the steps of each stream."""
        return self.rows[0].steps

    def until(self, steps: int) -> SummedChannels:
        """Return the first steps alone."""
        return self._replace(rows=tuple(x.until(steps) for x in self.rows))

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the models, with this chance of a false alarm at most, over all streams."""
        n, alone = len(self.rows), TESTS[:-1]
        of_tests = TESTS if n > 1 else alone
        part = level / len(of_tests)
        judged = [x.judge(part * len(alone) / n) for x in self.rows]
        tested = [(name, x) for name, x in zip(self.names.channels, judged, strict=True) if x.agrees is not None]
        if not tested:
            return NOTHING_TO_TEST
        p_values = {test: min(1.0, n * min(x.p_values[test] for _, x in tested)) for test in alone}
        findings = [f"of {name}: {said}" for name, x in tested for said in x.findings]
        if n > 1:
            p_values[TESTS[-1]], said = self._judge_pairs(part)
            findings += [said] if p_values[TESTS[-1]] < part else []
        statistics = {f"{key}, {name}": value for name, x in tested for key, value in x.statistics.items()}
        return Judgement(not findings, tuple(findings), p_values, statistics)

    def estimate_error(self, *, contradicted: bool) -> str:
        """Say that there is none."""
        return NO_ERROR

    def _judge_pairs(self, level: float) -> Dependence:
        """Return the chance that independent streams are as coherent, not stated too small, and which are."""
        white = {k: there for k, x in enumerate(self.rows) if (there := x.whitened()) is not None}
        pairs = [_Pair.of(i, j, white) for i, j in itertools.combinations(white, 2)]
        ties = [tie for pair in pairs if (tie := pair.find({k: x.values.z for k, x in white.items()})) is not None]
        if not ties:
            return 1.0, ""
        found = _Drawn(white, tuple(x for x in pairs if x.channels in {tie.channels for tie in ties}))
        chance = min(1.0, len(ties) * min(tie.p_value for tie in ties))
        settled = found.settle(chance, level)
        if settled is None:  # the laws of all of it would take too long to simulate
            return self.until(fewer_steps(self.steps, found.cost, level, 1))._judge_pairs(level)
        lengths = {pair.channels: pair.length for pair in pairs}
        least = min(ties, key=lambda x: (x.p_value, -x.coherence))
        return settled, say_tie([least], self.names, independent=True, spacing=lengths[least.channels])


class _Pair(NamedTuple):
    """Two streams, and the stretches of time over which their white values are summed."""

    channels: tuple[int, int]
    white: tuple[WhiteSums, WhiteSums]
    first: int
    length: int
    n_cells: int

    @classmethod
    def of(cls, i: int, j: int, white: dict[int, WhiteSums]) -> _Pair:
        """Find the stretches in which both have as many blocks as in any other."""
        x, y = white[i], white[j]
        length = math.lcm(x.cycle, y.cycle)
        first, end = max(int(x.ends[0]), int(y.ends[0])), 1 + min(int(x.ends[-1]), int(y.ends[-1]))
        return cls((i, j), (x, y), first, length, max(0, (end - first) // length))

    def find(self, z: dict[int, Array]) -> Tie | None:
        """Return how far the two depend on one another; None where there is too little of them."""
        return find_tie(*self._ordinates(z), self.channels)

    def rank(self, z: dict[int, Array]) -> Array:
        """Return for each of many v (v, values), by channel, the chance of what the two have in common."""
        return rank_ties(*self._ordinates(z))

    @property
    def _half(self) -> int:
        """Count the ordinates between 0 and π."""
        return max(0, (self.n_cells - 1) // 2)

    def _ordinates(self, z: dict[int, Array]) -> tuple[Ordinates, Ordinates]:
        """Return the ordinates of sums of the white values of both, without what a mean adds."""
        angles, found = 2 * np.pi * np.arange(1, self._half + 1) / max(1, self.n_cells), []
        for k, row in zip(self.channels, self.white, strict=True):
            rise = row.values.rise
            rest = z[k] - np.outer(z[k] @ rise, rise / max(float(rise @ rise), np.finfo(float).tiny))
            cells = (row.ends - self.first) // self.length
            here = (cells >= 0) & (cells < self.n_cells)
            sums = rest[:, here].reshape(len(rest), max(1, self.n_cells), -1).sum(axis=2)
            found.append(Ordinates(np.fft.rfft(sums)[:, 1 : self._half + 1], angles, self.n_cells))
        return found[0], found[1]


class _Drawn(NamedTuple):
    """Draw the like of white values of streams that are independent, and see how coherent pairs of them are."""

    white: dict[int, WhiteSums]
    pairs: tuple[_Pair, ...]

    @property
    def cost(self) -> int:
        """Count the values of v behind the white values of all streams."""
        return sum(x.values.cost for x in self.white.values())

    def settle(self, chance: float, level: float) -> float | None:
        """Return a chance of dependence that is not stated too small; None where that takes fewer values."""
        rows = [x.values for x in self.white.values()]
        edges = np.cumsum([0, *(x.z.shape[1] for x in rows)])

        def rank(z: Array) -> Array:
            of_each = {k: z[:, edges[i] : edges[i + 1]] for i, k in enumerate(self.white)}
            return np.asarray(np.min([pair.rank(of_each) for pair in self.pairs], axis=0)[:, np.newaxis])

        def draw(many: int, rng: np.random.Generator) -> Array:
            return np.concatenate([x.draw(many, rng) for x in rows], axis=1)

        def simulate(doubted: NDArray[np.bool_]) -> Array:
            observed = rank(np.concatenate([x.z for x in rows], axis=1))[0]
            return count_as_little(rank, draw, observed, doubted, draws_for(level, 1), self.cost)

        excess = Excess(max(x.excess.signal for x in rows), max(x.excess.noise for x in rows))
        share, fewest = np.concatenate([x.share for x in rows]), min(pair.n_cells for pair in self.pairs)
        settled = settle_chances(np.array([chance]), level, excess, share, fewest, self.cost, simulate)
        return None if settled is None else float(settled[0])
