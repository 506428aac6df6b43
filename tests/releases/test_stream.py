"""Streams: what is published, what is refused, and how they go on."""

import contextlib
import copy
import pickle
import threading

import numpy as np
import pytest
from helpers import fakes
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.integer.exact_forms import exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.noise import Noise
from dpfast.releases.store import release_store
from dpfast.releases.store.push_limits import MAX_SAMPLES
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream
from dpfast.releases.stream_opening import open_stream


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def publisher(tmp_path):
    return fakes.Publisher(tmp_path)


@pytest.fixture
def stream(folder):
    """With ten steps."""
    with fakes.stream_in(folder) as stream:
        stream.push(fakes.signal(0, 10))
        yield stream


# --- what is published ----------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.lists(st.integers(0, 20), max_size=6), st.sets(st.integers(0, 5)))
def test_any_pieces_with_pauses_make_one_run(tmp_path_factory, pieces, pauses):
    publisher = fakes.Publisher(tmp_path_factory.mktemp("pieces"))
    stream = publisher.open()
    for i, n in enumerate(pieces):
        publisher.push(stream, n)
        assert stream.position == sum(pieces[: i + 1])
        if i in pauses:
            stream.suspend()
            stream = publisher.open()
    publisher.publish(stream.close())
    stream.suspend()
    assert publisher.next() == sum(pieces) + fakes.LAG
    publisher.check(sum(pieces))


def test_one_step_without_memory(folder):
    """A single tap: no input is kept, and what is pushed again is read back without a look at it."""
    plan, noise = fakes.Plan(np.array([3]), lag=0), fakes.Noise()
    with fakes.stream_in(folder, plan=plan, noise=noise) as stream:
        v = np.concatenate([stream.push(fakes.signal(t, 1)).privatized for t in range(3)], axis=1)
        assert sorted((v - 3 * fakes.integers(0, 3)).ravel().tolist()) == sorted(noise.taken)
        assert stream.push(fakes.signal(7, 1), first=2).privatized.tolist() == v[:, 2:].tolist()
        assert stream.close().privatized.shape == (2, 0)
    fakes.check_files(folder, [])


def test_the_end_flushes_the_lag_with_declared_zeros(publisher):
    with publisher.open() as stream:
        publisher.push(stream, 7)
        end = stream.close()
        assert (end.first, end.privatized.shape, end.estimate.shape, end.lag) == (7, (2, 2), (2, 2), 2)
        again = stream.close()
        assert again.privatized.tolist() == end.privatized.tolist()
        with pytest.raises(ReleaseError, match="is over at step 9"):
            stream.push(fakes.signal(9, 1))
        assert stream.read(5, 4).privatized[:, 2:].tolist() == end.privatized.tolist()
        assert "closed" in repr(stream)
    publisher.check(7)
    with publisher.open() as stream:
        assert (stream.position, stream.close().first) == (9, 7)
        with pytest.raises(ReleaseError, match="is over"):
            stream.push(fakes.signal(8, 1), first=8)


def test_forgotten_inputs_leave_the_log_of_a_stream_that_is_never_closed(folder):
    secret = 123_456_789_012
    plan = fakes.Plan(np.array([3, 1]), Inputs(0, 2**40, n_streams=2), lag=0)
    with fakes.stream_in(folder, plan=plan) as stream:

        def pushed(n):
            for _ in range(n):
                stream.push(np.zeros((2, 1), np.int64))
            return b"".join(x.read_bytes() for x in sorted(folder.glob("store.sqlite*")))

        stream.push(np.full((2, 1), secret))
        assert secret.to_bytes(5, "little") in pushed(1)  # deleted, and in the log
        assert secret.to_bytes(5, "little") not in pushed(release_store.PUSHES_OF_LOG)


def test_prepared_pushes_draw_nothing(folder, monkeypatch):
    """Blocks of 4096: opening draws one, then `prepare`, and a push only where neither has."""
    draw, drawn = Noise._draw, []
    monkeypatch.setattr(Noise, "_draw", lambda self, out: drawn.append(len(out)) or draw(self, out))
    plan = exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), Inputs(0, 20))
    with open_stream(plan, folder) as opened:
        assert drawn == [4096]
        opened.push(np.zeros(4000, np.int64))
        assert drawn == [4096]
        opened.prepare(5000)
        assert drawn == [4096, 8192]
        opened.push(np.zeros(5000, np.int64))
        assert drawn == [4096, 8192]
        opened.push(np.zeros(4000, np.int64))
        assert drawn == [4096, 8192, 4096]
        for n in (-1, 0.5):
            with pytest.raises(ValueError, match="n must be an integer, at least 0"):
                opened.prepare(n)
        with pytest.raises(ValueError, match="at most 50,000,000 samples"):
            opened.prepare(MAX_SAMPLES + 1)


def test_reading(stream):
    whole = stream.read(0, 10)
    stream.push(fakes.signal(10, 3))
    for first, count in ((0, 10), (3, 4), (9, 1), (0, 0), (10, 0)):
        part = stream.read(first, count)
        assert part.first == first
        assert part.privatized.tolist() == whole.privatized[:, first : first + count].tolist()
        assert part.estimate.tolist() == whole.estimate[:, first : first + count].tolist()
    assert stream.read(8, 5).privatized[:, :2].tolist() == whole.privatized[:, 8:].tolist()
    with pytest.raises(ReleaseError, match=r"at most the next step, 13, got 12 \+ 2"):
        stream.read(12, 2)
    for first, count in ((-1, 1), (0, -1), (0.5, 1), (True, 1)):
        with pytest.raises(ValueError, match="must be an integer"):
            stream.read(first, count)


# --- steps that come again ------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize(("first", "n"), [(4, 6), (6, 2), (9, 1), (7, 9), (4, 30), (10, 2)])
def test_known_steps_are_returned_and_new_ones_published(stream, folder, pause, first, n):
    known = stream.read(0, 10).privatized
    if pause:
        stream.suspend()
        stream = fakes.stream_in(folder)
    with stream:
        result = stream.push(fakes.signal(first, n), first=first)
        assert result.first == first
        assert result.privatized[:, : 10 - first].tolist() == known[:, first : first + n].tolist()
        assert result.privatized.tolist() == stream.read(first, n).privatized.tolist()
        assert stream.position == max(10, first + n)


def test_inputs_are_compared_as_they_are_counted(stream):
    """A value outside of the range is its end."""
    clamped = np.clip(fakes.signal(4, 6), 0, 9)
    assert (clamped != fakes.signal(4, 6)).any()
    assert stream.push(clamped, first=4).privatized.tolist() == stream.read(4, 6).privatized.tolist()


@pytest.mark.parametrize("pause", [False, True])
def test_other_inputs_are_refused_without_a_word_about_them(stream, folder, pause):
    if pause:
        stream.suspend()
        stream = fakes.stream_in(folder)
    with stream:
        chunk = fakes.signal(6, 6)
        chunk[1, 2] = 3 if chunk[1, 2] != 3 else 5
        with pytest.raises(ReleaseError) as error:
            stream.push(chunk, first=6)
        assert str(error.value) == (
            "steps 6 to 9 are published, with other inputs than these: no step is published twice; "
            "read(6, 4) gives what was published"
        )
        assert stream.position == 10
        stream.push(fakes.signal(6, 6), first=6)


def test_a_gap_is_refused(stream):
    with pytest.raises(ReleaseError, match="at most the next step, 10, got 11: a gap"):
        stream.push(fakes.signal(11, 1), first=11)


def test_no_steps_change_nothing(stream, folder):
    before = (fakes.beside(folder) / "witness.json").read_bytes()
    for first in (None, 10, 3, 0):
        result = stream.push(np.zeros((2, 0), np.int64), first=first)
        assert (result.privatized.shape, result.estimate.shape) == ((2, 0), (2, 0))
    assert stream.position == 10
    assert (fakes.beside(folder) / "witness.json").read_bytes() == before


# --- what is refused before anything happens ------------------------------------------------------


@pytest.mark.parametrize(
    ("chunk", "options"),
    [
        (np.zeros((3, 2), np.int64), {}),
        (np.zeros(2, np.int64), {}),
        (np.zeros((2, 2)), {}),
        ([[1], [2]], {}),
        (np.zeros((2, 1), np.int64), {"first": -1}),
        (np.zeros((2, 1), np.int64), {"first": 1.0}),
        (np.zeros((2, 1), np.int64), {"first": 2**62}),
        (np.broadcast_to(np.int64(0), (2, MAX_SAMPLES)), {}),
    ],
)
def test_types_shapes_and_numbers_are_checked_first(folder, chunk, options):
    noise = fakes.Noise()
    with fakes.stream_in(folder, noise=noise) as stream:
        with pytest.raises(ValueError, match=r"chunk must|first must|at most"):
            stream.push(chunk, **options)
        assert (stream.position, noise.drawn, "open" in repr(stream)) == (0, [], True)


def test_noise_is_ready_before_values_are_looked_at(folder):
    calls = []

    class NotedInputs(Inputs):
        def integers(self, u):
            calls.append("integers")
            return super().integers(u)

    class NotedNoise(fakes.Noise):
        def ready(self, n):
            calls.append(f"ready {n}")
            super().ready(n)

        def take(self, n):
            calls.append(f"take {n}")
            return super().take(n)

    plan = fakes.Plan(inputs=NotedInputs(0, 9, centre=4, n_streams=2))
    with fakes.stream_in(folder, plan=plan, noise=NotedNoise()) as stream:
        stream.push(fakes.signal(0, 3))
        stream.push(fakes.signal(2, 3), first=2)
    assert calls == ["ready 6", "integers", "take 6", "ready 4", "integers", "take 4"]


def test_no_value_is_refused(folder):
    inputs = Inputs(-1, 1, n_streams=2, missing=0)
    values = np.array([np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324])
    with fakes.stream_in(folder, plan=fakes.Plan(inputs=inputs)) as stream:
        stream.push(np.stack([values, values[::-1]]))
        assert stream.push(np.array([[2**63 - 1], [-(2**63)]])).first == 6
        assert stream.position == 7


# --- objects --------------------------------------------------------------------------------------


def test_an_interrupted_stream_is_refused_until_it_is_opened_again(stream, folder, monkeypatch):
    def interrupt(self, v, end=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fakes.Receiver, "push", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.push(fakes.signal(10, 1))
    for call in (lambda: stream.push(fakes.signal(10, 1)), lambda: stream.read(0, 1), stream.close):
        with pytest.raises(ReleaseError, match="interrupted while it published: open it again"):
            call()
    assert repr(stream) == f"<Stream in {str(folder)!r}: next step 10, interrupted>"
    with fakes.stream_in(folder) as again:
        assert again.push(fakes.signal(10, 1)).first == 10


def while_it_is_read(patch):
    def interrupt(self, *args):
        raise KeyboardInterrupt

    patch.setattr(ReleaseStore, "read", interrupt)


def at_the_end(patch):
    turn = Stream._take_turn

    @contextlib.contextmanager
    def interrupt(self):
        with turn(self):
            yield
        raise KeyboardInterrupt

    patch.setattr(Stream, "_take_turn", interrupt)


@pytest.mark.parametrize("interrupted", [while_it_is_read, at_the_end])
def test_what_was_stored_and_not_returned_is_not_published_again(stream, folder, monkeypatch, interrupted):
    """Ctrl-C behind the commit: whoever tries again with the same values must not publish them as further steps."""
    with monkeypatch.context() as patch:
        interrupted(patch)
        with pytest.raises(KeyboardInterrupt):
            stream.push(fakes.signal(10, 1))
    with pytest.raises(ReleaseError, match="interrupted while it published: open it again"):
        stream.push(fakes.signal(10, 1))
    with fakes.stream_in(folder) as again:
        assert again.position == 11


@pytest.mark.parametrize("call", [lambda s: s.push(fakes.signal(10, 1)), lambda s: s.close(), lambda s: s.read(0, 1)])
def test_a_call_in_the_middle_of_another_is_refused(folder, call):
    """As by the handler of a signal, which runs in the same thread."""
    refusals = []

    class Interrupting(Inputs):
        def integers(self, u):
            if stream.position:
                with pytest.raises(ReleaseError, match="in the middle of another call"):
                    call(stream)
                refusals.append(1)
            return super().integers(u)

    with fakes.stream_in(folder, plan=fakes.Plan(inputs=Interrupting(0, 9, centre=4, n_streams=2))) as stream:
        stream.push(fakes.signal(0, 10))
        assert stream.push(fakes.signal(10, 2)).first == 10
        assert (stream.position, refusals) == (12, [1])
        call(stream)


def test_a_suspended_stream_is_refused(stream):
    stream.suspend()
    stream.suspend()
    with pytest.raises(ReleaseError, match=r"was closed.*open it again"):
        stream.push(fakes.signal(10, 1))


def test_there_is_one(stream):
    for function in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="publishes each step once"):
            function(stream)


def test_nothing_private_is_shown(stream, folder):
    assert repr(stream) == f"<Stream in {str(folder)!r}: next step 10, open>"


def test_threads_take_turns(publisher):
    with publisher.open() as stream:
        results = []

        def push():
            for _ in range(5):
                with lock:  # the next steps of the signal; reading goes on beside it
                    results.append(stream.push(fakes.signal(stream.position, 2)))
                assert stream.read(0, 2).first == 0

        lock = threading.Lock()
        threads = [threading.Thread(target=push) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(x.first for x in results) == list(range(0, 40, 2))
    publisher.check()
