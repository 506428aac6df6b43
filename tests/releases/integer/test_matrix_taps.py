"""Integer matrices of taps and their sensitivity, against brute force over all that an event may change."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.privacy.placed_events import largest_of_three
from dpfast.releases.integer.matrix_taps import matrix_taps, squared_change

ADJACENCIES = "one_input", "each_input_same_time", "each_input"


def patterns(m, horizon, adjacency):
    """All (inputs, times, signs) of an event: at one input; at all at one time; at all, at any times."""
    for signs in itertools.product((-1, 0, 1), repeat=m):
        used = [i for i in range(m) if signs[i]]
        if adjacency == "one_input" and len(used) > 1:
            continue
        if adjacency == "each_input":
            times = itertools.product(range(horizon), repeat=m)
        else:
            times = ((t,) * m for t in range(horizon))
        for places in times:
            yield signs, places


def brute_force(taps, changes, adjacency, horizon):
    """The largest energy of all outputs over all events in a horizon, added up sample by sample."""
    q, m, n = taps.shape
    worst = 0
    for signs, places in patterns(m, horizon, adjacency):
        moved = np.zeros((q, horizon + n), int)
        for i in range(m):
            moved[:, places[i] : places[i] + n] += signs[i] * changes[i] * taps[:, i]
        worst = max(worst, int((moved**2).sum()))
    return worst


@st.composite
def cases(draw, most=3):
    q, m, n = draw(st.integers(1, most)), draw(st.integers(1, most)), draw(st.integers(1, 2))
    values = draw(st.lists(st.integers(-5, 5), min_size=q * m * n, max_size=q * m * n).filter(any))
    changes = draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))
    return np.array(values).reshape(q, m, n), changes


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@given(cases())
@settings(max_examples=60)
def test_up_to_three_inputs_it_is_what_the_worst_event_changes(adjacency, case):
    taps, changes = case
    found = squared_change(taps, changes, adjacency)
    assert isinstance(found, int)
    assert found == brute_force(taps, changes, adjacency, 4)  # two taps reach two samples: further apart is as far


@pytest.mark.parametrize("seed", range(3))
def test_three_inputs_that_one_between_two_brings_together(seed):
    """Three taps: the outer two may be four samples apart, and both meet the one between."""
    taps = np.random.default_rng(seed).integers(-4, 5, (2, 3, 3))
    assert squared_change(taps, [1, 2, 1], "each_input") == brute_force(taps, [1, 2, 1], "each_input", 5)


def test_the_place_of_the_third_may_be_far_from_the_first():
    x, y, z = np.array([0, 0, 0, 0, 9]), np.array([1, 1, 1, 1, 1]), np.array([0, 0, 0, 0, 5])
    assert largest_of_three(x, y, z) == 14  # at a = 2 and b = 4, beyond y: 9 and 5, nothing of y
    assert largest_of_three(np.ones(1, int), np.ones(1, int), -np.ones(1, int)) == 1


@given(st.integers(0, 2**32), st.sampled_from(ADJACENCIES))
@settings(max_examples=20)
def test_no_event_at_four_inputs_changes_more(seed, adjacency):
    rng = np.random.default_rng(seed)
    taps = rng.integers(-5, 6, (2, 4, 2)) * rng.integers(0, 2, (2, 4, 1))
    changes = rng.integers(1, 3, 4).tolist()
    worst, found = brute_force(taps, changes, adjacency, 3), squared_change(taps, changes, adjacency)
    assert worst <= found
    if adjacency != "each_input":
        assert worst == found


def test_chains_of_inputs_are_exact_however_many_there_are():
    """Input i meets i + 1 alone: each couple is placed by itself."""
    rng = np.random.default_rng(3)
    taps = np.zeros((3, 4, 2), int)
    for a in range(3):
        taps[a, a : a + 2] = rng.integers(-5, 6, (2, 2))
    assert squared_change(taps, [1] * 4, "each_input") == brute_force(taps, [1] * 4, "each_input", 4)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_large_changes_do_not_overflow(adjacency):
    taps = np.random.default_rng(5).integers(-(2**20), 2**20, (2, 3, 4))
    one = squared_change(taps, [1, 1, 1], adjacency)
    assert squared_change(taps, [2**40] * 3, adjacency) == one * 2**80
    assert squared_change(taps, [2**40, 2**40, 2**40 - 1], adjacency) <= one * 2**80


def test_large_changes_of_inputs_that_never_meet_do_not_overflow():
    taps = np.array([[[1, 2], [1, 0], [0, 0]], [[0, 0], [0, 0], [3, 1]]])
    assert squared_change(taps, [1, 2**40, 2**40], "each_input") == 5 + 2**80 + 10 * 2**80 + 2 * 2 * 2**40


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_comes_to_the_sensitivity_of_the_filters(adjacency):
    slow, quick = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
    g = dp.FilterMatrix([[slow, slow, slow], [quick, -1 * quick, 0]])
    taps = matrix_taps(g, 600, 20)
    size = math.sqrt(squared_change(taps, [1, 1, 1], adjacency)) / 2**20 * g.h2_norm()
    expected = dp.Privacy(1, 1e-6, adjacency=adjacency).sensitivity(g)
    assert size == pytest.approx(expected, rel=1e-5)


def test_more_than_sixteen_inputs_are_bounded():
    taps = np.ones((1, 17, 1), int)
    taps[0, 0] = -1
    assert squared_change(taps, [1] * 17, "each_input_same_time") == 17**2
