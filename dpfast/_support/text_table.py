"""Tables for a terminal, for Markdown, and as comma-separated values.

They are not tabulate's: it took cells of one control character for rules, had its padding set for the whole process,
was five times slower, and would have replaced a dozen lines.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpfast._support.csv_cells import csv_lines
from dpfast._support.table_layout import break_text, lay_out
from dpfast._support.wrapped_text import WIDTH


class Estimate(NamedTuple):
    """A simulated figure and the ends of its interval, in one cell, so that no table prints it without them."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under named columns; numbers are shown with five digits, None and NaN as a dash."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def first(self, n_rows: int) -> Table:
        """Return a table of the first rows."""
        return Table(self.columns, self.rows[:n_rows])

    def without(self, names: Container[str]) -> Table:
        """Return a table that has no columns of some names."""
        kept = [i for i, name in enumerate(self.columns) if name not in names]
        return Table(tuple(self.columns[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in self.rows))

    def join_interval(self, figure: str, confidence: float, *, low: str = "low", high: str = "high") -> Table:
        """Return a table in which a simulated figure and its interval share a column, as people read them.

        Parameters
        ----------
        figure : str
            The column of the figure; a cell of it without an interval, or that is no number, stays as it is.
        confidence : float
            The level of the interval, for the heading.
        low, high : str
            The columns of the ends of the interval, which have no columns of their own then.
        """
        i, i_low, i_high = map(self.columns.index, (figure, low, high))
        rows = [(*row[:i], _join_cells(row[i], row[i_low], row[i_high]), *row[i + 1 :]) for row in self.rows]
        columns = (*self.columns[:i], f"{figure} [{100 * confidence:g} % interval]", *self.columns[i + 1 :])
        return Table(columns, tuple(rows)).without((low, high))

    def cells(self) -> list[list[str]]:
        """Return the cells as they are read."""
        return [[_cell(x) for x in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Tell which columns have numbers, which stand to the right."""
        return [any(isinstance(row[i], (int, float, Estimate)) for row in self.rows) for i in range(len(self.columns))]

    def text(self, *, aside: Sequence[str] = (), heads: Sequence[str] = (), rest: str = "") -> str:
        """Render the table for a terminal of ordinary width, with numbers to the right.

        Parameters
        ----------
        aside : sequence of str
            Columns that are left out first where there is no room for all, the one that matters least before the
            others.
        heads : sequence of str
            Columns that become headings above the rows that share their values, from the first on, where other columns
            than those of `aside` had to be left out else; the rows are put together for that.
        rest : str
            Where a reader finds all columns, as a sentence below the table says.
        """
        for n in range(len(heads) + 1):
            gathered, above = self._gather(heads[:n])
            shown = lay_out(gathered.columns, gathered.cells(), gathered.numeric(), aside, above)
            if set(shown.left_out) <= set(aside):
                break
        if not shown.left_out:
            return "\n".join(shown.lines)
        where = f" {rest} has all columns." if rest else ""
        note = f"Left out for want of room: {', '.join(shown.left_out)}.{where}"
        return "\n".join([*shown.lines, *([""] if above else []), *break_text(note, WIDTH)])

    def _gather(self, names: Sequence[str]) -> tuple[Table, dict[int, str]]:
        """Put rows with the same values of some columns below these values; rows without any of them go first."""
        places, groups = [self.columns.index(x) for x in names], {"": list[int]()}
        for i, cells in enumerate(self.cells()):
            known = [f"{self.columns[x]} {cells[x]}" for x in places if self.rows[i][x] is not None]
            groups.setdefault("; ".join(known), []).append(i)
        rows, above = list[int](), dict[int, str]()
        for heading, members in groups.items():
            if heading:
                above[len(rows)] = heading
            rows += members
        return Table(self.columns, tuple(self.rows[i] for i in rows)).without(names), above

    def markdown(self) -> str:
        """Render the table as Markdown."""
        head = [list(self.columns), ["---"] * len(self.columns)]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in [*head, *self.cells()]]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def csv(self, header: Sequence[str] = ()) -> str:
        """Render the table as comma-separated values in full precision, after header lines that start with a hash."""
        return "".join(f"# {line}\n" for line in header) + csv_lines([self.columns, *self.rows])


def _join_cells(value: Any, low: Any, high: Any) -> Any:
    known = all(isinstance(x, (int, float)) and x == x for x in (value, low, high))
    return Estimate(value, low, high) if known else value


def _cell(x: Any) -> str:
    if isinstance(x, Estimate):
        return f"{_cell(x.value)} [{_cell(x.low)}, {_cell(x.high)}]"
    if x is None or x != x:
        return "–"
    return f"{x:#.5g}".rstrip(".") if isinstance(x, float) else str(x)
