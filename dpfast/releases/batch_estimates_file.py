"""Release of a file of events by the command: it happens once, whatever interrupts it; files are made of the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import DataError, ReleaseError
from dpfast._support.validation import Array
from dpfast.releases.batch import Release
from dpfast.releases.estimates_layout import HEADER, Layout, Outputs
from dpfast.releases.reading import read_entry
from dpfast.releases.requested_release import Wanted
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.signals.events.declared_span import Span

_ROWS = 100_000  # of a piece of a file, which take 50 MB while they are written


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
    file, result = estimates_path(store.published, entry.name, kind), read_entry(store, entry)
    contradicted = result.model_check.agrees is False
    predicted = result.predicted_rmse_if_model_holds
    given = entry, declared, result.estimate, predicted, kind, contradicted, _outputs_of(result)
    try:
        if file.is_file() and not file.is_symlink() and _holds(file, estimates_pieces(*given)):
            return file, False
        if os.path.lexists(file):
            raise ReleaseError(
                f"{file} is there, and is not what this version of dpfast writes of {entry.title}, {entry.steps}, "
                "which is published already and in the store: move it away and run the same command again, which "
                "publishes nothing more"
            )
        replace_file(file, estimates_pieces(*given))
    except OSError as error:
        raise DataError(
            f"cannot write to {file}: {error.strerror}; what was released is in the store {store.path}: put that right "
            "and run the same command again, which publishes nothing more, or read it by dpfast release --read"
        ) from None
    return file, True


def _outputs_of(result: Release) -> Outputs | None:
    """Return the outputs of several streams together; None where each group has an estimate of its own."""
    if result.outputs is None or result.output_rmse_if_model_holds is None:
        return None
    return Outputs(result.outputs, result.output_rmse_if_model_holds)


def _holds(file: Path, pieces: Iterable[bytes]) -> bool:
    """Tell whether a file is these pieces, one after the other, and nothing more."""
    with file.open("rb") as there:
        return all(there.read(len(piece)) == piece for piece in pieces) and not there.read(1)


def estimates_pieces(
    entry: Earlier,
    fields: Mapping[str, Any],
    estimate: Array,
    error: float | None,
    kind: str,
    contradicted: bool,
    outputs: Outputs | None = None,
) -> Iterator[bytes]:
    """Yield the file of estimates of a release whose store declares such bins and groups: CSV in pieces of bins.

    Where v contradicts the model that the error follows from, the rows do not state it.
    """
    start = int(np.datetime64(fields["origin"], "us").astype(np.int64)) + entry.first * fields["period_us"]
    span = Span(start, fields["period_us"], estimate.shape[1], fields["zone"] == "UTC")
    layout = Layout(span, tuple(fields["groups"]), error, outputs, 0 if contradicted else None)
    if kind == "parquet":
        yield layout.parquet(estimate)
        return
    yield HEADER.encode()
    at_once = max(1, _ROWS // len(estimate))
    for first in range(0, estimate.shape[1], at_once):
        yield layout.csv(first, estimate[:, first : first + at_once]).encode()


def finish_others(store: ReleaseStore, wanted: Wanted, declared: Mapping[str, Any], kind: str) -> None:
    """Write what earlier releases of the same steps have published and a run that was interrupted has not written."""
    for entry in store.find_overlapping(wanted.first, wanted.count):
        if entry.kind == "batch" and not os.path.lexists(estimates_path(store.published, entry.name, kind)):
            write_estimates(store, entry, declared, kind)
