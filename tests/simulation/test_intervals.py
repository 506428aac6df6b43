"""Intervals against naive twins and exact binomial ones, and how often they hold the truth."""

import itertools
import math

import numpy as np
import pytest
from helpers import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dpfast as dp
from dpfast.simulation import intervals
from dpfast.simulation.intervals import ENOUGH, ErrorSizes
from dpfast.simulation.mixed_study import MixedStudy

ALARM = 1e-7
DRAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "exponential": lambda rng, size: rng.exponential(size=size),
    "to the left": lambda rng, size: -rng.gamma(0.3, size=size),
    "heavy tails": lambda rng, size: rng.standard_t(3, size=size),
    "one of many": lambda rng, size: (rng.random(size) < 2 / size[-1]) * 1.0,
}

# --- skewed errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("n", [3, 16, 50])
@pytest.mark.parametrize("level", [0.2, 0.05, 1e-4])
def test_ends_are_those_of_the_twin(draw, n, level):
    values = draw(np.random.default_rng(n), (20, n))
    values = values[np.ptp(values, axis=1) > 0]
    mean, low, high = intervals.mean_interval(values, level)
    np.testing.assert_allclose(mean, values.mean(axis=1))
    expected = np.array([reference.skewed_interval(x, level) for x in values])
    scale = np.abs(values).max()
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, rtol=1e-7, atol=1e-9 * scale)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30), st.floats(1e-6, 0.9))
def test_an_interval_holds_that_of_student(values, level):
    x = np.array(values)
    mean, low, high = intervals.mean_interval(x, level)
    half = stats.t.isf(level / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    room = 1e-9 * (1 + np.abs(x).max())
    assert low <= mean <= high
    assert low <= mean - half + room
    assert high >= mean + half - room


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=20), st.integers(-300, 300))
def test_a_unit_changes_nothing_but_the_unit(values, power):
    x = np.array(values)
    unit = 2.0**power
    for a, b in zip(intervals.mean_interval(x * unit, 0.05), intervals.mean_interval(x, 0.05), strict=True):
        assert a == b * unit


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_what_is_mirrored_has_the_mirrored_interval(values):
    x = np.array(values)
    mean, low, high = intervals.mean_interval(x, 0.1)
    assert np.allclose(intervals.mean_interval(-x, 0.1), (-mean, -high, -low), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-300, 1e300])
@pytest.mark.parametrize("n", [2, 16, 1000])
def test_equal_values_leave_no_room(value, n):
    mean, low, high = intervals.mean_interval(np.full(n, value), 0.05)
    assert low <= mean <= high
    assert high - low <= 1e-12 * value


def test_two_values_are_symmetric_and_so_student():
    mean, low, high = intervals.mean_interval(np.array([1.0, 3.0]), 0.05)
    assert (mean, low, high) == pytest.approx((2, *stats.t.interval(0.95, 1, 2, 1)))


def test_a_row_has_the_same_bits_alone():
    values = np.random.default_rng(1).gamma(2, size=(40, 48))
    together = np.stack(intervals.mean_interval(values, 0.01))
    for i, row in enumerate(values):
        assert together[:, i].tobytes() == np.stack(intervals.mean_interval(row, 0.01)).tobytes()


@pytest.mark.parametrize("shape", [1, 3])
def test_intervals_of_skewed_values_cover(shape):
    """Student's t covers 92.9 % and 94.2 % there; and with many values there is little to mend."""
    rng, n_sets = np.random.default_rng(shape), 40_000
    few = rng.gamma(shape, size=(n_sets, 32))
    _, low, high = intervals.mean_interval(few, 0.05)
    covered = np.count_nonzero((low <= shape) & (shape <= high))
    assert covered > stats.binom.ppf(ALARM, n_sets, 0.95)
    many = rng.gamma(shape, size=(500, 512))
    _, low, high = intervals.mean_interval(many, 0.05)
    student = 2 * stats.t.isf(0.025, 511) * stats.sem(many, axis=1)
    assert 1 <= np.mean((high - low) / student) < 1.05


EXAMPLE = dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(math.log(3), 0.05)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])


@pytest.mark.long
@pytest.mark.parametrize(
    "design",
    [
        lambda: dp.zero_forcing(*EXAMPLE),
        lambda: dp.lmmse(*EXAMPLE, CHAIN, lag=5),
        lambda: dp.lmmse(*EXAMPLE, CHAIN),
        lambda: dp.decision_feedback(*EXAMPLE, CHAIN, lag=5),
    ],
    ids=["LZF", "LMMSE", "smoother", "DFE"],
)
def test_intervals_of_few_streams_of_the_example_cover(design):
    """5,000 seeds of 32 streams of 1,500 samples: Student's t covers 94.4 to 94.8 %; with 512 streams as wide as t."""
    mechanism = design()
    study = MixedStudy(CHAIN.compiled(), (mechanism.compiled(),), 1400, 1500)
    errors = np.stack([study.squared_errors(32, seed, 2)[:, 0] for seed in range(5000)])
    truth = mechanism.predicted_mse or errors.mean()
    _, low, high = intervals.mean_interval(errors, 0.05)
    half = stats.t.isf(0.025, 31) * stats.sem(errors, axis=1)
    student = np.mean(np.abs(errors.mean(axis=1) - truth) <= half)
    covered = np.mean((low <= truth) & (truth <= high))
    many = errors[: 16 * 312].reshape(312, 512)
    _, low, high = intervals.mean_interval(many, 0.05)
    wider = np.mean((high - low) / (2 * stats.t.isf(0.025, 511) * stats.sem(many, axis=1)))
    print(mechanism.name, "covered", covered, "Student's t", student, "wider with 512 streams", wider)
    assert covered >= 0.95 > student
    assert wider < 1.05


# --- rare errors ----------------------------------------------------------------------------------

SIZES = ErrorSizes(0.01, 5.0)


def with_events(n, n_events, size=0.5):
    values = np.full(n, 0.001)
    values[:n_events] = size
    return values


@pytest.mark.parametrize("n_events", [0, 1, 2, 15])
@pytest.mark.parametrize("n", [16, 17, 320])
@pytest.mark.parametrize("level", [0.05, 1e-5])
def test_rare_errors_have_an_exact_binomial_interval(n, n_events, level):
    values = with_events(n, n_events)
    assert intervals.is_rare(values, SIZES)
    found = stats.binomtest(n_events, n).proportion_ci(1 - level, method="exact")
    low, high = intervals.mse_interval(values, level, SIZES)
    assert low == pytest.approx(found.low * 0.01, rel=1e-9)
    assert high == pytest.approx(found.high * 5 + (1 - found.high) * 0.01, rel=1e-9)
    assert low <= values.mean() <= high


@pytest.mark.parametrize(
    ("n", "n_events", "is_rare"),
    [(16, 15, True), (16, 16, False), (320, 16, False), (320, 15, True), (4, 4, False), (4, 3, True), (2, 0, True)],
)
def test_errors_are_rare_below_sixteen_events_unless_all_have_one(n, n_events, is_rare):
    values = with_events(n, n_events)
    assert ENOUGH == 16
    assert intervals.is_rare(values, SIZES) == is_rare
    assert intervals.count_events(values, SIZES) == n_events
    assert not intervals.is_rare(values, None)
    if not is_rare:
        _, low, high = intervals.mean_interval(values, 0.05)
        assert intervals.mse_interval(values, 0.05, SIZES) == (max(low, 0), high)


@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("largest", [0.02, 1.0, 1e4])
def test_bounds_hold_whatever_the_distribution_is(n, largest):
    """Of three sizes, none, just an event, and the largest: by enumeration, for all probabilities of a grid."""
    sizes = ErrorSizes(0.01, largest)
    atoms = np.array([0.0, 0.0100001, largest])
    counts = [x for x in itertools.product(range(n + 1), repeat=3) if sum(x) == n and x[0] > max(0, n - ENOUGH)]
    ends = {x: intervals.mse_interval(np.repeat(atoms, x), 0.05, sizes) for x in counts}
    for p in itertools.product([0.001, 0.01, 0.1, 0.3, 0.6], repeat=2):
        probabilities = np.array([1 - sum(p), *p])
        if probabilities[0] < 0:
            continue
        truth = float(probabilities @ atoms)
        missed = sum(
            stats.multinomial.pmf(x, n, probabilities) for x, (low, high) in ends.items() if not low <= truth <= high
        )
        assert missed <= 0.05


def test_differences_are_paired_where_errors_are_not_rare():
    rng = np.random.default_rng(2)
    first, second = rng.gamma(2, size=(2, 40))
    expected = reference.skewed_interval(first - second, 0.05)
    for sizes in ((None, None), (SIZES, None), (SIZES, SIZES)):
        assert intervals.difference_interval(first, second, 0.05, sizes) == pytest.approx(expected)


def test_differences_with_rare_errors_are_of_two_intervals():
    rare, other = with_events(40, 3), np.random.default_rng(2).gamma(2, size=40)
    low, high = intervals.mse_interval(rare, 0.025, SIZES)
    low_of_other, high_of_other = intervals.mse_interval(other, 0.025)
    expected = low - high_of_other, high - low_of_other
    assert intervals.difference_interval(rare, other, 0.05, (SIZES, None)) == pytest.approx(expected)
    mirrored = intervals.difference_interval(other, rare, 0.05, (None, SIZES))
    assert mirrored == pytest.approx((-expected[1], -expected[0]))
    low, high = intervals.difference_interval(rare, rare, 0.05, (SIZES, SIZES))
    assert low < -0.1
    assert high > 0.1
