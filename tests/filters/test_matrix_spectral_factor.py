"""Matrix spectral factors against innovations forms by scipy's Riccati equation, scalar factors, and known systems."""

import numpy as np
import pytest
from scipy import linalg

from dpfast._support.errors import PaleyWienerError
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.matrix_spectral_factor import matrix_minimum_phase, matrix_spectral_factor
from dpfast.filters.spectral_factor import spectral_factor

IDENTITY = np.eye(3)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def response(a, b, c, d, omega):
    """D + C(zI - A)⁻¹B."""
    z = np.exp(1j * omega)[:, None, None]
    return c @ np.linalg.solve(z * np.eye(len(a)) - a, np.broadcast_to(b, (len(omega), *b.shape))) + d


def random_system(rng, n_states, n_outputs, n_noises, radius):
    a = rng.standard_normal((n_states, n_states))
    a *= radius / np.abs(np.linalg.eigvals(a)).max()
    b, c = rng.standard_normal((n_states, n_noises)), rng.standard_normal((n_outputs, n_states))
    return a, b, c, rng.standard_normal((n_outputs, n_noises))


def innovations(a, b, c, d):
    """The causal, causally invertible factor of C(zI-A)⁻¹B + D: x⁺ = Ax + Ke, y = Cx + e, Cov(e) = S."""
    p = linalg.solve_discrete_are(a.T, c.T, b @ b.T, d @ d.T, s=b @ d.T)
    s = c @ p @ c.T + d @ d.T
    root = np.linalg.cholesky(s)
    return a, np.linalg.solve(s, (a @ p @ c.T + b @ d.T).T).T @ root, c, root


@pytest.mark.parametrize(("seed", "n", "radius"), [(0, 2, 0.5), (1, 3, 0.9), (2, 4, 0.97), (3, 1, 0.8), (4, 6, 0.7)])
def test_the_factor_of_a_rational_spectrum_is_its_innovations_form(seed, n, radius):
    system = random_system(np.random.default_rng(seed), n + 1, n, n + 2, radius)

    def spectrum(omega):
        h = response(*system, omega)
        return h @ adjoint(h)

    found = matrix_spectral_factor(spectrum, radius)
    omega = fft_angles(2 * (len(found.factor) - 1))
    expected = response(*innovations(*system), omega)
    np.testing.assert_allclose(found.factor, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    assert found.residual <= 1e-12


def known(omega):
    """A causal, minimum-phase Q, the zeros of whose determinant are inside the circle; its first tap is triangular."""
    z = np.exp(-1j * omega)
    return np.stack(
        [np.stack([1 - 0.5 * z, 0.4 * z], axis=-1), np.stack([0.2 + 0.3 * z, 2 * (1 + 0.3 * z)], axis=-1)], axis=-2
    )


def test_a_known_factor_comes_back_on_both_sides():
    omega = fft_angles(1024)
    q = known(omega)
    np.testing.assert_allclose(matrix_minimum_phase(q @ adjoint(q)).factor, q, atol=1e-13)
    right = np.swapaxes(q, 1, 2)
    found = matrix_minimum_phase(adjoint(right) @ right, side="right")
    np.testing.assert_allclose(found.factor, right, atol=1e-13)
    assert found.tail <= 1e-14
    np.testing.assert_allclose(found.taps()[0], [[1, 0.2], [0, 2]], atol=1e-13)


def test_one_channel_has_the_cepstral_factor():
    def power(omega):
        return np.abs((1 - 0.9 * np.exp(-1j * omega)) / (1 - 0.97 * np.exp(-1j * omega))) ** 2 + 0.01

    expected = spectral_factor(power, 0.97)
    found = matrix_spectral_factor(lambda omega: power(omega)[:, None, None] + 0j, 0.97).factor[:, 0, 0]
    assert len(found) <= len(expected)
    step = (len(expected) - 1) // (len(found) - 1)
    np.testing.assert_allclose(found, expected[::step], rtol=1e-10)


def test_diagonal_spectra_have_the_scalar_factors():
    omega = fft_angles(4096)
    gains = [1 / (1 - 0.95 * np.exp(-1j * omega)), 1e3 * (1 - 0.8 * np.exp(-1j * omega)), 1e-3 + 0 * omega]
    w = np.abs(np.stack(gains, axis=-1)) ** 2
    found = matrix_minimum_phase(w[:, :, None] * IDENTITY + 0j)
    for i, gain in enumerate(gains):
        np.testing.assert_allclose(found.factor[:, i, i], gain, rtol=1e-11)
    assert np.abs(found.factor * (1 - IDENTITY)).max() == 0


def test_permuting_and_scaling_channels_permutes_and_scales():
    system = random_system(np.random.default_rng(7), 3, 3, 4, 0.8)
    h = response(*system, fft_angles(2048))
    w = h @ adjoint(h)
    order, scales = [2, 0, 1], np.array([1e-6, 3.0, 1e5])
    q = matrix_minimum_phase(w).factor
    scaled = matrix_minimum_phase(w * np.outer(scales, scales)).factor
    np.testing.assert_allclose(scaled / scales[:, None], q, atol=1e-11 * np.abs(q).max())
    permuted = matrix_minimum_phase(w[:, order][:, :, order]).factor
    turn = np.linalg.solve(q[:, order], permuted)  # one orthogonal matrix at all angles
    np.testing.assert_allclose(turn, np.broadcast_to(turn[0], turn.shape), atol=1e-9)
    np.testing.assert_allclose(turn[0] @ adjoint(turn[0]), IDENTITY, atol=1e-9)


@pytest.mark.parametrize("white", [1e-2, 1e-4, 1e-6])
def test_nearly_singular_spectra_are_factored(white):
    """Two channels that are delays of one signal, and little noise: eigenvalues from 1 down to `white`."""

    def spectrum(omega):
        column = np.stack([1 / (1 - 0.9 * np.exp(-1j * omega)), np.exp(-1j * omega) - 0.5], axis=-1)
        return column[:, :, None] * column[:, None, :].conj() + white * np.eye(2)

    a, b, c = np.array([[0.9, 0], [0, 0]]), np.array([[0.9, 0, 0], [1, 0, 0]]), np.eye(2)
    d = np.array([[1, white**0.5, 0], [-0.5, 0, white**0.5]])
    found = matrix_spectral_factor(spectrum, 0.9)
    expected = response(*innovations(a, b, c, d), fft_angles(2 * (len(found.factor) - 1)))
    np.testing.assert_allclose(found.factor, expected, atol=1e-7 * np.abs(expected).max())
    assert found.residual <= 1e-9


def test_a_spectrum_with_a_zero_near_the_circle_needs_a_finer_grid():
    def spectrum(omega):
        h = known(omega)
        h[..., 0] *= (1 - 0.998 * np.exp(-1j * omega))[:, None]
        return h @ adjoint(h)

    found = matrix_spectral_factor(spectrum, 0.5)
    omega = fft_angles(2 * (len(found.factor) - 1))
    expected = known(omega)
    expected[..., 0] *= (1 - 0.998 * np.exp(-1j * omega))[:, None]
    np.testing.assert_allclose(found.factor, expected, atol=1e-9)


def singular(omega):
    column = np.stack([1 + 0 * omega, np.exp(-1j * omega)], axis=-1)
    return column[:, :, None] * column[:, None, :].conj()


@pytest.mark.parametrize(
    "spectrum",
    [
        singular,
        lambda omega: np.abs(1 - np.exp(-1j * omega))[:, None, None] ** 2 * np.eye(2) + 0j,
        lambda omega: -np.eye(2) + 0j * omega[:, None, None],
        lambda omega: 0j * omega[:, None, None] * np.eye(2),
    ],
)
def test_singular_spectra_are_refused_by_name(spectrum):
    with pytest.raises(PaleyWienerError, match=r"spectrum must be positive definite .* add a little white noise"):
        matrix_spectral_factor(spectrum, 0.5)


def test_a_zero_between_the_angles_of_every_grid_is_refused():
    def spectrum(omega):
        return (1 - np.cos(omega - 1))[:, None, None] * (1 - np.cos(omega + 1))[:, None, None] * np.eye(2) + 0j

    with pytest.raises(PaleyWienerError, match="does not decay within"):
        matrix_spectral_factor(spectrum, 0.5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_start_from_the_factor_of_another_spectrum_leads_to_the_same_factor(side):
    rng, omega = np.random.default_rng(8), fft_angles(1024)
    one, other = (response(*random_system(rng, 3, 3, 3, 0.7), omega) for _ in range(2))
    spectra = [x @ adjoint(x) + 0.1 * np.eye(3) for x in (one, other)]
    start, wanted = (matrix_minimum_phase(x, side=side).factor for x in spectra)
    found = matrix_minimum_phase(spectra[1], side=side, start=start)
    np.testing.assert_allclose(found.factor, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    assert found.residual < 1e-12
