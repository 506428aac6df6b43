"""One log through every reader: the same counts, and no message that shows a cell."""

import bz2
import csv
import gzip
import io
import random
import sqlite3
import uuid
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import DataError
from dpfast.signals.events.logs import read_columns

SPAN = dp.Span.parse("2024-01-01", "2024-01-05", "6h")
GROUPS = ("a", "b", "(missing)")
NAMES = ("t", "g", "n", "p")
SECRET = "s3cr3t-of-ada"


def as_csv(rows):
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(NAMES)
    writer.writerows(
        ["" if x is None else x.isoformat() if isinstance(x, datetime) else x for x in row] for row in rows
    )
    return out.getvalue().encode()


def as_arrow(rows):
    times = pa.timestamp("us", "UTC" if rows and rows[0][0].tzinfo else None)
    kinds = dict(zip(NAMES, (times, pa.string(), pa.int64(), pa.string()), strict=True))
    return pa.table({name: pa.array(column(rows, i), kinds[name]) for i, name in enumerate(NAMES)})


def column(rows, i):
    return [row[i] for row in rows]


def as_polars(rows):
    pl = pytest.importorskip("polars")
    times = pl.Datetime("ns", "UTC" if rows and rows[0][0].tzinfo else None)
    kinds = dict(zip(NAMES, (times, pl.Categorical, pl.UInt64, pl.String), strict=True))
    return pl.DataFrame({name: pl.Series(column(rows, i), dtype=kinds[name]) for i, name in enumerate(NAMES)})


def as_pandas(rows):
    return pd.DataFrame({name: column(rows, i) for i, name in enumerate(NAMES)})


def as_objects(rows):
    return as_pandas(rows).astype(object)


def as_categories(rows):
    frame = as_pandas(rows).astype({"g": "category", "n": "Int64", "p": "string"})
    frame["g"] = frame["g"].cat.add_categories(["never", SECRET])
    return frame.sample(frac=1, random_state=1).sort_index()


def as_query(rows):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE log (t, g, n, p)")
    texts = [(row[0].isoformat(), *row[1:]) for row in rows]
    connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", texts)
    return dp.Query(connection, "SELECT n, p, g, t FROM log WHERE n < ? ORDER BY rowid", (2**60,))


def write(name, content):
    def write_file(rows, folder):
        path = folder / name
        path.write_bytes(content(rows))
        return path

    return write_file


def parquet(**options):
    def content(rows):
        out = io.BytesIO()
        pq.write_table(as_arrow(rows), out, **options)
        return out.getvalue()

    return content


def zstd(rows):
    return pa.compress(as_csv(rows), "zstd", asbytes=True)


def zstd_in_frames(rows):
    content = as_csv(rows)
    return b"".join(pa.compress(x, "zstd", asbytes=True) for x in (content[:20], content[20:]) if x)


def no_file(make):
    return lambda rows, folder: make(rows)


READERS = {
    "csv": write("log.csv", as_csv),
    "gzip": write("log.csv.gz", lambda rows: gzip.compress(as_csv(rows))),
    "bzip2": write("log.csv.bz2", lambda rows: bz2.compress(as_csv(rows))),
    "bzip2 in parts": write("log.txt", lambda rows: bz2.compress(as_csv(rows)[:9]) + bz2.compress(as_csv(rows)[9:])),
    "zstd": write("log.csv.zst", zstd),
    "zstd in frames": write("log.zst", zstd_in_frames),
    "parquet": write("log.parquet", parquet(row_group_size=3)),
    "parquet without dictionaries": write("log", parquet(use_dictionary=False, compression="zstd")),
    "arrow": no_file(as_arrow),
    "arrow in batches": no_file(
        lambda rows: pa.Table.from_batches(as_arrow(rows).to_batches(2), as_arrow([]).schema if not rows else None)
    ),
    "pandas": no_file(as_pandas),
    "pandas objects": no_file(as_objects),
    "pandas categories": no_file(as_categories),
    "polars": no_file(as_polars),
    "query": no_file(as_query),
}

MOMENTS = st.datetimes(datetime(2023, 12, 31), datetime(2024, 1, 6))
ROWS = st.lists(
    st.tuples(
        MOMENTS,
        st.sampled_from(["a", "b", "c", None]),
        st.integers(0, 5) | st.just(2**53),
        st.sampled_from(["ada", "bob", "7", None]),
    ),
    min_size=1,
    max_size=30,
)


def naive_counts(rows):
    cells = Counter()
    for moment, group, weight, _ in rows:
        moment = moment.replace(tzinfo=None)
        cells[group or "(missing)", (moment - datetime(2024, 1, 1)) // timedelta(hours=6)] += weight
    return [[min(cells[group, i], 2**53) for i in range(16)] for group in GROUPS]


def naive_events(rows):
    """Of each event in time the bin, group, weight and person, in the order of time and then of rows."""
    named = [(t, g or "(missing)", n, p) for t, g, n, p in sorted(rows, key=lambda row: row[0]) if p is not None]
    bins = [((t - datetime(2024, 1, 1)) // timedelta(hours=6), g, n, p) for t, g, n, p in named]
    return [(i, GROUPS.index(g), p.encode()) for i, g, n, p in bins if 0 <= i < 16 and g in GROUPS]


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_every_reader_gives_the_counts_of_the_rows(reader, tmp_path, rows):
    log = READERS[reader](rows, tmp_path)
    seen = []
    found = dp.count_events(log, SPAN, GROUPS, time="t", by="g", count="n", seen=seen.append)
    assert found.counts.tolist() == naive_counts(rows)
    assert seen[0].total == len(rows)
    events = dp.Events.read(READERS[reader](rows, tmp_path), SPAN, GROUPS, time="t", by="g", person="p")
    assert events.in_order()[1] == sorted(naive_events(rows), key=lambda x: x[0])


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_zones_are_as_in_csv(reader, tmp_path, rows):
    """In UTC for a span in UTC; refused, without a value, where the span has no zone, and the other way round."""
    zoned = [(row[0].replace(tzinfo=UTC), *row[1:]) for row in rows]
    span = dp.Span.parse("2024-01-01T00:00Z", "2024-01-05T00:00Z", "6h")
    options = {"time": "t", "by": "g", "count": "n"}
    assert dp.count_events(READERS[reader](zoned, tmp_path), span, GROUPS, **options).counts.tolist() == naive_counts(
        rows
    )
    with pytest.raises(DataError, match="without a UTC offset as start is, got some with a UTC offset"):
        dp.count_events(READERS[reader](zoned, tmp_path), SPAN, GROUPS, **options)
    with pytest.raises(DataError, match="with a UTC offset as start is, got some without a UTC offset"):
        dp.count_events(READERS[reader](rows, tmp_path), span, GROUPS, **options)


@pytest.mark.parametrize("reader", READERS)
def test_a_column_that_is_not_there_is_named_and_no_other(reader, tmp_path):
    log = READERS[reader]([(datetime(2024, 1, 1), "a", 1, SECRET)], tmp_path)
    with pytest.raises(DataError, match=r"no column 'when' in the header \(4 columns found\)"):
        dp.count_events(log, SPAN, time="when")


# --- what a cell may be


def test_values_of_databases_and_frames_are_the_texts_of_csv():
    key = uuid.UUID(int=7)
    east = timezone(timedelta(hours=2))
    texts = {
        "text": "text",
        7: "7",
        np.int8(-3): "-3",
        2**70: str(2**70),
        1.5: "1.5",
        float("nan"): "",
        Decimal("12"): "12",
        Decimal("2.50"): "2.50",
        Decimal("nan"): "",
        None: "",
        pd.NA: "",
        pd.NaT: "",
        b"bytes": "bytes",
        key: str(key),
        date(2024, 2, 3): "2024-02-03",
        datetime(2024, 2, 3, 4, 5, 6, 7): "2024-02-03T04:05:06.000007",
        datetime(2024, 2, 3, 1, tzinfo=east): "2024-02-02T23:00:00Z",
        pd.Timestamp("2024-02-03T04:05:06.123456789", tz="UTC"): "2024-02-03T04:05:06.123456789Z",
        np.datetime64("2024-02-03T04:05"): "2024-02-03T04:05",
    }
    found = read_columns(pd.DataFrame({"x": pd.Series(list(texts), dtype=object)}), ["x"])["x"]
    assert [found.texts[code] for code in found.codes] == list(texts.values())


OTHERS = [
    True,
    [1],
    {"a": 1},
    timedelta(1),
    1j,
    object(),
    "\ud800",
    10**100,
    datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
]


@pytest.mark.parametrize("value", OTHERS, ids=lambda x: type(x).__name__)
def test_what_is_no_text_number_or_time_is_refused_with_its_row(value):
    frame = pd.DataFrame({"x": pd.Series(["2024-01-01", value, value], dtype=object)})
    with pytest.raises(DataError) as caught:
        dp.count_events(frame, SPAN, time="x")
    assert str(caught.value) == (
        "the DataFrame: column 'x' must hold texts, numbers or times, got something else in row 2 (2 such rows): "
        "convert it"
    )


@pytest.mark.parametrize(
    "kind", ["timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "date32", "date64"]
)
def test_times_of_all_resolutions(kind):
    types = {"date32": pa.date32(), "date64": pa.date64()}
    of_kind = types.get(kind) or pa.timestamp(kind[10:-1])
    days = [datetime(1969, 12, 30), None, datetime(1970, 1, 2)]
    table = pa.table({"t": pa.array(days, pa.timestamp("s")).cast(of_kind), "n": [1, 0, 2]})
    span = dp.Span.parse("1969-12-30", "1970-01-03", "1d")
    with pytest.raises(DataError, match=r"got nothing in row 2 \(1 such row\)$"):
        dp.count_events(table, span, time="t", count="n")
    assert dp.count_events(table.take([0, 2]), span, time="t", count="n").counts.tolist() == [[1, 0, 0, 2]]


def test_fractions_of_a_microsecond_are_cut_off_on_both_sides_of_1970():
    ns = np.array(["1969-12-31T23:59:59.999999999", "1970-01-01T00:00:00.000000999"], "M8[ns]")
    span = dp.Span.parse("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00.000001", "1us")
    for log in (pd.DataFrame({"t": ns}), pa.table({"t": ns})):
        assert dp.count_events(log, span, time="t").counts.tolist() == [[1, 1]]


def test_times_far_away_do_not_wrap_around():
    """A count of seconds that overflows as microseconds could come out in the span."""
    far = (2**64 // 10**6) + int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    table = pa.table({"t": pa.array([far], pa.timestamp("s"))})
    with pytest.raises(DataError, match=r"must hold timestamps .*in row 1 \(1 such row\)"):
        dp.count_events(table, SPAN, time="t")


@pytest.mark.parametrize("count", [-1, 2**53 + 1, 2**63 - 1, 0.5, float("inf"), None])
def test_counts_that_are_none_are_refused(count):
    frame = pd.DataFrame({"t": ["2024-01-01"] * 2, "n": pd.Series([1, count], dtype=object)})
    for log in (frame, pa.table({"t": ["2024-01-01"] * 2, "n": pa.array([1, count])}) if count != 0.5 else frame):
        with pytest.raises(DataError, match=r"must hold whole numbers from 0 to 2\*\*53, got something else in row 2"):
            dp.count_events(log, SPAN, time="t", count="n")


def test_integers_are_read_beyond_what_a_float_holds():
    ids = [2**53, 2**53 + 1, 2**63 - 1]
    log = pa.table({"t": ["2024-01-01"] * 3, "p": ids})
    for frame in (log, log.to_pandas()):
        events = dp.Events.read(frame, SPAN, time="t", person="p").in_order()[1]
        assert [person for *_, person in events] == [str(x).encode() for x in ids]


def test_ids_that_are_bytes_are_told_apart():
    """Also those that are no UTF-8; text and its bytes are one id, as everywhere."""
    ids = [b"\xff", b"\xfe", b"\xc3\xa9", b"a\0", b"a"]
    log = pa.table({"t": ["2024-01-01"] * 5, "p": ids})
    for frame in (log, log.to_pandas()):
        events = dp.Events.read(frame, SPAN, time="t", person="p").in_order()[1]
        assert [person for *_, person in events] == ids


@pytest.mark.parametrize(
    "read",
    [
        lambda log: dp.count_events(log, SPAN, ("7",), time="t", by="x"),
        lambda log: dp.Events.read(log, SPAN, time="t", person="x"),
    ],
    ids=["groups", "persons"],
)
def test_floats_and_times_are_no_names(read):
    """One month's log would have 7 where another month's, with a missing id, has 7.0."""
    frame = pd.DataFrame({"t": ["2024-01-01"] * 3, "x": [None, 7, 8]})
    times = pa.table({"t": ["2024-01-01"] * 3, "x": pa.array([None, 7, 8], pa.timestamp("s"))})
    for log in (frame, times, pa.Table.from_pandas(frame)):
        with pytest.raises(DataError, match=r"column 'x' must hold texts, .* in row 2 \(2 such rows\): convert"):
            read(log)
    whole = frame.astype({"x": "Int64"})
    assert dp.count_events(whole, SPAN, ("7", "(missing)"), time="t", by="x").counts[:, 0].tolist() == [1, 1]


# --- messages


def test_what_the_operator_gives_is_checked():
    for log, kind in ((None, "NoneType"), ([SECRET], "list"), (np.array([SECRET]), "ndarray")):
        with pytest.raises(ValueError, match=rf"^log must be .* or a Query, got a {kind}$") as caught:
            dp.count_events(log, SPAN, time="t")
        assert SECRET not in str(caught.value)
    with pytest.raises(ValueError, match=r"^span must be a dpfast.Span"):
        dp.count_events("log.csv", "2024", time="t")
    with pytest.raises(ValueError, match=r"^groups must be one name where no column is given by, got 2: give by"):
        dp.count_events("log.csv", SPAN, ("a", "b"), time="t")
    with pytest.raises(ValueError, match=r"^connection must be one of Python's DB-API"):
        dp.Query("postgres://ada:password@host", "SELECT 1")
    with pytest.raises(ValueError, match=r"^sql must be the text of a query, got a int$"):
        dp.Query(sqlite3.connect(":memory:"), 1)
    assert SECRET not in repr(dp.Query(sqlite3.connect(":memory:"), f"SELECT '{SECRET}'", (SECRET,)))


def test_lazy_frames_are_to_be_collected():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"got a LazyFrame: collect it$"):
        dp.count_events(pl.LazyFrame({"t": [SECRET]}), SPAN, time="t")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.gz", gzip.compress(b"t\n" + b"2024-01-01\n" * 99, mtime=0)[:-9], "must be a whole gzip file"),
        ("x.bz2", bz2.compress(b"t\n" + b"2024-01-01\n" * 99)[:-9], "must be a whole bzip2 file"),
        ("x.bz2", bz2.compress(b"t\n")[:-9] + b"damage of 9", "must be a whole bzip2 file"),
        ("x.zst", pa.compress(b"t\n" + b"2024-01-01\n" * 99, "zstd", asbytes=True)[:-9], "must be a whole zstd file"),
        ("x.zst", b"\x28\xb5\x2f\xfd" + SECRET.encode() * 9, "must be a whole zstd file"),
        ("x.parquet", b"t\n2024-01-01\n", "must be a Parquet file, as its name says, got something else"),
        ("x.parquet", b"PAR1" + b"\x15" * 99 + SECRET.encode() + b"PAR1", "cannot be read, by an error of the kind"),
        ("x.csv", b"PAR1\x15" + SECRET.encode(), "cannot be read, by an error of the kind"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        dp.count_events(tmp_path / name, SPAN, time="t")
    assert SECRET not in str(caught.value)


def test_names_of_compressions_may_be_names_of_columns(tmp_path):
    for name in ("BZh9", "PAR1", "BZh", "PAR1,t"):
        (tmp_path / "log.csv").write_text(f"{name}\n2024-01-01{',1' * name.count(',')}\n")
        assert dp.count_events(tmp_path / "log.csv", SPAN, time=name.split(",")[0]).counts.sum() == 1


class FaultyCursor:
    """A cursor of a driver whose errors quote what they failed on."""

    description = (("t",), ("g",))

    def __init__(self, where):
        self.where = where

    def execute(self, sql):
        if self.where == "execute":
            raise ValueError(f"invalid input: {SECRET}")

    def fetchmany(self, n):
        raise RuntimeError(f"cannot decode {SECRET}")

    def close(self):
        pass


class FaultyConnection:
    def __init__(self, where):
        self.where = where

    def cursor(self):
        if self.where == "cursor":
            raise OSError(f"lost {SECRET}")
        return FaultyCursor(self.where)


@pytest.mark.parametrize(
    ("where", "kind"), [("cursor", "OSError"), ("execute", "ValueError"), ("fetch", "RuntimeError")]
)
def test_what_a_driver_says_is_not_shown(where, kind):
    with pytest.raises(DataError, match=rf"^the query cannot be read, by an error of the kind {kind}, ") as caught:
        dp.count_events(dp.Query(FaultyConnection(where), "SELECT"), SPAN, time="t")
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_queries_must_give_rows():
    connection = sqlite3.connect(":memory:")
    with pytest.raises(DataError, match=r"^the query must give rows, as a SELECT does, got none: give another query$"):
        dp.count_events(dp.Query(connection, "CREATE TABLE x (t)"), SPAN, time="t")
    connection.execute("INSERT INTO x VALUES (CAST(? AS TEXT))", (b"\xff" + SECRET.encode(),))
    with pytest.raises(DataError, match="of the kind OperationalError") as caught:  # sqlite3 quotes the text
        dp.count_events(dp.Query(connection, "SELECT t FROM x"), SPAN, time="t")
    assert SECRET not in str(caught.value)


BAD = [
    SECRET,
    f"{SECRET}\x00",
    SECRET.encode() + b"\xff",
    12345678901234567890123,
    6.02214076e23,
    Decimal("6.02214076e23"),
    [SECRET],
    {SECRET: 1},
    timedelta(seconds=602214076),
    f"2024-01-01T{SECRET}",
    True,
]
SHOWN = [SECRET, "12345678901234567890123", "6.02214076", "602214076", "6022140"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reader", ["csv", "parquet", "arrow", "pandas", "pandas objects", "polars", "query"])
def test_no_message_shows_a_bad_cell(reader, name, tmp_path):
    """Each kind of bad cell, in each column, through each reader: counted, or refused without its value."""
    for bad in BAD:
        rows = [[datetime(2024, 1, 1).isoformat(), "a", 1, "ada"] for _ in range(9)]
        at = random.Random(1).randrange(9)
        rows[at][NAMES.index(name)] = bad
        try:
            log = LOOSE[reader](rows, tmp_path)
        except Exception:  # noqa: BLE001 - what this kind of log cannot hold at all
            continue
        for read in (
            lambda log: dp.count_events(log, SPAN, GROUPS, time="t", by="g", count="n"),
            lambda log: dp.Events.read(log, SPAN, GROUPS, time="t", by="g", count="n", person="p"),
        ):
            error = refusal(read, log)
            said = str(error)
            assert not any(x in said for x in SHOWN), said
            assert error is None or error.__suppress_context__ or error.__context__ is None
            assert error is None or f"'{name}'" in said or "line" in said or reader == "query", said


def refusal(read, log):
    """The error of a reading; None where nothing was refused."""
    try:
        read(log)
    except DataError as error:
        return error
    return None


def loose_query(rows, folder):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE log (t, g, n, p)")
    connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)
    return dp.Query(connection, "SELECT t, g, n, p FROM log ORDER BY rowid")


def loose_arrow(rows):
    return pa.table(
        {
            name: [
                row[i] if len({type(x[i]) for x in rows}) == 1 else row[i] if row[i] not in ("a", "ada", 1) else None
                for row in rows
            ]
            for i, name in enumerate(NAMES)
        }
    )


def loose_parquet(rows, folder):
    pq.write_table(loose_arrow(rows), folder / "log.parquet")
    return folder / "log.parquet"


LOOSE = {
    "csv": write("log.csv", as_csv),
    "parquet": loose_parquet,
    "arrow": no_file(loose_arrow),
    "pandas": no_file(lambda rows: pd.DataFrame(rows, columns=NAMES).convert_dtypes()),
    "pandas objects": no_file(lambda rows: pd.DataFrame(rows, columns=NAMES, dtype=object)),
    "polars": no_file(lambda rows: pytest.importorskip("polars").from_arrow(loose_arrow(rows))),
    "query": loose_query,
}
