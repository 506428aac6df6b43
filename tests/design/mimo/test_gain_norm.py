"""The smoothed norm of gains: slope, curvature and its inverse against differences and a matrix that is inverted."""

import numpy as np
import pytest

from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, inner
from dpfast.design.mimo.gain_norm import GainPoint
from dpfast.filters.warped_circle import make_circle

NOISE, CHANGES, SOFT = 1.3, np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.02, 0.3])
both = pytest.mark.parametrize("adjacency", ["one_input", "each_input"])


def values(rng, circle, p=2, m=3):
    """Of real filters: those at the ends of the half circle are real."""
    return np.fft.rfft(rng.standard_normal((circle.size, p, m)), axis=0)


def problem(adjacency, seed=0):
    rng, circle = np.random.default_rng(seed), make_circle(0.4, 8)
    roots = values(rng, circle, 3)
    psd = roots @ np.swapaxes(roots, 1, 2).conj()
    return SampledChannels(circle, values(rng, circle), psd, NOISE, CHANGES, adjacency), values(rng, circle), rng


@both
def test_it_is_the_norm_where_nothing_is_smoothed_and_more_elsewhere(adjacency):
    given, k, _ = problem(adjacency)
    least = DiagonalWeights(given).squared_norm(k)
    assert GainPoint(given, k, np.zeros(3)).value == pytest.approx(least, rel=1e-14)
    assert GainPoint(given, k, SOFT).value > least
    empty = np.zeros_like(k)
    assert GainPoint(given, empty, SOFT).value > 0
    assert not GainPoint(given, empty, SOFT).slope.any()


@both
def test_slope_and_curvature_are_those_of_differences(adjacency):
    given, k, rng = problem(adjacency)
    e, step = values(rng, given.circle), 1e-5
    near = [GainPoint(given, k + x * step * e, SOFT) for x in (-1, 1)]
    at = GainPoint(given, k, SOFT)
    slope = (near[1].value - near[0].value) / (4 * step)
    assert float(given.mean(inner(at.slope, e))) == pytest.approx(slope, rel=1e-8)
    np.testing.assert_allclose(
        at.curve(e, at.directions), (near[1].slope - near[0].slope) / (2 * step), rtol=1e-6, atol=1e-7
    )


@both
def test_slopes_are_nowhere_longer_than_their_levels(adjacency):
    given, k, _ = problem(adjacency)
    k[3, :, 1] = 0
    at = GainPoint(given, k, SOFT)
    assert (np.linalg.norm(at.slope, axis=1) < at.levels).all()
    assert float(at.levels @ (at.levels / CHANGES**2)) == pytest.approx(
        at.value * (1 if adjacency == "one_input" else 3), rel=1e-14
    )


@both
@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize(("damped", "apart"), [(0.0, False), (0.2, False), (0.2, True)])
def test_divisions_undo_the_curvature_at_each_frequency(adjacency, singular, damped, apart):
    """Made anew, column by column; spectra without any power leave the curvature of the norm alone."""
    given, k, rng = problem(adjacency)
    if singular:
        given = given._replace(psd=np.zeros_like(given.psd))
    at = GainPoint(given, k, SOFT)
    e = values(rng, given.circle)
    duals = 0.3 * values(rng, given.circle) / given.circle.size if apart else at.directions
    gains = np.hypot(np.linalg.norm(k, axis=1), SOFT)
    curved = (1 + damped) * e @ given.psd
    for i in range(3):
        unit = (k[:, :, i] / gains[:, i, None] + duals[:, :, i]) / 2
        along = (unit.conj() * e[:, :, i]).real.sum(axis=1)[:, None]
        curved[:, :, i] += NOISE**2 * at.levels[i] / gains[:, i, None] * ((1 + damped) * e[:, :, i] - unit * along)
    np.testing.assert_allclose(at.divide(given.psd, NOISE, duals, damped)(curved), e, rtol=1e-7, atol=1e-7)


@both
def test_duals_follow_the_directions(adjacency):
    """To second order from where they are the directions; from elsewhere they solve the linear equations."""
    given, k, rng = problem(adjacency)
    e, at, step = values(rng, given.circle), GainPoint(given, k, SOFT), 1e-4
    moved = at.move_duals(step * e, at.directions)
    np.testing.assert_allclose(moved, GainPoint(given, k + step * e, SOFT).directions, atol=1e-6)
    assert np.abs(moved - at.directions).max() > 1e-5
    duals = 0.5 * at.directions
    gains = np.hypot(np.linalg.norm(k, axis=1), SOFT)[:, None]
    longer = (at.directions.conj() * e).real.sum(axis=1)[:, None]
    solved = (k + step * e - step * duals * longer) / gains
    solved /= np.maximum(1, np.linalg.norm(solved, axis=1))[:, None]
    np.testing.assert_allclose(at.move_duals(step * e, duals), solved, atol=1e-12)
    assert np.linalg.norm(at.move_duals(100 * e, duals), axis=1).max() <= 1 + 1e-15


@both
def test_curvature_beside_other_duals_is_symmetric_and_nowhere_negative(adjacency):
    given, k, rng = problem(adjacency)
    at, duals = GainPoint(given, k, SOFT), values(rng, given.circle)
    duals /= np.maximum(1, np.linalg.norm(duals, axis=1))[:, None]
    for _ in range(20):
        e, f = values(rng, given.circle), values(rng, given.circle)
        one, other = (float(given.mean(inner(at.curve(x, duals), y))) for x, y in ((e, f), (f, e)))
        assert one == pytest.approx(other, rel=1e-10, abs=1e-10)
        assert float(given.mean(inner(at.curve(e, duals), e))) > 0
