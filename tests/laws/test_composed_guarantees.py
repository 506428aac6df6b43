"""What the releases of a store promise together, against the exact laws of all that a person may have in them."""

import functools
import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from helpers.loss_laws import true_delta
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.releases.composed_releases import compose_guarantee
from dpfast.releases.integer.integer_taps import squared_sensitivity
from dpfast.releases.persons.person_bounds import PersonBounds
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.store.earlier_releases import Earlier

# --- filters: the worst of all patterns of events -------------------------------------------------


def worst_square(taps, n_events, separation, horizon=9):
    """The largest |g * e|² of so many events of either sign, so far apart, one by one."""
    r = [sum(x * y for x, y in zip(taps, taps[lag:], strict=False)) for lag in range(len(taps))] + [0] * horizon
    worst = 0
    for times in itertools.combinations(range(horizon), n_events):
        if any(b - a < separation for a, b in itertools.pairwise(times)):
            continue
        for signs in itertools.product((1, -1), repeat=n_events - 1):
            e = list(zip(times, (1, *signs), strict=True))
            worst = max(worst, sum(x * y * r[abs(s - t)] for s, x in e for t, y in e))
    return worst


taps_of = st.lists(st.integers(-4, 4), min_size=1, max_size=4).filter(lambda x: x[0] != 0)


@settings(max_examples=100)
@given(st.lists(taps_of, min_size=2, max_size=3), st.integers(1, 4), st.integers(1, 2), st.data())
def test_events_behind_several_filters_cost_no_more_than_all_of_them_behind_the_worst(filters, m, separation, data):
    """Each with noise of its own: Σ Δ²(m_k)/σ_k² by brute force, beside the largest Δ²(m)/σ_k² that is stated."""
    variances = [data.draw(st.integers(1, 20)) for _ in filters]
    stated = [squared_sensitivity(np.array(x), m, separation) for x in filters]
    found = [[worst_square(x, i, separation) if i else 0 for i in range(m + 1)] for x in filters]
    for x, square in zip(found, stated, strict=True):
        assert max(x) <= square
    most = max(Fraction(x, y) for x, y in zip(stated, variances, strict=True))
    for parts in itertools.product(range(m + 1), repeat=len(filters)):
        if sum(parts) <= m:
            assert sum(Fraction(x[i], y) for x, i, y in zip(found, parts, variances, strict=True)) <= most


@given(taps_of, st.integers(1, 3))
def test_the_share_of_an_event_never_falls_with_their_number(taps, separation):
    """Which is what the proof of the test above needs, and holds of what is stated."""
    shares = [Fraction(squared_sensitivity(np.array(taps), m, separation), m) for m in range(1, 9)]
    assert shares == sorted(shares)


# --- stores of noise of all kinds -----------------------------------------------------------------

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET, M = dp.Filter([1.0, 0.5]), 2


def blocks(privacy, **noise):
    """Sums of a few steps each: two events of a person may be in one of them, or in two."""
    return dp.block_sums(dp.Filter([0.1], [1, -0.9]), privacy, CHAIN, **noise)


KINDS = {
    "gaussian": lambda e, d: dp.input_perturbation(TARGET, dp.Privacy(e, d, max_events=M)),
    "geometric": lambda e, d: dp.input_perturbation(TARGET, dp.Privacy(e, max_events=M), noise="geometric"),
    "canonical": lambda e, d: dp.input_perturbation(TARGET, dp.Privacy(e, d, max_events=M), noise="canonical"),
    "response": lambda e, d: dp.randomized_response(TARGET, dp.Privacy(e, d, max_events=M), CHAIN),
    "blocks": lambda e, d: blocks(dp.Privacy(e, max_events=M)),
    "canonical blocks": lambda e, d: blocks(dp.Privacy(e, d, max_events=M), noise="canonical"),
}


@functools.cache
def planned(kind, epsilon, delta):
    return dp.exact(KINDS[kind](epsilon, delta), dp.Inputs(0, 1), tolerance=0.5)


def patterns(store):
    """All that two events of a person can move: at one time or at two, in one sum or in two, (plan, steps) each."""
    for places in itertools.combinations_with_replacement({place for place, _ in store}, M):
        for in_one_sum in {False, len(set(places)) == 1}:
            touched = []
            for place, plan in store:
                n = places.count(place)
                is_one = in_one_sum and n == M and plan.kind == "block sums"
                touched += [(plan, n)] if is_one else [(plan, 1)] * n
            yield touched


def state(store):
    """The guarantees that hold at the end: of each place the last, or that of all where one is."""
    entries, last = [], {}
    for place, plan in store:
        same = [x for x in entries if x.first == 100 * place]
        guarantee = compose_guarantee(plan, entries, same)
        number = len(entries) + 1
        entries.append(
            Earlier(number, "batch", plan.configuration, str(guarantee), guarantee.to_json(), 1, 100 * place, 50, True)
        )
        last = {place: guarantee} if guarantee.whole else last | {place: guarantee}
    return list(last.values())


def check_store(store):
    """Every person has what one of the guarantees says; return the largest share of δ that somebody needs."""
    guarantees = state(store)
    needed = 0.0
    for touched in patterns(store):
        found = [(true_delta(touched, x.epsilon), x.delta) for x in guarantees]
        assert any(true <= stated * (1 + 1e-9) + 1e-12 for true, stated in found), (store, touched)
        needed = max(needed, min(true / stated if stated else 0.0 for true, stated in found))
    return needed


DEMANDS = [(1.0, 0.2), (2.0, 0.05), (1.0, 0.05)]


def test_no_store_of_two_releases_promises_more_than_it_keeps():
    plans = [planned(kind, *demand) for kind in KINDS for demand in DEMANDS[:2]]
    shares = [check_store([(0, one), (place, two)]) for one in plans for two in plans for place in (0, 1)]
    assert max(shares) > 0.9  # of some hardly more could be said


@pytest.mark.long
def test_no_store_of_some_releases_promises_more_than_it_keeps():
    rng = random.Random(1)
    for _ in range(2500):
        n = rng.randint(1, 4)
        check_store([(rng.randrange(3), planned(rng.choice(list(KINDS)), *rng.choice(DEMANDS))) for _ in range(n)])


def test_two_laws_of_a_delta_may_cost_more_than_either_says():
    """One event behind each: so their store is stated as a whole."""
    one, two = planned("response", 1.0, 0.2), planned("response", 2.0, 0.05)
    for plan in (one, two):
        alone = plan.guarantee
        assert true_delta([(one, 1), (two, 1)], alone.epsilon) > alone.delta
    (guarantee,) = state([(0, one), (1, two)])
    assert guarantee.whole
    assert guarantee.delta == pytest.approx(1 - 0.8 * 0.95)


# --- spans of persons -----------------------------------------------------------------------------


def test_of_composed_releases_one_with_a_memory_joins_the_spans():
    privacy = dp.Privacy(1, 1e-6)
    filtered = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.4]), privacy), dp.Inputs(0, 9))
    plain = dp.exact(dp.input_perturbation(dp.Filter([1], [1, -0.4]), privacy), dp.Inputs(0, 9))
    bounds = PersonBounds.of(privacy, plain.inputs, 3)
    spans = PersonSpans.of(bounds, plain.memory, 0, 6)
    assert (filtered.memory > 0, plain.memory, spans.joined) == (True, 0, False)
    entry = Earlier(1, "batch", filtered.configuration, "", "{}", 1, 0, 6, True)
    guarantee = compose_guarantee(plain, [entry], [entry], (), spans)
    # the same changes of both spans, one after the other, add up behind the filter
    square = sum(int(x) for x in np.convolve(filtered.taps, [1, 1]) ** 2)
    truth = square / filtered.sigma.std**2 + 2 * int(plain.taps[0]) ** 2 / plain.sigma.std**2
    rho = guarantee.all_spans.zcdp()[0]
    assert truth / 2 <= rho
    assert rho == 4 * guarantee.zcdp_rho
    assert "s²ρ" in guarantee.items()["spans"]
