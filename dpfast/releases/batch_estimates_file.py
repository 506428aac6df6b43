"""Release of a file of events by the command: it happens once, whatever interrupts it; files are made of the store."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.feed.estimates_file import HEADER, Layout
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.joint_guarantee import load_plans
from dpfast.releases.reading import read_entry
from dpfast.releases.store.records import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream_opening import differing_fields
from dpfast.signals.events.declared_counts import Span

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
    plan : ExactMechanism
    first, count : int
        Its steps.
    name : str or None
    compose : bool
        Whether steps may be published that an earlier release has published.
    """

    plan: ExactMechanism
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


def estimates_path(out: Path, name: str | None, kind: str) -> Path:
    """Return where the estimates of a release of a name are."""
    return out / (f"estimates.{kind}" if name is None else f"estimates-{name}.{kind}")


def check_free(file: Path) -> None:
    """Refuse a place where something else is, before anything is published."""
    if os.path.lexists(file):
        raise ReleaseError(
            f"{file} is there, and holds something else than this release: move it away, or give this release a --name"
        )


def write_estimates(store: ReleaseStore, entry: Earlier, declared: Mapping[str, Any], kind: str) -> tuple[Path, bool]:
    """Write the file of a release from the store alone, and say whether it was written now: a whole one stays.

    Parameters
    ----------
    store : ReleaseStore
    entry : Earlier
    declared : mapping
        What the store declares.
    kind : str
        "csv" or "parquet".

    Raises
    ------
    ReleaseError
        Where the file holds something else.
    DataError
        Where it cannot be written.
    """
    file, content = estimates_path(store.published, entry.name, kind), _file_content(store, entry, declared, kind)
    try:
        if file.is_file() and not file.is_symlink() and file.read_bytes() == content:
            return file, False
        if os.path.lexists(file):
            raise ReleaseError(
                f"{file} is there, and is not what this version of dpfast writes of {entry.title}, {entry.steps}, "
                "which is published already and in the store: move it away and run the same command again, which "
                "publishes nothing more"
            )
        replace_file(file, content)
    except OSError as error:
        raise DataError(
            f"cannot write to {file}: {error.strerror}; what was released is in the store {store.path}: put that right "
            "and run the same command again, which publishes nothing more, or read it by dpfast release --read"
        ) from None
    return file, True


def _file_content(store: ReleaseStore, entry: Earlier, fields: Mapping[str, Any], kind: str) -> bytes:
    result = read_entry(store, entry)
    start = int(np.datetime64(fields["origin"], "us").astype(np.int64)) + entry.first * fields["period_us"]
    span = Span(start, fields["period_us"], entry.count, fields["zone"] == "UTC")
    layout = Layout(span, tuple(fields["groups"]), result.predicted_rmse_if_model_holds)
    if kind == "parquet":
        return layout.parquet(result.estimate)
    return (HEADER + layout.csv(0, result.estimate)).encode()


def finish_others(store: ReleaseStore, wanted: Wanted, declared: Mapping[str, Any], kind: str) -> None:
    """Write what earlier releases of the same steps have published and a run that was interrupted has not written."""
    for entry in store.find_overlapping(wanted.first, wanted.count):
        if entry.kind == "batch" and not os.path.lexists(estimates_path(store.published, entry.name, kind)):
            write_estimates(store, entry, declared, kind)
