"""Places of the stores of a command: the private folder, and that of what is public."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpfast.releases.arbiters.private_files import check_apart
from dpfast.releases.store.release_store import NAME, ReleaseStore
from dpfast.releases.store.witness import Witness


class Places(NamedTuple):
    """The folder of what is published, and the private one, of one store.

    Attributes
    ----------
    out, store : Path
    """

    out: Path
    store: Path

    @classmethod
    def choose(cls, out: Path, store: Path | None) -> Places:
        """Choose the private folder beside the other by default: who copies that one must not copy the store."""
        out = out.resolve() if ".." in out.parts else out.absolute()
        if store is None and not out.name:
            raise ValueError(f"store must be given where out is {out}, which has nothing beside it")
        private = out.with_name(f"{out.name}-private") if store is None else store
        check_apart("store", private, out)
        return cls(out, private)

    @property
    def used(self) -> bool:
        """True where there is a store at these places, or was one."""
        return (self.store / NAME).exists() or Witness(self.out).path.exists()


def for_new_store(out: Path, store: Path | None, given: Mapping[str, Any]) -> Places:
    """Return the first places, numbered from 2 on behind the given ones, that are unused or declare the same.

    The same declaration finds the same store: a command that is run again does not publish again.
    """
    for n in itertools.count(1):
        end = f"-{n}" * (n > 1)
        private = None if store is None else store.with_name(f"{store.name}{end}")
        places = Places.choose(out.with_name(f"{out.name}{end}"), private)
        if not places.used and (n == 1 or not (places.out.exists() or places.store.exists())):
            return places
        if (places.store / NAME).exists():
            with ReleaseStore.open(places.store, places.out, reading=True) as there:
                known, unused = there.declaration, not there.releases()
            if known is None and unused:  # it was interrupted before its first steps
                return places
            if known is not None and not known.unknown and not known.differences(given, whole=True):
                return places
    raise AssertionError("numbers do not end")
