"""Streams that are multiples of one another: found, designed as one, and no shares cost less."""

import numpy as np
import pytest
from scipy.optimize import minimize

import dpfast as dp
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels
from dpfast.design.mimo.joint_channels import channels_optimum
from dpfast.design.mimo.joint_mechanism import _JointProblem
from dpfast.design.mimo.joint_smoother import smooth_jointly
from dpfast.design.mimo.merged_streams import MergedStreams
from dpfast.filters.warped_circle import make_circle

POLES = np.array([0.9, 0.8, 0.8, 0.9])
SCALES = np.array([[1, 0, 0, -0.5], [0, 1, 3, 0]])
TARGET = dp.FilterMatrix([[dp.Filter([0.2], [1, -0.8]), dp.Filter([1, 0.5]), 1, 0.3], [1, 0, -1, 2]])
adjacencies = pytest.mark.parametrize("adjacency", ["one_input", "each_input"])


def sample(adjacency, apart=0.0, scales=SCALES):
    """Four inputs that are multiples of two streams; or nearly, some power being apart."""
    innovations = scales.T @ np.array([[1, 0.6], [0.6, 1]]) @ scales + apart * np.eye(scales.shape[1])
    model = dp.VectorARMA([np.diag(POLES)], innovation_covariance=innovations)

    def at(circle):
        omega, late = circle.grid.omega, circle.z[:, None, None] ** -2
        changes = np.array([1.0, 2.0, 0.5, 0.7])
        return SampledChannels(circle, late * TARGET.response(omega), model.psd(omega), 0.3, changes, adjacency)

    return at


def test_multiples_are_found_and_no_others():
    circle = make_circle(0.6, 256)
    found = MergedStreams.of(sample("one_input")(circle).psd)
    np.testing.assert_array_equal(found.first, [0, 1])
    np.testing.assert_allclose(found.scales, SCALES, rtol=1e-15)
    for apart in (1e-9, 1e-13):
        alone = MergedStreams.of(sample("one_input", apart)(circle).psd)
        np.testing.assert_array_equal(alone.first, range(4))
        np.testing.assert_array_equal(alone.scales, np.eye(4))


@pytest.mark.parametrize("powers", [[0, 0, 1], [1e-300, 1e300, 1]])
def test_inputs_without_power_are_no_multiples(powers):
    psd = np.array([np.diag(powers)] * 5, complex)
    found = MergedStreams.of(psd)
    np.testing.assert_array_equal(found.scales, np.eye(3))


def test_a_problem_without_multiples_stays_as_it_is():
    problem = sample("one_input", 0.1)(make_circle(0.6, 256))
    streams = MergedStreams.of(problem.psd)
    assert streams.merge(problem) is problem
    np.testing.assert_array_equal(streams.spread(problem.wanted, problem), problem.wanted)


@adjacencies
def test_no_shares_cost_less(adjacency):
    """What is wanted of the streams is kept, and the noise is the least that a search over shares finds."""
    problem, rng = sample(adjacency)(make_circle(0.6, 256)), np.random.default_rng(1)
    streams = MergedStreams.of(problem.psd)
    merged = streams.merge(problem)
    k = np.fft.rfft(rng.standard_normal((256, 2, 2)), axis=0)
    spread = streams.spread(k, problem)
    np.testing.assert_allclose(spread @ SCALES.T, k, rtol=1e-13, atol=1e-12)
    least = DiagonalWeights(merged).squared_norm(k)
    assert DiagonalWeights(problem).squared_norm(spread) == pytest.approx(least, rel=1e-13)
    assert problem.mean_power(problem.wanted - spread) == pytest.approx(merged.mean_power(merged.wanted - k), rel=1e-12)

    def cost(shares):
        a, b = shares
        other = np.array([[a, 0, 0, (a - 1) / 0.5], [0, b, (1 - b) / 3, 0]])
        return DiagonalWeights(problem).squared_norm(k @ other)

    for start in ([0.5, 0.5], [0.9, 0.1], [0.0, 1.0]):
        assert minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).fun >= least * (
            1 - 1e-12
        )


@adjacencies
@pytest.mark.parametrize("smoothed", [False, True])
def test_optima_are_those_of_streams_that_are_nearly_multiples(adjacency, smoothed):
    circle = make_circle(0.8, 512)
    exact, near = (
        smooth_jointly(at(circle)) if smoothed else channels_optimum(at, 0.8, 512, 1e-6)
        for at in (sample(adjacency), sample(adjacency, 1e-9))
    )
    assert exact.mse == pytest.approx(near.mse, rel=2e-6)
    assert exact.gap <= 1e-6
    problem = exact.weights.problem
    distortion = problem.mean_power(problem.wanted - exact.product)
    noise = problem.noise**2 * exact.weights.squared_norm(exact.product)
    assert distortion + noise == pytest.approx(exact.mse, rel=1e-6)


@pytest.mark.parametrize("lag", [0, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_streams_that_are_one_are_certified_behind_no_noise_to_speak_of(lag, adjacency):
    slow, quick = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
    target = dp.FilterMatrix([[slow, slow, slow], [quick, -1 * quick, 0]])
    model = dp.VectorARMA([np.diag([0.95, 0.9, 0.9])], innovation_covariance=np.ones((3, 3)))
    problem = _JointProblem(target, dp.Privacy(1e6, 1e-6, adjacency=adjacency), model, [0, 1, 2], lag, "diagonal")
    assert problem.solve(problem.goal(1e-3)).gap <= 1e-6


@pytest.mark.parametrize("options", [{"lag": 3}, {"lag": None}, {"lag": 3, "prefilter": "general"}])
def test_outputs_of_which_all_parts_cancel_are_refused_in_words(options):
    """The difference of two streams that are one is nothing; of two that are nearly one it is published."""
    slow = dp.Filter([0.05], [1, -0.95])
    target, privacy = dp.FilterMatrix([[slow, -1 * slow]]), dp.Privacy(1, 1e-5, adjacency="one_input")
    model = dp.VectorARMA([0.8 * np.eye(2)], innovation_covariance=np.ones((2, 2)))
    with pytest.raises(dp.DesignError, match=r"target must have an output .* parts cancel"):
        dp.optimal(target, privacy, model, **options)
    near = dp.VectorARMA([0.8 * np.eye(2)], innovation_covariance=np.ones((2, 2)) + 1e-3 * np.eye(2))
    assert dp.optimal(target, privacy, near, lag=3).ideal_mse > 0
