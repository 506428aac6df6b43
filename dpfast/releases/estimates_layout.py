"""Rows and columns of files of what is published: time, group, estimate, the error that the model predicts."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.csv_cells import csv_lines, round_to_error
from dpfast._support.validation import Array
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.signals.events.declared_span import Span

COLUMNS = ("time", "group", "estimate", "predicted_rmse_if_model_holds")
_SECOND = 1_000_000


class Outputs(NamedTuple):
    """Names of outputs that several streams have together, and the error of each that the models predict."""

    names: tuple[str, ...]
    rmse: tuple[float, ...]


@dataclass(frozen=True)
class Layout:
    """The rows of a file of estimates: bin by bin, in each the groups in the declared order, or outputs of them.

    Attributes
    ----------
    span : Span
    groups : tuple of str
    predicted_rmse_if_model_holds : float or None
        The same in every row: the root mean square error that is predicted if the data follow the model of the design;
        empty where there is none.
    outputs : Outputs, optional
        Where estimates are not one of each group, but of several together.
    contradicted_from : int, optional
        The bin from which on the predicted error is left empty, as v contradicts the model that it follows from.
    """

    span: Span
    groups: tuple[str, ...]
    predicted_rmse_if_model_holds: float | None
    outputs: Outputs | None = None
    contradicted_from: int | None = None

    @classmethod
    def of(cls, plan: ExactBase, span: Span, groups: tuple[str, ...]) -> Self:
        """Return the rows of what a mechanism publishes of groups."""
        errors = plan.output_rmse_if_model_holds
        outputs = None if errors is None else Outputs(plan.output_names(groups), errors)
        return cls(span, groups, plan.predicted_rmse_if_model_holds, outputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimates of a bin, in the order of the rows."""
        return self.groups if self.outputs is None else self.outputs.names

    @property
    def _errors(self) -> tuple[float | None, ...]:
        """Return the predicted error of each estimate of a bin."""
        if self.outputs is not None:
            return self.outputs.rmse
        return (self.predicted_rmse_if_model_holds,) * len(self.groups)

    def csv(self, first: int, estimate: Array) -> str:
        """Write lines of estimates (names, n) of the bins from `first` on, with the digits that their error leaves."""
        n_bins, n_stated = estimate.shape[1], self._count_stated(first, estimate.shape[1])
        times = self.edges(first, n_bins)
        cells = itertools.chain(
            itertools.product(times[:n_stated], self._cells),
            itertools.product(times[n_stated:], ((name, "") for name, _ in self._cells)),
        )
        lines = zip(cells, self._rounded(estimate), strict=True)
        return "".join(f"{time},{name},{value or ''},{error}\n" for (time, (name, error)), value in lines)

    def _count_stated(self, first: int, n_bins: int) -> int:
        """Count the bins from `first` on whose rows state the predicted error."""
        if self.contradicted_from is None:
            return n_bins
        return min(max(self.contradicted_from - first, 0), n_bins)

    def _rounded(self, estimate: Array) -> Iterable[str | None]:
        """Round estimates to the digits that their error leaves, bin by bin."""
        if self.outputs is None:  # as there may be a million groups
            return round_to_error(estimate.T.ravel().tolist(), self.predicted_rmse_if_model_holds)
        rows = (round_to_error(row.tolist(), error) for row, error in zip(estimate, self._errors, strict=True))
        return itertools.chain.from_iterable(zip(*rows, strict=True))

    @functools.cached_property
    def _cells(self) -> tuple[tuple[str, str], ...]:
        """Cells of names and of errors, written once and not again at every bin that ends."""
        errors = ("" if x is None else f"{x:.6g}" for x in self._errors)
        return tuple((csv_lines([[name]])[:-1], x) for name, x in zip(self.names, errors, strict=True))

    def labels(self, first: int, count: int) -> Iterator[tuple[str, str]]:
        """Return time and name of each row."""
        return itertools.product(self.edges(first, count), self.names)

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
        """Write estimates (names, n_bins) as a Parquet file, with times in microseconds, in UTC or without a zone."""
        arrow = validation.optional("pyarrow", "parquet")
        writer = validation.optional("pyarrow.parquet", "parquet")
        n_names, n_bins = estimate.shape
        edges = np.repeat(self._times(0, n_bins), n_names)
        time = arrow.array(edges, arrow.timestamp("us", tz="UTC" if self.span.utc else None))
        n_stated = self._count_stated(0, n_bins)
        errors = [*self._errors] * n_stated + [None] * (n_names * (n_bins - n_stated))
        codes = arrow.array(np.tile(np.arange(n_names, dtype=np.int32), n_bins))
        columns = [
            time,
            arrow.DictionaryArray.from_arrays(codes, arrow.array(self.names)),
            arrow.array(estimate.T.ravel()),
            arrow.array(errors, arrow.float64()),
        ]
        buffer = io.BytesIO()
        writer.write_table(arrow.Table.from_arrays(columns, names=COLUMNS), buffer)
        return buffer.getvalue()


HEADER = csv_lines([COLUMNS])
