"""Damaged files: refused by the errors of the package, which name the file, or as good as they were."""

import functools
import random

import numpy as np
import pytest
from helpers import fakes
from helpers.designs import MadeOnce, designed

import dpfast as dp
from dpfast._support.errors import DataError, ReleaseError
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.releases.noise import Noise, NoiseOfLaws
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream_opening import open_stream

TARGET = dp.Filter([1], [1, -0.9])
PRIVACY = dp.Privacy(2, 1e-6)


@functools.cache
def streamed():
    mechanism = designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1)
    return dp.exact(mechanism, dp.Inputs(0, 6, unit=0.5, centre=2, n_streams=2))


def outcome(kind, call):
    """What a call returns, and the message of its refusal."""
    try:
        return call(), None
    except kind as error:
        return None, str(error)


def content(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Noted(Noise):
    """Whose last draw is known."""

    def take(self, n):
        self.last = super().take(n)
        return self.last.copy()


def mutated(data, choice):
    """Bytes with some damage: flipped, cut, blanked, repeated, exchanged or longer."""
    size = len(data)
    at, n = choice.randrange(size), choice.randrange(1, 200)
    kind = choice.randrange(8)
    if kind <= 2:
        changed = bytearray(data)
        for _ in range(choice.choice([1, 1, 2, 20])):
            changed[choice.randrange(size)] ^= 1 << choice.randrange(8)
        return bytes(changed)
    return [
        lambda: data[:at],
        lambda: data[:at] + bytes(len(data[at : at + n])) + data[at + n :],
        lambda: data[:at] + data[at : at + n] + data[at:],
        lambda: data[:at] + data[at + n :],
        lambda: data + choice.randbytes(n),
    ][kind - 3]()


CHAIN = dp.MarkovChain([[0.5, 0.5], [0.2, 0.8]], [0, 1])
DESIGNS = MadeOnce(
    {
        "zero forcing": lambda: designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1),
        "feedback": lambda: dp.decision_feedback(TARGET, PRIVACY, CHAIN, lag=3, tolerance=0.1),
    }
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", DESIGNS)
def test_a_damaged_mechanism_is_refused_or_the_same(tmp_path, name, seed):
    design = DESIGNS[name]
    file, choice = tmp_path / "mechanism.json", random.Random(seed)
    dp.save(design, file)
    data, text = file.read_bytes(), to_text(design)
    refused = 0
    for _ in range(60):
        file.write_bytes(mutated(data, choice))
        loaded, message = outcome(DataError, lambda: dp.load(file))
        if loaded is None:
            assert message.startswith(f"{file} ")
            refused += 1
        else:
            assert to_text(loaded) == text
    assert refused > 50


class Damaged:
    """A private folder, put back again and again into the same files."""

    def __init__(self, folder):
        self.folder, self.files = folder, content(folder.parent)

    def put_back(self, name, data):
        for path in self.folder.parent.rglob("*"):
            if path.is_file() and path not in self.files and path.name != "store.sqlite-wal":
                path.unlink()
        wal = self.folder / "store.sqlite-wal"
        wal.unlink(missing_ok=True)
        for path, whole in self.files.items():
            path.touch(mode=0o600)
            with path.open("r+b") as file:  # the same inode: another would be a copy of the store
                file.truncate(0)
                file.write(data if path.name == name else whole)


U = np.random.default_rng(1).integers(-1, 9, (2, 40))


@pytest.fixture(scope="module", params=["suspended", "killed", "closed"])
def damaged(request, tmp_path_factory):
    """A stream of five pushes, with what was published, as files that a person, a crash or the end left."""
    folder = tmp_path_factory.mktemp("damaged") / "store"
    stream = open_stream(streamed(), folder)
    for first, last in ((0, 1), (1, 4), (4, 20), (20, 21), (21, 40)):
        stream.push(U[:, first:last])
    published = stream.read(0, 40)
    killed = Damaged(folder)
    if request.param == "closed":
        stream.close()
    stream.suspend()
    return killed if request.param == "killed" else Damaged(folder), published, request.param


def went_on(folder, published, state):
    """That what was published still is, and that the next step has the inputs that were before it."""
    with open_stream(streamed(), folder, adopt=True) as stream:  # older files over newer ones
        again = stream.read(0, stream.position)
        assert again.privatized.tolist() == published.privatized.tolist()
        assert again.estimate.tolist() == published.estimate.tolist()
        if state == "closed":
            return
        stream._noise = NoiseOfLaws((Noted(streamed().sigma),))
        result = stream.push(np.array([[3], [5]]))
        x = np.concatenate([2 * U.clip(0, 6) - 4, [[2], [6]]], axis=1)
        v = fakes.filtered(x, streamed().taps)[:, -1:] + stream._noise.sources[0].last.reshape(2, 1)
        assert (result.first, result.privatized.tolist()) == (40, v.tolist())


@pytest.mark.parametrize(
    "name", ["store.sqlite", "store.sqlite-wal", "witness.json", "guarantee.json", "guarantee.txt"]
)
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.long)])  # 5: some 900 damaged files
def test_a_damaged_store_is_refused_or_goes_on_with_what_was_published(damaged, name, times):
    store, published, state = damaged
    whole = next((data for path, data in store.files.items() if path.name == name), b"")
    if not whole:
        pytest.skip("there is no log")
    choice, refused = random.Random(name + state), 0
    store.put_back("", b"")
    went_on(store.folder, published, state)
    n = times * {"store.sqlite": 40, "guarantee.json": 3, "guarantee.txt": 3}.get(name, 12)
    for _ in range(n):
        store.put_back(name, mutated(whole, choice))
        _, message = outcome(ReleaseError, lambda: went_on(store.folder, published, state))
        assert message is None or str(store.folder) in message
        refused += message is not None
    if name.startswith("guarantee"):
        assert refused == 0  # it is written anew
        assert (fakes.beside(store.folder) / name).read_bytes() == whole
    else:
        assert refused > (state != "killed" and n // 4)  # of a killed one most is in the log


def test_a_damaged_batch_is_refused_or_keeps_what_was_published(tmp_path):
    folder, choice, refused = tmp_path / "store", random.Random(1), 0
    published = dp.release(streamed(), U, folder)
    store = Damaged(folder)

    def read():
        with ReleaseStore.open(folder) as opened:
            return opened.read(1, 0, 40)

    for _ in range(20):
        store.put_back("store.sqlite", mutated(store.files[folder / "store.sqlite"], choice))
        _, again = outcome(ReleaseError, lambda: dp.release(streamed(), U, folder))
        assert str(folder) in again or "released already" in again
        result, message = outcome(ReleaseError, read)
        if result is None:
            assert str(folder) in message
            refused += 1
        else:
            assert result[0].tolist() == published.privatized.tolist()
            assert result[1].tolist() == published.estimate.tolist()
    assert refused > 5
