"""The command ``dpfast study``: a sweep from a TOML file, and a folder of what it found."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast._support.errors import DataError, MissingExtraError
from dpfast._support.output_folder import OutputFolder
from dpfast._support.settings_file import check_text, read_words, replace_hyphens
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.cli.options import OUT, at_least, width
from dpfast.cli.output import require_matplotlib, write_files
from dpfast.cli.study_inputs import read_inputs
from dpfast.reports.matplotlib_helpers import render_png
from dpfast.reports.sweep import sweep_page, sweep_pictures
from dpfast.simulation.sweep import tables
from dpfast.simulation.sweep.executors import connect_dask
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.result import SHOWN, Sweep
from dpfast.simulation.sweep.sweep import sweep

SUMMARY = "simulate a grid of designs, each until its error is known well enough"
DESCRIPTION = (
    "Runs the sweep that a TOML file describes. It can be interrupted and resumed: what is finished is kept. "
    "Arguments override the file."
)
OF_SWEEP = ("seed", "store", "n_samples", "burn_in", "width", "decide", "budget", "confidence", "dtype", "workers")
OF_FILE = ("title", "description", *OF_SWEEP, "out", "grid")
FOLDER, STORE = "dpfast-study", "study.sqlite"  # where the file and the arguments name no other
UNLIMITED = "none"  # stands for the width None, for which TOML has no word
_OVERRIDES = ("out", "store", "workers", "width", "budget", "seed")


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the file, and what overrides it: without defaults, as the file may give them."""
    described = "run the sweep that this TOML file describes; see docs/guides/study.md"
    command.add_argument("file", metavar="FILE", help=described)
    command.add_argument("--out", metavar="DIR", help=OUT.format(FOLDER))
    command.add_argument(
        "--store",
        metavar="FILE",
        help="keep what is finished in this SQLite file, for this and other sweeps (default: OUT/study.sqlite)",
    )
    command.add_argument("--seed", type=at_least(0), metavar="N", help="draw inputs and noise from this seed")
    length = command.add_argument_group("how long")
    length.add_argument(
        "--width",
        type=width,
        metavar="W",
        help="stop when the interval of an RMSE is at most this wide, in units of the RMSE, or 'none' (default: 0.01)",
    )
    length.add_argument(
        "--budget", type=float, metavar="N", help="count at most this many samples of a case (default: 1e8)"
    )
    engine = command.add_argument_group("where")
    engine.add_argument(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="run in this many processes of one thread each (default: in this one)",
    )
    engine.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786"
    )
    command.add_argument("--verbose", action="store_true", help="log what is done to standard error")


def run(options: argparse.Namespace) -> str:
    """Run the sweep, write the files, and return the tables.

    Raises
    ------
    KeyboardInterrupt
        With a text that tells how far the sweep was, and the command that resumes it.
    """
    require_matplotlib()
    definition = read_definition(options.file, {name: getattr(options, name) for name in _OVERRIDES})
    folder = OutputFolder(definition.out)
    with _log_to_stderr(options.verbose), _make_folder(definition.out), _open_executor(options.dask) as executor:
        try:
            found = sweep(definition.grid, **definition.options, executor=executor, progress=sys.stderr.isatty())
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"{stop}: {options.line}") from None
    winners = tables.winners_table(found.winners()) if found.contest else None
    folder.add("study.csv", found.table().csv())
    folder.add("study.md", _render_markdown(definition, found, winners))
    title, description = definition.title, definition.description
    folder.add("report.html", sweep_page.sweep_page(found, command=options.line, title=title, description=description))
    with contextlib.suppress(MissingExtraError):  # without pyarrow
        folder.add("study.parquet", found.parquet())
    for name, figure in sweep_pictures.draw_all(found).items():
        folder.add(name, render_png(figure))
    return write_files(folder, _summarize(found, winners))


# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyDefinition:
    """A sweep that a file and arguments describe.

    Attributes
    ----------
    grid : ParameterGrid
    options : mapping
        Other arguments of :func:`sweep`; those that are not given are left to its defaults.
    out : Path
        The folder for the files.
    title, description : str or None
        For the report.
    """

    grid: ParameterGrid
    options: Mapping[str, Any]
    out: Path
    title: str | None = None
    description: str | None = None


def read_definition(path: str, given: Mapping[str, Any]) -> StudyDefinition:
    """Read the sweep that a TOML file describes; arguments override it.

    Parameters
    ----------
    path : str
        A file with a table ``[grid]``, or several ``[[grid]]``, of parameters as in :class:`ParameterGrid`; and the
        words of :func:`sweep`, out, title and description before it. Words may have - or _; a width may be "none".
        Paths are relative to the current folder.
    given : mapping
        Words with an underscore; None for those that were not given.

    Raises
    ------
    DataError
        Where the file cannot be read, or is none with these words.
    ValueError
        For values that cannot be used.
    """
    words = read_words(Path(path), OF_FILE) | {name: x for name, x in given.items() if x is not None}
    for name in ("grid", "seed"):
        if name not in words:
            raise ValueError(f"{name} must be given in {path}{', or as --seed' * (name == 'seed')}")
    for name in ("out", "store", "title", "description", "dtype"):
        if name in words:
            check_text(name, words[name])
    out = Path(words.get("out", FOLDER))
    options = {"store": str(out / STORE)} | {name: words[name] for name in OF_SWEEP if name in words}
    if options.get("width") == UNLIMITED:
        options["width"] = None
    if "decide" in options:
        options["decide"] = _read_axes(options["decide"])
    return StudyDefinition(
        ParameterGrid(_read_parts(path, words["grid"])), options, out, words.get("title"), words.get("description")
    )


def _read_axes(decide: Any) -> list[str]:
    """Return the names of axes, which a file may give as one text or as a list."""
    return [replace_hyphens(check_text("decide", x)) for x in (decide if isinstance(decide, list) else [decide])]


def _read_parts(path: str, grid: Any) -> list[dict[str, Any]]:
    """Return the tables of parameters, with _ in the place of - in their names."""
    tables = grid if isinstance(grid, list) else [grid]
    if not tables or not all(isinstance(x, dict) for x in tables):
        raise DataError(f"{path} must have a table [grid], or several [[grid]]")
    parts = [{replace_hyphens(name): x for name, x in table.items()} for table in tables]
    if any(len(part) < len(table) for part, table in zip(parts, tables, strict=True)):
        raise DataError(
            f"{path} must have every parameter of a grid once, got one with - and with _: leave one of them out"
        )
    return [read_inputs(part) for part in parts]


# --- while it runs ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _log_to_stderr(verbose: bool) -> Iterator[None]:
    """Log the sweep to standard error, if that is wanted."""
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
def _make_folder(folder: Path) -> Iterator[None]:
    """Make a folder for the store, and remove it where nothing came into it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it holds something
            folder.rmdir()


def _open_executor(address: str | None) -> Any:
    """Return the context of an executor on a cluster, or of None."""
    return contextlib.nullcontext() if address is None else connect_dask(address)


# --- what is written ------------------------------------------------------------------------------


def _render_markdown(definition: StudyDefinition, found: Sweep, winners: Table | None) -> str:
    parts = [
        f"# {definition.title}" if definition.title else "",
        definition.description or "",
        found.short().markdown(),
        *found.explain_marks(),
        found.about(),
    ]
    parts += [] if winners is None else [winners.markdown()]
    return "\n\n".join(x for x in parts if x) + "\n"


def _summarize(found: Sweep, winners: Table | None) -> str:
    first = _render_first(found.short(SHOWN), len(found.points) - SHOWN, "study.csv", found.confidence)
    below = map(wrap_paragraph, (*found.explain_marks(SHOWN), found.about()))
    parts = [*map(wrap_paragraph, found.say_winners()), first, *below]
    if winners is not None:
        more = len(winners.rows) - SHOWN
        parts.append(_render_first(winners.first(SHOWN), more, "study.md", found.confidence))
    return "\n\n".join(parts)


def _render_first(shown: Table, more: int, where: str, confidence: float) -> str:
    """Render the first rows of a table, and say how many more there are in a file."""
    return tables.print_short(shown, where, confidence) + (f"\n… and {more} more in {where}" if more > 0 else "")
