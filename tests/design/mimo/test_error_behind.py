"""Errors behind prefilters, against regressions on a window of v and against the receivers themselves."""

import numpy as np
import pytest
from scipy import linalg, signal

import dpfast as dp
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.error_behind import least_error, smoothed_error
from dpfast.filters.warped_circle import make_circle

MEMORY, DRIVEN = np.array([0.6, -0.3]), np.array([[0.8, 0.0], [0.5, 0.7]])
NOISE, CHANGES, WINDOW = 1.7, np.array([1.0, 0.5]), 120
WANTED = [[([0.3], [1, -0.7]), ([1], [1])]]
PREFILTER = [[([1, 0.4], [1, -0.5]), ([0.3], [1])], [([0], [1]), ([1, -0.2], [1])]]


def matrix(rows):
    return dp.FilterMatrix([[dp.Filter(*x) for x in row] for row in rows])


def sampled(lag, adjacency):
    circle = make_circle(0.3, 512)
    omega, late = circle.grid.omega, circle.z[:, None, None] ** -lag
    model = dp.VectorARMA([np.diag(MEMORY)], innovation_covariance=DRIVEN @ DRIVEN.T)
    return SampledChannels(circle, late * matrix(WANTED).response(omega), model.psd(omega), NOISE, CHANGES, adjacency)


def squared_sensitivity(adjacency):
    """Of this prefilter, by the taps of its columns at all times and signs."""
    first, second = (np.array([taps(*x) for x in column]) for column in zip(*PREFILTER, strict=True))
    first, second = CHANGES[0] * first, CHANGES[1] * second
    if adjacency == "one_input":
        return max((first**2).sum(), (second**2).sum())
    later = [(first[:, k:] * second[:, : WINDOW - k]).sum() for k in range(WINDOW)]
    earlier = [(second[:, k:] * first[:, : WINDOW - k]).sum() for k in range(WINDOW)]
    meet = abs(later[0]) if adjacency == "each_input_same_time" else np.abs([*later, *earlier]).max()
    return (first**2).sum() + (second**2).sum() + 2 * meet


def taps(b, a):
    return signal.lfilter(b, a, np.eye(1, WINDOW)[0])


def matrices(rows):
    """What a system does to a stretch of samples, (outputs * WINDOW, inputs * WINDOW)."""
    return np.block([[linalg.toeplitz(taps(*x), np.zeros(WINDOW)) for x in row] for row in rows])


def regression_error(adjacency, wanted_at, known_until):
    """What the best combination of v up to a time errs for y at another one, in the middle of a stretch."""
    streams = matrices([[([x], [1, -a]) for x in row] for a, row in zip(MEMORY, DRIVEN, strict=True)])
    seen, target = matrices(PREFILTER) @ streams, (matrices(WANTED) @ streams)[wanted_at]
    known = seen.reshape(2, WINDOW, -1)[:, : known_until + 1].reshape(2 * (known_until + 1), -1)
    covariance = known @ known.T + NOISE**2 * squared_sensitivity(adjacency) * np.eye(len(known))
    told = known @ target
    return target @ target - told @ np.linalg.solve(covariance, told)


@pytest.mark.parametrize("many", [0, 64])
@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
@pytest.mark.parametrize("lag", [0, 3])
def test_of_a_lag_it_is_that_of_a_regression(lag, adjacency, many, monkeypatch):
    monkeypatch.setattr("dpfast.design.mimo.error_behind._MANY_STATES", many)
    streams = np.diag(MEMORY), DRIVEN, np.diag(MEMORY), DRIVEN
    found = least_error(sampled(lag, adjacency), streams, matrix(PREFILTER).state_space())
    assert found == pytest.approx(regression_error(adjacency, 80, 80 + lag), rel=1e-9)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
def test_of_a_smoother_it_is_that_of_a_regression(adjacency):
    problem = sampled(0, adjacency)
    found = smoothed_error(problem, matrix(PREFILTER).response(problem.circle.grid.omega))
    assert found == pytest.approx(regression_error(adjacency, 60, WINDOW - 1), rel=1e-9)


def test_streams_without_states_and_a_prefilter_without_states():
    """White streams behind a matrix of gains: each sample tells of itself alone."""
    problem = sampled(0, "one_input")
    white = problem._replace(psd=np.broadcast_to(DRIVEN @ DRIVEN.T, problem.psd.shape))
    gains, nothing = np.array([[1.0, 0.2], [0.0, 1.0]]), np.zeros((0, 0))
    none = nothing, np.zeros((0, 2)), np.zeros((2, 0))
    found = least_error(white, (*none, DRIVEN), (*none, gains))
    noise = NOISE**2 * max(1.0, 0.25 * (0.2**2 + 1)) * np.eye(2)
    covariance = DRIVEN @ DRIVEN.T
    left = covariance - covariance @ gains.T @ np.linalg.solve(gains @ covariance @ gains.T + noise, gains @ covariance)
    # What is wanted is this sample and, of the first stream, former ones: each is told by its own alone.
    former = 0.3**2 / (1 - 0.49) - 0.3**2
    now = np.array([0.3, 1.0])
    assert found == pytest.approx(now @ left @ now + former * left[0, 0], rel=1e-9)


def test_loud_streams_that_one_innovation_drives_keep_their_digits():
    """The spectrum of v is singular but for the noise: with its factor taken at so many nodes all digits were lost."""
    rng = np.random.default_rng(5)
    target = matrix([[([1 - x], [1, -x]) for x in rng.uniform(0.3, 0.97, 3)] for _ in range(3)])
    memory = rng.uniform(0.2, 0.97, 3)
    sizes = np.sqrt(1 - memory**2)
    model = dp.VectorARMA([np.diag(memory)], innovation_covariance=np.outer(sizes, sizes))
    demand = dp.Privacy(1e5, 0.05, adjacency="one_input")
    made = dp.optimal(target, demand, model, lag=5)
    circle = make_circle(0.6, 1024)
    omega, late = circle.grid.omega, circle.z[:, None, None] ** -5
    problem = SampledChannels(
        circle, late * target.response(omega), model.psd(omega), demand.noise_multiplier, np.ones(3), "one_input"
    )
    found = least_error(problem, (model.a, model.b, model.c, model.d), made.prefilter.state_space())
    assert found == pytest.approx(made.predicted_mse, rel=1e-4)


def test_small_errors_of_loud_streams_keep_their_digits():
    """Power less what is told was off by more than all of an error of 1e-11 of it, and could be negative."""
    loud, memory = np.diag([1, 1e4]), 0.9 * np.eye(2)
    root = loud @ np.linalg.cholesky(0.01 * np.eye(2) + 0.99)
    model = dp.VectorARMA([memory], innovation_covariance=root @ root.T)
    target = matrix([[([0.1], [1, -0.9]), ([0.5], [1, -0.5])], [([0.3], [1, -0.7]), ([-0.2], [1, -0.8])]])
    prefilter, demand = (
        matrix([[([1], [1, -0.5]), ([0], [1])], [([0], [1]), ([1], [1, -0.4])]]),
        dp.Privacy(1e3, 0.05, adjacency="one_input"),
    )
    circle = make_circle(0.3, 1024)
    omega, late = circle.grid.omega, circle.z[:, None, None] ** -5
    problem = SampledChannels(
        circle, late * target.response(omega), model.psd(omega), demand.noise_multiplier, np.ones(2), "one_input"
    )
    made = dp.lmmse(target, demand, model, lag=5, prefilter=prefilter)
    found = least_error(problem, (model.a, model.b, model.c, model.d), prefilter.state_space())
    assert found == pytest.approx(made.predicted_mse, rel=1e-6)
    assert found < 1e-10 * problem.mean_power(problem.wanted)
