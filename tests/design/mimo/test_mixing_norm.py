"""The smoothed nuclear norm of a product against a search over mixtures, and against differences."""

import itertools

import numpy as np
import pytest
from scipy import linalg, optimize

from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.event_atoms import EventAtoms, atoms_at_once
from dpfast.design.mimo.mixing_norm import MixingNorm, Softness
from dpfast.filters.warped_circle import make_circle

CHANGES, SOFT = np.array([0.5, 1.0, 2.0]), Softness(0.05, 1e-3)
ATOMS = {
    "one_input": np.diag(CHANGES),
    "each_input_same_time": np.array([(1, *x) for x in itertools.product((1, -1), repeat=2)]) * CHANGES,
    "each_input": np.array([(1, 1, 1), (1, -1, 1), (1, 1, -1), (1, -1, -1), (1, 1, 1)]) * CHANGES,
}
DELAYS = {"each_input": np.array([(0, 0, 0), (0, 1, 0), (2, 0, 0), (0, 0, 0), (0, 3, 1)])}


def events(adjacency):
    changes = ATOMS[adjacency]
    return EventAtoms(changes, DELAYS.get(adjacency, np.zeros(changes.shape, np.int64)))


def make(adjacency, p):
    """Return a norm on 32 nodes of a warped circle, and a K of few taps there with two more directions like it."""
    circle = make_circle(0.3, 64)
    taps = np.random.default_rng(p).standard_normal((3, 4, p, 3))
    k, *others = np.fft.rfft(taps, 64, axis=1)
    blank = np.zeros_like(k)
    problem = SampledChannels(circle, blank, blank[:, :1, :1], 1.0, CHANGES, adjacency)
    return MixingNorm(problem, events(adjacency)), k, others


def mean(norm, values):
    """The weighted mean over the circle."""
    return np.tensordot(norm.problem.circle.grid.weights, values, axes=1)


def along(norm, a, b):
    return mean(norm, (a * b.conj()).real.sum(axis=(1, 2)))


def curve(norm, at, a, b):
    """What the slope changes by along one direction, along another: of one mixture, and as the mixture changes."""
    mixing = sum(along(norm, x, a) * along(norm, x, b) for x in at.mixing())
    return along(norm, at.curve_alone(a), b) + mixing


@pytest.mark.parametrize("adjacency", ATOMS)
@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_it_is_the_largest_over_mixtures_and_grows_by_its_slope_and_curvature(adjacency, p):
    norm, k, (e, other) = make(adjacency, p)
    atoms = [
        x * np.exp(-1j * norm.problem.circle.grid.omega[:, None] * t) for x, t in zip(*events(adjacency), strict=True)
    ]
    start = np.full(len(atoms), 1 / len(atoms))
    at = norm.at(k, start, SOFT)

    def smoothed(shares):
        mixture = sum(share * x[:, :, None] * x[:, None].conj() for share, x in zip(shares, atoms, strict=True))
        squares = np.linalg.eigvalsh(k @ mixture @ np.swapaxes(k, 1, 2).conj())
        return mean(norm, np.sqrt(np.maximum(squares, 0) + 0.05**2).sum(axis=1)) + 1e-3 * np.log(shares).sum()

    only = {"type": "eq", "fun": lambda x: x.sum() - 1}
    limits = [(1e-6, 1)] * len(atoms)
    best = optimize.minimize(lambda x: -smoothed(x), start, constraints=only, bounds=limits, options={"ftol": 1e-13})
    assert at.value == pytest.approx(-best.fun, rel=1e-9)
    assert at.value >= -best.fun * (1 - 1e-12)
    h = 1e-5
    up, down = (norm.at(k + x * e, at.shares, SOFT) for x in (h, -h))
    assert along(norm, at.slope, e) == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6)
    bent = curve(norm, at, e, other)
    assert bent == pytest.approx((along(norm, up.slope, other) - along(norm, down.slope, other)) / (2 * h), rel=1e-5)
    assert bent == pytest.approx(curve(norm, at, other, e), rel=1e-8)
    back = np.swapaxes(np.linalg.inv(np.linalg.cholesky(at.mixture)), 1, 2).conj()
    assert np.linalg.norm(at.slope @ back, 2, axis=(1, 2)).max() < 1


def test_a_product_of_one_input_has_the_mean_of_its_sizes():
    """γ is <|K|₂> d, of which smoothing adds at most θ."""
    circle = make_circle(0.0, 64)
    k = np.fft.rfft(np.random.default_rng(1).standard_normal((4, 2, 1)), 64, axis=0)
    norm = MixingNorm(
        SampledChannels(circle, k, k[:, :1], 1.0, CHANGES[:1], "one_input"), atoms_at_once(CHANGES[:1], "one_input")
    )
    exact = 0.5 * mean(norm, np.linalg.norm(k[:, :, 0], axis=1))
    assert exact <= norm.at(k, np.ones(1), Softness(1e-9, 1e-9)).value <= exact + 4e-9


@pytest.mark.parametrize("adjacency", ATOMS)
def test_it_is_given_up_only_above_a_value(adjacency):
    norm, k, _ = make(adjacency, 2)
    start = np.full(len(norm.atoms.changes), 1 / len(norm.atoms.changes))
    whole = norm.at(k, start, SOFT)
    below = norm.at_below(whole.value * (1 + 1e-9), k, start, SOFT)
    assert below.value == whole.value
    np.testing.assert_array_equal(below.shares, whole.shares)
    assert norm.at_below(whole.value * (1 - 1e-6), k, start, SOFT) is None


@pytest.mark.parametrize("adjacency", ATOMS)
@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_matrices_of_the_curvature_are_what_it_makes_of_each_direction(adjacency, p):
    norm, k, (e, other) = make(adjacency, p)
    at = norm.at(k, np.full(len(norm.atoms.changes), 1 / len(norm.atoms.changes)), SOFT)
    psd = np.swapaxes(other, 1, 2).conj() @ other + np.eye(3)
    matrices = at.curvature(psd, 0.7)
    np.testing.assert_allclose(matrices, np.swapaxes(matrices, 1, 2), atol=1e-9 * np.abs(matrices).max())
    wanted = e @ psd + 0.7 * at.curve_alone(e)
    parts = (np.concatenate([x.real.reshape(33, -1), x.imag.reshape(33, -1)], axis=1) for x in (e, wanted))
    given, curved = parts
    np.testing.assert_allclose((matrices @ given[..., None])[..., 0], curved, rtol=1e-9, atol=1e-9)


def test_curvatures_that_are_singular_but_for_rounding_have_positive_inverses():
    """Of loud streams that one noise drives P has one direction; K is as large in others, where noise hardly bends."""
    norm, k, _ = make("one_input", 2)
    driven = np.random.default_rng(5).standard_normal((len(k), 3, 2)) @ np.array([1, 1j])
    psd = 1e9 * driven[:, :, None] * driven[:, None].conj()
    at = norm.at(1e6 * k, np.full(len(CHANGES), 1 / len(CHANGES)), Softness(1e-6, 1e-9))
    found = at.inverse_curvature(psd, 1e-3)
    assert np.linalg.eigvalsh((found + np.swapaxes(found, 1, 2)) / 2).min() > 0
    curved = at.curvature(psd, 1e-3)
    steps = np.arange(curved.shape[1])
    curved[:, steps, steps] *= 1 + 1e-13
    seen = np.linalg.eigh(curved)[1][:, :, -1:]  # the loudest direction, but for what rounding is of a ridge of 1e-13
    told = np.swapaxes(seen, 1, 2) @ found @ seen * np.linalg.eigvalsh(curved)[:, -1:, None]
    np.testing.assert_allclose(told, 1, rtol=2e-2)


@pytest.mark.parametrize("adjacency", ATOMS)
def test_another_product_beside_the_same_shares_is_as_one_from_the_start(adjacency):
    norm, k, (e, _) = make(adjacency, 2)
    shares = np.linspace(1, 2, len(norm.atoms.changes))
    moved, fresh = norm.at_shares(k, shares, 0.1).elsewhere(k + e), norm.at_shares(k + e, shares, 0.1)
    assert (moved.value, moved.soft) == (fresh.value, fresh.soft)
    np.testing.assert_array_equal(moved.slope, fresh.slope)
    np.testing.assert_array_equal(moved.shares, shares)


def test_a_step_of_the_shares_is_the_inverse_of_the_curvature_times_the_slope():
    rng = np.random.default_rng(3)
    root, shares, slope = rng.standard_normal((6, 6)), np.geomspace(1e-6, 1, 6), rng.standard_normal(6)
    curvature = -root @ root.T - np.diag(1 / shares**2)
    step = MixingNorm._newton_step(slope, curvature, shares)
    np.testing.assert_allclose(step, MixingNorm._solve(curvature, shares) @ slope, rtol=1e-9)
    assert abs(step.sum()) <= 1e-12 * np.abs(step).max()
    best = linalg.null_space(np.ones((1, 6)))  # Newton's step among changes whose sum is zero
    np.testing.assert_allclose(step, best @ np.linalg.solve(best.T @ -curvature @ best, best.T @ slope), rtol=1e-4)
