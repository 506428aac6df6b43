"""Cells of CSV files that a spreadsheet takes for what they are: texts are texts, numbers are numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

# With what is looked over in front of it, and as it is typed in East Asia.
_FORMULA = re.compile(r"[\s']*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def lines(rows: Iterable[Iterable[Any]]) -> str:
    r"""Rows as comma-separated values, None as an empty cell; an apostrophe goes before what would be a formula.

    Examples
    --------
    >>> lines([("=1+1", "-2.5", -2.5, "a, b", None)])
    '\'=1+1,-2.5,-2.5,"a, b",\n'
    """
    written: list[str] = []
    out = SimpleNamespace(write=written.append)
    # of both characters, as older versions of Python quote those of the terminator alone
    csv.writer(out, lineterminator="\r\n").writerows([_written(cell) for cell in row] for row in rows)
    return "".join(row.removesuffix("\r\n") + "\n" for row in written)


def original(cell: str) -> str:
    """The text of a cell that was written."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _written(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
