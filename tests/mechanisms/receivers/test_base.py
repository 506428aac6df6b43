"""Receivers piece by piece, as a user meets them: states, threads, refusals; and what every receiver answers."""

import json
import pickle

import numpy as np
import pytest
from helpers import reference
from helpers.equalizers import FEEDBACK, FORWARD

from dpfast import Filter, IndependentLevels
from dpfast._kernels import chain_execute
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.mechanisms.serialization.json_fields import Fields

LAG, MEAN = 3, 0.5
TARGET = Filter([1.0, 0.2], [1.0, -0.9])
LINEAR = LinearReceiver(Filter([1.0, -0.5], [1.0, -0.8]), TARGET, MEAN, LAG)
LEVELS, PROBABILITIES, SHRINKAGE, ERROR = np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.8, 0.3


def equaliser(decision):
    return DecisionFeedback(
        FORWARD, FEEDBACK, LEVELS, PROBABILITIES, SHRINKAGE, ERROR, decision, TARGET, mean=MEAN, lag=LAG
    )


RECEIVERS = {"linear": LINEAR, "sign": equaliser("sign"), "soft": equaliser("soft")}
RECEIVER = pytest.mark.parametrize("receiver", RECEIVERS.values(), ids=RECEIVERS)


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def in_pieces(receiver, v, cuts):
    """Estimates and decisions, one piece of v after the other."""
    state, estimates, decisions = None, [], []
    for part in np.split(v, cuts, axis=1):
        estimate, decided, state = receiver.continued(part, state)
        estimates.append(estimate)
        decisions.append(decided)
    return np.hstack(estimates), None if decisions[0] is None else np.hstack(decisions)


@RECEIVER
@pytest.mark.parametrize("n_streams", [1, 3, 40])
@pytest.mark.parametrize("cuts", [[], [0, 1, 1, 2, 7], range(1, 30)], ids=str)
def test_pieces_give_the_bits_of_the_whole(receiver, n_streams, cuts):
    v = noise(n_streams, 30)
    expected, found = receiver.estimate(v), in_pieces(receiver, v, cuts)
    assert found[0].tobytes() == expected[0].tobytes()
    assert (found[1] is None) == (expected[1] is None)
    assert found[1] is None or found[1].tobytes() == expected[1].tobytes()


def test_a_linear_receiver_in_pieces_is_that_of_the_twin():
    v = noise(2, 30)
    mean = reference.step(TARGET.b, TARGET.a, MEAN, LAG, 30)
    expected = [reference.direct_form([1.0, -0.5], [1.0, -0.8], row) + mean for row in v]
    np.testing.assert_allclose(in_pieces(LINEAR, v, range(1, 30))[0], expected, rtol=1e-12)


def test_decisions_in_pieces_are_those_of_the_twin():
    v, decide = noise(2, 30), reference.sign(LEVELS - MEAN)
    rows = [reference.decision_feedback(FORWARD, FEEDBACK, SHRINKAGE, decide, LAG, row) for row in v]
    expected = np.array(rows) + MEAN * (np.arange(30) >= LAG)
    estimate, decisions = in_pieces(RECEIVERS["sign"], v, range(1, 30))
    np.testing.assert_allclose(decisions, expected, rtol=1e-12)
    np.testing.assert_allclose(estimate, [reference.direct_form(TARGET.b, TARGET.a, x) for x in expected], rtol=1e-12)


@RECEIVER
def test_a_long_piece_takes_threads_and_gives_the_same_bits(monkeypatch, receiver):
    v = noise(40, 50)
    expected = in_pieces(receiver, v, [20])
    monkeypatch.setattr(chain_execute, "_WORTH_A_THREAD", 1)
    monkeypatch.setenv("DPFAST_NUM_THREADS", "3")
    for found, one in zip(in_pieces(receiver, v, [20]), expected, strict=True):
        assert np.array_equal(found, one)  # None too


@RECEIVER
def test_a_state_is_left_as_it_is_and_has_so_many_numbers(receiver):
    _, _, state = receiver.continued(noise(2, 10), None)
    before = state.copy()
    for n in (0, 1, 5):
        _, _, after = receiver.continued(noise(2, n), state)
        assert after.shape == (2, receiver.n_states)
        assert not np.may_share_memory(after, state)
    assert np.array_equal(state, before)


@RECEIVER
@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0)])
def test_pieces_of_nothing(receiver, shape):
    estimate, _, state = receiver.continued(np.empty(shape), None)
    assert estimate.shape == shape
    assert state.shape == (shape[0], receiver.n_states)
    again, _, _ = receiver.continued(np.empty(shape), state)
    assert again.shape == shape


@RECEIVER
def test_what_is_no_state_of_these_streams_is_refused(receiver):
    v = noise(3, 4)
    _, _, state = receiver.continued(v, None)
    for wrong in (state[:2], state[:, 1:], state[0], np.empty((3, 0))):
        with pytest.raises(ValueError, match=rf"state must have the shape \(3, {receiver.n_states}\)"):
            receiver.continued(v, wrong)


@RECEIVER
@pytest.mark.parametrize("seen", [-1.0, 0.5, LAG + 1, np.nan, np.inf, [1, 1, 2]])
def test_a_state_counts_the_samples_that_were_seen(receiver, seen):
    v = noise(3, 2)
    _, _, state = receiver.continued(v, None)
    assert state[:, -1].tolist() == [2.0] * 3
    state[:, -1] = seen
    with pytest.raises(ValueError, match="at most 3, the same for all streams"):
        receiver.continued(v, state)


@RECEIVER
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60])
def test_what_is_no_number_is_refused_by_name(receiver, bad):
    """Else a decision would be made of it."""
    v = noise(3, 2)
    _, _, state = receiver.continued(v, None)
    v[1, 1] = bad
    with pytest.raises(ValueError, match=r"^v must be"):
        receiver.continued(v, state)


@RECEIVER
def test_a_receiver_that_has_run_can_be_pickled(receiver):
    v = noise(2, 5)
    _, _, state = receiver.continued(v, None)
    again = pickle.loads(pickle.dumps(receiver))
    assert np.array_equal(again.continued(v, state)[0], receiver.continued(v, state)[0])


def test_a_smoother_does_not_run_piece_by_piece():
    assert not hasattr(Smoother, "continued")


# --- what every receiver answers ------------------------------------------------------------------

SMOOTHER = Smoother(Filter([1.0, -0.5], [1.0, -0.8]), Filter([0.5], [1.0, -0.6]), TARGET, MEAN)
EVERY = pytest.mark.parametrize("receiver", [*RECEIVERS.values(), SMOOTHER], ids=[*RECEIVERS, "smoother"])


@EVERY
def test_a_scaled_receiver_makes_the_same_estimates_of_what_is_smaller(receiver):
    v = noise(3, 200)
    for scaled, plain in zip(receiver.scaled(4.0).estimate(v / 4.0), receiver.estimate(v), strict=True):
        assert np.array_equal(scaled, plain)  # powers of two do not round; None too


@EVERY
def test_a_receiver_comes_back_from_its_fields(receiver):
    fields = Fields(json.loads(json.dumps(receiver.to_fields())))
    there = type(receiver).from_fields(fields, TARGET)
    fields.end()
    assert there.to_fields() == receiver.to_fields()
    assert type(there) is type(receiver)
    v = noise(2, 30)
    assert there.estimate(v)[0].tobytes() == receiver.estimate(v)[0].tobytes()


def test_receivers_say_what_they_can():
    assert LINEAR.as_linear() is LINEAR.as_causal() is LINEAR
    assert (SMOOTHER.as_linear(), SMOOTHER.as_causal()) == (SMOOTHER, None)
    soft = RECEIVERS["soft"]
    assert (soft.as_linear(), soft.as_causal(), soft.decision_kind) == (None, soft, "soft")
    assert LINEAR.decision_kind is None


def test_only_a_simulation_tells_the_errors_of_decisions():
    soft, model = RECEIVERS["soft"], IndependentLevels(LEVELS, PROBABILITIES)
    assert soft.response(0.0) is None
    assert soft.predicted_errors(TARGET, Filter([1.0]), 1.0, model) is None
    assert soft.worst_errors(TARGET, Filter([1.0]), 1.0, 2.0) is None
    assert soft.step_errors(TARGET, Filter([1.0]), 1.0, model, 5) is None


def test_sizes_in_words():
    assert LINEAR.size_text() == "1 state"
    assert SMOOTHER.size_text() == "1 state, back 1 state"
    assert RECEIVERS["sign"].size_text() == f"{len(FORWARD)} + {len(FEEDBACK)} taps"
