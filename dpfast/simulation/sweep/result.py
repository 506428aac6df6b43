"""The result of a sweep: its rows, comparisons of them, tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from dpfast._support import html_fragments as html
from dpfast._support import plotting, validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.mechanisms.lags import SMOOTHER
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.simulation.study import Comparison, compare_paired
from dpfast.simulation.sweep import tables, winner_sentences
from dpfast.simulation.sweep.design_cache import unpack_mechanism
from dpfast.simulation.sweep.grid import Point
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.rows import Cell, Row, State, check_comparable, group_cells
from dpfast.simulation.sweep.stopping_rule import Outcome, StoppingRule
from dpfast.simulation.sweep.stream_blocks import BATCHES

SHOWN = 40  # rows of a printed sweep
_OF_PLANS = "n_streams", "stopped"  # columns for which a notebook is too narrow


@dataclass(frozen=True, eq=False)
class Sweep:
    """Read a table of studies: iterate over the rows of a grid's cases, print them, and search them by labels.

    Made by :func:`sweep`. The parts of a sweep that :meth:`where` gives are sweeps too.

    Attributes
    ----------
    rows : tuple of Row
        One for each case: points of the grid that differ in what a mechanism does not depend on share one.
    points : tuple of Point
        The points of the grid: labels of all axes, and the number of the case.
    axes : mapping
        The parameters with several values, and their labels in order.
    configuration : mapping
        All that decides what the blocks of the sweep hold.
    digest : str
        The SHA-256 of the configuration.
    seed, n_samples : int
    confidence : float
    contest : tuple of str
        The axes between the values of which it was to be decided; empty where nothing was.
    rule : str
        How long cases were simulated, in words.
    budget_blocks : int
        The blocks of a case, at most: they tell how often a decision may be looked at, for which its level is
        corrected.
    """

    rows: tuple[Row, ...]
    points: tuple[Point, ...]
    axes: Mapping[str, Sequence[Label]]
    configuration: Mapping[str, Any]
    digest: str
    seed: int
    n_samples: int
    confidence: float
    contest: tuple[str, ...]
    rule: str
    budget_blocks: int

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **labels: Label | Sequence[Label]) -> Sweep:
        """Select the points with these labels; several labels of one axis are given as a list.

        A lag None finds the smoother, and what has no lag; "smoother" the smoother alone.

        Raises
        ------
        ValueError
            For an axis or a label that there is none of.
        """
        wanted = {name: self._labels(name, given) for name, given in labels.items()}
        points = tuple(x for x in self.points if all(x.labels[name] in those for name, those in wanted.items()))
        kept = {x.case for x in points}
        axes = {name: tuple(x for x in values if x in wanted.get(name, values)) for name, values in self.axes.items()}
        return replace(self, rows=tuple(x for x in self.rows if x.number in kept), points=points, axes=axes)

    def _labels(self, name: str, given: Any) -> list[Label]:
        validation.choice("an axis of where", name, self.axes)
        several = list(given) if isinstance(given, (list, tuple)) else [given]
        if name == "lag" and None in several:
            return [
                *self._labels(name, [x for x in several if x is not None]),
                *({None, SMOOTHER} & {*self.axes[name]}),
            ]
        for label in several:
            if label not in self.axes[name]:
                known = list(map(str, self.axes[name]))
                meant = validation.did_you_mean(label, known)
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {label!r}{meant}")
        return several

    def row(self, **labels: Label) -> Row:
        """Return the only row with these labels.

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
        """Compare two rows on the streams that both were simulated on.

        Raises
        ------
        ValueError
            For rows of different groups or of another sweep, which ran on different inputs, and for a failed design.
        """
        if first not in self.rows or second not in self.rows:
            raise ValueError("rows that are compared must be of this sweep: others, with other seeds, share no streams")
        check_comparable(first, second)
        n = min(len(first.batch_means), len(second.batch_means))
        means = first.batch_means[:n], second.batch_means[:n]
        return compare_paired(*means, self.confidence, (first.sizes, second.sizes))

    def winners(self, *contest: str) -> tuple[Cell, ...]:
        """Find which value of an axis, or of several together, errs least, for all values of the other axes.

        A cell without any design is left out. The level of each decision is corrected for the pairs in the cell and
        for the looks at the data: the probability that any decision of a cell is wrong is at most 1 - confidence.

        Parameters
        ----------
        *contest : str
            Axes; where none is named those that were to be decided, or "mechanism".

        Raises
        ------
        ValueError
            For an axis that there is none of, or along which stream or target change.
        """
        contest = contest or self.contest or ("mechanism",)
        for axis in contest:
            validation.choice("contest", axis, self.axes)
        rows = {x.number: x for x in self.rows}
        parts = list(group_cells(self.points, contest))
        found = [(labels, [rows[x] for x in cases if not rows[x].failed]) for labels, cases in parts]
        live = [(labels, some) for labels, some in found if some]
        outcomes = self._outcomes([some for _, some in live])
        return tuple(
            Cell(contest, labels, self._rank_rows(some, x), cast("State", x.state))
            for (labels, some), x in zip(live, outcomes, strict=True)
        )

    def _rank_rows(self, rows: list[Row], outcome: Outcome) -> tuple[Row, ...]:
        """Put first what was compared: cases that ran on more streams may have other means on those that they share."""
        first = [self.rows[x] for x in (outcome.winner, outcome.runner_up) if x is not None]
        return (*first, *sorted((x for x in rows if x not in first), key=lambda x: x.mse))

    def _outcomes(self, contests: list[list[Row]]) -> tuple[Outcome, ...]:
        """Find the best of each contest, and whether it is known to be the best."""
        for rows in contests:
            for row in rows:
                check_comparable(rows[0], row)
        place = {x.number: i for i, x in enumerate(self.rows)}
        contested = tuple(tuple(place[x.number] for x in rows) for rows in contests)
        n = [len(x.batch_means) // BATCHES for x in self.rows]
        sizes = {i: x.sizes for i, x in enumerate(self.rows) if x.sizes is not None}
        rule = StoppingRule(None, contested, self.budget_blocks, self.confidence, sizes)
        return rule.look(lambda i: self.rows[i].batch_means, n).outcomes

    def mechanism(self, row: Row) -> AnyMechanism | AnyChannels:
        """Build the mechanism of a row, complete.

        Raises
        ------
        ValueError
            Where its design failed.
        """
        if row.error is not None:
            raise ValueError(f"row must be of a design that did not fail, got one with the error: {row.error}")
        return unpack_mechanism(row.packed)

    def table(self) -> Table:
        """Return a tidy table: a row for each point of the grid, with all labels, and for the constant of a group.

        Of several streams there is one for all outputs together, and one for each: the column ``output`` tells which.
        """
        return tables.tidy_table(self.rows, self.points, self.axes)

    def to_pandas(self) -> Any:
        """Return a tidy pandas DataFrame: a row for each point of the grid, and for the constant of each group.

        The column ``lag`` is of integers. Beside it, ``smoother`` is True for the smoother, which has no number in
        ``lag``, False for a lag, and missing, as ``lag`` is, for a mechanism without one.
        """
        return tables.build_frame(self.table())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the tidy table as a Parquet file, with the columns of :meth:`to_pandas`, and digest and version beside.

        Raises
        ------
        DataError
            Where the file cannot be written.
        """
        file = validation.path("path", path)
        folder = OutputFolder(file.parent)
        folder.add(file.name, self.parquet())
        folder.write()

    def parquet(self) -> bytes:
        """Return the content of such a Parquet file."""
        return tables.parquet_bytes(self.table(), {"sweep": self.digest, "dpfast": self.configuration["dpfast"]})

    def plot(self, kind: str | None = None, *, ax: Any = None) -> Any:
        """Draw the errors of one task over an axis, or a map of which mechanism errs least.

        :func:`dpfast.plot` draws a panel for each task; here a sweep of several has to be narrowed by :meth:`where`.

        Parameters
        ----------
        kind : str, optional
            An axis of numbers, such as "epsilon" or "lag", over which the RMSE is drawn; "winners", the map. By
            default the first axis of numbers.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default new axes of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            For a kind that there is none of.
        MissingExtraError
            Without matplotlib (extra ``plot``).
        """
        return plotting.draw(self, kind, ax)

    def short(self, n_rows: int | None = None) -> Table:
        """Return the columns that matter most, for the first points."""
        return tables.short_table(self.rows, self.points, tuple(self.axes), n_rows)

    def __str__(self) -> str:
        table = tables.print_short(self.short(SHOWN), "to_pandas()", self.confidence)
        return "\n".join([*map(wrap_paragraph, self.say_winners()), table, *map(wrap_paragraph, self._below_table())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.short(SHOWN).without(_OF_PLANS)
        rows = {x.number: x for x in self.rows}
        shown_rows = [each for x in self.points[:SHOWN] for each in rows[x.case].with_outputs]
        found = [
            html.Interval(low, x.rmse, high, x.predicted_rmse) for x in shown_rows for low, high in [x.drawn_interval]
        ]
        drawn = html.intervals(found)
        drawn += [html.Html("")] * (len(table.rows) - len(drawn))  # nothing of constants is simulated
        n_headers = len(tables.add_mechanism_axis(self.axes)) + any(x.is_of_several for x in self.rows)
        columns = [x.replace("_", " ") for x in table.columns]  # of several words, which a narrow page wraps
        shown = html.table(columns, table.cells(), table.numeric(), n_headers=n_headers, drawn=drawn)
        return html.notebook(
            *map(html.paragraphs, self.say_winners()), shown, *map(html.paragraphs, self._below_table())
        )

    def say_winners(self) -> list[str]:
        """Say in two sentences who errs least, and what is not decided; nothing where nothing was to be decided."""
        cells = self.winners() if self.contest else ()
        return [winner_sentences.say_who_wins(cells), winner_sentences.say_what_is_open(cells)] if cells else []

    def _below_table(self) -> list[str]:
        """Say what a table that is shown leaves out, what its marks are, and of what it is."""
        more = len(self.points) - SHOWN
        hidden = [f"… and {more} more rows: to_pandas() has all, winners() those of least error"] if more > 0 else []
        return [*hidden, *self.explain_marks(SHOWN), self.about()]

    def explain_marks(self, n_rows: int | None = None) -> list[str]:
        """Explain the parentheses in the table of the first points, where there are any."""
        return [tables.IN_PARENTHESES] if tables.has_parentheses(self.points[:n_rows], self.rows) else []

    def about(self) -> str:
        """Say size, seed and rule in a line."""
        n_failed = sum(x.failed for x in self.rows)
        failed = f", {n_failed} of them without a design" if n_failed else ""
        n_rare = sum(x.is_rare for x in self.rows)
        rare = f", of {n_rare} case{'s' if n_rare > 1 else ''} bounds for rare errors" if n_rare else ""
        return (
            f"{len(self.points)} points, {len(self.rows)} cases{failed}; {self.n_samples} samples a stream, "
            f"seed {self.seed}; {self.rule}; {100 * self.confidence:g}% intervals{rare}"
        )
