import gzip
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast._support.errors import DataError, MissingExtraError
from dpfast.signals.events.historical_counts import EventCounts, read_events

DEPARTURES = Path(__file__).parents[3] / "examples" / "nyc_departures_2013.csv.gz"
EPOCH = datetime(1970, 1, 1)


@pytest.fixture(scope="session")
def write(tmp_path_factory):
    """Writes a file and returns its path."""
    path = tmp_path_factory.mktemp("events") / "log.csv"

    def write_file(content):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture(scope="session")
def stamps(write):
    """Reads a log of timestamps alone."""

    def read(*texts, period="1h", **options):
        return read_events(write("\n".join(["t", *texts]) + "\n"), time="t", period=period, **options)

    return read


def occupied(log):
    """What a log counts: {(series, left edge): count}, without the zeros."""
    times = log.times().astype("datetime64[us]").tolist()
    cells = zip(*np.nonzero(log.counts), strict=True)
    return {(log.series[i], times[j]): log.counts[i, j] for i, j in cells}


def naive_counts(rows, period):
    """The twin of `read_events`: {(series, left edge): count} of rows (moment, series)."""
    midnight = min(moment for moment, _ in rows).replace(hour=0, minute=0, second=0, microsecond=0)
    return Counter((name, midnight + (moment - midnight) // period * period) for moment, name in rows)


def to_csv(rows):
    return "t,s\n" + "".join(f"{moment.isoformat()},{name}\n" for moment, name in rows)


def test_period_of_a_log_is_checked_before_the_file():
    with pytest.raises(ValueError, match=r"^period must be .* got '1month'"):
        read_events("no-such-file", time="t", period="1month")


# --- binning


def test_bins_are_counted_from_the_first_midnight(stamps):
    log = stamps("2013-01-01T05:15", "2013-01-01T05:59:59.999999", "2013-01-01T06:00", "2013-01-01T08:01")
    np.testing.assert_array_equal(log.counts, [[2, 1, 0, 1]])
    assert log.series == ("all",)
    assert log.start == np.datetime64("2013-01-01T05:00")
    assert log.period == np.timedelta64(1, "h")
    expected = np.array(["2013-01-01T05", "2013-01-01T06", "2013-01-01T07", "2013-01-01T08"], "datetime64[h]")
    np.testing.assert_array_equal(log.times(), expected)


def test_period_that_divides_no_day_is_counted_from_the_first_events_midnight(stamps):
    log = stamps("2013-01-03T00:00", "2013-01-01T14:00", "2013-01-02T01:00", period="7h")
    np.testing.assert_array_equal(log.counts, [[1, 1, 0, 0, 1]])
    assert log.start == np.datetime64("2013-01-01T14:00")


def test_week_begins_on_the_first_day(stamps):
    log = stamps("2013-01-02T12:00", "2013-01-08T23:59", "2013-01-09T00:00", period="1w")
    np.testing.assert_array_equal(log.counts, [[2, 1]])
    assert log.start == np.datetime64("2013-01-02")


def test_before_1970_bins_are_the_same(stamps):
    log = stamps("1969-12-31T22:30", "1969-12-31T23:59:59.9999999", "1970-01-01T00:00")
    np.testing.assert_array_equal(log.counts, [[1, 1, 1]])
    assert log.start == np.datetime64("1969-12-31T22:00")


def test_counts_are_read_only_float64(stamps):
    log = stamps("2013-01-01")
    assert isinstance(log, EventCounts)
    assert log.counts.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        log.counts[0, 0] = 1


def test_series_are_sorted_and_share_their_span(write):
    path = write("t,s\n2013-01-01T02:00,b\n2013-01-01T00:00,a\n2013-01-01T01:00,NA\n2013-01-01T00:30,a\n")
    log = read_events(path, time="t", by="s", period="1h")
    assert log.series == ("NA", "a", "b")
    np.testing.assert_array_equal(log.counts, [[0, 1, 0], [2, 0, 0], [0, 0, 1]])


def test_missing_series_has_a_name(write):
    path = write("t,s\n2013-01-01,\n2013-01-01,x\n2013-01-01, \n")
    log = read_events(path, time="t", by="s", period="1d")
    assert log.series == ("(missing)", "x")
    np.testing.assert_array_equal(log.counts, [[2], [1]])


def test_at_most_1000_series(write):
    def read(n):
        rows = "".join(f"2013-01-01,{i}\n" for i in range(n))
        return read_events(write("t,s\n" + rows), time="t", by="s", period="1d")

    assert read(1000).counts.shape == (1000, 1)
    with pytest.raises(DataError, match="column 's' must have at most 1000 distinct values, got 1001"):
        read(1001)


def test_at_most_50_million_cells(stamps, write):
    with pytest.raises(DataError, match="got 410,313,601 bins of 1s for 1 series: choose a longer period"):
        stamps("2000-01-01", "2013-01-01", period="1s")
    path = write("t,s\n2013-01-01,a\n2013-12-31,b\n")
    with pytest.raises(DataError, match="got 31,449,601 bins of 1s for 2 series"):
        read_events(path, time="t", by="s", period="1s")


@pytest.mark.parametrize("day", ["2012-02-29", "2000-02-29"])
def test_leap_day(stamps, day):
    log = stamps(f"{day}T23:59", f"{day[:4]}-03-01", f"{day[:4]}-02-28", period="1d")
    np.testing.assert_array_equal(log.counts, [[1, 1, 1]])


# --- counts


def test_counts_are_summed(write):
    path = write("t,n\n2013-01-01T00:10,2\n2013-01-01T02:00,1e1\n2013-01-01T00:20, 0.5\n2013-01-01T03:00,0\n")
    log = read_events(path, time="t", count="n", period="1h")
    np.testing.assert_array_equal(log.counts, [[2.5, 0, 10, 0]])


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1e400", "", "x", "1_0", "0x1", "1 2", "1e17", "٣"])
def test_other_counts_are_refused(write, text):
    path = write(f"t,n\n2013-01-01,1\n2013-01-01,{text}\n2013-01-01,{text}\n")
    message = r"column 'n' must hold numbers from 0 to 2\*\*53, got something else in line 3 \(2 such rows\)$"
    with pytest.raises(DataError, match=message):
        read_events(path, time="t", count="n", period="1h")


# --- timestamps


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2013-01-01T05:15", "2013-01-01T05:15"),
        ("2013-01-01 05:15:00.123", "2013-01-01T05:15:00.123"),
        ("2013-01-01 05:15:07", "2013-01-01T05:15:07"),
        ("2013-01-01T05:15:00.123456789", "2013-01-01T05:15:00.123456"),
        (" 2013-01-01T05:15 ", "2013-01-01T05:15"),
        ("2013-01-01", "2013-01-01"),
        ("2013-01-01T05:15Z", "2013-01-01T05:15"),
        ("2013-01-01T05:15+01:00", "2013-01-01T04:15"),
        ("2013-01-01 05:15:00.5-0530", "2013-01-01T10:45:00.5"),
        ("2013-01-01 05:15:00 +0100", "2013-01-01T04:15"),
        ("2013-01-01 05:15:00+00", "2013-01-01T05:15"),
        ("2013/01/01 05:15", "2013-01-01T05:15"),
        ("2013/01/01 05:15:07", "2013-01-01T05:15:07"),
        ("2013/01/01", "2013-01-01"),
        ("9999-12-31T23:59:59.999999999", "9999-12-31T23:59:59.999999"),
        ("0001-01-01T00:00+01:00", "0000-12-31T23:00"),
        ("Sat, 22 Apr 2017 15:11:58 -0500", "2017-04-22T20:11:58"),
        ("22 Apr 2017 15:11 GMT", "2017-04-22T15:11"),
        ("1357017300", "2013-01-01T05:15"),
        ("1357017300.25", "2013-01-01T05:15:00.25"),
        ("1357017300.9999999", "2013-01-01T05:15:00.999999"),
        ("1357017300123", "2013-01-01T05:15:00.123"),
        ("1.3570173e9", "2013-01-01T05:15"),
        ("100000000", "1973-03-03T09:46:40"),
        ("99999999999", "5138-11-16T09:46:39"),
        ("100000000000", "1973-03-03T09:46:40"),
        ("99999999999999", "5138-11-16T09:46:39.999"),
    ],
)
def test_formats(stamps, text, moment):
    assert stamps(f'"{text}"', period="1us").start == np.datetime64(moment)


NOT_TIMES = [
    *["", " ", "x", "NaT", "now", "today", "05:15", "2013", "20130101", "2013-1-1", "2013-W01-1"],
    *[
        "2013-02-29",
        "2013-13-01",
        "2013-01-01Z",
        "\uff12013-01-01",
        "2013-01-01T24:00",
        "2013-01-01T05:15:60",
    ],
    *["2013-01-01T05:15+99:00", "2013-01-01T05:15 EST", "2013-01-01T05:15:00.1234567891"],
]


@pytest.mark.parametrize("text", NOT_TIMES)
def test_unusable_timestamps_are_refused(stamps, text):
    good = "2013-01-01T00:00"
    with pytest.raises(DataError, match=r"column 't' must hold timestamps .*time_format, got .* in line 3 \(2 such"):
        stamps(good, f'"{text}"', "2013-01-02", f'"{text}"', "2013-01-03")


def test_message_tells_the_length_of_one_text(stamps):
    with pytest.raises(DataError, match=r"got another text of 5 characters in line 2 \(2 such rows\)$"):
        stamps("first", "second", "2013-01-01")
    with pytest.raises(DataError, match=r"got another text of 41 characters in line 2 \(1 such row\)$"):
        stamps("x" * 41)
    with pytest.raises(DataError, match=r"got nothing in line 2 \(1 such row\)$"):
        stamps('""')


def test_lines_are_counted_in_the_file(write):
    path = write('t,note\n2013-01-01,"two\nlines"\n\n2013-01-02,\nx,\n')
    with pytest.raises(DataError, match=r"got another text of 1 characters in line 6 \(1 such row\)$"):
        read_events(path, time="t", period="1d")


@pytest.mark.parametrize("text", ["01/02/2013 05:15", "1/2/13", "01.02.2013", "13-01-2013 05:15:00", "01/02/2013T05"])
def test_ambiguous_timestamps_need_a_format(stamps, text):
    message = (
        r"column 't', line 3 \(1 such row\): a date such as 01/02/2013 could be day/month or month/day; pass --time-f"
    )
    with pytest.raises(DataError, match=message):
        stamps("2013-01-01", text)


@pytest.mark.parametrize(
    "text", ["99999999", "100000000000000", "0", "-1357017300", "20130101", "1e400", "\uff11357017300"]
)
def test_other_numbers_are_no_unix_time(stamps, text):
    with pytest.raises(DataError, match=r"must hold Unix seconds .*, got another text of .* in line 3 \(1 such row\)"):
        stamps("1357017300", text)


def test_missing_unix_time_is_told_as_such(stamps):
    with pytest.raises(DataError, match=r"must hold Unix seconds .* got nothing in line 4 \(1 such row\)"):
        stamps("1357017300", "1357017301", '""')


def test_unix_time_has_one_unit(stamps):
    with pytest.raises(
        DataError, match=r"either Unix seconds or .*, got another text of 13 characters in line 4 \(1 such row\)"
    ):
        stamps("1357017300", "1357017301", "1357017300123")


def test_clock_change_with_offsets(stamps):
    # New York, 2013-11-03: 01:30 comes twice; 2013-03-10: 02:00 to 03:00 is left out.
    autumn = stamps("2013-11-03T00:30-04:00", "2013-11-03T01:30-04:00", "2013-11-03T01:30-05:00")
    np.testing.assert_array_equal(autumn.counts, [[1, 1, 1]])
    assert autumn.start == np.datetime64("2013-11-03T04:00")
    spring = stamps("2013-03-10T01:30-05:00", "2013-03-10T03:30-04:00")
    np.testing.assert_array_equal(spring.counts, [[1, 1]])


def test_clock_change_without_offsets_is_taken_as_it_stands(stamps):
    np.testing.assert_array_equal(stamps("2013-11-03T01:30", "2013-11-03T01:30").counts, [[2]])
    np.testing.assert_array_equal(stamps("2013-03-10T01:30", "2013-03-10T03:30").counts, [[1, 0, 1]])


def test_bins_of_offset_stamps_are_counted_from_utc_midnight(stamps):
    log = stamps("2013-01-01T23:30-05:00", period="1d")
    assert log.start == np.datetime64("2013-01-02")


@pytest.mark.parametrize("stamp", ["2013-01-01T05:15", "2013-01-01"])
def test_offsets_on_some_rows_alone_are_refused(stamps, stamp):
    message = "must hold timestamps all with or all without a UTC offset, got another text of {} characters in line 3"
    with pytest.raises(DataError, match=message.format(len(stamp))):
        stamps("2013-01-01T05:15Z", stamp)
    with pytest.raises(DataError, match=message.format(17)):
        stamps(stamp, "2013-01-01T05:15Z")


def test_time_format(stamps):
    log = stamps("01/02/2013 05:15", "01/13/2013 00:00", period="1d", time_format="%m/%d/%Y %H:%M")
    assert log.start == np.datetime64("2013-01-02")
    assert log.counts.shape == (1, 12)
    log = stamps("01/02/2013", period="1d", time_format="%d/%m/%Y")
    assert log.start == np.datetime64("2013-02-01")
    log = stamps("20130102", period="1d", time_format="%Y%m%d")
    assert log.start == np.datetime64("2013-01-02")


def test_time_format_with_offsets(stamps):
    texts = "11/03/2013 01:30 -0400", "11/03/2013 01:30 -0500"
    log = stamps(*texts, time_format="%m/%d/%Y %H:%M %z")
    np.testing.assert_array_equal(log.counts, [[1, 1]])
    assert log.start == np.datetime64("2013-11-03T05:00")


@pytest.mark.parametrize("text", ["13/02/2013", "01/02/2013 05:15", "2013-01-02", "now", "today", "NaT", '""'])
def test_time_format_is_strict(stamps, text):
    with pytest.raises(DataError, match=r"timestamps of the format '%m/%d/%Y', got .* in line 3 \(1 such row\)$"):
        stamps("01/02/2013", text, time_format="%m/%d/%Y")


@pytest.mark.parametrize("time_format", ["ISO8601", "mixed", "", "%Q", "%d %", 5])
def test_time_format_must_be_one(stamps, time_format):
    with pytest.raises(ValueError, match=r"^time_format must be a format "):
        stamps("2013-01-01", time_format=time_format)


# --- files


@pytest.mark.parametrize("encode", [bytes, gzip.compress, lambda b: b"\xef\xbb\xbf" + b])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n"])
def test_kinds_of_files(write, encode, end, tail):
    text = 't,"na,me"\n2013-01-01,"é, ""x"""\n2013-01-01,b' + tail
    path = write(encode(text.replace("\n", end).encode()))
    assert read_events(path, time="t", by="na,me", period="1d").series == ("b", 'é, "x"')
    assert read_events(str(path), time="t", by="na,me", period="1d").counts.sum() == 2


def test_gzip_in_several_members(write):
    path = write(gzip.compress(b"t\n2013-01-01\n") + gzip.compress(b"2013-01-02\n"))
    assert read_events(path, time="t", period="1d").counts.sum() == 2


def test_plain_file_named_gz(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_text("t\n2013-01-01\n")
    assert read_events(path, time="t", period="1d").counts.sum() == 1


PACKED = gzip.compress(
    ("t\n" + "".join(f"{i * i}\n" for i in range(10_000))).encode(), mtime=0
)  # parallel workers must collect the same tests


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must begin with a line of column names"),
        (b"\nt\n2013-01-01\n", "must begin with a line of column names"),
        (gzip.compress(b"", mtime=0), "must begin with a line of column names"),
        (b"t\n", "must have rows, got a header alone"),
        (b"t,s\n\n\n", "must have rows, got a header alone"),
        (b"time,s\n2013-01-01,a\n", r"no column 't' in the header \(2 columns found\)$"),
        (b"t,s,t\n2013-01-01,a,b\n", "must have one column 't', got 2"),
        (b"t,s\n2013-01-01,a\n2013-01-01\n", "line 3 must have 2 fields as the header does, got 1"),
        (b"t,s\n2013-01-01,a\n2013-01-01,b,c\n", "line 3 must have 2 fields as the header does, got 3"),
        (b't,s\n2013-01-01,"a\n2013-01-01,b\n', "line 3 must be valid CSV"),
        (b't,s\n2013-01-01,"a"b\n', "line 2 must be valid CSV"),
        (b"t\n2013-01-01\n\n2013-01-01\n", r"got nothing in line 3 \(1 such row\)"),
        (b"t\n" + b"x" * 200_000, "line 2 must be valid CSV: field larger than field limit"),
        (PACKED[:-20], "must be a whole gzip file"),
        (PACKED + b"more", "must be a whole gzip file"),
        (PACKED[:5], "must be a whole gzip file"),
        (PACKED[:50] + bytes(50) + PACKED[100:], "must be a whole gzip file"),
        (b"t\n2013-01-01\n\xff\n", "must be a CSV file in UTF-8"),
        ("t\n2013-01-01\n".encode("utf-16"), "must be a CSV file in UTF-8"),
        (b"PK\x03\x04\x14\x00\x06\x00\n", "must be a CSV file, got a binary file"),
    ],
)
def test_unusable_files_are_refused(write, content, message):
    path = write(content)
    with pytest.raises(DataError, match=message) as caught:
        read_events(path, time="t", period="1d")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv must be a readable file: No such file or directory$"):
        read_events(tmp_path / "none.csv", time="t", period="1d")
    with pytest.raises(DataError, match=r"must be a readable file: Is a directory$"):
        read_events(tmp_path, time="t", period="1d")


@pytest.mark.parametrize("options", [{"by": "x"}, {"count": "x"}, {"by": "t", "count": "x"}])
def test_every_column_is_looked_for(stamps, options):
    with pytest.raises(DataError, match=r"no column 'x' in the header \(1 column found\)$"):
        stamps("2013-01-01", **options)


@pytest.mark.parametrize(("separator", "name"), [(";", "';'"), ("\t", "a tab"), ("|", "'|'")])
def test_another_separator_is_guessed(write, separator, name):
    with pytest.raises(DataError, match=rf"no column 't' in the header \(1 column found: is the separator {name}\?\)$"):
        read_events(write(f"t{separator}s\n2013-01-01{separator}a\n"), time="t", period="1d")


def test_a_log_without_a_header_is_not_shown(write):
    with pytest.raises(DataError, match=r"no column 't' in the header \(2 columns found\)$") as caught:
        read_events(write("2013-01-01,somebody\n"), time="t", period="1d")
    assert "somebody" not in str(caught.value)


def test_pandas_is_optional(stamps, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[cli\]'"):
        stamps("2013-01-01", time_format="%Y-%m-%d")
    assert stamps("2013-01-01").counts.sum() == 1


# --- laws

rows = st.lists(
    st.tuples(
        st.datetimes(datetime(2011, 12, 30), datetime(2012, 3, 2)),
        st.sampled_from(["EWR", "JFK", "LGA"]),
    ),
    min_size=1,
    max_size=30,
)
periods = st.sampled_from(["1min", "5min", "7min", "1h", "1.5h", "5h", "1d", "36h", "1w"])


@given(rows, periods)
@settings(deadline=None)
def test_same_as_the_naive_twin(write, rows, period):
    log = read_events(write(to_csv(rows)), time="t", by="s", period=period)
    assert occupied(log) == naive_counts(rows, log.period.astype("timedelta64[us]").item())
    assert log.series == tuple(sorted({name for _, name in rows}))
    ends = log.counts[:, [0, -1]].sum(axis=0)
    assert (ends > 0).all()


@given(rows, periods)
@settings(deadline=None)
def test_total_is_kept(write, rows, period):
    path = write(to_csv(rows))
    log = read_events(path, time="t", by="s", period=period)
    totals = Counter(name for _, name in rows)
    np.testing.assert_array_equal(log.counts.sum(axis=1), [totals[name] for name in log.series])
    together = read_events(path, time="t", period=period)
    np.testing.assert_array_equal(together.counts[0], log.counts.sum(axis=0))


@given(rows, periods, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_rows_does_not_matter(write, rows, period, rng):
    log = read_events(write(to_csv(rows)), time="t", by="s", period=period)
    shuffled = read_events(write(to_csv(rng.sample(rows, len(rows)))), time="t", by="s", period=period)
    np.testing.assert_array_equal(shuffled.counts, log.counts)
    assert (shuffled.series, shuffled.start) == (log.series, log.start)


@given(rows, st.sampled_from([("5min", "1h"), ("1h", "1d"), ("7min", "21min"), ("1d", "1w"), ("1.5h", "6h")]))
@settings(deadline=None)
def test_coarse_periods_are_sums_of_fine_ones(write, rows, pair):
    path = write(to_csv(rows))
    fine, coarse = (read_events(path, time="t", by="s", period=period) for period in pair)
    bins = (fine.times() - coarse.start) // coarse.period
    sums = np.zeros_like(coarse.counts)
    np.add.at(sums, (slice(None), bins), fine.counts)
    np.testing.assert_array_equal(sums, coarse.counts)


@given(rows, periods)
@settings(deadline=None)
def test_counted_rows_are_as_many_events(write, rows, period):
    table = "t,s,n\n" + "".join(f"{moment.isoformat()},{name},{n}\n" for (moment, name), n in Counter(rows).items())
    events = read_events(write(to_csv(rows)), time="t", by="s", period=period)
    counted = read_events(write(table), time="t", by="s", count="n", period=period)
    np.testing.assert_array_equal(counted.counts, events.counts)


@given(st.lists(st.datetimes(datetime(1974, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=5))
@settings(deadline=None)
def test_all_formats_tell_the_same_time(stamps, moments):
    moments = [moments[0] + (moment - moments[0]) % timedelta(days=10) for moment in moments]
    moments = [moment.replace(microsecond=moment.microsecond // 1000 * 1000) for moment in moments]
    elapsed = [(moment - EPOCH) // timedelta(milliseconds=1) for moment in moments]
    written = [
        [moment.isoformat() for moment in moments],
        [moment.isoformat(" ") + "Z" for moment in moments],
        [(moment + timedelta(hours=5.5)).isoformat() + "+05:30" for moment in moments],
        [moment.strftime("%Y/%m/%d %H:%M:%S.%f") for moment in moments],
        [str(number) for number in elapsed],
        [f"{number // 1000}.{number % 1000:03d}" for number in elapsed],
    ]
    first, *others = (stamps(*texts, period="1min") for texts in written)
    for log in others:
        assert log.start == first.start
        np.testing.assert_array_equal(log.counts, first.counts)


# --- the flights of 2013


@pytest.mark.long  # its doctest reads the same file
def test_departures():
    log = read_events(DEPARTURES, time="scheduled_departure", by="origin", period="5min")
    assert log.series == ("EWR", "JFK", "LGA")
    np.testing.assert_array_equal(log.counts.sum(axis=1), [120_835, 111_279, 104_662])
    assert log.start == np.datetime64("2013-01-01T05:15")
    assert log.times()[-1] == np.datetime64("2013-12-31T23:55")


def test_departures_are_those_of_the_naive_twin(write):
    """A thousand rows of every ten thousand: all of some days in each month."""
    with gzip.open(DEPARTURES, "rt") as file:
        header, *lines = (line for i, line in enumerate(file) if i // 1000 % 10 == 0)
    path = write(header + "".join(lines))
    table = [line.rstrip("\n").split(",") for line in lines]
    log = read_events(path, time="scheduled_departure", by="origin", period="7min")
    rows = [(datetime.fromisoformat(time), origin) for time, origin in table]
    assert occupied(log) == naive_counts(rows, timedelta(minutes=7))
