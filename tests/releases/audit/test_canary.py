from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpfast as dp
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.audit.canary import Canary, statistics
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.noise import Noise

TAPS = [[7], [16, 14, 12, 9, 7, 5, 3, 2, 1], [16, -13, 10, -8, 6, -4, 2, -1], [9, 0, 0, 20, -5]]
FALLING, ALTERNATING = TAPS[1:3]
INPUTS = [
    {"low": 0, "high": 20},
    {"low": 0, "high": 2},
    {"low": -4, "high": 8, "unit": 2, "centre": 2},
    {"low": 0, "high": 50, "unit": 5, "multiples": False},
    {"low": -0.5, "high": 1.5, "unit": 0.25},
    {"low": -1.25, "high": 3, "unit": 0.25, "multiples": False, "missing": 0},
]


def plan_of(taps, max_events=1, min_separation=1, max_change=2.0, streams=1, **inputs):
    """Of any taps."""
    privacy = dp.Privacy(1, 1e-6, max_change=max_change, max_events=max_events, min_separation=min_separation)
    mechanism = dp.input_perturbation(dp.Filter([1]), privacy)
    declared = dp.Inputs(**inputs, n_streams=streams + 1, streams_per_person=streams)
    return ExactMechanism(mechanism, declared, 1e-3, np.array(taps), Sigma(1_000_000, 0), mechanism.receiver)


plans = st.builds(
    lambda inputs, **rest: plan_of(**inputs, **rest),
    taps=st.sampled_from(TAPS) | st.lists(st.integers(-50, 50), max_size=9).map(lambda x: [*x, 1]),
    max_events=st.integers(1, 4),
    min_separation=st.integers(1, 5),
    max_change=st.sampled_from([2.0, 3.5, 100.0]),
    streams=st.integers(1, 3),
    inputs=st.sampled_from(INPUTS),
)


@given(plan=plans, seed=st.integers(0, 1000), sign=st.sampled_from([1, -1]))
def test_canaries_are_neighbours_in_the_sense_of_the_guarantee(plan, seed, sign):
    """Else an honest release would be accused."""
    canary = Canary.place(plan, np.random.default_rng(seed), sign)
    privacy, inputs = plan.mechanism.privacy, plan.inputs
    without, with_ = (x.astype(float) for x in canary.u)
    assert len(without) == inputs.streams_per_person
    for row in with_ - without:
        steps = np.flatnonzero(row)
        assert 1 <= len(steps) <= privacy.max_events
        assert np.diff(steps).min(initial=10**9) >= privacy.min_separation
        assert np.abs(row).max() <= privacy.max_change * (1 + 1e-12)
        assert np.sign(row[steps[0]]) == sign
    if inputs.multiples:
        for u in canary.u:
            assert all(Fraction(x) % Fraction(inputs.unit) == 0 for x in u.ravel().tolist())
    change = canary.x[1] - canary.x[0]
    claimed = inputs.change(privacy.max_change)
    whole = Fraction(privacy.max_change) % Fraction(inputs.unit) == 0
    assert np.abs(change).max() in ({claimed} if inputs.multiples or not whole else {claimed - 1, claimed})
    assert canary.squared_change <= plan.shift.squared_sensitivity


@given(plan=plans, seed=st.integers(0, 1000))
def test_what_is_expected_is_what_the_taps_give(plan, seed):
    canary = Canary.place(plan, np.random.default_rng(seed))
    for x, expected in zip(canary.x, (canary.expected, canary.expected + canary.change), strict=True):
        for row, wanted in zip(x, expected, strict=True):
            naive = [
                sum(int(plan.taps[k]) * int(row[t - k]) for k in range(len(plan.taps)))
                for t in range(plan.memory, len(row))
            ]
            assert wanted.tolist() == naive


@pytest.mark.parametrize("taps", TAPS)
def test_one_event_shows_nearly_all_of_the_sensitivity(taps):
    plan = plan_of(taps, streams=3, low=0, high=20)
    canary = Canary.place(plan, np.random.default_rng(1))
    assert 0.95 <= canary.squared_change / plan.shift.squared_sensitivity <= 1
    assert canary.size <= 3 * len(plan.taps)


@pytest.mark.parametrize("taps", [FALLING, ALTERNATING])
def test_several_events_have_the_signs_that_add_up(taps):
    """Where autocorrelations have one sign, or alternate, the sensitivity is exact."""
    plan = plan_of(taps, max_events=3, low=0, high=20)
    canary = Canary.place(plan, np.random.default_rng(1))
    assert 0.95 <= canary.squared_change / plan.shift.squared_sensitivity <= 1
    signs = np.sign(canary.u[1] - canary.u[0])[0, plan.memory :][:3].tolist()
    assert signs == ([1, 1, 1] if taps is FALLING else [1, -1, 1])


def test_the_rest_is_at_the_ends_and_beyond():
    plan = plan_of(FALLING, low=0, high=20)
    values = np.unique(np.concatenate([Canary.place(plan, np.random.default_rng(k)).u[0][0] for k in range(9)]))
    assert set(values.tolist()) == {-20, 0, 20, 40}


def test_the_place_is_random_but_public():
    plan = plan_of(FALLING, low=1, high=20, centre=5)
    starts = {int(np.argmax(Canary.place(plan, np.random.default_rng(k)).x[0][0] != 0)) for k in range(50)}
    assert len(starts) > plan.memory / 2
    again = [Canary.place(plan, np.random.default_rng(3)) for _ in range(2)]
    assert (again[0].u[1] == again[1].u[1]).all()


@pytest.mark.parametrize("apart", [False, True])
def test_statistics_are_standard_normal_but_for_their_mean(apart):
    """Kolmogorov and Smirnov, discrete noise of large σ; false alarm 4e-8."""
    plan = plan_of(FALLING, streams=2, max_change=1.0, low=0, high=20)
    canaries = [Canary.place(plan, np.random.default_rng(2), sign) for sign in (1, -1)]
    size = np.sqrt(sum(x.squared_change for x in canaries)) / plan.sigma.std
    done = []
    for present in (False, True):
        values = statistics(plan, canaries, 20_000, present=present, apart=apart, advance=done.append)
        assert stats.kstest(values, "norm", args=(size * present, 1.0)).pvalue > 1e-8
    assert sum(done) == 40_000


class Silent(Noise):
    """To see the means."""

    def take(self, n):
        return super().take(n) * 0


def test_without_noise_the_statistic_is_the_size_of_the_change():
    plan = plan_of(TAPS[3], max_events=2, streams=3, low=0, high=20)
    canary = Canary.place(plan, np.random.default_rng(2))
    for present in (False, True):
        found = canary.statistic(plan, Silent(plan.sigma), 5, present=present)
        assert found.tolist() == [canary.squared_change * present] * 5
