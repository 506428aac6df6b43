"""The layout of a table for a terminal of ordinary width.

A table that fits stands as it is. Of a wider one the headings are broken between words, and long texts in cells; the
columns that have no room even so are left out, those that matter least first, and their names come with the lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from dpfast._support.wrapped_text import WIDTH

_GAP = "  "
_NARROWEST = 20  # letters that a text has at least, before columns are left out for it
_NO_HEADINGS: Mapping[int, str] = MappingProxyType({})
_HIGHEST = 3  # lines of a heading, if it need not be wider than such a text for that


class TableLayout(NamedTuple):
    """The lines of a table, and the names of the columns for which there was no room."""

    lines: list[str]
    left_out: list[str]


class _Column(NamedTuple):
    """Cells under a heading; `narrow` letters are the fewest that it takes, `wide` those without a broken cell."""

    heading: str
    cells: tuple[str, ...]
    right: bool  # of numbers, which are never broken
    narrow: int
    wide: int

    @classmethod
    def of(cls, heading: str, cells: Sequence[str], *, right: bool) -> _Column:
        """Measure a column."""
        longest = max((display_width(x) for x in cells), default=0)
        lowest = next((x for x in range(1, _NARROWEST) if _is_low(heading, x)), _NARROWEST)
        narrow = max(lowest, longest if right else min(longest, _NARROWEST))
        return cls(heading, tuple(cells), right, narrow, max(narrow, longest))

    def lines(self, i_row: int, width: int) -> list[str]:
        """Break a cell into lines, and put each to its side."""
        return [_pad(x, width, right=self.right) for x in break_text(self.cells[i_row], width, _GAP)]


def lay_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    aside: Sequence[str] = (),
    above: Mapping[int, str] = _NO_HEADINGS,
) -> TableLayout:
    """Lay out a table.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequences of str
        The cells as they are read.
    right : sequence of bool
        Whether the column stands to the right, as numbers do.
    aside : sequence of str
        Columns that are left out first where there is no room; after them go the last ones, and never the first one.
    above : mapping
        Headings of groups of rows, by the number of the row that each stands above, behind an empty line.
    """
    found = [_Column.of(name, [row[i] for row in rows], right=right[i]) for i, name in enumerate(columns)]
    whole = [max(display_width(x.heading), x.wide) for x in found]
    if _total(whole) <= WIDTH:
        return TableLayout(list(_lines(found, whole, len(rows), above)), [])
    kept = _choose_columns(found, aside)
    lines = list(_lines(kept, _share_room(kept), len(rows), above))
    return TableLayout(lines, [x.heading for x in found if x not in kept])


def _is_low(heading: str, width: int) -> bool:
    """Tell whether a heading takes few lines of this width, without a broken word."""
    return all(display_width(x) <= width for x in heading.split()) and len(break_text(heading, width)) <= _HIGHEST


def _choose_columns(columns: Sequence[_Column], aside: Sequence[str]) -> list[_Column]:
    """Leave out columns until the others have room, however narrow."""
    kept = list(columns)
    order = [x for name in aside for x in columns[1:] if x.heading == name]
    order += [x for x in reversed(columns[1:]) if x not in order]
    for column in order:
        if _total([x.narrow for x in kept]) <= WIDTH:
            break
        kept.remove(column)
    return kept


def _share_room(columns: Sequence[_Column]) -> list[int]:
    """Take letters from the widest of the columns that can be broken until all have room."""
    widths = [min(x.wide, max(x.narrow, WIDTH)) for x in columns]
    while _total(widths) > WIDTH:
        able = [i for i, x in enumerate(columns) if widths[i] > x.narrow]
        if not able:  # a single column of long numbers
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _lines(columns: Sequence[_Column], widths: Sequence[int], n_rows: int, above: Mapping[int, str]) -> Iterator[str]:
    sizes = list(zip(columns, widths, strict=True))
    headings = [[_pad(y, width, right=x.right) for y in break_text(x.heading, width)] for x, width in sizes]
    height = max(map(len, headings), default=0)
    yield from _side_by_side([[""] * (height - len(x)) + x for x in headings], widths)
    yield _GAP.join("-" * width for width in widths)
    for i_row in range(n_rows):
        if i_row in above:
            yield from ["", *break_text(above[i_row], WIDTH, _GAP)]
        yield from _side_by_side([x.lines(i_row, width) for x, width in sizes], widths)


def _side_by_side(blocks: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for i in range(max(map(len, blocks), default=0)):
        row = [x[i] if i < len(x) and x[i] else " " * width for x, width in zip(blocks, widths, strict=True)]
        yield _GAP.join(row).rstrip()


def _pad(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def break_text(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines between words, and within words that are too long; `indent` is before all but the first.

    Examples
    --------
    >>> break_text("input perturbation (integer noise)", 20, "  ")
    ['input perturbation', '  (integer noise)']
    """
    if display_width(text) <= width:
        return [text]
    lines, now = [], ""
    for word in text.split():
        joined = f"{now} {word}" if now.strip() else now + word
        if display_width(joined) > width and now.strip():
            lines.append(now)
            joined = indent + word
        while display_width(joined) > width:
            n = next(i for i in range(len(joined), 0, -1) if display_width(joined[:i]) <= width)
            lines.append(joined[:n])
            joined = indent + joined[n:]
        now = joined
    return [*lines, now]


def display_width(text: str) -> int:
    """Count the columns that a text takes in a terminal: two for wide letters, as of Chinese, none for accents.

    Examples
    --------
    >>> display_width("ε, 東京")
    7
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(x) else 2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text)
