"""Files of what is published: time, group, estimate, the error that the model predicts; never a true value."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.csv_cells import csv_lines, round_to_error, unescape
from dpfast._support.errors import DataError
from dpfast._support.validation import Array
from dpfast.signals.events.declared_counts import Span

COLUMNS = ("time", "group", "estimate", "predicted_rmse_if_model_holds")
# of earlier versions: a file that was begun under this header goes on under it
_EARLIER = ("time", "group", "estimate", "standard_error")
_SECOND = 1_000_000


@dataclass(frozen=True)
class Layout:
    """The rows of a file of estimates: bin by bin, in each the groups in the declared order.

    Attributes
    ----------
    span : Span
    groups : tuple of str
    predicted_rmse_if_model_holds : float or None
        The same in every row: the root mean square error that is predicted if the data follow the model of the design;
        empty where there is none.
    """

    span: Span
    groups: tuple[str, ...]
    predicted_rmse_if_model_holds: float | None

    def csv(self, first: int, estimate: Array) -> str:
        """Write lines of estimates (groups, n) of the bins from `first` on, with the digits that their error leaves."""
        values = round_to_error(estimate.T.ravel().tolist(), self.predicted_rmse_if_model_holds)
        error = "" if self.predicted_rmse_if_model_holds is None else f"{self.predicted_rmse_if_model_holds:.6g}"
        labels = self.labels(first, estimate.shape[1])
        return csv_lines((time, group, value, error) for (time, group), value in zip(labels, values, strict=True))

    def labels(self, first: int, count: int) -> Iterator[tuple[str, str]]:
        """Return time and group of each row."""
        return itertools.product(self.edges(first, count), self.groups)

    def edges(self, first: int, count: int) -> list[str]:
        """Return left edges of bins, as texts."""
        whole = self.span.start % _SECOND == self.span.period % _SECOND == 0
        zone: Any = "UTC" if self.span.utc else "naive"
        times = np.datetime_as_string(self._times(first, count), unit="s" if whole else "us", timezone=zone)
        texts: list[str] = times.tolist()
        return texts

    def _times(self, first: int, count: int) -> NDArray[np.datetime64]:
        """Return left edges of bins."""
        edges = self.span.time(first) + self.span.period * np.arange(count, dtype=np.int64)
        return edges.astype("datetime64[us]")

    def parquet(self, estimate: Array) -> bytes:
        """Write estimates (groups, n_bins) as a Parquet file, with times in microseconds, in UTC or without a zone."""
        arrow = validation.optional("pyarrow", "parquet")
        writer = validation.optional("pyarrow.parquet", "parquet")
        n_groups, n_bins = estimate.shape
        edges = np.repeat(self._times(0, n_bins), n_groups)
        time = arrow.array(edges, arrow.timestamp("us", tz="UTC" if self.span.utc else None))
        codes = arrow.array(np.tile(np.arange(n_groups, dtype=np.int32), n_bins))
        columns = [
            time,
            arrow.DictionaryArray.from_arrays(codes, arrow.array(self.groups)),
            arrow.array(estimate.T.ravel()),
            arrow.array([self.predicted_rmse_if_model_holds] * len(edges), arrow.float64()),
        ]
        buffer = io.BytesIO()
        writer.write_table(arrow.Table.from_arrays(columns, names=COLUMNS), buffer)
        return buffer.getvalue()


HEADER = csv_lines([COLUMNS])


class Journal:
    """A CSV file that grows by whole bins: what was appended stays, and after a crash it goes on behind the last one.

    Parameters
    ----------
    path : Path
        Made where there is none. A bin that was written in part is cut off, and is to be appended again. A file whose
        last column is called "standard_error", as an earlier version named it, goes on under that header.
    layout : Layout

    Attributes
    ----------
    position : int
        The next bin.

    Raises
    ------
    DataError
        For a file that holds something else than the first bins of this layout.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self._layout = layout
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        except OSError as error:
            raise DataError(f"cannot write to {path}: {error.strerror}; choose another folder") from None
        try:
            self.position = self._resume(path)
        except BaseException:
            self._file.close()
            raise

    def _resume(self, path: Path) -> int:
        there = self._file.read().splitlines(keepends=True)
        if there and not there[-1].endswith(b"\n"):
            there.pop()
        n_groups = len(self._layout.groups)
        position = max(0, len(there) - 1) // n_groups
        kept = b"".join(there[: 1 + position * n_groups]) or HEADER.encode()
        header, *rows = csv.reader(kept.decode(errors="replace").splitlines())
        found, wanted = [tuple(map(unescape, row[:2])) for row in rows], list(self._layout.labels(0, position))
        if tuple(header) not in (COLUMNS, _EARLIER) or found != wanted:
            raise DataError(
                f"{path} must hold the first bins of this release, got something else: choose another folder"
            )
        self._file.seek(0)
        self._write(kept)
        return position

    def append(self, first: int, estimate: Array) -> None:
        """Write the estimates (groups, n) of bins from `first` on, on the disk when this returns.

        Those outside of the span, and those that are there already, are left out.
        """
        last = min(first + estimate.shape[1], self._layout.span.n_bins)
        if last > self.position:
            if first > self.position:
                raise ValueError(f"first must be at most the next bin, {self.position}, got {first}")
            self._write(self._layout.csv(self.position, estimate[:, self.position - first : last - first]).encode())
            self.position = last

    def _write(self, content: bytes) -> None:
        """Write, and cut off what is behind it."""
        self._file.write(content)
        self._file.truncate()
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
