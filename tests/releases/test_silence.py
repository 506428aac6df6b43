"""Nothing private in what is shown: logs, warnings, outputs, reprs, and the texts of errors."""

import functools
import logging
import re
import sqlite3
import traceback

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.noise import Noise, NoiseOfLaws
from dpfast.releases.store.release_rows import Records
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream

CENTRE = 10_000_019
U = np.array([31_415_926_535, 27_182_818_284, 16_180_339_887])


@functools.cache
def planned():
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1e-2, 1e-9, max_change=100))
    return dp.exact(mechanism, dp.Inputs(0, 2**36, centre=CENTRE))


class Noted(Noise):
    """Which remembers what it gave; that is published with the inputs, and private without."""

    def __init__(self, sigma):
        super().__init__(sigma)
        self.taken = []

    def take(self, n):
        self.taken += (taken := super().take(n)).tolist()
        return taken


def numbers(text):
    """Those in it that are no part of a word, and too long to be met by chance."""
    found = re.findall(r"(?<![\w.])\d[\d,]*(?![\w.])", text)
    return {int(x.replace(",", "")) for x in found if len(x) >= 7}


@pytest.fixture
def secrets(monkeypatch):
    """Texts that must not be shown, and those that were: a function that adds to them."""
    made, shown = [], []

    def make(sigma):
        made.append(Noted(sigma))
        return made[-1]

    monkeypatch.setattr("dpfast.releases.noise.Noise", make)
    yield make, shown.append
    private = [*U.tolist(), *(U - CENTRE).tolist(), *(x for noise in made for x in [*noise.taken, *noise._samples])]
    assert len(private) > 4000
    assert len(shown) >= 3
    said = numbers("\n".join(shown)) - numbers(f"{planned().guarantee}\n{planned().inputs}")
    assert not said & {abs(x) for x in private}


@pytest.fixture(autouse=True)
def all_that_is_written(secrets, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    yield
    _, show = secrets
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err):
        show(text)


def showing(show, *objects):
    for x in objects:
        for text in (repr(x), str(x), f"{x}"):
            show(text)


def refused(show, kind, call):
    with pytest.raises(kind) as error:
        call()
    show("".join(traceback.format_exception(error.value)))


def test_a_batch(secrets, tmp_path):
    _, show = secrets
    result = dp.release(planned(), U, tmp_path / "store")
    showing(
        show,
        result,
        planned(),
        planned().inputs,
        result.guarantee,
        planned().shift,
        planned().receiver,
        planned().live(),
    )
    with ReleaseStore.open(tmp_path / "store") as store:
        showing(show, store, store.memory(1), *store.releases())
    refused(show, ReleaseError, lambda: dp.release(planned(), U, tmp_path / "store"))


def test_a_stream(secrets, tmp_path):
    make, show = secrets
    store, noise = ReleaseStore.open(tmp_path / "store"), make(planned().sigma)
    with Stream(store, planned(), NoiseOfLaws((noise,))) as stream:
        stream.push(U)
        showing(show, stream, noise, store, store.memory(1), stream.guarantee)
        refused(show, ReleaseError, lambda: stream.push(U[:1] + 5, first=2))
        refused(show, ReleaseError, lambda: stream.push(U, first=4))
        stream.close()
        showing(show, stream, store.memory(1))


@pytest.mark.parametrize(
    "u",
    [U.tolist(), U * 1.0, U.reshape(3, 1), U.astype(object), U.astype(str), np.ma.array(U), {"u": U}, U * 1j, U[0]],
    ids=lambda u: type(u).__name__,
)
def test_refusals(secrets, tmp_path, u):
    make, show = secrets
    refused(show, ValueError, lambda: dp.release(planned(), u, tmp_path / "batch"))
    if np.ndim(u):  # a single number in another place is shown
        refused(show, ValueError, lambda: dp.release(u, planned(), tmp_path / "batch"))
    refused(show, ValueError, lambda: dp.release(planned(), U, tmp_path / "batch", planned().inputs, first=U))
    with Stream(ReleaseStore.open(tmp_path / "store"), planned(), NoiseOfLaws((make(planned().sigma),))) as stream:
        stream.push(U)
        refused(show, ValueError, lambda: stream.push(u))
    dp.release(planned(), U, tmp_path / "batch")


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk full"), OSError("no"), MemoryError()])
@pytest.mark.parametrize("name", ["push", "remember", "progress"])
def test_failures(secrets, tmp_path, monkeypatch, name, error):
    make, show = secrets

    def fail(*args, **options):
        raise error

    with Stream(ReleaseStore.open(tmp_path / "store"), planned(), NoiseOfLaws((make(planned().sigma),))) as stream:
        stream.push(U)
        monkeypatch.setattr(Records, name, fail)
        refused(show, (ReleaseError, MemoryError), lambda: stream.push(U))
        refused(show, ReleaseError, lambda: stream.push(U))
        showing(show, stream)
