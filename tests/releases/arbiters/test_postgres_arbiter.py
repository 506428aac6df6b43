"""Stores in PostgreSQL: the same values, one writer, nothing twice, whatever becomes of the server."""

import itertools
import threading

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.witness import Witness

pytestmark = pytest.mark.engines
INPUTS = dp.Inputs(0, 9, n_streams=2)
PLAN = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), INPUTS, tolerance=0.1)
U = np.clip(fakes.signal(0, 60), 0, 9)
NAMES = (f"store-{n}" for n in itertools.count())


@pytest.fixture
def server(postgres_server):
    yield postgres_server
    if not (postgres_server.data / "postmaster.pid").exists():
        postgres_server.start()


@pytest.fixture
def place(server):
    return dp.Postgres(server.address, next(NAMES))


def opened(place, tmp_path, **options):
    return dp.open_stream(PLAN, place, published=tmp_path / "published", **options)


def rows(server, place, table="pushes"):
    return server.execute(f'SELECT * FROM "{place.schema}".{table}')


def test_a_stream_in_postgresql_is_one_in_a_folder(place, tmp_path):
    """Opened again and again, with replays; estimates are those of its v."""
    published = []
    for first in range(0, 60, 12):
        with opened(place, tmp_path, replay_steps=7) as stream:
            assert stream.position == first
            again = stream.push(U[:, max(0, first - 5) : first + 12], first=max(0, first - 5))
            published.append(again.privatized[:, min(first, 5) :])
            assert (
                again.privatized[:, : min(first, 5)] == stream.read(max(0, first - 5), min(first, 5)).privatized
            ).all()
    v = np.concatenate(published, axis=1)
    result = dp.read_release(place, published=tmp_path / "published")
    assert (result.privatized == v).all()
    assert np.array_equal(result.estimate, PLAN.estimate(v)[:, PLAN.lag or 0 :])
    noise = v - PLAN.privatize(np.zeros((2, 0), np.int64), U, np.zeros((2, 60), np.int64))
    assert np.abs(noise).max() > 0
    assert "This guarantee is per event" in (tmp_path / "published" / "guarantee.txt").read_text()


def test_batches_persons_and_histories_are_the_same_too(place, tmp_path):
    events = dp.Events(
        step=[0, 1, 1, 3], person=["ada", "ada", "bob", "ada"], stream=[0, 1, 1, 0], n_steps=5, n_streams=2
    )
    with pytest.raises(ValueError, match="key of persons must be given for the store"):
        dp.release(PLAN, events, place, published=tmp_path / "published", persons=dp.Persons())
    persons = dp.Persons(key=tmp_path / "keys" / "key", span=4)
    (tmp_path / "keys").mkdir(mode=0o700)
    for first in (0, 5):
        dp.release(PLAN, events, place, published=tmp_path / "published", persons=persons, first=first)
    with pytest.raises(ReleaseError, match="steps from 5 on were released already"):
        dp.release(PLAN, events, place, published=tmp_path / "published", persons=persons, first=5)
    assert dp.read_release(place, published=tmp_path / "published").first == 5
    live = place.beside("-live")
    with opened(live, tmp_path / "live", keep_steps=10) as stream:
        for t in range(0, 60, 3):
            stream.push(U[:, t : t + 3])
    assert 0 < dp.read_release(live, published=tmp_path / "live" / "published").first <= 50


def test_a_reader_works_beside_the_writer_and_takes_no_epoch(server, place, tmp_path):
    with opened(place, tmp_path) as stream:
        for n in range(1, 4):
            stream.push(U[:, :5])
            assert dp.read_release(place, published=tmp_path / "published").estimate.shape[1] <= 5 * n
            assert stream.position == 5 * n
        witness = (tmp_path / "published" / "witness.json").read_bytes()
        dp.read_release(place, published=tmp_path / "published")
        assert (tmp_path / "published" / "witness.json").read_bytes() == witness
        stream.push(U[:, :5])
    assert [row[1] for row in rows(server, place, "writers")] == [1]


def test_the_writer_before_is_fenced_in_the_transaction_that_inserts(server, place, tmp_path):
    old = opened(place, tmp_path)
    old.push(U[:, :10])
    new = opened(place, tmp_path)
    with new:
        assert new.position == 10
        with pytest.raises(ReleaseError, match=r"writer \(epoch 2\) has taken over .* this one \(epoch 1\)"):
            old.push(U[:, 10:20])
        v = new.push(U[:, 10:20]).privatized
        with pytest.raises(ReleaseError, match="was interrupted while it published"):
            old.push(U[:, 10:20])
        new.push(U[:, 20:30])
    old.suspend()
    assert len(rows(server, place)) == 3
    assert (dp.read_release(place, published=tmp_path / "published").privatized[:, 10:20] == v).all()
    with pytest.raises(ReleaseError, match=r"epoch must be higher than .*, 2, got 2"):
        opened(place, tmp_path, epoch=2)
    with opened(place, tmp_path, epoch=9) as stream:
        stream.push(U[:, 30:40])
    assert [row[1] for row in rows(server, place, "writers")] == [9]


def test_whoever_takes_over_waits_for_a_commit_and_sees_it(server, place, tmp_path, monkeypatch):
    """The old writer is in the middle of its transaction: its step is there, or it is not, and never twice."""
    old = opened(place, tmp_path)
    old.push(U[:, :10])
    inserted, go_on, published = threading.Event(), threading.Event(), []
    add = type(old._store._arbiter).add

    def slow(self, table, row):
        add(self, table, row)
        if self is old._store._arbiter and table == "pushes":
            inserted.set()
            assert go_on.wait(30)

    monkeypatch.setattr(type(old._store._arbiter), "add", slow)
    push = threading.Thread(target=lambda: published.append(old.push(U[:, 10:20]).privatized))
    push.start()
    assert inserted.wait(30)
    threading.Timer(0.5, go_on.set).start()
    with opened(place, tmp_path) as new:
        push.join()
        assert new.position == 20
        assert (new.push(U[:, 10:20], first=10).privatized == published[0]).all()
        with pytest.raises(ReleaseError, match="has taken over"):
            old.push(U[:, 20:30])


def test_a_writer_that_comes_late_leaves_what_is_public_as_it_is(place, tmp_path, monkeypatch):
    """It has committed, and stands still until another one has taken over and published."""
    committed, go_on, write = threading.Event(), threading.Event(), Witness.write
    late = threading.Thread(target=dp.release, args=(PLAN, U[:, :10], place), kwargs={"published": tmp_path / "public"})

    def stand_still(self, attestation, *files):
        if threading.current_thread() is late and attestation.position:
            committed.set()
            assert go_on.wait(30)
        write(self, attestation, *files)

    monkeypatch.setattr(Witness, "write", stand_still)
    late.start()
    assert committed.wait(30)
    dp.release(PLAN, U[:, :10], place, published=tmp_path / "public", first=10)
    found = {path.name: path.read_bytes() for path in (tmp_path / "public").iterdir()}
    assert b"Release 2" in found["guarantee.txt"]
    go_on.set()
    late.join()
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "public").iterdir()}


def test_two_first_openings_make_one_store(server, place, tmp_path):
    found, failed = [], []

    def begin(n):
        try:
            with opened(place, tmp_path) as stream:
                found.append(stream._store.id)
        except ReleaseError as error:  # whoever was replaced meanwhile
            failed.append(str(error))

    threads = [threading.Thread(target=begin, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert all("taken over" in words or "already" in words or "witness" in words for words in failed), failed
    assert len(rows(server, place, "releases")) == 1


# --- servers that take back what they committed -----------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [{"fsync": "off"}, {"full_page_writes": "off"}, {"synchronous_commit": "off"}, {"synchronous_commit": "local"}],
)
def test_a_server_that_may_forget_is_refused(server, place, tmp_path, setting):
    server.stop()
    server.start(**setting)
    try:
        with pytest.raises(
            ReleaseError, match=r"must have fsync on, full_page_writes on and synchronous_commit on .*got"
        ):
            opened(place, tmp_path)
        assert server.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.schema,)) == []
    finally:
        server.stop()
        server.start()


def test_settings_that_are_loosened_while_a_stream_is_open_do_not_loosen_it(server, place, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :5])
        server.execute("ALTER SYSTEM SET synchronous_commit = off")
        server.execute("SELECT pg_reload_conf()")
        try:
            stream.push(U[:, 5:10])  # it is set for the session
            assert stream._store._arbiter.execute("SHOW synchronous_commit").fetchone() == ("on",)
            with pytest.raises(ReleaseError, match=r"synchronous_commit on .*got on, on and off"):
                opened(place.beside("-other"), tmp_path / "other")
            stream._store._arbiter.execute("SET synchronous_commit = off")
            with pytest.raises(ReleaseError, match=r"synchronous_commit on .*got on, on and off"):
                stream.push(U[:, 10:15])
        finally:
            server.execute("ALTER SYSTEM RESET ALL")
            server.execute("SELECT pg_reload_conf()")
    assert len(rows(server, place)) == 2


def test_a_database_that_was_set_back_is_behind_its_witness(server, place, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
        server.execute(f'CREATE SCHEMA "copy_{place.name}"')
        tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (place.schema,))
        for (table,) in tables:
            server.execute(f'CREATE TABLE "copy_{place.name}".{table} AS SELECT * FROM "{place.schema}".{table}')
        stream.push(U[:, 10:20])
    for (table,) in tables:  # as a restored snapshot would
        server.execute(f'DELETE FROM "{place.schema}".{table}')
        server.execute(f'INSERT INTO "{place.schema}".{table} SELECT * FROM "copy_{place.name}".{table}')
    for adopt in (False, True):
        with pytest.raises(ReleaseError, match=r"is behind its witness \(1 < 2 pushes\)"):
            opened(place, tmp_path, adopt=adopt)
    with pytest.raises(ReleaseError, match="is behind its witness"):
        dp.read_release(place, published=tmp_path / "published")


def test_a_restored_dump_is_a_copy(server, place, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
    text = server.dump(place.schema)
    server.execute(f'ALTER SCHEMA "{place.schema}" RENAME TO "away_{place.name}"')
    server.restore(text)
    with pytest.raises(ReleaseError, match="was copied or moved"):
        opened(place, tmp_path)
    with pytest.raises(ReleaseError, match="was copied or moved"):
        dp.read_release(place, published=tmp_path / "published")
    assert dp.read_release(place, published=tmp_path / "published", adopt=True).privatized.shape == (2, 10)
    with opened(place, tmp_path, adopt=True) as stream:
        assert stream.position == 10
        stream.push(U[:, 10:20])
    with opened(place, tmp_path) as stream:
        assert stream.position == 20


def test_a_schema_that_is_gone_is_missed_by_its_witness(server, place, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
    server.execute(f'DROP SCHEMA "{place.schema}" CASCADE')
    with pytest.raises(ReleaseError, match="is missing, while its witness is there"):
        opened(place, tmp_path)


def test_there_is_nothing_to_read_where_nothing_was_published(server, place, tmp_path):
    with pytest.raises(ReleaseError, match=r"there is no store .* to read from"):
        dp.read_release(place, published=tmp_path / "published")
    assert server.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.schema,)) == []


# --- servers that are lost --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["session", "immediate", "kill"])
def test_a_server_that_is_lost_in_a_push_publishes_the_step_or_not(server, place, tmp_path, monkeypatch, way):
    """Before each statement of the transaction, and behind the last but one: nothing twice, nothing lost."""
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
        statements = count_statements(stream, monkeypatch)
    assert statements > 8
    for at in range(1, statements + 1) if way == "session" else (2, statements):
        with opened(place, tmp_path) as stream:
            first = stream.position
            lose(stream._store._arbiter._session, server, way, at, monkeypatch)
            with pytest.raises(ReleaseError, match="the connection was lost"):
                stream.push(U[:, :3])
            monkeypatch.undo()
        if way != "session":
            server.start()
        with opened(place, tmp_path) as stream:
            assert stream.position in (first, first + 3)
            again = stream.push(U[:, :3], first=first)
            assert stream.position == first + 3
            assert (again.privatized == stream.read(first, 3).privatized).all()


def count_statements(stream, monkeypatch):
    """How many statements a push makes."""
    kind, seen = type(stream._store._arbiter._session), []
    execute = kind.execute
    with monkeypatch.context() as patch:
        patch.setattr(kind, "execute", lambda self, *args: (seen.append(1), execute(self, *args))[1])
        stream.push(U[:, :3])
    return len(seen)


def lose(session, server, way, at, monkeypatch):
    """The server goes away before a statement."""
    seen, execute = [], type(session).execute
    ((pid,),) = session.execute("SELECT pg_backend_pid()").fetchall()

    def losing(self, *args):
        seen.append(1)
        if len(seen) == at:
            if way == "session":
                server.execute("SELECT pg_terminate_backend(%s)", (pid,))
            elif way == "immediate":
                server.stop("immediate")
            else:
                server.kill()
        return execute(self, *args)

    monkeypatch.setattr(type(session), "execute", losing)


def test_what_cannot_be_reached_says_so_without_its_address(tmp_path):
    place = dp.Postgres("host=127.0.0.1 port=1 user=ada password=secret connect_timeout=1", "store")
    assert "secret" not in repr(place) + str(place)
    with pytest.raises(ReleaseError) as error:
        opened(place, tmp_path)
    assert str(error.value) == (
        "cannot open the store 'store' in PostgreSQL: the connection was lost, or the server is not there"
    )


def test_no_value_is_in_an_error(server, place, tmp_path):
    """A row with the key of a step: the driver would quote it."""
    with opened(place, tmp_path) as stream:
        stream.push(np.full((2, 4), 7))
        server.execute(
            f'INSERT INTO "{place.schema}".pushes SELECT id + 1, release, first + 4, count, privatized, estimate, '
            f'chain, seal FROM "{place.schema}".pushes'
        )
        with pytest.raises(ReleaseError) as error:
            stream.push(np.full((2, 4), 7))
    words = str(error.value)
    assert "there is a row with that key already (SQLSTATE 23505)" in words
    assert "7" not in words.replace(str(tmp_path), "")
    with pytest.raises(ReleaseError, match="damaged"):
        opened(place, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {}.pushes SET privatized = decode(md5('1'), 'hex')",
        "UPDATE {}.pushes SET first = first + 1",
        "UPDATE {}.inputs SET step = step + 99",
        "UPDATE {}.writers SET epoch = epoch - 1",
        "DELETE FROM {}.inputs",
        "DELETE FROM {}.writers",
        "DELETE FROM {}.progress",
        "DROP TABLE {}.receivers",
    ],
)
def test_what_was_changed_in_the_database_is_refused(server, place, tmp_path, change):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
    server.execute(change.format(f'"{place.schema}"'))
    with pytest.raises(ReleaseError, match=r"damaged|disagree"):
        opened(place, tmp_path)


# --- arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", "a" * 49, 'a"', None, 7])
def test_names_are_plain(name):
    with pytest.raises(ValueError, match="name must be a small letter"):
        dp.Postgres("", name)


def test_other_arguments_are_checked(tmp_path):
    with pytest.raises(ValueError, match="failover must be 'none' or 'synchronous'"):
        dp.Postgres("", "a", "async")
    with pytest.raises(ValueError, match="address must be text"):
        dp.Postgres(7, "a")
    with pytest.raises(ValueError, match="published must be given for the store 'a' in PostgreSQL"):
        ReleaseStore.open(dp.Postgres("", "a"))
