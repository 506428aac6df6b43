"""A sweep in a TOML file: ``dpfast study FILE``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpfast._support.errors import DataError
from dpfast._support.settings_file import check_text, read_words, underscored
from dpfast.simulation.sweep.grid import ParameterGrid

OF_SWEEP = (*("seed", "store", "n_samples", "burn_in", "width", "decide", "budget", "confidence", "dtype", "workers"),)
OF_FILE = ("title", "description", *OF_SWEEP, "out", "grid")
OUT, STORE = "dpfast-study", "study.sqlite"
NOT_ASKED = "none"  # what TOML, which has no word for it, says of a width


@dataclass(frozen=True)
class Definition:
    """A sweep that is asked for.

    Attributes
    ----------
    grid : ParameterGrid
    options : mapping
        Other arguments of :func:`sweep`; what is not said is left to its defaults.
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


def read(path: str, given: Mapping[str, Any]) -> Definition:
    """The sweep that a TOML file and arguments, which go before it, ask for.

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
    out = Path(words.get("out", OUT))
    options = {"store": str(out / STORE)} | {name: words[name] for name in OF_SWEEP if name in words}
    if options.get("width") == NOT_ASKED:
        options["width"] = None
    if "decide" in options:
        options["decide"] = _axes(options["decide"])
    return Definition(
        ParameterGrid(_parts(path, words["grid"])), options, out, words.get("title"), words.get("description")
    )


def _axes(decide: Any) -> list[str]:
    """One axis, or several."""
    return [underscored(check_text("decide", x)) for x in (decide if isinstance(decide, list) else [decide])]


def _parts(path: str, grid: Any) -> list[dict[str, Any]]:
    """Tables of parameters, which may have - or _."""
    tables = grid if isinstance(grid, list) else [grid]
    if not tables or not all(isinstance(x, dict) for x in tables):
        raise DataError(f"{path} must have a table [grid], or several [[grid]]")
    parts = [{underscored(name): x for name, x in table.items()} for table in tables]
    if any(len(part) < len(table) for part, table in zip(parts, tables, strict=True)):
        raise DataError(f"{path} must have every parameter of a grid once, with - or with _")
    return parts
