"""Joint optima of streams far louder than the noise: those of zero forcing, with all their digits."""

import math

import numpy as np
import pytest
from scipy import optimize

import dpfast as dp
from dpfast.design.mimo.joint_mechanism import _JointProblem

PRIVACY = dp.Privacy(1e3, 0.05, adjacency="one_input")
POLES, SIGNS = np.array([[0.9, 0.5], [0.7, 0.8]]), np.array([[1, 1], [1, -1]])
GOALS = {"diagonal": 1e-6, "general": 1e-4}
forms = pytest.mark.parametrize("form", GOALS)
lags = pytest.mark.parametrize("lag", [10, 0, None])


def smoothing(pole):
    return dp.Filter([1 - pole], [1, -pole])


TARGET = dp.FilterMatrix(
    [[int(s) * smoothing(x) for s, x in zip(*row, strict=True)] for row in zip(SIGNS, POLES, strict=True)]
)


def streams(size):
    """Two outputs of six states that one noise drives, and white noise on them that is not as loud."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal((6, 6))
    a *= 0.95 / np.abs(np.linalg.eigvals(a)).max()
    b, c, d = rng.standard_normal((6, 2)), rng.standard_normal((2, 6)), rng.standard_normal((2, 2))
    return dp.VectorARMA.from_state_space(a, b, size * c, d)


def undistorted(form):
    """The least MSE without distortion: Σ (mean gain)², or the square of the mean nuclear norm at the worst shares."""
    n = 2**12
    z = np.exp(-1j * (np.arange(n) + 0.5) * math.pi / n)[:, None, None]
    f = SIGNS * (1 - POLES) / (1 - POLES * z)
    if form == "diagonal":
        return PRIVACY.noise_multiplier**2 * (np.linalg.norm(f, axis=1).mean(axis=0) ** 2).sum()

    def norm(share):
        return np.linalg.svd(f * np.sqrt([share, 1 - share]), compute_uv=False).sum(axis=1).mean()

    worst = optimize.minimize_scalar(lambda x: -norm(x), bounds=(0.01, 0.99), method="bounded")
    assert 0.02 < worst.x < 0.98
    return (PRIVACY.noise_multiplier * norm(worst.x)) ** 2


@forms
@lags
@pytest.mark.parametrize("size", [1e4, 1e5])
def test_optima_are_certified_and_near_to_those_without_distortion(form, lag, size):
    """Of a power of 1e13 and 1e15 of the noise's: nothing was left of F - K, and gaps were 1e-2, and 1."""
    found = _JointProblem(TARGET, PRIVACY, streams(size), [0, 1], lag, form).solve(GOALS[form])
    assert found.gap <= GOALS[form]
    assert found.mse == pytest.approx(undistorted(form), rel=GOALS[form])
    assert found.lower_bound <= undistorted(form) * (1 + 1e-6)  # less would be a false certificate


@forms
@lags
def test_designs_of_loud_streams_are_within_the_tolerance(form, lag):
    """Warnings are errors here. Errors of smoothers were told as the difference of two powers."""
    made = dp.optimal(TARGET, PRIVACY, streams(1e4), lag="smoother" if lag is None else lag, prefilter=form)
    assert made.predicted_mse <= 1.001 * made.ideal_mse
    assert made.lower_bound_mse >= made.ideal_mse * (1 - GOALS[form])


@forms
@pytest.mark.parametrize("lag", [5, "smoother"])
def test_a_quiet_stream_is_published_beside_one_that_is_ever_so_loud(form, lag):
    """It was taken as one that tells nothing, of 1e-10 of the power of the other: most of what there is to err."""
    sizes = np.array([1.0, 1e5])
    model = dp.VectorARMA([np.diag([0.9, 0.5])], innovation_covariance=np.diag(sizes**2 * (1 - np.array([0.81, 0.25]))))
    target = dp.FilterMatrix([[smoothing(0.8), 0], [0, smoothing(0.8)]])
    made = dp.optimal(target, dp.Privacy(30, 0.05, adjacency="one_input"), model, lag=lag, prefilter=form)
    alone = dp.optimal(smoothing(0.8), dp.Privacy(30, 0.05), dp.ARMA([math.sqrt(0.19)], [1, -0.9]), lag=lag)
    assert made.predicted_mse <= 1.001 * made.ideal_mse
    assert made.output_mse[0] <= 1.001 * alone.predicted_mse
