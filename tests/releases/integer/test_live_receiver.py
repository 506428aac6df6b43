"""Receivers behind integers: exact arithmetic, pieces, stored states, refusals."""

import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.releases.integer import live_receiver
from dpfast.releases.integer.live_receiver import LiveReceiver, estimate

UNIT, CENTRE, MEAN, LAG = Fraction(1, 4), 7, 2.0, 3  # centre in units
SHIFT = float(MEAN / UNIT - CENTRE)
TAPS = np.array([16, -9, 4, 3, -1])
TARGET = Filter([1.0, 0.5], [1.0, -0.75])
PREFILTER = Filter(TAPS / float(UNIT))

LINEAR = LinearReceiver(TARGET * Filter([0, 0, 0, 1.0]) * PREFILTER.inverse(), TARGET, MEAN, LAG)
FEEDBACK = DecisionFeedback(
    forward=np.array([0.004, 0.003, -0.001, 0.002]),
    feedback=np.array([0.35, -0.2]),
    levels=np.array([1.0, 2.0, 3.0]),
    probabilities=np.array([0.25, 0.5, 0.25]),
    shrinkage=0.8,
    error_variance=0.3,
    decision="soft",
    target=TARGET,
    mean=MEAN,
    lag=LAG,
)
SMOOTHER = Smoother(Filter([1.0], [1.0, -0.5]), Filter([0.01], [1.0, -0.5]), TARGET, MEAN)
CAUSAL = pytest.mark.parametrize("receiver", [LINEAR, FEEDBACK], ids=["linear", "feedback"])


def integers(n_streams, n, seed=0):
    return np.random.default_rng(seed).integers(-40, 40, size=(n_streams, n))


def published(x):
    """Without noise, by the definition."""
    return np.array([[sum(TAPS[k] * row[t - k] for k in range(min(t + 1, 5))) for t in range(len(row))] for row in x])


def live(receiver, n_streams=2):
    return LiveReceiver(receiver, TAPS, SHIFT, n_streams)


def in_pieces(receiver, v, cuts, restore=False):
    running, estimates = live(receiver, len(v)), []
    for part in np.split(v, sorted(cuts), axis=1):
        if restore:
            state, running = running.state(), live(receiver, len(v))
            running.restore(state)
        estimates.append(running.push(part))
    return np.hstack(estimates)


# --- what is estimated ----------------------------------------------------------------------------


def test_without_noise_zero_forcing_gives_the_target_output_of_the_real_values():
    """From the first step on, in exact rational arithmetic, whatever unit, centre and mean."""
    x, y = integers(2, 30), []
    for row in x:
        u, output = [UNIT * (int(value) + CENTRE) for value in row], []
        for t in range(30):
            before = Fraction(3, 4) * output[-1] if t else 0
            output.append(u[t] + (u[t - 1] / 2 if t else 0) + before)
        y.append([float(value) for value in output])
    late = np.pad(y, [(0, 0), (LAG, 0)])[:, :30]
    np.testing.assert_allclose(in_pieces(LINEAR, published(x), range(30)), late, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(estimate(LINEAR, TAPS, SHIFT, published(x)), late, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("receiver", [LINEAR, FEEDBACK, SMOOTHER])
def test_receivers_get_what_the_prefilter_makes_of_centred_real_values(receiver):
    x = integers(3, 40)
    v = PREFILTER.filter(float(UNIT) * (x + CENTRE) - MEAN).y
    found = estimate(receiver, TAPS, SHIFT, published(x))
    np.testing.assert_allclose(found, receiver.estimate(v)[0], rtol=1e-10, atol=1e-10)


def test_large_integers_are_taken_as_they_are():
    receiver = LinearReceiver(Filter([2.0**-60]), Filter([1.0]), 0.0, 0)
    v = np.array([[2**62, -(2**62), 2**60]])
    assert LiveReceiver(receiver, np.array([1]), 0.0, 1).push(v).tolist() == [[4.0, -4.0, 1.0]]


# --- pieces ---------------------------------------------------------------------------------------


@CAUSAL
@pytest.mark.parametrize("restore", [False, True])
@given(cuts=st.lists(st.integers(0, 25), max_size=10), n_streams=st.integers(1, 20), n=st.integers(0, 25))
def test_any_pieces_give_the_bits_of_the_whole(receiver, restore, cuts, n_streams, n):
    v = 50 * integers(n_streams, n)
    whole = estimate(receiver, TAPS, SHIFT, v)
    assert in_pieces(receiver, v, [min(cut, n) for cut in cuts], restore).tobytes() == whole.tobytes()


@CAUSAL
def test_a_state_is_that_of_the_same_steps_however_they_came(receiver):
    v, one, many = integers(2, 12), live(receiver), live(receiver)
    one.push(v)
    for t in range(12):
        many.push(v[:, t : t + 1])
    assert one.state() == many.state()
    assert one.position == many.position == 12


# --- stored states --------------------------------------------------------------------------------

GO_ON = """
import pickle, sys
for running, state, v in pickle.load(sys.stdin.buffer):
    running.restore(state)
    print(running.push(v).tobytes().hex())
"""


def test_another_process_goes_on_with_the_same_bits(request):
    given, expected, v = [], [], integers(2, 30)
    for receiver in (LINEAR, FEEDBACK):
        running = live(receiver)
        running.push(v[:, :11])
        given.append((live(receiver), running.state(), v[:, 11:]))
        expected.append(running.push(v[:, 11:]).tobytes().hex())
    command = [sys.executable, "-c", GO_ON]
    said = subprocess.run(
        command, input=pickle.dumps(given), stdout=subprocess.PIPE, check=True, cwd=request.config.rootpath
    )
    assert said.stdout.decode().split() == expected


def test_the_layout_is_fixed():
    """Format, version, streams, numbers, position; the steps seen to the lag; then for each stream its past inputs."""
    running = LiveReceiver(LinearReceiver(Filter([1.0, 0.5]), TARGET, 0.0, LAG), np.array([1]), 0.0, 2)
    running.push(np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, -2]]))
    header = b"dplr" + b"".join(number.to_bytes(size, "little") for number, size in ((2, 4), (2, 8), (2, 8), (5, 8)))
    assert running.state() == header + np.array([3.0, 1.0, -2.0], "<f8").tobytes()


def test_what_the_mean_comes_to_is_stored_once():
    """Outputs of the target that follow from the mean alone are the same for all streams."""
    target = Filter([1.0], [1.0, -0.5])
    running = LiveReceiver(LinearReceiver(Filter([1.0, 0.5]), target, 2.0, 0), np.array([1]), 2.0, 3)
    running.push(np.array([[2, 3], [2, 4], [2, 5]]))
    of_mean = 0.5 * (2 + 0.5 * 2)  # of the next output: half of the one before
    assert np.frombuffer(running.state()[32:], "<f8").tolist() == [of_mean, 0, 0, 1, 2, 3]  # a section has two states


def test_streams_that_are_worked_on_in_several_turns_have_the_bits_of_one(monkeypatch):
    v, whole = integers(7, 12), live(LINEAR, 7)
    expected = whole.push(v).tobytes()
    for numbers in (1, 2 * LINEAR.n_states, 6 * LINEAR.n_states):
        monkeypatch.setattr(live_receiver, "_NUMBERS", numbers)
        running = live(LINEAR, 7)
        assert running.push(v).tobytes() == expected
        assert running.state() == whole.state()


@CAUSAL
def test_what_is_no_state_is_refused_and_changes_nothing(receiver):
    running = live(receiver)
    running.push(integers(2, 5))
    good, n = running.state(), receiver.n_states
    position, seen = slice(24, 32), 24 + 8 * (n - len(range(n)[receiver.own_states]))

    def with_bytes(at, new):
        return good[: at.start] + new + good[at.stop :]

    wrong = {
        "empty": b"",
        "short": good[:20],
        "no numbers": good[:32],
        "shorter": good[:-8],
        "a byte less": good[:-1],
        "longer": good + b"\0",
        "format": with_bytes(slice(0, 4), b"PK\3\4"),
        "version": with_bytes(slice(4, 8), (1).to_bytes(4, "little")),
        "streams": live(receiver, 3).state(),
        "swapped": with_bytes(slice(8, 24), n.to_bytes(8, "little") + (2).to_bytes(8, "little")),
        "position": with_bytes(position, (2).to_bytes(8, "little")),
        "no number": with_bytes(slice(32, 40), np.array([np.nan], "<f8").tobytes()),
        "infinite": with_bytes(slice(32, 40), np.array([np.inf], "<f8").tobytes()),
        "seen": with_bytes(slice(seen, seen + 8), np.array([2.0], "<f8").tobytes()),
    }
    for state in wrong.values():
        with pytest.raises(ValueError, match="state must be"):
            running.restore(state)
        assert running.state() == good
    for kind in (None, good.hex(), bytearray(good)):
        with pytest.raises(ValueError, match=r"state must be bytes that \.state\(\) gave"):
            running.restore(kind)


def test_a_state_of_another_receiver_is_refused():
    with pytest.raises(ValueError, match="was it of another mechanism"):
        live(LINEAR).restore(live(FEEDBACK).state())


@CAUSAL
def test_a_position_of_any_size_goes_on(receiver):
    running, v = live(receiver), integers(2, 4)
    running.push(integers(2, 9))
    state = running.state()
    running.restore(state[:24] + (2**64 - 5).to_bytes(8, "little") + state[32:])
    late = running.push(v)
    running.restore(state)
    assert np.array_equal(late, running.push(v))


# --- refusals -------------------------------------------------------------------------------------


def test_a_smoother_cannot_run_live():
    with pytest.raises(ValueError, match=r"receiver must be .* \(no smoother\)"):
        live(SMOOTHER)


@pytest.mark.parametrize(
    "taps", [TAPS.astype(float), TAPS.tolist(), TAPS[None], TAPS[:0], TAPS.astype(np.int32), np.array([2**62, 1])]
)
def test_taps_are_integers(taps):
    with pytest.raises(ValueError, match="taps must be an array of int64"):
        LiveReceiver(LINEAR, taps, 0.0, 1)
    with pytest.raises(ValueError, match="taps must be an array of int64"):
        estimate(LINEAR, taps, 0.0, integers(1, 3))


@pytest.mark.parametrize("shift", [np.nan, np.inf, 1e60, "3"])
def test_the_shift_is_a_number(shift):
    with pytest.raises(ValueError, match="shift must be a number"):
        LiveReceiver(LINEAR, TAPS, shift, 1)


@pytest.mark.parametrize("n_streams", [0, -1, 1.0, True])
def test_there_is_at_least_one_stream(n_streams):
    with pytest.raises(ValueError, match="n_streams must be an integer, at least 1"):
        LiveReceiver(LINEAR, TAPS, 0.0, n_streams)


@pytest.mark.parametrize("v", [integers(2, 3).astype(float), integers(2, 3)[0], integers(2, 3).tolist(), None, 3])
def test_only_integers_are_taken(v):
    running = live(LINEAR)
    with pytest.raises(ValueError, match=r"v must be an array of int64 \(n_streams, n\)"):
        running.push(v)
    with pytest.raises(ValueError, match=r"v must be an array of int64 \(n_streams, n\)"):
        estimate(LINEAR, TAPS, 0.0, v)
    assert running.position == 0


@pytest.mark.parametrize("n_streams", [0, 1, 3])
def test_the_number_of_streams_is_fixed(n_streams):
    with pytest.raises(ValueError, match=rf"v must have 2 streams in rows, got shape \({n_streams}, 4\)"):
        live(LINEAR).push(integers(n_streams, 4))
