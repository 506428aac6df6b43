import itertools
import math
import warnings

import mpmath
import numpy as np
import pytest
from helpers.covers import pairwise
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DesignError, PaleyWienerError
from dpfast.filters import roots
from dpfast.filters import spectral_factor as spectra
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.spectral_factor import factor_polynomial, minimum_phase, spectral_factor, sum_zeros


def factor(roots, omega):
    """Π |1 - root e^{-iω}|."""
    return np.prod([np.abs(1 - root * np.exp(-1j * omega)) for root in (*roots, 0)], axis=0)


radius = st.floats(-0.98, 0.98)


@given(st.lists(radius, max_size=3), st.lists(radius, max_size=3), st.floats(0.01, 100))
def test_minimum_phase_factor_of_rational_spectra(zeros, poles, gain):
    omega = fft_angles(4096)
    spectrum = gain * (factor(zeros, omega) / factor(poles, omega)) ** 2
    q = minimum_phase(spectrum)
    np.testing.assert_allclose(np.abs(q) ** 2, spectrum, rtol=1e-10)
    z = np.exp(-1j * omega)
    expected = math.sqrt(gain) * np.prod([1 - r * z for r in zeros] + [1 / (1 - r * z) for r in poles] + [z * 0 + 1], 0)
    np.testing.assert_allclose(q, expected, rtol=1e-9)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=9))
def test_factor_has_the_spectrum_on_any_grid_at_every_angle(values):
    np.testing.assert_allclose(np.abs(minimum_phase(np.array(values))) ** 2, values, rtol=1e-12)


def test_zeros_outside_of_the_circle_are_reflected():
    omega = fft_angles(1024)
    q = minimum_phase(np.abs(1 - 2 * np.exp(-1j * omega)) ** 2)
    np.testing.assert_allclose(np.fft.irfft(q)[:4], [2, -1, 0, 0], atol=1e-13)


@given(st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_factor_is_causal_with_the_geometric_mean_as_its_first_tap(values):
    # smooth positive spectra exp(Σ c_k cos kω)
    omega = fft_angles(1024)
    logarithm = np.cos(np.outer(omega, np.arange(5))) @ np.log(values)
    h = np.fft.irfft(minimum_phase(np.exp(logarithm)))
    assert h[0] == pytest.approx(math.sqrt(values[0]), rel=1e-10)
    assert np.abs(h[512:]).max() <= 1e-11 * np.abs(h).max()


@pytest.mark.parametrize("spectrum", [[1, 0, 1], [1, -1, 1], [1, math.nan, 1]])
def test_spectrum_that_is_not_positive_is_refused(spectrum):
    with pytest.raises(PaleyWienerError, match=r"must be positive .* got 1 of 3 values"):
        minimum_phase(np.array(spectrum, dtype=float))


@pytest.mark.parametrize("pole", [0.5, 0.99, 0.9999])
def test_spectral_factor_refines_its_grid(pole):
    q = spectral_factor(lambda w: (factor([2], w) / factor([pole], w)) ** 2, 0.5)
    z = np.exp(-1j * fft_angles(2 * (len(q) - 1)))
    np.testing.assert_allclose(q, 2 * (1 - 0.5 * z) / (1 - pole * z), rtol=1e-10)


# --- zeros of a sum --------------------------------------------------------------------------------


def exact_zeros(a, b, weight):
    """Roots in the disk of the polynomial multiplied out with 80 digits."""
    with mpmath.workdps(80), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # mpmath turns the order round; this reads the same
        n = max(len(a), len(b))
        total = [mpmath.mpf(0)] * (2 * n + 1)
        for roots, factor_ in ((a, 1), (b, mpmath.mpf(weight))):
            product = [mpmath.mpf(1)]
            for root in [*roots, *[0] * (n - len(roots))]:
                for high, low in ((1, -mpmath.mpmathify(root)), (-mpmath.conj(root), 1)):
                    product = [x * high + y * low for x, y in zip([*product, 0], [0, *product], strict=True)]
            total = [x + factor_ * y for x, y in zip(total, product, strict=True)]
        found = mpmath.polyroots(total, maxsteps=500, extraprec=400)
        return np.array([complex(x) for x in found if abs(x) < 1])


def clustered(distances, angle):
    """On a ray towards the circle, in conjugate pairs."""
    turn = np.exp(1j * angle * np.array([1, -1]) if 0 < angle < 3 else 1j * np.array([angle])).round(15)
    return np.outer(1 - np.asarray(distances), turn).ravel()


CLUSTERS = [0, 0.3, 1, 2, math.pi], [1e-2, 1e-3, 3e-5], [1e-9, 1, 1e9]
FEW_CLUSTERS = pairwise(*CLUSTERS)[::2]


@pytest.mark.parametrize(
    ("angle", "finest", "weight"),
    [pytest.param(*x, marks=() if x in FEW_CLUSTERS else pytest.mark.long) for x in itertools.product(*CLUSTERS)],
)
def test_zeros_of_a_sum_are_exact_where_roots_cluster(angle, finest, weight):
    distances = finest * np.geomspace(1, 300 if finest < 1e-2 else 50, 6)
    a, b = clustered(distances[1::2], angle), clustered(distances[::2], angle)
    found, expected = sum_zeros(a, b, weight), exact_zeros(a, b, weight)
    order = [np.argmin(np.abs(found - x)) for x in expected]
    assert sorted(order) == list(range(len(expected)))
    np.testing.assert_allclose(np.abs(found[order] - expected) / (1 - np.abs(expected)), 0, atol=2e-10)


@given(
    st.lists(st.floats(-1.5, 1.5), max_size=4),
    st.lists(st.floats(-0.99, 0.99), max_size=6),
    st.lists(st.tuples(st.floats(0, 0.99), st.floats(0.1, 3)), max_size=3),
    st.floats(-12, 12),
)
def test_zeros_of_a_sum_make_up_the_sum(a, b, pairs, exponent):
    b = [*b, *(r * np.exp(sign * 1j * t) for r, t in pairs for sign in (1, -1))]
    omega, weight = np.linspace(0, np.pi, 101), 10.0**exponent
    expected = factor(a, omega) ** 2 + weight * factor(b, omega) ** 2
    zeros = sum_zeros(a, b, weight)
    assert len(zeros) == max(len(a), len(b))
    assert (np.abs(zeros) <= 1).all()
    np.testing.assert_array_equal(np.sort_complex(zeros), np.sort_complex(zeros.conj()))
    ratio = factor(zeros, omega) ** 2 / expected
    np.testing.assert_allclose(ratio / ratio[0], 1, rtol=1e-7)  # a double zero has half the digits


def test_zeros_of_a_sum_at_the_origin_and_in_common():
    assert len(sum_zeros([], [], 1.0)) == 0
    np.testing.assert_allclose(np.sort(sum_zeros([0.5, 0.0], [0.5, 0.0], 3.0).real), [0, 0.5], atol=1e-15)
    found, exact = (f([2.0], [0.5, 0.5], 1.0) for f in (sum_zeros, exact_zeros))
    np.testing.assert_allclose(np.sort(found.real), np.sort(np.real(exact)), rtol=1e-12)
    np.testing.assert_array_equal(sum_zeros([], [0.0] * 6, 2.0), np.zeros(6))
    np.testing.assert_allclose(np.sort(sum_zeros([0.3] * 2, [0.3] * 2, 1.0).real), [0.3, 0.3], atol=1e-15)


@pytest.mark.parametrize(("root", "z", "slope"), [(2.0, 0.5, 3.0), (0.5, 0.5, 0.75), (0.0, 0.0, 1.0)])
def test_the_slope_of_a_product_is_right_at_its_zeros_too(root, z, slope):
    value, derivative = spectra._product(np.array([root, 0.9j]), np.array([z], dtype=complex))
    other = (z - 0.9j) * (1 + 0.9j * z)
    assert abs(value.item()) <= 1e-50
    assert derivative.item() == pytest.approx(slope * other, rel=1e-12)


def test_zeros_that_are_not_found_are_an_error(monkeypatch):
    monkeypatch.setattr(roots, "_MAX_ROUNDS", 1)
    with pytest.raises(DesignError, match="all 2 zeros of a filter must be found, and 2 were not"):
        sum_zeros([0.5], [0.9, 0.1], 1.0)


# --- polynomials ------------------------------------------------------------------------------------


@pytest.mark.parametrize("poles", [[0.9], [0.9, -0.9], [0.5, 0.6, 0.99]])
@pytest.mark.parametrize("zeros", [[], [0.5], [-0.7, 0.95], [0.6 + 0.2j, 0.6 - 0.2j]])
def test_factor_polynomial_recovers_the_numerator(poles, zeros):
    degree = max(len(poles), len(zeros))
    q = factor_polynomial(lambda w: 9 * (factor(zeros, w) / factor(poles, w)) ** 2, np.array(poles, complex), degree)
    expected = np.zeros(degree + 1)
    expected[: len(zeros) + 1] = 3 * np.poly(zeros).real
    np.testing.assert_allclose(q, expected, atol=1e-11)
