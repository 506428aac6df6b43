from datetime import datetime, timedelta, timezone
from email.utils import format_datetime, mktime_tz, parsedate_tz

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.signals.events.standard_date_formats import parse_date

EPOCH = datetime(1970, 1, 1)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999))


def microseconds(moment):
    offset = moment.utcoffset() or timedelta()
    return (moment.replace(tzinfo=None) - EPOCH - offset) // timedelta(microseconds=1)


@given(moments, st.none() | offsets)
def test_iso_of_all_years(moment, zone):
    moment = moment.replace(tzinfo=zone)
    assert parse_date(moment.isoformat()) == (zone is not None, microseconds(moment))
    assert parse_date(moment.isoformat(" ", "minutes"))[1] == microseconds(moment.replace(second=0, microsecond=0))


@given(moments, offsets)
def test_mail_of_all_years(moment, zone):
    moment = moment.replace(tzinfo=zone, microsecond=0)
    text = format_datetime(moment)
    assert parse_date(text) == (True, microseconds(moment))
    assert parse_date(text.partition(", ")[2].upper()) == (True, microseconds(moment))


MAIL = [
    *["Sat, 22 Apr 2017 15:11:58 -0500", "22 Apr 2017 15:11:58 -0500", "Sat, 22 Apr 2017 15:11 +0530"],
    "1 Jan 1970 00:00 Z",
    *["Sat, 22 Apr 2017 15:11:58 GMT", "Sat, 22 Apr 2017 15:11:58 UT", "Sat,22  Apr\t2017 15:11:58 UTC"],
    *[f"Sat, 22 Apr 2017 15:11:58 {zone}" for zone in ("EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT")],
    *["Sat, 1 Apr 2017 15:11:58 -0700 (Pacific, the US)", "Sat, 01 Apr 2017 15:11:58 -0000"],
    "sat, 1 apr 2017 15:11:58 gmt",
    "Sun, 22 Apr 2017 15:11:58 GMT",  # a Saturday, which nobody looks at
]  # fmt: skip


@pytest.mark.parametrize("text", MAIL)
def test_mail_as_the_standard_library_reads_it(text):
    assert parse_date(text) == (True, 1_000_000 * mktime_tz(parsedate_tz(text)))


NO_DATES = [
    *["", "now", "05:15", "2013", "2013-1-1", "2013-01-01Z", "2013-01-01T05:15:00.1234567891", "2013/01/01T05:15Z"],
    *["2013-01-01T05:15 EST", "Sat 22 Apr 2017 15:11:58 GMT", "Sat, 22 Apr 17 15:11:58 GMT", "22 Apr 2017"],
    *["22 Apr 2017 15:11:58", "22 Apr 2017 15:11:58 A", "22 Avr 2017 15:11:58 GMT", "Sat, 22 Apr 2017 15:11:58.5 GMT"],
    *["22 Apr 2017 5:11:58 GMT", "22 Apr 2017 15:11:58 +05:00", "Sat Apr 22 15:11:58 2017 -0500", "22 Apr 2017 15 GMT"],
    *["2\u0660 Apr 2017 15:11:58 GMT", "22 Apr 2017 15:11:58 GMT (", "22 Apr 2017 15:11:58 GMT (())"],
]


@pytest.mark.parametrize("text", NO_DATES)
def test_other_texts_are_no_dates(text):
    assert parse_date(text) is None


NO_TIMES = [
    *["2013-02-29", "2013-13-01", "0000-01-01", "2013-01-01T24:00", "2013-01-01T05:60", "2013-01-01T05:15:60"],
    *["2013-01-01T05:15+24:00", "2013-01-01T05:15+05:60", "30 Feb 2017 15:11:58 GMT", "0 Apr 2017 15:11:58 GMT"],
    *["22 Apr 2017 24:11:58 GMT", "22 Apr 2017 15:11:58 +2400", "22 Apr 2017 15:11:58 -0060"],
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_dates_that_there_are_not(text):
    assert parse_date(text)[1] is None


digits = st.sampled_from(["00", "01", "12", "13", "19", "23", "24", "28", "29", "30", "31", "59", "60", "99"])
signs = st.sampled_from(["", "Z", "+{}", "-{}", "+{}:{}", " +{}{}", "-{}:{}"])


@given(st.lists(digits, min_size=7, max_size=7), signs, st.sampled_from("T "))
def test_iso_as_pandas_reads_it(parts, sign, between):
    """Dates of the years that it reads, and what is none."""
    year, month, day, hour, minute, second, other = parts
    text = f"20{year}-{month}-{day}{between}{hour}:{minute}:{second}{sign.format(minute, other)}"
    time = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    assert parse_date(text) == (sign != "", None if pd.isna(time) else time.value // 1000)
