"""Search the lengths of block sums that the design function does not search: of two levels, and for the worst step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from dpfast._support.errors import DesignError
from dpfast.design.best_demand import Demand
from dpfast.design.block_arguments import BEST
from dpfast.design.block_problem import LONGEST
from dpfast.design.block_sums import block_sums
from dpfast.mechanisms.block_mechanism import BlockMechanism

_LONG_MEMORY = 1000  # steps, below which a second level loses (NOISE.md, section 6, by simulation of many targets)
_FIRST = 0.6, 12, 0.5  # where the search of two levels begins: part of the best single length, ratio, share
_RATIOS = 4, 6, 8, 10, 12, 14, 16, 20, 24, 32
_SHARES = 0.4, 0.45, 0.5, 0.55, 0.6, 0.65
_STEPS = 1.3, 1.12, 1.04  # factors of the length, coarse to fine
_FINE = 24  # up to here every length is tried


def has_long_memory(task: Demand) -> bool:
    """Tell whether two levels of blocks may err less than one."""
    return task.memory > _LONG_MEMORY


def design_blocks(task: Demand, **given: Any) -> BlockMechanism:
    """Design block sums of one length: that of the least mean error, or of the least error in the worst step."""
    found = _design(task, **given)
    return found if task.minimize == "mean" else _least_in_worst_step(task, found.lengths[0], **given)


def design_shared(task: Demand) -> BlockMechanism:
    """Design block sums that share noise in groups, of the least mean error; then of the length for the worst step.

    Raises
    ------
    DesignError
        Where noise of their own errs less, which is another candidate.
    """
    found = _design(task, group=BEST)
    if found.group == 1:
        raise DesignError("blocks with noise of their own err less here")
    if task.minimize == "mean":
        return found
    return _least_in_worst_step(task, found.lengths[0], group=found.group, slack=found.slack)


def _least_in_worst_step(task: Demand, length: int, **given: Any) -> BlockMechanism:
    """Search the length of the least error in the worst step, around a length."""
    worst = _LengthSearch(task, lambda length: _design(task, length=length, **given))
    if length <= _FINE:
        worst.try_all(range(1, 2 * length + 2))
    else:
        worst.try_all(round(length * 2 ** (x / 8)) for x in range(-12, 9))
        worst.try_all(round(worst.best_key * 1.01**x) for x in range(-8, 9))
    return worst.best


def design_two_levels(task: Demand, **given: Any) -> BlockMechanism:
    """Design block sums of two nested lengths: length, ratio and shares of the least error, in steps."""
    one = _design(task, **given)

    def make(key: tuple[int, int, float]) -> BlockMechanism:
        length, ratio, share = key
        return _design(task, length=(length, ratio * length), shares=(share, 1 - share), **given)

    part, ratio, share = _FIRST
    found = _LengthSearch(task, make)
    found.try_all([(max(1, round(part * one.lengths[0])), ratio, share)])
    for factor in _STEPS:
        before = math.inf
        while found.least < before:
            before = found.least
            length, ratio, share = found.best_key
            near = _around(length, factor), _around_in(_RATIOS, ratio), _around_in(_SHARES, share)
            found.try_all(itertools.product(*near))
    return found.best


def design_signs(task: Demand, **given: Any) -> BlockMechanism:
    """Design block sums with signs that follow the frequency of the output.

    Raises
    ------
    DesignError
        Where plain sums err less, which are another candidate.
    """
    found = _design(task, weights=BEST, **given)
    if found.weights is None:
        raise DesignError("sums without signs err less here")
    return found


def _design(task: Demand, **given: Any) -> BlockMechanism:
    assert task.model is not None  # as a candidate that needs one
    given |= {} if "group" in given else {"noise": task.integer_noise}  # what sums share has noise of its own
    return block_sums(task.target, task.privacy, task.model, lag=task.lag, unit=task.unit, **given)


def _around(length: int, factor: float) -> list[int]:
    return [x for x in (min(length - 1, round(length / factor)), length, max(length + 1, round(length * factor))) if x]


def _around_in(values: tuple[Any, ...], x: Any) -> tuple[Any, ...]:
    i = values.index(x)
    return values[max(0, i - 1) : i + 2]


class _LengthSearch:
    """Designs by what is searched, each made once, and the best so far."""

    def __init__(self, task: Demand, make: Callable[[Any], BlockMechanism]) -> None:
        self._task, self._make = task, make
        self._tried: set[Any] = set()
        self.least = math.inf
        self._best: tuple[Any, BlockMechanism] | None = None

    @property
    def best_key(self) -> Any:
        """Tell by what the best so far is designed."""
        assert self._best is not None, "something has been tried"
        return self._best[0]

    @property
    def best(self) -> BlockMechanism:
        """The best so far."""
        assert self._best is not None, "something has been tried"
        return self._best[1]

    def try_all(self, keys: Iterable[Any]) -> None:
        """Try all that are new, as far as they can be designed: a length may be too long for a horizon."""
        for key in keys:
            if key in self._tried or self._is_too_long(key):
                continue
            self._tried.add(key)
            made = self._make(key)
            value = self._task.value(made) or 0.0  # what rounding hides is as good as none
            if value < self.least:
                self.least, self._best = value, (key, made)

    def _is_too_long(self, key: Any) -> bool:
        longest: int = key[0] * key[1] if isinstance(key, tuple) else key
        return longest < 1 or longest > min(LONGEST, self._task.horizon or LONGEST)
