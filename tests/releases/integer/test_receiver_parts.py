"""Receivers in parts, whose states are stored by turns: estimates are those of one receiver on the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.releases.integer import receiver_parts
from dpfast.releases.integer.receiver_parts import ReceiverParts

INPUTS = dp.Inputs(0, 2, n_streams=7)
COUNTS = dp.IndependentLevels([0, 1, 2], [0.25, 0.5, 0.25])
PLANS = {
    "taps": dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), INPUTS),
    "blocks": dp.exact(dp.block_sums(dp.Filter([1], [1, -0.9]), dp.Privacy(1), COUNTS, length=3, lag=1), INPUTS),
}
N = 60


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(receiver_parts, "_STREAMS", 2)
    monkeypatch.setattr(receiver_parts, "_VALUES_AT_ONCE", 4 * 7)


def published(plan):
    shape = (7, N) if plan.per_step == 1 else (7, plan.per_step, N)
    return np.random.default_rng(1).integers(-50, 50, shape) * plan.released(0, N)


@pytest.mark.parametrize("name", PLANS)
@given(cuts=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=25))
def test_stored_states_and_v_since_then_are_enough(name, cuts):
    plan = PLANS[name]
    v, whole = published(plan), plan.estimate(published(plan))
    running, stored, position = ReceiverParts(plan), {}, 0
    for n, restart in cuts:
        n = min(n, N - position)
        found = running.push(v[..., position : position + n])
        assert found.tobytes() == np.ascontiguousarray(whole[:, position : position + n]).tobytes()
        position += n
        states = running.next_states(n)
        assert len(states) == min(max(1, n), 3)
        stored |= {x.part: x for x in states}
        assert running.needed_from == min(stored[i].position if i in stored else 0 for i in range(3))
        if restart:
            running = ReceiverParts(plan)
            running.restore(list(stored.values()), position, lambda first, n: v[..., first : first + n])


def test_no_more_is_read_than_since_the_oldest_state(monkeypatch):
    plan, read = PLANS["taps"], []
    v, running, stored = published(plan), ReceiverParts(plan), {}
    for t in range(N):
        running.push(v[:, t : t + 1])
        stored |= {x.part: x for x in running.next_states(1)}
    ReceiverParts(plan).restore(
        list(stored.values()), N, lambda first, n: read.append((first, n)) or v[:, first : first + n]
    )
    assert read == [(N - 2, 2)]


def test_few_streams_are_one_part(monkeypatch):
    monkeypatch.setattr(receiver_parts, "_STREAMS", 2**14)
    running = ReceiverParts(PLANS["taps"])
    running.push(published(PLANS["taps"]))
    ((part, position, _),) = running.next_states(N)
    assert (part, position) == (0, N)


@pytest.mark.parametrize(
    "change",
    [{"part": 3}, {"position": N + 1}, {"position": N - 1}, {"state": b""}],
    ids=["a part", "a later step", "another step", "a state"],
)
def test_other_states_are_refused(change):
    plan = PLANS["taps"]
    running, v = ReceiverParts(plan), published(plan)
    running.push(v)
    state, *_ = running.next_states(1)
    with pytest.raises(ValueError, match="state"):
        ReceiverParts(plan).restore([state._replace(**change)], N, lambda first, n: v[:, first : first + n])
