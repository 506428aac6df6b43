"""What no lag goes below of streams that depend on one another, against MIMO.md, independent streams, and programs."""

import math

import cvxpy as cp
import numpy as np
import pytest
from helpers.levels import levels_of

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.joint_smoother import smooth_jointly, smoother_bound
from dpfast.design.mimo.slope_bound import SlopeBound
from dpfast.filters.warped_circle import choose_steps, make_circle

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
POLES, VARIANCES = np.array([0.5, 0.5, 0.8]), np.array([0.25, 0.25, 1])
SIZES = np.sqrt(VARIANCES * (1 - POLES**2))


def streams(correlation):
    alike = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    return dp.VectorARMA([np.diag(POLES)], innovation_covariance=alike * np.outer(SIZES, SIZES))


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@pytest.mark.parametrize(
    ("adjacency", "correlation", "least"),
    [("one_input", 0, 0.054865), ("each_input", 0, 0.091040), ("one_input", 0.6, 0.039152)],
)
def test_the_values_that_other_programs_found(adjacency, correlation, least):
    made = dp.lmmse(TARGET, privacy(adjacency), streams(correlation), lag=5, tolerance=5e-2)
    assert made.lower_bound_mse == pytest.approx(least, abs=5.1e-7)
    assert made.lower_bound_mse < made.predicted_mse


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_independent_streams_have_that_of_one_stream_at_a_time(adjacency):
    demand = privacy(adjacency, max_change=[1, 2, 0.5], max_events=2)
    apart = [dp.ARMA([1], [1, -p], innovation_std=x) for p, x in zip(POLES, SIZES, strict=True)]
    least = dp.lmmse(TARGET, demand, apart, lag=0, tolerance=5e-2).lower_bound_mse
    found = smoother_bound(TARGET, demand, dp.VectorARMA.independent(apart), [0, 1, 2])
    assert least * (1 - 1.1e-6) <= found <= least * (1 + 1e-9)


def least_error_on_grid(wanted, roots, changes, noise, adjacency):
    """By a convex program of real and imaginary parts: K is free at every angle, and its mean gains are weighed."""
    n, p, m = wanted.shape
    k = [cp.Variable((p, m), complex=True) for _ in range(n)]
    norms = [changes[j] * sum(cp.norm(x[:, j], 2) for x in k) / n for j in range(m)]
    size = cp.sum_squares(cp.hstack(norms)) if adjacency == "one_input" else cp.square(sum(norms))
    distortion = sum(cp.sum_squares((f - x) @ r) for f, x, r in zip(wanted, k, roots, strict=True)) / n
    problem = cp.Problem(cp.Minimize(distortion + noise**2 * size))
    return problem.solve(solver="CLARABEL", tol_gap_rel=1e-8)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
@pytest.mark.parametrize("correlation", [0.7, 1.0])
def test_a_convex_program_finds_the_same(correlation, adjacency):
    """Of taps, on a grid of 24 angles: gains have kinks, of which the grid sees little. Streams of one noise, too."""
    rng, n = np.random.default_rng(4), 24
    target = dp.FilterMatrix([[dp.Filter(rng.standard_normal(2)) for _ in range(2)] for _ in range(2)])
    model = dp.VectorARMA([[[0.3, 0.2], [-0.2, 0.1]]], innovation_covariance=[[1, correlation], [correlation, 1]])
    demand = privacy(adjacency, max_change=[1, 0.6])
    omega = 2 * np.pi * (np.arange(n) + 0.5) / n
    given = model.response(omega), demand.changes(2), demand.noise_multiplier, adjacency
    least = least_error_on_grid(target.response(omega), *given)
    assert smoother_bound(target, demand, model, [0, 1]) == pytest.approx(least, rel=2e-3)


def test_streams_that_are_alike_have_a_bound_as_near_as_others():
    """To what as many plain steps reach, which nothing is below."""
    demand, n = privacy("one_input"), 512
    omega = 2 * np.pi * (np.arange(n) + 0.5) / n
    f, psd = TARGET.response(omega), streams(0.9).psd(omega)
    k, noise = f, demand.noise_multiplier**2
    for _ in range(400):
        gains = np.maximum(np.linalg.norm(k, axis=1), 1e-9)
        form = noise * (gains.mean(axis=0) / gains)[:, None, :] * np.eye(3)
        k = np.swapaxes(np.linalg.solve(np.swapaxes(psd + form, 1, 2), np.swapaxes(f @ psd, 1, 2)), 1, 2)
    distortion = np.einsum("wij,wjk,wik->w", f - k, psd, (f - k).conj()).real.mean()
    least = distortion + noise * (np.linalg.norm(k, axis=1).mean(axis=0) ** 2).sum()
    assert least * (1 - 3e-6) <= smoother_bound(TARGET, demand, streams(0.9), [0, 1, 2]) <= least


def test_a_stream_that_no_output_sees_tells_of_others():
    alike = dp.VectorARMA([0.5 * np.eye(2)], innovation_covariance=[[1, 0.99], [0.99, 1]])
    target = dp.FilterMatrix([[SLOW, 0]])
    made = dp.lmmse(target, privacy("one_input"), alike, lag=3, tolerance=5e-2)
    best = dp.optimal(target, privacy("one_input"), alike, lag=3, tolerance=5e-2)
    assert made.lower_bound_mse < best.ideal_mse
    assert made.lower_bound_mse < 0.9 * smoother_bound(target, privacy("one_input"), alike, [0])


@pytest.mark.long
def test_no_optimum_of_a_long_lag_goes_below_it():
    """Of streams that are nearly one, the optimum of a lag that is long beside all poles is nearly it."""
    model = dp.VectorARMA([np.diag([0.5, 0.2])], innovation_covariance=[[1, 0.999], [0.999, 1]])
    target = dp.FilterMatrix([[QUICK, QUICK]])
    least = smoother_bound(target, privacy("one_input"), model, [0, 1])
    made = dp.optimal(target, privacy("one_input"), model, lag=20, tolerance=5e-2)
    assert least <= made.ideal_mse <= least * 1.005


def bound_beside(problem, k):
    """What no K errs less than, by ψ = (F - K)P of any K."""
    left = problem.wanted - k
    return SlopeBound(problem, levels_of(problem, k)).lowest(left @ problem.psd, k, problem.mean_power(left))


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_a_bound_beside_any_product_is_below_the_closed_form(adjacency):
    """Of white streams apart; where an event is at all of them, of as many that are alike."""
    rng, noise, m = np.random.default_rng(12), 1.25, 3
    f, variances, changes = rng.uniform(0.5, 2, (3, m)) if adjacency == "one_input" else np.ones((3, m))
    together = 1 if adjacency == "one_input" else m
    best = variances * f / (variances + together * (noise * changes) ** 2)
    least = ((noise * changes) ** 2 * together * f * best).sum()
    circle = make_circle(0.0, 16)
    wanted, psd = (np.tile(np.diag(x) + 0j, (len(circle.z), 1, 1)) for x in (f, variances))
    problem = SampledChannels(circle, wanted, psd, noise, changes, adjacency)
    near = {
        larger: bound_beside(problem, larger * best * np.eye(m) + 0 * wanted) for larger in (0.8, 0.99, 1, 1.01, 1.2)
    }
    assert near[1] == pytest.approx(least, rel=1e-12)
    assert max(near.values()) <= least * (1 + 1e-12)
    assert min(near.values()) >= 0.5 * least
    for spread in np.geomspace(1e-3, 1, 30):
        assert bound_beside(problem, best * np.eye(m) + spread * rng.standard_normal(wanted.shape)) <= least


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_a_bound_beside_a_product_that_errs_more_is_below_the_least(adjacency):
    """Of a product that is too small ψ is too large, and is cut; of any other the bound is no better."""
    demand, model = privacy(adjacency), streams(0.6)
    circle = make_circle(*choose_steps(np.concatenate([TARGET.poles, model.poles]), size=256))
    omega = circle.grid.omega
    problem = SampledChannels(
        circle, TARGET.response(omega), model.psd(omega), demand.noise_multiplier, np.ones(3), adjacency
    )
    found = smooth_jointly(problem)
    near = [bound_beside(problem, x * found.product) for x in (0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5)]
    assert max(near) <= found.mse
    assert found.gap <= 1e-6
    assert near[3] == pytest.approx(found.mse, rel=1e-3)
    assert near[2] >= 0.95 * found.mse


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
@pytest.mark.parametrize("kind", ["filters of their own", "two are one", "two noises"])
@pytest.mark.parametrize("epsilon", [0.1, 60])
def test_the_certificate_of_streams_that_determine_one_another(adjacency, kind, epsilon):
    """Where spectra are singular at all frequencies, so that nothing can be divided by them."""
    poles = [0.9, 0.9, 0.5] if kind == "two are one" else [0.9, 0.8, 0.5]
    roots = np.random.default_rng(5).standard_normal((3, 2)) if kind == "two noises" else np.ones((3, 1))
    model = dp.VectorARMA([np.diag(poles)], innovation_covariance=roots @ roots.T)
    circle = make_circle(*choose_steps(np.concatenate([TARGET.poles, model.poles]), size=512))
    omega, noise = circle.grid.omega, dp.Privacy(epsilon, 1e-6, adjacency=adjacency).noise_multiplier
    given = TARGET.response(omega), model.psd(omega), noise, np.ones(3)
    found = smooth_jointly(SampledChannels(circle, *given, adjacency))
    assert 0 <= found.gap <= 1e-6
    assert bound_beside(SampledChannels(circle, *given, adjacency), found.product) <= found.mse * (1 + 1e-12)
