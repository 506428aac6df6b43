"""Bounds from slopes: what they have before now is free, and whatever is taken off they are below the least."""

import cvxpy as cp
import numpy as np
import pytest
from helpers.levels import levels_of

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels, inner
from dpfast.design.mimo.circle_taps import interpolate
from dpfast.design.mimo.joint_channels import channels_optimum
from dpfast.design.mimo.slope_bound import SlopeBound, cut_columns
from dpfast.filters.warped_circle import make_circle

TARGET = dp.FilterMatrix([[dp.Filter([0.2], [1, -0.8]), dp.Filter([1, 0.5]), 1], [1, 0, -1]])
both = pytest.mark.parametrize("adjacency", ["one_input", "each_input"])


def sample(correlation, adjacency):
    alike = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    model = dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=alike)

    def at(circle):
        omega, late = circle.grid.omega, circle.z[:, None, None] ** -2
        return SampledChannels(circle, late * TARGET.response(omega), model.psd(omega), 1.25, np.ones(3), adjacency)

    return at


def taps(circle, values):
    return np.fft.irfft(values * circle.unit[:, None, None], axis=0)


@both
@pytest.mark.parametrize("correlation", [0.6, 1.0])
def test_bounds_of_any_product_and_slope_are_below_the_least(adjacency, correlation):
    """Of K that is the least, or far from it; of ψ with anything before now; with levels that are wrong."""
    at, rng = sample(correlation, adjacency), np.random.default_rng(3)
    best = channels_optimum(at, 0.6, 256, 1e-6)
    problem = best.weights.problem
    noise, levels, found = problem.noise**2, levels_of(problem, best.product), []
    for spread in (0, 0, 0.01, 0.1, 1):
        k = best.product + spread * problem.causal_part(
            np.fft.rfft(rng.standard_normal((problem.circle.size, 2, 3)), axis=0)
        )
        given = problem.causal_part((problem.wanted - k) @ problem.psd)
        directions = best.product / np.maximum(1e-9, np.linalg.norm(best.product, axis=1))[:, None]
        slope = noise * levels * directions
        psi = given + slope - problem.causal_part(slope)
        for share in (0.9, 1, 1.1):
            bound = SlopeBound(problem, share * levels)
            tight = bound.tighten(psi, 60)
            distortion = problem.mean_power(problem.wanted - k)
            found += [bound.lowest(x, k, distortion) for x in (psi, tight)]
            assert max(found) <= best.mse * (1 + 1e-9)
            known, kept = taps(problem.circle, psi), taps(problem.circle, tight)
            np.testing.assert_allclose(kept[: len(kept) // 2], known[: len(known) // 2], atol=1e-12)
    assert max(found) >= best.mse * (1 - 1e-2)


@both
def test_slopes_are_tightened_until_little_must_be_taken_off(adjacency):
    """With noise before now, which is free, the bound is lost; tightened it is nearly that of the least again."""
    at, rng = sample(0.6, adjacency), np.random.default_rng(4)
    best = channels_optimum(at, 0.6, 128, 1e-6)
    problem, circle = best.weights.problem, best.weights.problem.circle
    levels = levels_of(problem, best.product)
    lengths = np.maximum(1e-9, np.linalg.norm(best.product, axis=1))
    slope = problem.noise**2 * levels * best.product / lengths[:, None]
    given = problem.causal_part((problem.wanted - best.product) @ problem.psd)
    psi = given + slope - problem.causal_part(slope)
    early = np.zeros((circle.size, 2, 3))
    early[-circle.size // 8 :] = 0.05 * rng.standard_normal((circle.size // 8, 2, 3))
    noisy = psi + np.fft.rfft(early, axis=0) / circle.unit[:, None, None]
    bound, distortion = SlopeBound(problem, levels), problem.mean_power(problem.wanted - best.product)
    lost, kept = (1 - (bound.lowest(x, best.product, distortion)) / best.mse for x in (noisy, bound.tighten(noisy, 60)))
    assert lost > 0.1
    assert 0 <= kept < 0.02 * lost


def test_values_between_nodes_are_those_of_their_taps():
    coarse, finer = make_circle(0.4, 16), make_circle(0.4, 32)
    early_and_late = np.random.default_rng(5).standard_normal((16, 2))
    early_and_late[8] = 0  # as many taps before as after now
    spread = np.zeros((32, 2))
    spread[:8], spread[-7:] = early_and_late[:8], early_and_late[-7:]
    at = [np.fft.rfft(x, axis=0) / y.unit[:, None] for x, y in ((early_and_late, coarse), (spread, finer))]
    np.testing.assert_allclose(interpolate(coarse, finer, at[0][:, None])[:, 0], at[1], atol=1e-13)
    np.testing.assert_allclose(interpolate(coarse, finer, at[0][:, None])[::2, 0], at[0], atol=1e-13)


def test_cut_columns_are_no_longer_than_their_limits():
    problem = sample(0.6, "one_input")(make_circle(0.4, 32))
    left, multiples = cut_columns(problem.wanted, problem.psd, np.array([0.3, 0.5, 1.0]))
    costs = inner(problem.wanted - left, multiples)
    assert (np.linalg.norm(left, axis=1) <= np.array([0.3, 0.5, 1.0]) * (1 + 1e-6)).all()
    assert (costs >= 0).all()
    e = problem.wanted - left
    inverse = np.linalg.inv(problem.psd)
    np.testing.assert_allclose(costs, (e @ inverse * e.conj()).real.sum(axis=(1, 2)), rtol=1e-8, atol=1e-14)


@both
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_bound_is_that_of_the_formula(adjacency, power):
    """Where nothing can be cut ρ is larger, by twice what is seen to be; else E costs twice what it does at nodes."""
    problem = sample(0.6, adjacency)(make_circle(0.4, 32))
    problem = problem._replace(psd=power * problem.psd, changes=np.array([0.5, 1.0, 2.0]))
    psi, k = problem.wanted, problem.causal_part(problem.wanted)
    limits = np.linalg.norm(psi, axis=1).max(axis=0) / 1.1
    left, multiples = cut_columns(psi, problem.psd, limits)
    costs = inner(psi - left, multiples)
    assert (costs.max() > 0) == (power > 0)
    excess = max(0, (np.linalg.norm(left, axis=1) / limits).max() - 1)
    assert excess == pytest.approx(0.1 if power == 0 else 0, abs=1e-9)
    each = ((1 + 2 * excess) * limits / problem.changes / problem.noise) ** 2
    weights = problem.circle.grid.weights
    expected = 2 * weights @ (left.conj() * k).real.sum(axis=(1, 2)) - 2 * weights @ costs
    expected -= each.sum() if adjacency == "one_input" else each.max()
    found = SlopeBound(problem, limits / problem.noise**2).lowest(psi, k, 0.0, lengthened=False)
    assert found == pytest.approx(expected, rel=1e-9)


@both
@pytest.mark.parametrize("room", [0.97, 1.05])
@pytest.mark.parametrize(("correlation", "share"), [(0.0, 1 - 1e-5), (0.9, 0.3)])
def test_columns_are_lengthened_by_about_what_pays_best(adjacency, correlation, share, room):
    """A convex program finds what E gains most; where streams do not depend on one another, so does one step."""
    rng, problem = np.random.default_rng(8), sample(0.6, adjacency)(make_circle(0.4, 8))
    alike = correlation + (1 - correlation) * np.eye(3)
    root = np.sqrt([0.05, 0.3, 20.0])[:, None] * np.linalg.cholesky(alike)
    problem = problem._replace(psd=np.tile((root @ root.T).astype(complex), (5, 1, 1)))
    psi = rng.standard_normal((5, 2, 3)) + 1j * rng.standard_normal((5, 2, 3))
    k = 0.5 * psi + 0.1 * rng.standard_normal((5, 2, 3))
    limits, best = room * np.linalg.norm(psi, axis=1).max(axis=0), 0.0
    for w in range(5):
        y = cp.Variable((2, 3), complex=True)  # of E = YΩ*
        left = psi[w] - y @ root.T
        gain = 2 * cp.real(cp.sum(cp.multiply(left, k[w].conj()))) - 2 * cp.sum_squares(y)
        tight = [cp.norm(left[:, i], 2) <= limits[i] for i in range(3)]
        best += problem.circle.grid.weights[w] * cp.Problem(cp.Maximize(gain), tight).solve(solver=cp.CLARABEL)
    each = (limits / problem.noise) ** 2
    best -= each.sum() if adjacency == "one_input" else each.max()
    bound = SlopeBound(problem, limits / problem.noise**2)
    plain, longer = (bound.lowest(psi, k, 0.0, lengthened=x) for x in (False, True))
    assert best > plain
    assert share * (best - plain) <= longer - plain <= best - plain + 1e-6


def test_nothing_is_lengthened_of_what_spectra_do_not_see():
    """A singular P has no diagonal below it but nothing; nor has one that is nothing for a stream."""
    problem = sample(0.6, "one_input")(make_circle(0.4, 32))
    psi, limits = problem.wanted, 2 * np.linalg.norm(problem.wanted, axis=1).max(axis=0)
    for psd in (np.ones((3, 3)), np.diag([1.0, 1.0, 0.0]), np.zeros((3, 3)), np.full((3, 3), 1e-310)):
        given = problem._replace(psd=np.tile(psd.astype(complex), (17, 1, 1)))
        bound = SlopeBound(given, limits / problem.noise**2)
        plain, longer = (bound.lowest(psi, problem.causal_part(psi), 0.0, lengthened=x) for x in (False, True))
        assert plain == longer


@both
def test_where_spectra_vanish_limits_are_raised_rather(adjacency):
    """To take all off at a frequency without any power would cost without end."""
    problem, psi = sample(0.6, adjacency)(make_circle(0.4, 32)), sample(0.6, adjacency)(make_circle(0.4, 32)).wanted
    limits, dark = np.linalg.norm(psi, axis=1).max(axis=0) / 1.1, problem.psd.copy()
    dark[:3] *= 1e-20
    k = problem.causal_part(psi)
    light, gone = (
        SlopeBound(problem._replace(psd=x), limits / problem.noise**2).lowest(psi, k, 0.0) for x in (problem.psd, dark)
    )
    assert np.isfinite(gone)
    uncut = SlopeBound(problem._replace(psd=0 * dark), limits / problem.noise**2).lowest(psi, k, 0.0)
    assert uncut <= gone * (1 + 1e-9) + 1e-12
    assert light > uncut
