"""Releases of one store for different persons: what is stated holds for all that any of them could have done."""

import dataclasses
import itertools
import json
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

import dpfast as dp
from dpfast.releases.integer import noise_calibration

AVERAGE = dp.Filter(np.ones(12) / 12)
MODEL = dp.ARMA([1], [1, -0.5], mean=2.0)


def gaussian_epsilon(mu, delta):
    """Of Balle and Wang (2018), by scipy alone."""

    def excess(epsilon):
        x = epsilon / mu - mu / 2
        return stats.norm.sf(x) - math.exp(epsilon) * stats.norm.sf(x + mu) - delta

    return optimize.brentq(excess, 0, 50)


def moved(plan, events):
    """Squared shift of all of v in standard deviations, of changes by so many units at steps of one stream."""
    x = np.zeros(max(events) + 1)
    for step, change in events.items():
        x[step] = change
    return float((np.convolve(plan.taps, x) ** 2).sum()) / plan.sigma.std**2


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_a_person_with_one_event_in_each_of_two_releases(tmp_path):
    """Of m = 1 for steps 0 to 99 and m = 2 for 100 to 199, each of epsilon 1 alone: 1.1375 for one event in each."""
    inputs, u = dp.Inputs(0, 30), np.full((1, 100), 3)
    plans = [
        dp.exact(dp.lmmse(AVERAGE, dp.Privacy(1, 1e-6, max_events=m), MODEL, lag=5, tolerance=0.01), inputs)
        for m in (1, 2)
    ]
    one, two = (dp.release(plan, u, tmp_path / "store", first=100 * i).guarantee for i, plan in enumerate(plans))
    assert one.epsilon <= 1
    each = gaussian_epsilon(math.sqrt(sum(moved(plan, {50: 1}) for plan in plans)), 1e-6)
    assert each == pytest.approx(1.1375, abs=2e-3)
    both_in_the_first = gaussian_epsilon(math.sqrt(moved(plans[0], {50: 1, 51: 1})), 1e-6)
    assert both_in_the_first > 2
    all_of_it = gaussian_epsilon(math.sqrt(sum(moved(plan, {50: 1, 51: 1}) for plan in plans)), 1e-6)
    assert max(each, both_in_the_first) < all_of_it <= two.epsilon < 1.02 * all_of_it
    # which order they come in does not matter
    other = [dp.release(plan, u, tmp_path / "other", first=100 * i).guarantee for i, plan in enumerate(plans[::-1])]
    assert other[1].epsilon == two.epsilon
    text = (tmp_path / "store-published" / "guarantee.txt").read_text(encoding="utf-8")
    assert text == f"Release 1, 100 steps from 0 on:\nRelease 2, 100 steps from 100 on:\n\n{two}\n"
    assert "the at most 2 events of one person" in two.sentence
    assert "with 1 other release of the store, at any steps" in two.items()["composed"]
    assert not any("events at other steps" in line for line in two.not_covered)


def loss(moves, sigma):
    """The law of s·n for discrete Gaussian n, as probabilities of integers from -len // 2 on; s are the moves."""
    reach = int(10 * sigma)
    n = np.arange(-reach, reach + 1)
    noise = np.exp(-(n**2) / (2 * sigma**2))
    law = np.ones(1)
    for move in moves:
        spread = np.zeros(2 * reach * abs(move) + 1)
        spread[:: abs(move)] = noise / noise.sum()
        law = np.convolve(law, spread)
    return law


def exact_delta(epsilon, releases):
    """The least delta of releases (moves, sigma), from the law of the loss Σ (2 s·n + |s|²)/2σ²."""
    total, p = np.zeros(1), np.ones(1)
    for moves, sigma in releases:
        if not moves:
            continue
        law = loss(moves, sigma)
        n = np.flatnonzero(law > 1e-13)  # what is left out weighs less than 1e-9
        values, law = (n - len(law) // 2 + sum(x * x for x in moves) / 2) / sigma**2, law[n]
        total, p = (total[:, None] + values).ravel(), (p[:, None] * law).ravel()
    return float((p * np.maximum(0, -np.expm1(epsilon - total))).sum())


def contributions(plan, n_steps, most, separation, change, streams):
    """The moves of v by every person: up to `most` events a stream, so far apart, in so many streams, of any sign."""
    rows = {()}
    for m in range(1, most + 1):
        for times in itertools.combinations(range(n_steps), m):
            if all(b - a >= separation for a, b in itertools.pairwise(times)):
                for signs in itertools.product((-change, change), repeat=m):
                    x = np.zeros(n_steps, int)
                    x[list(times)] = signs
                    rows.add(tuple(sorted(abs(y) for y in np.convolve(plan.taps, x).tolist() if y)))
    largest = sorted(rows, key=lambda row: -sum(y * y for y in row))[:2]  # more moves further: the worst are enough
    return [sum(x, ()) for x in itertools.product(largest, repeat=streams)]


PERSONS = {
    "events": ({}, {"max_events": 2}),
    "separation": ({"max_events": 2, "min_separation": 3}, {"max_events": 2}),
    "change": ({}, {"max_change": 2}),
    "streams per person": ({}, {"streams_per_person": 2, "n_streams": 2}),
    "streams": ({}, {"n_streams": 2}),
    "all": ({"max_change": 2, "n_streams": 2}, {"max_events": 2, "streams_per_person": 2, "n_streams": 3}),
}
TAPS, STEPS, DELTA = np.array([3, 2]), 4, 0.02


@pytest.mark.parametrize(("one", "two"), PERSONS.values(), ids=PERSONS.keys())
def test_no_person_loses_more_than_is_stated(tmp_path, one, two):
    """All persons with the largest bounds in each release, by exact convolutions of discrete Gaussians."""
    plans = []
    for who in (one, two):
        of_inputs = {name: who[name] for name in ("n_streams", "streams_per_person") if name in who}
        of_privacy = {name: value for name, value in who.items() if name not in of_inputs}
        privacy = dp.Privacy(3, DELTA, **of_privacy)
        design = dp.lmmse(dp.Filter([1, 0.5]), privacy, MODEL, lag=0, prefilter=dp.Filter([1, 0.5]))
        plan = dp.exact(design, dp.Inputs(0, 9, **of_inputs), tolerance=0.9)
        sigma = noise_calibration.find_sigma(privacy, plan.inputs, TAPS)  # few and small: their noise is convolved
        plans.append(dataclasses.replace(plan, taps=TAPS, sigma=sigma))
    for i, plan in enumerate(plans):
        u = np.full((plan.inputs.n_streams, STEPS), 2)
        guarantee = dp.release(plan, u, tmp_path / "store", first=STEPS * i).guarantee
    largest = [max(who.get(name, 1) for who in (one, two)) for name in ("max_events", "max_change")]
    separation = min(who.get("min_separation", 1) for who in (one, two))
    streams = max(who.get("streams_per_person", 1) for who in (one, two))
    found = [
        contributions(plan, STEPS, largest[0], separation, largest[1], min(streams, plan.inputs.n_streams))
        for plan in plans
    ]
    worst = 0.0
    for moves in {tuple(x) for x in itertools.product(*found)}:
        releases = [(x, plan.sigma.std) for x, plan in zip(moves, plans, strict=True)]
        worst = max(worst, exact_delta(guarantee.epsilon, releases))
    assert DELTA / 50 < worst <= DELTA


def test_the_oracle_is_that_of_one_gaussian():
    sigma, moves = 9.0, (3, 4, 1)
    mu = math.sqrt(26) / sigma
    assert exact_delta(1.0, [(moves, sigma)]) == pytest.approx(
        stats.norm.sf(1 / mu - mu / 2) - math.e * stats.norm.sf(1 / mu + mu / 2), rel=0.05
    )


def test_several_events_behind_noise_of_two_kinds_cost_more_than_behind_either(tmp_path):
    """Of two events one is behind Gaussian noise and one behind geometric noise: alike persons, and yet more than 1."""
    inputs, u = dp.Inputs(0, 30), np.full((1, 20), 3)
    gaussian = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6, max_events=2))
    geometric = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, max_events=2), noise="geometric")
    one = dp.release(gaussian, u, tmp_path / "store", inputs).guarantee
    two = dp.release(geometric, u, tmp_path / "store", inputs, first=100).guarantee
    assert two.whole
    assert two.epsilon > max(one.epsilon, 1)
    dp.release(gaussian, u, tmp_path / "alike", inputs)
    again = dp.release(gaussian, u, tmp_path / "alike", inputs, first=200).guarantee
    assert not again.whole  # noise of one kind: the events are in one release or the other
    single = tmp_path / "single"  # and one event is behind noise of one kind
    privacy = dp.Privacy(1, 1e-6)
    dp.release(dp.input_perturbation(dp.Filter([1]), privacy), u, single, inputs)
    third = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1), noise="geometric")
    assert not dp.release(third, u, single, inputs, first=100).guarantee.whole


CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
OF_A_DELTA = {
    "blocks": lambda: dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 0.05), CHAIN, noise="canonical"),
    "response": lambda: dp.randomized_response(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 0.05), CHAIN),
    "filter": lambda: dp.zero_forcing(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 0.05)),
}


@pytest.mark.parametrize(("one", "two"), list(itertools.product(OF_A_DELTA, repeat=2)))
def test_the_deltas_of_releases_of_the_same_steps_add_up(tmp_path, one, two):
    """Each tells all with a probability of .05: at a δ of .05 nothing holds for two; at their sum they have an ε."""
    for name in (one, two):
        result = dp.release(OF_A_DELTA[name](), np.array([0, 1] * 10), tmp_path / "s", dp.Inputs(0, 1), compose=True)
    guarantee = result.guarantee
    n_told = (one != "filter") + (two != "filter")
    at_least = 1 - 0.95**n_told + 0.05 * (n_told < 2)
    assert guarantee.delta == pytest.approx(at_least)
    assert 1 < guarantee.epsilon <= 2
    content = json.loads(guarantee.to_json())
    assert (content["epsilon"], content["delta"]) == (guarantee.epsilon, guarantee.delta)
    written = re.search(r", (\S+)\), of all of them together, rounded up; of this one ", guarantee.items()["(ε, δ)"])[1]
    assert Fraction(repr(guarantee.delta)) <= Fraction(written) <= 1.00001 * guarantee.delta
    assert dp.read_release(tmp_path / "s").guarantee == guarantee


@pytest.mark.parametrize("demanded", [(0.1, 0.05), (0.3, 0.1), (1.1, 0.3), (2.0, 0.25)])
@pytest.mark.parametrize("max_events", [1, 3])
@pytest.mark.parametrize("noise", ["response", "canonical"])
def test_what_is_written_is_not_below_the_table(noise, max_events, demanded):
    """Of decimals as they are written: of .05 or .1 the float is above."""
    privacy = dp.Privacy(*demanded, max_events=max_events)
    if noise == "response":
        mechanism = dp.randomized_response(dp.Filter([1, 0.5]), privacy, CHAIN)
    else:
        mechanism = dp.input_perturbation(dp.Filter([1, 0.5]), privacy, noise=noise)
    guarantee = dp.exact(mechanism, dp.Inputs(0, 1), tolerance=0.5).guarantee
    ((epsilon, delta),) = guarantee.loss.approximate
    written = re.match(r"\((\S+), (\S+)\)", guarantee.items()["(ε, δ)"]).groups()
    assert Fraction(written[1]) == Fraction(repr(demanded[1])) >= delta
    assert 0.999999 * demanded[0] <= Fraction(written[0]) <= Fraction(repr(demanded[0]))
    with mpmath.workdps(50):  # what the table has beyond its δ, at the ε that is written
        own, less = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, Fraction(written[0])))
        beyond = (1 - delta) * max(0, -mpmath.expm1(less - own)) / (1 + mpmath.exp(-own))
        assert beyond <= Fraction(written[1]) - delta
    assert f"plus {written[1]} (δ). " in guarantee.sentence


@pytest.mark.parametrize(("max_events", "who"), [(1, "Somebody with 10 events is"), (2, "as 10 such persons is")])
def test_where_nothing_is_proven_of_a_group_the_sentence_says_so(max_events, who):
    privacy = dp.Privacy(1, 0.05, max_events=max_events)
    plan = dp.exact(dp.randomized_response(dp.Filter([0.1], [1, -0.9]), privacy, CHAIN), dp.Inputs(0, 1))
    assert f"{who} not protected: at this δ there is no ε for so many." in plan.guarantee.sentence
    assert json.loads(plan.guarantee.to_json())["groups"]["10"] is None
    assert "; 10 people: ε = ∞" in plan.guarantee.items()["groups"]
    two = plan.guarantee.loss.of_group(2)
    stated = f"2 people: ε = 2 at δ = {math.ceil(float(two.approximate[0][1]) * 10**4) / 10**4}"
    assert plan.guarantee.items()["groups"].startswith(stated)


@pytest.mark.parametrize("one", ["response", "canonical"])
@pytest.mark.parametrize("two", ["response", "canonical", "gaussian"])
def test_what_would_leave_nothing_promised_is_refused_before_it_is_spent(tmp_path, one, two):
    """A table of δ = .3 for one event has none left for ten."""

    def design(kind, max_events):
        privacy = dp.Privacy(1, 0.3, max_events=max_events)
        if kind == "response":
            return dp.randomized_response(dp.Filter([1, 0.5]), privacy, CHAIN)
        return dp.input_perturbation(dp.Filter([1, 0.5]), privacy, noise=kind)

    ledger = dp.Ledger.create(tmp_path / "books" / "l.sqlite", "guests")
    options = {"inputs": dp.Inputs(0, 1), "ledger": ledger}
    dp.release(design(one, 1), np.array([0, 1] * 5), tmp_path / "s", **options)
    with pytest.raises(dp.ReleaseError, match=r"would leave nothing promised: .* here 10 events, the delta of one"):
        dp.release(design(two, 10), np.array([0, 1] * 5), tmp_path / "s", first=10, **options)
    assert len(ledger.lines) == 1
    again = dp.release(design(one, 1), np.array([0, 1] * 5), tmp_path / "s", first=10, **options)
    assert not again.guarantee.whole
