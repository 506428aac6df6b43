"""Values of data frames and databases, as the texts that a CSV file would have of them."""

from __future__ import annotations

import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_LARGEST_BITS = 256  # of whole numbers: far longer ones have no text in Python
_NULLS = ("NAType", "NaTType")  # of pandas


class CellText(NamedTuple):
    """Hold the text of a value, and whether it can be a name or an id.

    Attributes
    ----------
    text : str
        Bytes are text in UTF-8; those that are none stand for themselves as surrogates, so that no two are one.
    is_name : bool
    """

    text: str
    is_name: bool


EMPTY = CellText("", True)  # what is missing


def read_cell(value: Any) -> CellText | None:
    """Return the text of a value; None where it is neither a text nor a number nor a time.

    Examples
    --------
    >>> read_cell(7), read_cell(7.0), read_cell(None), read_cell(b"ada"), read_cell(True)
    (CellText(text='7', is_name=True), CellText(text='7.0', is_name=False), CellText(text='', is_name=True), \
CellText(text='ada', is_name=True), None)
    """
    if isinstance(value, CellText):
        return value
    if isinstance(value, str):
        return CellText(str(value), True) if _is_text(value) else None
    if value is None or type(value).__name__ in _NULLS:
        return EMPTY
    if isinstance(value, bytes | bytearray | memoryview):
        return CellText(bytes(value).decode("utf-8", "surrogateescape"), True)
    if isinstance(value, datetime | date | np.datetime64):
        return _read_time(value)
    return _read_number(value)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_number(value: Any) -> CellText | None:
    if isinstance(value, uuid.UUID):
        return CellText(str(value), True)
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return CellText(str(int(value)), True) if int(value).bit_length() <= _LARGEST_BITS else None
    if isinstance(value, float | np.floating):
        return EMPTY if value != value else CellText(repr(float(value)), False)
    if isinstance(value, Decimal):
        return EMPTY if value.is_nan() else CellText(str(value), value.as_tuple().exponent == 0)
    return None


def _read_time(value: Any) -> CellText | None:
    if isinstance(value, np.datetime64):
        return read_times(np.array([value]), utc=False)[0]
    if not isinstance(value, datetime):
        return CellText(value.isoformat(), False)
    offset = value.utcoffset()
    if offset is None:
        return CellText(value.isoformat(), False)
    try:
        return CellText(f"{(value.replace(tzinfo=None) - offset).isoformat()}Z", False)
    except OverflowError:
        return None


def read_times(times: NDArray[np.datetime64], *, utc: bool) -> list[CellText]:
    """Return the texts of points in time, in UTC or of a local clock, to the microsecond at most."""
    if times.dtype == "M8[ns]":
        times = times.astype("M8[us]")
    texts = np.datetime_as_string(times, timezone="UTC" if utc and times.dtype != "M8[D]" else "naive").tolist()
    return [EMPTY if text.startswith("NaT") else CellText(text, False) for text in texts]
