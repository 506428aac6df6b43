from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.signals.events.timestamps import parse_moment, parse_timestamps

EPOCH = datetime(1970, 1, 1)


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


# --- many at once

PLAIN = st.builds(
    lambda *parts: "{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}{}".format(*parts),
    *(st.integers(*bounds) for bounds in ((0, 9999), (0, 13), (0, 32))),
    st.sampled_from("T "),
    *(st.integers(0, top) for top in (25, 61, 61)),
    st.sampled_from(["", ".5", ".123456"]),
)
ALIKE = st.builds(
    lambda moment, sep, digits: moment.isoformat(sep, "microseconds")[: 19 + digits],
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
    st.sampled_from("T "),
    st.sampled_from([0, 2, 4, 7]),
)
OTHERS = st.sampled_from(
    [
        "",
        "0000-01-01T00:00:00",
        "2020-01-01T24:00:00",
        "2020-01-01",
        "now",
        "1577836800",
        "2020-01-01T00:00:00Z\n2020-01-01T00:00:00Z",
        "NaT",
    ]
)


@pytest.mark.parametrize("zone", ["", "Z"])
@settings(max_examples=100)
@example(alike=["2020-01-01T00:00:00"], odd=["2020-01-01T24:00:00"], at=5)
@example(alike=["2020-01-01T00:00:00"], odd=["2020-02-30T00:00:00Z"], at=5)
@example(alike=["2020-01-01T00:00:00"], odd=["0000-01-01T00:00:00"], at=5)
@given(
    alike=st.lists(ALIKE, min_size=1, max_size=9),
    odd=st.lists(PLAIN | OTHERS | PLAIN.map("{}Z".format), max_size=1),
    at=st.integers(0, 99),
)
def test_many_texts_are_read_as_each_of_them_is(zone, alike, odd, at):
    texts = [f"{text}{zone}" for text in alike] * (99 // len(alike))
    texts[at % len(texts) : at % len(texts) + len(odd)] = odd
    together, (times, kinds) = parse_timestamps(texts), zip(*map(parse_one, texts), strict=True)
    np.testing.assert_array_equal(together.times, np.array(times))
    assert together.kinds.tolist() == list(kinds)
    assert together.times.dtype == "M8[us]"


def parse_one(text):
    moment = parse_timestamps([text])
    return moment.times[0], str(moment.kinds[0])
