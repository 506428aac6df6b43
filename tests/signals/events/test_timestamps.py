from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
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
