import contextlib
import csv
import gzip
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DataError
from dpfast.signals.events.declared_counts import check_groups, count_events
from dpfast.signals.events.declared_span import Span, check_time_format

DEPARTURES = Path(__file__).parents[3] / "examples" / "nyc_departures_2013.csv.gz"
DAY = {"start": "2013-01-01", "end": "2013-01-02", "period": "6h"}


def count_log(path, *, start, end, period, groups=None, by=None, time_format=None, **options):
    """Declare and count as the command does."""
    span = Span.parse(start, end, period)
    names = check_groups(span, by, groups)
    check_time_format(span, time_format)
    return count_events(path, span, names, by=by, time_format=time_format, **options)


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Writes a file and returns its path."""
    path = tmp_path_factory.mktemp("counts") / "log.csv"

    def write_file(content):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def naive_counts(rows, start, period, n_bins, groups):
    """The twin of `count_events`: exact counts of rows (moment, group, whole number)."""
    cells = Counter()
    for moment, group, weight in rows:
        cells[group, (moment - start) // period] += weight
    return [[min(cells[group, i], 2**53) for i in range(n_bins)] for group in groups]


# --- what is declared is what comes out


def test_span_and_groups_are_as_declared_whatever_the_events(write):
    path = write("t,s\n2013-01-01T05:59,b\n2013-01-01T18:00,b\n2013-01-02,b\n2012-12-31T23:59,a\n2013-01-01,x\n")
    log = count_log(path, time="t", by="s", groups=["c", "b", "a"], **DAY)
    assert log.series == ("c", "b", "a")
    assert log.counts.tolist() == [[0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]]
    assert log.counts.dtype == np.int64
    assert not log.counts.flags.writeable
    assert (log.start, log.period) == (np.datetime64("2013-01-01"), np.timedelta64(6, "h"))


@pytest.mark.parametrize("content", ["t,s\n", "t,s\n1999-01-01,a\n", "t,s\n2013-01-01,nobody\n"])
def test_a_log_without_events_inside_is_zeros(write, content):
    log = count_log(write(content), time="t", by="s", groups=["a", "b"], **DAY)
    assert log.counts.tolist() == [[0] * 4] * 2


def test_without_by_all_rows_are_one_series(write):
    log = count_log(write("t,s\n2013-01-01,a\n2013-01-01,b\n"), time="t", **DAY)
    assert (log.series, log.counts.tolist()) == (("all",), [[2, 0, 0, 0]])


def test_rows_without_a_group_have_a_name(write):
    path = write("t,s\n2013-01-01,\n2013-01-01, \n2013-01-01,a\n")
    assert count_log(path, time="t", by="s", groups=["(missing)"], **DAY).counts.tolist() == [[2, 0, 0, 0]]


def test_more_groups_in_the_file_than_may_be_declared_are_no_error(write):
    path = write("t,s\n" + "".join(f"2013-01-01,{i}\n" for i in range(2000)))
    assert count_log(path, time="t", by="s", groups=["7"], **DAY).counts.sum() == 1


def test_counts_stay_at_the_largest(write):
    path = write("t,n\n" + f"2013-01-01,{2**53}\n" * 1500 + "2013-01-01T06:00,9007199254740991\n2013-01-01T06:00,1\n")
    log = count_log(path, time="t", count="n", **DAY)
    assert log.counts.tolist() == [[2**53, 2**53, 0, 0]]


@pytest.mark.parametrize(
    ("stamps", "span"),
    [
        (["2013-01-01T00:00Z", "2013-01-01T01:00+01:00"], {"start": "2013-01-01T00:00Z", "end": "2013-01-02T00:00Z"}),
        (["1356998400", "1356998400.5"], {"start": "2013-01-01T00:00Z", "end": "1357084800"}),
        (["1356998400000"] * 2, {"start": "2012-12-31T19:00-05:00", "end": "2013-01-01T19:00-05:00"}),
        (["2013-01-01", "2013-01-01T00:01"], {"start": "2013-01-01", "end": "2013-01-02"}),
    ],
)
def test_kinds_of_time(write, stamps, span):
    path = write("\n".join(["t", *stamps]))
    assert count_log(path, time="t", period="1d", **span).counts.tolist() == [[2]]


def test_declared_times_are_iso_whatever_the_format_of_the_file(write):
    path = write("t\n01/02/2013 00:30\n")
    log = count_log(path, time="t", time_format="%d/%m/%Y %H:%M", start="2013-02-01", end="2013-02-02", period="1h")
    assert log.counts.sum() == 1
    path = write("t\n01/02/2013 00:30 +0100\n")
    span = {"start": "2013-01-31T23:00Z", "end": "2013-02-01T00:00Z", "period": "1h"}
    assert count_log(path, time="t", time_format="%d/%m/%Y %H:%M %z", **span).counts.tolist() == [[1]]


FAR = ["9999-12-31T00:00Z", "0001-01-01T00:00Z", "2262-04-12T00:00Z", "1677-09-21T00:00Z"]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("near", ["2013-01-01T05:59:59Z", "2013-01-01T05:59:59.123456789Z"])
def test_a_date_of_another_age_is_one_outside_of_the_span(write, far, near):
    utc = {"start": "2013-01-01T00:00Z", "end": "2013-01-02T00:00Z", "period": "6h"}
    lines = [near, far, "Tue, 1 Jan 2013 18:00:00 GMT"]
    path = write('t\n"' + '"\n"'.join(lines) + '"\n')
    assert count_log(path, time="t", **utc).counts.tolist() == [[1, 0, 0, 1]]
    assert count_log(write("t\n2013-01-01\n9999-01-01\n"), time="t", **DAY).counts.tolist() == [[1, 0, 0, 0]]
    text = "t\n" + "".join(f"{x.replace('T', ' ').replace('Z', '')} +0000\n" for x in (far, "2013-01-01 05:00"))
    log = count_log(write(text), time="t", time_format="%Y-%m-%d %H:%M %z", **utc)
    assert log.counts.tolist() == [[1, 0, 0, 0]]


# --- refusals


UTC = {"start": "2013-01-01T00:00Z", "end": "2013-01-03T00:00Z", "period": "6h"}
LOCAL = {"start": "2013-06-15T05:00", "end": "2013-06-15T06:00", "period": "1h"}


@pytest.mark.parametrize(
    ("span", "time_format", "message"),
    [
        (UTC, "%Y-%m-%d %H:%M", r"with %z \(the UTC offset, or Z\) where start is with a UTC offset"),
        (UTC, "%Y-%m-%dT%H:%M:%SZ", "with %z"),  # a letter, which is no offset
        (UTC, "%Y-%m-%d %H:%M %%z", "with %z"),
        (LOCAL, "%Y-%m-%d %H:%M %z", "without %z and %Z where start is without a UTC offset"),
        (LOCAL, "%Y-%m-%d %H:%M %Z", "without %z and %Z"),
        (UTC, "%H:%M %z", "one that tells the days from start to end, with the year"),
        (UTC, "%d/%m %H:%M %z", "one that tells the days"),
        (LOCAL, "%d %b", "one that tells the days"),
        (LOCAL, "%Y", "one that tells the days"),  # all are of the first of January
        (LOCAL, "%m/%Y", "one that tells the days"),
        ({"start": "2113-01-01", "end": "2113-01-02", "period": "1h"}, "%d/%m/%y", "one that tells the days"),
        (LOCAL, "%Y %", "a format of strptime"),
    ],
)
def test_a_format_under_which_nothing_could_be_read_is_refused(span, time_format, message):
    with pytest.raises(ValueError, match=f"^time_format must be {message}") as caught:
        count_log("no-such-file", time="t", time_format=time_format, **span)
    assert not isinstance(caught.value, DataError)


@pytest.mark.parametrize(
    ("span", "time_format"),
    [
        *((UTC, x) for x in ("%Y-%m-%d %H:%M %z", "%y%m%d%z", "%d %b %Y %I:%M %p %Z", "%Y-%j %z", "%G-W%V-%u %z")),
        *((LOCAL, x) for x in ("%c", "%x", "%m/%d/%Y", "%H:%M:%S.%f at %Y%m%d", "%Y %U %w", "%A %d %B %y %%z")),
        (UTC, "%Y %z"),  # the first of January is in the span
        ({"start": "2013-06-15", "end": "2014-06-15", "period": "1d"}, "%Y"),
        ({"start": "1970-01-01T00:30+14:00", "end": "1970-01-01T01:30+14:00", "period": "1h"}, "%d/%m/%Y %H:%M %z"),
        ({"start": "9999-12-31", "end": "9999-12-31T01:00", "period": "1h"}, "%Y-%m-%d %H:%M"),
    ],
)
def test_other_formats_are_not(write, span, time_format):
    log = count_log(write("t\n"), time="t", time_format=time_format, **span)
    assert log.counts.sum() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "yesterday"}, "^start must be a point in time"),
        ({"end": "2013"}, "^end must be a point in time"),
        (
            {"end": "2013-01-02T01:00"},
            "^end must be a whole number of periods of 6h after start, at least one, got '2013-01-02T01:00' for the ",
        ),
        ({"end": "2013-01-01"}, "^end must be a whole number of periods"),
        ({"end": "2012-12-31"}, "^end must be a whole number of periods"),
        ({"end": "2013-01-02T00:00Z"}, "^end must be without a UTC offset as start is, got one with"),
        ({"period": "1month"}, "^period must be"),
        ({"by": "s"}, "^groups must be declared with by='s', as they must not be read off the data: list"),
        ({"groups": ["a"]}, "^groups must come with by, the column that tells them apart: give by"),
        ({"by": "s", "groups": []}, "^groups must be 1 to 1,000,000 distinct names"),
        ({"by": "s", "groups": ["a", "a"]}, "^groups must be 1 to 1,000,000 distinct names"),
        ({"by": "s", "groups": ["a", ""]}, "^groups must be 1 to 1,000,000 distinct names"),
        ({"by": "s", "groups": "abc"}, "^groups must be a list of printable names"),
        ({"by": "s", "groups": ["a\n"]}, "^groups must be a list of printable names"),
        ({"by": "s", "groups": [1]}, "^groups must be a list of printable names"),
        ({"period": "0.05ms"}, "^bins times groups must be at most 1,000,000,000, got 1,728,000,000 for 1: choose"),
    ],
)
def test_declarations_are_checked_before_the_file(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        count_log("no-such-file", time="t", **DAY | change)
    assert not isinstance(caught.value, DataError)


def test_more_groups_than_a_million_are_refused_before_the_file():
    with pytest.raises(ValueError, match=r"^groups must be 1 to 1,000,000 distinct names") as caught:
        count_log("no-such-file", time="t", by="s", groups=[str(i) for i in range(1_000_001)], **DAY)
    assert not isinstance(caught.value, DataError)


@pytest.mark.parametrize("text", ["0.5", "-1", "1e17", "nan", "", "secret"])
def test_other_counts_are_refused(write, text):
    path = write(f"t,n\n2013-01-01,1\n1999-01-01,{text}\n")
    message = r"column 'n' must hold whole numbers from 0 to 2\*\*53, got something else in line 3 \(1 such row\)$"
    with pytest.raises(DataError, match=message):
        count_log(path, time="t", count="n", **DAY)


def test_local_times_do_not_mix_with_offsets(write):
    message = "must hold timestamps without a UTC offset as start is, got some with a UTC offset"
    for stamp in ("2013-01-01T00:00Z", "1356998400"):
        with pytest.raises(DataError, match=message):
            count_log(write(f"t\n{stamp}\n"), time="t", **DAY)
    utc = {"start": "2013-01-01T00:00Z", "end": "2013-01-02T00:00Z", "period": "1d"}
    with pytest.raises(DataError, match="must hold timestamps with a UTC offset as start is"):
        count_log(write("t\n2013-01-01\n"), time="t", **utc)


PACKED = gzip.compress(b"t\n" + b"2013-01-01T03:14\n" * 9999, mtime=0)


@pytest.mark.parametrize(
    "content",
    [b"", PACKED[:-9], PACKED[:30], b"\xff\xfe", b"t\n2013-01-01T03:14\nsecret\n", b"t\n2013-01-01,secret\n", b't\n"'],
)
def test_unsound_files_are_refused_without_their_values(write, content):
    with pytest.raises(DataError) as caught:
        count_log(write(content), time="t", **DAY)
    assert not {"secret", "03:14"} & set(str(caught.value).replace(",", " ").split())


@given(st.binary(max_size=80), st.sampled_from([b"", b"t,n,s\n", b"t,n,s\n2013-01-01,1,a\n"]))
def test_whatever_a_file_holds_it_is_counted_or_refused(write, noise, head):
    options = {"time": "t", "count": "n", "by": "s", "groups": ["a"], **DAY}
    with contextlib.suppress(DataError):
        log = count_log(write(head + noise), **options)
        assert log.counts.shape == (1, 4)
        assert log.counts.min() >= 0


# --- laws

rows = st.lists(
    st.tuples(
        st.datetimes(datetime(2012, 2, 27), datetime(2012, 3, 3)),
        st.sampled_from(["EWR", "JFK", "LGA"]),
        st.integers(0, 5) | st.integers(2**52, 2**53),
    ),
    max_size=30,
)


def to_csv(rows):
    return "t,s,n\n" + "".join(f"{moment.isoformat()},{name},{n}\n" for moment, name, n in rows)


periods = {
    "5min": timedelta(minutes=5),
    "7min": timedelta(minutes=7),
    "1.5h": timedelta(minutes=90),
    "4d": timedelta(4),
}


@given(rows, st.sampled_from(list(periods)), st.sampled_from([1, 2, 200]))
def test_same_as_the_naive_twin(write, rows, period, n_bins):
    start, length, groups = datetime(2012, 2, 28), periods[period], ["LGA", "JFK", "nobody"]
    end = (start + n_bins * length).isoformat()
    span = {"start": start.isoformat(), "end": end, "period": period}
    log = count_log(write(to_csv(rows)), time="t", by="s", groups=groups, count="n", **span)
    assert log.counts.tolist() == naive_counts(rows, start, length, n_bins, groups)


@given(rows, st.tuples(st.datetimes(datetime(2012, 2, 27), datetime(2012, 3, 3)), st.sampled_from(["EWR", "x"])))
def test_one_event_more_changes_one_count_by_one_or_nothing(write, rows, event):
    span = {"start": "2012-02-28", "end": "2012-03-01", "period": "1h"}
    options = {"time": "t", "by": "s", "groups": ["JFK", "EWR"], "count": "n", **span}
    before = count_log(write(to_csv(rows)), **options)
    after = count_log(write(to_csv([*rows, (*event, 1)])), **options)
    assert (before.series, before.start, before.counts.shape) == (after.series, after.start, after.counts.shape)
    change = after.counts - before.counts
    assert change.min() >= 0
    assert change.sum() <= 1


def test_departures_of_a_year(write):
    """A thousand rows of every ten thousand: all of some days in each month."""
    with gzip.open(DEPARTURES, "rt") as file:
        header, *lines = (line for i, line in enumerate(file) if i // 1000 % 10 == 0)
    path = write(header + "".join(lines))
    rows = csv.DictReader([header, *lines])
    per_day = Counter((row["origin"], row["scheduled_departure"][:10]) for row in rows)
    span = {"start": "2013-01-01", "end": "2014-01-01", "period": "1d"}
    log = count_log(path, time="scheduled_departure", by="origin", groups=["JFK", "LGA"], **span)
    days = np.datetime_as_string(log.times(), unit="D")
    assert log.counts.tolist() == [[per_day[airport, day] for day in days] for airport in ("JFK", "LGA")]


def test_bins_of_a_span():
    span = Span.parse("2013-01-01T00:00Z", "2013-01-01T01:00Z", "5min")
    edges = np.array([span.time(0) - 1, span.time(0), span.time(1) - 1, span.time(1), span.time(12) - 1, span.time(12)])
    assert span.bins(edges).tolist() == [-1, 0, 0, 1, 11, -1]
