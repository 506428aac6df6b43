"""Bounds from slopes for prefilters that mix: singular values that are cut, and bounds that are below the least."""

import cvxpy as cp
import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.event_atoms import atoms_at_once
from dpfast.design.mimo.mixing_bound import cut_singular_values, mixing_bound
from dpfast.design.mimo.mixing_optimum import mixing_optimum
from dpfast.filters.warped_circle import make_circle

TARGET = dp.FilterMatrix([[dp.Filter([0.2], [1, -0.8]), dp.Filter([1, 0.5]), 1], [1, 0, -1]])
both = pytest.mark.parametrize("adjacency", ["one_input", "each_input"])


def drawn(nodes, p, m, seed):
    rng = np.random.default_rng(seed)
    psi, roots, others = (
        rng.standard_normal((nodes, x, m)) + 1j * rng.standard_normal((nodes, x, m)) for x in (p, m, m)
    )
    return psi, roots @ np.swapaxes(roots, 1, 2).conj(), others @ np.swapaxes(others, 1, 2).conj() + np.eye(m)


def whitened(mixture):
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(mixture)), 1, 2).conj()


def sizes(psi, mixture):
    return np.linalg.svd(psi @ whitened(mixture), compute_uv=False)


@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("beyond", [0.01, 0.2])
def test_singular_values_are_cut_at_about_the_least_cost(p, m, beyond):
    psi, psd, mixture = drawn(6, p, m, 1)
    limit = 0.5
    psi *= ((1 + beyond) * limit / sizes(psi, mixture).max(axis=1))[:, None, None]
    left, costs, excess = cut_singular_values(psi, psd, whitened(mixture), limit)
    assert excess < 1e-9
    assert sizes(left, mixture).max() <= limit * (1 + 1e-9)
    e = psi - left
    np.testing.assert_allclose(costs, (e @ np.linalg.inv(psd) * e.conj()).real.sum(axis=(1, 2)), rtol=1e-9)
    for w in range(6):
        root, whiten = np.linalg.cholesky(psd[w]), np.linalg.inv(np.linalg.cholesky(mixture[w])).conj().T
        y = cp.Variable((p, m), complex=True)
        tight = [cp.sigma_max((psi[w] - y @ root.conj().T) @ whiten) <= limit]
        least = cp.Problem(cp.Minimize(cp.sum_squares(y)), tight).solve(solver=cp.SCS, eps=1e-8)
        assert least * (1 - 1e-2) - 1e-7 <= costs[w] <= least * (1 + 10 * beyond) + 1e-7


def test_singular_values_below_the_limit_are_left_alone():
    psi, psd, mixture = drawn(5, 2, 3, 2)
    left, costs, excess = cut_singular_values(psi, psd, whitened(mixture), 100.0)
    np.testing.assert_array_equal(left, psi)
    assert not costs.any()
    assert excess == 0


def test_what_singular_spectra_cannot_cut_is_left_and_said():
    psi, _, mixture = drawn(3, 2, 3, 3)
    limit = 0.5 * sizes(psi, mixture).max()
    left, costs, excess = cut_singular_values(psi, np.zeros((3, 3, 3), complex), whitened(mixture), limit)
    np.testing.assert_array_equal(left, psi)
    assert not costs.any()
    assert excess == pytest.approx(1)


def test_nothing_is_taken_off_by_what_rounding_leaves_of_singular_spectra():
    """Of rows that P does not see, or with so little power that a quotient would be infinite."""
    a = np.random.default_rng(4).standard_normal((200, 2))
    psi = np.stack([a[:, 1], -a[:, 0]], axis=1)[:, None].astype(complex)
    psd = (a[:, :, None] * a[:, None]).astype(complex)
    left, costs, _ = cut_singular_values(psi, psd, np.broadcast_to(np.eye(2), psd.shape), 0.1)
    np.testing.assert_array_equal(left, psi)
    assert not costs.any()
    left, costs, _ = cut_singular_values(psi, 1e-310 * psd, np.broadcast_to(np.eye(2), psd.shape), 0.1)
    assert np.isfinite(left).all()
    assert np.isfinite(costs).all()


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_bound_is_that_of_the_formula(power):
    """Where nothing can be cut ρ is larger, by twice what is seen to be; else E costs twice what it does at nodes."""
    psi, psd, mixture = drawn(9, 2, 3, 6)
    circle = make_circle(0.3, 16)
    problem = SampledChannels(circle, psi, power * psd, 1.25, np.ones(3), "one_input")
    k, limit = drawn(9, 2, 3, 7)[0], 0.9 * sizes(psi, mixture).max()
    left, costs, excess = cut_singular_values(psi, problem.psd, whitened(mixture), limit)
    assert (costs.max() > 0) == (power > 0)
    assert (excess > 0.1) == (power == 0)
    weights = circle.grid.weights
    expected = 2 * weights @ (left.conj() * k).real.sum(axis=(1, 2)) - 2 * weights @ costs
    expected -= (limit * (1 + 2 * excess) / 1.25) ** 2
    assert mixing_bound(problem, psi, k, 0.0, mixture, limit) == pytest.approx(expected, rel=1e-12)


@both
@pytest.mark.parametrize("correlation", [0.6, 1.0])
def test_bounds_of_any_product_slope_and_mixture_are_below_the_least(adjacency, correlation):
    """Of K that is the least, or far from it; of slopes of other limits; of other mixtures of a person's events."""
    rng, alike = np.random.default_rng(5), np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    model = dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=alike)

    def at(circle):
        omega, late = circle.grid.omega, circle.z[:, None, None] ** -2
        return SampledChannels(circle, late * TARGET.response(omega), model.psd(omega), 1.25, np.ones(3), adjacency)

    best, found = mixing_optimum(at, atoms_at_once(np.ones(3), adjacency), 0.6, 128, 1e-4), []
    problem, events = best.weights.problem, best.weights.mixture
    for spread in (0, 0.01, 0.1, 1):
        noisy = np.fft.rfft(rng.standard_normal((problem.circle.size, 2, 3)), axis=0)
        k = best.product + spread * problem.causal_part(noisy)
        given = problem.causal_part((problem.wanted - k) @ problem.psd)
        for tilt in (0, 0.5):
            shares = events.shares * np.exp(tilt * rng.standard_normal(len(events.shares)))
            mixture = events._replace(shares=shares / shares.sum()).at(problem.circle.grid.omega)
            reached = best.product @ mixture @ np.swapaxes(best.product, 1, 2).conj()
            y2, basis = np.linalg.eigh(reached)
            y = np.sqrt(np.maximum(y2, 1e-12))
            slope = (basis / y[:, None]) @ np.swapaxes(basis, 1, 2).conj() @ best.product @ mixture
            limit = problem.noise**2 * float(problem.mean(y.sum(axis=1)))
            psi = given + limit * slope - problem.causal_part(limit * slope)
            distortion = problem.mean_power(problem.wanted - k)
            found += [mixing_bound(problem, psi, k, distortion, mixture, x * limit) for x in (0.9, 1, 1.1)]
    assert max(found) <= best.mse * (1 + 1e-9)
    if correlation < 1:
        assert max(found) >= best.mse * (1 - 2e-2)
