"""The declaration of a store: one meaning of steps, streams and values, and one kind of person, for all releases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dpfast._support.errors import ReleaseError
from dpfast.signals.events.periods import format_period

# What a log of events declares of its steps. The rest are bounds, which the configuration of every release holds.
OF_STEPS = (
    "time_column",
    "time_format",
    "zone",
    "period_us",
    "origin",
    "count_column",
    "group_column",
    "groups",
    "last_step",
    "grace_us",
)


@dataclass(frozen=True)
class Declaration:
    """Declared fields by their names, with values that JSON holds: public, and the same for all releases of a store.

    A field that is not there is not declared, as one that is None: later versions may know further ones.

    Attributes
    ----------
    fields : mapping
    unknown : tuple of str
        Fields of which nobody knows what the releases that there are meant: such a store takes no further steps by the
        command, until the operator says it.
    unchecked : tuple of str
        Fields that the operator said of releases that there were; guarantees name them.
    """

    fields: Mapping[str, Any]
    unknown: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    def differences(self, given: Mapping[str, Any], *, whole: bool) -> list[str]:
        """Say where declared fields differ from the given ones, all of which are there where they are `whole`."""
        names = ({*self.fields, *given} if whole else set(given)) - {*self.unknown}
        pairs = {name: (self.fields.get(name), given.get(name)) for name in sorted(names)}
        return [
            f"{name} must be {_show_value(name, a)}, got {_show_value(name, b)}"
            for name, (a, b) in pairs.items()
            if a != b
        ]

    def check_no_shard(self, path: object) -> None:
        """Refuse to add to a shard: what all shards together promise, each has said for the stream alone."""
        if "n_shards" in self.fields:
            raise ReleaseError(
                f"the store {path} is that of a shard, which has its stream alone: release into a store of its own, "
                "and enter both in a ledger"
            )

    def hold(self, given: Mapping[str, Any], path: object, *, whole: bool) -> None:
        """Refuse fields that differ from what the store at a path declares; they are bounds alone if not `whole`.

        Raises
        ------
        ReleaseError
            Naming each, what was declared, and what was given.
        """
        if differ := self.differences(given, whole=whole):
            raise ReleaseError(
                f"what is declared must be what the store {path} holds: {'; '.join(differ)}. Its "
                "steps must mean one thing in all releases. For another meaning begin another store (--new-store, or "
                "other folders); what two stores publish of the same events adds up"
            )

    def complete_with(self, given: Mapping[str, Any]) -> Self:
        """Return the declaration with the operator's word for what nobody knows."""
        said = {name: given.get(name) for name in self.unknown}
        return type(self)({**self.fields, **given, **said}, (), (*self.unchecked, *self.unknown))

    def to_json(self) -> str:
        """Write the declaration as :meth:`from_json` reads it."""
        content = {"fields": dict(self.fields), "unknown": self.unknown, "unchecked": self.unchecked}
        return json.dumps(content, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what :meth:`to_json` wrote."""
        content = json.loads(text)
        return cls(content["fields"], tuple(content["unknown"]), tuple(content["unchecked"]))


def unchecked_text(names: Iterable[str]) -> str:
    """Say in a guarantee which fields are the operator's word, or nobody's."""
    return (
        f"{', '.join(names)}: earlier releases did not declare them; that they mean the same in all of them is the "
        "operator's word alone"
    )


def _show_value(name: str, value: Any) -> str:
    if value is None:
        return "not declared"
    length = f" ({format_period(np.timedelta64(value, 'us'))})" if name.endswith("_us") and value else ""
    return json.dumps(value, ensure_ascii=False) + length
