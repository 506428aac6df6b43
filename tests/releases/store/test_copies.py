"""Older copies of a store, written over it or beside it; logs that are not its own; and where its witness lies."""

import contextlib
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.rollback_mark import Mark
from dpfast.releases.store.release_store import ReleaseStore

WRITTEN_OVER = "an older copy was written over the files of the store"
BEHIND = r"behind its witness \(\d < \d pushes\)"


@pytest.fixture
def folder(tmp_path):
    """Of a store with three pushes, suspended, in a folder with what it has published."""
    folder = tmp_path / "all" / "store"
    push(folder, 3)
    return folder


@pytest.fixture
def birth(tmp_path):
    if private_files.birth_time(tmp_path) is None:
        pytest.skip("this file system does not tell when files were made")


def push(folder, times=1, **options):
    with fakes.stream_in(folder, **options) as stream:
        for _ in range(times):
            stream.push(fakes.signal(stream.position, 4))
        return stream.position


def killed(folder, copy):
    """Two pushes more, and what a kill behind them leaves, as a copy of the folder of both."""
    with fakes.stream_in(folder) as stream:
        for _ in range(2):
            stream.push(fakes.signal(stream.position, 4))
        shutil.copytree(folder.parent, copy)


def write_over(source, target):
    """As ``cp -r``: the files stay where they are, and get the contents of others."""
    shutil.copytree(source, target, dirs_exist_ok=True)


def refused(folder, match):
    with pytest.raises(ReleaseError, match=match):
        fakes.stream_in(folder)


# --- where the witness is -------------------------------------------------------------------------


def test_publications_are_beside_the_store(tmp_path):
    target = dp.zero_forcing(dp.Filter([1]), dp.Privacy(1, 1e-6))
    dp.release(target, np.zeros(3, int), tmp_path / "batch", dp.Inputs(0, 1))
    dp.open_stream(target, tmp_path / "live", dp.Inputs(0, 1)).suspend()
    for name in ("batch", "live"):
        assert {path.name for path in (tmp_path / name).iterdir()} == {"store.sqlite", "mark"}
        published = {path.name for path in (tmp_path / f"{name}-published").iterdir()}
        assert published == {"witness.json", "guarantee.txt", "guarantee.json"}


@contextlib.contextmanager
def database(folder):
    with contextlib.closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        yield connection


def as_before(folder):
    """As a version before left it: the witness inside, and no mark."""
    fakes.beside(folder).rename(folder / "published")
    (folder / "mark").unlink()
    with database(folder) as connection:
        connection.execute("DROP TABLE mark")


def test_a_witness_that_a_version_before_put_inside_is_found_there(folder):
    as_before(folder)
    old = (folder / "store.sqlite").read_bytes()
    assert push(folder) == 16
    assert not fakes.beside(folder).exists()
    (folder / "store.sqlite").write_bytes(old)
    refused(folder, BEHIND)


def test_a_witness_that_was_moved_out_is_the_one_that_counts(folder, tmp_path):
    as_before(folder)
    shutil.copytree(folder, tmp_path / "copy")
    (folder / "published").rename(fakes.beside(folder))
    assert push(folder) == 16
    write_over(tmp_path / "copy", folder)  # with the witness of then
    assert (folder / "published").exists()
    refused(folder, BEHIND)


@pytest.mark.usefixtures("birth")
def test_a_store_of_before_gets_a_mark_when_it_is_opened(folder, tmp_path):
    as_before(folder)
    shutil.copytree(folder, tmp_path / "copy")
    ReleaseStore.open(folder).close()
    write_over(tmp_path / "copy", folder)
    refused(folder, WRITTEN_OVER)


# --- copies ---------------------------------------------------------------------------------------

COPIES = {
    "cp -r": ["cp", "-r"],
    "cp -a": ["cp", "-a"],
    "shutil": None,
}


@pytest.mark.parametrize("command", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("closed", [True, False])
def test_an_older_copy_over_the_store_is_behind_its_witness(folder, tmp_path, command, closed):
    copied(folder, tmp_path / "copy", closed=closed)
    push(folder)
    over(command, tmp_path / "copy" / "store", folder)
    refused(folder, BEHIND)


@pytest.mark.usefixtures("birth")
@pytest.mark.parametrize("command", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("closed", [True, False])
def test_an_older_copy_over_the_store_and_its_witness(folder, tmp_path, command, closed):
    copied(folder, tmp_path / "copy", closed=closed)
    position = push(folder)
    inodes = [path.stat().st_ino for path in sorted(folder.parent.rglob("*.*")) if path.is_file()]
    over(command, tmp_path / "copy", folder.parent)
    if closed:
        log_of(folder).unlink(missing_ok=True)
    again = [path.stat().st_ino for path in sorted(folder.parent.rglob("*.*")) if path.is_file()]
    assert set(inodes) <= set(again)
    refused(folder, WRITTEN_OVER)
    with fakes.stream_in(folder, adopt=True) as stream:  # whoever says so
        assert stream.position == position - 4


def copied(folder, copy, *, closed):
    if closed:
        shutil.copytree(folder.parent, copy)
    else:
        killed(folder, copy)


def over(command, source, target):
    if command is None:
        write_over(source, target)
    else:
        subprocess.run([*command, f"{source}/.", str(target)], check=True)


@pytest.mark.usefixtures("birth")
def test_one_push_is_enough_for_a_copy_to_be_older(folder, tmp_path):
    for _ in range(5):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(folder.parent, tmp_path / "copy")
        position = push(folder)
        shutil.copytree(folder.parent, tmp_path / f"new {position}")
        write_over(tmp_path / "copy", folder.parent)
        refused(folder, WRITTEN_OVER)
        write_over(tmp_path / f"new {position}", folder.parent)
        assert push(folder) == position + 4  # the newest one may come back


@pytest.mark.usefixtures("birth")
def test_a_mark_that_is_gone_is_noticed(folder):
    (folder / "mark").unlink()
    refused(folder, WRITTEN_OVER)


def test_where_no_file_tells_when_it_was_made_stores_go_on(tmp_path, monkeypatch):
    """And an older copy over both goes unnoticed, as the documents say."""
    monkeypatch.setattr(private_files, "birth_time", lambda path: None)
    folder = tmp_path / "all" / "store"
    push(folder, 2)
    shutil.copytree(folder.parent, tmp_path / "copy")
    assert push(folder) == 12
    write_over(tmp_path / "copy", folder.parent)
    assert push(folder) == 12


def test_times_that_anybody_can_set_do_not_matter(folder):
    for path in folder.parent.rglob("*"):
        subprocess.run(["touch", "-d", "2001-01-01", str(path)], check=True)
        path.chmod(0o700)
    assert push(folder) == 16


@pytest.mark.usefixtures("birth")
def test_a_loss_of_power_may_bring_an_older_mark_back(folder, monkeypatch):
    """Its name is synced once, later renames are not; but no newer one can be there."""
    with monkeypatch.context() as patch:
        patch.setattr(Mark, "put", lambda self: None)
        push(folder, 3)
    assert push(folder) == 28


# --- logs -----------------------------------------------------------------------------------------


def log_of(folder):
    return folder / "store.sqlite-wal"


@pytest.fixture(params=[4, 60])
def logs(request, folder, tmp_path):
    """A closed store; its database and its log, as kills would have left them behind three pushes of many."""
    states = []
    for i in range(3):
        push(folder, request.param)
        killed(folder, tmp_path / f"{i}")
        states.append(
            [(tmp_path / f"{i}" / "store" / name).read_bytes() for name in ("store.sqlite", log_of(folder).name)]
        )
    return folder, states


def put(folder, whole=None, log=None):
    if whole is not None:
        (folder / "store.sqlite").write_bytes(whole)
    log_of(folder).write_bytes(log)
    log_of(folder).chmod(0o600)


def published(folder):
    with fakes.stream_in(folder) as stream:
        _, v, estimate, _ = stream.read(0, stream.position)
        return v.tolist(), estimate.tolist(), stream._history.tolist()


def test_an_older_log_beside_a_newer_database(logs):
    folder, states = logs
    whole = (folder / "store.sqlite").read_bytes()
    for _, log in states[:2]:
        put(folder, whole, log)
        refused(folder, "is damaged|behind its witness")


def test_a_newer_log_beside_an_older_database(logs):
    """SQLite takes its pages for those of this one: all that there is, or a mixture."""
    folder, states = logs
    newest, refusals = published(folder), 0
    for whole, _ in states[:2]:
        put(folder, whole, states[2][1])
        try:
            assert published(folder) == newest
        except ReleaseError:
            refusals += 1
    assert refusals == 2 or len(newest[0][0]) < 200


def test_the_log_of_another_store(logs, tmp_path):
    folder, _ = logs
    other = tmp_path / "elsewhere" / "store"
    killed(other, tmp_path / "copy")
    put(folder, log=log_of(tmp_path / "copy" / "store").read_bytes())
    refused(folder, "is damaged|was copied or moved|of another store")


def test_a_log_that_holds_nothing(folder):
    for log in (b"", bytes(5000), b"time,count\n" * 500):
        put(folder, log=log)
        assert push(folder) % 4 == 0
    (folder / "store.sqlite-shm").write_bytes(b"\1" * 32768)  # of no use to whoever has the store alone
    assert push(folder) % 4 == 0


def test_pages_of_two_times_are_refused(folder):
    """All rows whole, each of some moment; a stream would publish the steps between once more."""
    with database(folder) as connection:
        rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("progress", "inputs")}
    push(folder)
    with database(folder) as connection:
        for table, content in rows.items():
            connection.execute(f"DELETE FROM {table}")
            marks = ", ".join("?" * len(content[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", content)
    refused(folder, "is damaged")
