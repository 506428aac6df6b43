"""The joint optimum: reference values, certificates, limits, laws, and what is realised of it."""

import itertools
import json
import math
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from helpers.covers import long_but, pairwise
from helpers.designs import designed
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast import (
    ARMA,
    ConvergenceWarning,
    DesignError,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    lmmse,
    monte_carlo,
    optimal,
)
from dpfast.design.prefilter import majorization
from dpfast.design.prefilter.circles_in_a_row import CirclesInARow
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.majorization import joint_optimum
from dpfast.design.prefilter.water_filling import smoother_water_filling
from dpfast.filters.warped_circle import make_circle

CASES = json.loads((Path(__file__).parent.parent / "data" / "designs.json").read_text())["cases"]
EXAMPLE = Filter([1, 0.995], [1, -0.995])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PAPER = Privacy(math.log(3), 0.05, calibration="paper")
EXACT = Privacy(math.log(3), 0.05)
DIFFERENCE = Filter([1, -1])


def solved(target, model, cost, lag, goal=1e-8):
    return joint_optimum(Problem(target, model, cost), lag, goal)


# --- values ---------------------------------------------------------------------------------------

REFERENCES = [*zip(range(len(CASES)), itertools.cycle([0, 5]), strict=False)]
QUICK = [x for x in REFERENCES if CASES[x[0]]["id"] in (1, 5)]


@pytest.mark.parametrize(
    ("case", "lag", "tolerance"),
    [
        *long_but([(CASES[i], lag, 0.01) for i, lag in REFERENCES], [(CASES[i], lag, 0.01) for i, lag in QUICK]),
        *(pytest.param(case, lag, 1e-3, marks=pytest.mark.long) for case in CASES for lag in (0, 5)),
    ],
    ids=lambda x: f"{x['id']}-{x['name']}" if isinstance(x, dict) else str(x),
)
def test_reference_values_and_their_certificates(case, lag, tolerance):
    privacy = Privacy(case["epsilon"], case["delta"], max_change=case["max_change"], calibration="paper")
    target, model = Filter(**case["target"]), ARMA(**case["signal_shaping"])
    mechanism = optimal(target, privacy, model, lag=lag, tolerance=tolerance)
    reference = case["optimal_mse"][str(lag)]
    assert mechanism.ideal_mse == pytest.approx(reference, rel=1e-7)
    assert 1 - 1e-9 <= mechanism.ideal_mse / mechanism.lower_bound_mse <= 1 + 1e-7
    assert 1 - 1e-7 <= mechanism.predicted_mse / reference <= 1 + tolerance


@pytest.mark.parametrize(
    ("privacy", "lag", "rmse"),
    # the others are those of test_example
    long_but([(PAPER, 0, 5.6236), (PAPER, 1, 5.4740), (EXACT, 1, 4.2135), (EXACT, 20, 3.6911)], [(EXACT, 1, 4.2135)]),
    ids=lambda x: getattr(x, "calibration", str(x)),
)
def test_the_example(privacy, lag, rmse):
    mechanism = designed(optimal, EXAMPLE, privacy, CHAIN, lag=lag)
    assert mechanism.ideal_rmse == pytest.approx(rmse, abs=6e-5)
    assert mechanism.ideal_mse <= mechanism.predicted_mse * (1 + 1e-9) <= mechanism.ideal_mse * (1 + 1.001e-3)
    assert mechanism.prefilter.order <= 4
    assert mechanism.lag == lag
    assert mechanism.noise_std == privacy.noise_std(mechanism.prefilter)
    assert mechanism.predicted_mse < lmmse(EXAMPLE, privacy, CHAIN, lag=lag, tolerance=0.1).ideal_mse


def test_monte_carlo_agrees_with_the_prediction():
    mechanisms = [designed(optimal, EXAMPLE, PAPER, CHAIN, lag=lag, tolerance=0.1) for lag in (0, 5, None)]
    # false alarms of three intervals: 3e-7
    study = monte_carlo(mechanisms, CHAIN, n_streams=256, n_samples=4000, seed=5, confidence=1 - 1e-7)
    for mechanism in mechanisms:
        low, high = study[mechanism.name].interval
        assert low < mechanism.predicted_rmse < high
        assert high / low < 1.1


SOURCES = [CHAIN, ARMA([1, -1]), IndependentLevels([0, 1, 5], [0.7, 0.2, 0.1])]


@pytest.mark.parametrize(
    ("target", "model"),
    long_but([*itertools.product([EXAMPLE, DIFFERENCE], SOURCES)], [(EXAMPLE, SOURCES[1]), (DIFFERENCE, SOURCES[2])]),
)
def test_the_smoother_is_that_of_lmmse(target, model):
    ours, theirs = (design(target, EXACT, model, lag=None, tolerance=0.01) for design in (optimal, lmmse))
    assert ours.lag is None
    assert ours.prefilter == theirs.prefilter
    assert (ours.ideal_mse, ours.predicted_mse) == (theirs.ideal_mse, theirs.predicted_mse)
    assert ours.lower_bound_mse == ours.ideal_mse


# --- another method -------------------------------------------------------------------------------


def cone_program(target, shaping, cost, lag, taps, n=512):
    """The same problem for an FIR K, on a uniform grid: K's taps from cvxpy, J from there."""
    omega = np.linspace(0, np.pi, n + 1)
    weights = np.full(n + 1, 1 / n)
    weights[[0, -1]] /= 2
    wanted = target.response(omega) * np.exp(-1j * lag * omega)
    exponentials = np.exp(-1j * np.outer(omega, np.arange(taps)))
    k, size = cp.Variable(taps), cp.Variable(n + 1)
    parts = cp.vstack([exponentials.real @ k, exponentials.imag @ k])
    scale = np.sqrt(weights) * np.abs(shaping.response(omega))
    error = cp.hstack(
        [
            cp.multiply(scale, exponentials.real @ k - wanted.real),
            cp.multiply(scale, exponentials.imag @ k - wanted.imag),
        ]
    )
    goal = cp.sum_squares(error) + cost * cp.square(weights @ size)
    return cp.Problem(cp.Minimize(goal), [cp.norm(parts, axis=0) <= size]).solve(solver="CLARABEL")


@pytest.mark.parametrize(
    ("target", "model", "lag", "taps"),
    long_but(
        {
            "one pole": (Filter([1, 0.3], [1, -0.5]), CHAIN, 2, 40),
            "negative pole": (Filter([1], [1, 0.6]), ARMA([1, 0.5], [1, -0.3]), 0, 40),
            "zeros outside, and on the circle": (Filter([1, -2]), ARMA([1, -1]), 1, 40),
            "difference": (DIFFERENCE, CHAIN, 3, 60),
        },
        ["one pole", "zeros outside, and on the circle"],
    ),
)
def test_a_cone_program_finds_the_same(target, model, lag, taps):
    found = solved(target, model, 0.7, lag)
    assert cone_program(target, model.shaping, 0.7, lag, taps) == pytest.approx(found.mse, rel=2e-6)


def test_a_static_target_and_signal_in_closed_form():
    # F = 1 and white noise of variance V: K is a constant k, J = V(1-k)² + c²k²
    found = solved(Filter([1]), ARMA([1.5]), 0.8, 0)
    assert found.mse == pytest.approx(2.25 * 0.8 / (2.25 + 0.8), rel=1e-12)
    assert found.lower_bound == pytest.approx(found.mse, rel=1e-12)
    np.testing.assert_allclose(found.columns[0].product, 2.25 / (2.25 + 0.8), rtol=1e-10)


# --- certificates ---------------------------------------------------------------------------------

ZEROS = {
    "none": CHAIN,
    "at 1": ARMA([1, -1]),
    "at -1": ARMA([1, 1], [1, -0.5]),
    "double": ARMA([1, -2, 1], [1, -0.9]),
    "pair": ARMA([1, -1, 1]),
    "near 1": ARMA([1, -0.99999], [1, -0.5]),
}


BESIDE_ZEROS = [*ZEROS], [EXAMPLE, DIFFERENCE, Filter([1, -2]), Filter(np.full(10, 0.1))], [0, 5]


@pytest.mark.parametrize(
    "cases",
    [pairwise(*BESIDE_ZEROS)[::2], pytest.param([*itertools.product(*BESIDE_ZEROS)], marks=pytest.mark.long)],
    ids=["few", "all"],
)
def test_zeros_of_the_spectrum_on_the_circle(cases):
    gaps = [(*case, solved(case[1], ZEROS[case[0]], 1.0, case[2], goal=2e-8).gap) for case in cases]
    assert [x for x in gaps if not x[-1] <= 1e-7] == []


LONG_LAGS = [
    (EXAMPLE, 50, 1e-7),
    (DIFFERENCE, 500, 1e-5),
    (EXAMPLE, 2000, 1e-5),
    (DIFFERENCE, 50, 1e-7),
    (Filter(np.full(50, 0.02)), 50, 1e-7),
    (EXAMPLE, 200, 1e-5),
    (Filter([1], [1, -0.9999]), 200, 1e-5),
]


@pytest.mark.parametrize(("target", "lag", "gap"), long_but(LONG_LAGS, LONG_LAGS[:3]))
def test_long_lags(target, lag, gap):
    found = solved(target, CHAIN, PAPER.noise_multiplier**2, lag, goal=gap / 5)
    assert found.gap <= gap
    smoother = smoother_water_filling(Problem(target, CHAIN, PAPER.noise_multiplier**2)).mse
    assert found.lower_bound >= smoother * (1 - 1e-12)


def test_a_bound_is_a_bound_after_few_steps(monkeypatch):
    exact = solved(DIFFERENCE, CHAIN, EXACT.noise_multiplier**2, 20, 1e-6)
    monkeypatch.setattr(majorization, "_EFFORT", 0)
    monkeypatch.setattr(majorization, "_FEWEST", 6)
    with pytest.warns(ConvergenceWarning, match=r"optimum of lag 20 is certified to a relative gap of .*e-0. only"):
        mechanism = optimal(DIFFERENCE, EXACT, CHAIN, lag=20, tolerance=0.1)
    assert mechanism.ideal_mse > mechanism.lower_bound_mse * (1 + 1e-6)
    assert mechanism.lower_bound_mse <= exact.mse
    assert exact.lower_bound <= mechanism.ideal_mse


@pytest.mark.long
def test_what_steps_do_not_resolve_is_not_iterated_for(monkeypatch):
    """Where the gap is that of the steps, going on does not close it: a few certificates on each large circle."""
    certify, certified = majorization.Majorization._bound_by_iterate, []

    def counted(iteration, *arguments):
        certified.append(iteration.circle.longest)
        return certify(iteration, *arguments)

    monkeypatch.setattr(majorization.Majorization, "_bound_by_iterate", counted)
    assert solved(DIFFERENCE, ARMA([1, 0.5]), 1e-5, 0).gap <= 1e-7
    large = [size for size in certified if size >= 2**15]
    assert len(set(large)) >= 3
    assert len(large) < 30


def solved_coarsely(monkeypatch, size, *problem):
    """Solve on circles of `size` and of twice as many steps, whatever the problem needs."""
    with monkeypatch.context() as patch:
        patch.setattr(majorization, "resolve_on_circle", lambda problem, *_: (problem, make_circle(0.0, size)))
        patch.setattr(majorization, "SHORTEST", size)
        patch.setattr(majorization, "MOST_STEPS", 2 * size)
        found = solved(*problem)
    assert found.columns[0].circle.size == 2 * size
    return found


@pytest.mark.parametrize("size", [32, 128, 512])
def test_what_steps_do_not_resolve_is_taken_off_the_bound(monkeypatch, size):
    exact = solved(EXAMPLE, CHAIN, 1.0, 3)
    coarse = solved_coarsely(monkeypatch, size, EXAMPLE, CHAIN, 1.0, 3)
    assert coarse.mse > exact.mse * (1 + 1e-4)
    assert coarse.lower_bound <= exact.mse


def test_certificates_are_tight_and_never_above_the_optimum(monkeypatch):
    by_iterate, by_phase = majorization.Majorization._bound_by_iterate, majorization.Majorization._bound_by_phase
    certified = {"iterate": [], "phase": []}

    def keep_iterate(iteration, noise, k, error):
        bound = by_iterate(iteration, noise, k, error)
        distortion = iteration.mean(iteration.psd * np.abs(error[0]) ** 2)
        certified["iterate"].append((iteration.circle.longest, distortion + bound))
        return bound

    def keep_phase(iteration, k, size):
        bound = by_phase(iteration, k, size)
        certified["phase"].append((iteration.circle.longest, bound))
        return bound

    monkeypatch.setattr(majorization.Majorization, "_bound_by_iterate", keep_iterate)
    monkeypatch.setattr(majorization.Majorization, "_bound_by_phase", keep_phase)
    # it ends after so many steps, not where the certificates say that it may
    monkeypatch.setattr(majorization, "_EFFORT", 0)
    monkeypatch.setattr(majorization, "_FEWEST", 300)
    found = solved_coarsely(monkeypatch, 512, Filter([1], [1, -0.9]), CHAIN, 0.5, 2, -1.0)
    for bounds in certified.values():
        largest = max(bound for size, bound in bounds if size == found.columns[0].circle.size)
        assert largest == pytest.approx(found.mse, rel=1e-9)


def test_all_that_more_steps_change_is_taken_off_the_bound(monkeypatch):
    problem = Filter([1], [1, -0.9]), CHAIN, 0.5, 2
    before, after = (solved_coarsely(monkeypatch, size, *problem) for size in (64, 128))
    change = before.mse - after.mse
    assert change > 1e-5 * after.mse
    assert after.mse - after.lower_bound == pytest.approx(change, rel=1e-3)


def test_ripples_from_node_to_node_do_not_grow():
    """Where P_u is zero an over-relaxed step may grow them, until no number of steps certifies anything."""
    assert solved(EXAMPLE, ARMA([1, -1]), 1.0, 0, goal=2e-8).columns[0].circle.size <= 2**15


def test_a_zero_of_the_product_leaves_a_bound():
    problem = Problem(DIFFERENCE, CHAIN, 1.0)
    iteration = majorization.Majorization(
        majorization.sample([problem], [problem], 0, CirclesInARow([circle := make_circle(0.0, 4096)]))
    )
    k = DIFFERENCE.response(circle.grid.omega)
    k[0] = 0
    assert iteration._bound_by_phase(k[None], np.abs(k)) <= solved(DIFFERENCE, CHAIN, 1.0, 0).mse


# --- laws -----------------------------------------------------------------------------------------

modulus = st.floats(0, 0.97)
roots = st.lists(
    st.one_of(st.floats(-0.97, 0.97).map(lambda r: [r]), st.tuples(modulus, st.floats(0.1, 3)).map(lambda x: pair(*x))),
    max_size=2,
).map(lambda x: [root for roots in x for root in roots])


def polynomial(roots):
    return np.atleast_1d(np.poly(roots)).real


def pair(radius, angle):
    return [radius * np.exp(1j * angle), radius * np.exp(-1j * angle)]


def filters(gain=1.0):
    return st.tuples(roots, roots).map(lambda x: Filter(gain * polynomial(x[0]), polynomial(x[1])))


models = st.tuples(roots, roots).map(lambda x: ARMA(polynomial(x[0]), polynomial(x[1])))
costs = st.floats(-2, 2).map(lambda x: 10**x)
lags = st.integers(0, 8)


@given(target=filters(), model=models, cost=costs, lag=lags, more=st.integers(1, 20))
@settings(max_examples=5)
def test_it_does_not_increase_with_the_lag_down_to_the_smoother(target, model, cost, lag, more):
    early, late = solved(target, model, cost, lag), solved(target, model, cost, lag + more)
    smoother = smoother_water_filling(Problem(target, model, cost)).mse
    assert early.mse >= late.mse * (1 - 1e-7)
    assert late.mse >= smoother * (1 - 1e-9)
    assert early.lower_bound >= smoother * (1 - 1e-9)


@given(target=filters(), model=models, lag=lags, given=filters())
@settings(max_examples=10)
def test_it_is_below_every_other_causal_design(target, model, lag, given):
    found = solved(target, model, EXACT.noise_multiplier**2, lag)
    other = lmmse(target, EXACT, model, lag=lag, prefilter=given)
    assert found.lower_bound <= other.predicted_mse * (1 + 1e-9)
    forced = EXACT.noise_multiplier**2 * mean_gain(target) ** 2
    assert found.mse <= forced * (1 + 1e-7)
    assert found.mse <= (target * model.shaping).h2_norm() ** 2 * (1 + 1e-7)  # no estimate at all


def mean_gain(target):
    problem = Problem(target, None, 1.0)
    grid = problem.grid()
    return grid.mean(problem.gain(grid.omega))


@given(target=filters(), model=models, cost=costs, lag=lags, scale=st.floats(-3, 3).map(lambda x: 10**x))
@settings(max_examples=8)
def test_scaling(target, model, cost, lag, scale):
    base = solved(target, model, cost, lag).mse
    assert solved(target * scale, model, cost, lag).mse == pytest.approx(scale**2 * base, rel=1e-7)
    louder = ARMA(model.shaping.b * scale, model.shaping.a)
    assert solved(target, louder, cost * scale**2, lag).mse == pytest.approx(scale**2 * base, rel=1e-7)


LOUD = [EXAMPLE, Filter([1, -2]), Filter(np.full(5, 0.2)), DIFFERENCE], [CHAIN, ARMA([1, 0.5])], [0, 3]


@pytest.mark.parametrize(
    ("target", "model", "lag"),
    long_but(
        [*itertools.product(*LOUD)],
        [(LOUD[0][0], CHAIN, 3), (LOUD[0][1], LOUD[1][1], 0), (DIFFERENCE, CHAIN, 3)],
    ),
)
def test_without_noise_it_becomes_zero_forcing(target, model, lag):
    ratios = [solved(target, model, cost, lag).mse / (cost * mean_gain(target) ** 2) for cost in (1e-2, 1e-5, 1e-9)]
    assert ratios[0] <= ratios[1] * (1 + 1e-9) <= ratios[2] * (1 + 2e-9) <= 1 + 1e-7
    assert ratios[2] == pytest.approx(1, rel=1e-4)


def test_with_endless_noise_the_estimate_is_the_mean():
    variance = (EXAMPLE * CHAIN.shaping).h2_norm() ** 2
    for lag in (0, 5):
        assert solved(EXAMPLE, CHAIN, 1e12, lag).mse == pytest.approx(variance, rel=1e-6)


def test_with_a_long_lag_it_becomes_the_smoother():
    smoother = lmmse(EXAMPLE, PAPER, CHAIN, tolerance=0.3).ideal_mse
    assert solved(EXAMPLE, CHAIN, PAPER.noise_multiplier**2, 1000, 2e-6).mse == pytest.approx(smoother, rel=1e-5)


# --- realisation ----------------------------------------------------------------------------------

TARGETS = {
    "pole .9999": Filter([1], [1, -0.9999]),
    "pole at the limit": Filter([1], [1, -(1 - 2e-5)]),
    "pole at the other limit": Filter([1], [1, 1 - 2e-5]),
    "near-coincident poles": Filter.from_zpk([], [0.9999, 0.99985], 1.0),
    "two slow ends": Filter.from_zpk([], [0.99, -0.99], 1.0),
    "resonator .9999": Filter([1], [1, -2 * 0.9999 * math.cos(1), 0.9999**2]),
    "resonator .999": Filter([1], [1, -2 * 0.999 * math.cos(0.5), 0.999**2]),
    "poles at both ends": Filter.from_zpk([], [0.999, -0.999], 1.0),
    "moving average of 12": Filter(np.full(12, 1 / 12)),
    "not minimum phase": Filter([1, -2]),
    "sum of two": Filter([1, 1]),
    "delay": Filter([0, 0, 1]),
}
SLOW = ["resonator .999", "poles at both ends"]  # to design
REALISED = [(x, lag, 0.01) for x, lag in zip(TARGETS, itertools.cycle([5, 0]), strict=False) if x not in SLOW]
FAST = ["pole .9999", "not minimum phase"]


@pytest.mark.parametrize(
    ("name", "lag", "tolerance"),
    [
        *long_but(REALISED, [x for x in REALISED if x[0] in FAST]),
        *(pytest.param(name, lag, 1e-3, marks=pytest.mark.long) for name in TARGETS for lag in (0, 5)),
    ],
)
def test_targets_are_realised_within_the_tolerance(name, lag, tolerance):
    mechanism = optimal(TARGETS[name], EXACT, CHAIN, lag=lag, tolerance=tolerance)
    assert 1 - 1e-6 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1 + 1.001 * tolerance
    assert mechanism.ideal_mse / mechanism.lower_bound_mse <= 1 + 1e-7
    assert mechanism.prefilter.order <= 9


@pytest.mark.parametrize("tolerance", long_but([0.1, 1e-2, 1e-4, 1e-6], [0.1, 1e-2]))
def test_a_smaller_tolerance_takes_more_states(tolerance):
    mechanism = designed(optimal, EXAMPLE, PAPER, CHAIN, lag=5, tolerance=tolerance)
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + tolerance * 1.001)
    assert mechanism.prefilter.order == {0.1: 1, 1e-2: 2, 1e-4: 5, 1e-6: 8}[tolerance]


def test_the_summary_tells_order_loss_and_gap():
    text = designed(optimal, EXAMPLE, PAPER, CHAIN, lag=5, tolerance=1e-2).summary()
    assert "2 states" in text
    assert "(MSE +0.57% from the ideal)" in text
    assert "lower bound" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lag": -1}, "lag must be an integer, at least 0"),
        ({"lag": 1.5}, "lag must be an integer"),
        ({"tolerance": 0}, "tolerance must be a number strictly between 0 and 1"),
        ({"model": 3}, "model must"),
        ({"target": Filter([0])}, "target must not be zero"),
        ({"privacy": 1}, "privacy must be a Privacy"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises((ValueError, DesignError), match=message):
        optimal(**{"target": EXAMPLE, "privacy": PAPER, "model": CHAIN} | arguments)
