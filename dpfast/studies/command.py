"""The command ``dpfast study``: a sweep from a file, and a folder of what it found."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast.errors import MissingExtraError
from dpfast.report import page
from dpfast.report.figures import png
from dpfast.report.folder import Folder
from dpfast.report.table import Table
from dpfast.studies import file, pictures
from dpfast.studies.engines import dask
from dpfast.studies.result import Cell, Sweep
from dpfast.studies.run import sweep

SHOWN = 40  # rows on a screen
_FIGURES = ("rmse", "low", "high", "predicted_rmse", "lower_bound_rmse", "n_streams", "stopped")
_WORDS = ("out", "store", "workers", "width", "budget", "seed")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for.

    Attributes
    ----------
    file : str
        The definition, a TOML file.
    out, store, workers, width, budget, seed
        As there, which they go before; None for those that were not given.
    dask : str or None
        Address of a scheduler.
    verbose : bool
        Log to standard error.
    """

    file: str
    out: str | None
    store: str | None
    workers: int | None
    dask: str | None
    width: float | str | None
    budget: float | None
    seed: int | None
    verbose: bool


def run(request: Request, *, command: str, progress: bool) -> tuple[str, Folder]:
    """Run the sweep; what is printed, and the folder with its files, to be written.

    Raises
    ------
    KeyboardInterrupt
        With a text that says how far it was, and the command that goes on.
    """
    asked = file.read(request.file, {name: getattr(request, name) for name in _WORDS})
    folder = Folder(asked.out)
    with _logging(request.verbose), _made(asked.out), _executor(request.dask) as executor:
        try:
            found = sweep(asked.grid, **asked.options, executor=executor, progress=progress)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"{stop}: {command}") from None
    decide = asked.options.get("decide")
    winners = None if decide is None else _winners(found.winners(decide), decide)
    page_text = page.of_sweep(found, command=command, title=asked.title, description=asked.description)
    folder.add("study.csv", found.table().csv())
    folder.add("study.md", _markdown(asked, found, winners))
    folder.add("report.html", page_text)
    with contextlib.suppress(MissingExtraError):  # without pyarrow
        folder.add("study.parquet", _parquet(found))
    for name, figure in pictures.all(found).items():
        folder.add(name, png(figure))
    return _printed(found, winners), folder


@contextlib.contextmanager
def _logging(verbose: bool) -> Iterator[None]:
    """The log of the studies on standard error, if that is asked for."""
    if not verbose:
        yield
        return
    log, handler = logging.getLogger("dpfast.studies"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder for the store; gone again where nothing came into it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it holds something
            folder.rmdir()


def _executor(address: str | None) -> Any:
    return contextlib.nullcontext() if address is None else dask(address)


# --- what is written ------------------------------------------------------------------------------


def _short(found: Sweep, n_rows: int | None = None) -> Table:
    """The axes and the figures that matter most, of the first points."""
    whole = found.table()
    places = [whole.columns.index(name) for name in (*found.axes, *_FIGURES)]
    rows = tuple(tuple(row[i] for i in places) for row in whole.rows[:n_rows])
    return Table(tuple(whole.columns[i] for i in places), rows)


def _winners(cells: tuple[Cell, ...], axis: str) -> Table:
    """Who errs least in every cell, and by how much less than the second."""
    labels = tuple(cells[0].labels) if cells else ()
    rows = tuple((*cell.labels.values(), *_verdict(cell, axis)) for cell in cells)
    return Table((*labels, axis, "rmse", "second", "rmse of second / first", "decided"), rows)


def _verdict(cell: Cell, axis: str) -> tuple[Any, ...]:
    second = None if cell.second is None else cell.second.settings.get(axis)
    ratio = None if cell.comparison is None else cell.comparison.rmse_ratio
    return cell.best.settings.get(axis), cell.best.rmse, second, ratio, cell.decided


def _markdown(asked: file.Definition, found: Sweep, winners: Table | None) -> str:
    parts = [
        f"# {asked.title}" if asked.title else "",
        asked.description or "",
        _short(found).markdown(),
        _footer(found),
    ]
    parts += [] if winners is None else [winners.markdown()]
    return "\n\n".join(x for x in parts if x) + "\n"


def _footer(found: Sweep) -> str:
    return (
        f"{len(found.points)} points, {len(found)} cases; {found.n_samples} samples a stream, seed {found.seed}; "
        f"{found.rule}; {100 * found.confidence:g}% intervals"
    )


def _parquet(found: Sweep) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "study.parquet"
        found.to_parquet(path)
        return path.read_bytes()


def _printed(found: Sweep, winners: Table | None) -> str:
    parts = [_cut(_short(found, SHOWN), len(found.points)), _footer(found)]
    if winners is not None:
        shown = Table(winners.columns, winners.rows[:SHOWN])
        parts.append(_cut(shown, len(winners.rows), "study.md"))
    return "\n\n".join(parts)


def _cut(shown: Table, total: int, where: str = "study.csv") -> str:
    more = total - len(shown.rows)
    return shown.text() + (f"\n… and {more} more in {where}" if more > 0 else "")
