import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.reports.release.chart_axes import number_ticks, step_ticks, time_ticks

HOUR = 3_600_000_000
START = int(np.datetime64("2013-01-01T00:30", "us").astype(np.int64))


@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_numbers_are_round_few_and_where_they_say(low, length):
    high = low + max(length, 1e-6 * abs(low))
    ticks = number_ticks(low, high)
    assert 1 <= len(ticks.places) <= 5
    assert len(set(ticks.labels)) == len(ticks.labels)
    for place, label in zip(*ticks, strict=True):
        assert -1e-6 <= place <= 1 + 1e-6
        value = float(label.replace(",", ""))
        assert value == pytest.approx(low + place * (high - low), abs=1e-4 * (high - low) + 1e-5 * abs(value))


@given(st.integers(0, 10**9), st.integers(1, 10**7))
def test_steps_are_whole_and_inside(first, count):
    ticks = step_ticks(first, count)
    assert len(ticks.places) <= 5
    for place, label in zip(*ticks, strict=True):
        step = int(label.replace(",", ""))
        assert first <= step < first + count
        assert place == (step - first) / count


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (3, ("00:30:00.000001", "00:30:00.000002", "00:30:00.000003")),
        (60_000_000, ("00:30:00", "00:30:30", "00:31:00")),
        (3 * HOUR, ("01-01 01:00", "01-01 02:00", "01-01 03:00")),
        (24 * HOUR, ("01-01 12:00", "01-02 00:00")),
        (7 * 24 * HOUR, ("2013-01-03", "2013-01-05", "2013-01-07")),
        (365 * 24 * HOUR, ("2013-10", "2014-01")),
        (3650 * 24 * HOUR, ("2015", "2020")),
    ],
)
def test_times_have_as_much_of_the_date_as_they_need(length, labels):
    ticks = time_ticks(START, length)
    assert ticks.labels[-len(labels) :] == labels
    assert len(ticks.labels) <= 5
    assert all(0 <= x <= 1 for x in ticks.places)


def test_times_stand_where_they_are():
    ticks = time_ticks(START - HOUR // 2, 24 * HOUR)
    assert dict(zip(ticks.labels, ticks.places, strict=True))["01-01 12:00"] == 0.5
