import math

import numpy as np
import pytest
from helpers.stream_statistics import SIGMAS, worst_z
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import linalg, signal

from dpfast import ARMA, DesignError

OMEGA = np.linspace(0, np.pi, 101)


armas = {
    "white": ([2], [1]),
    "moving average": ([1, 0.5, 0.25], [1]),
    "AR(1)": ([1], [1, -0.9]),
    "AR(2)": ([1], [1, -1.2, 0.72]),
    "ARMA": ([1, 0.4], [1, -0.5, 0.06]),
    "long AR": ([1], [1] + [0] * 39 + [-0.5]),
}
every_arma = pytest.mark.parametrize(("b", "a"), armas.values(), ids=armas)


def arma_autocovariances(b, a, n):
    h = signal.lfilter(b, a, np.eye(1, 5000)[0])
    return np.array([h[: len(h) - k] @ h[k:] for k in range(n)])


@every_arma
def test_moments_and_psd_of_arma(b, a):
    model = ARMA(b, a, innovation_std=3, mean=-2)
    assert model.mean == -2
    assert model.variance == pytest.approx(9 * arma_autocovariances(b, a, 1)[0], rel=1e-9)
    np.testing.assert_allclose(model.psd(OMEGA), 9 * np.abs(signal.freqz(b, a, OMEGA)[1]) ** 2, rtol=1e-9)
    assert model.levels is None
    assert model.probabilities is None


@pytest.mark.slow_nojit
@every_arma
def test_samples_of_arma_are_stationary_from_the_first(b, a):
    x = ARMA(b, a, mean=10, innovation_std=2).sample(8000, 4, seed=11) - 10
    r = 4 * arma_autocovariances(b, a, 4)
    products = np.stack([x[:, i] * x[:, j] for i in range(4) for j in range(i + 1)], axis=1)
    expected = [r[i - j] for i in range(4) for j in range(i + 1)]
    assert worst_z(x, 0) < SIGMAS
    assert worst_z(products, expected) < SIGMAS


@pytest.mark.slow_nojit
def test_samples_of_slow_arma_are_stationary_from_the_first():
    a = np.poly([0.9998, 0.9])
    x = ARMA([1], a).sample(8000, 3, seed=2)
    variance = (1 + a[2]) / ((1 - a[2]) * ((1 + a[2]) ** 2 - a[1] ** 2))
    assert worst_z(x**2, variance) < SIGMAS


@pytest.mark.slow_nojit
def test_samples_are_rounded_to_the_nearest_level():
    model = ARMA([1], [1, -0.5], levels=[3, 0, -3, 3])
    u = model.sample(50, 1000, seed=1)
    plain = ARMA([1], [1, -0.5]).sample(50, 1000, seed=1)
    assert model.levels.tolist() == [-3, 0, 3]
    np.testing.assert_array_equal(u, 3 * np.clip(np.round(plain / 3), -1, 1))
    np.testing.assert_allclose(model.probabilities.sum(), 1)
    assert model.probabilities[0] == model.probabilities[2] < model.probabilities[1]


def test_levels_far_from_the_mean_keep_probabilities():
    probabilities = ARMA([0.001], levels=[-100, 100], mean=50).probabilities
    assert probabilities.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("b", "options", "message"),
    [
        # the paper's printed spectrum: variance 1 on ±1/2
        ([math.sqrt(0.75)], {"levels": [-0.5, 0.5]}, r"variance of at most 0\.25, got a spectrum with variance 1:"),
        ([0.5], {"levels": [0, 1], "mean": 0.2}, r"at most 0\.16, got"),
        ([0.5], {"levels": [0, 1], "mean": 2}, "at most 0, got"),
        ([0.5], {"levels": [1]}, "at most 0, got"),
    ],
)
def test_spectra_that_an_alphabet_cannot_have_are_refused(b, options, message):
    with pytest.raises(DesignError, match=message):
        ARMA(b, [1, -0.5], **options)


def test_an_alphabet_may_just_have_the_variance():
    assert ARMA([math.sqrt(3) / 4], [1, -0.5], levels=[-0.5, 0.5]).variance == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize(
    ("b", "a", "options", "message"),
    [
        ([0], [1], {}, "b must not be all zeros"),
        ([1], [1, -1], {}, "stable"),
        ([1], [1], {"innovation_std": 0}, "innovation_std must be"),
        ([1], [1], {"mean": math.nan}, "mean must be"),
        ([1], [1], {"levels": []}, "levels must not be empty"),
        ([1], [1], {"levels": ["a"]}, "levels must hold real numbers"),
    ],
)
def test_bad_arma_is_refused(b, a, options, message):
    with pytest.raises(ValueError, match=message):
        ARMA(b, a, **options)


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [[1], [1, -0.9], [1, -1.2, 0.72], [1, 0.5, 0, -0.3]])
def test_fit_recovers_an_autoregression(a):
    n = 100_000
    u = 5 + 2 * signal.lfilter([1], a, np.random.default_rng(0).standard_normal((2, n)))[:, 1000:]
    model = ARMA.fit(u, len(a) - 1)
    # standard errors of the coefficients are below 1/√(2n)
    np.testing.assert_allclose(model.shaping.a, a, atol=SIGMAS / math.sqrt(2 * (n - 1000)) + 1e-4)
    assert model.shaping.b[0] == pytest.approx(2, abs=0.03)
    assert model.mean == pytest.approx(u.mean())


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=60), st.integers(0, 8))
def test_fits_are_stable_and_keep_the_sample_variance(u, order):
    assume(len(set(u)) > 1 and order < len(u))
    model = ARMA.fit(u, order)
    assert (np.abs(model.shaping.poles) < 1).all()
    assert model.variance == pytest.approx(np.var(u), rel=1e-6)


def test_fit_solves_the_yule_walker_equations():
    u = np.random.default_rng(1).standard_normal((3, 50)).cumsum(axis=1)
    x = u - u.mean()
    r = np.array([(x[:, : 50 - k] * x[:, k:]).sum() / 150 for k in range(4)])
    np.testing.assert_allclose(ARMA.fit(u, 3).shaping.a[1:], -linalg.solve(linalg.toeplitz(r[:3]), r[1:]), rtol=1e-9)


def test_fit_of_order_0_is_white():
    model = ARMA.fit([1, 2, 4, 1], 0)
    assert model.shaping.is_fir
    assert (model.mean, model.variance) == (2, pytest.approx(1.5))


@pytest.mark.parametrize(
    ("u", "order", "message"),
    [
        ([1, 2], 2, r"with more than 2 samples, got \(2,\)"),
        (np.ones((2, 3, 4)), 1, r"time.* got \(2, 3, 4\)"),
        ([], 0, "u must not be empty"),
        ([3, 3, 3], 1, "u must not be constant"),
        (np.full(1000, 0.1), 2, "u must not be constant"),
        (np.full(997, 7.3), 0, "u must not be constant"),
        ([1.0], 0, "u must not be constant"),
        ([1, math.nan], 0, "u must be finite"),
        ([1, 2, 3], -1, "order must be an integer"),
        ([1, 2, 3], 1.0, "order must be an integer"),
        (["a", "b"], 0, "u must hold real numbers"),
    ],
)
def test_bad_observations_are_refused(u, order, message):
    with pytest.raises(ValueError, match=message):
        ARMA.fit(u, order)


@pytest.mark.parametrize("order", [1, 2, 20])
@pytest.mark.parametrize("u", [np.sin(0.3 * np.arange(100_000)), np.linspace(0, 1, 300_000)], ids=["sine", "trend"])
def test_fit_of_an_almost_predictable_stream_is_stable_or_says_so(u, order):
    try:
        model = ARMA.fit(u, order)
    except ValueError as error:
        assert "u must" in str(error) or "order must" in str(error)  # noqa: PT017
    else:
        assert model.variance == pytest.approx(u.var(), rel=1e-2)


def test_fit_keeps_levels():
    assert ARMA.fit([0, 1, 1, 0, 1], 1, levels=[1, 0]).levels.tolist() == [0, 1]
