"""Bounds from slopes for prefilters that mix: singular values that are cut, and bounds that are below the least."""

import cvxpy as cp
import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.event_atoms import atoms_at_once
from dpfast.design.mimo.mixing_bound import MixingBound, cut_at_once, cut_in_turn
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


def cut(psi, psd, mixture, limit):
    """Cut in turn, and at once where that leaves too much."""
    in_turn = cut_in_turn(psi, psd, whitened(mixture), limit)
    return in_turn, cut_at_once(psi, psd, whitened(mixture), limit, in_turn)


def least_cost(psi, psd, mixture, limit):
    root, whiten = np.linalg.cholesky(psd), np.linalg.inv(np.linalg.cholesky(mixture)).conj().T
    y = cp.Variable(psi.shape, complex=True)
    tight = [cp.sigma_max((psi - y @ root.conj().T) @ whiten) <= limit]
    return cp.Problem(cp.Minimize(cp.sum_squares(y)), tight).solve(solver=cp.SCS, eps=1e-8)


@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("beyond", [0.01, 0.2])
def test_singular_values_are_cut_at_about_the_least_cost(p, m, beyond):
    psi, psd, mixture = drawn(6, p, m, 1)
    limit = 0.5
    psi *= ((1 + beyond) * limit / sizes(psi, mixture).max(axis=1))[:, None, None]
    inverse, in_turn_and_at_once = np.linalg.inv(psd), cut(psi, psd, mixture, limit)
    least = [least_cost(*x, limit) for x in zip(psi, psd, mixture, strict=True)]
    for left, costs, longest in in_turn_and_at_once:
        np.testing.assert_allclose(longest, sizes(left, mixture).max(axis=1), rtol=1e-12)
        assert longest.max() <= limit * (1 + 1e-9)
        e = psi - left
        np.testing.assert_allclose(costs, (e @ inverse * e.conj()).real.sum(axis=(1, 2)), rtol=1e-9)
        for cost, best in zip(costs, least, strict=True):
            assert best * (1 - 1e-2) - 1e-7 <= cost <= best * (1 + 10 * beyond) + 1e-7


def test_what_cannot_be_taken_off_in_turn_is_taken_off_at_once():
    """Where a share of Φ is very small, what is taken off one singular value turns the others away."""
    psi, psd, _ = drawn(60, 2, 3, 3)
    mixture = np.tile(np.diag([1e-5, 0.4, 0.6]) + 0j, (60, 1, 1))
    limit = 0.99 * sizes(psi, mixture).min()
    in_turn, at_once = cut(psi, psd, mixture, limit)
    assert in_turn.longest.max() > 1.1 * limit
    assert at_once.longest.max() <= limit * (1 + 1e-12)
    np.testing.assert_allclose(sizes(at_once.left, mixture).max(axis=1), at_once.longest, rtol=1e-9)
    e = psi - at_once.left
    costs = (e @ np.linalg.inv(psd) * e.conj()).real.sum(axis=(1, 2))
    np.testing.assert_allclose(at_once.costs, costs, rtol=1e-6)


def test_singular_values_are_left_no_longer_than_they_were():
    """Spectra that are nearly singular, and a limit that is far: what is linearized misses it."""
    psi, _, mixture = drawn(300, 2, 3, 5)
    roots = drawn(300, 3, 3, 5)[0]
    roots[:, :, 1:] *= 1e-3
    in_turn, _ = cut(psi, roots @ np.swapaxes(roots, 1, 2).conj(), mixture, 0.3 * sizes(psi, mixture).max())
    assert (in_turn.longest <= sizes(psi, mixture).max(axis=1) * (1 + 1e-12)).all()
    assert (in_turn.costs >= 0).all()


def test_singular_values_below_the_limit_are_left_alone():
    psi, psd, mixture = drawn(5, 2, 3, 2)
    for left, costs, longest in cut(psi, psd, mixture, 100.0):
        np.testing.assert_allclose(left, psi, rtol=1e-14)
        assert not costs.any()
        np.testing.assert_allclose(longest, sizes(psi, mixture).max(axis=1))


def test_what_singular_spectra_cannot_cut_is_left_and_said():
    psi, _, mixture = drawn(3, 2, 3, 3)
    limit = 0.5 * sizes(psi, mixture).max()
    for left, costs, longest in cut(psi, np.zeros((3, 3, 3), complex), mixture, limit):
        np.testing.assert_array_equal(left, psi)
        assert not costs.any()
        assert longest.max() == pytest.approx(2 * limit)


def test_nothing_is_taken_off_by_what_rounding_leaves_of_singular_spectra():
    """Of rows that P does not see, or with so little power that a quotient would be infinite."""
    a = np.random.default_rng(4).standard_normal((200, 2))
    psi = np.stack([a[:, 1], -a[:, 0]], axis=1)[:, None].astype(complex)
    psd, alone = (a[:, :, None] * a[:, None]).astype(complex), np.broadcast_to(np.eye(2), (200, 2, 2))
    for left, costs, _ in cut(psi, psd, alone, 0.1):
        np.testing.assert_array_equal(left, psi)
        assert not costs.any()
    for left, costs, _ in cut(psi, 1e-310 * psd, alone, 0.1):
        assert np.isfinite(left).all()
        assert np.isfinite(costs).all()


def test_what_is_taken_off_does_not_depend_on_units():
    """Of P in units of which one is 1e6 times the other: its row is one that P sees, and not rounding."""
    psi, psd, mixture = drawn(20, 2, 2, 6)
    units, limit = np.array([1e6, 1.0]), 0.95 * sizes(psi, mixture).max()
    expected = cut_in_turn(psi, psd, whitened(mixture), limit)
    scaled = psi * units, psd * np.outer(units, units), mixture * np.outer(units, units)
    found = cut_in_turn(*scaled[:2], whitened(scaled[2]), limit)
    np.testing.assert_allclose(found.left, expected.left * units, rtol=1e-9)
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-9)
    np.testing.assert_allclose(found.longest, expected.longest, rtol=1e-9)


def test_directions_are_made_no_longer_than_one():
    psi, _, mixture = drawn(9, 2, 3, 8)
    problem = SampledChannels(make_circle(0.3, 16), psi, drawn(9, 2, 3, 8)[1], 1.25, np.ones(3), "one_input")
    directions = psi / np.median(sizes(psi, mixture).max(axis=1))
    found = MixingBound(problem, mixture, 0.7).shorten(directions)
    np.testing.assert_allclose(sizes(found, mixture), 0.7 * np.minimum(1, sizes(directions, mixture)), rtol=1e-9)
    short = sizes(directions, mixture).max(axis=1) <= 1
    assert short.any()
    np.testing.assert_allclose(found[short], 0.7 * directions[short], rtol=1e-9)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_bound_is_that_of_the_formula(power):
    """Where nothing can be cut ρ is larger, by twice what is seen to be; else E costs twice what it does at nodes."""
    psi, psd, mixture = drawn(9, 2, 3, 6)
    circle = make_circle(0.3, 16)
    problem = SampledChannels(circle, psi, power * psd, 1.25, np.ones(3), "one_input")
    k, limit = drawn(9, 2, 3, 7)[0], 0.9 * sizes(psi, mixture).max()
    expected = []
    for left, costs, longest in cut(psi, problem.psd, mixture, limit):
        excess = max(0, longest.max() / limit - 1)
        assert (costs.max() > 0) == (power > 0)
        assert (excess > 0.1) == (power == 0)
        weights = circle.grid.weights
        gain = 2 * weights @ (left.conj() * k).real.sum(axis=(1, 2)) - 2 * weights @ costs
        expected.append(gain - (limit * (1 + 2 * excess) / 1.25) ** 2)
    assert MixingBound(problem, mixture, limit).lowest(psi, k, 0.0) == pytest.approx(max(expected), rel=1e-12)


def causal(problem, values):
    unit = problem.circle.unit[:, None, None]
    return np.fft.irfft(values * unit, axis=0)[: problem.circle.size // 2]


def sampled(adjacency, correlation):
    alike = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    model = dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=alike)

    def at(circle):
        omega, late = circle.grid.omega, circle.z[:, None, None] ** -2
        return SampledChannels(circle, late * TARGET.response(omega), model.psd(omega), 1.25, np.ones(3), adjacency)

    return at


def slope_of(problem, k, mixture):
    """The slope of <tr (KΦK*)^½> in K, times κ²<tr (KΦK*)^½>, and that factor."""
    y2, basis = np.linalg.eigh(k @ mixture @ np.swapaxes(k, 1, 2).conj())
    y = np.sqrt(np.maximum(y2, 1e-12))
    limit = problem.noise**2 * float(problem.mean(y.sum(axis=1)))
    return limit * (basis / y[:, None]) @ np.swapaxes(basis, 1, 2).conj() @ k @ mixture, limit


@both
@pytest.mark.parametrize("apart", [False, True])
def test_slopes_are_tightened_until_little_must_be_taken_off(adjacency, apart):
    """With noise before now, which is free, the bound is lost; tightened it is nearly that of the least again."""
    at, rng = sampled(adjacency, 0.6), np.random.default_rng(6)
    best = mixing_optimum(at, atoms_at_once(np.ones(3), adjacency), 0.6, 128, 1e-4)
    problem, circle = best.weights.problem, best.weights.problem.circle
    mixture = best.weights.mixture.at(circle.grid.omega)
    if apart:  # another mixture at each frequency, as events at different times have
        tilted = np.eye(3) + 0.02 * np.cos(circle.grid.omega)[:, None, None] * (np.ones((3, 3)) - np.eye(3))
        mixture = np.asarray(mixture @ tilted + tilted @ mixture) / 2
    slope, limit = slope_of(problem, best.product, mixture)
    psi = problem.causal_part((problem.wanted - best.product) @ problem.psd) + slope - problem.causal_part(slope)
    early = np.zeros((circle.size, 2, 3))
    early[-circle.size // 8 :] = 0.05 * rng.standard_normal((circle.size // 8, 2, 3))
    noisy = psi + np.fft.rfft(early, axis=0) / circle.unit[:, None, None]
    bound, distortion = MixingBound(problem, mixture, limit), problem.mean_power(problem.wanted - best.product)
    lost, kept = (1 - bound.lowest(x, best.product, distortion) / best.mse for x in (noisy, bound.tighten(noisy, 60)))
    assert lost > 0.05
    assert -1e-9 <= kept < 0.05 * lost + (0.02 if apart else 0)


@both
@pytest.mark.parametrize("correlation", [0.6, 1.0])
def test_bounds_of_any_product_slope_and_mixture_are_below_the_least(adjacency, correlation):
    """Of K that is the least, or far from it; of slopes of other limits; of other mixtures of a person's events."""
    at, rng = sampled(adjacency, correlation), np.random.default_rng(5)
    best, found = mixing_optimum(at, atoms_at_once(np.ones(3), adjacency), 0.6, 128, 1e-4), []
    problem, events = best.weights.problem, best.weights.mixture
    for spread in (0, 0.01, 0.1, 1):
        noisy = np.fft.rfft(rng.standard_normal((problem.circle.size, 2, 3)), axis=0)
        k = best.product + spread * problem.causal_part(noisy)
        given = problem.causal_part((problem.wanted - k) @ problem.psd)
        for tilt in (0, 0.5):
            shares = events.shares * np.exp(tilt * rng.standard_normal(len(events.shares)))
            mixture = events._replace(shares=shares / shares.sum()).at(problem.circle.grid.omega)
            slope, limit = slope_of(problem, best.product, mixture)
            psi = given + slope - problem.causal_part(slope)
            distortion = problem.mean_power(problem.wanted - k)
            for share in (0.9, 1, 1.1):
                bound = MixingBound(problem, mixture, share * limit)
                tight = bound.tighten(psi, 60)
                found += [bound.lowest(x, k, distortion) for x in (psi, tight)]
                np.testing.assert_allclose(causal(problem, tight), causal(problem, psi), atol=1e-10)
    assert max(found) <= best.mse * (1 + 1e-9)
    if correlation < 1:
        assert max(found) >= best.mse * (1 - 2e-2)
