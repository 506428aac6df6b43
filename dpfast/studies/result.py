"""What a sweep found: a row for each case, cells that compare them, tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

from dpfast import _validate
from dpfast._validate import Array
from dpfast.mechanism import Mechanism
from dpfast.montecarlo import Comparison, paired, rmse_interval
from dpfast.report.folder import Folder
from dpfast.report.table import Table
from dpfast.studies.block import BATCHES, STREAMS
from dpfast.studies.designs import unpacked
from dpfast.studies.grid import Point
from dpfast.studies.parquet import parquet
from dpfast.studies.rule import Outcome, Rule
from dpfast.studies.values import Label

Stopped = Literal["width", "decided", "budget", "failed"]
State = Literal["decided", "tie", "undecided"]
_FIGURES = (
    "rmse",
    "low",
    "high",
    "relative_width",
    "predicted_rmse",
    "ideal_rmse",
    "lower_bound_rmse",
    "noise_std",
    "n_streams",
    "n_samples",
    "stopped",
    "note",
)
SHOWN = 40  # rows of a printed sweep


@dataclass(frozen=True, eq=False)
class Row:
    """The simulated error of one case, with an interval, beside what was predicted of it.

    Attributes
    ----------
    number : int
        Of the case, in the order of the grid.
    group : int
        Cases of one group ran on the same inputs and unit noise: any two may be compared.
    settings : mapping
        The parameters of the grid that this case depends on, by their labels.
    family : str
    mechanism_name : str
    lag : int or None
        Samples by which the estimate is late; None for a smoother, and for a design that failed.
    predicted_mse, ideal_mse, lower_bound_mse : float or None
        Of the realised filters on the simulated stream; by the formula of the family; for all linear mechanisms of
        the lag.
    noise_std : float
        NaN where the design failed.
    n_samples : int
        Counted samples of each stream.
    confidence : float
    batch_means : array, (batches,)
        Mean squared errors of batches of 8 streams: independent, identically distributed.
    stopped : {"width", "decided", "budget", "failed"}
        Why no more streams were simulated.
    error : str or None
        Why there is no design.
    notes : tuple of str
        Warnings of the design.
    packed : bytes
        The content of the mechanism's file, compressed; empty where the design failed.
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
    error: str | None = None
    notes: tuple[str, ...] = ()
    packed: bytes = field(default=b"", repr=False)

    @property
    def failed(self) -> bool:
        """Whether there is no design, and so nothing was simulated."""
        return len(self.batch_means) == 0

    @property
    def n_streams(self) -> int:
        """Streams that were simulated."""
        return len(self.batch_means) * (STREAMS // BATCHES)

    @property
    def mse(self) -> float:
        """Simulated mean squared error; NaN where the design failed."""
        return math.nan if self.failed else float(self.batch_means.mean())

    @property
    def rmse(self) -> float:
        """Root of the simulated mean squared error."""
        return math.sqrt(self.mse)

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval (low, high) of the RMSE, from the spread of the batches (Student's t)."""
        return (math.nan, math.nan) if self.failed else rmse_interval(self.batch_means, self.confidence)

    @property
    def relative_width(self) -> float:
        """Width of the interval in units of the RMSE."""
        low, high = self.interval
        return (high - low) / self.rmse if self.rmse else high - low

    @property
    def predicted_rmse(self) -> float | None:
        """Root of `predicted_mse`."""
        return _root(self.predicted_mse)

    @property
    def ideal_rmse(self) -> float | None:
        """Root of `ideal_mse`."""
        return _root(self.ideal_mse)

    @property
    def lower_bound_rmse(self) -> float | None:
        """Root of `lower_bound_mse`."""
        return _root(self.lower_bound_mse)

    def figures(self) -> dict[str, Any]:
        """What tables show of it."""
        note = self.error or "; ".join(self.notes)
        values = (
            *(self.rmse, *self.interval, self.relative_width),
            *(self.predicted_rmse, self.ideal_rmse, self.lower_bound_rmse, self.noise_std),
            *(self.n_streams, self.n_samples, self.stopped, note),
        )
        return dict(zip(_FIGURES, values, strict=True))


class Cell(NamedTuple):
    """Cases that differ in some axes only, and which of them errs least.

    Attributes
    ----------
    labels : mapping
        The other axes.
    rows : tuple of Row
        Without failed designs: the one that errs least and the one nearest to it, on the streams that they share; the
        others from the least simulated RMSE up.
    state : {"decided", "tie", "undecided"}
        Whether the best is separated from all others, or equal to the bit to some and separated from the rest.
    """

    labels: Mapping[str, Label]
    rows: tuple[Row, ...]
    state: State

    @property
    def best(self) -> Row:
        """The row that errs least."""
        return self.rows[0]

    @property
    def second(self) -> Row | None:
        """The one nearest to it."""
        return self.rows[1] if len(self.rows) > 1 else None


@dataclass(frozen=True, eq=False)
class Sweep:
    """A table of studies: the rows of a grid's cases; iterable, printable.

    Made by :func:`sweep`. The parts of a sweep that :meth:`where` gives are sweeps too.

    Attributes
    ----------
    rows : tuple of Row
        One for each case: points of the grid that differ in what a mechanism does not depend on share one.
    points : tuple of Point
        Of the grid: labels of all axes, and the number of the case.
    axes : mapping
        Parameters with several values, and their labels in order.
    configuration : mapping
        All that decides what the blocks of the sweep hold.
    digest : str
        Its SHA-256.
    seed, n_samples : int
    confidence : float
    rule : str
        How long cases were simulated, in words.
    budget_blocks : int
        Blocks of a case, at most: how often a decision may be looked at, for which its level is corrected.
    """

    rows: tuple[Row, ...]
    points: tuple[Point, ...]
    axes: Mapping[str, Sequence[Label]]
    configuration: Mapping[str, Any]
    digest: str
    seed: int
    n_samples: int
    confidence: float
    rule: str
    budget_blocks: int

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **labels: Label | Sequence[Label]) -> Sweep:
        """The points with these labels; several labels of one axis as a list.

        Raises
        ------
        ValueError
            For an axis or a label that there is none of.
        """
        wanted = {name: self._labels(name, given) for name, given in labels.items()}
        points = tuple(x for x in self.points if all(x.labels[name] in those for name, those in wanted.items()))
        kept = {x.case for x in points}
        axes = {name: [x for x in values if x in wanted.get(name, values)] for name, values in self.axes.items()}
        return replace(self, rows=tuple(x for x in self.rows if x.number in kept), points=points, axes=axes)

    def _labels(self, name: str, given: Any) -> list[Label]:
        if name not in self.axes:
            raise ValueError(f"where must name one of the axes {', '.join(self.axes) or '(none)'}, got {name!r}")
        several = list(given) if isinstance(given, (list, tuple)) else [given]
        for label in several:
            if label not in self.axes[name]:
                raise ValueError(f"{name} must be one of {', '.join(map(str, self.axes[name]))}, got {label!r}")
        return several

    def row(self, **labels: Label) -> Row:
        """The only row with these labels.

        Raises
        ------
        ValueError
            Where there is none, or several.
        """
        rows = self.where(**labels).rows
        if len(rows) != 1:
            raise ValueError(
                f"labels must leave one row, got {len(rows)}: name more, or fewer, of {', '.join(self.axes)}"
            )
        return rows[0]

    def compare(self, first: Row, second: Row) -> Comparison:
        """Paired comparison of two rows, on the streams that both were simulated on.

        Raises
        ------
        ValueError
            For rows of different groups or of another sweep, which ran on different inputs, and for a failed design.
        """
        if first not in self.rows or second not in self.rows:
            raise ValueError("rows that are compared must be of this sweep: others, with other seeds, share no streams")
        _check_comparable(first, second)
        n = min(len(first.batch_means), len(second.batch_means))
        return paired(first.batch_means[:n], second.batch_means[:n], self.confidence)

    def winners(self, *contest: str) -> tuple[Cell, ...]:
        """Which value of an axis, or of several together, errs least, for all values of the other axes.

        A cell without any design is left out. The level of each decision is corrected for the pairs in the cell and
        for the looks at the data: the probability that any decision of a cell is wrong is at most 1 - confidence.

        Parameters
        ----------
        *contest : str
            Axes; "mechanism" where none is named.

        Raises
        ------
        ValueError
            For an axis that there is none of, or along which stream or target change.
        """
        contest = contest or ("mechanism",)
        for axis in contest:
            _validate.choice("contest", axis, self.axes)
        rows = {x.number: x for x in self.rows}
        parts = list(cells(self.points, contest))
        found = [(labels, [rows[x] for x in cases if not rows[x].failed]) for labels, cases in parts]
        live = [(labels, some) for labels, some in found if some]
        outcomes = self._outcomes([some for _, some in live])
        return tuple(
            Cell(labels, self._ranked(some, x), cast("State", x.state))
            for (labels, some), x in zip(live, outcomes, strict=True)
        )

    def _ranked(self, rows: list[Row], outcome: Outcome) -> tuple[Row, ...]:
        """What was compared comes first: cases that ran on more streams may have other means on those they share."""
        first = [self.rows[x] for x in (outcome.winner, outcome.runner_up) if x is not None]
        return (*first, *sorted((x for x in rows if x not in first), key=lambda x: x.mse))

    def _outcomes(self, contests: list[list[Row]]) -> tuple[Outcome, ...]:
        """The best of each, and whether it is known to be it."""
        for rows in contests:
            for row in rows:
                _check_comparable(rows[0], row)
        place = {x.number: i for i, x in enumerate(self.rows)}
        contested = tuple(tuple(place[x.number] for x in rows) for rows in contests)
        n = [len(x.batch_means) // BATCHES for x in self.rows]
        rule = Rule(None, contested, self.budget_blocks, self.confidence)
        return rule.look(lambda i: self.rows[i].batch_means, n).outcomes

    def mechanism(self, row: Row) -> Mechanism:
        """The mechanism of a row, complete.

        Raises
        ------
        ValueError
            Where its design failed.
        """
        if row.error is not None:
            raise ValueError(f"row must be of a design that did not fail, got one with the error: {row.error}")
        return unpacked(row.packed)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the tidy table: axes, other parameters, figures."""
        settings = dict.fromkeys(name for row in self.rows for name in row.settings)
        return (*dict.fromkeys([*self.axes, *settings]), *_FIGURES)

    def table(self) -> Table:
        """Tidy: a row for each point of the grid, with all its labels."""
        rows, columns = {x.number: x for x in self.rows}, self.columns
        figures = {number: row.figures() for number, row in rows.items()}
        cells = ({**rows[x.case].settings, **x.labels, **figures[x.case]} for x in self.points)
        return Table(columns, tuple(tuple(cell.get(name) for name in columns) for cell in cells))

    def to_pandas(self) -> Any:
        """A tidy pandas DataFrame: a row for each point of the grid."""
        pandas = _validate.optional("pandas", "pandas")
        table = self.table()
        return pandas.DataFrame.from_records(list(table.rows), columns=list(table.columns))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The tidy table as a Parquet file, digest of the sweep and version in its metadata.

        Raises
        ------
        DataError
            Where the file cannot be written.
        """
        file = _validate.path("path", path)
        folder = Folder(file.parent)
        folder.add(file.name, self.parquet())
        folder.write()

    def parquet(self) -> bytes:
        """The content of such a file."""
        return parquet(self.table(), {"sweep": self.digest, "dpfast": self.configuration["dpfast"]})

    def short(self, n_rows: int | None = None) -> Table:
        """The columns that matter most, of the first points."""
        table = self.table()
        shown = (*self.axes, "rmse", "low", "high", "predicted_rmse", "lower_bound_rmse", "n_streams", "stopped")
        places = [table.columns.index(x) for x in shown]
        return Table(shown, tuple(tuple(row[i] for i in places) for row in table.rows[:n_rows]))

    def __str__(self) -> str:
        more = len(self.points) - SHOWN
        lines = [self.short(SHOWN).text()]
        lines += [f"… and {more} more rows: to_pandas() has all"] if more > 0 else []
        return "\n".join([*lines, self.about()])

    __repr__ = __str__

    def about(self) -> str:
        """Size, seed and rule, in a line."""
        n_failed = sum(x.failed for x in self.rows)
        failed = f", {n_failed} of them without a design" if n_failed else ""
        return (
            f"{len(self.points)} points, {len(self.rows)} cases{failed}; {self.n_samples} samples a stream, "
            f"seed {self.seed}; {self.rule}; {100 * self.confidence:g}% intervals"
        )


def _check_comparable(first: Row, second: Row) -> None:
    if first.failed or second.failed:
        raise ValueError("rows that are compared must be of designs that did not fail")
    if first.group != second.group:
        raise ValueError(
            "rows that are compared must be of one stream and one target, which ran on the same inputs, "
            f"got cases {first.number} and {second.number}"
        )


def cells(points: Sequence[Point], contest: Sequence[str]) -> Iterator[tuple[dict[str, Label], tuple[int, ...]]]:
    """Cases of the points that agree in all axes but some, each case once."""
    found: dict[tuple[Any, ...], tuple[dict[str, Label], dict[int, None]]] = {}
    for point in points:
        others = {name: label for name, label in point.labels.items() if name not in contest}
        found.setdefault(tuple(others.items()), (others, {}))[1][point.case] = None
    for labels, cases in found.values():
        yield labels, tuple(cases)


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)
