"""Canonical noise as a table: what it guarantees, by brute force in fractions and by mpmath, and its variance."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.privacy.canonical_table import CanonicalTable, canonical_table
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical

EPSILONS = (2.0**-40, 1e-6, 0.01, 0.1, 0.3, 1.0, math.log(3), 3.0, 8.0, 24.0)
DELTAS = (1e-3, 1e-2, 0.05, 0.3, 0.5)


@mpmath.workdps(60)
def hockey_stick(law, epsilon, shift):
    """Σ_n max(0, P(n) - e^ε P(n - shift)), of the table as it is, by mpmath."""
    p = dict(zip(law.values, law.probabilities, strict=True))
    growth, total = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator), mpmath.mpf(0)
    for n, q in p.items():
        there = p.get(n - shift, Fraction(0))
        total += max(0, mpmath.mpf(q.numerator) / q.denominator - growth * there.numerator / there.denominator)
    return total


def ideal(epsilon, delta):
    """Support and variance of the ideal law, from its tails, in 60 digits."""
    with mpmath.workdps(60):
        growth, delta = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        tail, k, variance = (1 - delta) / (1 + growth), 1, mpmath.mpf(0)
        while tail > 0:
            variance += 2 * (2 * k - 1) * tail
            tail, k = (tail - delta) / growth, k + 1
        return k - 1, variance


@settings(max_examples=60)
@given(st.floats(1e-9, 24), st.floats(1e-3, 0.5))
@example(math.log(3), 0.05)
@example(0.0001, 1e-3)
@example(24.0, 1e-3)
def test_the_guarantee_holds_in_both_directions_and_the_variance_is_the_least(epsilon, delta):
    law = canonical_table(epsilon, delta)
    assert law.epsilon == Fraction(epsilon)
    with mpmath.workdps(60):
        for shift in (1, -1):
            truth = hockey_stick(law, law.epsilon, shift)
            assert truth <= mpmath.mpf(law.delta.numerator) / law.delta.denominator <= delta
        least = ideal(epsilon, delta)[1]
        assert abs(mpmath.mpf(law.variance.numerator) / law.variance.denominator / least - 1) < 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_it_is_the_law_of_designs(epsilon, delta):
    """Support, probabilities and variance; the δ is spent."""
    law = canonical_table(epsilon, delta)
    assert sum(law.weights) == 2**62
    assert law.values[-1] in (ideal(epsilon, delta)[0], ideal(epsilon, delta)[0] + 1)  # where δ ends a tail
    assert 1 - float(law.delta) / delta < 1e-5
    if epsilon > 1e-9:
        floating = DiscreteCanonical(epsilon, delta)
        assert float(law.variance) == pytest.approx(floating.variance, rel=1e-6)
        for n, p in zip(law.values, law.probabilities, strict=True):
            assert float(p) == pytest.approx(math.exp(floating.log_probability([n])[0]), abs=1e-8)


def test_known_values():
    """The standard deviation at (ln 3, .05), (1, .01)."""
    for epsilon, delta, std in ((math.log(3), 0.05, 0.94428), (1.0, 0.01, 1.23138)):
        assert math.sqrt(canonical_table(epsilon, delta).variance) == pytest.approx(std, abs=6e-6)


@settings(max_examples=20)
@given(st.floats(1e-3, 5), st.floats(1e-3, 0.5))
def test_weights_are_symmetric_and_log_concave_and_half_lines_are_worst(epsilon, delta):
    """So the δ is also the largest P(N >= k) - E P(N >= k + 1), to the last digit."""
    law = canonical_table(epsilon, delta)
    p = law.probabilities
    assert p == p[::-1]
    assert all(b * b >= a * c for a, b, c in zip(p, p[1:], p[2:], strict=False))
    tails = [*itertools.accumulate(p[::-1])][::-1]
    assert law.delta == max(a - law.growth * b for a, b in itertools.pairwise([*tails, Fraction(0)]))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.3, 0.01)])
def test_a_change_of_two_is_not_covered_and_that_of_a_group_is(epsilon, delta):
    law = canonical_table(epsilon, delta)
    assert hockey_stick(law, law.epsilon, 2) > 1.5 * delta
    assert hockey_stick(law, 2 * law.epsilon, 2) <= delta * (1 + math.exp(epsilon)) * (1 + 1e-12)


def test_fractions_are_taken_as_they_are():
    assert canonical_table(Fraction(1, 3), Fraction(1, 1000)).epsilon == Fraction(1, 3)
    assert canonical_table(Fraction(1, 3), Fraction(1, 1000)).delta <= Fraction(1, 1000)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 2.0**-41, 24.01, math.inf])
def test_an_epsilon_that_is_out_of_range_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be from 2\*\*-40 to 24 for a law that is a table, got"):
        canonical_table(epsilon, 0.05)


@pytest.mark.parametrize("delta", [0.0, 9.9e-4, 0.51, -1.0, math.nan])
def test_a_delta_that_is_out_of_range_is_refused(delta):
    with pytest.raises(ValueError, match=r"delta must be from 0\.001 to 0\.5 .*: take geometric noise, which needs"):
        canonical_table(1.0, delta)


@pytest.mark.parametrize(
    ("values", "weights", "message"),
    [
        ((-1, 0, 1), (1, 1, 1), "sum to a power of two"),
        ((-1, 0, 1), (2**61, 2**62, 2**61), "sum to a power of two"),
        ((-1, 0, 1), (-1, 4, -1), "at least 0"),
        ((), (), "at least 0"),
        ((-1, 0), (1, 2, 1), "values must rise"),
        ((0, -1, 1), (1, 2, 1), "values must rise"),
        ((-1, 0, 1), (1, 1, 2), "the same for n and -n"),
        ((-2, 0, 2), (1, 2, 1), r"those of -L \.\.\. L"),
        ((-1, 0, 1), (3, 2, 3), "log-concave"),
        ((-1, 0, 1), (0, 2, 0), "none of them 0"),
    ],
)
def test_tables_for_which_nothing_is_proven_are_refused(values, weights, message):
    with pytest.raises(ValueError, match=message):
        CanonicalTable(values, weights, Fraction(1))
