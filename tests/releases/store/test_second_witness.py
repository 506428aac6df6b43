"""A second witness, elsewhere: what is set back together with the first is seen; late writers set neither back."""

import contextlib
import functools
import itertools
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import patience
from dpfast.releases.store.second_witness import open_second_witness
from dpfast.releases.store.witness import Attestation, Witness

PLAN = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 9), tolerance=0.1)
U = np.arange(8) % 3
NAMES = (f"witness-{n}" for n in itertools.count())
STORE = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.engines)])
def witness(request, tmp_path):
    if request.param == "folder":
        return tmp_path / "elsewhere"
    return dp.Postgres(request.getfixturevalue("postgres_server").address, next(NAMES))


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.engines)])
def place(request, tmp_path):
    if request.param == "folder":
        return tmp_path / "here" / "store"
    return dp.Postgres(request.getfixturevalue("postgres_server").address, next(NAMES))


def opened(place, tmp_path, witness=None, published="here", **options):
    return dp.open_stream(PLAN, place, published=tmp_path / published / "published", witness=witness, **options)


@contextlib.contextmanager
def second_witness(place, store):
    """The second witness, which a test lets go again."""
    found = open_second_witness(place, store)
    yield found
    if hasattr(found, "close"):
        found.close()


def said(place, store):
    with second_witness(place, store) as found:
        return found.read()


def test_both_know_how_far_a_store_has_come(place, witness, tmp_path):
    for n in range(1, 4):
        with opened(place, tmp_path, witness) as stream:
            stream.push(U)
            second = said(witness, stream._store.id)
        assert second == Witness(tmp_path / "here" / "published").read()
        assert (second.position, second.steps) == (n, 8 * n)


def test_a_store_that_has_one_is_not_written_without_it_and_can_be_read(place, witness, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U)
    with opened(place, tmp_path, witness) as stream:  # it gets one now
        stream.push(U)
    with pytest.raises(ReleaseError, match=r"witness must be given: the store .* has a second witness"):
        opened(place, tmp_path)
    with pytest.raises(ReleaseError, match=r"is missing, and the store .* has 2 pushes"):
        opened(place, tmp_path, tmp_path / "another")
    assert dp.read_release(place, published=tmp_path / "here" / "published").privatized.shape == (1, 16)
    with opened(place, tmp_path, witness) as stream:
        assert stream.position == 16


def test_a_store_that_was_set_back_with_its_witness_is_seen(witness, tmp_path):
    """A machine is restored from a snapshot, with all that the store and the first witness know."""
    with opened(tmp_path / "here" / "store", tmp_path, witness) as stream:
        stream.push(U)
    shutil.copytree(tmp_path / "here", tmp_path / "snapshot")
    with opened(tmp_path / "here" / "store", tmp_path, witness) as stream:
        stream.push(U)
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "snapshot").rename(tmp_path / "here")
    with pytest.raises(ReleaseError, match=r"is behind its witness \(1 < 2 pushes\)"):
        opened(tmp_path / "here" / "store", tmp_path, witness, adopt=True)


def test_who_reads_may_ask_it_too(place, witness, tmp_path):
    """What was set back together with the first witness is not taken for the newest; nothing is made to read."""
    read = functools.partial(dp.read_release, place, published=tmp_path / "here" / "published")
    with opened(place, tmp_path) as stream:
        v = stream.push(U).privatized
    for elsewhere in (witness, tmp_path / "another"):
        with pytest.raises(ReleaseError, match=r"the witness .* is missing, and the store .* has 1 pushes"):
            read(witness=elsewhere)
    assert not (tmp_path / "another").exists()
    with opened(place, tmp_path, witness) as stream:
        store = stream._store.id
    assert (read(witness=witness).privatized == v).all()
    with second_witness(witness, store) as second:
        second.write(Attestation(store, 2, 16, "0" * 64))
    assert (read().privatized == v).all()
    with pytest.raises(ReleaseError, match=r"is behind its witness \(1 < 2 pushes\)"):
        read(witness=witness)


def test_a_store_that_does_not_know_of_it_gets_none_from_who_reads(witness, tmp_path):
    """It was set back to before it had one."""
    with opened(tmp_path / "here" / "store", tmp_path) as stream:
        stream.push(U)
        store, said = stream._store.id, stream._store._attestation
    with second_witness(witness, store) as second:
        second.write(said)
    dp.read_release(tmp_path / "here" / "store", published=tmp_path / "here" / "published", witness=witness)
    with opened(tmp_path / "here" / "store", tmp_path) as stream:
        assert stream.position == 8


def test_another_machine_goes_on_with_the_second_alone(place, witness, tmp_path):
    """Its own folder of what is public is empty: the store is as new as the second witness, which writes the first."""
    with opened(place, tmp_path, witness) as stream:
        v = stream.push(U).privatized
    shutil.rmtree(tmp_path / "here" / "published")
    with opened(place, tmp_path, witness) as stream:
        assert (stream.read(0, 8).privatized == v).all()
    assert Witness(tmp_path / "here" / "published").read().position == 1
    assert "This guarantee" in (tmp_path / "here" / "published" / "guarantee.txt").read_text(encoding="utf-8")


def test_without_any_word_of_a_store_nobody_goes_on(place, tmp_path):
    with opened(place, tmp_path) as stream:
        stream.push(U)
    shutil.rmtree(tmp_path / "here" / "published")
    with pytest.raises(ReleaseError, match=r"is missing, and the store .* has 1 pushes"):
        opened(place, tmp_path, tmp_path / "elsewhere")


def test_a_batch_has_one_too(place, witness, tmp_path):
    for first in (0, 8):
        dp.release(PLAN, U, place, published=tmp_path / "here" / "published", first=first, witness=witness)
    with pytest.raises(ReleaseError, match="witness must be given"):
        dp.release(PLAN, U, place, published=tmp_path / "here" / "published", first=16)


def test_a_late_writer_sets_no_witness_back(witness):
    known = [Attestation(STORE, n, 8 * n, f"{n:064x}") for n in range(4)]
    with second_witness(witness, STORE) as second:
        for n in (1, 3, 2, 0, 3):
            second.write(known[n])
    assert said(witness, STORE) == known[3]


def commit_untold(place, tmp_path):
    """A writer ends between the commit of its second push and its witnesses."""
    with pytest.MonkeyPatch.context() as patch, opened(place, tmp_path) as stream:
        stream.push(U)
        patch.setattr(stream._store, "_tell_witnesses", end)
        with pytest.raises(SystemExit):
            stream.push(U)


def end(**_):
    raise SystemExit


@pytest.mark.engines
def test_what_no_witness_knows_is_shown_to_nobody(postgres_server, tmp_path, monkeypatch):
    """Set back behind it, the database would publish the same step with other noise, and nobody would notice."""
    place = dp.Postgres(postgres_server.address, next(NAMES))
    commit_untold(place, tmp_path)
    read = functools.partial(dp.read_release, place, published=tmp_path / "here" / "published")
    monkeypatch.setattr(patience, "SECONDS", 0.1)
    with pytest.raises(ReleaseError, match=r"no witness of the store .* knows of its last push, number 2"):
        read()
    with opened(place, tmp_path) as stream:
        assert stream.position == 16
    assert read().privatized.shape == (1, 16)


@pytest.mark.engines
def test_who_reads_waits_until_it_is_told(postgres_server, tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 600)
    place = dp.Postgres(postgres_server.address, next(NAMES))
    commit_untold(place, tmp_path)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(dp.read_release, place, published=tmp_path / "here" / "published")
        with pytest.raises(TimeoutError):
            found.result(0.2)
        with opened(place, tmp_path):
            assert found.result().privatized.shape == (1, 16)


@pytest.mark.engines
def test_one_witness_that_knows_is_enough(postgres_server, witness, tmp_path):
    """A reader on another machine has the second alone, or an old copy of the first."""
    place = dp.Postgres(postgres_server.address, next(NAMES))
    with opened(place, tmp_path, witness) as stream:
        stream.push(U)
        shutil.copytree(tmp_path / "here" / "published", tmp_path / "old")
        stream.push(U)
    for folder in ("old", "none"):
        assert dp.read_release(place, published=tmp_path / folder, witness=witness).privatized.shape == (1, 16)


@pytest.mark.engines
def test_one_place_serves_many_stores(postgres_server, tmp_path):
    witness = dp.Postgres(postgres_server.address, next(NAMES))
    for name in ("a", "b"):
        with opened(tmp_path / name / "store", tmp_path, witness, published=name) as stream:
            stream.push(U)
    assert len(postgres_server.execute(f'SELECT * FROM "{witness.schema}".witnesses')) == 2
    postgres_server.execute(f'UPDATE "{witness.schema}".witnesses SET position = 0')
    with pytest.raises(ReleaseError, match=r"the second witness .* is damaged"):
        opened(tmp_path / "a" / "store", tmp_path, witness, published="a")


@pytest.mark.engines
def test_a_witness_that_cannot_be_told_ends_the_stream(postgres_server, tmp_path):
    """The step is committed, and not returned: opened again the stream is behind it, and reads it back."""
    witness = dp.Postgres(postgres_server.address, next(NAMES))
    with opened(tmp_path / "a" / "store", tmp_path, witness, published="a") as stream:
        stream.push(U)
        ((pid,),) = stream._store._second._session.execute("SELECT pg_backend_pid()").fetchall()
        postgres_server.execute("SELECT pg_terminate_backend(%s)", (pid,))
        with pytest.raises(ReleaseError, match=r"the second witness .* cannot be read or written"):
            stream.push(U)
        with pytest.raises(ReleaseError, match="was interrupted while it published"):
            stream.push(U)
    with opened(tmp_path / "a" / "store", tmp_path, witness, published="a") as stream:
        assert stream.position == 16
        assert said(witness, stream._store.id).position == 2


def test_a_place_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match="witness must be a path"):
        fakes.ReleaseStore.open(tmp_path / "store", witness=7)
