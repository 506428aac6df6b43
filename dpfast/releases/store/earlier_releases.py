"""The releases that a store has already, as others ask for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


class StorableGuarantee(Protocol):
    """A guarantee as a store needs it: its ``str()`` is for people."""

    def to_json(self) -> str:
        """Return the guarantee for machines."""


@dataclass(frozen=True)
class Earlier:
    """A release that a store has.

    Attributes
    ----------
    id : int
    kind : str
        "live" or "batch".
    configuration : dict
        Of the mechanism.
    guarantee, guarantee_json : str
        In words, and for machines.
    streams : int
    first, count : int
        The steps whose inputs are in it; those of declared zeros, which flush the filters, are not counted.
    closed : bool
        False for a stream that may go on.
    name : str or None
        Of the release and its files, where it has one.
    """

    id: int
    kind: str
    configuration: dict[str, Any]
    guarantee: str
    guarantee_json: str
    streams: int
    first: int
    count: int
    closed: bool
    name: str | None = None

    def overlaps(self, first: int, count: int) -> bool:
        """Tell whether it has inputs of some of these steps; a stream that may go on has all from its first."""
        begins, ends = self.first < first + count, self.first + self.count
        return count > 0 and begins and (not self.closed or first < ends)

    def shares(self, other: Earlier) -> bool:
        """Tell whether both releases have inputs of some step."""
        return self.overlaps(other.first, other.count) or other.overlaps(self.first, self.count)

    @property
    def whole(self) -> bool:
        """True where its guarantee is that of all releases up to it."""
        return bool(json.loads(self.guarantee_json).get("covers_store"))

    @property
    def title(self) -> str:
        """Its number, and its name where it has one."""
        return f"Release {self.id}" if self.name is None else f"Release {self.id}, {self.name!r}"

    @property
    def steps(self) -> str:
        """Its steps in words."""
        return f"steps from {self.first} on" if self.kind == "live" else f"{self.count} steps from {self.first} on"


def list_releases(entries: list[Earlier]) -> str:
    """List some releases in words, by their numbers, kinds and first steps: at most three of them."""
    text = ", ".join(f"{entry.id} ({entry.kind}, from step {entry.first})" for entry in entries[:3])
    more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
    return f"release{'s' * (len(entries) > 1)} {text}{more}"
