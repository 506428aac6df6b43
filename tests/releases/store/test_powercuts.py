"""Losses of power at any moment of the life of a store: what was returned is there, once; deleted inputs are not."""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from helpers import cutting, fakes, powercuts

from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.simulation.sweep.sweep_store import SweepStore as Sweeps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder is for Linux")
STEP = 17  # between the moments that the ordinary run looks at


@pytest.fixture(scope="module")
def memory():
    """A folder in memory: what is lost is lost by the replay."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def recorded(memory):
    """All scenarios, each in a folder of its own."""
    (memory / "root").mkdir()
    (memory / "scratch").mkdir()
    script = "import sys; from helpers import cutting; cutting.main(sys.argv[1])"
    return memory / "root", powercuts.record(script, memory / "root", memory / "scratch")


@pytest.fixture
def here(memory, monkeypatch):
    """Where states are put; files there were made when the recorded ones were, and are where those were."""
    born, real = {}, private_files.birth_time
    cutting.in_one_place(monkeypatch.setattr)
    monkeypatch.setattr(private_files, "birth_time", lambda path: born.get(path.stat().st_ino) or real(path))

    @contextlib.contextmanager
    def put(state):
        folder = memory / "cut"
        born.clear()
        born.update(powercuts.put(state, folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    return put


def survive(recorded, here, name, check, **options):
    """Every state of a scenario; how many there are."""
    root, operations = recorded
    count = 0
    for disk, state in powercuts.cuts(root / name, operations, **options):
        said = {path: bytes(file.content) for path, file in disk.names.items() if file is not None}
        with here(
            {path: x for path, x in state.items() if "/" in path or x is None or path.startswith("s.")}
        ) as folder:
            for path, content in said.items():  # what somebody has seen, who loses no power
                if path.endswith("jsonl"):
                    (folder / Path(path).name).write_bytes(content)
            check(folder)
        count += 1
    return count


def check_release(folder):
    """Nothing was lost that was returned, nor published with other noise; and it goes on to its end."""
    publisher = fakes.Publisher(folder)
    publisher.check()
    publisher.finish(cutting.TOTAL)
    publisher.check(cutting.TOTAL)


def check_sweep(folder):
    """The file is whole, and holds the first blocks that were added, at least those of before the last closing."""
    with Sweeps(folder / "s.sqlite") as store:
        assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = [] if not store.sweeps() else list(store.all_means(1))
    for case, block, means in found:
        assert means.tobytes() == cutting.means_of(case, block).tobytes()
    n = len({block for _, block, _ in found})
    assert [x[:2] for x in found] == [(case, block) for case in range(3) for block in range(n)]
    assert n >= max(fakes.lines(folder / "closed.jsonl"), default=0)


def test_a_release_loses_nothing_with_the_power(recorded, here):
    assert survive(recorded, here, "release", check_release, step=STEP) > 50


def test_a_sweep_stays_whole_and_keeps_what_was_closed(recorded, here):
    assert survive(recorded, here, "sweep", check_sweep, step=7) > 50


@pytest.mark.crash
@pytest.mark.parametrize(("name", "check"), [("release", check_release), ("sweep", check_sweep)])
def test_losses_of_power_at_every_moment(recorded, here, name, check):
    assert survive(recorded, here, name, check, n_random=10, seed=2) > 500


@pytest.mark.parametrize("name", cutting.MUTANTS)
def test_a_protocol_that_does_not_sync_is_found(recorded, here, name):
    check = check_sweep if name.startswith("sweep") else check_release
    with pytest.raises((AssertionError, ReleaseError, DataError)):
        survive(recorded, here, name, check, step=STEP)


def left_on_the_medium(recorded, name):
    """Steps of which an input lies on the medium in the end, in files or where files were."""
    root, operations = recorded
    disk = powercuts.Disk(root / name)
    for operation in operations:
        disk.do(operation)
    files = {id(x): x for x in disk.names.values() if x is not None}.values()
    medium = b"\n".join(
        [*disk.freed, *(bytes(x.lasting) for x in files), *(y for x in files for _, y in x.pending if y)]
    )
    return [
        t for t in range(cutting.N_VALUES) if any(int(x).to_bytes(5, "little") in medium for x in cutting.values(t, 1))
    ]


def test_deleted_inputs_are_not_left_on_the_medium(recorded):
    """The log is overwritten, synced, and only then cut off."""
    assert left_on_the_medium(recorded, "inputs") == []
    assert left_on_the_medium(recorded, "suspended") == list(range(cutting.N_VALUES - fakes.MEMORY, cutting.N_VALUES))


def test_the_header_of_a_log_goes_first(recorded):
    """Of a log whose end alone is gone SQLite would take the beginning for news, and set pages back."""
    root, operations = recorded
    disk, n_late = powercuts.Disk(root / "inputs"), 0
    for operation in operations:
        op, fd, at, _, data, _ = operation
        file = disk.open.get(fd)
        in_log = any(x is file and path.endswith("-wal") for path, x in disk.names.items() if x is not None)
        if op == "w" and in_log and not any(data) and at + len(data) > 4096:
            n_late += 1
            assert not any(file.lasting[:32])
        disk.do(operation)
    assert n_late > 2


def test_inputs_that_are_not_overwritten_are_found(recorded):
    assert len(left_on_the_medium(recorded, "inputs, log cut off")) > 10
    assert len(left_on_the_medium(recorded, "inputs, zeros not synced")) > 10
