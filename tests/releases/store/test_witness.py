"""The witness: what it says, and what is no witness."""

import importlib
import json
import os
import re
import threading
from pathlib import Path

import pytest

from dpfast._support.atomic_files import POSIX
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import patience, private_files
from dpfast.releases.store.witness import Attestation, Witness

SAID = Attestation("an id", 3, 17, "0123456789abcdef" * 4)


@pytest.fixture
def witness(tmp_path):
    witness = Witness(tmp_path / "published")
    witness.write(SAID)
    return witness


def test_what_is_written_is_read(witness):
    assert witness.read() == SAID
    later = SAID._replace(position=4, steps=18)
    witness.write(later)
    assert witness.read() == later
    assert [path.name for path in witness.path.parent.iterdir()] == ["witness.json"]


def test_a_first_one_lasts_through_a_loss_of_power(tmp_path, monkeypatch):
    """Else nobody could go on with an honest store: its witness would be missing, not behind."""
    synced = []

    def note(path):
        synced.append((path.relative_to(tmp_path).as_posix(), sorted(x.name for x in path.iterdir())))

    for module in (private_files, importlib.import_module("dpfast.releases.store.witness")):
        monkeypatch.setattr(module, "sync_folder", note)
    witness = Witness(tmp_path / "a" / "b")
    witness.write(SAID)
    assert sorted(synced) == [(".", ["a"]), ("a", ["b"]), ("a/b", ["witness.json"])]
    witness.write(SAID)
    assert len(synced) == 3


def test_a_late_writer_leaves_what_is_promised(witness):
    witness.write(SAID._replace(position=4), {"guarantee.txt": "of four"})
    witness.write(SAID, {"guarantee.txt": "of three"})
    assert (witness.path.parent / "guarantee.txt").read_text() == "of four"
    assert witness.read().position == 4


@pytest.mark.skipif(not POSIX, reason="Windows does not tell others")
def test_all_is_written_under_one_lock_for_which_one_waits(witness, monkeypatch):
    written = []

    def note(path, text):
        with pytest.raises(BlockingIOError):
            private_files.hold_folder(path.parent)
        written.append(path.name)

    monkeypatch.setattr("dpfast.releases.store.witness.replace_file", note)
    let_go = private_files.hold_folder(witness.path.parent)
    threading.Timer(0.2, let_go).start()
    witness.write(SAID._replace(position=4), {"guarantee.txt": "of four"})
    assert written == ["guarantee.txt", "witness.json"]


@pytest.mark.skipif(not POSIX, reason="Windows does not tell others")
def test_a_process_that_stands_still_in_the_folder_is_not_waited_for_for_ever(witness, monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    let_go = private_files.hold_folder(witness.path.parent)
    words = rf"another process writes into {re.escape(str(witness.path.parent))}, and was not done within 0\.1 s"
    with pytest.raises(ReleaseError, match=words):
        witness.write(SAID._replace(position=4), {"guarantee.txt": "of four"})
    let_go()
    assert witness.read() == SAID
    assert not (witness.path.parent / "guarantee.txt").exists()


def test_it_is_plain_json(witness):
    content = json.loads(witness.path.read_text(encoding="utf-8"))
    assert content == {"format": 1, "store": "an id", "position": 3, "steps": 17, "sha256": SAID.sha256}


def test_none_is_there(tmp_path):
    assert Witness(tmp_path / "nowhere").read() is None


DAMAGES = {
    "empty": lambda x: "",
    "cut": lambda x: x[:40],
    "no JSON": lambda x: x.replace("{", "("),
    "deep": lambda x: "[" * 10**5,
    "a list": lambda x: "[1]",
    "a field less": lambda x: x.replace('"steps": 17,', ""),
    "a field more": lambda x: x.replace("{", '{"more": 1,'),
    "another format": lambda x: x.replace('"format": 1', '"format": 2'),
    "position as text": lambda x: x.replace(": 3", ': "3"'),
    "position as truth": lambda x: x.replace(": 3", ": true"),
    "short hash": lambda x: x.replace("abcdef", "abcde", 1),
    "no hash": lambda x: x.replace("abcdef", "abcdeg", 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_one_is_refused(witness, damage):
    text = witness.path.read_text(encoding="utf-8")
    assert damage(text) != text
    witness.path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"witness\.json is damaged.* begin anew"):
        witness.read()


def test_bytes_that_are_no_text_are_refused(witness):
    witness.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReleaseError, match="is damaged"):
        witness.read()


def test_one_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "witness.json").mkdir()
    with pytest.raises(ReleaseError, match="cannot read the witness"):
        Witness(tmp_path).read()


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_failure_leaves_the_last_one(witness, monkeypatch, owner, name):
    def fail(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(OSError, match="No space"):
            witness.write(SAID._replace(position=4))
    assert witness.read() == SAID
