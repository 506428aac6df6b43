"""Stores: who may open them, what is refused, and what is in them."""

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import warnings
import weakref
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import fakes

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.sqlite_arbiter import SqliteArbiter
from dpfast.releases.store import release_schema as database
from dpfast.releases.store.push_limits import MAX_BATCH
from dpfast.releases.store.release_rows import Records
from dpfast.releases.store.release_store import ReleaseStore

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no modes")


@pytest.fixture
def folder(tmp_path):
    """Of a store with three pushes, suspended."""
    folder = tmp_path / "store"
    with fakes.stream_in(folder) as stream:
        for first in (0, 4, 8):
            stream.push(fakes.signal(first, 4))
    return folder


def go_on(folder, **options):
    with fakes.stream_in(folder, **options) as stream:
        return stream.push(fakes.signal(stream.position, 2)).first


def refused(folder, match, **options):
    """Not opened, and nothing in it changed, nor in its witness."""
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    with pytest.raises(ReleaseError, match=match):
        fakes.stream_in(folder, **options)
    assert {path: path.read_bytes() for path in before} == before


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# --- who may open it ------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("umask", [0, 0o022, 0o277])
def test_files_are_of_their_owner_alone_whatever_the_umask(tmp_path, umask):
    (tmp_path / "published").mkdir()
    before = os.umask(umask)
    try:
        stream = fakes.stream_in(tmp_path / "store", tmp_path / "published")
    finally:
        os.umask(before)
    with stream:
        stream.push(fakes.signal(0, 3))
        assert mode(tmp_path / "store") == 0o700
        found = {path.name: mode(path) for path in (tmp_path / "store").iterdir()}
        assert found == {"store.sqlite": 0o600, "store.sqlite-wal": 0o600, "mark": 0o600}
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["mark", "store.sqlite"]


@POSIX
@pytest.mark.parametrize(("name", "bits", "command"), [("", 0o750, "chmod 700"), ("store.sqlite", 0o604, "chmod 600")])
def test_what_is_open_to_others_is_refused(folder, name, bits, command):
    (folder / name).chmod(bits)
    refused(folder, rf"open to others \(mode {bits:o}\).*{command} {folder}")
    (folder / name).chmod(int(command[-3:], 8))
    assert go_on(folder) == 12


@POSIX
def test_symbolic_links_are_refused(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    refused(tmp_path / "link", "is a symbolic link")
    (folder / "store.sqlite").rename(folder / "elsewhere")
    (folder / "store.sqlite").symlink_to("elsewhere")
    refused(folder, "is a symbolic link")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch(0o600)
    refused(tmp_path / "file", "must be a folder")


def test_one_object_at_a_time(folder):
    with fakes.stream_in(folder) as stream:
        with pytest.raises(ReleaseError, match="is in use"):
            fakes.stream_in(folder)
        assert stream.push(fakes.signal(12, 2)).first == 12  # it is none the worse
    assert go_on(folder) == 14


SERVE = """
import json, sys
for line in iter(sys.stdin.readline, ""):
    code, *given = json.loads(line)
    try:
        exec(code, {"given": given})
    except Exception as error:
        print(type(error).__name__, error)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def another():
    """Another process, which runs one program after the other, as its start takes longest; give() and take() lines."""
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [root, root / "tests"]))}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", SERVE], env=environment, **pipes) as process:
        yield SimpleNamespace(
            give=lambda *given: process.stdin.write(f"{json.dumps([*map(str, given)])}\n"),
            take=process.stdout.readline,
        )
        process.stdin.close()
    assert process.returncode == 0


HOLD = """
import sys
from helpers import fakes
with fakes.stream_in(given[0]) as stream:
    print(stream.push(fakes.signal(12, 2)).first, flush=True)
    sys.stdin.readline()
"""


def test_a_store_closes_though_an_interruption_left_a_dead_cursor(folder):
    """Ctrl-C in the callback by which a set of weak references forgets one is swallowed there, and it stays."""
    with ReleaseStore.open(folder) as store:
        cursors, cursor = store._arbiter._connection._cursors, store._arbiter._connection.execute("SELECT 1")
        left = {weakref.ref(cursor)}
        del cursor
        cursors.data.update(left)
        assert len(cursors) > len(list(cursors))
    assert go_on(folder) == 12


def test_one_process_at_a_time(folder, another):
    another.give(HOLD, folder)
    assert another.take() == "12\n"
    with pytest.raises(ReleaseError, match="is in use"):
        fakes.stream_in(folder)
    another.give()
    assert another.take() == "done\n"
    assert go_on(folder) == 14


def test_one_process_at_a_time_though_its_files_were_copied(folder, another):
    """To close a copied file drops the locks of SQLite, which are of the process: two would publish the same steps."""
    with fakes.stream_in(folder) as stream:
        shutil.copytree(folder, folder.with_name("backup"))
        another.give(HOLD, folder)
        assert "is in use" in another.take()
        assert another.take() == "done\n"
        assert stream.push(fakes.signal(12, 2)).first == 12
    assert go_on(folder) == 14


def linger(folder, survivor):
    """In a process of its own, which is killed: a store, and a child that lives on."""
    with fakes.stream_in(folder):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        os.write(survivor, str(child).encode())
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_that_outlives_its_parent_does_not_keep_the_store(folder):
    reading, writing = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=linger, args=(folder, writing))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join()
    survivor = int(os.read(reading, 99))
    os.close(reading)
    os.close(writing)
    try:
        os.kill(survivor, 0)
        assert go_on(folder) == 12
    finally:
        os.kill(survivor, signal.SIGKILL)


# The child ends as a Python process does, closing all that it has.
FORK = """
import os, sys
from dpfast._support.errors import ReleaseError
from helpers import fakes
with fakes.stream_in(given[0]) as stream:
    for first in (12, 14):
        stream.push(fakes.signal(first, 2))
    child = os.fork()
    if child == 0:
        for call in (lambda: stream.push(fakes.signal(16, 2)), stream.close, lambda: stream.read(0, 1)):
            try:
                call()
            except ReleaseError as error:
                assert "is a fork of it" in str(error)
            else:
                os._exit(1)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(stream.push(fakes.signal(16, 2)).first)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_is_refused_and_leaves_the_store_alone(folder, another):
    another.give(FORK, folder)
    assert another.take() == "16\n"
    assert another.take() == "done\n"
    assert go_on(folder) == 18


def test_the_connection_is_durable_exclusive_and_forgets(folder):
    with ReleaseStore.open(folder) as store:
        wanted = {"journal_mode": "wal", "synchronous": 2, "locking_mode": "exclusive", "secure_delete": 1}
        found = {name: store._arbiter._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted}
        assert found == wanted


# --- copies and backups ---------------------------------------------------------------------------


def test_a_restored_backup_is_behind_its_witness(folder):
    database, witness = folder / "store.sqlite", fakes.beside(folder) / "witness.json"
    old = database.read_bytes(), witness.read_bytes()
    assert go_on(folder) == 12
    new = database.read_bytes(), witness.read_bytes()
    database.write_bytes(old[0])
    refused(folder, r"behind its witness \(3 < 4 pushes\): a backup was restored")
    database.write_bytes(new[0])
    assert go_on(folder) == 14
    # a witness that is behind is what a crash leaves; that this one is, nobody can tell
    witness.write_bytes(old[1])
    assert go_on(folder) == 16


def test_a_backup_that_went_on_by_itself_disagrees(folder, tmp_path):
    witness = fakes.beside(folder) / "witness.json"
    old = [path.read_bytes() for path in (folder / "store.sqlite", witness)]
    go_on(folder)
    witness.replace(tmp_path / "witness.json")
    for path, content in zip((folder / "store.sqlite", witness), old, strict=True):
        path.write_bytes(content)
    go_on(folder, adopt=True)
    (tmp_path / "witness.json").replace(fakes.beside(folder) / "witness.json")
    refused(folder, "disagree about what was published")


@pytest.mark.parametrize("public", [".", ".."])
def test_a_store_in_its_public_folder_is_refused(folder, public):
    with pytest.raises(ReleaseError, match="the store must not lie in the folder of what is public"):
        ReleaseStore.open(folder / "private", folder / "private" / public)


def test_a_copy_is_refused_unless_it_is_adopted(tmp_path):
    original, copy, published = (tmp_path / name for name in ("original", "copy", "published"))
    go_on(original, published=published)
    shutil.copytree(original, copy)
    refused(copy, "was copied or moved: it was at .*original.*adopt=True", published=published)
    assert go_on(copy, published=published, adopt=True) == 2
    assert go_on(copy, published=published) == 4
    refused(original, r"behind its witness \(1 < 3 pushes\)", published=published)


def test_a_moved_store_is_refused_unless_it_is_adopted(folder, tmp_path):
    folder.rename(tmp_path / "there")
    fakes.beside(folder).rename(fakes.beside(tmp_path / "there"))
    refused(tmp_path / "there", "was copied or moved")
    assert go_on(tmp_path / "there", adopt=True) == 12


def test_another_file_at_the_same_place_is_a_copy(folder):
    shutil.copy(folder / "store.sqlite", folder / "new")
    (folder / "new").chmod(0o600)
    (folder / "new").replace(folder / "store.sqlite")
    refused(folder, "or in another file there")


def test_a_missing_witness_is_refused(folder, tmp_path):
    refused(folder, "is missing, and the store .* has 3 pushes", published=tmp_path / "other")
    (fakes.beside(folder) / "witness.json").unlink()
    refused(folder, "is missing, and the store .* has 3 pushes")


def test_the_witness_of_another_store_is_refused(folder, tmp_path):
    go_on(tmp_path / "other")
    refused(folder, "is of another store", published=fakes.beside(tmp_path / "other"))


def test_a_missing_store_is_refused(folder):
    (folder / "store.sqlite").unlink()
    refused(folder, r"store.sqlite is missing, while .*witness.json is there")
    (fakes.beside(folder) / "witness.json").unlink()
    (folder / "store.sqlite-wal").touch(0o600)
    refused(folder, r"store.sqlite is missing, while .*store.sqlite-wal is there")
    (folder / "store.sqlite-wal").unlink()
    refused(folder, r"store.sqlite is missing, while .*mark is there")
    (folder / "mark").unlink()
    assert go_on(folder) == 0


# --- damage ---------------------------------------------------------------------------------------


def flipped(content, at, n=64):
    return content[:at] + bytes(255 - x for x in content[at : at + n]) + content[at + n :]


DAMAGES = {
    "flipped in its schema": lambda x: flipped(x, x.index(b"CREATE TABLE pushes"), 300),
    "flipped in the header of a page": lambda x: flipped(x, 4096),
    "truncated": lambda x: x[: len(x) // 2],
    "without its last page": lambda x: x[:-4096],
    "empty": lambda x: b"",
    "no database": lambda x: b"time,event\n" * 1000,
    "without its header": lambda x: bytes(100) + x[100:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_store_is_refused(folder, damage):
    file = folder / "store.sqlite"
    file.write_bytes(damage(file.read_bytes()))
    refused(folder, "is damaged, or no store of dpfast")


def test_a_bit_that_flipped_in_what_was_published_is_refused(folder):
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        ((v,),) = connection.execute("SELECT privatized FROM pushes WHERE id = 2")
    file = folder / "store.sqlite"
    content = file.read_bytes()
    at = content.index(v) + 11
    file.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
    refused(folder, "is damaged")


def test_a_byte_that_flips_is_found_or_was_not_used(folder):
    file, choice = folder / "store.sqlite", np.random.default_rng(1)
    content = file.read_bytes()

    def everything():
        with fakes.stream_in(folder) as stream:
            arrays = *stream.read(0, 12)[1:3], stream._history
            lists, states = [x.tolist() for x in arrays], stream._receiver.next_states(0)
            return stream.position, lists, states, stream._store.releases()

    whole, found = everything(), 0
    used = [at for at in range(len(content)) if content[at]]
    for at in choice.choice(used, 120, replace=False).tolist():
        file.write_bytes(flipped(content, at, 1))
        try:
            assert everything() == whole
        except ReleaseError:
            found += 1
        file.write_bytes(content)
    assert found > 60


CHANGES = {
    "v": "UPDATE pushes SET privatized = zeroblob(64) WHERE id = 2",
    "a length of v": "UPDATE pushes SET privatized = zeroblob(56) WHERE id = 2",
    "a length of the estimate": "UPDATE pushes SET estimate = zeroblob(56) WHERE id = 2",
    "a chain": "UPDATE pushes SET chain = zeroblob(32) WHERE id = 3",
    "a step": "UPDATE pushes SET first = 5 WHERE id = 2",
    "an order": "UPDATE pushes SET id = 10 WHERE id = 3",
    "a push less": "DELETE FROM pushes WHERE id = 2",
    "a release less": "DELETE FROM releases",
    "an input less": "DELETE FROM inputs WHERE step = 8",
    "the first input less": "DELETE FROM inputs WHERE step = (SELECT min(step) FROM inputs)",
    "a length of an input": "UPDATE inputs SET x = zeroblob(8) WHERE step = 11",
    "the receiver": "UPDATE receivers SET state = zeroblob(7)",
    "the position": "UPDATE progress SET position = 8",
    "the configuration": "UPDATE releases SET configuration = '{'",
    "a table less": "DROP TABLE meta",
    "the declaration": "UPDATE declaration SET content = '{}'",
    "the declaration's row": "DELETE FROM declaration",
    "the meta row": "DELETE FROM meta",
    "two meta rows": "INSERT INTO meta SELECT * FROM meta",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_store_is_refused(folder, change):
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        connection.execute(change)
    with pytest.raises(ReleaseError, match="damaged"):
        fakes.stream_in(folder)


def test_a_server_that_is_lost_meanwhile_is_no_damage(folder, monkeypatch):
    def lost(*_):
        raise ReleaseError("the connection was lost")

    monkeypatch.setattr(ReleaseStore, "receivers", lost)
    with pytest.raises(ReleaseError, match=r"^the connection was lost$"):
        fakes.stream_in(folder)


def test_another_format_is_refused(folder):
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE meta SET format = 5")
    refused(folder, "must have format 4, or one before, got 5")


def test_a_commit_that_was_not_finished_never_happened(folder):
    """What a loss of power leaves of the log when the push did not return."""
    log, witness = folder / "store.sqlite-wal", fakes.beside(folder) / "witness.json"
    with fakes.stream_in(folder) as stream:
        before, sizes = witness.read_bytes(), [log.stat().st_size]
        stream.push(fakes.signal(12, 2))
        sizes.append(log.stat().st_size)
        database, whole = (folder / "store.sqlite").read_bytes(), log.read_bytes()
    for size in range(sizes[0], sizes[1] - 1, 1024):
        (folder / "store.sqlite").write_bytes(database)
        log.write_bytes(whole[:size])
        log.chmod(0o600)
        witness.write_bytes(before)
        with fakes.stream_in(folder, adopt=True) as stream:
            assert stream.position == 12


# --- what is in it --------------------------------------------------------------------------------


def test_inputs_are_gone_from_the_files_when_they_are_not_needed(tmp_path):
    """As bytes, wherever SQLite may have put them."""
    values = np.array([[0x123456789A + t, 0x1A98765432 - t] for t in range(200)]).T
    inputs = fakes.Inputs(0, 2**38, n_streams=2)
    folder = tmp_path / "store"

    def found():
        files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        return [t for t in range(200) if any(int(x).to_bytes(5, "little") in files for x in values[:, t])]

    plan = fakes.Plan(inputs=inputs)
    with fakes.stream_in(folder, plan=plan) as stream:
        for t in range(0, 200, 4):
            stream.push(values[:, t : t + 4])
        assert len(found()) > fakes.MEMORY  # in the log
    assert found() == list(range(200 - fakes.MEMORY, 200))
    with fakes.stream_in(folder, plan=plan) as stream:
        stream.close()
        assert found() == []
    assert found() == []


def test_a_chunk_of_which_older_inputs_are_not_needed_never_shows_them(tmp_path):
    values = np.array([[0x123456789A + t, 0x1A98765432 - t] for t in range(50)]).T
    with fakes.stream_in(tmp_path / "store", plan=fakes.Plan(inputs=fakes.Inputs(0, 2**38, n_streams=2))) as stream:
        stream.push(values)
        files = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir() if path.is_file())
        found = [t for t in range(50) if int(values[0, t]).to_bytes(5, "little") in files]
        assert found == list(range(50 - fakes.MEMORY, 50))


def test_the_guarantee_is_published(folder):
    text = (fakes.beside(folder) / "guarantee.txt").read_text(encoding="utf-8")
    assert text == "Release 1, steps from 0 on:\n\nNothing is promised.\n"
    content = json.loads((fakes.beside(folder) / "guarantee.json").read_text(encoding="utf-8"))
    assert content["releases"] == [{"release": 1, "kind": "live", "first": 0, "steps": None, "guarantee": {}}]


def test_a_later_release_leaves_the_guarantees_of_earlier_ones(tmp_path):
    """A weak promise for some steps must not be replaced by a strong one for others."""

    class Weak(fakes.Guarantee):
        def __str__(self):
            return "Little is promised."

        def to_json(self):
            return '{"epsilon": 10}'

    for again in range(2):  # opening states them again
        with ReleaseStore.open(tmp_path / "store", tmp_path / "published") as store:
            if not again:
                v = np.zeros((1, 4), np.int64)
                for first, guarantee in ((0, fakes.Guarantee()), (4, Weak()), (8, fakes.Guarantee())):
                    store.enter_batch({}, guarantee, first, v, v.astype(float), compose=False)
        text = (tmp_path / "published" / "guarantee.txt").read_text(encoding="utf-8")
        assert text == (
            "Release 1, 4 steps from 0 on:\nRelease 3, 4 steps from 8 on:\n\nNothing is promised.\n\n"
            "Release 2, 4 steps from 4 on:\n\nLittle is promised.\n"
        )
        content = json.loads((tmp_path / "published" / "guarantee.json").read_text(encoding="utf-8"))
        assert [(x["first"], x["guarantee"]) for x in content["releases"]] == [(0, {}), (4, {"epsilon": 10}), (8, {})]
        for file in (tmp_path / "published").glob("guarantee.*"):
            file.unlink()


# --- batches --------------------------------------------------------------------------------------


def enter(store, first, n, *, lag=2, compose=False):
    v = np.arange(2 * (n + lag), dtype=np.int64).reshape(2, -1) + first
    release = store.enter_batch({"n": n}, fakes.Guarantee(), first, v, v[:, lag:] / 2, compose=compose)
    return release, v


def test_batches_are_entered_and_read(tmp_path):
    with ReleaseStore.open(tmp_path / "store", tmp_path / "published") as store:
        one, v = enter(store, 0, 10)
        two, _ = enter(store, 10, 5)  # the flush of the first has no inputs
    with ReleaseStore.open(tmp_path / "store", tmp_path / "published") as store:
        assert [(x.id, x.kind, x.first, x.count, x.configuration) for x in store.releases()] == [
            (one, "batch", 0, 10, {"n": 10}),
            (two, "batch", 10, 5, {"n": 5}),
        ]
        again, estimate = store.read(one, 0, 12)
        assert again.tolist() == v.tolist()
        assert estimate.tolist() == (v[:, 2:] / 2).tolist()
        assert "2 pushes, open" in repr(store)


def test_steps_are_released_again_only_to_compose(tmp_path):
    with ReleaseStore.open(tmp_path / "store") as store:
        one, _ = enter(store, 5, 10)
        for first, n in ((0, 6), (14, 1), (7, 2), (0, 30)):
            with pytest.raises(ReleaseError, match=rf"steps from {first} on were .* already \(release 1 .*compose"):
                enter(store, first, n)
            assert [x.id for x in store.find_overlapping(first, n)] == [one]
        assert store.find_overlapping(0, 5) == store.find_overlapping(15, 3) == store.find_overlapping(7, 0) == []
        two, _ = enter(store, 14, 3, compose=True)
        assert [x.id for x in store.find_overlapping(14, 1)] == [one, two]
    with ReleaseStore.open(tmp_path / "store") as store:
        assert len(store.releases()) == 2


def test_a_batch_beside_a_stream_composes_with_all_that_it_may_still_publish(folder):
    with ReleaseStore.open(folder) as store:
        assert [x.kind for x in store.find_overlapping(1000, 1)] == ["live"]
    with fakes.stream_in(folder) as stream:
        stream.close()
    with ReleaseStore.open(folder) as store:
        assert store.find_overlapping(12, 5) == []
        assert [x.kind for x in store.find_overlapping(11, 5)] == ["live"]


def test_a_stream_does_not_begin_beside_a_batch(tmp_path):
    with ReleaseStore.open(tmp_path / "store") as store:
        enter(store, 0, 10)
    with pytest.raises(
        ReleaseError, match=r"has release 1 .* already, and a stream would publish the same steps again"
    ):
        fakes.stream_in(tmp_path / "store")


def test_what_fails_in_a_batch_is_not_entered(tmp_path, monkeypatch):
    with ReleaseStore.open(tmp_path / "store") as store:
        enter(store, 0, 3)
        with monkeypatch.context() as patch:
            patch.setattr(Records, "progress", lambda *args, **options: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                enter(store, 3, 3)
        with pytest.raises(ReleaseError, match="open it again"):
            store.releases()
    with ReleaseStore.open(tmp_path / "store") as store:
        assert [x.id for x in store.releases()] == [1]


def test_an_empty_batch_is_one(tmp_path):
    with ReleaseStore.open(tmp_path / "store") as store:
        enter(store, 0, 0)
        enter(store, 0, 3)
        assert len(store.releases()) == 2


def test_a_batch_that_does_not_fit_is_refused(tmp_path):
    with ReleaseStore.open(tmp_path / "store") as store:
        with pytest.raises(ValueError, match="first must be"):
            enter(store, 2**62, 1)
        v = np.broadcast_to(np.int64(0), (1, MAX_BATCH + 1))
        with pytest.raises(ValueError, match="cut them in chunks"):
            store.enter_batch({}, fakes.Guarantee(), 0, v, v, compose=False)


# --- disks ----------------------------------------------------------------------------------------


def test_a_disk_that_is_full_at_the_beginning_is_a_refusal(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(database, "_SCHEMA", f"PRAGMA max_page_count=2; {database._SCHEMA}")
        with pytest.raises(ReleaseError, match=r"cannot open the store .*database or disk is full"):
            ReleaseStore.open(tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []
    ReleaseStore.open(tmp_path / "store").close()


def test_a_full_disk_refuses_a_push_and_opening_again_goes_on(folder):
    stream = fakes.stream_in(folder)
    pages = stream._store._arbiter._connection.execute("PRAGMA page_count").fetchone()[0]
    stream._store._arbiter._connection.execute(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(ReleaseError, match=r"could not be written \(database or disk is full\)"):
        stream.push(fakes.signal(12, 3000))
    with pytest.raises(ReleaseError, match="was interrupted while it published: open it again"):
        stream.push(fakes.signal(12, 1))
    assert go_on(folder) == 12


@pytest.mark.parametrize("name", ["fsync", "open"])
def test_a_witness_that_cannot_be_written_refuses_a_push_which_is_stored(folder, monkeypatch, name):
    stream = fakes.stream_in(folder)

    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if name == "fsync" else (Path, "open")), fail)
        with pytest.raises(ReleaseError, match=r"could not be written \(.*No space left.*the call returned nothing"):
            stream.push(fakes.signal(12, 2))
    assert "interrupted" in repr(stream)
    with fakes.stream_in(folder) as again:
        assert again.position == 14
        assert again.push(fakes.signal(12, 3), first=12).first == 12


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ReleaseError, match=r"cannot open the store .*Not a directory"):
        ReleaseStore.open(tmp_path / "file" / "store")


def test_a_new_database_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", fail)
        with pytest.raises(OSError, match="not permitted"):
            SqliteArbiter._create(tmp_path / "store.sqlite", database.begin)
    assert list(tmp_path.iterdir()) == []
    SqliteArbiter._create(tmp_path / "store.sqlite", database.begin)
    content = (tmp_path / "store.sqlite").read_bytes()
    SqliteArbiter._create(tmp_path / "store.sqlite", database.begin)  # somebody who came later
    assert (tmp_path / "store.sqlite").read_bytes() == content
