"""Lengths of time, as people type them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.signals.events.periods import format_period, parse_period


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
