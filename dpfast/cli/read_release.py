"""``dpfast release --read``: what a store has published, for people and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support.atomic_files import replace_file
from dpfast._support.csv_cells import csv_lines
from dpfast._support.errors import DataError, ReleaseError
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.releases.arbiters.private_files import make_folders
from dpfast.releases.batch import Release
from dpfast.releases.reading import bin_edges, open_existing, read_entry
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.witness import Witness
from dpfast.reports.release.report_file import write_reports

_EMPTY = "So the column of the predicted error is empty here."
COLUMNS = ("release", "step", "time", "group", "privatized", "estimate", "predicted_rmse_if_model_holds")
TABLE = "values.csv"


def show_store(path: str, out: str | None = None, *, witness: str | None = None, adopt: bool = False) -> str:
    """Show what all releases of a store guarantee, from which step on it has them, and their values.

    Parameters
    ----------
    path : str
        The private store.
    out : str, optional
        Folder for the table, which is printed otherwise, and for the reports; and that of what is public, if it has
        the witness.
    witness : str, optional
        Folder of the second witness.
    adopt : bool
        As for :func:`dpfast.releases.batch.release`.
    """
    published = out if out is not None and Witness(Path(out)).path.exists() else None
    with open_existing(path, published, witness=witness, adopt=adopt) as store:
        entries = store.releases()
        results = [read_entry(store, entry) for entry in entries]
        if not results:
            raise ReleaseError(
                f"nothing was released in the store {store.path} so far: release into it first, or give another one"
            )
        table = csv_lines([COLUMNS, *(row for result in results for row in _rows(store, result))])
    over = [entry.closed or entry.kind != "live" for entry in entries]
    titles = [_title(result, is_over=x) for result, x in zip(results, over, strict=True)]
    shown = "\n\n".join(
        f"{wrap_paragraph(title)}\n\n{x.guarantee}{_doubt(x)}" for title, x in zip(titles, results, strict=True)
    )
    if out is None:
        return f"{shown}\n\n{table.rstrip()}"
    file = Path(out) / TABLE
    try:
        make_folders(file.parent)
        replace_file(file, table)
    except OSError as error:
        raise DataError(f"cannot write to {file}: {error.strerror}; choose another folder") from None
    reports = write_reports(file.parent, results)
    written = wrap_paragraph(f"Written: {', '.join(map(str, [file, *reports]))}")
    return f"{shown}\n\n{written}"


def _doubt(result: Release) -> str:
    """Say why no error is predicted, where what was published contradicts the model; else nothing."""
    check = result.model_check
    return f"\n\n{wrap_paragraph(f'{check.verdict_text()} {_EMPTY}')}" if check.agrees is False else ""


def _title(result: Release, *, is_over: bool) -> str:
    """Say of which steps of a release the store has v: those of its inputs, and those that its last estimates need."""
    name = "" if result.name is None else f" ({result.name})"
    n_steps, n_late = result.estimate.shape[1], result.privatized.shape[-1] - result.estimate.shape[1]
    last = result.first + n_steps + (0 if is_over else n_late) - 1
    steps = f"the store has its steps {result.first} to {last} ({last - result.first + 1:,})"
    if n_late and is_over:
        steps += f", and {n_late} more of declared zeros behind them, for which the last estimates wait"
    elif n_late:
        steps += f", the last {n_late} without an estimate so far"
    return f"Release {result.number}{name}: {steps}; SHA-256 of the published numbers {result.digest}"


def _rows(store: ReleaseStore, result: Release) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table, step by step; the last steps of a release with a lag have no estimate.

    Of several streams together a step has a row for each channel and then one for each output, under their names; where
    the store declares none, a row has a channel and an output of one number, as many as there are of either.
    """
    n_steps = result.privatized.shape[-1]
    times = _times(store, result.first, n_steps)
    errors = result.output_rmse_if_model_holds or (result.predicted_rmse_if_model_holds,) * len(result.estimate)
    contradicted = result.model_check.agrees is False
    shown = ["" if x is None or contradicted else f"{x:.6g}" for x in errors]
    estimate = result.estimate.T.tolist()
    for i in range(n_steps):
        for name, k, output in _labels(result):
            figures = "", ""
            if output is not None and i < len(estimate):
                figures = repr(estimate[i][output]), shown[output]
            yield result.number, result.first + i, times[i], name, _show_released(result, k, i), *figures


def _labels(result: Release) -> list[tuple[str, int | None, int | None]]:
    """Return the name of each row of a step, and which channel and which output it shows."""
    n_channels, n_outputs = len(result.privatized), len(result.estimate)
    if result.channels is not None and result.outputs is not None and result.channels != result.outputs:
        channels = [(name, k, None) for k, name in enumerate(result.channels)]
        return [*channels, *((name, None, k) for k, name in enumerate(result.outputs))]
    names = result.outputs or tuple(map(str, range(max(n_channels, n_outputs))))
    return [(x, k if k < n_channels else None, k if k < n_outputs else None) for k, x in enumerate(names)]


def _show_released(result: Release, stream: int | None, step: int) -> str:
    """Write the numbers that were published of a stream at a step; nothing where none was."""
    assert result.released is not None
    if stream is None:
        return ""
    there = result.released[..., step]
    if there.ndim and result.privatized.ndim == 2:  # channels that are released at steps of their own
        there = there[stream]
    v = result.privatized[stream, ..., step][there]
    return ";".join(map(str, v.ravel().tolist()))


def _times(store: ReleaseStore, first: int, count: int) -> list[str]:
    """Return the left edges of bins as texts, empty where the store declares no bins."""
    declaration = store.declaration
    times = bin_edges(declaration, first, count)
    if declaration is None or times is None:
        return [""] * count
    whole = not np.any(times.astype(np.int64) % 1_000_000)
    zone: Any = "UTC" if declaration.fields.get("zone") == "UTC" else "naive"
    texts: list[str] = np.datetime_as_string(times, unit="s" if whole else "us", timezone=zone).tolist()
    return texts
