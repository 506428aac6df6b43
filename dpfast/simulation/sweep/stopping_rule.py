"""A rule for the blocks of each case: until its interval is narrow, its comparison decided, or the budget spent.

A rule sees stages. At each it looks at the blocks that count so far, and says how many each case should have; the same
numbers again: finished. It is a function of the data of exactly those blocks, and keeps nothing: a sweep that goes on
from a store is replayed from one block on, and comes to the same end.

*Width.* Intervals are those of :mod:`dpfast.simulation.intervals` over batch means: Student's t, wider where they are
skewed. They are looked at repeatedly, and a spread that is small by chance ends a case early, so that they cover a
little less often than they say. Measured with normal batch means at the worst length, where 1 to 2 blocks are needed:
94.3 % where 95 % is asked, 98.8 % where 99 % is, 89.2 % where 90 % is (± 0.2); from 5 blocks on 94.7 % or more. With
gamma batch means of relative spread 0.3 it is 94.6 %, with exponential ones 94.2 %.

*Rare errors.* A receiver that decides between levels errs in events. A batch has an error event where its mean squared
error is more than one wrong decision makes. While fewer than 16 batches have one, their spread does not tell what has
not been seen: the interval is a bound, the case does not stop by its width, and goes on to the budget if need be. From
16 on the interval is that of the spread. Measured with decision feedback that errs in 6 % of the batches, over 5,000
sweeps each of batches drawn from those of 1,000 blocks: intervals of 95 % cover in 96 to 98 % of the cases.

*Decisions.* Two cases are compared by the differences of their batch means over the first 1, 2, 4, … blocks, up to the
budget: a fixed grid of looks, of which a comparison uses the last that both cases have reached. Each test, two-sided,
is at level (1 − confidence) / (looks × comparisons of the best with the others). A wrong winner needs a test against a
truly best case to be wrong, of which there are no more than those: by the union bound the probability of a wrong winner
in a cell is at most 1 − confidence, whichever looks the data ask for, as far as the intervals of differences hold.
Measured at 95 %, budget 16 blocks, two mechanisms that are equally good (the worst case): 3.4 % with normal batch
means, 3.2 % where one has gamma ones of relative spread 0.3, 4.0 % where one has exponential ones. Where errors of one
of two cases are rare, they are told apart only if the bound of the one is below the interval of the other, each at half
the level; and that they are equal to the bit is no tie, as it may be a matter of what has not been seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.simulation.intervals import (
    ENOUGH,
    ErrorSizes,
    count_events,
    difference_interval,
    is_rare,
    mean_interval,
    mse_interval,
)

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Means = Callable[[int], Array]
_MARGIN = 1.05  # more blocks than the width predicts: one stage is mostly enough then
_GROWTH = 4  # in one stage, as the spread of few batches is known badly
_VALUES = 2**20  # batch means taken at a time


class Outcome(NamedTuple):
    """The outcome of a cell: its best case, and how well that is known.

    Attributes
    ----------
    winner : int or None
        The case with the least error so far; None where no case has data.
    runner_up : int or None
        The case nearest to it; None where there is no other.
    state : {"decided", "tie", "undecided"}
        Whether the winner is separated from every other case, or equal to the bit to some and separated from the rest.
    """

    winner: int | None
    runner_up: int | None
    state: str


@dataclass(frozen=True, eq=False)
class Look:
    """A look at the blocks so far: how many more each case should have, and what they decide.

    Attributes
    ----------
    wanted : array of int, (n_cases,)
        The blocks that each case should have; those that it has, where it is finished.
    expected : array of int, (n_cases,)
        The blocks that each case will have in the end, as far as can be seen.
    widths : array, (n_cases,)
        The relative widths of the intervals of the RMSE; NaN without data, infinite where no error was seen.
    reasons : tuple of str or None
        For each case what was reached, of all that was asked: "decided", or "width" where no decision was asked for;
        "budget" where something is missing and the budget is spent; None while it is to go on, or without data.
    outcomes : tuple of Outcome
        For each cell.
    """

    wanted: Integers
    expected: Integers
    widths: Array
    reasons: tuple[str | None, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class StoppingRule:
    r"""A rule that says when a case has been simulated long enough.

    Parameters
    ----------
    width : float or None
        Above 0: until (high − low) / RMSE of the confidence interval of the RMSE is at most that. None: not asked.
    decide : tuple of cells or None
        Cells, each a tuple of cases of one group: until the best of each is separated from the others by paired
        differences, or equal to the bit. None: not asked. Neither asked: every case takes its budget.
    budget_blocks : int
        At least 1: blocks of a case at most.
    confidence : float
        Strictly between 0 and 1.
    sizes : mapping
        For each case whose receiver decides between levels the sizes of errors that this makes in a batch mean.

    Examples
    --------
    Two cases, whose batch means have a standard deviation of 2 %, until the RMSE is known within ± 0.25 %:

    >>> draws = np.random.default_rng(1).normal(1, 0.02, (2, 64 * 16))
    >>> rule, n, more = StoppingRule(0.005, None, 64, 0.95), None, np.array([1, 1])
    >>> while not np.array_equal(n, more):
    ...     n = more
    ...     more = rule.next_blocks(lambda case: draws[case, : 16 * n[case]], n)
    >>> rule.look(lambda case: draws[case, : 16 * n[case]], n).reasons
    ('width', 'width')
    """

    width: float | None
    decide: tuple[tuple[int, ...], ...] | None
    budget_blocks: int
    confidence: float
    sizes: Mapping[int, ErrorSizes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.width is not None:
            validation.number("width", self.width, above=0)
        validation.integer("budget_blocks", self.budget_blocks, 1)
        validation.number("confidence", self.confidence, above=0, below=1)
        if self.decide is not None and not all(self.decide):
            raise validation.fail("decide", "None or cells of at least one case", self.decide)

    @property
    def looks(self) -> Integers:
        """The numbers of blocks over which comparisons are made: 1, 2, 4, …, and the budget."""
        powers = 2 ** np.arange(self.budget_blocks.bit_length(), dtype=np.int64)
        return np.union1d(powers, [self.budget_blocks])

    def next_blocks(self, means: Means, n: ArrayLike) -> Integers:
        """Return the blocks that each case should have, `n` again when all are finished. See :meth:`look`."""
        return self.look(means, n).wanted

    def look(self, means: Means, n: ArrayLike) -> Look:
        """Look at the first `n` blocks of the cases.

        Parameters
        ----------
        means : callable
            From a case to the batch means of exactly its first n[case] blocks, (n[case] · n_batches,).
        n : array of int, (n_cases,)
            Blocks that count; 1 at the start, 0 for a case that has no data and gets none.
        """
        data = _Data(means, np.array(n, dtype=np.int64))
        widths = self._widths(data)
        outcomes: tuple[Outcome, ...] = ()
        wishes = [_Wish(np.zeros(len(data.n), dtype=bool), data.n, data.n)]
        if self.width is not None:
            wishes.append(_wish_for_width(data.n, np.maximum(widths / self.width, self._scarcity(data))))
        if self.decide is not None:
            contests = _find_contests(self, data)
            wishes.append(contests.wish(data.n, self.looks))
            outcomes = contests.outcomes(len(self.decide))
        if len(wishes) == 1:
            everything = np.where(data.n > 0, self.budget_blocks, 0)
            wishes.append(_Wish(data.n > 0, everything, everything))
        missing, wanted, expected = (np.max(x, axis=0) for x in zip(*wishes, strict=True))
        wanted = np.maximum(data.n, np.minimum(wanted, self.budget_blocks)).astype(np.int64)
        expected = np.maximum(wanted, np.minimum(expected, self.budget_blocks)).astype(np.int64)
        return Look(wanted, expected, widths, self._reasons(data.n, missing), outcomes)

    def _widths(self, data: _Data) -> Array:
        """Compute (high − low) / RMSE of the intervals of the RMSE."""
        widths = np.full(len(data.n), np.nan)
        for members, values in data.groups(np.flatnonzero(data.n > 0)):
            mse, low, high = mean_interval(values, 1 - self.confidence)
            for i in self._rare_places(members, values):
                low[i], high[i] = mse_interval(values[i], 1 - self.confidence, self.sizes[int(members[i])])
            length = np.sqrt(high) - np.sqrt(np.maximum(low, 0))
            unseen = np.where(length > 0, np.inf, 0)  # relative to no error at all
            widths[members] = np.where(mse > 0, length / np.sqrt(np.where(mse > 0, mse, 1)), unseen)
        return widths

    def _rare_places(self, cases: Integers, values: Array) -> list[int]:
        """List the places of the cases whose errors are rare, by their batch means."""
        return [i for i, x in enumerate(cases.tolist()) if is_rare(values[i], self.sizes.get(x))]

    def _scarcity(self, data: _Data) -> Array:
        """Count intervals as too wide, by a factor, where errors are rare: until enough batches have an error event."""
        excess = np.zeros(len(data.n))
        for case, sizes in self.sizes.items():
            if data.n[case] > 0:
                found = count_events(data.batch_means(case), sizes)
                excess[case] = 0 if found >= ENOUGH else np.sqrt(ENOUGH / found) if found else np.inf
        return excess

    def _reasons(self, n: Integers, missing: Flags) -> tuple[str | None, ...]:
        reached = "width" if self.decide is None else "decided"
        budget = self.budget_blocks
        return tuple(
            None if blocks == 0 or (more and blocks < budget) else "budget" if more else reached
            for blocks, more in zip(n.tolist(), missing.tolist(), strict=True)
        )


class _Wish(NamedTuple):
    """A wish for each case: whether something is missing, blocks wanted at the next stage, and expected in the end."""

    missing: Flags
    wanted: Integers | Array
    expected: Integers | Array


def _wish_for_width(n: Integers, excess: Array) -> _Wish:
    """Wish for the blocks after which intervals that are wider than asked, by a factor, are narrow enough."""
    wide = excess > 1
    predicted = np.where(wide, np.ceil(n * excess**2 * _MARGIN), n)  # one block more at least
    return _Wish(wide, np.minimum(predicted, _GROWTH * n), predicted)


class _Data:
    """The data of a look: batch means of the first n blocks of each case."""

    def __init__(self, means: Means, n: Integers) -> None:
        self._means, self.n = means, n
        live = np.flatnonzero(n > 0)
        self._batches = len(means(int(live[0]))) // int(n[live[0]]) if len(live) else 0

    def batch_means(self, case: int) -> Array:
        """Return the batch means of one case."""
        values, expected = self._means(case), int(self.n[case]) * self._batches
        if len(values) != expected:
            raise ValueError(f"means must give {expected} batch means of case {case}, got {len(values)}")
        return values

    def groups(self, cases: Integers) -> Iterator[tuple[Integers, Array]]:
        """Yield (members, their batch means) of cases with as many blocks, not too many at a time."""
        for members, _ in self._split(self.n[cases]):
            yield cases[members], np.stack([self.batch_means(case) for case in cases[members].tolist()])

    def differences(self, first: Integers, second: Integers, blocks: Integers) -> Iterator[tuple[Integers, Array]]:
        """Yield (members, differences of batch means over the first blocks) of pairs that use as many blocks."""
        for members, _ in self._split(blocks):
            pairs = (self.pair(*x) for x in zip(first[members], second[members], blocks[members], strict=True))
            yield members, np.stack([a - b for a, b in pairs])

    def pair(self, first: int, second: int, blocks: int) -> tuple[Array, Array]:
        """Return the batch means of two cases over their first blocks."""
        size = int(blocks) * self._batches
        return self.batch_means(int(first))[:size], self.batch_means(int(second))[:size]

    def _split(self, blocks: Integers) -> Iterator[tuple[Integers, int]]:
        for count in np.unique(blocks).tolist():
            members, size = np.flatnonzero(blocks == count), count * self._batches
            step = max(1, _VALUES // size)
            for start in range(0, len(members), step):
                yield members[start : start + step], size


class _Contests(NamedTuple):
    """Contests of the best case of each cell with each other one: an entry for each pair, in the order of the cells."""

    best: dict[int, int]  # by cell, where a case has data
    cell: Integers
    first: Integers  # the best
    second: Integers
    blocks: Integers  # looked at
    difference: Array  # MSE of the best minus that of the other
    upper: Array  # end of its interval
    tie: Flags

    @property
    def settled(self) -> Flags:
        """Tell whether the best is separated from the other, or equal to it."""
        return self.tie | (self.upper < 0)

    def wish(self, n: Integers, looks: Integers) -> _Wish:
        """Wish that both cases of a pair that is not settled go on to the next look."""
        pairs = ~self.settled
        blocks, difference = self.blocks[pairs], np.abs(self.difference[pairs])
        half = self.upper[pairs] - self.difference[pairs]
        later = looks[np.minimum(np.searchsorted(looks, blocks, side="right"), len(looks) - 1)]
        with np.errstate(divide="ignore"):
            predicted = np.ceil(blocks * (half / difference) ** 2)
        missing, wanted, expected = np.zeros(len(n), dtype=bool), n.copy(), n.astype(np.float64)
        for cases in (self.first[pairs], self.second[pairs]):
            missing[cases] = True
            np.maximum.at(wanted, cases, later)
            np.maximum.at(expected, cases, predicted)
        return _Wish(missing, wanted, expected)

    def outcomes(self, n_cells: int) -> tuple[Outcome, ...]:
        """Return the outcome of each cell: its nearest pair, and its worst state."""
        found = [Outcome(None, None, "undecided")] * n_cells
        for cell, winner in self.best.items():
            found[cell] = Outcome(winner, None, "decided")
        states = np.where(self.tie, "tie", np.where(self.settled, "decided", "undecided"))
        order = np.lexsort((self.difference, self.cell))  # the nearest of a cell comes last
        rank = ("decided", "tie", "undecided").index
        for cell, other, state in zip(*(x[order].tolist() for x in (self.cell, self.second, states)), strict=True):
            winner, _, before = found[cell]
            found[cell] = Outcome(winner, other, max(before, state, key=rank))
        return tuple(found)


def _find_contests(rule: StoppingRule, data: _Data) -> _Contests:
    """Find the best of each cell, one comparison after the other, and test it against the others."""
    table = _tabulate_cells(rule.decide or (), data.n)
    rows = np.arange(len(table))
    best = np.zeros_like(rows)  # its column
    for column in range(1, table.shape[1]):
        some = rows[table[:, column] >= 0]
        first, second = table[some, best[some]], table[some, column]
        for members, values in data.differences(first, second, _last_common_look(rule, data, first, second)):
            best[some[members[values.mean(axis=1) > 0]]] = column
    winners = {row: case for row, case in enumerate(table[rows, best].tolist()) if case >= 0}
    cell, columns = np.nonzero((table >= 0) & (np.arange(table.shape[1]) != best[:, None]))
    first, second = table[cell, best[cell]], table[cell, columns]
    level = (1 - rule.confidence) / (len(rule.looks) * np.bincount(cell, minlength=1)[cell])
    return _Contests(winners, cell, first, second, *_test_pairs(rule, data, first, second, level))


def _tabulate_cells(cells: tuple[tuple[int, ...], ...], n: Integers) -> Integers:
    """Tabulate the cases of each cell that have data, with -1 behind them."""
    live = n > 0
    members = [[case for case in cell if live[case]] for cell in cells]
    table = np.full((len(cells), max(map(len, members), default=0) + 1), -1, dtype=np.int64)
    for row, some in zip(table, members, strict=True):
        row[: len(some)] = some
    return table


def _last_common_look(rule: StoppingRule, data: _Data, first: Integers, second: Integers) -> Integers:
    """Find the last look that both cases of each pair have reached, in blocks."""
    common = np.minimum(data.n[first], data.n[second])
    return rule.looks[np.searchsorted(rule.looks, common, side="right") - 1]


def _test_pairs(
    rule: StoppingRule, data: _Data, first: Integers, second: Integers, level: Array
) -> tuple[Integers, Array, Array, Flags]:
    """Test pairs: blocks looked at, difference of the MSE, upper end of its interval, whether all is equal to the bit.

    Where errors of one of them are rare, the end is a bound, and equality a matter of what has not been seen.
    """
    blocks = _last_common_look(rule, data, first, second)
    difference, upper, tie = np.zeros(len(first)), np.zeros(len(first)), np.zeros(len(first), dtype=bool)
    for members, values in data.differences(first, second, blocks):
        difference[members], _, upper[members] = mean_interval(values, level[members])
        tie[members] = ~values.any(axis=1)
    for i, cases in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        sizes = rule.sizes.get(cases[0]), rule.sizes.get(cases[1])
        if any(sizes):
            a, b = data.pair(*cases, blocks[i])
            if is_rare(a, sizes[0]) or is_rare(b, sizes[1]):
                upper[i], tie[i] = difference_interval(a, b, float(level[i]), sizes)[1], False
    return blocks, difference, upper, tie
