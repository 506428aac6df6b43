"""Randomised response by enumeration of its outcomes, in exact rationals; noise.json knows its variance."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from dpfast._kernels.compiled_mechanisms import CompiledResponseMechanism
from dpfast.mechanisms.input_noise import ResponseNoise
from dpfast.privacy.randomized_response import RandomizedResponse

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "noise.json").read_text())
CASES = [x for x in REFERENCE["cases"] if "rr_noise_variance" in x]

ODDS = [Fraction(3), Fraction(11, 10), Fraction(1000)]  # e^epsilon
DELTAS = [Fraction(0), Fraction(1, 20), Fraction(1, 10**6), Fraction(9, 10)]
LEVELS = [(Fraction(-1, 2), Fraction(1, 2)), (Fraction(0), Fraction(4)), (Fraction(2), Fraction(9, 4))]
EVERY_CASE = pytest.mark.parametrize(("odds", "delta", "levels"), list(itertools.product(ODDS, DELTAS, LEVELS)))


def outcomes(odds, delta):
    """What is published for the upper level: z, and its probability. For the lower level -z has it."""
    trust = (odds - 1) / (odds + 1)
    hidden = {trust: (1 - delta) * odds / (1 + odds), -trust: (1 - delta) / (1 + odds)}
    return {Fraction(1): delta, Fraction(-1): Fraction(0), **hidden}


def published(odds, delta, levels):
    """For each level: what is published, scaled so that its mean is the level, and its probability."""
    low, high = levels
    upper = outcomes(odds, delta)
    share = sum(p * z * z for z, p in upper.items())
    values = {z: (low + high) / 2 + (high - low) * z / (2 * share) for z in upper}
    return {
        high: {values[z]: p for z, p in upper.items()},
        low: {values[-z]: p for z, p in upper.items()},
    }


def hockey_stick(p, q, odds):
    return sum(max(p[x] - odds * q[x], Fraction(0)) for x in p)


def response(odds, delta, levels):
    return RandomizedResponse(math.log(odds), float(delta), *map(float, levels))


@EVERY_CASE
def test_it_costs_exactly_what_it_says(odds, delta, levels):
    law = published(odds, delta, levels)
    for first, second in itertools.permutations(levels):
        assert hockey_stick(law[first], law[second], odds) == delta
        assert hockey_stick(law[first], law[second], odds * Fraction(999, 1000)) > delta  # no less epsilon


@EVERY_CASE
def test_it_is_the_input_plus_noise_of_one_variance(odds, delta, levels):
    """The mean is the level and the variance the same for both: the noise is uncorrelated with every input."""
    for level, law in published(odds, delta, levels).items():
        mean = sum(p * w for w, p in law.items())
        assert sum(law.values()) == 1
        assert mean == level
        assert response(odds, delta, levels).variance == pytest.approx(
            float(sum(p * (w - mean) ** 2 for w, p in law.items())), rel=1e-9
        )


@EVERY_CASE
def test_what_is_drawn_are_these_outcomes(odds, delta, levels):
    """`told` and `true` are cumulative probabilities, the sizes are about the middle of the levels."""
    compiled = ResponseNoise(response(odds, delta, levels)).compile(0.0, None)
    assert isinstance(compiled, CompiledResponseMechanism)
    drawn = compiled.response
    law, middle = published(odds, delta, levels)[levels[1]], sum(levels) / 2
    (told, certain), _, (true, likely), (false, unlikely) = law.items()
    assert drawn.middle == drawn.shift == float(middle)
    assert drawn.told == pytest.approx(float(certain), rel=1e-12)
    assert drawn.true == pytest.approx(float(certain + likely), rel=1e-12)
    assert 1 - drawn.true == pytest.approx(float(unlikely), abs=1e-15)
    assert drawn.told_size == pytest.approx(float(told - middle), rel=1e-9)
    assert drawn.true_size == pytest.approx(float(true - middle), rel=1e-9)
    assert -drawn.true_size == pytest.approx(float(false - middle), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 30.0])
def test_without_a_delta_the_variance_is_that_of_one_flip(epsilon):
    assert RandomizedResponse(epsilon, 0.0, -0.5, 0.5).variance == pytest.approx(
        1 / (4 * math.sinh(epsilon / 2) ** 2), rel=1e-9
    )


def test_little_privacy_leaves_no_noise():
    for epsilon in (1e3, 1e6):
        assert 0 <= RandomizedResponse(epsilon, 0.0, 0.0, 1.0).variance < 1e-290


@pytest.mark.parametrize("case", CASES, ids=lambda x: f"{x['name']}, {x['lag']}")
def test_the_variance_is_that_of_reference(case):
    law = RandomizedResponse(case["epsilon"], case["delta"], *map(float, case["model"]["levels"]))
    assert law.variance == pytest.approx(case["rr_noise_variance"], rel=1e-8)  # epsilon has ten digits there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.0, 0.0, 1.0), r"epsilon must be a finite number above 0, got 0\.0"),
        ((math.inf, 0.0, 0.0, 1.0), r"epsilon must be a finite number above 0, got inf"),
        ((1.0, 1.0, 0.0, 1.0), r"delta must be a number, at least 0 and below 1, got 1\.0"),
        ((1.0, -0.1, 0.0, 1.0), r"delta must be a number, at least 0 and below 1, got -0\.1"),
        ((1.0, 0.0, 1.0, 1.0), r"high must be a finite number above 1, got 1\.0"),
        ((1.0, 0.0, math.nan, 1.0), r"low must be a finite number, got nan"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=rf"^{message}$"):
        RandomizedResponse(*arguments)
