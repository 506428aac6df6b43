"""Timestamps of a declared format: one text that cannot be read changes nothing of another."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation

_EPOCH = datetime(1970, 1, 1)
_NEAR = tuple(np.datetime64(year, "us") for year in ("1678", "2262"))  # what pandas reads, whatever its resolution
_FINER = re.compile(r"(?<=[.,])(\d{6})\d{1,3}(?!\d)")  # fractions that strptime does not read


def check_format(time_format: Any) -> None:
    """Refuse what is no format of strptime.

    Raises
    ------
    ValueError
        Also where it has no directive, as words have that pandas knows.
    """
    if not isinstance(time_format, str) or "%" not in time_format:
        raise validation.fail("time_format", "a format such as '%m/%d/%Y %H:%M'", time_format)
    _try_format(time_format)


@functools.lru_cache(16)  # lines that come one by one are read one by one
def _try_format(time_format: str) -> None:
    pd = validation.optional("pandas", "cli")
    try:
        pd.to_datetime(["0"], format=time_format, errors="coerce", utc=True)
    except (ValueError, re.error) as error:
        raise ValueError(f"time_format must be a format of strptime: {error}") from None


def has_offset(time_format: str) -> bool:
    """Tell whether texts of the format have their UTC offset."""
    return re.search("%[zZ]", time_format.replace("%%", "")) is not None


def parse_formatted(texts: Sequence[str], time_format: str) -> NDArray[np.datetime64]:
    """Read UTC or local times in microseconds, NaT for what does not have the format."""
    # pandas would read "now" and "today" as the present, whatever the format.
    dated = [text if re.search(r"\d", text) else "" for text in texts]
    times = _parse_by_pandas(dated, time_format)
    # How far pandas reads depends on its version, and on how fine the times around are.
    others = np.flatnonzero(~_is_near(times))
    times[others] = [_parse_far(dated[i], time_format) for i in others]
    return times


def _is_near(times: Any) -> Any:
    return (times >= _NEAR[0]) & (times < _NEAR[1])


def _parse_by_pandas(texts: list[str], time_format: str) -> NDArray[np.datetime64]:
    pd = validation.optional("pandas", "cli")
    try:
        index = pd.to_datetime(pd.Index(texts, dtype=object), format=time_format, errors="coerce", utc=True)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # for all texts, where one is of an hour that its zone skips, or of the year 10000
        if len(texts) == 1:
            return np.array(["NaT"], "datetime64[us]")
        half = len(texts) // 2
        return np.concatenate([_parse_by_pandas(part, time_format) for part in (texts[:half], texts[half:])])
    moments: NDArray[np.datetime64] = index.tz_localize(None).to_numpy().astype("datetime64[us]")
    return moments


def _parse_far(text: str, time_format: str) -> np.datetime64:
    """Read a time that pandas may not hold; NaT for any other text."""
    if re.search("%[YGcx]", time_format):  # without a year it is none, and newer versions of Python warn
        with contextlib.suppress(ValueError):
            moment = datetime.strptime(_FINER.sub(r"\1", text), time_format)
            local = moment.replace(tzinfo=None) - _EPOCH
            time = np.datetime64((local - (moment.utcoffset() or timedelta())) // timedelta(microseconds=1), "us")
            if not _is_near(time):
                return time
    return np.datetime64("NaT", "us")
