"""What one release costs, and whom: a line of the ledger."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Self

from dpfast.privacy.composition import Loss

UNITS = ("event", "person")


@dataclass(frozen=True)
class Entry:
    """Say what a release, or a stream for all its life, costs one event or one person.

    Attributes
    ----------
    store, path : str
        The id of the store, and where it was.
    release : int
        The number that the release was to have in its store.
    name : str or None
        Of the release.
    kind : str
        "batch" or "live".
    unit : str
        "person" where bounds on persons are enforced, "event" where nobody knows whose events are whose.
    max_events, streams_per_person : int
        What is declared of whom the loss is stated for.
    first : int
        The first step.
    count : int or None
        The steps; None where no last one is declared.
    start, end : int or None
        The span of time, in microseconds since 1970 by the clock that is declared; None where there is none.
    clock : tuple of str, or None
        Time column, format and zone; None where none is declared.
    column : str or None
        The column of the groups.
    groups : tuple of str, or None
        The declared groups; None for all there may be.
    bounding : str or None
        The state that bounds persons, and its span: within one a person of one stream is in one group alone.
    size : int
        The loss is that of a group of so many persons of one span each: of one person over so many spans.
    series : str or None
        Entries of one series are the same release over more and more spans: the last stands for all of them.
    delta : Fraction
        The δ at which it was demanded.
    loss : Loss
        For whoever is within these bounds.
    """

    store: str
    path: str
    release: int
    name: str | None
    kind: str
    unit: str
    max_events: int
    streams_per_person: int
    first: int
    count: int | None
    start: int | None
    end: int | None
    clock: tuple[str, str, str] | None
    column: str | None
    groups: tuple[str, ...] | None
    bounding: str | None
    size: int
    series: str | None
    delta: Fraction
    loss: Loss

    @functools.cached_property
    def epsilon(self) -> Fraction:
        """Return ε at its own δ, as the sum of a cap has it; at a δ of 1 nothing is promised, whatever ε is."""
        if self.delta >= 1:
            return self.loss.sum_of_epsilons
        return Fraction(self.loss.epsilon(float(self.delta)))

    @property
    def is_single(self) -> bool:
        """Tell whether whom it protects can be in one step and one group alone."""
        return self.unit == "event" and self.max_events == self.streams_per_person == 1

    def is_same_release(self, other: Entry) -> bool:
        """Tell whether another entry is of the same release, made again after a crash."""
        return replace(self, path="", release=0) == replace(other, path="", release=0)

    def to_json(self) -> str:
        """Return all of it as text, exactly."""
        content = {name: value for name, value in asdict(self).items() if name not in ("loss", "delta")}
        content |= {"delta": str(self.delta), "loss": json.loads(self.loss.to_json())}
        return json.dumps(content, sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` has written."""
        content: dict[str, Any] = json.loads(text)
        for name in ("clock", "groups"):
            content[name] = None if content[name] is None else tuple(content[name])
        content["delta"] = Fraction(content["delta"])
        content["loss"] = Loss.from_json(json.dumps(content["loss"]))
        return cls(**content)


def in_force(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that count: of a series the last."""
    last = {entry.series: i for i, entry in enumerate(entries) if entry.series is not None}
    return [entry for i, entry in enumerate(entries) if entry.series is None or last[entry.series] == i]
