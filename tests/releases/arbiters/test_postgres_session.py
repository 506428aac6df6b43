"""What a commit is worth: the plain word of the server, from one session, and of standbys where they may take over."""

import contextlib
import itertools
import select
import threading

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support import postgres
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.postgres_session import PostgresSession
from dpfast.releases.store.second_witness import open_second_witness
from dpfast.releases.store.witness import Attestation

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.engines
PLAN = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 9), tolerance=0.1)
U = np.clip(fakes.signal(0, 60), 0, 9)[:1]
NAMES = (f"session-{n}" for n in itertools.count())
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
NO_STANDBY = r"did not wait until a standby has that too \(it warned, SQLSTATE 01000\)"
NONE_NAMED = "must show synchronous_standby_names where failover is 'synchronous', got none"
POOLER = r"must lead to one session of the server, .* pgbouncer with pool_mode = transaction"


@pytest.fixture
def place(postgres_server):
    return dp.Postgres(postgres_server.address, next(NAMES))


def opened(place, tmp_path, **options):
    return dp.open_stream(PLAN, place, published=tmp_path / "published", **options)


class Call(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, function, *args, **options):
        super().__init__()
        self._call, self.error, self.result = lambda: function(*args, **options), None, None
        self.start()

    def run(self):
        try:
            self.result = self._call()
        except ReleaseError as error:
            self.error = str(error)

    def refusal(self):
        self.join(30)
        assert not self.is_alive()
        assert self.error is not None
        return self.error


# --- standbys -------------------------------------------------------------------------------------


@pytest.fixture
def synchronous(postgres_server):
    """The server waits for any standby."""
    postgres_server.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    postgres_server.stop()
    postgres_server.start()  # all of its processes know
    yield postgres_server
    forget_standbys(postgres_server)


def forget_standbys(server):
    server.execute("ALTER SYSTEM RESET synchronous_standby_names")
    server.execute("SELECT pg_reload_conf()")
    server.wait_for("SELECT 1 WHERE current_setting('synchronous_standby_names') = ''")


def cancel(server):
    """Cancel the wait for standbys that are not there."""
    ((pid,),) = server.wait_for(WAITING)
    server.execute("SELECT pg_cancel_backend(%s)", (pid,))


@pytest.fixture
def safe(place):
    """A place from which a standby may take over."""
    return dp.Postgres(place.address, place.name, failover="synchronous")


def test_standbys_must_be_named_where_they_may_take_over(safe, tmp_path):
    with pytest.raises(ReleaseError, match=NONE_NAMED):
        opened(safe, tmp_path)


def test_a_step_that_no_standby_has_is_not_returned(synchronous, safe, tmp_path):
    with synchronous.standby(tmp_path / "log"):
        stream = opened(safe, tmp_path)
        stream.push(U[:, :10])
    push = Call(stream.push, U[:, 10:20])
    cancel(synchronous)
    with pytest.raises(ReleaseError, match=NO_STANDBY):
        raise ReleaseError(push.refusal())
    with pytest.raises(ReleaseError, match="was interrupted while it published"):
        stream.push(U[:, 10:20])
    stream.suspend()
    again = Call(opened, safe, tmp_path)  # it waits until the standby has what is there
    synchronous.wait_for(WAITING)
    assert again.is_alive()
    with synchronous.standby(tmp_path / "log"):
        again.join(30)
        with again.result as stream:
            assert stream.position == 20
            v = stream.read(0, 20).privatized
            assert (stream.push(U[:, 10:20], first=10).privatized == v[:, 10:]).all()


def test_a_reader_sees_what_standbys_have(synchronous, safe, tmp_path):
    """A wait that was cancelled lets all others see what no standby has."""
    with synchronous.standby(tmp_path / "log"), opened(safe, tmp_path) as stream:
        stream.push(U[:, :10])
        (tmp_path / "published").rename(tmp_path / "away")
    read = Call(dp.read_release, safe, published=tmp_path / "away")
    cancel(synchronous)
    with pytest.raises(ReleaseError, match=NO_STANDBY):
        raise ReleaseError(read.refusal())
    read = Call(dp.read_release, safe, published=tmp_path / "away")
    synchronous.wait_for(WAITING)
    assert read.is_alive()
    with synchronous.standby(tmp_path / "log"):
        read.join(30)
        assert read.result.privatized.shape == (1, 10)
    assert sorted(x.name for x in (tmp_path / "away").iterdir()) == ["guarantee.json", "guarantee.txt", "witness.json"]


def test_a_reader_needs_no_rights_but_to_read(synchronous, safe, tmp_path):
    with synchronous.standby(tmp_path / "log"):
        with opened(safe, tmp_path) as stream:
            stream.push(U[:, :10])
        synchronous.execute("CREATE ROLE reader LOGIN")
        try:
            synchronous.execute(f'GRANT USAGE ON SCHEMA "{safe.schema}" TO reader')
            synchronous.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{safe.schema}" TO reader')
            synchronous.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO reader")
            mine = dp.Postgres(safe.address.replace("user=postgres", "user=reader"), safe.name, failover="synchronous")
            assert dp.read_release(mine, published=tmp_path / "published").privatized.shape == (1, 10)
        finally:
            synchronous.execute("DROP OWNED BY reader")
            synchronous.execute("DROP ROLE reader")


def test_a_wait_that_ends_as_no_standby_is_named_any_more_does_not_count(synchronous, safe, tmp_path):
    """The server says nothing of that."""
    with synchronous.standby(tmp_path / "log"):
        stream = opened(safe, tmp_path)
        stream.push(U[:, :10])
    push = Call(stream.push, U[:, 10:20])
    synchronous.wait_for(WAITING)
    forget_standbys(synchronous)
    with pytest.raises(ReleaseError, match=NONE_NAMED):
        raise ReleaseError(push.refusal())
    stream.suspend()


def test_a_store_and_what_it_tells_begin_on_standbys_too(synchronous, safe, tmp_path):
    begin = Call(opened, safe, tmp_path)
    cancel(synchronous)
    with pytest.raises(ReleaseError, match=NO_STANDBY):
        raise ReleaseError(begin.refusal())
    for act in (lambda: dp.Ledger.create(safe.beside("-ledger"), "guests"), lambda: tell(safe.beside("-witness"))):
        call = Call(act)
        cancel(synchronous)
        with pytest.raises(ReleaseError, match=NO_STANDBY):
            raise ReleaseError(call.refusal())


def tell(place):
    with contextlib.closing(open_second_witness(place, "an id")) as witness:
        witness.write(Attestation("an id", 1, 1, "0" * 64))


# --- the word of the server -----------------------------------------------------------------------


def test_a_transaction_that_has_failed_is_no_commit(place):
    """PostgreSQL answers COMMIT with ROLLBACK, and has no error for it."""
    with PostgresSession(place, "the store") as session:
        session.create(lambda: session.execute("CREATE TABLE numbers (n INTEGER)"), "numbers")
        with pytest.raises(ReleaseError, match=r"store 'session-.* was not written: .* answered COMMIT with ROLLBACK"):
            fail_in_between(session)
        assert session.execute("SELECT * FROM numbers").fetchall() == []


def fail_in_between(session):
    with session.transaction():
        session.execute("INSERT INTO numbers VALUES (1)")
        with contextlib.suppress(postgres.Error):
            session.execute("SELECT 1 / 0")


def test_the_end_of_a_session_behind_an_answer_is_no_remark(place, postgres_server):
    """The commit stands: libpq passes on the last word of the server as a notice, where it came before anybody asks."""
    connection = postgres.PostgresConnection(place.address)
    ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
    postgres_server.execute("SELECT pg_terminate_backend(%s)", (pid,))
    assert select.select([connection.descriptor], [], [], 60)[0]
    said = []
    connection._connection.add_notice_handler(lambda x: said.append(x.sqlstate))
    with contextlib.suppress(psycopg.OperationalError):
        connection._connection.pgconn.consume_input()
        connection._connection.pgconn.is_busy()
    assert said == ["57P01"]
    assert connection.noticed == []
    connection.close()


def test_defaults_of_others_do_not_matter(place, tmp_path):
    """They may be set for the database, or for the user."""
    words = " ".join(
        f"-c {x}"
        for x in (
            "default_transaction_isolation=serializable",
            "default_transaction_read_only=on",
            "client_min_messages=error",
        )
    )
    place = dp.Postgres(f"{place.address} options='{words}'", place.name)
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
        session = stream._store._arbiter._session
        with session.transaction():
            assert session.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
        assert session.execute("SHOW client_min_messages").fetchone() == ("notice",)


# --- poolers --------------------------------------------------------------------------------------


def share(monkeypatch):
    """As pgbouncer does with pool_mode = transaction: each transaction goes to any of the sessions of a pool."""
    connect, execute = psycopg.connect, postgres.PostgresConnection.execute

    def pooled(self, *args):
        if not hasattr(self, "_pool"):
            mine = self._connection
            others = [connect(mine.info.dsn, autocommit=True) for _ in range(2)]
            self._pool, close = itertools.cycle([mine, *others]), self.close
            self.close = lambda: (close(), [x.close() for x in (mine, *others)])
        if not self.in_transaction:
            self._connection = next(self._pool)
        return execute(self, *args)

    monkeypatch.setattr(postgres.PostgresConnection, "execute", pooled)


def test_a_pooler_is_refused_before_anything_is_made(postgres_server, place, tmp_path, monkeypatch):
    share(monkeypatch)
    for act in (lambda: opened(place, tmp_path), lambda: dp.Ledger.create(place, "guests"), lambda: tell(place)):
        with pytest.raises(ReleaseError, match=POOLER):
            act()
    assert postgres_server.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.schema,)) == []


def test_a_pooler_that_shares_sessions_later_is_named(place, tmp_path, monkeypatch):
    """Also where tables seem to be missing, as they are of another schema there."""
    stream, ledger = opened(place, tmp_path), dp.Ledger.create(place.beside("-ledger"), "guests")
    stream.push(U[:, :10])
    share(monkeypatch)
    for act in (
        lambda: stream.push(U[:, 10:20]),
        lambda: dp.read_release(place, published=tmp_path / "published"),
        lambda: ledger.statement(),
    ):
        with pytest.raises(ReleaseError, match=POOLER):
            act()
    stream.suspend()
    monkeypatch.undo()
    with opened(place, tmp_path) as stream:
        assert stream.position in (10, 20)


@pytest.mark.parametrize("changed", ["search_path = public", "client_min_messages = error"])
def test_what_others_set_in_a_session_that_they_share_is_seen(place, tmp_path, changed):
    with opened(place, tmp_path) as stream:
        stream.push(U[:, :10])
        stream._store._arbiter.execute(f"SET {changed}")
        with pytest.raises(ReleaseError, match=POOLER):
            stream.push(U[:, 10:20])


# --- the word about standbys ----------------------------------------------------------------------


def test_another_word_about_standbys_is_named(synchronous, place, safe, tmp_path):
    with synchronous.standby(tmp_path / "log"):
        for first, other, names in ((place, safe, "'none'.*'synchronous'"), (safe, place, "'synchronous'.*'none'")):
            first, other = first.beside(f"-{first.failover}"), other.beside(f"-{first.failover}")
            published = tmp_path / first.failover
            dp.release(PLAN, U[:, :10], first, published=published)
            for act in (dp.read_release, lambda *x, **y: dp.release(PLAN, U[:, :10], *x, first=10, **y)):
                with pytest.raises(ReleaseError, match=rf"failover must be {names}: give that.*adopt=True"):
                    act(other, published=published)
            dp.release(PLAN, U[:, :10], other, published=published, first=10, adopt=True)
            assert dp.read_release(other, published=published).first == 10
