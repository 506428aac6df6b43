"""The smoothed norm of gains: slope, curvature and its inverse against differences and a matrix that is inverted."""

import math

import numpy as np
import pytest

from dpfast._kernels.matrix_tiles import make_room
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, inner
from dpfast.design.mimo.gain_curvature import GainCurvature
from dpfast.design.mimo.gain_norm import GainPoint, centre_at
from dpfast.design.mimo.node_transforms import NodesAlone, NodeTransforms
from dpfast.filters.warped_circle import make_circle

NONE, IN_ORDER = np.zeros((5, 2, 3)), np.arange(5)
NOISE, CHANGES, SOFT = 1.3, np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.02, 0.3])
both = pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
about = pytest.mark.parametrize("about", ["nothing", "directions"])


def values(rng, circle, p=2, m=3):
    """Of real filters: those at the ends of the half circle are real."""
    return np.fft.rfft(rng.standard_normal((circle.size, p, m)), axis=0)


def problem(adjacency, seed=0, size=8):
    rng, circle = np.random.default_rng(seed), make_circle(0.4, size)
    roots = values(rng, circle, 3)
    psd = roots @ np.swapaxes(roots, 1, 2).conj()
    return SampledChannels(circle, values(rng, circle), psd, NOISE, CHANGES, adjacency), values(rng, circle), rng


def centre(kind, rng, circle):
    """About nothing, or about directions, the lengths of which are up to almost one."""
    if kind == "nothing":
        return NONE
    directions = values(rng, circle)
    lengths = rng.uniform(0.1, 0.999, (len(circle.z), 1, 3))
    return centre_at(directions / np.linalg.norm(directions, axis=1, keepdims=True) * lengths)


def curve(given, at, e, duals):
    """Half of what the slope of γ² changes by along E."""
    alone = given._replace(psd=np.zeros_like(given.psd))
    return multiply(GainCurvature(alone, at, duals, 0.0, IN_ORDER, 2), at, given, e) / NOISE**2


def multiply(curvature, at, given, e):
    longer = given.mean((at.directions.conj() * e).real.sum(axis=1))
    return through(lambda x: curvature.multiply(x, longer), given, e)


def through(change, given, e):
    """Return what E is changed to at the nodes of a circle, where it is taken times its unit, and nodes last."""
    (nodes, p, m), unit = e.shape, given.circle.unit[:, None, None]
    with_room, last = make_room(p, m, nodes), np.moveaxis(e * unit, 0, 2).reshape(p * m, nodes)
    with_room[:, 0, :nodes], with_room[:, 1, :nodes] = last.real, last.imag
    change(with_room)
    parts = with_room[:, :, :nodes]
    return np.moveaxis((parts[:, 0] + 1j * parts[:, 1]).reshape(p, m, nodes), 2, 0) / unit


@both
def test_it_is_the_norm_where_nothing_is_smoothed_and_more_elsewhere(adjacency):
    given, k, _ = problem(adjacency)
    least = DiagonalWeights(given).squared_norm(k)
    assert GainPoint(given, k, np.zeros(3), NONE).value == pytest.approx(least, rel=1e-14)
    assert GainPoint(given, k, SOFT, NONE).value > least
    empty = np.zeros_like(k)
    assert GainPoint(given, empty, SOFT, NONE).value > 0
    assert not GainPoint(given, empty, SOFT, NONE).slope.any()


@both
@about
def test_slope_and_curvature_are_those_of_differences(adjacency, about):
    given, k, rng = problem(adjacency)
    e, step, c = values(rng, given.circle), 1e-5, centre(about, rng, given.circle)
    near = [GainPoint(given, k + x * step * e, SOFT, c) for x in (-1, 1)]
    at = GainPoint(given, k, SOFT, c)
    slope = (near[1].value - near[0].value) / (4 * step)
    assert float(given.mean(inner(at.slope, e))) == pytest.approx(slope, rel=1e-8)
    np.testing.assert_allclose(
        curve(given, at, e, at.directions), (near[1].slope - near[0].slope) / (2 * step), rtol=1e-6, atol=1e-7
    )


@both
def test_about_any_directions_it_is_no_more_than_the_norm_but_for_what_is_smoothed(adjacency):
    given, k, rng = problem(adjacency)
    least, smoothed = math.sqrt(DiagonalWeights(given).squared_norm(k)), float(CHANGES @ SOFT)
    for share in (1, 1e-3, 1e-6):
        value = GainPoint(given, k, share * SOFT, centre("directions", rng, given.circle)).value
        assert math.sqrt(value) <= least + share * smoothed


@both
def test_about_directions_that_are_known_those_are_nearer_to_gains(adjacency):
    """What is lost of the norm along its slope shrinks from one smoothing to the next, with nothing smoothed less."""
    given, k, _ = problem(adjacency)
    k[3, :, 1] = 0
    first = GainPoint(given, k, SOFT, NONE)
    second = GainPoint(given, k, SOFT, centre_at(first.directions))
    sizes = given.mean(np.linalg.norm(k, axis=1))
    losses = [sizes - given.mean((x.directions.conj() * k).real.sum(axis=1)) for x in (first, second)]
    assert (0 < losses[1]).all()
    assert (losses[1] < 0.85 * losses[0]).all()


def test_centres_are_where_gains_that_vanish_have_their_directions():
    """Of K = 0 the directions are those that the centre was made of, if they are not too long."""
    given, _, rng = problem("one_input")
    directions = values(rng, given.circle)
    directions *= rng.uniform(0, 0.99, (5, 1, 3)) / np.linalg.norm(directions, axis=1, keepdims=True)
    at = GainPoint(given, NONE, SOFT, centre_at(directions))
    np.testing.assert_allclose(at.directions, directions, atol=1e-14)
    longest = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    np.testing.assert_allclose(centre_at(longest), 10 * longest, rtol=1e-7)


def test_a_step_that_turns_gains_round_leaves_levels_above_zero():
    """Far back along the directions of a centre the smoothed gains would be negative."""
    given, k, _ = problem("one_input")
    at = GainPoint(given, k, SOFT, NONE)
    back = GainPoint(given, -0.5 * SOFT * centre_at(at.directions), SOFT, centre_at(at.directions))
    assert (back.levels > 0).all()
    assert math.sqrt(back.value) < 0.1 * CHANGES @ SOFT


@both
def test_slopes_are_nowhere_longer_than_their_levels(adjacency):
    given, k, _ = problem(adjacency)
    k[3, :, 1] = 0
    at = GainPoint(given, k, SOFT, NONE)
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
    at = GainPoint(given, k, SOFT, NONE)
    e = values(rng, given.circle)
    duals = 0.3 * values(rng, given.circle) / given.circle.size if apart else at.directions
    gains = np.hypot(np.linalg.norm(k, axis=1), SOFT)
    curved = (1 + damped) * e @ given.psd
    for i in range(3):
        unit = (k[:, :, i] / gains[:, i, None] + duals[:, :, i]) / 2
        along = (unit.conj() * e[:, :, i]).real.sum(axis=1)[:, None]
        curved[:, :, i] += NOISE**2 * at.levels[i] / gains[:, i, None] * ((1 + damped) * e[:, :, i] - unit * along)
    divided = through(GainCurvature(given, at, duals, damped, IN_ORDER, 2).divide, given, curved)
    np.testing.assert_allclose(divided, e, rtol=1e-7, atol=1e-7)


@both
def test_the_curvature_of_the_error_is_that_of_the_distortion_and_of_the_noise(adjacency):
    given, k, rng = problem(adjacency)
    at, e = GainPoint(given, k, SOFT, NONE), values(rng, given.circle)
    found = multiply(GainCurvature(given, at, at.directions, 0.0, IN_ORDER, 2), at, given, e)
    np.testing.assert_allclose(found, e @ given.psd + NOISE**2 * curve(given, at, e, at.directions), rtol=1e-12)


@both
@pytest.mark.parametrize("kind", [NodeTransforms, NodesAlone])
def test_how_much_longer_columns_get_is_a_product_of_taps(adjacency, kind):
    given, k, rng = problem(adjacency, size=128)
    at, e = GainPoint(given, k, SOFT, np.zeros_like(k)), values(rng, given.circle)
    transforms, unit = kind(2, 3, given.circle.size), given.circle.unit[:, None, None]
    along = transforms.taps(GainCurvature(given, at, at.directions, 0.0, transforms.order, 2).tangents())
    longer = given.mean((at.directions.conj() * e).real)
    np.testing.assert_allclose(
        (along * transforms.taps(e * unit)).sum(axis=(1, 2)), longer.ravel(), rtol=1e-12, atol=1e-14
    )


@both
def test_duals_follow_the_directions(adjacency):
    """To second order from where they are the directions; from elsewhere they solve the linear equations."""
    given, k, rng = problem(adjacency)
    e, at, step = values(rng, given.circle), GainPoint(given, k, SOFT, NONE), 1e-4
    moved = at.move_duals(step * e, at.directions)
    np.testing.assert_allclose(moved, GainPoint(given, k + step * e, SOFT, NONE).directions, atol=1e-6)
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
    at, duals = GainPoint(given, k, SOFT, NONE), values(rng, given.circle)
    duals /= np.maximum(1, np.linalg.norm(duals, axis=1))[:, None]
    for _ in range(20):
        e, f = values(rng, given.circle), values(rng, given.circle)
        one, other = (float(given.mean(inner(curve(given, at, x, duals), y))) for x, y in ((e, f), (f, e)))
        assert one == pytest.approx(other, rel=1e-10, abs=1e-10)
        assert float(given.mean(inner(curve(given, at, e, duals), e))) > 0
