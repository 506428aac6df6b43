"""The command ``dpfast study``: a sweep from a file, and a folder of what it found."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast._support.errors import MissingExtraError
from dpfast._support.output_folder import Folder
from dpfast._support.text_table import Table
from dpfast.cli import study_file as file
from dpfast.reports.figures import png
from dpfast.reports.sweep import page, pictures
from dpfast.simulation.sweep import tables
from dpfast.simulation.sweep.executors import dask
from dpfast.simulation.sweep.result import SHOWN, Sweep
from dpfast.simulation.sweep.sweep import sweep

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
    winners = tables.winners(found.winners()) if found.contest else None
    folder.add("study.csv", found.table().csv())
    folder.add("study.md", _markdown(asked, found, winners))
    told = {"title": asked.title, "description": asked.description}
    folder.add("report.html", page.of_sweep(found, command=command, **told))
    with contextlib.suppress(MissingExtraError):  # without pyarrow
        folder.add("study.parquet", found.parquet())
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


def _markdown(asked: file.Definition, found: Sweep, winners: Table | None) -> str:
    parts = [
        f"# {asked.title}" if asked.title else "",
        asked.description or "",
        found.short().markdown(),
        found.about(),
    ]
    parts += [] if winners is None else [winners.markdown()]
    return "\n\n".join(x for x in parts if x) + "\n"


def _printed(found: Sweep, winners: Table | None) -> str:
    parts = [_cut(found.short(SHOWN), len(found.points) - SHOWN, "study.csv"), found.about()]
    if winners is not None:
        parts.append(_cut(winners.first(SHOWN), len(winners.rows) - SHOWN, "study.md"))
    return "\n\n".join(parts)


def _cut(shown: Table, more: int, where: str) -> str:
    return shown.text() + (f"\n… and {more} more in {where}" if more > 0 else "")
