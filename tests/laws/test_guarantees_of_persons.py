"""Persons in the releases of a store, of any noise: with one and without it publishes what is as close as is stated.

Stores are real, with all that is decided in them; only the noise is taken away, so that what differs is what moves it.
"""

import functools
import json
import os
import random

import numpy as np
import pytest
from helpers.loss_laws import delta_of

import dpfast as dp
from dpfast.releases.persons.bounding import Bounding

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET, SLOW = dp.Filter([1.0, 0.5]), dp.Filter([0.1], [1, -0.9])
M, B, K, N_STREAMS, LAST = 2, 2, 2, 3, 12

KINDS = {
    "filter": lambda p: dp.zero_forcing(dp.Filter([1], [1, -0.4]), p(1e-3)),
    "gaussian": lambda p: dp.input_perturbation(TARGET, p(1e-3)),
    "geometric": lambda p: dp.input_perturbation(TARGET, p(0), noise="geometric"),
    "canonical": lambda p: dp.input_perturbation(TARGET, p(0.3), noise="canonical"),
    "response": lambda p: dp.randomized_response(TARGET, p(0.1), CHAIN),
    "blocks": lambda p: dp.block_sums(SLOW, p(0), CHAIN),
    "canonical blocks": lambda p: dp.block_sums(SLOW, p(0.3), CHAIN, noise="canonical"),
}


quiet = pytest.mark.filterwarnings("ignore::dpfast.ModelWarning", "ignore::dpfast.AccuracyWarning")


@functools.cache
def planned(kind):
    def privacy(delta):
        return dp.Privacy(2, delta, max_events=M, min_separation=B)

    inputs = dp.Inputs(0, 1, n_streams=N_STREAMS, streams_per_person=K)
    return dp.exact(KINDS[kind](privacy), inputs, tolerance=0.02)


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """No noise, and a response that tells for certain; no waiting for the disk."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))


def random_store(rng, kinds, span):
    """What is released, one after the other: a kind, steps, and the events that the file of that day has."""
    result, reached = [], 0
    for _ in range(rng.randint(1, 3)):
        # no steps of a span that has ended
        first = rng.randrange(reached if span is None else reached // span * span, LAST - 3)
        n = rng.randint(3, LAST - first)
        reached = first + n - 1 if span is not None else 0
        names = "abc" if rng.random() < 0.5 else "a" * 5 + "bc"
        log = [(rng.randrange(n), rng.randrange(N_STREAMS), rng.choice(names)) for _ in range(rng.randrange(4 * n))]
        result.append((rng.choice(kinds), first, n, log))
    return result


def published(folder, store, without, span):
    """All that the releases of a store publish, and the guarantees that hold at its end."""
    found = []
    for kind, first, n, log in store:
        options = {"first": first, "compose": True, "persons": dp.Persons(span=span)}
        found.append(dp.release(planned(kind), table_of(log, n, without), folder, **options))
    return [x.privatized for x in found], [x.guarantee for x in found]


def table_of(log, n, without):
    kept = [x for x in log if x[2] != without]
    steps, streams, persons = ([x[i] for x in kept] for i in range(3))
    return dp.Events(step=steps, stream=streams, person=persons, n_steps=n, n_streams=N_STREAMS)


def spans_touched(store, person, span):
    return {
        0 if span is None else (first + t) // span for _, first, _, log in store for t, _, who in log if who == person
    }


def moved(store, one, other):
    """By how much two runs differ: the square in units of σ, and each draw."""
    square, draws = 0.0, []
    for (kind, *_), v, w in zip(store, one, other, strict=True):
        plan, difference = planned(kind), (v - w).ravel()
        if plan.kind == "filters":
            square += float(sum(int(x) ** 2 for x in difference)) / plan.sigma.std**2
        else:
            draws += [(plan.laws[0], abs(int(x))) for x in difference if x]
    return square, draws


def check(folder, store, span):
    """The δ that somebody needs, at the best of the guarantees, as a part of what is stated."""
    whole, guarantees = published(folder / "all", store, None, span)
    needed = 0.0
    for person in "abc":
        if len(spans_touched(store, person, span)) != 1:
            continue  # what several spans cost is another statement
        without, _ = published(folder / person, store, person, span)
        square, draws = moved(store, whole, without)
        held = [x for x in guarantees if not any(y.whole for y in guarantees) or x is guarantees[-1]]
        shares = [
            found / x.delta if x.delta else (0.0 if found <= 1e-9 else np.inf)
            for x, found in ((x, delta_of(square, draws, x.epsilon)) for x in held)
        ]
        assert min(shares) <= 1 + 1e-6, (store, person)
        needed = max(needed, min(shares))
    return needed


@pytest.mark.parametrize("kind", KINDS)
@quiet
def test_a_person_in_two_releases_of_one_span_has_what_is_stated_and_needs_some_of_it(tmp_path, kind):
    """One event in each of two streams in the first release, and one in the second; the rest is dropped."""
    log = [(t, stream, "a") for t in (0, 1) for stream in range(N_STREAMS)]
    needed = check(tmp_path, [(kind, 0, 4, log), (kind, 4, 6, log)], None)
    assert needed > 0.1 or not planned(kind).guarantee.delta


@pytest.mark.parametrize(("n", "seed"), [(4, 1), pytest.param(300, 2, marks=pytest.mark.long)])
@quiet
def test_persons_of_any_store_have_what_is_stated(tmp_path, n, seed):
    rng = random.Random(seed)
    for i in range(n):
        span = rng.choice([None, 4, 6])
        kinds = list(KINDS) if rng.random() < 0.5 else [rng.choice(list(KINDS))]
        check(tmp_path / str(i), random_store(rng, kinds, span), span)


@pytest.mark.parametrize("kind", KINDS)
@quiet
def test_a_person_in_all_spans_has_what_is_stated_for_them(tmp_path, kind):
    rng, span = random.Random(3), 4
    log = [(rng.randrange(LAST), rng.randrange(N_STREAMS), rng.choice("aaab")) for _ in range(60)]
    store = [(kind, 0, LAST, log)]
    whole, (guarantee,) = published(tmp_path / "all", store, None, span)
    stated = json.loads(guarantee.to_json())["persons"]["all_spans"]
    assert guarantee.persons.n_spans == 3
    assert guarantee.persons.joined == (planned(kind).memory > 0)
    for person in "ab":
        without, _ = published(tmp_path / person, store, person, span)
        square, draws = moved(store, whole, without)
        epsilon = np.inf if stated["epsilon"] is None else stated["epsilon"]
        assert delta_of(square, draws, epsilon) <= stated["delta"] * (1 + 1e-6) + 1e-9
        alone = delta_of(square, draws, guarantee.epsilon)
        assert alone > 0.9 * guarantee.delta or person == "b"  # the guarantee of one span would hardly do


def streamed(folder, kinds, logs, without):
    """A stream, a batch of some of its steps and of further ones, and the stream again, which is opened once more."""
    live, batch = map(planned, kinds)
    options = {"persons": dp.Persons()}
    with dp.open_stream(live, folder, **options) as stream:
        stream.push(table_of(logs[0], 6, without))
    release = dp.release(batch, table_of(logs[1], 6, without), folder, first=3, compose=True, **options)
    with dp.open_stream(live, folder, **options) as stream:
        stream.push(table_of(logs[2], 6, without))
        v, guarantee = stream.read(0, 12).privatized, stream.guarantee
    return [v, release.privatized], guarantee


@pytest.mark.parametrize("kinds", [("filter", "canonical"), ("blocks", "response"), ("response", "response")])
@quiet
def test_a_person_in_a_stream_and_in_a_batch_of_its_steps_has_what_is_stated(tmp_path, kinds):
    rng = random.Random(4)
    for i in range(3):
        logs = [[(rng.randrange(6), rng.randrange(N_STREAMS), rng.choice("ab")) for _ in range(12)] for _ in range(3)]
        whole, guarantee = streamed(tmp_path / f"{i}all", kinds, logs, None)
        without, _ = streamed(tmp_path / f"{i}without", kinds, logs, "a")
        square, draws = moved([(kind,) for kind in kinds], whole, without)
        assert draws or square
        assert delta_of(square, draws, guarantee.epsilon) <= guarantee.delta * (1 + 1e-6) + 1e-9


@quiet
def test_a_bounding_that_keeps_all_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(Bounding, "_may_keep", lambda *_: True)
    log = [(t, stream, "a") for t in (0, 1, 2) for stream in range(N_STREAMS)]
    with pytest.raises(AssertionError):
        check(tmp_path, [("response", 0, 3, log)], None)
