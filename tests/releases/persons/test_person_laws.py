"""What a release per person guarantees, by brute force: the laws of what is published with a person and without."""

import functools
import math
import random

import numpy as np
import pytest

import dpfast as dp
from dpfast.privacy.composition import Loss
from dpfast.releases.composed_releases import compose_guarantee
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.persons.protection import bound_afresh

N_STEPS, N_STREAMS, M, B, K = 6, 2, 2, 2, 2
DELTA = 1e-4


@functools.cache
def planned(memory):
    privacy = dp.Privacy(1, DELTA, max_events=M, min_separation=B)
    target = dp.Filter([1], [1, -0.4])
    design = dp.zero_forcing if memory else dp.input_perturbation
    inputs = dp.Inputs(0, 9, n_streams=N_STREAMS, streams_per_person=K)
    return dp.exact(design(target, privacy), inputs, tolerance=0.02 if memory else 0.5)


def stated(plan, span):
    """The guarantee of a release of all steps."""
    bounds = PersonBounds.of(plan.mechanism.privacy, plan.inputs, span)
    return bounds, compose_guarantee(plan, [], [], (), PersonSpans.of(bounds, plan.memory, 0, N_STEPS))


def kept(bounds, log):
    table = dp.Events(
        step=[x[0] for x in log],
        stream=[x[1] for x in log],
        person=[x[2] for x in log],
        n_steps=N_STEPS,
        n_streams=N_STREAMS,
    )
    return bound_afresh(table, 0, bounds, 1)[0]


def moved(plan, difference):
    """By how much a difference of inputs moves what is published, number by number."""
    taps = plan.taps.tolist()
    result = []
    for row in difference.tolist():
        x = row + [0] * len(taps)  # more steps than any release adds
        result += [sum(g * x[t - i] for i, g in enumerate(taps) if t >= i) for t in range(len(x))]
    return tuple(sorted(abs(x) for x in result if x))


def noise_law(sigma):
    n = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
    mass = np.exp(-(n**2) / (2 * sigma**2))
    return mass / mass.sum()


@functools.cache
def hockey_stick(moves, sigma, epsilon):
    """δ at ε, of exact discrete Gaussian noise about two points that differ by these moves: the sum over all outputs.

    The ratio of the probabilities depends on the sum of move times noise alone, whose law is that of a convolution.
    """
    law, half = noise_law(sigma), math.ceil(9 * sigma)
    size = 2 ** math.ceil(math.log2(2 * half * sum(moves) + 2))
    transform = np.ones(size // 2 + 1, complex)
    for move in moves:
        spread = np.zeros(size)
        np.add.at(spread, (np.arange(-half, half + 1) * move) % size, law)
        transform *= np.fft.rfft(spread)
    mass = np.fft.irfft(transform, size)
    sums = np.arange(size)
    sums[size // 2 :] -= size
    loss = (2 * sums + sum(x * x for x in moves)) / (2 * sigma**2)
    return float(np.sum(mass * np.maximum(0, -np.expm1(np.minimum(0, epsilon - loss)))))


def spans_of(log, person, span):
    return {0 if span is None else x[0] // span for x in log if x[2] == person}


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("span", [None, 3])
def test_what_is_published_with_a_person_and_without_is_as_close_as_is_stated(memory, span):
    plan, rng = planned(memory), random.Random(3)
    assert (plan.memory > 0) == memory
    bounds, guarantee = stated(plan, span)
    sigma, worst = guarantee.sigma.std, {1: 0.0, 2: 0.0}
    for _ in range(40 if memory else 150):
        log = [(rng.randrange(N_STEPS), rng.randrange(N_STREAMS), rng.choice("abc")) for _ in range(rng.randrange(30))]
        if rng.random() < 0.5:  # in one span alone
            log = [x for x in log if x[0] < 3]
        for person in "abc":
            difference = kept(bounds, log) - kept(bounds, [x for x in log if x[2] != person])
            moves, n_spans = moved(plan, difference), max(1, len(spans_of(log, person, span)))
            if not moves:
                continue
            epsilon = guarantee.epsilon if n_spans == 1 else total(guarantee)
            found = hockey_stick(moves, sigma, epsilon)
            assert found <= DELTA * (1 + 1e-6)
            worst[n_spans] = max(worst[n_spans], found)
    assert worst[1] > 0.2 * DELTA  # it is nearly reached
    if span is not None:
        assert worst[2] > (0 if memory else 0.2 * DELTA)


def total(guarantee):
    """ε over all spans, from the losses that are stated for them."""
    spans = guarantee.persons
    loss = spans.over(guarantee.loss, spans.n_spans)
    assert isinstance(loss, Loss)
    return loss.epsilon(DELTA)


@pytest.mark.parametrize("memory", [True, False])
def test_two_spans_cost_more_than_the_guarantee_of_one(memory):
    """So that the figure for all spans is needed: some log breaks the other."""
    plan = planned(memory)
    bounds, guarantee = stated(plan, 3)
    log = [(t, stream, "a") for t in (0, 2, 3, 5) for stream in range(2)]
    difference = kept(bounds, log)
    assert difference.sum() == 8
    moves = moved(plan, difference)
    assert hockey_stick(moves, guarantee.sigma.std, guarantee.epsilon) > DELTA
    assert hockey_stick(moves, guarantee.sigma.std, total(guarantee)) <= DELTA
