"""Guarantees of integer mechanisms by enumeration, in exact rationals, of all that is published on a small horizon.

The package says with which laws, lengths and levels; a twin that imports nothing of it, `integer_publishers`, does the
rest. That twin and package publish the same is tested at the end: probabilities, sums and times.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from helpers import integer_publishers as twin
from scipy import stats

from dpfast import Filter, IndependentLevels, Privacy, block_sums, input_perturbation, randomized_response, running_sum
from dpfast.privacy.integer_noise.choice import integer_noise

ALARM = 1e-9  # of one comparison of counts; there are sixteen
TARGET = Filter([1, -0.5])


def rational(value):
    """The simple fraction that a rounded number stands for."""
    found = Fraction(value).limit_denominator(10**6)
    assert float(found) == pytest.approx(value, rel=1e-13)
    return found


def twin_of(law):
    """The same law in rationals, by what the package says of it."""
    if law.kind == "geometric":
        return twin.geometric(rational(math.exp(-law.epsilon / law.steps)))
    odds = rational(math.exp(law.epsilon))
    if law.kind == "staircase":
        return twin.staircase(odds, law.steps, law.high)
    return twin.canonical(odds, rational(law.delta))


class Case(NamedTuple):
    """A demand of privacy, and a small mechanism."""

    kind: str
    odds: int  # e^epsilon
    delta: Fraction
    change: int
    n_events: int
    lengths: tuple
    n_steps: int
    shares: tuple = (1.0,)
    phase: int = 0
    signs: tuple = ()
    releases: tuple = ()

    @property
    def lates(self):
        return tuple(x % len(self.signs) for x in self.releases)

    @property
    def privacy(self):
        return Privacy(math.log(self.odds), float(self.delta), max_change=float(self.change), max_events=self.n_events)

    def levels(self):
        return np.arange(self.change + 1.0)

    def design(self):
        k = self.change + 1
        model = IndependentLevels(self.levels(), np.full(k, 1 / k))
        if self.signs:
            return self.design_signed()
        several = len(self.lengths) > 1
        return block_sums(
            TARGET,
            self.privacy,
            model,
            length=self.lengths if several else self.lengths[0],
            shares=self.shares if several else None,
            noise=self.kind,
            phase=self.phase,
        )

    def design_signed(self):
        k = self.change + 1
        model = IndependentLevels(self.levels(), np.full(k, 1 / k))
        releases = {"releases": self.releases} if self.releases else {}
        more = {"noise": self.kind, "phase": self.phase} | releases
        return block_sums(TARGET, self.privacy, model, weights=self.signs, **more)


NONE, SOME = Fraction(0), Fraction(1, 20)
BLOCKS = [
    Case("geometric", 3, NONE, 1, 1, (2,), 5),
    Case("geometric", 3, NONE, 1, 1, (1,), 3),
    Case("geometric", 4, NONE, 2, 1, (2,), 4),
    Case("geometric", 9, NONE, 1, 2, (2,), 4),
    Case("geometric", 8, NONE, 1, 3, (1,), 3),
    Case("geometric", 16, NONE, 2, 2, (2,), 4),
    Case("geometric", 3, NONE, 1, 1, (3,), 5, phase=1),
    Case("canonical", 3, SOME, 1, 1, (2,), 4),
    Case("canonical", 3, SOME, 1, 1, (1,), 3),
    Case("canonical", 2, Fraction(1, 3), 1, 1, (2,), 4),
    Case("canonical", 9, SOME, 1, 2, (2,), 4),
    Case("canonical", 9, SOME, 1, 2, (1,), 2),
    Case("canonical", 8, SOME, 1, 3, (3,), 3),
    Case("staircase", 9, NONE, 2, 1, (2,), 4),
    Case("staircase", 20, NONE, 3, 1, (1,), 2),
    Case("staircase", 16, NONE, 2, 2, (2,), 4),
    Case("staircase", 16, NONE, 2, 2, (1,), 2),
    Case("geometric", 9, NONE, 1, 1, (1, 2), 2, shares=(0.5, 0.5)),
    Case("geometric", 16, NONE, 1, 1, (2, 4), 4, shares=(0.25, 0.75)),
    Case("geometric", 16, NONE, 1, 2, (1, 2), 2, shares=(0.5, 0.5)),
    Case("canonical", 9, SOME, 1, 1, (1, 2), 2, shares=(0.5, 0.5)),
    Case("canonical", 16, SOME, 1, 1, (1, 2), 2, shares=(0.25, 0.75)),
    Case("staircase", 16, NONE, 2, 1, (1, 2), 2, shares=(0.5, 0.5)),
]
TWO = ((1, 0), (0, -1), (-1, 0))
SIGNED = [
    Case("geometric", 3, NONE, 1, 1, (3,), 5, signs=((1,), (-1,), (-1,))),
    Case("geometric", 3, NONE, 1, 1, (3, 3), 3, signs=TWO),
    Case("geometric", 3, NONE, 1, 1, (2, 2), 3, signs=((1, 0), (0, -1)), releases=(2, 1)),
    Case("geometric", 3, NONE, 1, 1, (2, 2), 3, signs=((1, 0), (0, -1)), phase=1),
    Case("geometric", 4, NONE, 2, 1, (2,), 4, signs=((1,), (-1,))),
    Case("geometric", 9, NONE, 1, 2, (2, 2), 2, signs=((-1, 0), (0, 1))),
    Case("canonical", 3, SOME, 1, 1, (3, 3), 3, signs=TWO, releases=(3, 2)),
    Case("canonical", 9, SOME, 1, 2, (2,), 4, signs=((-1,), (1,))),
    Case("staircase", 9, NONE, 2, 1, (2, 2), 2, signs=((-1, 0), (0, 1))),
]
BLOCKS += SIGNED


def name_of(case):
    signed = f", signed, {case.releases}" if case.signs else ""
    return f"{case.kind}, m = {case.n_events}, d = {case.change}, {case.lengths} of {case.n_steps}{signed}"


def publisher_of(case, mechanism):
    assert mechanism.lengths == case.lengths
    assert mechanism.lattice.steps == case.change
    most, least = [x * case.change for x in case.lengths], [0] * len(case.lengths)
    if case.signs:
        most, least = (
            [int(x) for x in case.change * np.clip(sign * np.array(case.signs), 0, 1).sum(axis=0)] for sign in (1, -1)
        )
    laws = tuple(
        twin.sum_with_noise(twin_of(law), high, -low)
        for law, high, low in zip(mechanism.noise, most, least, strict=True)
    )
    phase = mechanism.receiver.phase
    return twin.Publisher(mechanism.lengths, laws, case.n_steps, case.change, phase, case.signs, case.lates)


# --- guarantees -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", BLOCKS, ids=name_of)
def test_no_adversary_gains_more_of_block_sums_than_is_promised(case):
    mechanism = case.design()
    publisher = publisher_of(case, mechanism)
    worst = twin.worst_case(publisher, case.odds, case.change, case.n_events)
    assert worst <= case.delta
    if case.delta == 0:  # and no smaller epsilon would be true
        assert twin.worst_case(publisher, case.odds * Fraction(99, 100), case.change, case.n_events) > 0
        assert mechanism.guarantee_terms().delta == 0
    elif len(case.lengths) == 1 and not case.signs and case.lengths[0] >= case.n_events:  # all events in one block
        assert worst == case.delta


@pytest.mark.parametrize(
    ("kind", "odds", "delta", "change", "n_events"),
    [
        ("geometric", 3, NONE, 1, 1),
        ("geometric", 16, NONE, 2, 2),
        ("canonical", 3, SOME, 1, 1),
        ("canonical", 9, SOME, 1, 2),
        ("staircase", 9, NONE, 2, 1),
        ("staircase", 16, NONE, 2, 2),
    ],
)
def test_no_adversary_gains_more_of_noise_on_every_input_than_is_promised(kind, odds, delta, change, n_events):
    privacy = Privacy(math.log(odds), float(delta), max_change=change, max_events=n_events)
    mechanism = input_perturbation(TARGET, privacy, noise=kind)
    law = mechanism._law.law
    assert law == integer_noise(kind, privacy, change)
    publisher = twin.Publisher((1,), (twin.sum_with_noise(twin_of(law), change),), 2, change)
    worst = twin.worst_case(publisher, odds, change, n_events)
    assert worst <= delta
    assert n_events > 1 or worst == delta


@pytest.mark.parametrize(
    ("odds", "delta", "n_events"), [(3, NONE, 1), (3, SOME, 1), (9, NONE, 2), (9, SOME, 2), (8, SOME, 3)]
)
def test_no_adversary_gains_more_of_randomised_response_than_is_promised(odds, delta, n_events):
    privacy = Privacy(math.log(odds), float(delta), max_events=n_events)
    model = IndependentLevels([0.0, 1.0], [0.5, 0.5])
    response = randomized_response(TARGET, privacy, model)._law.response
    law = twin.randomized_response(rational(math.exp(response.epsilon)), rational(response.delta))
    worst = twin.worst_case(twin.Publisher((1,), (law,), 3, 1), odds, 1, n_events)
    assert worst <= delta
    assert n_events > 1 or worst == delta
    if delta == 0:
        assert twin.worst_case(twin.Publisher((1,), (law,), 3, 1), odds * Fraction(99, 100), 1, n_events) > 0


# --- the adversary ---------------------------------------------------------------------------------


def test_the_adversary_finds_what_a_wrong_law_shows():
    """A staircase for all events together, a response that pays once for two, a level or a sum that pays for none."""
    together = twin.sum_with_noise(twin.staircase(Fraction(20), 4, 2), 2)
    assert twin.worst_case(twin.Publisher((1,), (together,), 2, 2), 20, 2, 2) > 0
    assert twin.worst_case(twin.Publisher((1,), (together,), 2, 2), 400, 2, 2) == 0  # each event costs all
    response = twin.randomized_response(Fraction(3), NONE)
    assert twin.worst_case(twin.Publisher((1,), (response,), 2, 1), 3, 1, 2) > 0
    both = tuple(twin.sum_with_noise(twin.geometric(Fraction(1, 3)), 2, -2) for _ in range(2))
    assert twin.worst_case(twin.Publisher((2, 2), both, 2, 1, 0, ((1, -1), (0, 1))), 3, 1, 1) > 0  # in both sums
    both = tuple(twin.sum_with_noise(twin.geometric(Fraction(1, 3)), length) for length in (1, 2))
    assert twin.worst_case(twin.Publisher((1, 2), both, 2, 1), 3, 1, 1) > 0
    assert twin.worst_case(twin.Publisher((1, 2), both, 2, 1), 9, 1, 1) == 0


@pytest.mark.parametrize(
    "noise",
    [twin.geometric(Fraction(1, 3)), twin.staircase(Fraction(7), 3, 2), twin.canonical(Fraction(3), SOME)],
    ids=["geometric", "staircase", "canonical"],
)
def test_what_the_twin_publishes_has_all_of_the_probability(noise):
    law = twin.sum_with_noise(noise, 5)
    assert all(sum(law(total).values()) == 1 for total in range(6))


# --- the same law ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", BLOCKS, ids=name_of)
def test_the_twin_has_the_probabilities_of_the_package(case):
    for law in case.design().noise:
        n = np.arange(-40, 41)
        expected = [float(twin_of(law).probability(int(x))) for x in n]
        np.testing.assert_allclose(np.exp(law.log_probability(n)), expected, rtol=1e-11, atol=1e-16)


def expected_sums(case, u, level):
    """Sums of the blocks that end, and when; about the mean of the inputs."""
    sums, total = {}, 0.0
    for t, value in enumerate(u):
        weight = case.signs[(t + case.phase) % len(case.signs)][level] if case.signs else 1.0
        total += weight * (value - case.levels().mean())
        late = case.lates[level] if case.lates else 0
        if (t + 1 + case.phase - late) % case.lengths[level] == 0:
            sums[t], total = total, 0.0
    return sums


@pytest.mark.slow_nojit
@pytest.mark.parametrize("case", [*(BLOCKS[i] for i in (0, 2, 6, 7, 13, 18)), SIGNED[3], SIGNED[6]], ids=name_of)
def test_the_twin_publishes_what_the_package_simulates(case):
    mechanism, n_streams = case.design(), 20_000
    u = np.random.default_rng(1).choice(case.levels(), case.n_steps)
    v = mechanism.simulate(np.tile(u, (n_streams, 1)), seed=2).privatized
    for level, law in enumerate(mechanism.noise):
        released = v[level] if len(mechanism.noise) > 1 else v
        sums = expected_sums(case, u, level)
        assert np.flatnonzero(~np.isnan(released[0])).tolist() == list(sums)
        drawn = released[:, list(sums)] - np.array(list(sums.values()))
        check_law(drawn, twin_of(law))


@pytest.mark.slow_nojit
@pytest.mark.parametrize("case", [BLOCKS[i] for i in (1, 5, 8, 11, 15)], ids=name_of)
def test_inputs_of_a_horizon_are_published_with_the_same_noise(case):
    mechanism = input_perturbation(running_sum(30), case.privacy, noise=case.kind)
    law = integer_noise(case.kind, case.privacy, case.change)
    u = np.tile([3.0, 0.0, 1.0], (2_000, 10))
    check_law(mechanism.simulate(u, seed=3).privatized - u, twin_of(law))


def check_law(drawn, noise):
    """Counts of integers against the twin; what is rare is counted with a frequent one."""
    whole, n = np.rint(drawn), np.arange(-60, 61)
    np.testing.assert_allclose(drawn, whole, atol=1e-9)
    expected = np.array([float(noise.probability(int(x))) for x in n]) * whole.size
    counts = np.bincount(whole.astype(int).ravel() + 60, minlength=121)
    assert not counts[expected == 0].any()
    frequent = expected > 100
    rare = expected[~frequent].sum(), counts[~frequent].sum()
    expected, counts = expected[frequent], counts[frequent]
    expected[0], counts[0] = expected[0] + rare[0], counts[0] + rare[1]
    assert stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue > ALARM
