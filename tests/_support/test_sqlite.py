"""Connections to files of SQLite: what ends with them, why SQLite refuses, and checksums."""

import sqlite3

import pytest

from dpfast._support import checksums, sqlite
from dpfast._support.sqlite import Cause, Connection


@pytest.fixture
def connection(tmp_path):
    connection = Connection.open(tmp_path / "s.sqlite", patience=0)
    connection.execute("CREATE TABLE t (x)")
    yield connection
    connection.close()


def test_closing_ends_statements_that_something_still_refers_to(tmp_path, connection):
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.keep_log("FULL")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    cursor = connection.execute("SELECT x FROM t")
    assert cursor.fetchone() == (1,)
    connection.close()
    other = Connection.open(tmp_path / "s.sqlite", patience=0)
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    other.close()
    assert not sqlite.log_path(tmp_path / "s.sqlite").exists()


def test_an_action_that_fails_writes_nothing(connection):
    def action():
        connection.execute("INSERT INTO t VALUES (1)")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connection.write(action)
    assert not connection.in_transaction
    assert connection.write(lambda: connection.execute("SELECT count(*) FROM t").fetchone()) == (0,)


def test_a_transaction_that_an_interruption_left_open_is_rolled_back(connection):
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1)")
    assert connection.write(lambda: connection.execute("SELECT count(*) FROM t").fetchone()) == (0,)


def test_causes(tmp_path, connection):
    def cause(action):
        with pytest.raises((sqlite3.Error, BlockingIOError)) as caught:
            action()
        return sqlite.cause_of(caught.value)

    other = Connection.open(tmp_path / "s.sqlite", patience=0)
    connection.execute("BEGIN EXCLUSIVE")
    assert cause(lambda: other.execute("SELECT * FROM t")) is Cause.BUSY
    assert cause(lambda: other.keep_log("FULL")) is Cause.BUSY
    connection.execute("ROLLBACK")
    other.execute("PRAGMA query_only=ON")
    assert cause(lambda: other.execute("INSERT INTO t VALUES (1)")) is Cause.UNWRITABLE
    assert cause(lambda: other.execute("SELECT * FROM u")) is Cause.DAMAGE
    other.close()
    assert cause(lambda: other.execute("SELECT * FROM t")) is Cause.MISUSE
    assert cause(lambda: Connection.open(tmp_path / "none.sqlite", must_exist=True)) is Cause.UNWRITABLE
    connection.execute("PRAGMA max_page_count=2")
    assert cause(lambda: connection.execute("INSERT INTO t VALUES (zeroblob(100000))")) is Cause.NO_ROOM
    (tmp_path / "text").write_text("no database, but a text of some length" * 50)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        Connection.open(tmp_path / "text").execute("SELECT * FROM t")
    assert sqlite.cause_of(caught.value) is Cause.DAMAGE
    assert sqlite.cause_of(BlockingIOError()) is Cause.BUSY
    assert sqlite.cause_of(sqlite.OperationalError("found by Python")) is Cause.DAMAGE


@pytest.mark.parametrize("explained", [None, RuntimeError("said")])
def test_errors_are_explained_or_pass(connection, explained):
    with (
        pytest.raises(type(explained or sqlite3.OperationalError())),
        sqlite.explaining(lambda cause, error: explained),
    ):
        connection.execute("SELECT * FROM u")


def test_checksums_are_those_of_files_that_are_there():
    row = checksums.seal_row(1, "live", b"\x00\x01", None)
    assert row == (1, "live", b"\x00\x01", None, 3366151077)
    assert checksums.is_sealed(row)
    assert not checksums.is_sealed((2, *row[1:]))
    crc = checksums.checksum(b"content", 3, "key")
    assert crc == 113965609
    assert checksums.is_intact(crc, b"content", 3, "key")
    assert not checksums.is_intact(crc, b"content", 4, "key")
    assert not checksums.is_intact(crc, "content", 3, "key")
