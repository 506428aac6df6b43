"""Each text is read as if it were alone, whatever pandas does with several."""

import time
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.signals.events.declared_time_format import check_format, has_offset, parse_formatted

SLASHED, OFFSET, ZONE = "%d/%m/%Y %H:%M:%S.%f", "%d/%m/%Y %H:%M:%S.%f %z", "%Y-%m-%d %H:%M %Z"


@pytest.mark.parametrize("year", [1, 1500, 1677, 1678, 1969, 2261, 2262, 2263, 9999])
@pytest.mark.parametrize("fraction", ["1", "123456", "123456789"])
def test_all_years(year, fraction):
    local = datetime(year, 1, 1, 5, 15, 7, int(fraction[:6].ljust(6, "0")))
    text = local.strftime(f"%d/%m/{year:04} %H:%M:%S.") + fraction
    assert parse_formatted([text], SLASHED) == [np.datetime64(local)]
    assert parse_formatted([f"{text} +0700"], OFFSET) == [np.datetime64(local) - np.timedelta64(7, "h")]


texts = st.one_of(
    st.sampled_from(["", "now", "31/12/9999 23:59:59.5", "x"]),
    st.builds(
        lambda moment, digits: moment.strftime(f"%d/%m/{moment.year:04} %H:%M:%S.") + digits,
        st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),
        st.sampled_from(["0", "25", "123456", "1234567", "999999999", "1234567890"]),
    ),
)


@given(st.lists(texts, min_size=1, max_size=6))
def test_a_text_does_not_depend_on_its_neighbours(several):
    alone = [parse_formatted([text], SLASHED)[0] for text in several]
    np.testing.assert_array_equal(parse_formatted(several, SLASHED), np.array(alone))
    assert all(
        np.isnat(time) == (text[-11:] == ".1234567890" or "/" not in text)
        for text, time in zip(several, alone, strict=True)
    )


SKIPPED = ["2013-03-10 02:30 America/New_York", "9999-12-31 23:59 America/New_York", "2013-01-01 00:00 XYZ"]


@pytest.mark.parametrize("skipped", SKIPPED)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_time_that_its_zone_skips_spoils_no_other(skipped, n):
    times = parse_formatted([*["2013-01-01 05:00 UTC"] * n, skipped, "2013-01-01 00:00 America/New_York"], ZONE)
    assert times[n + 1] == times[0] == np.datetime64("2013-01-01T05:00")
    assert np.isnat(times).tolist() == [False] * n + [True, False]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs a zone of the machine's own")
def test_the_zone_of_the_machine_does_not_matter(monkeypatch):
    """Its name is one that strptime reads, and takes for no offset."""
    monkeypatch.setenv("TZ", "XYZ5")
    time.tzset()
    try:
        assert datetime.strptime("2013-01-01 00:00 XYZ", ZONE) == datetime(2013, 1, 1)
        assert np.isnat(parse_formatted(["2013-01-01 00:00 XYZ"], ZONE)[0])
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "time_format", ["", "mixed", "ISO8601", "%Q", "%s", "%d %", "%d %d", "%Y-W%V-%u", 5, None, ["%Y"]]
)
def test_no_formats(time_format):
    with pytest.raises(ValueError, match=r"^time_format must be a format"):
        check_format(time_format)


def test_offsets():
    assert [has_offset(x) for x in ("%H%z", "%Z", "%H", "%%z", "%%%z", "Z")] == [True, True, False, False, True, False]


def test_a_format_without_a_year():
    assert parse_formatted(["05:15", "x5"], "%H:%M")[0] == np.datetime64("1900-01-01T05:15")
