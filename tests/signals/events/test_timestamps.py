from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.signals.events.periods import format_period, parse_period
from dpfast.signals.events.timestamps import parse_moment, parse_timestamps

EPOCH = datetime(1970, 1, 1)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5min", 300 * 10**6),
        ("1h", 3600 * 10**6),
        ("30s", 30 * 10**6),
        ("1d", 86400 * 10**6),
        ("1w", 7 * 86400 * 10**6),
        ("1.5h", 5400 * 10**6),
        ("0.1s", 10**5),
        ("250ms", 250_000),
        ("1us", 1),
        ("0.000001s", 1),
        ("1D", 86400 * 10**6),
        ("2W", 14 * 86400 * 10**6),
        ("1.5H", 5400 * 10**6),
        ("5T", 300 * 10**6),
        ("30S", 30 * 10**6),
        ("250L", 250_000),
        ("1U", 1),
    ],
)
def test_period_is_a_whole_number_of_microseconds(text, microseconds):
    assert parse_period(text) == np.timedelta64(microseconds, "us")


NOT_PERIODS = [
    *[
        "",
        "0s",
        "0.0h",
        "-1h",
        "1m",
        "1M",
        "1mo",
        "1y",
        "1q",
        "1Y",
        "1Q",
        "1A",
        "1B",
        "1N",
        "1Min",
        "D",
        "5",
        "min",
        "5 min",
        "1h30min",
        "nanh",
        "1e3s",
    ],
    *["\u0661h", "0.5us", "0.0000001s", "999999999999999999w", None, 5, np.timedelta64(5, "m")],
]


@pytest.mark.parametrize("text", NOT_PERIODS)
def test_other_periods_are_refused(text):
    with pytest.raises(ValueError, match=r"^period must be a positive number of us, ms, s, min, h, d or w"):
        parse_period(text)


@given(st.integers(1, 2**62) | st.integers(1, 400).map(lambda n: n * 3_600_000_000))
def test_a_period_is_printed_as_it_is_read(length):
    assert parse_period(format_period(np.timedelta64(length, "us"))) == np.timedelta64(length, "us")


def test_periods_are_printed_as_people_type_them():
    typed = ["1d", "7d", "36h", "1h", "90min", "5min", "30s", "250ms", "1us"]
    assert [format_period(parse_period(text)) for text in typed] == typed
    assert format_period(np.timedelta64(1, "W")) == "7d"


# --- moments


@pytest.mark.parametrize(
    ("text", "moment", "utc"),
    [
        ("2013-01-01", datetime(2013, 1, 1), False),
        ("2013-01-01T05:15", datetime(2013, 1, 1, 5, 15), False),
        ("2013-01-01T05:15Z", datetime(2013, 1, 1, 5, 15), True),
        ("2013-01-01 05:15+01:00", datetime(2013, 1, 1, 4, 15), True),
        ("Tue, 1 Jan 2013 05:15:00 +0000", datetime(2013, 1, 1, 5, 15), True),
        ("9999-12-31", datetime(9999, 12, 31), False),
        ("1357017300", datetime(2013, 1, 1, 5, 15), True),
        ("1357017300000", datetime(2013, 1, 1, 5, 15), True),
    ],
)
def test_moments_of_arguments(text, moment, utc):
    assert parse_moment("start", text) == ((moment - EPOCH) // timedelta(microseconds=1), utc)


@pytest.mark.parametrize("text", ["", "now", "01/02/2013", "2013-02-29", "5", "2013-01-01T25:00", None])
def test_other_arguments_are_refused_by_name(text):
    with pytest.raises(ValueError, match=r"^start must be a point in time such as"):
        parse_moment("start", text)


texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["2013-01-01", "2013-01-01T05:15Z", "1357017300", "1357017300123", "1e9", "2013-02-30", "now", ""]),
    st.sampled_from(["9999-12-31", "1500-01-01T00:00Z", "2013-01-01T05:15:00.123456789", "1 Jan 2013 05:15 GMT"]),
    st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)).map(datetime.isoformat),
)


@settings(max_examples=10)
@given(st.lists(texts, max_size=6), st.sampled_from([None, "%Y-%m-%d", "%Y-%m-%dT%H:%M%z"]))
def test_a_moment_does_not_depend_on_its_neighbours(several, time_format):
    together = parse_timestamps(several, time_format)
    alone = [parse_timestamps([text], time_format) for text in several]
    for i, one in enumerate(alone):
        np.testing.assert_array_equal(one.times, together.times[i : i + 1])
        assert (one.kinds[0], one.utc[0]) == (together.kinds[i], together.utc[i])
