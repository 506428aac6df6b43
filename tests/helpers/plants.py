"""Targets, signals and prefilters to design for, and Riccati equations and spectra to check the designs with."""

import math

import control
import numpy as np
from hypothesis import strategies as st
from scipy import signal

from dpfast import ARMA, Filter, MarkovChain, Privacy

EXAMPLE = Filter([1, 0.995], [1, -0.995])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PRIVACY = Privacy(math.log(3), 0.05, calibration="paper")


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


# --- nasty targets --------------------------------------------------------------------------------

NASTY_TARGETS = {
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
