"""Rows and columns of files of what is published: time, group, estimate, the error that the model predicts."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.csv_cells import csv_lines, round_to_error
from dpfast._support.validation import Array
from dpfast.signals.events.declared_span import Span

COLUMNS = ("time", "group", "estimate", "predicted_rmse_if_model_holds")
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
        cells = itertools.product(self.edges(first, estimate.shape[1]), self._cells)
        lines = zip(cells, values, strict=True)
        return "".join(f"{time},{group},{value or ''},{error}\n" for (time, group), value in lines)

    @functools.cached_property
    def _cells(self) -> tuple[str, ...]:
        """Cells of the groups, written once and not again at every bin that ends."""
        return tuple(csv_lines([[group]])[:-1] for group in self.groups)

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
