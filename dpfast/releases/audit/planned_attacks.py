"""The attacks by canaries that are planned for every mechanism: one person's events alone, and opposite ones twice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from dpfast.releases.audit.canary import Canary
from dpfast.releases.audit.draw_canary import DrawCanary
from dpfast.releases.audit.findings import Finding

FEWEST_RUNS = 1000
_MOST_RUNS = 1_200_000
_WORK = 14_000_000  # numbers that an attack draws, where the number of runs is not given

AnyCanary = TypeVar("AnyCanary", Canary, DrawCanary)
Advance = Callable[[int], object]  # hears of the runs that are done


class Canaries(NamedTuple, Generic[AnyCanary]):
    """Hold canaries that are published together, or apart.

    Attributes
    ----------
    name : str
    canaries : tuple
    apart : bool
        Each in a release of its own.
    runs : int
        Of each kind: with the events, and without.
    """

    name: str
    canaries: tuple[AnyCanary, ...]
    apart: bool
    runs: int


class PlannedAttack(NamedTuple):
    """Hold an attack that is yet to be run.

    Attributes
    ----------
    runs : int
        Of each kind.
    find : callable
        Runs it; its argument hears of the runs that are done.
    """

    runs: int
    find: Callable[[Advance], list[Finding]]


def plan_attacks(
    up: AnyCanary,
    down: AnyCanary,
    runs: int | None,
    on_release: Callable[[Canaries[AnyCanary], Advance], list[Finding]],
    cost: float = 1.0,
) -> list[PlannedAttack]:
    """Plan attacks by canaries: alone, and by opposite events in two pushes and in two releases.

    Parameters
    ----------
    up, down : Canary or DrawCanary
        Of opposite events.
    runs : int, optional
        Of each kind; else as many as a fixed amount of work allows.
    on_release : callable
        Runs an attack by such canaries.
    cost : float
        Of a number, in draws of noise.
    """
    result = []
    for name, canaries, apart in (
        ("canary, all steps", (up,), False),
        ("opposite canaries, two pushes", (up, down), False),
        ("opposite canaries, two releases", (up, down), True),
    ):
        work = 2 * sum(x.size for x in canaries) * cost
        attack = Canaries(name, canaries, apart, runs or min(_MOST_RUNS, max(FEWEST_RUNS, int(_WORK / work))))
        result.append(PlannedAttack(attack.runs, functools.partial(on_release, attack)))
    return result
