"""Steps that are delivered again: compared while their inputs are stored, and read back as long as they are kept."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from helpers import fakes
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import ReleaseError

COUNTS = dp.IndependentLevels(range(10), [0.1] * 10)
INPUTS = dp.Inputs(0, 9, n_streams=2)
PLANS = {
    "taps": dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)),
    "no memory": dp.input_perturbation(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)),
    "blocks": dp.block_sums(dp.Filter([1], [1, -0.9]), dp.Privacy(1), COUNTS, length=4, lag=1),
}


@pytest.fixture(scope="module", params=PLANS)
def plan(request):
    return dp.exact(PLANS[request.param], INPUTS, tolerance=0.1)


def stored(stream):
    """The steps whose inputs are in the store of a stream."""
    rows = stream._store._arbiter._connection.execute("SELECT step FROM inputs ORDER BY step").fetchall()
    return [step for (step,) in rows]


def other(u):
    return 9 - u


@pytest.mark.parametrize("replay_steps", [0, 1, 7, 50])
def test_steps_are_compared_as_long_as_declared_and_read_back_then(tmp_path, plan, replay_steps):
    """Each step of 30 alone, in the same stream and in one that is opened again."""
    u = np.clip(fakes.signal(0, 30), 0, 9)
    with dp.open_stream(plan, tmp_path / "store", replay_steps=replay_steps) as stream:
        v = stream.push(u).privatized
    for _ in range(2):
        with dp.open_stream(plan, tmp_path / "store", replay_steps=replay_steps) as stream:
            compared = max(plan.needed(30), min(30, replay_steps))
            assert stored(stream) == list(range(30 - compared, 30))
            for t in range(30):
                assert (stream.push(u[:, t : t + 1], first=t).privatized == v[..., t : t + 1]).all()
                if t < 30 - compared:
                    assert (stream.push(other(u[:, t : t + 1]), first=t).privatized == v[..., t : t + 1]).all()
                else:
                    with pytest.raises(ReleaseError, match=f"steps {t} to {t} are published, with other inputs"):
                        stream.push(other(u[:, t : t + 1]), first=t)
            assert stream.position == 30


PLAN = dp.exact(PLANS["taps"], INPUTS, tolerance=0.1)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_engine_gets_one_value_for_each_step(tmp_path_factory, data):
    """Chunks of any length from any step on, with pauses; other depths at every opening."""
    u, published = np.clip(fakes.signal(0, 60), 0, 9), {}
    store = tmp_path_factory.mktemp("replay") / "store"
    for _ in range(data.draw(st.integers(1, 3))):
        with dp.open_stream(PLAN, store, replay_steps=data.draw(st.integers(0, 9))) as stream:
            for _ in range(data.draw(st.integers(1, 4))):
                first = data.draw(st.integers(0, stream.position))
                n = data.draw(st.integers(0, min(12, 60 - first)))
                result = stream.push(u[:, first : first + n], first=first)
                for i in range(n):
                    values = result.privatized[:, i].tolist(), result.estimate[:, i].tolist()
                    assert published.setdefault(first + i, values) == values
    v = np.array([published[t][0] for t in range(len(published))]).reshape(-1, 2).T
    assert dp.read_release(store).privatized.tolist() == v.tolist()


def test_a_chunk_may_begin_before_what_is_compared_and_end_behind_what_is_published(tmp_path):
    plan, u = fakes.Plan(), fakes.signal(0, 20)
    with fakes.stream_in(tmp_path / "store", plan=plan) as stream:
        v = stream.push(u[:, :12]).privatized
        chunk = u[:, 2:].copy()
        chunk[:, : 12 - fakes.MEMORY - 2] += 3  # not looked at
        again = stream.push(chunk, first=2).privatized
        assert again[:, :10].tolist() == v[:, 2:].tolist()
        assert stream.position == 20
    with fakes.stream_in(tmp_path / "store", plan=plan) as stream:
        chunk = u[:, 12:].copy()
        chunk[0, -1] += 1 if chunk[0, -1] < 5 else -1
        with pytest.raises(ReleaseError, match="steps 14 to 19 are published, with other inputs"):
            stream.push(chunk, first=12)


def test_the_depth_may_change_at_every_opening(tmp_path, plan):
    u = np.clip(fakes.signal(0, 40), 0, 9)
    for first, depth in ((0, 3), (10, 8), (20, 25), (30, 0)):
        with dp.open_stream(plan, tmp_path / "store", replay_steps=depth) as stream:
            stream.push(u[:, first : first + 10])
            known = stored(stream)
        assert known == list(range(40))[first + 10 - len(known) : first + 10]
        assert len(known) == max(plan.needed(first + 10), min(depth, {20: 18}.get(first, first + 10)))


def test_behind_what_is_kept_nothing_is_published_and_nothing_read(tmp_path):
    plan, u = dp.exact(PLANS["taps"], INPUTS, tolerance=0.1), np.clip(fakes.signal(0, 410), 0, 9)
    with dp.open_stream(plan, tmp_path / "store", replay_steps=20, keep_steps=60) as stream:
        for t in range(0, 400, 10):
            stream.push(u[:, t : t + 10])
        kept = stream._steps.first
        assert 0 < kept <= 400 - 60
        for first, end in ((0, 10), (kept - 1, 400), (kept - 1, 410), (0, 410)):
            with pytest.raises(ReleaseError, match=f"first must be at least {kept}.*not kept any more"):
                stream.push(u[:, first:end], first=first)
        assert stream.position == 400
        assert stream.push(other(u[:, kept : kept + 5]), first=kept).privatized.shape == (2, 5)


def test_a_stream_that_is_over_is_read_back(tmp_path, plan):
    u = np.clip(fakes.signal(0, 20), 0, 9)
    with dp.open_stream(plan, tmp_path / "store", replay_steps=5) as stream:
        v = stream.push(u).privatized
        stream.close()
    with dp.open_stream(plan, tmp_path / "store", replay_steps=5) as stream:
        assert (stream.push(u[:, 12:], first=12).privatized == v[..., 12:]).all()
        assert stored(stream) == []
        for chunk, first in ((u[:, 12:], 13), (u[:, :1], None), (u[:, :1], 20)):
            with pytest.raises(ReleaseError, match=r"is over at step|first must be at most"):
                stream.push(chunk, first=first)


@pytest.mark.parametrize(
    "change", ["UPDATE inputs SET x = x || x'00' WHERE step = 17", "DELETE FROM inputs WHERE step = 17"]
)
def test_inputs_that_are_damaged_are_no_other_inputs(tmp_path, change):
    plan, u = dp.exact(PLANS["no memory"], INPUTS, tolerance=0.1), np.clip(fakes.signal(0, 20), 0, 9)
    with dp.open_stream(plan, tmp_path / "store", replay_steps=9) as stream:
        stream.push(u)
    with closing(sqlite3.connect(tmp_path / "store" / "store.sqlite")) as connection, connection:
        connection.execute(change)
    with pytest.raises(ReleaseError, match="is damaged"):
        dp.open_stream(plan, tmp_path / "store", replay_steps=9)


def test_less_must_not_be_kept_than_is_answered(tmp_path):
    with pytest.raises(ValueError, match=r"keep_steps must be at least replay_steps \(50\).*got 49"):
        dp.open_stream(PLANS["taps"], tmp_path / "store", INPUTS, keep_steps=49, replay_steps=50)
    for depth in (-1, 1.5, None, "all"):
        with pytest.raises(ValueError, match="replay_steps must be"):
            dp.open_stream(PLANS["taps"], tmp_path / "store", INPUTS, replay_steps=depth)
    assert not (tmp_path / "store").exists()


# --- persons ---------------------------------------------------------------------------------------


def events(log, first, n):
    """Events (step, stream, person) as a table of n steps from the first on."""
    inside = [x for x in log if first <= x[0] < first + n]
    steps, streams, persons = ([x[i] for x in inside] for i in range(3))
    return dp.Events(step=[t - first for t in steps], stream=streams, person=persons, n_steps=n, n_streams=2)


def person_plan():
    privacy = dp.Privacy(2, 1e-6, max_events=1)
    return dp.exact(
        dp.input_perturbation(dp.Filter([1], [1, -0.5]), privacy),
        dp.Inputs(0, 50, n_streams=2, streams_per_person=2),
        tolerance=0.1,
    )


LOG = [(t, t % 2, name) for t in range(12) for name in ("ada", "bob", f"guest {t}")]


def test_persons_are_compared_in_their_span_and_read_back_behind_it(tmp_path):
    """Spans of 4 steps: at step 10 the third is running, and whoever was kept before is forgotten."""
    persons = dp.Persons(span=4)
    with dp.open_stream(person_plan(), tmp_path / "store", persons=persons, replay_steps=50) as stream:
        v = np.concatenate([stream.push(events(LOG, t, 2)).privatized for t in range(0, 10, 2)], axis=1)
    wrong = [(t, stream, f"nobody {t}") for t, stream, _ in LOG]
    with dp.open_stream(person_plan(), tmp_path / "store", persons=persons, replay_steps=50) as stream:
        assert (stream.push(events(LOG, 0, 10), first=0).privatized == v).all()
        assert (stream.push(events(wrong, 0, 8), first=0).privatized == v[:, :8]).all()
        with pytest.raises(ReleaseError, match="steps 8 to 9 are published, with other inputs"):
            stream.push(events(wrong, 0, 10), first=0)
        assert stream.position == 10
        again = stream.push(events(LOG, 3, 9), first=3).privatized
        assert (again[:, :7] == v[:, 3:]).all()
        kept = {(stream, step) for _, stream, step in stream._store.persons().kept}
    assert kept == {(t % 2, t) for t in range(8, 12)}


def test_events_behind_some_steps_are_those_of_the_rest():
    whole = events(LOG, 0, 12)
    for n in (0, 1, 5, 12):
        rest = whole.behind(n)
        assert rest.shape == (2, 12 - n)
        shown = [(t + n, stream, person.decode()) for t, stream, person in rest.in_order()[1]]
        assert shown == [x for x in LOG if x[0] >= n]
        rows, _ = rest.in_order()
        assert rest.sum_rows(rows, 1).tolist() == whole.sum_rows(whole.in_order()[0], 1)[:, n:].tolist()
    assert json.dumps(repr(whole.behind(3))) == '"<Events over 9 steps, 2 streams>"'
