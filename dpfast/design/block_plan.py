"""Plan what block sums sum, and which of their noises are shared, and search for groups of blocks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, Self

from dpfast._support.validation import Array
from dpfast.design.block_signs import Signs
from dpfast.mechanisms.block_dynamics import ReleaseSchedule
from dpfast.mechanisms.group_levels import given_levels
from dpfast.privacy.integer_noise.shared import LARGEST_GROUP, SharedGeometric

_GROUPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # that are tried, until more gain nothing
_GAIN = 1e-4  # of an MSE: what a larger group has to gain
_LEVEL_GAIN = 1e-3  # and one more level of groups, which makes the noise costlier to compute
_MOVE_GAIN = 1e-5  # and another length, slack or group of a tree
_FLAT_GAIN = 1e-7  # of an MSE, by which a move among groups of one level has to gain
_FAR = 16  # times a first slack, beyond which a slack is large
_FAR_GAIN = 1e-2  # of an MSE: what a large slack has to gain by growing as much again, as tables grow with its square
_PATIENCE = 4  # moves of one size, one after the other
_MOST_LEVELS = 3
_STEP = 0.5  # of a length and of a slack, which the search begins with
_TREE_STEP = 0.25  # and of those of trees, which begin near the best
_EVEN = 2  # steps of slacks of trees: the sum of sizes and the size of the sum are both even, or both odd
_LEAST_BRANCHES = 3  # that the search for trees begins with
_LARGEST_TRIED = 128  # blocks of a tree
LARGEST_TREE = 256
_LOW, _HIGH = 0.4, 0.65  # of the slack of groups: those of the lowest and the highest level of a tree, to begin with


class Plan(NamedTuple):
    """A plan of what is summed: blocks of a length for each level, or for each of several signed sums."""

    schedule: ReleaseSchedule
    signs: Array | None = None
    noise: SharedGeometric | None = None  # that the blocks of a group share, or of a tree of groups

    @property
    def slacks(self) -> tuple[int, ...]:
        """The slack of shared noise, how much of it may cancel, for each level of groups; zero where none is shared."""
        return (0,) if self.noise is None else self.noise.slacks

    @classmethod
    def sums(cls, *lengths: int) -> Self:
        """Plan plain sums of a level for each length."""
        return cls(ReleaseSchedule(lengths))

    @classmethod
    def of(cls, signs: Signs) -> Self:
        """Plan signed sums."""
        n, n_sums = signs.weights.shape
        return cls(ReleaseSchedule((n,) * n_sums, signs.offsets), signs.weights)


class Place(NamedTuple):
    """A length of blocks, the groups of each level, and how much of their noise may cancel."""

    length: int
    groups: tuple[int, ...] = ()
    slacks: tuple[int, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all phases, one after the other."""
        return (self.length, *self.groups, *self.slacks)

    def moved(self, axis: int, step: int) -> Place:
        """Return another one, by a step along one of its numbers."""
        several, n = list(self.numbers), len(self.groups)
        several[axis] += step
        return Place(several[0], tuple(several[1 : n + 1]), tuple(several[n + 1 :]))


class GroupSearch(NamedTuple):
    """A search for the blocks that share noise: how many, how much they may cancel, and how long they are.

    Attributes
    ----------
    epsilon : float
    steps : int
        The largest change in units, of all events of a person.
    groups, slacks : tuple of int or None
        Those that are given; None for the best.
    """

    epsilon: float
    steps: int
    groups: tuple[int, ...] | None
    slacks: tuple[int, ...] | None

    def find(self, mse: Callable[[Plan], float], length: int, longest: int | None) -> Plan:
        """Find the plan of least error; begin with blocks of a length, which stays where `longest` is None."""
        tried = dict[Place, float]()
        make = functools.lru_cache(maxsize=None)(functools.partial(SharedGeometric, self.epsilon, steps=self.steps))

        def plan(place: Place) -> Plan:
            noise = make(place.groups, place.slacks) if place.groups else None
            return Plan(ReleaseSchedule((place.length,), (), place.groups), None, noise)

        def attempt(place: Place) -> float:
            if place not in tried:
                tried[place] = mse(plan(place))
            return tried[place]

        if self.groups is None:
            return plan(self._find_tree(attempt, self._find_flat(attempt, length, longest), longest))
        place = Place(length, self.groups, self.slacks or self._first_slacks(self.groups))
        return plan(self._descend(attempt, place, longest, _STEP))

    def _find_flat(self, attempt: Callable[[Place], float], length: int, longest: int | None) -> Place:
        """Find groups of one level, larger and larger as long as that gains."""
        best = Place(length)
        for group in _GROUPS:
            slack = max(self.slacks or self._first_slacks((group,)), best.slacks)
            begin = Place(best.length, (group,), slack)
            if not self._is_near(begin, longest):
                break
            found = self._descend(attempt, begin, longest, _STEP)
            if attempt(found) > attempt(best) * (1 - _GAIN):
                break
            best = found
        return best

    def _find_tree(self, attempt: Callable[[Place], float], best: Place, longest: int | None) -> Place:
        """Find groups of groups, of more and more levels as long as that gains; none of those that share nothing."""
        while best.groups and self.slacks is None and len(best.groups) < _MOST_LEVELS:
            n = len(best.groups) + 1
            each = max(_LEAST_BRANCHES, round(math.prod(best.groups) ** (1 / n)))
            slacks = (_LOW * best.slacks[0], _HIGH * best.slacks[0]) if n == 2 else (*best.slacks, best.slacks[-1])
            begin = Place(best.length, (each,) * n, tuple(_even(x) for x in slacks))
            if not self._is_near(begin, longest):
                break
            found = self._descend(attempt, begin, longest, _TREE_STEP)
            if attempt(found) > attempt(best) * (1 - _LEVEL_GAIN):
                break
            best = found
        return best

    def _first_slacks(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        return (max(1, round(2 * self.steps / self.epsilon)),) * len(groups)

    def _descend(self, attempt: Callable[[Place], float], place: Place, longest: int | None, part: float) -> Place:
        """Change one number after the other, by smaller and smaller parts of themselves, as long as that gains."""
        n, least = len(place.groups), _MOVE_GAIN if len(place.groups) > 1 else _FLAT_GAIN
        axes = [0] if longest is not None else []
        axes += range(1, n + 1) if self.groups is None and n > 1 else []
        axes += range(n + 1, 2 * n + 1) if self.slacks is None else []
        while True:
            before = place
            for axis in axes:
                step = self._step(place, axis, part)
                for sign in (-1, 1):
                    moves = 0  # in a row: what gains for long goes on in larger and larger steps
                    far = sign * step
                    while self._is_near(moved := place.moved(axis, far), longest):
                        if attempt(moved) >= attempt(place) * (1 - max(least, self._far_gain(place, axis, far))):
                            break
                        place, moves = moved, moves + 1
                        far *= 2 if moves > _PATIENCE else 1
            if place == before:
                if all(self._step(place, axis, part) == self._step(place, axis, 0.0) for axis in axes):
                    return place
                part /= 2

    def _far_gain(self, place: Place, axis: int, step: int) -> float:
        """Return what a step has to gain where slack is large: it may gain a little for ever."""
        is_far = axis > len(place.groups) and step > 0 and place.numbers[axis] >= _FAR * self._first_slacks((1,))[0]
        return _FAR_GAIN * step / place.numbers[axis] if is_far else 0.0

    @staticmethod
    def _step(place: Place, axis: int, part: float) -> int:
        """Return so large a part of a number, and at least what makes a difference."""
        n = len(place.groups)
        if 0 < axis <= n:
            return 1
        step = part * place.numbers[axis]
        return _even(step) if axis > n > 1 else max(1, round(step))

    def _is_near(self, place: Place, longest: int | None) -> bool:
        least = 1 if self.slacks is None else 0  # without slack nothing is shared, which is a minimum of its own
        in_range = 1 <= place.length <= (longest or place.length) and min(place.slacks) >= least
        groups = place.groups
        if min(groups) < 2 or max(groups) > LARGEST_GROUP or math.prod(groups) > _LARGEST_TRIED:
            return False
        return in_range and self.is_possible(groups, place.slacks)

    def is_possible(self, groups: tuple[int, ...], slacks: tuple[int, ...]) -> bool:
        """Tell whether the tables of the noise of such groups are not too large."""
        return SharedGeometric.is_possible(self.epsilon / self.steps, groups, slacks)

    def check(self) -> None:
        """Refuse given groups and slacks whose noise would need too large tables: whichever of both is to blame."""
        groups = self.groups or _GROUPS[:1]
        if self.slacks is not None and not self.is_possible(groups, self.slacks):
            smaller = self._first_slacks(groups)
            if self.is_possible(groups, smaller):
                raise ValueError(
                    f"slack must be smaller, got {given_levels(self.slacks)} for groups of {given_levels(groups)} at "
                    f"an epsilon of {self.epsilon / self.steps:.3g} for each unit: the tables of the "
                    f"noise that blocks share would be too large; take {smaller[0]}, or leave it out for the best"
                )
        if self.groups is not None:  # refuses the group
            SharedGeometric(self.epsilon, groups, self.slacks or (0,) * len(groups), self.steps)


def _even(x: float) -> int:
    """Return the nearest even number that is above zero."""
    return max(_EVEN, _EVEN * round(x / _EVEN))
