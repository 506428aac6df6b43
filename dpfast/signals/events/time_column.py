"""Columns of times in a file: every text must be one, and all of one kind."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError
from dpfast.signals.events.columns import Column
from dpfast.signals.events.timestamps import Moments, parse_timestamps

_AMBIGUOUS = re.compile(r"\d{1,2}([/.-])\d{1,2}\1\d{2,4}(?!\d).*", re.ASCII)


def parse_time_column(stamps: Column, time_format: str | None) -> NDArray[np.int64]:
    """Read a file's distinct timestamps as microseconds since 1970.

    Raises
    ------
    DataError
        Where one is unusable, or they are of several kinds.
    """
    moments = parse_timestamps(stamps.texts, time_format)
    check_times(stamps, moments, time_format)
    return moments.times.astype(np.int64)


def check_times(stamps: Column, moments: Moments, time_format: str | None) -> None:
    """Refuse a file in which a timestamp is unusable, or which has several kinds of them.

    Raises
    ------
    DataError
    """
    if time_format is not None:
        bad = np.isnat(moments.times)
        if bad.any():
            raise stamps.time_error(bad, f"timestamps of the format {time_format!r}")
    elif np.count_nonzero(_is_numeric(moments)) > np.count_nonzero(np.isin(moments.kinds, ("local", "offset"))):
        _check_unix(stamps, moments)
    else:
        _check_dates(stamps, moments)


def _is_numeric(moments: Moments) -> NDArray[np.bool_]:
    return np.isin(moments.kinds, ("number", "seconds", "milliseconds"))


def _check_unix(stamps: Column, moments: Moments) -> None:
    seconds, milliseconds = (moments.kinds == kind for kind in ("seconds", "milliseconds"))
    bad = ~(seconds | milliseconds)
    if bad.any():
        must_hold = "Unix seconds (1e8 to 1e11) or milliseconds (1e11 to 1e14), or else give time_format"
        raise stamps.time_error(bad, must_hold)
    if seconds.any() and milliseconds.any():
        raise stamps.time_error(seconds != seconds[0], "either Unix seconds or Unix milliseconds alone")


def _check_dates(stamps: Column, moments: Moments) -> None:
    bad = np.isnat(moments.times) | _is_numeric(moments)
    if bad.any():
        if _AMBIGUOUS.fullmatch(stamps.texts[int(np.argmax(bad))].strip()):
            raise DataError(
                f"{stamps.label}, {stamps.locate(bad)}: a date such as 01/02/2013 could be day/month or month/day; "
                "pass --time-format '%d/%m/%Y %H:%M:%S' or the like (in Python, time_format)"
            )
        raise stamps.time_error(bad, "timestamps such as '2013-01-01T05:15', or else give time_format")
    offset = moments.kinds == "offset"
    if offset.any() and not offset.all():
        raise stamps.time_error(offset != offset[0], "timestamps all with or all without a UTC offset")
