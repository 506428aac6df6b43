"""Lines of a text for a terminal, broken between words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

WIDTH = 100  # of all that is printed
_NAMES = 20  # characters that names of facts have at least


def wrap_paragraph(text: str, indent: int = 0, *, first: str | None = None) -> str:
    """Break a paragraph into lines.

    Parameters
    ----------
    text : str
    indent : int
        Spaces before every line.
    first : str, optional
        In the place of the spaces before the first line.
    """
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=" " * indent if first is None else first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap_facts(facts: Mapping[str, str]) -> str:
    """Write facts below one another, each behind its name.

    Examples
    --------
    >>> print(wrap_facts({"events": "3", "range": "0 to 20"}))
      events               3
      range                0 to 20
    """
    lines = (wrap_paragraph(value, _NAMES + 3, first=f"  {name:<{_NAMES}} ") for name, value in facts.items())
    return "\n".join(lines)


def wrap_items(items: Iterable[str]) -> str:
    """Write items below one another, each behind a dash.

    Examples
    --------
    >>> print(wrap_items(["the host", "the time"]))
      - the host
      - the time
    """
    return "\n".join(wrap_paragraph(x, 4, first="  - ") for x in items)
