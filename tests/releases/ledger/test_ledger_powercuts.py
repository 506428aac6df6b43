"""Losses of power at any moment of releases under a ledger: what was published is in it, as it was, and once."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from helpers import ledger_powercuts, powercuts

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder is for Linux")
STEP = 151  # between the moments that the ordinary run looks at


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
    script = "import sys; from helpers import ledger_powercuts; ledger_powercuts.main(sys.argv[1])"
    return powercuts.record(script, memory / "root", memory / "scratch")


@pytest.fixture
def survive(memory, recorded, monkeypatch):
    """Check every state that a loss of power may leave of a scenario; how many there are."""
    born, real = {}, private_files.birth_time
    ledger_powercuts.in_one_place(monkeypatch.setattr)
    monkeypatch.setattr(private_files, "birth_time", lambda path: born.get(path.stat().st_ino) or real(path))

    def check_all(name, **options):
        count, folder = 0, memory / "cut"
        for disk, state in powercuts.cuts(memory / "root" / name, recorded, **options):
            public = [bytes(x.content) for path, x in disk.names.items() if x is not None and path.endswith("jsonl")]
            born.clear()
            born.update(powercuts.put({path: x for path, x in state.items() if path != "public.jsonl"}, folder))
            for content in public:  # what somebody has seen, who loses no power
                (folder / "public.jsonl").write_bytes(content)
            try:
                ledger_powercuts.check(folder)
            finally:
                shutil.rmtree(folder)
            count += 1
        return count

    return check_all


def test_a_ledger_is_not_below_the_truth_after_a_loss_of_power(survive):
    assert survive("right", step=STEP) > 10


@pytest.mark.crash
def test_losses_of_power_at_every_moment(survive):
    assert survive("right", n_random=2, seed=2) > 450


@pytest.mark.crash
@pytest.mark.parametrize("mutant", ledger_powercuts.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_protocol_that_does_not_wait_is_found(survive, mutant):
    with pytest.raises((AssertionError, KeyError, ReleaseError)):
        survive(mutant.__name__, step=7)
