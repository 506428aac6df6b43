"""HTML from plain text, which is escaped here and nowhere else: tables for pages, and what notebooks show.

The figures are those of `print`; names are anybody's text. Nothing here is jinja2's: templates of the same tables were
as long as these functions, fourteen times slower, and two more packages to install and to load.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, NewType

Html = NewType("Html", str)  # escaped
_LONG = 60  # characters of a cell that is broken into lines
_WIDTH, _HEIGHT, _ROOM = 160, 14, 8  # of a picture, in pixels
_MUCH = 5  # ratio of the largest to the least, from which on the axis is logarithmic
_STYLE = (
    ".dpfast th, .dpfast td { text-align: left; vertical-align: top; } .dpfast .number { text-align: right; } "
    ".dpfast .long { white-space: normal; max-width: 46rem; } .dpfast caption { text-align: left; font-weight: bold; }"
)


def escape(text: str) -> Html:
    """Escape text; half characters, as in names of files that are no text, become question marks."""
    return Html(html.escape(text).encode(errors="replace").decode())


def paragraphs(text: str) -> Html:
    """Make paragraphs of a text with empty lines between them."""
    return Html("\n".join(f"<p>{escape(x.strip())}</p>" for x in re.split(r"\n\s*\n", text) if x.strip()))


def items(texts: Iterable[str]) -> Html:
    """Make a list of texts, each as it is read."""
    return Html("<ul>\n" + "\n".join(f"<li>{escape(x)}</li>" for x in texts) + "\n</ul>")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    *,
    n_headers: int = 1,
    caption: str = "",
    drawn: Sequence[Html] = (),
    values: Sequence[Sequence[str | None]] = (),
) -> Html:
    """Make a table of cells, each as it is read; with a caption, and a picture for each row, where there are any.

    Parameters
    ----------
    columns : sequence of str
        Their names; none for a table without a head.
    rows : sequence of sequences of str
        Cells.
    right : sequence of bool
        Which columns stand to the right, as numbers do.
    n_headers : int
        Columns, from the first, that say of what a row is.
    caption : str
        Above it.
    drawn : sequence of Html
        A picture for each row, in a last column.
    values : sequence of sequences of str or None
        For a table that can be sorted, what a machine reads of each cell: a number, nothing (""), or the text (None).
    """
    head = "".join(_cell("th", x, r, ' scope="col"') for x, r in zip(columns, right, strict=bool(columns)))
    head += "<td></td>" if head and drawn else ""
    pictures = drawn or [Html("")] * len(rows)
    kind = ' class="sortable"' if values else ""
    read = values or [[None] * len(x) for x in rows]
    lines = [
        f"<table{kind}>{f'<caption>{escape(caption)}</caption>' if caption else ''}",
        f"<thead><tr>{head}</tr></thead>" if head else "",
        "<tbody>",
        *(_row(x, y, right, n_headers, picture) for x, y, picture in zip(rows, read, pictures, strict=True)),
        "</tbody>\n</table>",
    ]
    return Html("\n".join(filter(None, lines)))


def _row(
    cells: Sequence[str], values: Sequence[str | None], right: Sequence[bool], n_headers: int, picture: Html
) -> str:
    tags = [("th", ' scope="row"')] * n_headers + [("td", "")] * (len(cells) - n_headers)
    read = ("" if x is None else f' data-value="{escape(x)}"' for x in values)
    made = (_cell(tag, x, r, more + value) for (tag, more), x, value, r in zip(tags, cells, read, right, strict=True))
    return f"<tr>{''.join(made)}{f'<td>{picture}</td>' if picture else ''}</tr>"


def _cell(tag: str, text: str, right: bool, more: str = "") -> str:
    kind = ' class="number"' if right else ' class="long"' if len(text) > _LONG else ""
    return f"<{tag}{kind}{more}>{escape(text)}</{tag}>"


def facts(pairs: Mapping[str, str], caption: str = "") -> Html:
    """Make a table of names, and of what they stand for."""
    return table((), list(pairs.items()), (False, False), caption=caption)


def notebook(*parts: Html) -> str:
    """Make what a notebook shows of an object: parts, and how they look."""
    return "\n".join(['<div class="dpfast">', f"<style>{_STYLE}</style>", *parts, "</div>"])


class Interval(NamedTuple):
    """An estimate on its interval, and a mark beside it, all positive or zero."""

    low: float
    middle: float
    high: float
    mark: float | None = None


def intervals(found: Sequence[Interval]) -> list[Html]:
    """Draw each on one axis: a line, a dot on it, and a ring for the mark."""
    every = [x for interval in found for x in interval if x is not None and math.isfinite(x)]
    low, high = min(every, default=0.0), max(every, default=1.0)
    scale = math.log if low > 0 and high / low >= _MUCH else float
    start, length = scale(low), scale(high) - scale(low) or 1.0

    def place(x: float) -> str:
        return f"{_ROOM + (_WIDTH - 2 * _ROOM) * (scale(x) - start) / length:.1f}"

    return [_draw_interval(x, place) if math.isfinite(sum(x[:3])) else Html("") for x in found]


def _draw_interval(x: Interval, place: Callable[[float], str]) -> Html:
    """Draw an interval; for those who do not see it, the figures are in the table."""
    y = _HEIGHT / 2
    line = f'<line x1="{place(x.low)}" x2="{place(x.high)}" y1="{y}" y2="{y}" stroke-width="3" stroke-opacity="0.4"/>'
    dot = f'<circle cx="{place(x.middle)}" cy="{y}" r="2.5" fill="currentColor"/>'
    ring = "" if x.mark is None else f'<circle cx="{place(x.mark)}" cy="{y}" r="4.5" fill="none"/>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}" stroke="currentColor" aria-hidden="true"'
    return Html(f"<svg {size}>{line}{dot}{ring}</svg>")
