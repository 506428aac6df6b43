"""Tables for a terminal, for Markdown, and as comma-separated values.

They are not tabulate's: it took cells of one control character for rules, had its padding set for the whole process,
was five times slower, and would have replaced a dozen lines.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from dpfast._support.csv_cells import csv_lines
from dpfast._support.table_layout import break_text, lay_out
from dpfast._support.wrapped_text import WIDTH


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

    def cells(self) -> list[list[str]]:
        """Return the cells as they are read."""
        return [[_cell(x) for x in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Tell which columns have numbers, which stand to the right."""
        return [any(isinstance(row[i], (int, float)) for row in self.rows) for i in range(len(self.columns))]

    def text(self, *, aside: Sequence[str] = (), rest: str = "") -> str:
        """Render the table for a terminal of ordinary width, with numbers to the right.

        Parameters
        ----------
        aside : sequence of str
            Columns that are left out first where there is no room for all, the one that matters least before the
            others.
        rest : str
            Where a reader finds all columns, as a sentence below the table says.
        """
        shown = lay_out(self.columns, self.cells(), self.numeric(), aside)
        if not shown.left_out:
            return "\n".join(shown.lines)
        where = f" {rest} has all columns." if rest else ""
        note = f"Left out for want of room: {', '.join(shown.left_out)}.{where}"
        return "\n".join([*shown.lines, *break_text(note, WIDTH)])

    def markdown(self) -> str:
        """Render the table as Markdown."""
        head = [list(self.columns), ["---"] * len(self.columns)]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in [*head, *self.cells()]]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def csv(self, header: Sequence[str] = ()) -> str:
        """Render the table as comma-separated values in full precision, after header lines that start with a hash."""
        return "".join(f"# {line}\n" for line in header) + csv_lines([self.columns, *self.rows])


def _cell(x: Any) -> str:
    if x is None or x != x:
        return "–"
    return f"{x:#.5g}".rstrip(".") if isinstance(x, float) else str(x)
