"""Linear mechanisms against Riccati equations, Wiener's formulas on a frequency grid, and laws."""

import math
import warnings
from dataclasses import replace

import control
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import linalg, signal

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    Toeplitz,
    decision_feedback,
    input_perturbation,
    lmmse,
    output_perturbation,
    zero_forcing,
)
from dpfast._support.errors import ToleranceWarning
from dpfast.design.wiener import optimal_mse
from dpfast.mechanisms.receivers import LinearReceiver, Smoother

EXAMPLE = Filter([1, 0.995], [1, -0.995])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PRIVACY = Privacy(math.log(3), 0.05, calibration="paper")
ALL_PASS = Filter([-0.5, 1], [1, -0.5])


# --- oracles --------------------------------------------------------------------------------------


def system(b, a):
    """python-control's state-space model of a filter in powers of z⁻¹, in controllable form."""
    n = max(len(b), len(a)) - 1
    b, a = (np.pad(x, (0, n + 1 - len(x))) / a[0] for x in (np.asarray(b, float), np.asarray(a, float)))
    A = np.eye(n, k=-1)
    A[:1] = -a[1:]
    return control.ss(A, np.eye(n, 1), (b[1:] - b[0] * a[1:])[None], b[:1, None], True)


def riccati_mse(target, shaping, prefilter, noise_variance, lag):
    """Error covariance of the Kalman filter for y at t - lag, the delayed outputs being states."""
    delays = control.ss(np.eye(lag, k=-1), np.eye(lag, 1), np.eye(lag)[lag - 1 :], np.zeros((1, 1)), True)
    wanted = delays * system(*target) if lag else system(*target)
    both = control.append(system(*prefilter), wanted) * control.ss([], [], [], [[1], [1]], True) * system(*shaping)
    A, B, (c_v, c_y), (d_v, d_y) = both.A, both.B, both.C[:, None], both.D[:, None]
    noise = d_v @ d_v.T + noise_variance
    P = control.dare(A.T, c_v.T, B @ B.T, noise, B @ d_v.T)[0] if len(A) else A
    innovation = c_v @ P @ c_v.T + noise
    cross = c_y @ P @ c_v.T + d_y @ d_v.T
    return (c_y @ P @ c_y.T + d_y @ d_y.T - cross @ cross.T / innovation).item()


def response(b, a, omega):
    z = np.exp(1j * omega)
    return np.polyval(np.asarray(b)[::-1], 1 / z) / np.polyval(np.asarray(a)[::-1], 1 / z)


class Plant:
    """Spectra of a mechanism on a uniform grid of the whole circle, from its coefficients alone."""

    def __init__(self, mechanism, n=2**14):
        self.omega = 2 * np.pi * np.arange(n) / n
        self.mechanism = mechanism
        self.P = np.abs(response(mechanism.model.shaping.b, mechanism.model.shaping.a, self.omega)) ** 2
        self.G = response(mechanism.prefilter.b, mechanism.prefilter.a, self.omega)
        self.wanted = response(mechanism.target.b, mechanism.target.a, self.omega)
        self.wanted = self.wanted * np.exp(-1j * self.omega * (mechanism.lag or 0))
        self.H = mechanism.receiver.response(self.omega)
        self.noise = mechanism.noise_std**2

    def mse(self, H):
        error = self.P * np.abs(self.wanted - H * self.G) ** 2 + self.noise * np.abs(H) ** 2
        return error.mean()

    def error_correlation(self):
        """E[e_t v_{t-k}] at k = 0, 1, ...; negative k at the end."""
        cross = self.wanted * self.P * self.G.conj() - self.H * (self.P * np.abs(self.G) ** 2 + self.noise)
        return np.fft.ifft(cross).real

    def variances(self):
        """Of the wanted output and of v."""
        return (self.P * np.abs(self.wanted) ** 2).mean(), (self.P * np.abs(self.G) ** 2 + self.noise).mean()


# --- Hypothesis -----------------------------------------------------------------------------------


def roots(radius):
    def modulus(low):
        return st.integers(int(100 * low), int(100 * radius)).map(lambda x: x / 100)

    pair = st.builds(lambda r, t: [r * np.exp(1j * t), r * np.exp(-1j * t)], modulus(0), st.floats(0.1, 3.0))
    single = modulus(-radius).map(lambda x: [x])
    return st.lists(st.one_of(single, pair), max_size=2).map(
        lambda parts: np.array([x for part in parts for x in part])
    )


def filters(zero_radius, pole_radius):
    return st.builds(
        lambda zeros, poles, gain: Filter(
            gain * np.atleast_1d(np.poly(zeros)).real, np.atleast_1d(np.poly(poles)).real
        ),
        roots(zero_radius),
        roots(pole_radius),
        st.floats(0.1, 10),
    )


targets = filters(2.0, 0.95)  # minimum phase or not
prefilters = filters(0.95, 0.95)
models = st.one_of(
    filters(1.5, 0.9).map(lambda f: ARMA(f.b, f.a)),
    filters(0.0, 0.9).map(lambda f: ARMA([f.b[0]], f.a)),
    st.floats(0.1, 10).map(lambda s: ARMA([s])),
)
privacies = st.builds(Privacy, epsilon=st.floats(0.05, 5), delta=st.floats(1e-9, 0.3))


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


@pytest.mark.parametrize("lag", [0, 1, 2, 3, 5])
@pytest.mark.parametrize(("target", "shaping", "prefilter"), PLANTS.values(), ids=PLANTS)
@pytest.mark.parametrize("epsilon", [0.1, 3])
def test_causal_wiener_receiver_is_the_kalman_filter(target, shaping, prefilter, lag, epsilon):
    privacy = Privacy(epsilon, 1e-3)
    mechanism = lmmse(Filter(*target), privacy, ARMA(*shaping), lag=lag, prefilter=Filter(*prefilter))
    expected = riccati_mse(target, shaping, prefilter, mechanism.noise_std**2, lag)
    assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-8)
    assert mechanism.ideal_mse == mechanism.predicted_mse


@given(targets, models, prefilters, privacies, st.integers(0, 5))
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


@pytest.mark.parametrize("lag", [None, 0, 1, 5, 17])
@pytest.mark.parametrize(("target", "shaping", "prefilter"), PLANTS.values(), ids=PLANTS)
def test_the_error_is_orthogonal_to_what_the_receiver_sees(target, shaping, prefilter, lag):
    mechanism = lmmse(Filter(*target), PRIVACY, ARMA(*shaping), lag=lag, prefilter=Filter(*prefilter))
    plant = Plant(mechanism)
    correlation = plant.error_correlation()
    seen = correlation if lag is None else correlation[: len(correlation) // 2]
    assert np.abs(seen).max() <= 1e-9 * math.sqrt(math.prod(plant.variances()))
    assert plant.mse(plant.H) == pytest.approx(mechanism.predicted_mse, rel=1e-8)


@given(targets, models, prefilters, st.sampled_from([0, 1, 4, None]), st.integers(0, 8), st.floats(0.01, 1))
def test_no_other_receiver_is_better(target, model, prefilter, lag, tap, size):
    plant = Plant(lmmse(target, PRIVACY, model, lag=lag, prefilter=prefilter), 2**12)
    least = plant.mse(plant.H)
    scale = math.sqrt((np.abs(plant.H) ** 2).mean()) + 1e-12
    for step in (-size * scale, size * scale):
        assert plant.mse(plant.H + step * np.exp(-1j * tap * plant.omega)) >= least * (1 - 1e-9)
        assert plant.mse(plant.H * (1 + step / scale * np.exp(-1j * tap * plant.omega))) >= least * (1 - 1e-9)


@given(targets, models, prefilters, privacies)
def test_a_later_estimate_is_never_worse_and_the_smoother_is_best(target, model, prefilter, privacy):
    errors = [lmmse(target, privacy, model, lag=lag, prefilter=prefilter).predicted_mse for lag in (0, 1, 2, 5, 20)]
    errors.append(lmmse(target, privacy, model, prefilter=prefilter).predicted_mse)
    assert (np.diff(errors) <= 1e-8 * errors[0]).all()


@given(targets, models, prefilters, privacies, st.integers(0, 5))
def test_the_wiener_error_is_at_most_the_variance_of_the_output(target, model, prefilter, privacy, lag):
    mechanism = lmmse(target, privacy, model, lag=lag, prefilter=prefilter)
    variance, _ = Plant(mechanism).variances()
    assert 0 < mechanism.predicted_mse <= variance * (1 + 1e-9)


@pytest.mark.parametrize("lag", [50, 150, 500])
@pytest.mark.parametrize("target", [EXAMPLE, Filter([1], [1, -0.9999]), Filter(np.full(12, 1 / 12)), Filter([1, -2])])
def test_long_lags_approach_the_smoother(target, lag):
    prefilter = Filter([1, 0.2], [1, -0.9])
    late = lmmse(target, PRIVACY, CHAIN, lag=lag, prefilter=prefilter)
    smoother = lmmse(target, PRIVACY, CHAIN, prefilter=prefilter)
    assert late.predicted_mse == pytest.approx(smoother.predicted_mse, rel=1e-6)
    assert late.predicted_mse >= smoother.predicted_mse * (1 - 1e-9)


# --- zero forcing ---------------------------------------------------------------------------------

TARGETS = {
    "example": EXAMPLE,
    "difference": Filter([1, -1]),
    "second difference": Filter([1, -2, 1]),
    "comb": Filter([1, 0, 0, 0, -1]),
    "moving average": Filter(np.full(12, 1 / 12)),
    "notch": Filter([1, 0, 1], [1, 0, 0.9]),
    "outside zero": Filter([1, -2]),
    "outside zero, slow pole": Filter([1, -2], [1, -0.99]),
    "pole at the limit": Filter([1], [1, -(1 - 2e-5)]),
    "fast pole at the limit": Filter([1], [1, 1 - 2e-5]),
    "resonator": Filter([1], [1, -2 * 0.9999 * math.cos(1), 0.9999**2]),
    "double slow pole": Filter.from_sos([[1, 0, 0, 1, -2 * 0.9999, 0.9999**2]]),
    "delay": Filter([0, 0, 0, 1]),
    "all-pass": Filter([-0.9, 1], [1, -0.9]),
    "butterworth": Filter.from_sos(signal.butter(8, 0.02, output="sos")),
    "elliptic": Filter.from_sos(signal.ellip(6, 1, 60, 0.1, output="sos")),
    "noise-like FIR": Filter(np.random.default_rng(0).normal(size=60)),
}


@pytest.fixture(scope="module", params=TARGETS.values(), ids=list(TARGETS))
def nasty(request):
    return request.param


@pytest.fixture(scope="module")
def forced(nasty):
    return zero_forcing(nasty, PRIVACY)


def test_zero_forcing_has_no_distortion(nasty, forced):
    omega = np.concatenate([np.linspace(0, np.pi, 301), np.geomspace(1e-7, 0.1, 50)])
    through = forced.receiver.response(omega) * forced.prefilter.response(omega)
    wanted = nasty.response(omega)
    np.testing.assert_allclose(through, wanted, rtol=1e-7, atol=1e-9 * np.abs(wanted).max())


def test_zero_forcing_is_within_its_tolerance(forced):
    assert 1 - 1e-8 <= forced.predicted_mse / forced.ideal_mse <= 1 + 1.001e-3


def test_zero_forcing_is_at_most_the_perturbations(nasty, forced):
    energy = np.sum(nasty.impulse(2**20) ** 2)
    for other in (input_perturbation(nasty, PRIVACY), output_perturbation(nasty, PRIVACY)):
        assert forced.predicted_mse <= other.predicted_mse * (1 + 1.001e-3)
        assert other.predicted_mse == pytest.approx(PRIVACY.noise_multiplier**2 * energy, rel=1e-6)


def test_the_noise_of_a_nasty_prefilter_is_that_of_its_impulse_response(nasty):
    """Privacy hangs on this: too small a norm is too little noise."""
    norm = math.sqrt(np.sum(nasty.impulse(2**20) ** 2))
    assert output_perturbation(nasty, PRIVACY).noise_std == pytest.approx(PRIVACY.noise_multiplier * norm, rel=1e-8)


@pytest.fixture(scope="module")
def smoothed(nasty):
    return lmmse(nasty, PRIVACY, CHAIN)


def test_smoother_of_a_nasty_target_is_within_its_tolerance(forced, smoothed):
    assert 1 - 1e-8 <= smoothed.predicted_mse / smoothed.ideal_mse <= 1 + 1.001e-3
    assert smoothed.ideal_mse <= forced.ideal_mse


NARROW_BANDED = ["difference", "comb", "moving average", "outside zero, slow pole", "delay", "butterworth"]


@pytest.mark.parametrize("target", [TARGETS[name] for name in NARROW_BANDED], ids=NARROW_BANDED)
def test_finite_lag_of_a_nasty_target_is_between_the_smoother_and_the_identity(target):
    smoother = lmmse(target, PRIVACY, CHAIN, tolerance=0.1)
    for lag in (2, 60):
        mechanism = lmmse(target, PRIVACY, CHAIN, lag=lag)
        assert mechanism.predicted_mse >= smoother.ideal_mse * (1 - 1e-8)
        assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1.001e-3)
        identity = lmmse(target, PRIVACY, CHAIN, lag=lag, prefilter=Filter([1]))  # the filling of endless θ
        assert mechanism.ideal_mse <= identity.ideal_mse * (1 + 1e-3)


@pytest.mark.parametrize("pole", [1 - 2e-5, -(1 - 2e-5)])
def test_a_pole_at_the_limit_works_at_a_finite_lag(pole):
    smoother, late, now = (
        lmmse(Filter([1], [1, -pole]), PRIVACY, CHAIN, lag=lag, prefilter=Filter([1], [1, -0.9]))
        for lag in (None, 9, 0)
    )
    assert smoother.predicted_mse <= late.predicted_mse * (1 + 1e-8)
    assert late.predicted_mse < now.predicted_mse


@given(targets, privacies)
@settings(max_examples=15)
def test_zero_forcing_is_within_its_tolerance_whatever_the_target(target, privacy):
    mechanism = zero_forcing(target, privacy, tolerance=0.01)
    omega = np.linspace(0, np.pi, 64)
    through = mechanism.receiver.response(omega) * mechanism.prefilter.response(omega)
    np.testing.assert_allclose(through, target.response(omega), rtol=1e-7, atol=1e-9 * target.hinf_norm())
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1.01 + 1e-6


# --- signals --------------------------------------------------------------------------------------

MODELS = {
    "zero at 0": ARMA([1, -1]),
    "zero at π": ARMA([1, 1], [1, -0.5]),
    "moving average": ARMA(np.full(12, 1 / 12)),
    "notch": ARMA([1, -2 * 0.9999 * math.cos(1), 0.9999**2]),
    "slow": ARMA([0.01], [1, -0.9999]),
    "outside zero": ARMA([1, -2]),
    "three levels": MarkovChain([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], levels=[0, 1, 5]),
    "coin": IndependentLevels([0, 1], [0.99, 0.01]),
}


AVERAGE, STRONG, WEAK = Filter(np.full(12, 1 / 12)), Privacy(0.01, 1e-9), Privacy(50, 0.1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("target", "privacy"),
    [
        *((EXAMPLE, WEAK), (AVERAGE, STRONG)),
        *(pytest.param(*x, marks=pytest.mark.long) for x in ((EXAMPLE, STRONG), (AVERAGE, WEAK))),
    ],
    ids=["slow, weak", "moving average, strong", "slow, strong", "moving average, weak"],
)
def test_smoother_of_a_nasty_signal_is_within_its_tolerance(target, privacy, name):
    mechanism = lmmse(target, privacy, MODELS[name], tolerance=0.01)
    assert 1 - 1e-8 <= mechanism.predicted_mse / mechanism.ideal_mse <= 1.01 + 1e-6


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_finite_lag_of_a_nasty_signal_is_no_worse_than_asked(model):
    mechanism = lmmse(EXAMPLE, PRIVACY, model, lag=3, tolerance=0.01)
    assert lmmse(EXAMPLE, PRIVACY, model).ideal_mse * (1 - 1e-8) <= mechanism.predicted_mse
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1.01 + 1e-6)


@pytest.mark.parametrize("n_taps", [33, 100, 300])
@pytest.mark.parametrize("lag", [None, 0, 5])
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


# --- laws of scale --------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [-1e-4, 3.0, 1e5])
def test_errors_scale_with_the_square_of_the_target(factor):
    target = Filter([1, 0.5], [1, -0.95])
    for design in (
        lambda f: zero_forcing(f, PRIVACY),
        lambda f: lmmse(f, PRIVACY, CHAIN),
        lambda f: lmmse(f, PRIVACY, CHAIN, lag=2),
        lambda f: input_perturbation(f, PRIVACY),
        lambda f: output_perturbation(f, PRIVACY),
    ):
        one, scaled = design(target), design(factor * target)
        assert scaled.ideal_mse == pytest.approx(factor**2 * one.ideal_mse, rel=1e-8)
        assert scaled.predicted_mse == pytest.approx(factor**2 * one.predicted_mse, rel=2e-3)


@pytest.mark.parametrize("unit", [1e-3, 7.0, 1e4])
@pytest.mark.parametrize("lag", [None, 2])
def test_errors_scale_with_the_square_of_the_unit_of_the_signal(unit, lag):
    target = Filter([1, 0.5], [1, -0.95])
    one = lmmse(target, PRIVACY, ARMA([0.5], [1, -0.5]), lag=lag)
    other = lmmse(target, replace(PRIVACY, max_change=unit), ARMA([0.5 * unit], [1, -0.5]), lag=lag)
    assert other.ideal_mse == pytest.approx(unit**2 * one.ideal_mse, rel=1e-8)
    assert other.predicted_mse == pytest.approx(unit**2 * one.predicted_mse, rel=2e-3)


@given(privacies)
@settings(max_examples=5)
def test_zero_forcing_scales_with_the_square_of_the_noise_multiplier(privacy):
    target = Filter([1, 0.5], [1, -0.95])
    one, other = zero_forcing(target, PRIVACY), zero_forcing(target, privacy)
    ratio = (privacy.noise_multiplier / PRIVACY.noise_multiplier) ** 2
    assert other.ideal_mse == pytest.approx(ratio * one.ideal_mse, rel=1e-10)
    assert other.predicted_mse == pytest.approx(ratio * one.predicted_mse, rel=1e-10)
    assert other.prefilter == one.prefilter


@pytest.mark.parametrize("target", [EXAMPLE, Filter([1, -2]), Filter(np.full(5, 0.2))])
def test_without_noise_the_smoother_becomes_zero_forcing(target):
    ratios = []
    for change in (1e-1, 1e-3, 1e-5):
        privacy = Privacy(1, 1e-3, max_change=change)
        ratios.append(lmmse(target, privacy, CHAIN, tolerance=0.3).ideal_mse / zero_forcing(target, privacy).ideal_mse)
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(1, abs=1e-4)


def test_with_endless_noise_the_estimate_is_the_mean():
    for lag in (None, 0, 5):
        mechanism = lmmse(EXAMPLE, Privacy(1e-6, 1e-12), CHAIN, lag=lag)
        variance = (EXAMPLE * CHAIN.shaping).h2_norm() ** 2
        assert mechanism.predicted_mse == pytest.approx(variance, rel=1e-6)


# --- the mean -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [None, 0, 4])
def test_the_mean_does_not_change_the_error(lag):
    centred, shifted = (MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=x) for x in ([-0.5, 0.5], [9.5, 10.5]))
    one, other = (lmmse(EXAMPLE, PRIVACY, model, lag=lag) for model in (centred, shifted))
    assert other.receiver.mean == 10
    assert other.predicted_mse == pytest.approx(one.predicted_mse, rel=1e-9)
    assert other.ideal_mse == pytest.approx(one.ideal_mse, rel=1e-9)


def test_a_wrong_mean_costs_the_bias():
    mechanism = lmmse(EXAMPLE, PRIVACY, CHAIN, lag=2)
    moved = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0.5, 1.5])
    through = 399 - (mechanism.receiver.response(0.0) * mechanism.prefilter.response(0.0)).real.item()
    assert mechanism.predict(moved) - mechanism.predicted_mse == pytest.approx(through**2, rel=1e-6)


def test_zero_forcing_does_not_care_about_the_mean():
    mechanism = zero_forcing(EXAMPLE, PRIVACY)
    moved = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[100.5, 101.5])
    assert mechanism.predict(moved) == pytest.approx(mechanism.predicted_mse, rel=1e-9)


# --- receivers ------------------------------------------------------------------------------------


def test_kinds_of_receivers():
    assert isinstance(zero_forcing(EXAMPLE, PRIVACY).receiver, LinearReceiver)
    assert isinstance(lmmse(EXAMPLE, PRIVACY, CHAIN, lag=1).receiver, LinearReceiver)
    smoother = lmmse(EXAMPLE, PRIVACY, CHAIN)
    assert isinstance(smoother.receiver, Smoother)
    assert smoother.lag is None


@pytest.mark.parametrize("lag", [0, 5])
def test_the_receiver_is_stable_and_its_pulse_response_is_the_least_squares_solution(lag):
    """H from a dense Toeplitz system of 600 taps, autocovariances by scipy."""
    mechanism = lmmse(Filter([1, 0.4], [1, -0.8]), PRIVACY, CHAIN, lag=lag, prefilter=Filter([1, 0.2], [1, -0.7]))
    plant = Plant(mechanism, 2**12)
    r_v = np.fft.ifft(plant.P * np.abs(plant.G) ** 2 + plant.noise).real[:600]
    r_yv = np.fft.ifft(plant.wanted * plant.P * plant.G.conj()).real[:600]
    expected = linalg.solve_toeplitz(r_v, r_yv)
    np.testing.assert_allclose(mechanism.receiver.filter.impulse(600), expected, atol=1e-10 * np.abs(expected).max())


# --- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "design",
    [
        lambda: zero_forcing(Filter(np.ones(40)), PRIVACY, tolerance=1e-9),
        lambda: decision_feedback(Filter(np.ones(40)), PRIVACY, CHAIN, prefilter="zero-forcing", tolerance=1e-9),
    ],
)
def test_a_missed_tolerance_is_shown_at_the_line_of_the_caller(design):
    with pytest.warns(ToleranceWarning, match="tolerance is 1e-09") as caught:
        design()
    assert caught[0].filename == __file__


# --- signals with poles in a cluster --------------------------------------------------------------


def birth_and_death(k, up, down):
    transition = np.diag([up] * (k - 1), 1) + np.diag([down] * (k - 1), -1)
    pi = (up / down) ** np.arange(k)
    return transition + np.diag(1 - transition.sum(axis=1)), pi / pi.sum()


@pytest.mark.parametrize(("k", "up", "down"), [(20, 0.2, 0.3), (60, 0.2, 0.3), (60, 0.45, 0.5)])
@pytest.mark.parametrize("lag", [0, 5, 20])
@pytest.mark.parametrize("target", [Filter([1], [1, -0.9]), Filter(np.full(12, 1 / 12))], ids=["pole", "sum"])
def test_the_error_is_that_of_the_normal_equations_for_chains_of_many_states(k, up, down, lag, target):
    """Autocovariances from the resolvent of the chain, and H of 3000 taps from a Toeplitz system."""
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


@pytest.mark.parametrize("sos", CLUSTERED.values(), ids=CLUSTERED)
@pytest.mark.parametrize("lag", [0, 5, 300])
def test_targets_with_many_slow_poles_lose_nothing_to_rounding(sos, lag):
    """A low-pass far below the noise: a late Wiener filter and the smoother are nearly as good as each other."""
    target, model = Filter.from_sos(sos), ARMA([1], [1, -0.9])
    mechanism = lmmse(target, Privacy(1, 1e-6), model, lag=lag, prefilter=Filter([1]))
    best = lmmse(target, Privacy(1, 1e-6), model, prefilter=Filter([1])).predicted_mse
    assert mechanism.predicted_mse == pytest.approx(
        optimal_mse(target, model, Filter([1]), mechanism.noise_std, lag), rel=1e-7
    )
    assert mechanism.predicted_mse >= best * (1 - 1e-8)


def test_a_long_lag_at_slow_poles_takes_seconds_and_says_what_it_loses():
    """Zeros of a thousand states and more would take hours: the taps alone, measured against the optimum."""
    target, model, privacy = Filter.from_sos(CLUSTERED["butterworth 8"]), ARMA([1], [1, -0.9]), Privacy(1, 1e-6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = lmmse(target, privacy, model, lag=3000, prefilter=Filter([1]))
    optimum = optimal_mse(target, model, Filter([1]), mechanism.noise_std, 3000)
    assert bool(caught) == (mechanism.predicted_mse > optimum * (1 + 1e-6))


# --- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [-1, 1.5, "1", math.nan, True])
def test_a_bad_lag_is_named(lag):
    with pytest.raises(ValueError, match="lag must be"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, lag=lag)


@pytest.mark.parametrize("tolerance", [0, -1, math.nan, math.inf, "small", None, 1])
def test_a_bad_tolerance_is_named(tolerance):
    with pytest.raises(ValueError, match="tolerance must be"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, tolerance=tolerance)
    with pytest.raises(ValueError, match="tolerance must be"):
        zero_forcing(EXAMPLE, PRIVACY, tolerance=tolerance)


DESIGNS = {
    "zero_forcing": lambda f: zero_forcing(f, PRIVACY),
    "lmmse": lambda f: lmmse(f, PRIVACY, CHAIN),
    "lag": lambda f: lmmse(f, PRIVACY, CHAIN, lag=2),
    "input": lambda f: input_perturbation(f, PRIVACY),
    "output": lambda f: output_perturbation(f, PRIVACY),
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@pytest.mark.parametrize("target", [[1, 2], 3, None, (np.ones(2), np.ones(1)), control.tf([1], [1, -0.5], True)])
def test_a_target_that_is_no_filter_is_named(design, target):
    with pytest.raises(ValueError, match="target must be a Filter"):
        design(target)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_a_zero_target_is_named(design):
    with pytest.raises(DesignError, match="target must not be zero"):
        design(Filter([0.0]))


def test_a_bad_prefilter_is_named():
    with pytest.raises(DesignError, match="prefilter must not be zero"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, prefilter=Filter([0.0]))
    with pytest.raises(ValueError, match="prefilter must be a Filter"):
        lmmse(EXAMPLE, PRIVACY, CHAIN, prefilter="lmmse")


@pytest.mark.parametrize("design", [*DESIGNS.values()][:2], ids=[*DESIGNS][:2])
def test_swapped_arguments_are_an_error_that_names_them(design):
    with pytest.raises((ValueError, TypeError), match="target"):
        design(PRIVACY)


@pytest.mark.parametrize("privacy", [None, 1.0, EXAMPLE])
def test_a_bad_privacy_is_named(privacy):
    for design in (
        lambda: zero_forcing(EXAMPLE, privacy),
        lambda: lmmse(EXAMPLE, privacy, CHAIN),
        lambda: input_perturbation(EXAMPLE, privacy),
    ):
        with pytest.raises((ValueError, TypeError), match="privacy must be"):
            design()


@pytest.mark.parametrize("model", [None, EXAMPLE, 1.0])
def test_a_bad_model_is_named(model):
    with pytest.raises((ValueError, TypeError), match="model must be"):
        lmmse(EXAMPLE, PRIVACY, model)


@pytest.mark.parametrize("design", [input_perturbation, output_perturbation])
def test_laplace_noise_is_for_a_horizon(design):
    target = Toeplitz.of(EXAMPLE, 50)
    laplace, gaussian = (design(target, PRIVACY, noise=x) for x in ("laplace", "gaussian"))
    sizes = np.abs(target.coefficients)
    norm = 1.0 if design is input_perturbation else sizes.sum()
    assert laplace.noise_scale == pytest.approx(PRIVACY.max_change * norm / PRIVACY.epsilon)
    assert gaussian.noise == "gaussian"
    with pytest.raises(ValueError, match="noise must be 'gaussian' for a Filter, got 'laplace'"):
        design(EXAMPLE, PRIVACY, noise="laplace")
