"""Cells of CSV files that a spreadsheet takes for what they are: texts are texts, numbers are numbers."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

# With what is looked over in front of it, and as it is typed in East Asia.
_FORMULA = re.compile(r"[\s']*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_ONE_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_NUMBERS = re.compile(f"{_ONE_NUMBER}(?:;{_ONE_NUMBER})*", re.ASCII | re.IGNORECASE)  # as what is published at a step


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as comma-separated values, None as an empty cell; an apostrophe goes before what would be a formula.

    Examples
    --------
    >>> csv_lines([("=1+1", "-2.5", -2.5, "a, b", None)])
    '\'=1+1,-2.5,-2.5,"a, b",\n'
    """
    written: list[str] = []
    out = SimpleNamespace(write=written.append)
    # The terminator has both characters, as older versions of Python quote those of the terminator alone.
    csv.writer(out, lineterminator="\r\n").writerows([_escape(cell) for cell in row] for row in rows)
    return "".join(row.removesuffix("\r\n") + "\n" for row in written)


def round_to_error(values: Iterable[float], error: float | None) -> list[str | None]:
    """Round numbers to the digits that matter: in steps of at most a hundredth of their error.

    That adds less than 1e-5 of its square. With all digits where the error is zero or not known; None for NaN.

    Examples
    --------
    >>> round_to_error([1 / 3, -1e-9], 0.05), round_to_error([1 / 3], None)
    (['0.3333', '0.0'], ['0.3333333333333333'])
    """
    if not error:
        return [None if x != x else repr(x) for x in values]
    decimals = 2 - math.floor(math.log10(error))
    return [None if x != x else repr(round(x, decimals) + 0.0) for x in values]  # + 0.0: no minus zero


def unescape(cell: str) -> str:
    """Return the text of a cell that was written."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _escape(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBERS.fullmatch(text) is None
