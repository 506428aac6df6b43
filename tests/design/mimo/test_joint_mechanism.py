"""The joint optimum of streams that depend on one another, against MIMO.md, convex programs, search and simulation."""

import math
import warnings

import cvxpy as cp
import numpy as np
import pytest
from helpers.covers import long_but
from scipy import optimize

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.circle_taps import interpolate
from dpfast.design.mimo.error_behind import least_error, smoothed_error
from dpfast.design.mimo.joint_channels import (
    ChannelsJudgement,
    ChannelsOptimum,
    ChannelsSearch,
    ChannelsStage,
    channels_optimum,
    search_optimum,
)
from dpfast.design.mimo.joint_mechanism import _JointProblem
from dpfast.design.mimo.joint_smoother import smoother_bound
from dpfast.design.mimo.newton_step import NewtonSteps
from dpfast.design.mimo.node_transforms import NodeTransforms
from dpfast.design.mimo.slope_bound import SlopeBound
from dpfast.filters.warped_circle import make_circle
from dpfast.signals.channel_models import joint_model

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
POLES, VARIANCES = np.array([0.5, 0.5, 0.8]), np.array([0.25, 0.25, 1])
ADJACENCIES = ("one_input", "each_input_same_time")


def streams(correlation, poles=POLES, variances=VARIANCES, mean=0.0):
    sizes, m = np.sqrt(variances * (1 - poles**2)), len(poles)
    alike = np.full((m, m), correlation) + (1 - correlation) * np.eye(m)
    return dp.VectorARMA([np.diag(poles)], innovation_covariance=alike * np.outer(sizes, sizes), mean=mean)


def apart(poles=POLES, variances=VARIANCES):
    sizes = np.sqrt(variances * (1 - poles**2))
    return [dp.ARMA([1], [1, -p], innovation_std=x) for p, x in zip(poles, sizes, strict=True)]


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@pytest.mark.parametrize(
    ("adjacency", "correlation", "lag", "optimum"),
    [
        ("one_input", 0.6, 0, 0.056686),
        ("one_input", 0.6, 10, 0.039282),
        ("each_input", 0, 10, 0.091553),
    ],
)
def test_the_values_that_other_programs_found(adjacency, correlation, lag, optimum):
    made = dp.optimal(TARGET, privacy(adjacency), streams(correlation), lag=lag, tolerance=5e-3)
    assert made.ideal_mse == pytest.approx(optimum, abs=5.5e-7)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse <= 1.005 * made.ideal_mse
    assert made.prefilter.shape == (3, 3)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
@pytest.mark.parametrize(("correlation", "lag"), [(-0.4, 2), (0.9, 0), (0.6, 10)])
def test_certificates_of_streams_that_are_alike_or_opposite(correlation, lag, adjacency):
    made = dp.optimal(TARGET, privacy(adjacency), streams(correlation), lag=lag, tolerance=5e-2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_a_prefilter_for_each_of_independent_streams_is_that_of_one_stream_at_a_time(adjacency):
    demand = privacy(adjacency, max_change=[1, 2, 0.5])
    whole = dp.optimal(TARGET, demand, dp.VectorARMA.independent(apart()), lag=2, tolerance=1e-2)
    parts = dp.optimal(TARGET, demand, apart(), lag=2, tolerance=1e-2)
    assert whole.ideal_mse == pytest.approx(parts.ideal_mse, rel=1e-6)
    assert whole.lower_bound_mse <= parts.ideal_mse
    assert parts.lower_bound_mse <= whole.ideal_mse
    assert whole.predicted_mse == pytest.approx(parts.predicted_mse, rel=1e-2)


@pytest.mark.parametrize("design", [dp.optimal, dp.lmmse])
@pytest.mark.parametrize("lag", [0, 3])
def test_one_stream_of_several_is_the_scalar_design(design, lag):
    demand = dp.Privacy(1, 1e-6, max_change=2)
    model = streams(0, np.array([0.5]), np.array([0.25]), mean=3.0)
    scalar = design(SLOW, demand, model.channel(0), lag=lag, tolerance=1e-2)
    several = design(dp.FilterMatrix([[SLOW]]), demand, model, lag=lag, tolerance=1e-2)
    assert several.predicted_mse == pytest.approx(scalar.predicted_mse, rel=1e-10)
    np.testing.assert_allclose(2 * several.prefilter[0, 0].impulse(50), scalar.prefilter.impulse(50), rtol=1e-12)
    if design is dp.optimal:
        assert (several.ideal_mse, several.lower_bound_mse) == (scalar.ideal_mse, scalar.lower_bound_mse)


def least_error_of_gains(gains, root, changes, noise, adjacency):
    """By a convex program: white streams need no memory, and K is a matrix of gains."""
    k = cp.Variable(gains.shape)
    norms = cp.multiply(changes, cp.norm(k, 2, axis=0))
    size = cp.sum_squares(norms) if adjacency == "one_input" else cp.square(cp.sum(norms))
    problem = cp.Problem(cp.Minimize(cp.sum_squares((gains - k) @ root) + noise**2 * size))
    return problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("shape", [(1, 3), (3, 3), (4, 2)])
def test_gains_of_white_streams_are_those_of_a_convex_program(shape, adjacency):
    rng = np.random.default_rng(shape)
    m = shape[1]
    gains, root, changes = rng.standard_normal(shape), rng.standard_normal((m, m)), rng.uniform(0.5, 2, m)
    covariance = root @ root.T + 0.3 * np.eye(m)
    model = dp.VectorARMA(np.zeros((0, m, m)), innovation_covariance=covariance)
    demand = privacy(adjacency, max_change=changes)
    made = dp.optimal(dp.FilterMatrix(gains), demand, model)
    least = least_error_of_gains(gains, np.linalg.cholesky(covariance), changes, demand.noise_multiplier, adjacency)
    assert made.ideal_mse == pytest.approx(least, rel=1e-6)
    assert made.lower_bound_mse == pytest.approx(least, rel=1e-5)
    assert made.lower_bound_mse <= least * (1 + 1e-7)
    assert made.predicted_mse == pytest.approx(least, rel=1e-3)
    assert made.prefilter.n_states == 0


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_no_search_over_short_filters_goes_below(adjacency):
    """G of two taps and H of three, of correlated streams, by descent of the error on a grid."""
    rng, lag = np.random.default_rng(7), 1
    target = dp.FilterMatrix([[dp.Filter(rng.standard_normal(2)) for _ in range(2)] for _ in range(2)])
    model = streams(0.5, np.array([0.4, -0.3]), np.array([1.0, 2.0]))
    demand = privacy(adjacency)
    found = dp.optimal(target, demand, model, lag=lag)
    z = np.exp(-2j * np.pi * np.arange(32) / 32)[:, None, None]
    omega = 2 * np.pi * np.arange(32) / 32
    wanted, psd = z**lag * target.response(omega), model.psd(omega)

    def error(x):
        g, h = x[:4].reshape(2, 1, 2) * np.eye(2), x[4:].reshape(3, 2, 2)
        energies = (g**2).sum(axis=(0, 1))
        change = energies.max() if adjacency == "one_input" else energies.sum()
        left = wanted - (h[0] + h[1] * z + h[2] * z**2) @ (g[0] + g[1] * z)
        distortion = np.einsum("wij,wjk,wik->", left, psd, left.conj()).real / 32
        return distortion + demand.noise_multiplier**2 * change * (h**2).sum()

    starts = 0.5 * rng.standard_normal((2, 16))
    best = min(optimize.minimize(error, x, method="L-BFGS-B", options={"maxiter": 40}).fun for x in starts)
    assert found.lower_bound_mse <= best
    assert found.predicted_mse <= best * 1.001
    assert best <= found.ideal_mse * 1.5


def random_system(seed):
    rng = np.random.default_rng(seed)
    p, m, n = rng.integers([1, 2, 1], [4, 4, 4])
    a, own = (rng.standard_normal((k, k)) for k in (n, m))
    a, own = (x * 0.8 / np.abs(np.linalg.eigvals(x)).max() for x in (a, own))
    target = dp.FilterMatrix.from_state_space(a, *(rng.standard_normal(x) for x in ((n, m), (p, n), (p, m))))
    root = rng.standard_normal((m, m))
    model = dp.VectorARMA([own], innovation_covariance=root @ root.T + 0.1 * np.eye(m))
    return target, model, rng.uniform(0.5, 2, m), int(rng.integers(0, 4))


@pytest.mark.parametrize("seed", range(4))
def test_random_systems_come_within_the_tolerance_of_the_certificate(seed):
    target, model, changes, lag = random_system(seed)
    demand = privacy(ADJACENCIES[seed % 2], max_change=changes)
    made = dp.optimal(target, demand, model, lag=lag, tolerance=1e-2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse <= made.ideal_mse * 1.01


def test_more_is_known_of_streams_that_depend_on_one_another():
    demand, made = privacy("one_input"), {}
    for correlation in (0.0, 0.6):
        made[correlation] = dp.optimal(TARGET, demand, streams(correlation), lag=1, tolerance=1e-3)
    assert made[0.6].predicted_mse < 0.8 * made[0.0].lower_bound_mse
    assert made[0.6].predicted_mse < dp.lmmse(TARGET, demand, streams(0.6), lag=1).predicted_mse
    assert made[0.6].predicted_mse < made[0.0].predict(streams(0.6))


def test_permuted_and_scaled_channels():
    """Louder inputs, of which events are louder too, with all outputs in another order."""
    model, order, scale = streams(0.4), [2, 0, 1], np.array([3.0, 0.5, 100.0])
    base = dp.optimal(TARGET, privacy("one_input"), model, tolerance=1e-2)
    target = dp.FilterMatrix([[row[j] * (1 / scale[j]) for j in order] for row in TARGET.rows[::-1]])
    turned = np.diag(scale)[order]
    other = dp.VectorARMA.from_state_space(model.a, model.b, turned @ model.c, turned @ model.d)
    demand = privacy("one_input", max_change=scale[order])
    made = dp.optimal(target, demand, other, tolerance=1e-2)
    assert made.ideal_mse == pytest.approx(base.ideal_mse, rel=1e-5)
    np.testing.assert_allclose(made.output_mse, base.output_mse[::-1], rtol=1e-2)


def test_what_targets_do_not_see_may_tell_of_what_they_see():
    """Of two streams that are nearly alike the second is published, too, where a person is in one of them."""
    target = dp.FilterMatrix([[SLOW, 0]])
    alike = streams(0.99, np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    alone = dp.optimal(dp.FilterMatrix([[SLOW]]), privacy("one_input"), [alike.channel(0)], tolerance=1e-2)
    made = dp.optimal(target, privacy("one_input"), alike, tolerance=1e-2)
    assert made.predicted_mse < 0.8 * alone.lower_bound_mse
    still = np.zeros((2, 2))
    still[0, 0] = 1.0
    constant = dp.VectorARMA([0.5 * np.eye(2)], innovation_covariance=still)
    made = dp.optimal(dp.FilterMatrix([[SLOW, QUICK]]), privacy("one_input"), constant, tolerance=1e-2)
    assert made.prefilter.shape == (1, 2)
    assert not made.prefilter[0, 1].b.any()
    with pytest.raises(dp.DesignError, match="must use an input that is not constant in the model"):
        dp.optimal(dp.FilterMatrix([[0, QUICK]]), privacy("one_input"), constant)


def test_simulated_errors_are_the_predicted_ones():
    model = streams(0.6, mean=2.0)
    made = dp.optimal(TARGET, privacy("one_input"), model, lag=4, tolerance=1e-2)
    u = model.sample(300, 400, seed=5)
    error = made.simulate(u, seed=7).estimate[..., 150:] - TARGET.apply(u)[..., 146:396]
    of_streams = (error**2).mean(axis=-1)
    deviation = np.abs(of_streams.mean(axis=0) - made.output_mse)
    assert (deviation <= 5 * of_streams.std(axis=0) / math.sqrt(len(u))).all()


def test_it_is_released_and_kept(tmp_path):
    made = dp.optimal(TARGET, privacy("one_input"), streams(0.6), lag=2, tolerance=1e-2)
    plan = dp.exact(made, dp.Inputs(-20, 20, n_streams=3))
    assert plan.guarantee.epsilon <= math.log(3)
    assert plan.predicted_mse <= made.predicted_mse * 1.01
    dp.save(made, tmp_path / "made.json")
    assert dp.load(tmp_path / "made.json") == made


def test_several_events_cost_as_many_times_the_sensitivity():
    several, louder = (
        dp.optimal(TARGET, privacy("one_input", **x), streams(0.6), tolerance=1e-2).ideal_mse
        for x in ({"max_events": 3}, {"max_change": 3.0})
    )
    assert several == pytest.approx(louder, rel=1e-9)


EXTREME = [
    *((dp.optimal, {"prefilter": "diagonal", "lag": 3}, x, 1e-6) for x in ADJACENCIES),
    *((dp.lmmse, {"lag": 3}, x, None) for x in ADJACENCIES),
    *(
        (dp.optimal, {"prefilter": "general", "lag": lag}, adjacency, gap)
        for adjacency, gap in {"one_input": 1e-4, "each_input_same_time": 1e-4, "each_input": 2.5e-3}.items()
        for lag in (3, None)
    ),
]


@pytest.mark.parametrize(("design", "options", "adjacency", "gap"), EXTREME)
def test_changes_of_any_sizes_have_designs(design, options, adjacency, gap):
    """Nothing can be told of the second stream, and the third is hidden for nothing: what is left is the first."""
    moderate, extreme = (
        design(TARGET, privacy(adjacency, max_change=x), streams(0.6), tolerance=1e-2, **options)
        for x in ((1, 1e5, 1e-5), (1, 1e20, 1e-20))
    )
    assert extreme.predicted_mse == pytest.approx(moderate.predicted_mse, rel=1e-2)
    assert extreme.lower_bound_mse <= extreme.predicted_mse
    if gap is None:
        return
    assert extreme.lower_bound_mse == pytest.approx(moderate.lower_bound_mse, rel=max(1e-4, gap))
    assert extreme.ideal_mse == pytest.approx(moderate.ideal_mse, rel=max(1e-4, gap))
    assert extreme.ideal_mse * (1 - gap) <= extreme.lower_bound_mse <= extreme.ideal_mse
    assert extreme.predicted_mse <= 1.01 * extreme.ideal_mse


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("options", [{"prefilter": x, "lag": y} for x in ("diagonal", "general") for y in (3, None)])
def test_streams_may_be_measured_in_any_units(options, adjacency):
    """Also in units that are 1e18 apart: errors are those of the outputs, and prefilters see the same."""
    units, omega = np.array([1.0, 1e9, 1e-9]), np.linspace(0, math.pi, 7)
    target = dp.FilterMatrix([[x * (1 / y) for x, y in zip(row, units.tolist(), strict=True)] for row in TARGET.rows])
    model = streams(0.6, variances=np.array(VARIANCES) * units**2)
    demand = privacy(adjacency, max_change=tuple(units.tolist()))
    usual = dp.optimal(TARGET, privacy(adjacency), streams(0.6), tolerance=1e-2, **options)
    other = dp.optimal(target, demand, model, tolerance=1e-2, **options)
    for name in ("ideal_mse", "lower_bound_mse", "predicted_mse"):
        assert getattr(other, name) == pytest.approx(getattr(usual, name), rel=1e-7)
    expected = usual.prefilter.response(omega)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(other.prefilter.response(omega) * units, expected, atol=1e-5 * scale)


def test_streams_that_are_too_loud_are_named(monkeypatch):
    def lose_digits(problem, found, tolerance):
        raise np.linalg.LinAlgError("3-th leading minor of the array is not positive definite")

    monkeypatch.setattr(_JointProblem, "realize", lose_digits)
    words = r"so loud beside max_change, got standard deviations from 0.005 to 2 times that: .* leave out the loudest"
    with pytest.raises(dp.DesignError, match=words):
        dp.optimal(TARGET, privacy("one_input", max_change=(100, 1, 0.5)), streams(0.6), tolerance=1e-2)


def test_receivers_that_are_rounded_are_warned_of_and_lost_ones_named(monkeypatch):
    """Streams of very different size: one erred 4e13 × the ideal that the nodes of a circle tell."""
    behind = dp.FilterMatrix([[1, 0, 0]])
    monkeypatch.setattr(_JointProblem, "realize", lambda *_: (behind, 1e-4))
    demand = privacy("one_input")
    with pytest.warns(dp.ToleranceWarning, match=r"has an MSE \d\.\d+ \(relative\) above the ideal, 0.001 was found"):
        made = dp.optimal(TARGET, demand, streams(0.6), lag=3)
    assert 0.1 < made.predicted_mse / made.ideal_mse - 1 < 10
    monkeypatch.setattr("dpfast.design.mimo.joint_mechanism._ASTRAY", 0.1)
    with pytest.raises(dp.DesignError, match="so loud beside max_change"):
        dp.optimal(TARGET, demand, streams(0.6), lag=3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"prefilter": "mixed"}, "prefilter must be"),
        ({"prefilter": "separate"}, "model must be a sequence of models of independent streams here, got a VectorARMA"),
        ({"lag": "late"}, "lag must be .+ or 'smoother', or None"),
        ({"model": streams(0, POLES[:2], VARIANCES[:2])}, "got a VectorARMA of 2 channels"),
    ],
)
def test_what_does_not_fit_is_named(given, words):
    asked = {"target": TARGET, "privacy": privacy("one_input"), "model": streams(0.6), **given}
    with pytest.raises(ValueError, match=words):
        dp.optimal(**asked)


@pytest.mark.parametrize("correlation", [pytest.param(0.99, marks=pytest.mark.long), 0.999])
@pytest.mark.parametrize(
    ("adjacency", "lag"), [("one_input", 5), ("each_input", 20), pytest.param("one_input", 20, marks=pytest.mark.long)]
)
def test_certificates_of_streams_that_are_nearly_one(correlation, adjacency, lag):
    """At long lags, where steps of majorization close no gap: gains nearly vanish over bands of frequencies."""
    made = dp.optimal(TARGET, privacy(adjacency), streams(correlation), lag=lag, tolerance=0.2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse


def resonators(correlation, radius):
    """Streams that swing, each at another frequency."""
    alike = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    swings = np.diag(2 * radius * np.cos([0.3, 0.7, 1.2]))
    return dp.VectorARMA([swings, -(radius**2) * np.eye(3)], innovation_covariance=alike)


SLOW_STREAMS = {
    "three that are alike": streams(0.99, np.full(3, 0.9), np.ones(3)),
    "three speeds": streams(0.99, np.array([0.9, 0.95, 0.8]), np.array([1, 1, 0.5])),
    "nearly one": streams(0.999, np.array([0.99, 0.95, 0.9]), np.ones(3)),
    "swinging": resonators(0.99, 0.9),
    "swinging long": resonators(0.999, 0.95),
}
QUICKLY_CERTIFIED = [("three speeds", "each_input"), ("swinging long", "one_input")]
LONG_LAGS = [(name, adjacency) for name in SLOW_STREAMS for adjacency in ("one_input", "each_input")]


@pytest.mark.parametrize(("name", "adjacency"), long_but(LONG_LAGS, QUICKLY_CERTIFIED))
def test_certificates_at_lags_as_long_as_slow_streams_take(name, adjacency):
    """Gains have kinks that take thousands of steps, most of them at low frequencies."""
    made = dp.optimal(TARGET, privacy(adjacency), SLOW_STREAMS[name], lag=40, tolerance=0.2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse


SIX = dp.FilterMatrix([[SLOW] * 6, [QUICK, -1 * QUICK] * 3])
ALIKE = streams(0.99, np.full(6, 0.9), np.ones(6))
DIFFERENT = streams(0.99, np.array([0.9, 0.95, 0.8, 0.85, 0.7, 0.92]), np.array([1, 1, 0.5, 2, 1, 0.7]))
DRAWN = streams(0.99, np.array([0.36, 0.45, 0.82, 0.68, 0.36, 0.59]), np.ones(6))
SIX_STREAMS = [
    (model, adjacency, lag) for lag in (20, 40) for model in ("alike", "different") for adjacency in ("one", "each")
]


@pytest.mark.parametrize(("model", "adjacency", "lag"), long_but(SIX_STREAMS, [("alike", "one", 20)]))
def test_certificates_of_six_streams_that_are_nearly_one(model, adjacency, lag):
    """At long lags residues that are small count by their squares: kinks need not be resolved to the last of them."""
    given = ALIKE if model == "alike" else DIFFERENT
    made = dp.optimal(SIX, privacy(f"{adjacency}_input"), given, lag=lag, tolerance=0.2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse <= 1.2 * made.ideal_mse


def test_the_certificate_of_targets_that_are_all_different():
    """Gains have many kinks there, and one of them is narrower than two steps of the circle of the search."""
    poles = np.random.default_rng(4).uniform(0.5, 0.95, (2, 6))
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in row] for row in poles])
    made = dp.optimal(target, privacy("one_input"), DRAWN, lag=40, tolerance=0.2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse


DEPENDENT = {
    "alike": dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=np.ones((3, 3))),
    "without a constant": dp.VectorARMA(np.zeros((0, 3, 3)), [-np.eye(3)], innovation_covariance=0.5 + 0.5 * np.eye(3)),
    "two are one": dp.VectorARMA([np.diag([0.95, 0.9, 0.9])], innovation_covariance=np.ones((3, 3))),
    "two are alike": dp.VectorARMA(
        [np.diag([0.9, 0.8, 0.5])], innovation_covariance=np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    ),
}
SINGULAR = [(name, x, lag) for name in DEPENDENT for x in ("one_input", "each_input") for lag in (0, 10, 40)]
QUICKLY = [("without a constant", "one_input", 40), ("two are alike", "each_input", 10)]


@pytest.mark.parametrize(("name", "adjacency", "lag"), long_but(SINGULAR, QUICKLY))
def test_certificates_of_spectra_that_are_singular(name, adjacency, lag):
    """There P cannot be divided by, and gains have kinks that are finer than most."""
    problem = _JointProblem(TARGET, privacy(adjacency), DEPENDENT[name], [0, 1, 2], lag, "diagonal")
    assert problem.solve(problem.goal(1e-3)).gap <= 1e-6


def test_a_finer_circle_that_gains_nothing_is_not_what_lacks():
    """Of a stream without any power at 1: it is smoothed less then, on the circle that there is."""
    filters = [dp.Filter([0.597], [1, -0.403]), dp.Filter([0.76, -0.24]), dp.Filter([0.744], [1, -0.256])]
    model = dp.VectorARMA([[[0.154]]], [[[-1.0]]], innovation_covariance=[[0.296]])
    demand = dp.Privacy(66.3, 1e-6, adjacency="each_input_same_time")
    problem = _JointProblem(dp.FilterMatrix([[x] for x in filters]), demand, model, [0], 0, "diagonal")
    found = problem.solve(problem.goal(1e-3))
    assert found.gap <= 1e-6
    assert found.weights.problem.circle.size <= 2**14


def sampled(correlation, lag=10, adjacency="one_input"):
    return lambda circle: sample(circle, correlation, lag, adjacency)


def sample(circle, correlation, lag, adjacency):
    omega, late = circle.grid.omega, circle.z[:, None, None] ** -lag
    model = streams(correlation)
    return SampledChannels(circle, late * TARGET.response(omega), model.psd(omega), 1.25, np.ones(3), adjacency)


@pytest.mark.parametrize("lag", [3, 40])
def test_states_are_looked_for_at_as_many_nodes_as_they_need(monkeypatch, lag):
    """Every so many of those that kinks need; never fewer than poles and the lag do."""
    monkeypatch.setattr("dpfast.design.mimo.joint_mechanism._NODES_OF_STATES", 256)
    problem = _JointProblem(
        TARGET, dp.Privacy(1, 1e-6, adjacency="one_input"), streams(0.9), [0, 1, 2], lag, "diagonal"
    )
    found = problem.solve(problem.goal(1e-3))
    thin = problem._thin_out(found)
    size, every = (
        thin.weights.problem.circle.size,
        found.weights.problem.circle.size // thin.weights.problem.circle.size,
    )
    assert size == {3: 256, 40: 512}[lag]
    assert every > 1
    np.testing.assert_array_equal(thin.product, found.product[::every])
    np.testing.assert_allclose(thin.weights.problem.wanted, found.weights.problem.wanted[::every], atol=1e-12)
    assert thin.weights.squared_norm(thin.product) == pytest.approx(found.weights.squared_norm(found.product), rel=1e-3)


class Scripted:
    """A search whose stages end with gaps that are given: (what is smoothed, of all as its nodes tell, anywhere)."""

    def __init__(self, gaps, circle):
        self._gaps, self.size, self.seen = gaps, circle.size, []

    @property
    def finer(self):
        other = Scripted(self._gaps, make_circle(0.0, 2 * self.size))
        other.seen = self.seen
        return other

    def begin(self):
        return ChannelsStage(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), 0.1, 0)

    def settle(self, stage):
        self.seen.append((self.size, round(stage.share, 12)))
        smoothed, judged, _ = self._gaps[len(self.seen) - 1]
        return stage, ChannelsJudgement(None, 1.0, 1 - judged, judged - smoothed)

    def certify(self, stage, judged):
        return stage, ChannelsOptimum(None, np.zeros((self.size, 1, 1)), 1.0, 1 - self._gaps[len(self.seen) - 1][2])


@pytest.mark.parametrize(
    ("gaps", "goal", "seen"),
    [
        # what is smoothed is all that lacks; then nodes are; then neither, and the search ends
        ([(0.3, 0.3, 0.3), (0.01, 0.01, 0.1), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (64, 0.02), (128, 0.02)]),
        # a bound at the nodes that is better than what is smoothed tells nothing of nodes
        ([(0.3, 0.1, 0.3), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (64, 0.02)]),
        # nor does what steps have left, where that is nearly all
        ([(0.01, 0.1, 0.1), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (128, 0.1)]),
        # near to the goal: both lack something
        ([(0.01, 0.01, 0.015), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (128, 0.05)]),
        # near: only what is smoothed does, by a little, or by much
        ([(0.011, 0.011, 0.011), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (64, 0.1 * 5 / 11)]),
        (
            [(0.006, 0.006, 0.0101), (0.0055, 0.0055, 0.0101), (0.0, 0.0, 0.0)],
            0.01,
            [(64, 0.1), (128, 0.1 * 5 / 6), (128, 0.07 * 5 / 6)],
        ),
        # near: only nodes do; a finer circle gains nothing, and what is smoothed is made less all the same
        ([(0.0, 0.0, 0.019), (0.0, 0.0, 0.019), (0.0, 0.0, 0.0)], 0.01, [(64, 0.1), (128, 0.1), (128, 0.07)]),
    ],
)
def test_what_lacks_is_what_the_next_stage_has(gaps, goal, seen):
    search = Scripted(gaps, make_circle(0.0, 64))
    found = search_optimum(search, goal)
    assert search.seen == [(size, round(share, 12)) for size, share in seen]
    assert found.gap == pytest.approx(min(x[2] for x in gaps), abs=1e-12)


def test_early_stages_are_not_taken_for_settled_as_columns_are_longer():
    """Where they were, the certificate took a circle of 32768 steps: what directions are found early is built upon."""
    first = dp.FilterMatrix([[dp.Filter([0.816], [1, -0.184]), dp.Filter([-0.558, -0.168, -0.052, -0.415]), 1, 1]])
    second = dp.FilterMatrix(
        [[dp.Filter([0.354, -1.084, -1.567, 0.034]), 1, 1, dp.Filter([0.021, -1.824, -1.256, 0.65])]]
    )
    target = dp.FilterMatrix([*first.rows, *second.rows])
    model = streams(
        0.999, np.array([0.837, 0.832, 0.799, 0.708]), 1 / (1 - np.array([0.837, 0.832, 0.799, 0.708]) ** 2)
    )
    problem = _JointProblem(target, dp.Privacy(93.4, 1e-6, adjacency="one_input"), model, [0, 1, 2, 3], 40, "diagonal")
    found = problem.solve(problem.goal(1e-3))
    assert found.gap <= 1e-6
    assert found.weights.problem.circle.size <= 2**13


def kinked_certificate():
    """A stage with kinks that its own circle does not resolve, what is told there, and what certifies it."""
    search = ChannelsSearch(sampled(0.99, lag=40), make_circle(0.9, 256))
    stage = search.begin()
    for share in (0.3, 0.03, 0.003, 3e-4):
        stage, judged = search.settle(stage._replace(share=share))
    return search.finer, stage, judged


def test_certificates_hold_between_the_nodes_that_they_are_found_at(monkeypatch):
    """What ψ tells where it was last tightened, it tells at twice as many nodes, between which columns have kinks."""
    seen, lowest = [], SlopeBound.lowest

    def look(bound, psi, k, distortion, **options):
        finest = bound._problem.circle
        finer = make_circle(finest.warp, 2 * finest.size)
        further = SlopeBound(sampled(0.99, lag=40)(finer), bound._limits / bound._problem.noise**2)
        found = lowest(bound, psi, k, distortion, **options)
        seen.append(
            (
                finest.size,
                found,
                lowest(further, interpolate(finest, finer, psi), interpolate(finest, finer, k), distortion),
            )
        )
        return found

    search, stage, judged = kinked_certificate()
    monkeypatch.setattr(SlopeBound, "lowest", look)
    found = search.certify(stage, judged)[1]
    assert seen[0][0] == 4 * search.size
    assert seen[0][1] - seen[0][2] <= 0.1 * found.gap * judged.mse
    assert found.lower_bound == pytest.approx(seen[0][1] - abs(found.mse - search.error(found.product)), rel=1e-12)


def test_what_is_too_long_is_mended_where_it_is_seen(monkeypatch):
    """Limits that hold at nodes do not hold between them: what was lost there made circles of twice as many needed."""
    rng, alike = np.random.default_rng(11), np.full((3, 3), 0.9999) + 1e-4 * np.eye(3)
    poles, memory = rng.uniform(0.5, 0.95, (3, 3)), rng.uniform(0.3, 0.95, 3)
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in row] for row in poles])
    model = dp.VectorARMA([np.diag(memory)], innovation_covariance=alike * np.outer(*2 * [np.sqrt(1 - memory**2)]))
    demand = dp.Privacy(1.1, 0.05, adjacency="one_input")
    problem = _JointProblem(target, demand, model, [0, 1, 2], 40, "diagonal")
    search = ChannelsSearch(problem._sample, make_circle(0.6, 512))
    stage = search.begin()
    for _ in range(6):
        stage, judged = search.settle(stage)
        padded, found = search.finer.certify(stage, judged)
        last, stage = stage, stage.go_on(padded.centre[::2])
    monkeypatch.setattr("dpfast.design.mimo.joint_channels._PROJECTIONS_WHERE_SEEN", 0)
    before = search.finer.certify(last, judged)[1]
    assert before.mse == found.mse
    assert found.gap < 0.9 * before.gap


def test_the_error_of_a_certificate_is_that_between_its_nodes():
    search, stage, judged = kinked_certificate()
    found = search.certify(stage, judged)[1]
    finest = search.finer.finer.finer.finer
    taps = np.zeros((finest.size // 2, *judged.point.taps[0].shape))
    taps[: len(judged.point.taps)] = judged.point.taps
    expected = finest.error(finest.values(taps))
    at_its_nodes = search.error(found.product)
    assert abs(found.mse - expected) < 0.1 * abs(at_its_nodes - expected)


def test_room_that_others_have_used_does_not_matter():
    """What is beyond the last node is not a number of the problem, and what a step leaves is not one of the next."""
    search = ChannelsSearch(sampled(0.9), make_circle(0.6, 128))
    stage = search.begin()
    point = search.point(stage.taps, search.soften(stage), stage.centre)
    steps = NewtonSteps(search.problem, NodeTransforms(2, 3, 128), 0.3)
    expected, _ = steps.towards_least(point.norm, point.residual, point.norm.directions, 0.3)
    for x in (steps._transforms._room, steps._step, steps._longer, steps._left, steps._along):
        x.fill(np.nan)
    found, _ = steps.towards_least(point.norm, point.residual, point.norm.directions, 0.3)
    np.testing.assert_array_equal(found, expected)


DRIVEN_BY_ONE = {"filters of their own": [0.9, 0.8, 0.5], "two are one": [0.95, 0.9, 0.9]}


@pytest.mark.parametrize(
    ("poles", "adjacency", "epsilon"),
    [
        ("two are one", "one_input", 1e4),
        ("two are one", "each_input", 1e5),
        ("filters of their own", "one_input", 1e6),
        ("filters of their own", "each_input", 1e3),
        ("filters of their own", "each_input", 1e5),
    ],
)
def test_streams_that_determine_one_another_are_certified_behind_next_to_no_noise(poles, adjacency, epsilon):
    """What a step gains is lost in rounding there, and directions of early stages are what later ones rest on."""
    model = dp.VectorARMA([np.diag(DRIVEN_BY_ONE[poles])], innovation_covariance=np.ones((3, 3)))
    demand = dp.Privacy(epsilon, 1e-6, adjacency=adjacency)
    problem = _JointProblem(TARGET, demand, model, [0, 1, 2], 0, "diagonal")
    assert problem.solve(problem.goal(1e-3)).gap <= 1e-6


@pytest.mark.parametrize("warp", [-0.6, -0.3, 0.0])
def test_bounds_hold_on_a_circle_that_is_too_coarse(warp):
    """Of the problem in few nodes, which are not where the poles are: taps that do not decay there are no excuse."""
    search = ChannelsSearch(sampled(0.9), make_circle(warp, 128))
    stage, lowest, least = search.begin(), 0.0, math.inf
    for share in (0.3, 0.03, 0.003, 3e-4):
        stage, found = search.settle(stage._replace(share=share))
        lowest, least = max(lowest, found.lower_bound), min(least, found.mse)
        k = found.point.norm.k
        np.testing.assert_allclose(search.problem.causal_part(k), k, atol=1e-12)
    assert least * (1 - 1e-3) <= lowest <= least * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_bounds_beside_any_product_are_below_the_least(adjacency):
    """Also far from the least, where ψ is above its level by much, and at some frequencies alone; about any centre.

    So are those of all frequencies, from directions that are interpolated between the nodes.
    """
    search = ChannelsSearch(sampled(0.9, adjacency=adjacency), make_circle(0.6, 128))
    rng, stage = np.random.default_rng(13), search.begin()
    for share in (0.3, 0.03, 0.003, 3e-4):
        stage, found = search.settle(stage._replace(share=share))
    soft, near, bounds = search.soften(stage), [0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 2.0], []
    everywhere, finest = [], search.finer.certify(stage, found)[1]
    for spread in (0, 0.01, 0.1):
        noise = spread * np.abs(stage.taps).max() * rng.standard_normal((len(near), *stage.taps.shape))
        centre = spread * rng.standard_normal(search.problem.wanted.shape)
        points = [search.point(x * stage.taps + y, soft, centre) for x, y in zip(near, noise, strict=True)]
        judged = [search.judge(x) for x in points]
        bounds += [x.lower_bound for x in judged]
        everywhere += [search.finer.certify(stage._replace(centre=centre), x)[1].lower_bound for x in judged]
    assert max(bounds) <= found.mse
    assert bounds[3] >= found.mse * (1 - 1e-3)
    assert max(everywhere) <= finest.mse
    assert everywhere[3] == pytest.approx(finest.lower_bound, rel=1e-6)


def test_a_search_ends_where_nothing_is_gained(monkeypatch):
    """With a goal that cannot be met: what is certified costs time, too."""
    certified, certify = [], ChannelsSearch.certify

    def count(search, *given):
        certified.append(search.size)
        return certify(search, *given)

    monkeypatch.setattr("dpfast.design.mimo.joint_channels._LONGEST", 512)
    monkeypatch.setattr(ChannelsSearch, "certify", count)
    found = channels_optimum(sampled(0.9), 0.6, 128, -1.0)
    assert found.gap < 1e-2
    assert len(certified) < 30


def test_a_bound_that_is_not_met_is_that_of_the_smoother(monkeypatch):
    """With no time for it: it is said, and no lag goes below what no smoother does."""
    monkeypatch.setattr("dpfast.design.mimo.joint_channels._MOST_WORK", 1)
    demand, model = privacy("one_input"), streams(0.6)
    with pytest.warns(dp.ConvergenceWarning, match="is certified to a relative gap of"):
        hasty = dp.optimal(TARGET, demand, model, lag=10, tolerance=5e-2)
    assert hasty.lower_bound_mse == smoother_bound(TARGET, demand, model, [0, 1, 2])
    assert hasty.lower_bound_mse < 0.039282 < hasty.ideal_mse * (1 + 1e-5)


@pytest.mark.parametrize("lag", [0, 2])
def test_prefilters_that_may_mix_err_no_more_than_those_that_do_not_also_if_they_are_not_found(lag, monkeypatch):
    """With no time for those: a prefilter for each input is one of them. Its bound is that of all that may mix."""
    demand, model = privacy("each_input", max_change=[1, 2, 0.5]), streams(0.6)
    apart = dp.optimal(TARGET, demand, model, lag=lag, tolerance=1e-2)
    monkeypatch.setattr("dpfast.design.mimo.mixing_search._MOST_WORK", 1)
    with pytest.warns(dp.ConvergenceWarning, match="is certified to a relative gap of"):
        hasty = dp.optimal(TARGET, demand, model, lag=lag, prefilter="general", tolerance=1e-2)
    assert hasty.ideal_mse <= 1.001 * apart.ideal_mse
    assert hasty.predicted_mse <= 1.01 * hasty.ideal_mse
    assert hasty.lower_bound_mse < apart.lower_bound_mse


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_prefilters_whose_entries_lose_digits_keep_their_states(adjacency):
    """Of streams that one innovation drives each has bands of its own: poles crowd, and near the circle."""
    rng = np.random.default_rng(1017)
    poles, memory = rng.uniform(0.5, 0.95, (3, 3)), np.array([0.6, 0.9, 0.4])
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in row] for row in poles])
    problem = _JointProblem(target, privacy(adjacency), streams(1.0, memory, np.ones(3)), [0, 1, 2], None, "diagonal")
    found = problem.solve(1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.ToleranceWarning)
        prefilter, reached = problem.realize(found, 1e-3)
    seen = found.weights.problem
    response = prefilter.response(seen.circle.grid.omega) * problem._units
    assert prefilter.shares_states
    assert reached < 0.02
    assert smoothed_error(seen, response) / found.mse - 1 == pytest.approx(reached, abs=2e-3)


def test_smoothers_of_moving_averages_take_more_states():
    """With 16 of each channel they erred 5e-3 above the ideal."""
    rng = np.random.default_rng(0)
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in rng.uniform(0.5, 0.95, 3)] for _ in range(2)])
    models = [dp.ARMA(rng.uniform(0.2, 1, 20) / math.sqrt(20)) for _ in range(3)]
    problem = _JointProblem(target, privacy("one_input"), joint_model(models), [0, 1, 2], None, "diagonal")
    prefilter, reached = problem.realize(problem.solve(1e-6), 1e-3)
    assert reached <= 1e-3
    assert 48 < len(prefilter.poles) <= 96


def test_long_lags_are_judged_where_they_are_resolved():
    """In 1,024 steps no prefilter was within 1e-5, and one of 55 states was taken."""
    rows = [[(0.1, 0.9), (0.5, 0.5)], [(0.3, 0.7), (-0.2, 0.8)]]
    target = dp.FilterMatrix([[dp.Filter([b], [1, -a]) for b, a in row] for row in rows])
    model = dp.VectorARMA([0.97 * np.eye(2)], innovation_covariance=0.1 * np.eye(2) + 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = dp.optimal(target, dp.Privacy(30, 0.05, adjacency="one_input"), model, lag=200, tolerance=1e-5)
    assert made.predicted_mse <= (1 + 1e-5) * made.ideal_mse
    assert len(made.prefilter.poles) <= 10


def test_streams_of_many_states_are_judged_where_their_factors_are_resolved():
    """In 1,024 steps prefilters of enough states were rejected, and one that errs 3e-3 above the ideal was taken."""
    rng, average = np.random.default_rng(7), dp.Filter(np.ones(40) / 40)
    models = [dp.ARMA(rng.uniform(0.2, 1, 40) / math.sqrt(40)) for _ in range(3)]
    problem = _JointProblem(
        dp.FilterMatrix([[average] * 3]),
        dp.Privacy(3, 0.05, adjacency="one_input"),
        joint_model(models),
        [0, 1, 2],
        40,
        "general",
    )
    _, reached = problem.realize(problem.solve(1e-4), 1e-3)
    assert reached <= 1e-3


def test_a_prefilter_whose_error_cannot_be_told_is_passed_over(monkeypatch):
    def judge(problem, streams, prefilter):
        if len(prefilter[0]) < judged:
            raise np.linalg.LinAlgError("lost")
        return least_error(problem, streams, prefilter)

    problem = _JointProblem(TARGET, privacy("one_input"), streams(0.6), [0, 1, 2], 2, "diagonal")
    found = problem.solve(1e-4)
    monkeypatch.setattr("dpfast.design.mimo.joint_mechanism.least_error", judge)
    judged = 9
    prefilter, _ = problem.realize(found, 1e-2)
    assert len(prefilter.poles) == judged
    judged = 1000
    with pytest.raises(np.linalg.LinAlgError, match="lost in rounding"):
        problem.realize(found, 1e-2)


@pytest.mark.parametrize(("tolerance", "left"), [(2.2e-4, 1.2e-4), (1.5e-4, 0.75e-4)])
def test_what_a_smoother_errs_more_for_its_lag_is_a_part_of_the_tolerance(tolerance, left):
    """Which is 1e-4; but at least a half is left for the states."""
    problem = _JointProblem(TARGET, privacy("one_input"), streams(0.6), [0, 1, 2], None, "diagonal")
    _, reached = problem.realize(problem.solve(1e-6), tolerance)
    assert reached <= left
