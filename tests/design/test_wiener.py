"""Wiener receivers behind a given prefilter, against Riccati equations and formulas on a frequency grid."""

import itertools
import math
import warnings

import numpy as np
import pytest
from helpers.covers import long_but, pairwise
from helpers.plants import CHAIN, EXAMPLE, PRIVACY, Plant, models, prefilters, privacies, riccati_mse, targets
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import linalg, signal

from dpfast import ARMA, DesignError, Filter, IndependentLevels, MarkovChain, Privacy, lmmse
from dpfast.design.wiener import wiener_mse

ALL_PASS = Filter([-0.5, 1], [1, -0.5])


# --- Riccati equations ----------------------------------------------------------------------------

PLANTS = {
    "example": (([1, 0.995], [1, -0.995]), ([math.sqrt(3) / 4], [1, -0.5]), ([1, 0.2], [1, -0.9])),
    "white signal": (([1], [1, -0.9]), ([0.5], [1]), ([1, -0.3], [1, -0.8])),
    "moving average": ((np.full(10, 0.1), [1]), ([0.4], [1, -1.2, 0.72]), ([1], [1])),
    "outside zeros": (([1, -2.5], [1, -0.6]), ([1, 0.4], [1, 0.3]), ([1, 0.5], [1, -0.4, 0.2])),
    "signal with an outside zero": (([1], [1, -0.9]), ([1, -2], [1, -0.5]), ([1], [1, -0.5])),
    "prefilter with a delay and an outside zero": (([1], [1, -0.9]), ([1], [1, -0.5]), ([0, 1, -2], [1, -0.5])),
    "target with a delay": (([0, 0, 1], [1, -0.5]), ([1], [1, -0.9]), ([1], [1, -0.7])),
    "signal with a zero on the circle": (([1], [1, -0.8]), ([1, 1], [1, -0.5]), ([1], [1, -0.6])),
    "target with a zero on the circle": (([1, -1], [1]), ([1], [1, -0.95]), ([1, -0.9], [1, -0.2])),
    "poles in common": (([1], [1, -1.8, 0.81]), ([1], [1, -0.9]), ([1], [1, -0.9])),
    "prefilter with a zero on the circle": (([1], [1, -0.8]), ([1], [1, -0.5]), ([1, -1], [1, -0.6])),
}


CAUSAL = [*PLANTS], [0, 1, 2, 3, 5], [0.1, 3]


@pytest.mark.parametrize(
    "cases",
    [pairwise(*CAUSAL)[::2], pytest.param([*itertools.product(*CAUSAL)], marks=pytest.mark.long)],
    ids=["few", "all"],
)
def test_causal_wiener_receiver_is_the_kalman_filter(cases):
    wrong = []
    for name, lag, epsilon in cases:
        target, shaping, prefilter = PLANTS[name]
        privacy = Privacy(epsilon, 1e-3)
        mechanism = lmmse(Filter(*target), privacy, ARMA(*shaping), lag=lag, prefilter=Filter(*prefilter))
        expected = riccati_mse(target, shaping, prefilter, mechanism.noise_std**2, lag)
        if mechanism.predicted_mse != pytest.approx(expected, rel=1e-8):
            wrong.append((name, lag, epsilon, mechanism.predicted_mse, expected))
        if mechanism.ideal_mse != mechanism.predicted_mse:
            wrong.append((name, lag, epsilon, mechanism.predicted_mse, mechanism.ideal_mse))
    assert wrong == []


@given(targets, models, prefilters, privacies, st.integers(0, 5))
@settings(max_examples=15)
def test_causal_wiener_receiver_is_the_kalman_filter_whatever_the_plant(target, model, prefilter, privacy, lag):
    mechanism = lmmse(target, privacy, model, lag=lag, prefilter=prefilter)
    parts = [(f.b, f.a) for f in (target, model.shaping, prefilter)]
    try:
        expected = riccati_mse(*parts, mechanism.noise_std**2, lag)
    except linalg.LinAlgWarning:  # roots in a cluster: no oracle
        reject()
    variance, _ = Plant(mechanism, 2**12).variances()
    assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-6, abs=1e-9 * variance)


# --- Wiener's formulas ----------------------------------------------------------------------------


@given(st.integers(-95, 95), st.integers(-95, 95), st.sampled_from([0, 1, 3]))
def test_from_white_input_behind_the_identity_the_receiver_is_the_target_shrunk(first, second, lag):
    """Nothing is to be predicted or smoothed: H = z⁻ᴰ F · variance/(variance + σ²)."""
    target = Filter([1.0], np.poly([first / 100, second / 100]))
    mechanism = lmmse(target, PRIVACY, IndependentLevels([0, 1], [0.5, 0.5]), lag=lag, prefilter=Filter([1]))
    shrunk = 0.25 / (0.25 + PRIVACY.noise_multiplier**2)
    expected = np.pad(shrunk * target.impulse(50), (lag, 0))
    np.testing.assert_allclose(mechanism.receiver.filter.impulse(50 + lag), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("target", "shaping", "prefilter"), PLANTS.values(), ids=PLANTS)
def test_smoother_is_wieners_formula(target, shaping, prefilter):
    mechanism = lmmse(Filter(*target), PRIVACY, ARMA(*shaping), prefilter=Filter(*prefilter))
    plant = Plant(mechanism, 512)
    expected = plant.P * plant.wanted * plant.G.conj() / (plant.P * np.abs(plant.G) ** 2 + plant.noise)
    np.testing.assert_allclose(plant.H, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("angle", [0, 0.3, 1, 2, math.pi])
@pytest.mark.parametrize("finest", [1e-2, 1e-3, 1e-4])
def test_prefilters_with_clusters_of_poles_and_zeros_near_the_circle_work(angle, finest):
    """Interlaced on a ray, as realisations of a resonator's square root are."""
    distances = finest * np.geomspace(1, 300, 10)
    turn = np.array([1.0]) if angle in (0, math.pi) else np.exp([1j * angle, -1j * angle])
    ray = np.outer(1 - distances, turn if angle < 3 else -turn)
    zeros, poles = ray[1::2].ravel(), ray[::2].ravel()
    prefilter = Filter.from_zpk(zeros, poles, 1.0)
    receiver = lmmse(Filter([1], [1, -0.5]), PRIVACY, CHAIN, prefilter=prefilter).receiver
    near = angle + finest * np.linspace(-20, 20, 81)
    omega = np.concatenate([np.linspace(0, np.pi, 100), near[(near >= 0) & (near <= np.pi)]])
    z = np.exp(1j * omega)
    G = np.prod(z[:, None] - zeros, axis=1) / np.prod(z[:, None] - poles, axis=1)
    P = 3 / 16 / np.abs(1 - 0.5 / z) ** 2
    noise = PRIVACY.noise_std(prefilter) ** 2
    expected = P * G.conj() / (1 - 0.5 / z) / (P * np.abs(G) ** 2 + noise)
    np.testing.assert_allclose(receiver.response(omega), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@given(targets, models, prefilters, privacies)
def test_smoother_is_wieners_formula_whatever_the_plant(target, model, prefilter, privacy):
    plant = Plant(lmmse(target, privacy, model, prefilter=prefilter), 256)
    expected = plant.P * plant.wanted * plant.G.conj() / (plant.P * np.abs(plant.G) ** 2 + plant.noise)
    np.testing.assert_allclose(plant.H, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(
    "cases",
    [
        [*itertools.product(PLANTS, [None]), *zip(PLANTS, itertools.cycle([0, 1, 5, 17]), strict=False)],
        pytest.param([*itertools.product(PLANTS, [None, 0, 1, 5, 17])], marks=pytest.mark.long),
    ],
    ids=["two lags", "all"],
)
def test_the_error_is_orthogonal_to_what_the_receiver_sees(cases):
    wrong = []
    for name, lag in cases:
        target, model, prefilter = (kind(*x) for kind, x in zip((Filter, ARMA, Filter), PLANTS[name], strict=True))
        mechanism = lmmse(target, PRIVACY, model, lag=lag, prefilter=prefilter)
        plant = Plant(mechanism)
        correlation = plant.error_correlation()
        seen = correlation if lag is None else correlation[: len(correlation) // 2]
        if not np.abs(seen).max() <= 1e-9 * math.sqrt(math.prod(plant.variances())):
            wrong.append((name, lag, np.abs(seen).max()))
        if plant.mse(plant.H) != pytest.approx(mechanism.predicted_mse, rel=1e-8):
            wrong.append((name, lag, plant.mse(plant.H), mechanism.predicted_mse))
    assert wrong == []


@given(targets, models, prefilters, st.sampled_from([0, 1, 4, None]), st.integers(0, 8), st.floats(0.01, 1))
@settings(max_examples=15)
def test_no_other_receiver_is_better(target, model, prefilter, lag, tap, size):
    plant = Plant(lmmse(target, PRIVACY, model, lag=lag, prefilter=prefilter), 2**12)
    least = plant.mse(plant.H)
    scale = math.sqrt((np.abs(plant.H) ** 2).mean()) + 1e-12
    for step in (-size * scale, size * scale):
        assert plant.mse(plant.H + step * np.exp(-1j * tap * plant.omega)) >= least * (1 - 1e-9)
        assert plant.mse(plant.H * (1 + step / scale * np.exp(-1j * tap * plant.omega))) >= least * (1 - 1e-9)


@given(targets, models, prefilters, privacies)
@settings(max_examples=8)
def test_a_later_estimate_is_never_worse_and_the_smoother_is_best(target, model, prefilter, privacy):
    errors = [lmmse(target, privacy, model, lag=lag, prefilter=prefilter).predicted_mse for lag in (0, 1, 2, 5, 20)]
    errors.append(lmmse(target, privacy, model, prefilter=prefilter).predicted_mse)
    assert (np.diff(errors) <= 1e-8 * errors[0]).all()


@given(targets, models, prefilters, privacies, st.integers(0, 5))
def test_the_wiener_error_is_at_most_the_variance_of_the_output(target, model, prefilter, privacy, lag):
    mechanism = lmmse(target, privacy, model, lag=lag, prefilter=prefilter)
    variance, _ = Plant(mechanism, 2**12).variances()
    assert 0 < mechanism.predicted_mse <= variance * (1 + 1e-9)


@pytest.mark.parametrize("lag", [50, 150, 500])
@pytest.mark.parametrize("target", [EXAMPLE, Filter([1], [1, -0.9999]), Filter(np.full(12, 1 / 12)), Filter([1, -2])])
def test_long_lags_approach_the_smoother(target, lag):
    prefilter = Filter([1, 0.2], [1, -0.9])
    late = lmmse(target, PRIVACY, CHAIN, lag=lag, prefilter=prefilter)
    smoother = lmmse(target, PRIVACY, CHAIN, prefilter=prefilter)
    assert late.predicted_mse == pytest.approx(smoother.predicted_mse, rel=1e-6)
    assert late.predicted_mse >= smoother.predicted_mse * (1 - 1e-9)


@pytest.mark.parametrize("pole", [1 - 2e-5, -(1 - 2e-5)])
def test_a_pole_at_the_limit_works_at_a_finite_lag(pole):
    smoother, late, now = (
        lmmse(Filter([1], [1, -pole]), PRIVACY, CHAIN, lag=lag, prefilter=Filter([1], [1, -0.9]))
        for lag in (None, 9, 0)
    )
    assert smoother.predicted_mse <= late.predicted_mse * (1 + 1e-8)
    assert late.predicted_mse < now.predicted_mse


@pytest.mark.parametrize(
    ("n_taps", "lag"), long_but([*itertools.product([33, 100, 300], [None, 0, 5])], [(33, 0), (100, None), (300, 5)])
)
def test_long_prefilters_work(n_taps, lag):
    taps = 0.95 ** np.arange(n_taps)
    long, short = Filter(taps), Filter([1], [1, -0.95])
    mechanism = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag, prefilter=long)
    plant = Plant(mechanism)
    assert plant.mse(plant.H) == pytest.approx(mechanism.predicted_mse, rel=1e-8)
    assert np.abs(plant.error_correlation()[: 2**13]).max() <= 1e-9 * math.sqrt(math.prod(plant.variances()))
    if n_taps == 300:  # all but the recursion
        expected = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag, prefilter=short).predicted_mse
        assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("lag", [None, 0, 3])
def test_the_gain_and_the_phase_of_a_prefilter_do_not_matter(lag):
    plain = Filter([1, 0.2], [1, -0.9])
    expected = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag, prefilter=plain)
    scaled = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag, prefilter=-1e4 * plain)
    assert scaled.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-9)
    if lag is None:
        turned = lmmse(EXAMPLE, PRIVACY, CHAIN, prefilter=plain * ALL_PASS * Filter([0, 1]))
        assert turned.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-9)
    else:
        late = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag + 2, prefilter=plain * Filter([0, 0, 1]))
        assert late.predicted_mse == pytest.approx(expected.predicted_mse, rel=1e-9)


@pytest.mark.parametrize("lag", [0, 5])
def test_the_receiver_is_stable_and_its_pulse_response_is_the_least_squares_solution(lag):
    """H from a dense Toeplitz system of 600 taps, autocovariances by scipy."""
    mechanism = lmmse(Filter([1, 0.4], [1, -0.8]), PRIVACY, CHAIN, lag=lag, prefilter=Filter([1, 0.2], [1, -0.7]))
    plant = Plant(mechanism, 2**12)
    r_v = np.fft.ifft(plant.P * np.abs(plant.G) ** 2 + plant.noise).real[:600]
    r_yv = np.fft.ifft(plant.wanted * plant.P * plant.G.conj()).real[:600]
    expected = linalg.solve_toeplitz(r_v, r_yv)
    np.testing.assert_allclose(mechanism.receiver.filter.impulse(600), expected, atol=1e-10 * np.abs(expected).max())


# --- signals with poles in a cluster --------------------------------------------------------------


def birth_and_death(k, up, down):
    transition = np.diag([up] * (k - 1), 1) + np.diag([down] * (k - 1), -1)
    pi = (up / down) ** np.arange(k)
    return transition + np.diag(1 - transition.sum(axis=1)), pi / pi.sum()


CHAINS = [(20, 0.2, 0.3), (60, 0.2, 0.3), (60, 0.45, 0.5)]
SMOOTHED = {"pole": Filter([1], [1, -0.9]), "sum": Filter(np.full(12, 1 / 12))}


@pytest.mark.parametrize(
    ("chain", "lag", "name"),
    long_but(
        [*itertools.product(CHAINS, [0, 5, 20], SMOOTHED)],
        [(CHAINS[0], 5, "pole"), (CHAINS[2], 20, "sum")],
    ),
)
def test_the_error_is_that_of_the_normal_equations_for_chains_of_many_states(chain, lag, name):
    """Autocovariances from the resolvent of the chain, and H of 3000 taps from a Toeplitz system."""
    (k, up, down), target = chain, SMOOTHED[name]
    transition, pi = birth_and_death(k, up, down)
    levels, n = np.arange(k), 2**14
    omega = 2 * np.pi * np.arange(n // 2 + 1) / n
    values, vectors = linalg.eigh(np.sqrt(pi)[:, None] * transition / np.sqrt(pi))  # reversible
    weights = (vectors.T @ (np.sqrt(pi) * (levels - pi @ levels))) ** 2
    weights, values = weights[values < 1 - 1e-9], values[values < 1 - 1e-9]
    psd = (weights * (1 - values**2) / np.abs(1 - values * np.exp(-1j * omega)[:, None]) ** 2).sum(axis=1)
    prefilter = Filter([1, 0.2], [1, -0.7])
    mechanism = lmmse(target, PRIVACY, MarkovChain(transition, levels), lag=lag, prefilter=prefilter)
    g, f = prefilter.response(omega), target.response(omega) * np.exp(-1j * omega * lag)
    r_v = np.fft.irfft(psd * np.abs(g) ** 2 + mechanism.noise_std**2)[:3000]
    r_yv = np.fft.irfft(psd * f * g.conj())[:3000]
    variance = np.fft.irfft(psd * np.abs(f) ** 2)[0]
    expected = variance - r_yv @ linalg.solve_toeplitz(r_v, r_yv)
    assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-6)


CLUSTERED = {
    "butterworth 8": signal.butter(8, 0.005, output="sos"),
    "butterworth 12": signal.butter(12, 0.01, output="sos"),
    "chebyshev 9": signal.cheby1(9, 1, 0.01, output="sos"),
}


@pytest.mark.parametrize(
    ("name", "lag"),
    long_but([*itertools.product(CLUSTERED, [0, 5, 300])], [*zip(CLUSTERED, [0, 5, 300], strict=True)]),
)
def test_targets_with_many_slow_poles_lose_nothing_to_rounding(name, lag):
    """A low-pass far below the noise: a late Wiener filter and the smoother are nearly as good as each other."""
    target, model = Filter.from_sos(CLUSTERED[name]), ARMA([1], [1, -0.9])
    mechanism = lmmse(target, Privacy(1, 1e-6), model, lag=lag, prefilter=Filter([1]))
    best = lmmse(target, Privacy(1, 1e-6), model, prefilter=Filter([1])).predicted_mse
    assert mechanism.predicted_mse == pytest.approx(
        wiener_mse(target, model, Filter([1]), mechanism.noise_std, lag), rel=1e-7
    )
    assert mechanism.predicted_mse >= best * (1 - 1e-8)


def test_a_long_lag_at_slow_poles_takes_seconds_and_says_what_it_loses():
    """Zeros of a thousand states and more would take hours: the taps alone, measured against the optimum."""
    target, model, privacy = Filter.from_sos(CLUSTERED["butterworth 8"]), ARMA([1], [1, -0.9]), Privacy(1, 1e-6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = lmmse(target, privacy, model, lag=3000, prefilter=Filter([1]))
    optimum = wiener_mse(target, model, Filter([1]), mechanism.noise_std, 3000)
    assert bool(caught) == (mechanism.predicted_mse > optimum * (1 + 1e-6))


def test_receivers_of_long_models_behind_clustered_poles_keep_their_digits():
    """There taps of the factor are a sum of large ones: the receiver was unstable, or erred 2e-3 above the optimum."""
    taps = np.random.default_rng(1).uniform(0.2, 1, 40)
    model, target, privacy = ARMA(taps / math.sqrt(40)), Filter(np.ones(40) / 40), Privacy(3, 0.05)
    turned = np.exp(1j * np.array([0.01, 0.04, 0.08, 0.12, 0.155, 0.2, 0.25, 0.3]))
    zeros, poles = (np.concatenate([x, x.conj()]) for x in (0.97 * turned, 0.99 * np.exp(0.01j) * turned))
    prefilter = Filter.from_zpk(zeros, poles, 1.0)
    made = lmmse(target, privacy, model, lag=5, prefilter=prefilter)
    assert made.predicted_mse == pytest.approx(wiener_mse(target, model, prefilter, made.noise_std, 5), rel=1e-10)


@pytest.mark.parametrize("std", [1, 1e-2, 1e-4, 1e-5])
def test_the_optimum_is_right_behind_a_prefilter_with_a_zero_on_the_circle(std):
    """Zeros of the spectrum of v are much nearer to the circle than poles; of Q = q(1 - cz⁻¹) there is a closed form.

    By the innovations, of a variance of q², white u errs by 1 - 1/q² at a lag of 0: by about the noise, as it is small.
    """
    half = 1 + std**2 / 2
    expected = 1 - 1 / (half + math.sqrt((half - 1) * (half + 1)))
    assert wiener_mse(Filter([1]), ARMA([1]), Filter([1, -1]), std, 0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [40, 200])
def test_the_optimum_of_long_models_is_that_of_normal_equations(n):
    taps = np.random.default_rng(9).uniform(0.2, 1, n) / math.sqrt(n)
    wanted, late, std = np.full(20, 0.05), 5, 0.5
    samples = np.zeros((2, 8000))  # of covariances of v, and of the output with v
    samples[0, :n] = np.correlate(taps, taps, "full")[n - 1 :]
    both = np.convolve(taps, wanted)
    crossed = np.correlate(both, taps, "full")  # of the output before v, at times from -(n - 1) on
    samples[1, : len(both) + late] = crossed[n - 1 - late :]
    samples[0, 0] += std**2
    expected = both @ both - samples[1] @ linalg.solve_toeplitz(samples[0], samples[1])
    assert wiener_mse(Filter(wanted), ARMA(taps), Filter([1]), std, late) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("found", [True, False])
def test_factors_of_long_models_are_as_good_from_taps_where_poles_do_not_cluster(monkeypatch, found):
    """Where zeros are not found they are taken, too."""
    taps = np.random.default_rng(1).uniform(0.2, 1, 40)
    model, target, privacy = ARMA(taps / math.sqrt(40)), Filter(np.ones(40) / 40), Privacy(3, 0.05)

    def lose(*_):
        raise DesignError("all zeros must be found")

    monkeypatch.setattr("dpfast.design.wiener._SAME_SPECTRUM", -1)
    if not found:
        monkeypatch.setattr("dpfast.design.wiener.sum_zeros", lose)
    prefilter = Filter([1, 0.3], [1, -0.6])
    made = lmmse(target, privacy, model, lag=5, prefilter=prefilter)
    assert made.predicted_mse == pytest.approx(wiener_mse(target, model, prefilter, made.noise_std, 5), rel=1e-7)
