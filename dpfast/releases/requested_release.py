"""A release that a command asks for happens once: an earlier run of the same command is found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.releases.composed_releases import load_plans
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream_opening import differing_fields

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str | None) -> None:
    """Refuse a name that may not be part of the name of a file."""
    if name is not None and not _NAME.fullmatch(name):
        must_be = "1 to 64 letters of a-z and A-Z, digits, dots, hyphens and underscores, with a letter or digit first"
        raise validation.fail("name", must_be, name)


@dataclass(frozen=True)
class Wanted:
    """A release that a command asks for.

    Attributes
    ----------
    plan : ExactBase
    first, count : int
        Its steps.
    name : str or None
    compose : bool
        Whether steps may be published that an earlier release has published.
    """

    plan: ExactBase
    first: int
    count: int
    name: str | None
    compose: bool

    def find_published(self, store: ReleaseStore) -> Earlier | None:
        """Return the release, where an earlier run of the same command has published it: nothing is computed again.

        Raises
        ------
        ReleaseError
            Where it would publish steps once more that another release has published, and may not.
        """
        shared = store.find_overlapping(self.first, self.count)
        for entry in (store.releases() if self.name is not None else shared)[::-1]:
            if entry.name == self.name and self._matches(entry):
                return entry
            if entry.name == self.name is not None:
                raise ReleaseError(
                    f"name must be a new one, got {self.name!r}, which the store {store.path} has for other steps or "
                    f"another mechanism: {entry.title}, {entry.steps}"
                )
        if shared and not (self.compose and self.name is not None):
            raise ReleaseError(
                f"steps from {self.first} to {self.first + self.count - 1} are released already in the store "
                f"{store.path} ({shared[-1].title}, {shared[-1].steps}). dpfast release --read {store.path} gives what "
                "was published; --compose with a new --name publishes them once more, and states the guarantee of all"
            )
        return None

    def _matches(self, entry: Earlier) -> bool:
        """Tell whether a release is of the same steps, demands and inputs."""
        if entry.kind != "batch" or (entry.first, entry.count) != (self.first, self.count):
            return False
        found = load_plans([entry])[entry.id].demand  # not its taps: another machine rounds a design otherwise
        return not differing_fields(_through_json(found), _through_json(self.plan.demand))


def _through_json(content: Any) -> Any:
    return json.loads(json.dumps(content))
