"""Bounds and ideals where the spectrum has zeros on the circle, against a water-filling of its own."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.designs import designed

from dpfast import ARMA, Filter, MarkovChain, Privacy, decision_feedback, lmmse, optimal, robust, zero_forcing
from dpfast.design.prefilter.circles_in_a_row import CirclesInARow
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.majorization import Majorization, joint_optimum, sample
from dpfast.design.prefilter.objectives import resolve_on_circle
from dpfast.design.prefilter.water_filling import smoother_water_filling, zero_forcing_mse
from dpfast.filters.spectral_factor import sum_zeros
from dpfast.filters.warped_circle import make_circle

# angles of the zeros, each as often as it counts; a pole r of the spectrum
MODELS = {
    "difference": ([0.0], 0.0),
    "twice": ([0.0, 0.0], 0.0),
    "at pi": ([math.pi], 0.5),
    "both ends": ([0.0, math.pi], 0.0),
    "season 4": ([0.0, math.pi / 2, -math.pi / 2, math.pi], 0.0),
    "season 7": ([2 * math.pi * k / 7 for k in range(-3, 4)], 0.3),
    "season 12": ([2 * math.pi * k / 12 for k in range(-5, 7)], 0.0),
    "between, twice": ([1.0, -1.0, 1.0, -1.0], -0.4),
}
TARGETS = {"itself": ([1.0], [1.0]), "pole .9": ([1.0], [1.0, -0.9]), "difference": ([1.0, -1.0], [1.0])}
NOISE = [1e-9, 1e-7, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0, 30.0, 1e3]


def model(name):
    angles, pole = MODELS[name]
    return ARMA(np.atleast_1d(np.poly(np.exp(1j * np.array(angles)))).real, [1, -pole])


def brute_force(name, target, noise, n):
    """Least MSE of a smoother: <P (|F| - |K|)²> + c² <|K|>², |K| = (|F| - c² m/P)₊, on n graded nodes.

    Nodes of Gauss in panels that shrink by a constant factor towards every zero; m from a sorted list of cutoffs.
    """
    angles, pole = MODELS[name]
    b, a = target
    roots = np.roots(b) if len(b) > 1 else np.empty(0)
    centres = np.unique(np.round(np.abs([0.0, math.pi, *angles, *np.angle(roots)]), 12))
    middles = np.concatenate([[0.0], (centres[1:] + centres[:-1]) / 2, [math.pi]])
    per_side = n // (8 * 2 * len(centres))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    distance, side, near, weight = [], [], [], []
    for i, centre in enumerate(centres):
        for sign, width in ((-1, centre - middles[i]), (1, middles[i + 1] - centre)):
            if width > 0:
                edges = np.concatenate([[0.0], width * np.geomspace(1e-16, 1, per_side)])
                half = np.diff(edges) / 2
                distance.append((half[:, None] * nodes + (edges[1:] + edges[:-1])[:, None] / 2).ravel())
                weight.append((half[:, None] * weights / math.pi).ravel())
                side.append(np.full(len(distance[-1]), sign))
                near.append(np.full(len(distance[-1]), centre))
    distance, side, near, weight = (np.concatenate(x) for x in (distance, side, near, weight))

    def factor(angle):
        """|1 - e^{i(angle - ω)}|², from the distance to the nearest zero where that is this one."""
        apart = near - abs(angle)
        apart[np.abs(apart) < 1e-9] = 0
        return (
            4 * np.sin((apart + side * distance) / 2) ** 2
            if angle >= 0
            else 4 * np.sin((near + abs(angle) + side * distance) / 2) ** 2
        )

    omega = near + side * distance
    psd = np.prod([factor(x) for x in angles], axis=0) / np.abs(1 - pole * np.exp(-1j * omega)) ** 2
    z = np.exp(-1j * omega)
    gain = np.abs(np.polynomial.polynomial.polyval(z, b) / np.polynomial.polynomial.polyval(z, a))
    if len(roots):  # the difference: |F|² is the factor of its zero
        gain = np.sqrt(factor(0.0))
    order = np.argsort(-gain * psd)
    g, p, w = gain[order], psd[order], weight[order]
    m = np.cumsum(w * g) / (1 + noise**2 * np.cumsum(w / p))  # if the first so many are not cut off
    active = noise**2 * m < g * p
    last = np.flatnonzero(active)[-1]
    k = np.where(np.arange(len(g)) <= last, noise**2 * m[last] / p, g)  # |F| - |K|
    return float((w * p * k**2).sum() + noise**2 * m[last] ** 2)


def cover():
    """Every model with every noise once, targets taking turns."""
    names = list(TARGETS)
    return [(m, names[(i + j) % 3], c) for i, m in enumerate(MODELS) for j, c in enumerate(NOISE)]


@pytest.mark.parametrize(("name", "target", "noise"), cover()[::7])
def test_the_smoothers_ideal_is_that_of_brute_force(name, target, noise):
    check_smoother(name, target, noise, 2**17)


def check_smoother(name, target, noise, n):
    water = smoother_water_filling(Problem(Filter(*TARGETS[target]), model(name), noise**2))
    assert water.mse == pytest.approx(brute_force(name, TARGETS[target], noise, n), rel=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", MODELS)
def test_the_smoothers_ideal_is_that_of_brute_force_everywhere(name, target, noise):
    check_smoother(name, target, noise, 2**20)


def check_order(name, target, noise, lag):
    privacy = Privacy.from_gdp(1, 1e-6, max_change=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gaps and of orders that are not enough
        m = optimal(Filter(*TARGETS[target]), privacy, model(name), lag=lag, tolerance=1e-2)
    assert m.lower_bound_mse <= m.ideal_mse * (1 + 1e-12)
    assert m.ideal_mse <= m.predicted_mse * (1 + 1e-10)
    forced = designed(zero_forcing, Filter(*TARGETS[target]), privacy)
    assert m.lower_bound_mse <= forced.ideal_mse * (1 + 1e-12)
    assert forced.ideal_mse <= forced.predicted_mse * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "lag", "noise"),
    [
        *(("difference", None, c) for c in (1e-9, 1e-5, 1e-3, 1.0)),
        *(("season 4", None, 1e-9), ("season 4", None, 1e-3)),
        ("both ends", 0, 1e-3),
        *(("twice", 5, 1e-5), ("twice", 5, 1e-3)),  # with less noise it takes long to design
        *(
            pytest.param(*x, marks=pytest.mark.long)
            for x in (
                *(("season 4", None, 1e-5), ("season 4", None, 1.0)),
                *(("both ends", 0, 1e-9), ("both ends", 0, 1e-5), ("both ends", 0, 1.0)),
                *(("twice", 5, 1e-6), ("twice", 5, 1.0)),
            )
        ),
    ],
)
def test_bounds_are_below_ideals_and_ideals_below_what_is_reached(name, lag, noise):
    check_order(name, "itself", noise, lag)


@pytest.mark.long
@pytest.mark.parametrize("lag", [None, 0, 5, 60, 5000])
@pytest.mark.parametrize(("name", "target", "noise"), cover())
def test_bounds_are_below_ideals_everywhere(name, target, noise, lag):
    check_order(name, target, noise, lag)


def check_order_for_several(name, target, noise, lag, events, apart):
    """Of persons of several events, for whom the worst times are found too."""
    privacy = replace(Privacy.from_gdp(1, 1e-6, max_change=noise), max_events=events, min_separation=apart)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forced = zero_forcing(Filter(*TARGETS[target]), privacy)
        designs = [
            design(Filter(*TARGETS[target]), privacy, model(name), lag=lag, tolerance=1e-2)
            for design in (optimal, lmmse)
        ]
    bounded = [m for m in designs if m.lower_bound_mse is not None]
    assert designs[0] in bounded
    for m in bounded:
        assert m.lower_bound_mse <= m.ideal_mse * (1 + 1e-12)
        assert m.ideal_mse <= m.predicted_mse * (1 + 1e-10)
        assert m.lower_bound_mse <= min(x.predicted_mse for x in (*designs, forced)) * (1 + 1e-10)
    assert forced.lower_bound_mse <= forced.predicted_mse * (1 + 1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("events", "apart"), [(2, 1), (2, 4), (3, 7), (50, 1)])
@pytest.mark.parametrize(("name", "target", "noise"), cover())
def test_bounds_for_several_events_everywhere(name, target, noise, events, apart):
    check_order_for_several(name, target, noise, None, events, apart)


@pytest.mark.long
@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.parametrize(("name", "target", "noise"), cover()[::11])  # each takes up to minutes
def test_bounds_for_two_events_at_some_lags(name, target, noise, lag):
    check_order_for_several(name, target, noise, lag, 2, 1)


def check_seasons(seasons, noise, lag):
    """A seasonal difference is the difference in powers of z, on another circle: no bound is above the other error."""
    one, several = (
        joint_optimum(Problem(Filter([1.0]), ARMA([1, *np.zeros(n - 1), -1]), noise**2), n * lag, 1e-8)
        for n in (1, seasons)
    )
    assert several.lower_bound <= one.mse * (1 + 1e-9)
    assert one.lower_bound <= several.mse * (1 + 1e-9)
    assert several.mse == pytest.approx(one.mse, rel=1e-4)
    assert several.mse <= noise**2 * (1 + 1e-12)  # of zero forcing
    return several.mse / one.mse - 1


@pytest.mark.parametrize(
    ("seasons", "noise", "off"),
    [
        (12, 3e-4, 1.2e-6),
        *(pytest.param(*x, marks=pytest.mark.long) for x in ((4, 3e-4, 3e-7), (12, 3e-5, 1e-7))),
    ],
)
def test_a_season_has_the_errors_of_the_difference(seasons, noise, off):
    assert check_seasons(seasons, noise, 100) <= off


@pytest.mark.long
@pytest.mark.parametrize("lag", [0, 5, 100])
@pytest.mark.parametrize("noise", [*NOISE, 3e-5])
@pytest.mark.parametrize("seasons", [2, 3, 4, 7, 12])
def test_seasons_have_the_errors_of_the_difference(seasons, noise, lag):
    check_seasons(seasons, noise, lag)


def check_steps(name, target, noise, lag):
    problem = Problem(Filter(*TARGETS[target]), model(name), noise**2)
    found, forced = joint_optimum(problem, lag, 1e-8), zero_forcing_mse(problem)
    assert found.lower_bound <= forced * (1 + 1e-12)
    assert found.mse <= forced * (1 + 1e-12)
    assert found.gap < 1e-3


@pytest.mark.parametrize(
    ("target", "noise"),
    [
        ("itself", 3e-5),
        pytest.param("pole .9", 3e-5, marks=pytest.mark.long),
        pytest.param("pole .9", 1e-4, marks=pytest.mark.long),
    ],
)
def test_steps_that_do_not_resolve_a_problem_give_no_bound(target, noise):
    check_steps("difference", target, noise, 100)


@pytest.mark.parametrize("size", [2**13, 2**15])
def test_a_circle_that_does_not_resolve_a_problem_gives_no_bound(size):
    problem = Problem(Filter([1.0]), model("difference"), 3e-5**2)
    circle = make_circle(resolve_on_circle(problem, 100, smoother_water_filling(problem).cutoffs)[1].warp, size)
    found = Majorization(sample([problem], [problem], 100, CirclesInARow([circle]))).solve(
        np.ones(size // 2 + 1), 1e-8, 0.0
    )
    assert found.lower_bound <= zero_forcing_mse(problem) < 1e-6 * found.mse


@pytest.mark.long
@pytest.mark.parametrize("lag", [0, 20, 100, 1000])
@pytest.mark.parametrize("noise", [1e-9, 1e-7, 1e-5, 3e-5, 1e-4, 3e-4])
@pytest.mark.parametrize(("name", "target"), [(m, t) for m in ("difference", "twice", "at pi") for t in TARGETS])
def test_no_steps_give_a_false_bound(name, target, noise, lag):
    check_steps(name, target, noise, lag)


def check_order_without_a_model(target, noise, lag):
    """Of the worst input of a power of 1: what no mechanism promises, what the best one does, and what is realised."""
    privacy = Privacy.from_gdp(1, 1e-6, max_change=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = robust(Filter(*target), privacy, mean_square=1.0, lag=lag, tolerance=1e-2)
    assert m.lower_bound_mse <= m.ideal_mse * (1 + 1e-12)
    assert m.ideal_mse <= m.predicted_mse * (1 + 1e-12)
    forced = zero_forcing(Filter(*target), privacy, tolerance=0.3)
    assert m.lower_bound_mse <= forced.ideal_mse * (1 + 1e-12)  # which makes the same error for every input


AVERAGE = ([1 / 12] * 12, [1.0])


@pytest.mark.parametrize(
    ("noise", "lag"),
    [
        *((1e-9, None), (1e-9, 60)),
        *(
            pytest.param(*x, marks=pytest.mark.long)
            for x in ((1e-2, 0), (1e-7, 0), (1e-5, None), (1.0, 5), (30.0, None))
        ),
    ],
)
def test_bounds_without_a_model(noise, lag):
    check_order_without_a_model(TARGETS["difference"], noise, lag)


@pytest.mark.long
@pytest.mark.parametrize("lag", [None, 0, 5, 60])
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("target", [*TARGETS.values(), AVERAGE], ids=[*TARGETS, "average"])
def test_bounds_without_a_model_everywhere(target, noise, lag):
    check_order_without_a_model(target, noise, lag)


@pytest.mark.parametrize(
    ("seasons", "change"), [(4, 3e-3), (1, 1e-3), (2, 1e-3), (7, 1e-3), (12, 3e-3), (7, 1e-4), (12, 1e-4)]
)
def test_seasons_as_they_were_reported(seasons, change):
    """All are the difference in powers of z; at 1e-4 a pole of the best receiver is nearer than a filter may have."""
    privacy = Privacy.from_gdp(1, 1e-6, max_change=change)
    found = lmmse(Filter([1.0]), privacy, ARMA([1, *np.zeros(seasons - 1), -1]))
    single = smoother_water_filling(Problem(Filter([1.0]), ARMA([1, -1]), (privacy.noise_multiplier * change) ** 2))
    assert found.ideal_mse == found.lower_bound_mse == pytest.approx(single.mse, rel=1e-9)
    assert found.lower_bound_mse <= found.predicted_mse <= found.ideal_mse * (1 + 1e-3)


PAIRS = [(a, b) for a in (0, 1) for b in (0, 1)]
STAY = [[0.75, 0.25], [0.25, 0.75]]
ARRIVALS = MarkovChain([[STAY[b][d] if b == c else 0.0 for c, d in PAIRS] for a, b in PAIRS], [b - a for a, b in PAIRS])


@pytest.mark.parametrize(
    "source",
    [
        *(ARRIVALS, ARMA([1, 1e-8 - 1], [1, -0.5])),
        *(pytest.param(ARMA([1, e - 1], [1, -0.5]), marks=pytest.mark.long) for e in (3e-9, 3e-8)),
    ],
)
def test_spectra_that_vanish_at_zero_or_nearly(source):
    target, privacy = Filter([1], [1, -0.9]), Privacy(1, 1e-6)
    smoothed, best = (design(target, privacy, source, lag=None, tolerance=0.01) for design in (lmmse, optimal))
    assert smoothed.ideal_mse <= smoothed.predicted_mse <= smoothed.ideal_mse * 1.01
    assert best.predicted_mse == smoothed.predicted_mse
    if source is ARRIVALS:
        assert decision_feedback(target, privacy, source).ideal_mse > 0


def test_a_zero_of_the_spectrum_beside_the_reflection_of_a_pole():
    found = lmmse(Filter([0.81, -0.9, 1], [1, -0.9, 0.81]), Privacy(1, 0.01), ARMA([1, -3], [1, -0.6]))
    assert found.predicted_mse == pytest.approx(found.ideal_mse, rel=1e-3)


def test_zeros_of_a_sum_with_a_root_reflected_into_one_of_the_other():
    zeros = sum_zeros([3, 0.24156278], [0.6, 1 / 3], 3.5598278902196947)
    assert np.abs(zeros - 1 / 3).min() < 1e-15


@pytest.mark.parametrize("noise", [1e-7, 1e-6])
def test_zeros_of_the_target_beside_cutoffs_that_rounding_hides(noise):
    """There the margin has one sign in an array of angles, and another alone."""
    average = [1 / 12] * 12
    found = smoother_water_filling(Problem(Filter(average), model("difference"), noise**2)).mse
    forced = zero_forcing(Filter(average), Privacy.from_gdp(1, 1e-6, max_change=noise), tolerance=0.3).ideal_mse
    assert found == pytest.approx(forced, rel=1e-4)  # hardly anything is cut off
