"""The lattice of levels, of counts and of real inputs, and how many of its steps an event may change."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpfast import Privacy
from dpfast.privacy.lattice import find_lattice


def largest_unit(levels):
    """Of rational levels: the greatest common divisor of their differences, in rationals."""
    differences = [b - a for a, b in itertools.pairwise(levels)]
    common = math.lcm(*(x.denominator for x in differences))
    return Fraction(math.gcd(*(int(x * common) for x in differences)), common)


LEVELS = [
    ["-1/2", "1/2"],
    ["0", "1", "2", "7"],
    ["0", "1/10", "3/10"],
    ["-1/3", "1/6", "5/3"],
    ["5/2", "4", "17/2", "10"],
    ["0", "6", "10", "15"],
    ["1/1000", "2/1000", "1"],
    ["1000000", "1000000.7", "1000001.4"],
    ["-12345/7", "0", "3/7"],
]


@pytest.mark.parametrize("levels", LEVELS, ids=", ".join)
def test_the_unit_of_levels_is_their_greatest_common_divisor(levels):
    exact = [Fraction(x) for x in levels]
    unit = largest_unit(exact)
    found = find_lattice(Privacy(1, max_change=float(3 * unit)), np.array([float(x) for x in exact]), None)
    assert found.unit == pytest.approx(float(unit), rel=1e-8)
    assert found.offset == float(exact[0])
    assert (found.steps, found.rounds, found.rounding_variance) == (3, False, 0)


def test_a_single_level_may_change_by_one_step():
    assert find_lattice(Privacy(1, max_change=2.5), np.array([3.0]), None) == (2.5, 3.0, 1, False)


def test_a_unit_may_be_finer_than_the_levels_need():
    assert find_lattice(Privacy(1, max_change=1.0), np.array([0.0, 2.0]), 0.5) == (0.5, 0.0, 2, False)


def test_counts_are_the_integers():
    assert find_lattice(Privacy(1, max_change=3), None, None) == (1.0, 0.0, 3, False)


# --- real inputs ----------------------------------------------------------------------------------


def steps_of_rounded(change, unit):
    """The most steps between two real numbers a change apart, each rounded; on a fine grid of places."""
    places = [Fraction(i, 200) * unit for i in range(200)]
    return max(
        abs(math.floor((x + change) / unit + Fraction(1, 2)) - math.floor(x / unit + Fraction(1, 2))) for x in places
    )


@pytest.mark.parametrize("unit", ["1", "1/2", "1/4", "2/3", "3", "1/10", "7/5", "101/100", "99/100"])
@pytest.mark.parametrize("change", ["1", "5/2", "3/10"])
def test_real_inputs_may_change_by_the_steps_that_both_ends_move(change, unit):
    change, unit = Fraction(change), Fraction(unit)
    found = find_lattice(Privacy(1, max_change=float(change)), None, float(unit))
    assert found[:2] == (float(unit), 0.0)
    assert found.rounds
    assert found.steps == change // unit + 1 >= steps_of_rounded(change, unit)
    assert found.rounding_variance == pytest.approx(float(unit**2 / 12))


def test_a_whole_number_of_units_is_not_lost_to_rounding():
    for n in range(1, 2000):
        assert find_lattice(Privacy(1, max_change=n * 0.1), None, 0.1).steps == n + 1


def test_the_variance_of_rounding_is_that_of_a_uniform_number():
    x = np.random.default_rng(1).uniform(-50, 50, 100_000)
    lattice = find_lattice(Privacy(1), None, 0.5)
    error = lattice.unit * np.rint(x / lattice.unit) - x
    assert error.var() == pytest.approx(lattice.rounding_variance, rel=0.02)  # standard deviation .003: 6 of them


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [0.5, 1.5, 2.001])
def test_a_change_of_counts_is_whole(change):
    message = (
        rf"^max_change must be a multiple of 1, the step of counts, which are integers, got {change}: round it up; "
        "real inputs take a unit, to whose multiples they are rounded$"
    )
    with pytest.raises(ValueError, match=message):
        find_lattice(Privacy(1, max_change=change), None, None)


def test_a_unit_keeps_levels_apart():
    with pytest.raises(
        ValueError, match=r"^unit must divide all differences of the model's levels, got 1000000000 for"
    ):
        find_lattice(Privacy(1, max_change=1e9), np.array([-0.5, 0.5]), 1e9)


@pytest.mark.parametrize("change", [0.5, 1e-6, 3.0, 1e-10])
def test_a_change_of_levels_is_a_multiple_of_their_step(change):
    message = (
        rf"^max_change must be a multiple of 2, the step of the levels, which lie 2 apart, got {change:g}: round it up$"
    )
    with pytest.raises(ValueError, match=message):
        find_lattice(Privacy(1, max_change=change), np.array([-1.0, 1.0, 3.0]), None)


def test_a_unit_divides_the_differences_of_levels():
    message = (
        r"^unit must divide all differences of the model's levels, got 0\.4 for levels \[-0\.5, 0\.5\]: leave it out$"
    )
    with pytest.raises(ValueError, match=message):
        find_lattice(Privacy(1), np.array([-0.5, 0.5]), 0.4)


@pytest.mark.parametrize("levels", [[0.0, 1.0, math.sqrt(2)], [0.0, 1.0, math.pi, 4.0]])
def test_levels_without_a_common_step_are_refused(levels):
    with pytest.raises(
        ValueError, match=r"^model must have levels that are whole multiples of one distance apart, got \[.*\]: round "
    ):
        find_lattice(Privacy(1), np.array(levels), None)


@pytest.mark.parametrize("unit", [0, -1.0, math.nan, math.inf, "1", 1e300, 1e-300])
@pytest.mark.parametrize("levels", [None, np.array([0.0, 1.0])])
def test_a_unit_is_a_number_that_can_be_squared(levels, unit):
    with pytest.raises(ValueError, match=r"^unit must be a number strictly between 1e-50 and 1e\+50, got "):
        find_lattice(Privacy(1), levels, unit)
