"""Rows of a sweep, the simulated errors of its cases, and cells, in which some of them are compared."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dpfast._support.validation import Array
from dpfast.design.catalogue import family_label
from dpfast.filters.filter import Filter
from dpfast.mechanisms.constant import NAME
from dpfast.signals.output_variance import explained_share
from dpfast.simulation.intervals import ErrorSizes, count_events, is_rare, rmse_interval
from dpfast.simulation.study import interval_basis
from dpfast.simulation.sweep.design_cache import unpack_mechanism
from dpfast.simulation.sweep.grid import Point
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.stream_blocks import BATCHES, STREAMS

Stopped = Literal["width", "decided", "budget", "failed"]
State = Literal["decided", "tie", "undecided"]
FIGURES = (
    "rmse",
    "low",
    "high",
    "relative_width",
    "predicted_rmse",
    "ideal_rmse",
    "lower_bound_rmse",
    "explained",
    "noise_std",
    "n_streams",
    "n_samples",
    "error_events",
    "interval_by",
    "stopped",
    "note",
)

OUTPUT, ALL_OUTPUTS = "output", "all"  # a column of tables of several streams, and its word for all together
OF_DECISIONS = ("error_events", "interval_by")  # of FIGURES, those that are for receivers that decide


@dataclass(frozen=True, eq=False)
class Row:
    """Read the simulated error of one case, with an interval, beside what was predicted of it.

    Attributes
    ----------
    number : int
        The number of the case, in the order of the grid.
    group : int
        Cases of one group ran on the same inputs and unit noise: any two may be compared.
    settings : mapping
        The parameters of the grid that this case depends on, by their labels.
    family : str
    mechanism_name : str
    lag : int or None
        The samples by which the estimate is late; None for a smoother, and for a design that failed.
    predicted_mse, ideal_mse, lower_bound_mse : float or None
        The MSE of the realised filters on the simulated stream; that by the formula of the family; a lower bound for
        linear mechanisms of the lag with Gaussian noise. The second is for the model of the design, whatever the
        stream; the last is None for another stream.
    noise_std : float
        The standard deviation of the noise; NaN where the design failed.
    n_samples : int
        The counted samples of each stream.
    confidence : float
    batch_means : array, (batches,)
        The mean squared errors of batches of 8 streams: independent, identically distributed.
    stopped : {"width", "decided", "budget", "failed"}
        Why no more streams were simulated.
    sizes : ErrorSizes or None
        The sizes of errors that decisions make in a batch mean; None for a receiver without decisions.
    error : str or None
        Why there is no design.
    notes : tuple of str
        The warnings of the design.
    packed : bytes
        The content of the mechanism's file, compressed; empty where the design failed.
    variance : float or None
        The variance of the true output on the simulated stream, under its model, over the samples that count.
    has_own_stream : bool
        True where the simulated stream is the model of the design, and errors count once the filters have settled:
        bounds of the mechanism hold then.
    outputs : tuple of Row
        For several streams, the error of each output, in order; the row itself is of all together, the sum of their
        MSE. Empty for one stream.
    """

    number: int
    group: int
    settings: Mapping[str, Label]
    family: str
    mechanism_name: str
    lag: int | None
    predicted_mse: float | None
    ideal_mse: float | None
    lower_bound_mse: float | None
    noise_std: float
    n_samples: int
    confidence: float
    batch_means: Array
    stopped: Stopped
    sizes: ErrorSizes | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    packed: bytes = field(default=b"", repr=False)
    variance: float | None = None
    has_own_stream: bool = False
    outputs: tuple[Row, ...] = ()

    @property
    def is_of_several(self) -> bool:
        """Tell whether there are several outputs, which have rows of their own in tables."""
        return len(self.outputs) > 1

    @property
    def with_outputs(self) -> tuple[Row, ...]:
        """The rows of tables: the row itself and, where there are several outputs, that of each."""
        return (self, *self.outputs) if self.is_of_several else (self,)

    @property
    def output_labels(self) -> tuple[Label, ...]:
        """The labels of `with_outputs`: "all" outputs together, or the number of one; None without several."""
        return (ALL_OUTPUTS, *range(len(self.outputs))) if self.is_of_several else (None,)

    @property
    def failed(self) -> bool:
        """Tell whether there is no design, so that nothing was simulated."""
        return len(self.batch_means) == 0

    @property
    def n_streams(self) -> int:
        """The number of streams that were simulated."""
        return len(self.batch_means) * (STREAMS // BATCHES)

    @property
    def mse(self) -> float:
        """The simulated mean squared error; NaN where the design failed."""
        return math.nan if self.failed else float(self.batch_means.mean())

    @property
    def rmse(self) -> float:
        """The root of the simulated mean squared error."""
        return math.sqrt(self.mse)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval (low, high) of the RMSE, from the spread of the batches.

        It is Student's t, or wider where errors are skewed; where they are rare it is a bound that holds whatever
        they are.
        """
        return (math.nan, math.nan) if self.failed else rmse_interval(self.batch_means, self.confidence, self.sizes)

    @property
    def error_events(self) -> int | None:
        """The number of batches with a wrong decision, by the size of their errors; None without decisions."""
        return None if self.sizes is None or self.failed else count_events(self.batch_means, self.sizes)

    @property
    def is_rare(self) -> bool:
        """Tell whether errors are too rare for the spread of the batches: fewer than 16 have one, and not all."""
        return not self.failed and is_rare(self.batch_means, self.sizes)

    @property
    def drawn_interval(self) -> tuple[float, float]:
        """The interval as pictures show it: none (NaN) where it is a bound for rare errors, far above them."""
        return (math.nan, math.nan) if self.is_rare else self.interval

    @property
    def relative_width(self) -> float:
        """The width of the interval in units of the RMSE; infinite where no error was seen, but there may be some."""
        low, high = self.interval
        if self.rmse == 0:
            return math.inf if high > low else 0.0
        return (high - low) / self.rmse

    @property
    def predicted_rmse(self) -> float | None:
        """The root of `predicted_mse`."""
        return _root_or_none(self.predicted_mse)

    @property
    def ideal_rmse(self) -> float | None:
        """The root of `ideal_mse`."""
        return _root_or_none(self.ideal_mse)

    @property
    def lower_bound_rmse(self) -> float | None:
        """The root of `lower_bound_mse`."""
        return _root_or_none(self.lower_bound_mse)

    @functools.cached_property
    def additive_bound_rmse(self) -> float | None:
        """The RMSE that no linear receiver behind additive noise goes below, whatever its law: :func:`additive_bound`.

        It is for target, privacy, model and lag of the row, and takes some hundredths of a second, once. None where it
        is not known to hold: for other receivers or streams, over a horizon, and for a design that failed.
        """
        if self.failed or not self.has_own_stream:
            return None
        mechanism = unpack_mechanism(self.packed)
        if not isinstance(mechanism.target, Filter) or not mechanism.bound_terms().additive:
            return None
        return math.sqrt(mechanism.additive_bound_mse)

    @property
    def explained(self) -> float | None:
        """1 - simulated MSE/variance of the true output; None where the design failed."""
        return None if self.failed else explained_share(self.mse, self.variance)

    def figures(self) -> dict[str, Any]:
        """Return what tables show of the row, by the names of the columns."""
        note = self.error or "; ".join(self.notes)
        values = (
            *(self.rmse, *self.interval, self.relative_width),
            *(self.predicted_rmse, self.ideal_rmse, self.lower_bound_rmse, self.explained, self.noise_std),
            *(self.n_streams, self.n_samples, self.error_events),
            *(None if self.failed else interval_basis(self.is_rare), self.stopped, note),
        )
        return dict(zip(FIGURES, values, strict=True))


def constant_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return what tables show of publishing the mean, which needs no simulation: a row for each group of cases.

    The labels are those of what it depends on, target and stream.
    """
    found: dict[tuple[int, float | None, Label], dict[str, Any]] = {}
    for row in rows:
        for output, each in zip(row.output_labels, row.with_outputs, strict=True):
            if each.variance is not None and (row.group, row.variance, output) not in found:
                found[row.group, row.variance, output] = {**_constant_figures(each, each.variance), OUTPUT: output}
    return list(found.values())


def _constant_figures(row: Row, variance: float) -> dict[str, Any]:
    """Return what is known of publishing the mean of what a row is of."""
    labels = {x: row.settings[x] for x in _OF_CONSTANT if x in row.settings}
    if "stream" in labels:
        labels.pop("model", None)  # the model of the design
    figures = dict.fromkeys(FIGURES) | dict.fromkeys(FIGURES[:4], math.nan)
    figures |= {"predicted_rmse": math.sqrt(variance), "explained": 0.0, "noise_std": 0.0}
    figures |= {"n_streams": 0, "n_samples": row.n_samples, "note": ""}
    return {"mechanism": NAME, **labels, **figures}


_OF_CONSTANT = ("target", "stream", "model")


class Cell(NamedTuple):
    """Look at cases of a sweep that differ in some axes only, and at which of them errs least.

    Attributes
    ----------
    contest : tuple of str
        The axes in which they differ.
    labels : mapping
        The labels of the other axes.
    rows : tuple of Row
        The rows without failed designs: the one that errs least and the one nearest to it, on the streams that they
        share; the others from the least simulated RMSE up.
    state : {"decided", "tie", "undecided"}
        Whether the best is separated from all others, or equal to the bit to some and separated from the rest.
    """

    contest: tuple[str, ...]
    labels: Mapping[str, Label]
    rows: tuple[Row, ...]
    state: State

    @property
    def best(self) -> Row:
        """The row that errs least."""
        return self.rows[0]

    @property
    def second(self) -> Row | None:
        """The row nearest to the best; None where there is no other."""
        return self.rows[1] if len(self.rows) > 1 else None

    def name(self, row: Row) -> str:
        """Name a row among those of the cell."""
        told = (row.settings[axis] for axis in self.contest if row.settings.get(axis) is not None)
        return ", ".join(family_label(str(x)) for x in told)


def check_comparable(first: Row, second: Row) -> None:
    """Refuse rows that were not simulated on the same streams."""
    if first.failed or second.failed:
        failed = first if first.failed else second
        raise ValueError(f"rows that are compared must be of designs that did not fail, got case {failed.number}")
    if first.group != second.group:
        raise ValueError(
            "rows that are compared must be of one stream and one target, which ran on the same inputs, "
            f"got cases {first.number} and {second.number}"
        )


def group_cells(points: Sequence[Point], contest: Sequence[str]) -> Iterator[tuple[dict[str, Label], tuple[int, ...]]]:
    """Group the cases of points that agree in all axes but some, each case once; yield the labels of a cell too."""
    found: dict[tuple[Any, ...], tuple[dict[str, Label], dict[int, None]]] = {}
    for point in points:
        others = {name: family_label for name, family_label in point.labels.items() if name not in contest}
        found.setdefault(tuple(others.items()), (others, {}))[1][point.case] = None
    for labels, cases in found.values():
        yield labels, tuple(cases)


def _root_or_none(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)
