"""All families of mechanisms side by side, for one target, privacy, model and lag: ``dpfast design``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.design.catalogue import FAMILIES, Family
from dpfast.filters.filter import Filter
from dpfast.mechanisms import lags
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import LARGEST_EPSILON, Privacy
from dpfast.signals.model import Model

_SMALLEST_LAST_LAG = 20
_N_LAGS, _N_EPSILONS = 8, 9


@dataclass(frozen=True)
class ComparisonTask:
    """What is to be designed; a lag None is the smoother."""

    target: Filter
    privacy: Privacy
    model: Model
    lag: int | None
    tolerance: float

    @functools.cached_property
    def constant(self) -> Constant:
        """What every family has to be better than."""
        return constant(self.target, self.model)


class Entry(NamedTuple):
    """A line of the comparison: a family of the catalogue, at the lag of the task or as a smoother."""

    label: str
    design: Callable[[ComparisonTask], Mechanism]
    needs: frozenset[str]


def _entries() -> Iterator[Entry]:
    """List the families of filters that need no more than a task has, those that may be smoothers as such too."""
    for family in FAMILIES.values():
        if "filter" not in family.serves or not family.needs <= {"model", "lag", "levels"}:
            continue
        yield Entry(family.label, functools.partial(_design, family, late=True), family.needs)
        if family.is_smoother_by_default:
            yield Entry(
                f"{family.label} smoother", functools.partial(_design, family, late=False), family.needs - {"lag"}
            )


def _design(family: Family, task: ComparisonTask, *, late: bool) -> Mechanism:
    given = {"model": task.model, "tolerance": task.tolerance, "lag": task.lag}
    made: Mechanism = family.make(task.target, task.privacy, **(given if late else given | {"lag": None}))
    return made


ENTRIES = tuple(_entries())


def lags_around(lag: int) -> list[int]:
    """About ten lags from 0 to four times the given one, which is among them; at least to 20."""
    last = min(max(_SMALLEST_LAST_LAG, 4 * lag), validation.MAX_LAG)
    return sorted({0, lag, *np.rint(np.geomspace(1, last, _N_LAGS)).astype(int).tolist()})


def epsilons_around(epsilon: float) -> list[float]:
    """Two decades around the given epsilon, which is among them, as far as a Privacy allows."""
    factors = np.geomspace(0.1, 10, _N_EPSILONS)
    factors[_N_EPSILONS // 2] = 1.0
    return [x for x in (epsilon * factors).tolist() if x < LARGEST_EPSILON]


def with_epsilon(task: ComparisonTask, epsilon: float) -> ComparisonTask:
    """The task under another epsilon."""
    return replace(task, privacy=replace(task.privacy, epsilon=epsilon))


@dataclass
class ComparedDesigns:
    """Designs of tasks that differ by lag and epsilon, each made once, and notes on those that there are not."""

    advance: Callable[[int], object]
    notes: dict[str, None] = field(default_factory=dict)
    _made: dict[tuple[Any, ...], Mechanism | None] = field(default_factory=dict)

    def side_by_side(self, entries: list[Entry], task: ComparisonTask) -> dict[str, Mechanism]:
        """The mechanism of each family that has one."""
        made = {x.label: self._design(x, task) for x in entries}
        return {label: mechanism for label, mechanism in made.items() if mechanism is not None}

    def _design(self, entry: Entry, task: ComparisonTask) -> Mechanism | None:
        epsilon, lag = task.privacy.epsilon, task.lag
        key = entry.label, lag if "lag" in entry.needs else None, epsilon if "model" in entry.needs else None
        if key not in self._made:
            try:
                self._made[key] = entry.design(task)
            except DesignError as error:
                self._made[key] = None
                self.notes[f"No {entry.label} at lag {lags.shown(lag)}, epsilon {epsilon:g}: {error}."] = None
        self.advance(1)
        mechanism = self._made[key]
        if mechanism is None or mechanism.privacy == task.privacy:
            return mechanism
        # without a model the filters are those of any epsilon, and the noise follows
        return replace(mechanism, privacy=task.privacy, ideal_mse=None)
