"""The store of sweeps: what is kept, what survives, what is refused."""

import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sqlite3
import tempfile
import threading
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from helpers.interrupts import unswallowed
from hypothesis import given
from hypothesis import strategies as st

from dpfast import DataError
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.sqlite import Connection
from dpfast.simulation.sweep import sweep_connection, sweep_schema
from dpfast.simulation.sweep.sweep_store import SweepStore

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
CONFIGURATION = {"dpfast": "0.1.0", "seed": "1", "n_samples": 1000, "grid": {"cases": ["a", "b"]}}


def means_of(case, block):
    """Batch means that are known without the store."""
    return np.random.default_rng([case, block]).random(16)


def rows_of(pairs):
    return [(case, block, means_of(case, block)) for case, block in pairs]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sweeps.sqlite"


@pytest.fixture
def store(file):
    with SweepStore(file) as store:
        yield store


def whole(file):
    """What is in a file, after every row has been compared with what must be in it."""
    with SweepStore(file) as store:
        assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = set()
        for case, block, means in store.all_means(1):
            assert means.tobytes() == means_of(case, block).tobytes()
            found.add((case, block))
    return found


def write(first, step, end, file, pipe):
    """Adds rows of three cases at a time, and says which once they are in."""
    with SweepStore(file) as store:
        pipe.send("open")
        sweep = store.enter(CONFIGURATION)
        for block in range(first, end, step):
            store.add(sweep, rows_of((case, block) for case in range(3)))
            pipe.send(block)


write_all = functools.partial(write, 0, 1, 10**6)


@contextlib.contextmanager
def started(target, file):
    """A forked process that does target(file, pipe), and the other end of the pipe; ended well, or killed, behind."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=target, args=(file, there))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child needs no thread of those that may be here
        process.start()
    there.close()
    with here:
        yield process, here
        said(here)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)


def said(pipe):
    """Everything that comes until the other end closes."""
    messages = []
    with contextlib.suppress(EOFError):
        while True:
            messages.append(pipe.recv())
    return messages


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["file", "memory"])
@given(pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7))))
def test_blocks_come_back_as_they_were(tmp_path_factory, place, pairs):
    path = None if place == "memory" else tmp_path_factory.mktemp("store") / "s.sqlite"
    shuffled = sorted(pairs, key=lambda x: zlib.crc32(repr(x).encode()))
    with SweepStore(path) as store:
        other, sweep = store.enter({**CONFIGURATION, "seed": "2"}), store.enter(CONFIGURATION)
        store.add(other, [(0, 0, np.zeros(16))])
        for part in (shuffled[::2], shuffled[1::2]):
            store.add(sweep, iter(rows_of(part)))
        assert [x[:2] for x in store.all_means(sweep)] == sorted(pairs)
        assert all(means.tobytes() == means_of(*at).tobytes() for *at, means in store.all_means(sweep))
        blocks = {case: [b for c, b in sorted(pairs) if c == case] for case in {case for case, _ in pairs}}
        counts = {case: next(i for i in itertools.count() if i not in x) for case, x in blocks.items()}
        assert {case: x.tolist() for case, x in store.blocks(sweep).items()} == blocks
        assert store.counts(sweep) == counts
        for case, n in counts.items():
            expected = np.concatenate([np.empty(0), *(means_of(case, block) for block in range(n))])
            assert store.means(sweep, case, n).tobytes() == expected.tobytes()
            with pytest.raises(ValueError, match=f"n_blocks must be at most the blocks of case {case}"):
                store.means(sweep, case, n + 1)


def test_a_pass_over_everything_is_longer_than_a_chunk(monkeypatch):
    monkeypatch.setattr("dpfast.simulation.sweep.sweep_store._CHUNK", 7)
    pairs = [(case, block) for case in range(5) for block in range(case + 1)]
    with SweepStore() as store:
        store.add(store.enter(CONFIGURATION), rows_of(pairs))
        for size in (1, 3, 5, 7, 14, 15):  # of the last chunk: whole, or not
            monkeypatch.setattr("dpfast.simulation.sweep.sweep_store._CHUNK", size)
            assert [x[:2] for x in store.all_means(1)] == pairs


def test_an_iterator_that_is_left_open_holds_up_nobody(file):
    with SweepStore(file) as one, SweepStore(file) as two:
        one.add(one.enter(CONFIGURATION), rows_of([(0, 0), (1, 0)]))
        first = next(iter(one.all_means(1)))
        two.add(1, rows_of([(2, 0)]))
        assert two._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        assert first[:2] == (0, 0)


def test_designs_come_back_in_the_order_asked_for(store, monkeypatch):
    monkeypatch.setattr("dpfast.simulation.sweep.sweep_store._KEYS", 3)
    texts = {f"{i:064x}": f"design {i} ← é" * 100 for i in range(10)}
    store.add_designs(texts)
    keys = list(reversed(texts))
    assert list(store.designs([*keys, "f" * 64])) == [(key, texts[key]) for key in keys]
    assert store.design(keys[0]) == texts[keys[0]]
    assert store.design("f" * 64) is None
    store.add_designs({keys[0]: "newer"})
    assert store.design(keys[0]) == "newer"


def test_one_sweep_for_one_configuration(store):
    first = store.enter(CONFIGURATION)
    assert store.enter(dict(reversed(CONFIGURATION.items()))) == first
    others = [store.enter({**CONFIGURATION, key: "x"}) for key in CONFIGURATION]
    assert len({first, *others}) == 1 + len(CONFIGURATION)
    store.add(first, rows_of([(0, 0), (0, 1), (7, 0)]))
    assert store.configuration(first) == CONFIGURATION
    entry = store.sweeps()[0]
    assert entry[:4] == (first, digest(canonical(CONFIGURATION)), "0.1.0", "1")
    assert (entry.n_cases, entry.n_blocks) == (2, 3)
    assert [(x.n_cases, x.n_blocks) for x in store.sweeps()[1:]] == [(0, 0)] * len(others)


def test_the_digest_is_that_of_canonical_json():
    assert canonical({"b": [1, 0.1], "a": "é"}) == '{"a":"\\u00e9","b":[1,0.1]}'
    assert (
        digest(canonical({"a": 1})) == "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    )  # sha256sum
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": float("nan")})


def test_numbers_of_numpy_are_numbers(store):
    sweep = store.enter(CONFIGURATION)
    store.add(sweep, [(np.int64(3), np.int32(0), means_of(3, 0))])
    assert store.counts(sweep) == {3: 1}
    assert all(type(x) is int for x in next(iter(store.all_means(sweep)))[:2])


def test_nothing_is_nothing(store):
    sweep = store.enter(CONFIGURATION)
    store.add(sweep, [])
    assert (store.blocks(sweep), store.counts(sweep), list(store.all_means(sweep))) == ({}, {}, [])


def test_it_is_small(file):
    rows = [(case, 0, means) for case, means in enumerate(np.random.default_rng(1).random((10_000, 16)))]
    random.Random(1).shuffle(rows)
    with SweepStore(file) as store:
        sweep = store.enter(CONFIGURATION)
        store.add(sweep, rows)
        assert sum(1 for _ in store.all_means(sweep)) == len(rows)
    assert file.stat().st_size < 260 * len(rows)


# --- what is refused ------------------------------------------------------------------------------


def test_a_block_never_changes(store):
    sweep = store.enter(CONFIGURATION)
    store.add(sweep, rows_of([(0, 0), (1, 0)]))
    store.add(sweep, rows_of([(1, 0), (2, 0)]))  # the same again
    changed = means_of(1, 0)
    changed[5] = np.nextafter(changed[5], 1)
    with pytest.raises(DataError, match="has other results for block 0 of case 1 of sweep 1"):
        store.add(sweep, [*rows_of([(3, 0)]), (1, 0, changed)])
    assert store.counts(sweep) == {0: 1, 1: 1, 2: 1}  # all or none
    with pytest.raises(DataError, match="has other results for block 0 of case 3"):
        store.add(sweep, [*rows_of([(3, 0)]), (3, 0, changed)])


@pytest.mark.parametrize("means", [np.full(16, np.nan), np.r_[np.ones(15), np.inf], np.ones((2, 16)), 1.0])
def test_means_are_numbers(store, means):
    with pytest.raises(ValueError, match="means must be finite and of shape"):
        store.add(store.enter(CONFIGURATION), [(0, 0, means)])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def foreign_text(file):
    file.write_text("time,user\n1,alice\n" * 20)


def foreign_short(file):
    file.write_text("ab")


def foreign_database(file):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE events (time)")


def foreign_application(file):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA application_id=1234")


def newer(file):
    SweepStore(file).close()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version={sweep_schema.FORMAT + 1}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign_text, "damaged, or no store of sweeps.*give another path"),
        (foreign_short, "damaged, or no store of sweeps.*give another path"),
        (foreign_database, "must be a store of sweeps, got another database: give another path"),
        (foreign_application, "must be a store of sweeps, got another database: give another path"),
        (newer, "must have format 1, got 2: use the version of dpfast that wrote it, or give another path"),
    ],
)
def test_what_is_not_a_store_is_refused_and_left_as_it_is(file, make, message):
    make(file)
    before = contents(file.parent)
    with pytest.raises(DataError, match=message):
        SweepStore(file)
    assert contents(file.parent) == before


def filled(file, n_cases=200):
    with SweepStore(file) as store:
        store.add(store.enter(CONFIGURATION), rows_of((case, 0) for case in range(n_cases)))
        store.add_designs({f"{i:064x}": json.dumps(list(range(i, i + 50))) for i in range(50)})


def read_everything(file):
    """What a sweep would read."""
    with SweepStore(file) as store:
        store.counts(1)
        sweeps = [(x.configuration, store.configuration(x.id)) for x in store.sweeps()]
        means = [(case, block, x.tobytes()) for case, block, x in store.all_means(1)]
        return sweeps, means, list(store.designs(f"{i:064x}" for i in range(50)))


@pytest.mark.parametrize(("n_cases", "n"), [(300, 100), pytest.param(1000, 150, marks=pytest.mark.long)])
def test_a_flipped_byte_is_never_read_as_a_number(file, n_cases, n):
    """Anywhere in the file: an error that says so, or less than was there, which is simulated again."""
    filled(file, n_cases)
    good, rng = file.read_bytes(), random.Random(3)
    sweeps, means, designs = read_everything(file)
    refused = 0
    for _ in range(n):
        bad, at = bytearray(good), rng.randrange(len(good))
        bad[at] ^= 1 << rng.randrange(8)
        file.write_bytes(bad)
        try:
            found = read_everything(file)
        except DataError:
            refused += 1
        else:
            assert set(found[1]) <= set(means)
            assert set(found[2]) <= set(designs)
            assert [x for x in found[0] if x not in sweeps] == []
    assert refused > n / 2  # the rest: unused space, what is for information alone, keys of designs


@pytest.mark.parametrize("statement", ["means = zeroblob(128)", "crc = crc + 1", "block = 9", "case_number = 9"])
def test_a_row_that_was_changed_is_damage(file, statement):
    filled(file, 3)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(f"UPDATE blocks SET {statement} WHERE case_number = 1")
    with SweepStore(file) as store:
        with pytest.raises(DataError, match=r"damaged.*block \d of case \d of sweep 1"):
            list(store.all_means(1))
        for case, blocks in store.blocks(1).items():
            for block in blocks[blocks == 0] if case == 1 else ():
                with pytest.raises(DataError, match="damaged"):
                    store.means(1, case, 1)
                with pytest.raises(DataError, match="damaged"):
                    store.add(1, rows_of([(case, block)]))


def test_pages_that_changed_places_are_refused(file):
    """Every row of them is whole."""
    filled(file, 1000)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = file.read_bytes()
    pages = [data[at : at + size] for at in range(0, len(data), size)]
    leaves = [i for i, x in enumerate(pages) if x[0] == 10 and any(means_of(k, 0).tobytes() in x for k in range(1000))]
    pages[leaves[2]] = pages[leaves[7]]
    file.write_bytes(b"".join(pages))
    with pytest.raises(DataError, match="damaged"):
        SweepStore(file)


def test_a_damaged_definition_of_a_table_is_refused(file):
    """SQLite shows it in its message, which then is no text."""
    filled(file, 1)
    file.write_bytes(file.read_bytes().replace(b"NOT NULL", b"NOT \xccULL", 1))
    with pytest.raises(DataError, match="damaged"):
        SweepStore(file)


@pytest.mark.parametrize("length", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_refused(file, length):
    filled(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * length)])
    with pytest.raises(DataError, match="damaged"):
        read_everything(file)


def test_a_folder_that_is_not_there_and_a_folder_instead_of_a_file(tmp_path):
    for path in (tmp_path / "none" / "s.sqlite", tmp_path):
        with pytest.raises(DataError, match=r"cannot be used.*Give the path of a file in a folder that is there"):
            SweepStore(path)
    with pytest.raises(ValueError, match="path must be a path, got 3"):
        SweepStore(3)


def enter_as_nobody(file, pipe):
    """What is said to somebody who may not write."""
    os.setuid(65534)
    try:
        with SweepStore(file) as store:
            store.enter(CONFIGURATION)
    except DataError as error:
        pipe.send(str(error))


@forks
@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to become somebody else")
@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_cannot_be_written(there):
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "s.sqlite"
        if there:
            filled(file, 1)
        file.parent.chmod(0o755)
        with started(enter_as_nobody, file) as (_, pipe):
            message = pipe.recv()
        assert re.search("the store .*s.sqlite cannot be used: .*that you may write to", message)


def test_a_full_disk_keeps_what_was_finished(file):
    with SweepStore(file) as store:
        sweep = store.enter(CONFIGURATION)
        store.add(sweep, rows_of([(0, 0)]))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(DataError, match=r"cannot be written: .*full\. What was finished is kept: make room"):
            store.add(sweep, rows_of((case, 0) for case in range(1, 500)))
        store._connection.execute("PRAGMA max_page_count=1000000")
        assert store.counts(sweep) == {0: 1}
        store.add(sweep, rows_of([(1, 0)]))
    assert whole(file) == {(0, 0), (1, 0)}


def write_within(n_bytes, file, pipe):
    """With files that may not grow larger, as on a disk that is full: a write fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
    try:
        write(0, 1, 10**6, file, pipe)
    except DataError as error:
        pipe.send(str(error))


@forks
def test_a_write_that_fails_keeps_what_was_finished(file):
    with started(functools.partial(write_within, 200_000), file) as (_, pipe):
        *done, message = said(pipe)
    assert re.search("cannot be written: .* make room on the disk", message)
    assert done[:2] == ["open", 0]
    assert whole(file) == {(case, block) for case in range(3) for block in done[1:]}


def test_a_store_that_somebody_holds_is_waited_for(file, monkeypatch):
    monkeypatch.setattr(sweep_connection, "PATIENCE", 0.05)
    with SweepStore(file) as one, SweepStore(file) as two:
        sweep = one.enter(CONFIGURATION)
        one._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError, match="is busy: another process has been writing"):
            two.add(sweep, rows_of([(0, 0)]))
        assert two.counts(sweep) == {}  # reading waits for nobody
        one._connection.execute("ROLLBACK")
        two.add(sweep, rows_of([(0, 0)]))


# --- processes ------------------------------------------------------------------------------------


@forks
@pytest.mark.parametrize("n", [8, pytest.param(20, marks=pytest.mark.long)])
def test_a_process_killed_at_any_moment_leaves_whole_transactions(file, n):
    rng, before = random.Random(1), set()
    for _ in range(n):
        with started(write_all, file) as (process, pipe):
            assert pipe.recv() == "open"
            time.sleep(rng.uniform(0, 0.05))
            process.kill()
            told = set(said(pipe))
        found = whole(file)
        blocks = {block for _, block in found}
        assert found == {(case, block) for case in range(3) for block in blocks}
        assert blocks >= told | before
        assert len(blocks - told - before) <= 1  # committed, and killed before it could say so
        before = blocks
    assert len(before) > n


class Mortal(Connection):
    """Kills its process at a statement."""

    left = 0

    def execute(self, *args):
        Mortal.left -= 1
        if Mortal.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*args)


def begin(statements, file, pipe):
    """Killed before a statement, as SQLite finds it."""
    Mortal.left = statements
    sweep_connection.Connection = Mortal
    with SweepStore(file) as store:
        store.enter(CONFIGURATION)


@forks
def test_a_process_killed_at_every_statement_of_the_beginning(tmp_path):
    """What it leaves is begun again, or gone on with."""
    for k in itertools.count(1):
        file = tmp_path / f"{k}.sqlite"
        with started(functools.partial(begin, k), file) as (process, _):
            process.join()
        with SweepStore(file) as store:
            store.add(store.enter(CONFIGURATION), rows_of([(0, 0)]))
        assert whole(file) == {(0, 0)}
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert k > 15


@forks
@pytest.mark.parametrize("step", [1, 2])
def test_two_writers_of_the_same_rows_and_of_different_ones(file, step):
    with contextlib.ExitStack() as stack:
        for first in (0, step - 1):
            stack.enter_context(started(functools.partial(write, first, step, 300), file))
    assert whole(file) == {(case, block) for case in range(3) for block in range(300)}


def write_together(barrier, file, pipe):
    barrier.wait()
    write(0, 1, 3, file, pipe)


@forks
@pytest.mark.parametrize(("n", "n_writers"), [(3, 4), pytest.param(15, 8, marks=pytest.mark.long)])
def test_many_begin_one_store_at_once(tmp_path, n, n_writers):
    for k in range(n):
        target = functools.partial(write_together, multiprocessing.get_context("fork").Barrier(n_writers))
        with contextlib.ExitStack() as stack:
            for _ in range(n_writers):
                stack.enter_context(started(target, tmp_path / str(k)))
        assert len(whole(tmp_path / str(k))) == 9


def test_a_store_that_somebody_else_begins_meanwhile(file, monkeypatch):
    is_new, others = sweep_connection._is_new, []

    def late(connection, path):
        answer = is_new(connection, path)
        if not others:
            others.append(True)
            filled(file, 2)
        return answer

    monkeypatch.setattr(sweep_connection, "_is_new", late)
    assert whole(file) == {(0, 0), (1, 0)}


class Busy(Connection):
    """As SQLite is when two connections switch to the log at once: it does not wait."""

    def execute(self, *args):
        if "WAL" in args[0] and not self.refused:
            self.refused = True
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(*args)

    refused = False


def test_the_switch_to_the_log_is_tried_again(file, monkeypatch):
    monkeypatch.setattr(sweep_connection, "Connection", Busy)
    with SweepStore(file) as store:
        assert store._connection.refused
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def write_until_interrupted(file, pipe):
    with unswallowed():
        try:
            write_all(file, pipe)
        except KeyboardInterrupt:
            pipe.send("interrupted")


@forks
def test_ctrl_c_ends_at_once_and_keeps_what_was_said(file):
    with started(write_until_interrupted, file) as (process, pipe):
        assert [pipe.recv(), pipe.recv()] == ["open", 0]
        os.kill(process.pid, signal.SIGINT)
        *told, last = said(pipe)
    assert last == "interrupted"
    assert {block for _, block in whole(file)} >= {0, *told}


def test_an_interruption_inside_a_transaction_leaves_the_store_usable(store, monkeypatch):
    def rows():
        yield from rows_of([(0, 0)])
        raise KeyboardInterrupt

    sweep = store.enter(CONFIGURATION)
    with pytest.raises(KeyboardInterrupt):
        store.add(sweep, rows())
    monkeypatch.setattr(store, "_check_equal", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        store.add(sweep, rows_of([(0, 0), (0, 0)]))
    store.add(sweep, rows_of([(1, 0)]))
    assert store.counts(store.enter(CONFIGURATION)) == {1: 1}


@forks
def test_a_forked_child_and_another_thread_have_no_part_in_it(store):
    store.add(store.enter(CONFIGURATION), rows_of([(0, 0)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            store.counts(1)
        except RuntimeError:
            store.close()
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    caught = []

    def use():
        try:
            store.counts(1)
        except sqlite3.ProgrammingError as error:
            caught.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "thread" in caught[0]
    assert store.counts(1) == {0: 1}


def test_a_closed_store_leaves_one_file_and_refuses(file):
    with SweepStore(file) as store:
        store.enter(CONFIGURATION)
        assert repr(store) == f"SweepStore({str(file)!r})"
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.counts(1)
    store.close()
    assert repr(SweepStore()) == "SweepStore()"
