"""Dates in ISO 8601 and in RFC 2822, each read from its text alone."""

from __future__ import annotations

import functools
import re
from datetime import date

from dpfast.signals.events.periods import DAY

_1970 = date(1970, 1, 1).toordinal()

# Each pattern has all the groups; some are never there.
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)"
_GROUPS = "year", "month", "day", "hour", "minute", "second", "fraction", "zone"
_NEVER = "(?P<{}>(?!))?"
_ISO_CLOCK = rf"{_CLOCK}(?:\.(?P<fraction>\d{{1,9}}))?)?"
_ISO = (
    rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)"
    rf"(?:[T ]{_ISO_CLOCK}(?: ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?))?)?"
)
_SLASHES = rf"(?P<year>\d{{4}})/(?P<month>\d\d)/(?P<day>\d\d)(?: {_ISO_CLOCK})?{_NEVER.format('zone')}"
_NAMES = "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"
_MONTHS = {name: i for i, name in enumerate(_NAMES, 1)}
# Section 4.3 of RFC 2822; UTC, which is not there, leaves no doubt.
_US = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_ZONES = {name: hours * 3600 for name, hours in {"Z": 0, "UT": 0, "GMT": 0, "UTC": 0, **_US}.items()}
_MAIL = (
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)\s*,\s*)?"
    rf"(?P<day>\d\d?)\s+(?P<month>{'|'.join(_NAMES)})\s+(?P<year>\d{{4}})\s+{_CLOCK})?"
    rf"{_NEVER.format('fraction')}\s+(?P<zone>[+-]\d{{4}}|{'|'.join(_ZONES)})(?:\s*\([^()]*\))?"
)
_PATTERNS = (
    re.compile(_ISO, re.ASCII),
    re.compile(_SLASHES, re.ASCII),
    re.compile(_MAIL, re.ASCII | re.IGNORECASE),
)


def parse_date(text: str) -> tuple[bool, int | None] | None:
    """Read whether a date has a UTC offset, and its microseconds since 1970, in UTC if it has; None for another text.

    ISO 8601, the same with slashes, and RFC 2822, as e-mail and git have it. Fractions of a microsecond are cut off. A
    day of the week is not compared with the date, and a zone of -0000 is UTC, as RFC 2822 says. The microseconds are
    None where there is no such day, time or offset.

    Examples
    --------
    >>> parse_date("1970-01-02T01:00+01:00"), parse_date("Fri, 2 Jan 1970 00:00:00 GMT"), parse_date("1970-02-30")
    ((True, 86400000000), (True, 86400000000), (False, None))
    """
    for pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            *of_day, hour, minute, second, fraction, zone = match.group(*_GROUPS)
            day = _day(*of_day)
            clock = _seconds(hour or "0", minute or "0", second or "0")
            offset = _offset(zone) if zone else 0
            if day is None or clock is None or offset is None:
                return zone is not None, None
            finer = int(fraction[:6].ljust(6, "0")) if fraction else 0
            return zone is not None, day * DAY + (clock - offset) * 1_000_000 + finer
    return None


@functools.lru_cache(1024)
def _day(year: str, month: str, day: str) -> int | None:
    """Return days since 1970; None for no such day."""
    try:
        return date(int(year), _MONTHS.get(month.lower()) or int(month), int(day)).toordinal() - _1970
    except ValueError:
        return None


def _seconds(hour: str, minute: str, second: str) -> int | None:
    """Return seconds since midnight; None for no such time."""
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    return seconds if hour < "24" and minute < "60" and second < "60" else None


@functools.lru_cache(1024)
def _offset(zone: str) -> int | None:
    """Return seconds east of Greenwich; None for no such offset."""
    if zone.upper() in _ZONES:
        return _ZONES[zone.upper()]
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
