"""Bins that ended while the process was not running: they depend on the clock and on when it ran, on no event."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np

from dpfast._support.atomic_files import replace_file
from dpfast._support.csv_cells import csv_lines
from dpfast._support.errors import DataError
from dpfast.releases.estimates_layout import Layout

NAME = "missed.csv"
COLUMNS = ("from", "until")


def write_missed(path: Path, layout: Layout, missed: range) -> None:
    """Write intervals of bins, those of earlier runs too; on the disk when this returns.

    Call it before the first of the missed bins is published. What an earlier run marked from there on, it did not come
    to publish.

    Raises
    ------
    DataError
        For a file that holds something else than intervals of bins of this layout.
    """
    edges = layout.edges(0, layout.span.n_bins + 1)
    intervals = [(first, min(end, missed.start)) for first, end in _read(path, edges) if first < missed.start]
    if missed and intervals and intervals[-1][1] == missed.start:
        missed = range(intervals.pop()[0], missed.stop)
    if missed:
        intervals.append((missed.start, missed.stop))
    replace_file(path, csv_lines([COLUMNS, *((edges[first], edges[end]) for first, end in intervals)]))


def count_missed(folder: Path, period: int) -> int:
    """Count the bins of so many microseconds in the file of a folder; none where it is missing or something else."""
    try:
        header, *rows = csv.reader((folder / NAME).read_text(encoding="utf-8").splitlines())
        edges = np.array([[x.removesuffix("Z") for x in row] for row in rows], "datetime64[us]").reshape(-1, 2)
    except (OSError, ValueError):
        return 0
    lengths = (edges[:, 1] - edges[:, 0]).astype(np.int64)
    return int(lengths.sum()) // period if tuple(header) == COLUMNS else 0


def _read(path: Path, edges: list[str]) -> list[tuple[int, int]]:
    """Return intervals of bins, in their order; none where there is no file."""
    try:
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        number = {edge: i for i, edge in enumerate(edges)}
        intervals = [(number[first], number[end]) for first, end in rows]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError):
        raise _foreign_file_error(path) from None
    bins = list(itertools.chain.from_iterable(intervals))
    if tuple(header) != COLUMNS or any(x >= y for x, y in itertools.pairwise(bins)):
        raise _foreign_file_error(path)
    return intervals


def _foreign_file_error(path: Path) -> DataError:
    return DataError(f"{path} must hold intervals of bins of this release, got something else: move it away")
