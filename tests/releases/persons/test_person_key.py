"""The key of the pseudonyms: made once, found again, never replaced within a span, destroyed behind it."""

import hashlib
import hmac
import os
import re
import stat
import uuid

import pytest

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.persons.person_key import KeyFile, PersonKey

STORE = str(uuid.UUID(int=7))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "persons.key"


def key_file(path, store=STORE):
    return KeyFile(path, path.parent / "store", store)


def test_a_pseudonym_is_the_hmac_of_the_id():
    key = PersonKey(b"k" * 32)
    assert key.pseudonym(b"ada") == hmac.new(b"k" * 32, b"\1ada", hashlib.sha256).digest()
    assert key.check == hmac.new(b"k" * 32, b"\0check", hashlib.sha256).digest()
    assert repr(key) == "<PersonKey>"


def test_a_key_is_made_once_for_its_owner_alone(path):
    key = key_file(path).begin()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key_file(path).begin().check == key.check == key_file(path).read(key.check).check
    assert [x.name for x in path.parent.iterdir()] == [path.name]


def test_keys_differ(tmp_path):
    assert key_file(tmp_path / "a").begin().check != key_file(tmp_path / "b").begin().check


def test_a_key_that_is_missing_is_not_replaced(path):
    key = key_file(path).begin()
    path.unlink()
    with pytest.raises(ReleaseError, match=re.escape(f"is missing (person_key, {path})")):
        key_file(path).read(key.check)
    assert not path.exists()


def test_another_key_is_refused_and_stays(path):
    key = key_file(path).begin()
    path.unlink()
    other = key_file(path).begin()
    with pytest.raises(ReleaseError, match="is another one"):
        key_file(path).read(key.check)
    assert key_file(path).read(other.check).check == other.check


@pytest.mark.parametrize("content", [b"", b"my novel\n", None])
def test_a_file_that_is_no_key_is_refused_and_stays(path, content):
    if content is None:  # of another store, which would lose it when a span of this one ends
        key_file(path, str(uuid.UUID(int=8))).begin()
    else:
        private_files.make_file(path)
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(ReleaseError, match="holds no key of the store"):
        key_file(path).begin()
    assert path.read_bytes() == before


def test_a_key_that_others_can_read_is_refused(path):
    key = key_file(path).begin()
    path.chmod(0o644)
    with pytest.raises(ReleaseError, match="open to others"):
        key_file(path).read(key.check)


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match="cannot write the key"):
        key_file(tmp_path / "nowhere" / "key").begin()


def test_the_key_of_a_span_is_overwritten_at_its_end(path):
    old = key_file(path).begin()
    with path.open("rb") as kept:  # the blocks of the old file
        new = key_file(path).prepare()
        assert key_file(path)._find(path).check == old.check  # until then it is there
        key_file(path).put()
        assert kept.read() == bytes(len(kept.read()) or os.fstat(kept.fileno()).st_size)
    assert new.check != old.check
    assert key_file(path).read(new.check).check == new.check
    with pytest.raises(ReleaseError, match="is another one"):
        key_file(path).read(old.check)


@pytest.mark.parametrize("cut", ["the old one", "the next one"])
def test_a_file_that_a_crash_has_cut_short_is_no_hindrance(path, cut):
    old = key_file(path).begin()
    new = key_file(path).prepare()
    if cut == "the old one":  # it is overwritten, and the next one is not yet in its place
        private_files.overwrite(path)
        assert key_file(path).read(new.check).check == new.check
    else:
        path.with_name("persons.key.next").write_bytes(b"dpfast per")
        assert key_file(path).read(old.check).check == old.check
        assert key_file(path).prepare().check != old.check


def test_a_change_of_keys_is_finished_after_a_crash_or_forgotten(path):
    old = key_file(path).begin()
    new = key_file(path).prepare()  # killed here: the transaction may be there or not
    assert key_file(path)._find(path).check == old.check
    newer = key_file(path).prepare()  # it was not, and is made again
    assert newer.check != new.check
    assert key_file(path).read(newer.check).check == newer.check  # it was: the change is finished
    assert [x.name for x in path.parent.iterdir()] == [path.name]
