"""Estimates in a table of a database: of the store alone, idempotent, and without a word of the driver."""

import functools
import re
import sqlite3

import numpy as np
import pytest
from helpers.seeded_noise import seed_noise
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import DataError, ReleaseError
from dpfast.cli.main import main

COUNTS = np.random.default_rng(1).poisson(2, (2, 30))
SECRET = "s3cr3t"


@functools.cache
def planned():
    mechanism = dp.lmmse(
        dp.Filter(np.ones(3) / 3), dp.Privacy(1, 1e-6), dp.ARMA([1], [1, -0.5], mean=2.0), lag=2, tolerance=0.1
    )
    return dp.exact(mechanism, dp.Inputs(0, 20, n_streams=2))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with two releases, of steps 7 to 36, and of 37 to 66."""
    path = tmp_path_factory.mktemp("table") / "store"
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, 1)  # v of it agrees with the model
        for first in (7, 37):
            dp.release(planned(), COUNTS, path, first=first)
    return path


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:") as connection:
        yield connection
    connection.close()


def content(connection, table="estimates"):
    return connection.execute(f"SELECT * FROM {table} ORDER BY shard, release_number, step, series").fetchall()


def expected(store, release, shard="north"):
    result = dp.read_release(store, release)
    error = float(f"{result.predicted_rmse_if_model_holds:.6g}")
    return [
        (shard, result.number, result.first + t, str(i), None, float(result.estimate[i, t]), error)
        for t in range(result.estimate.shape[1])
        for i in range(2)
    ]


def test_the_table_has_the_estimates_of_the_store(store, connection):
    assert dp.write_table(store, connection, shard="north", release=1) == 60
    assert content(connection) == expected(store, 1)
    assert dp.write_table(store, connection, shard="north") == 60
    assert dp.write_table(store, connection, shard="south", release=1) == 60
    assert content(connection) == expected(store, 1) + expected(store, 2) + expected(store, 1, "south")
    names = [row[1] for row in connection.execute("PRAGMA table_info(estimates)") if row[5]]
    assert names == ["shard", "release_number", "step", "series"]  # the primary key


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lost=st.sets(st.integers(0, 59)), again=st.integers(1, 3))
def test_the_same_again_adds_what_is_missing_and_changes_nothing(store, lost, again):
    connection = sqlite3.connect(":memory:")
    dp.write_table(store, connection, shard="north")
    for i in lost:
        connection.execute("DELETE FROM estimates WHERE step = ? AND series = ?", (37 + i // 2, str(i % 2)))
    connection.commit()
    assert [dp.write_table(store, connection, shard="north") for _ in range(again)] == [len(lost)] + [0] * (again - 1)
    assert content(connection) == expected(store, 2)
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE estimates SET estimate = estimate + 1e-12 WHERE step = 40 AND series = '1'",
        "UPDATE estimates SET bin_start = '2020-01-01' WHERE step = 40 AND series = '1'",
        "UPDATE estimates SET predicted_rmse_if_model_holds = NULL WHERE step = 40 AND series = '1'",
        "UPDATE estimates SET predicted_rmse_if_model_holds = 9 WHERE step = 40 AND series = '1'",
        "UPDATE estimates SET series = 'other' WHERE step = 40 AND series = '1'",
    ],
)
def test_other_content_is_refused_and_nothing_is_written(store, connection, change):
    dp.write_table(store, connection, shard="north")
    connection.execute(change)
    connection.execute("DELETE FROM estimates WHERE step = 66")
    connection.commit()
    before = content(connection)
    with pytest.raises(
        ReleaseError, match=r"other content .* for shard 'north', release 2, step 40, series '(1|other)'"
    ):
        dp.write_table(store, connection, shard="north")
    assert content(connection) == before


def test_a_rounding_of_the_predicted_error_is_no_other_content(store, connection):
    dp.write_table(store, connection, shard="north")
    connection.execute(
        "UPDATE estimates SET predicted_rmse_if_model_holds = predicted_rmse_if_model_holds * (1 + 1e-5)"
    )
    assert dp.write_table(store, connection, shard="north") == 0


# --- streams, and stores of the command


def test_a_stream_is_written_as_far_as_it_has_come(tmp_path, connection):
    for end in (5, 12):
        with dp.open_stream(planned(), tmp_path / "store") as stream:
            stream.push(COUNTS[:, stream.position : end])
        dp.write_table(tmp_path / "store", connection, shard="live")
        assert [row[2:4] for row in content(connection)] == [(t, i) for t in range(end - 2) for i in "01"]
    result = dp.read_release(tmp_path / "store")
    known = {(row[2], row[3]): row[5] for row in content(connection)}
    assert [known[result.first + t, "0"] for t in range(result.estimate.shape[1])] == result.estimate[0].tolist()


def test_rows_that_are_added_when_v_contradicts_the_model_state_no_error(tmp_path, connection):
    counts = np.random.default_rng(2).poisson(15, (2, 80))  # where the model says 2
    for end in (30, 80, 80):
        with dp.open_stream(planned(), tmp_path / "store") as stream:
            stream.push(counts[:, stream.position : end])
        dp.write_table(tmp_path / "store", connection, shard="live")
    assert dp.read_release(tmp_path / "store").model_check.agrees is False
    assert [row[6] is None for row in content(connection)] == [row[2] >= 28 for row in content(connection)]
    assert len(content(connection)) == 2 * 78


@pytest.mark.parametrize("zone", ["", "Z"])
def test_bins_and_groups_that_a_store_declares(tmp_path, connection, zone, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6)), "mechanism.json")
    (tmp_path / "log.csv").write_text(f"t,g\n2020-01-01T05:00{zone},b\n")
    span = ["--start", f"2020-01-01T00:00{zone}", "--end", f"2020-01-01T02:00{zone}", "--period", "1h"]
    declared = ["--time", "t", "--by", "g", "--groups", "b,a", "--high", "9", "--out", "out", *span]
    assert main(["release", "log.csv", "--mechanism", "mechanism.json", *declared]) == 0
    assert dp.write_table("out-private", connection, shard="x", table="main.published", published="out") == 4
    rows = connection.execute("SELECT series, bin_start FROM published ORDER BY step, rowid").fetchall()
    assert rows == [(g, f"2020-01-01T0{h}:00:00.000000{zone}") for h in range(2) for g in "ba"]


# --- drivers


class Driver(sqlite3.Connection):
    """A driver with other placeholders, which are checked; or one that fails, and quotes what it was given."""

    style = "qmark"
    fails_at = None
    rows = staticmethod(tuple)

    def cursor(self):
        return DriverCursor(self, sqlite3.Connection.cursor(self))


class DriverCursor:
    def __init__(self, driver, cursor):
        self.driver, self.inner = driver, cursor
        self.close = cursor.close

    def translate(self, statement):
        if self.driver.style != "qmark":
            assert "?" not in statement
        return re.sub(r"%s|:(?=\d)", "?", statement)

    def fail(self, statement):
        if self.driver.fails_at is not None and self.driver.fails_at in statement:
            raise sqlite3.IntegrityError(f"duplicate key: {SECRET}")

    def execute(self, statement, *values):
        self.fail(statement)
        self.inner.execute(self.translate(statement), *values)

    def executemany(self, statement, rows):
        self.inner.executemany(self.translate(statement), rows[: 40 if self.driver.fails_at else None])
        self.fail(statement)  # when some are there

    def fetchmany(self, n):
        return [self.driver.rows(row) for row in self.inner.fetchmany(n)]


@pytest.mark.parametrize("style", ["qmark", "format", "pyformat", "numeric", "named"])
def test_placeholders_of_all_styles(store, style):
    driver = sqlite3.connect(":memory:", factory=Driver)
    driver.style = style
    driver.rows = (lambda row: dict(enumerate(row))) if style == "pyformat" else list  # as a row factory makes them
    assert [dp.write_table(store, driver, shard="north", paramstyle=style) for _ in range(2)] == [60, 0]
    assert content(driver) == expected(store, 2)
    driver.close()


@pytest.mark.parametrize("place", ["CREATE", "SELECT", "INSERT"])
@pytest.mark.parametrize("autocommit", [False, True])
def test_what_a_driver_says_is_not_shown_and_the_same_again_goes_on(store, place, autocommit):
    driver = sqlite3.connect(":memory:", factory=Driver, isolation_level=None if autocommit else "")
    driver.fails_at = place
    message = "^the table estimates cannot be written, by an error of the kind IntegrityError of its driver"
    with pytest.raises(DataError, match=message) as caught:
        dp.write_table(store, driver, shard="north")
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__
    assert not driver.in_transaction
    driver.fails_at = None
    there = 40 if autocommit and place == "INSERT" else 0
    assert dp.write_table(store, driver, shard="north") == 60 - there
    assert content(driver) == expected(store, 2)
    driver.close()


def test_what_is_given_is_checked_before_the_database(store, connection, tmp_path):
    bad = [
        ({"shard": ""}, "^shard must be a printable name"),
        ({"shard": "a\n"}, "^shard must be a printable name"),
        ({"shard": "x" * 256}, "^shard must be a printable name"),
        ({"shard": 1}, "^shard must be a printable name"),
        ({"table": "a b"}, "^table must be a name of letters"),
        ({"table": "a.b.c"}, "^table must be a name of letters"),
        ({"table": "estimates; DROP TABLE x"}, "^table must be a name of letters"),
        ({"paramstyle": "percent"}, "^paramstyle must be one of 'qmark'"),
        ({"release": 3}, "^release must be one that the store"),
    ]
    for change, message in bad:
        with pytest.raises(ValueError, match=message):
            dp.write_table(store, connection, **{"shard": "north", **change})
    with pytest.raises(ValueError, match=r"^connection must be one of Python's DB-API, .* got a str$"):
        dp.write_table(store, "postgres://ada:password@host", shard="north")
    with pytest.raises(ReleaseError, match="there is no store in"):
        dp.write_table(tmp_path, connection, shard="north")
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


@pytest.mark.engines
def test_a_store_in_postgresql_goes_into_a_table_beside_it(postgres_server, tmp_path):
    """Through another session of the same database, where a stream goes on between two calls."""
    psycopg = pytest.importorskip("psycopg")
    place = dp.Postgres(postgres_server.address, f"table-{abs(hash(tmp_path)) % 10**9}")
    name = f"estimates_{place.name.replace('-', '_')}"
    with psycopg.connect(postgres_server.address) as connection:
        for n, rows in ((30, 28 * 2), (12, 12 * 2)):  # estimates are two steps late
            with dp.open_stream(planned(), place, published=tmp_path / "out") as stream:
                stream.push(COUNTS[:, :n])
            options = {"shard": "north", "table": name, "published": tmp_path / "out"}
            assert dp.write_table(place, connection, **options) == rows
            assert dp.write_table(place, connection, **options) == 0
        found = connection.execute(f"SELECT step, series, estimate FROM {name} ORDER BY step, series").fetchall()
    result = dp.read_release(place, published=tmp_path / "out")
    assert found == [(t, str(i), result.estimate[i, t]) for t in range(40) for i in range(2)]
