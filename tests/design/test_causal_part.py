"""The energy of a response before and after a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter
from dpfast.design import causal_part as parts
from dpfast.design.causal_part import CausalPart, causal_energy
from dpfast.filters.fft_grid import fft_angles


@pytest.mark.parametrize("lag", [0, 1, 5, 31, 32, 100])
def test_causal_energy_is_the_sum_over_times(lag):
    x = np.random.default_rng(0).standard_normal(64)
    times = (np.arange(64) + 32) % 64 - 32  # time of each sample of the transform
    after, before = causal_energy(np.fft.rfft(x), lag)
    assert after == pytest.approx(float(x[times >= -lag] @ x[times >= -lag]), rel=1e-12)
    assert before == pytest.approx(float(x[times < -lag] @ x[times < -lag]), rel=1e-12, abs=1e-13)


@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9), st.integers(0, 20))
def test_causal_energy_of_two_sided_decays(forward, back, lag):
    z = np.exp(-1j * fft_angles(1024))
    after, before = causal_energy(1 / (1 - forward * z) + back / z / (1 - back / z), lag)
    assert before == pytest.approx(back ** (2 * lag + 2) / (1 - back**2), rel=1e-9, abs=1e-14)
    total = 1 / (1 - forward**2) + back**2 / (1 - back**2)
    assert after == pytest.approx(total - back ** (2 * lag + 2) / (1 - back**2), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 33, 60])
@pytest.mark.parametrize("few", [0, 100], ids=["one form", "each angle"])
def test_response_is_the_sum_over_samples_and_states(monkeypatch, n, few):
    """The samples, then C Aʲ ξ, summed term by term."""
    monkeypatch.setattr(parts, "_FEW_STATES", few)
    random = np.random.default_rng(n)
    a = random.standard_normal((n, n))
    a *= 0.9 / np.abs(np.linalg.eigvals(a)).max()
    state, c, samples = random.standard_normal(n), random.standard_normal(n), random.standard_normal(4)
    part = CausalPart(samples, a, state[:, None], c, state, Filter([1.0]))
    x = [*samples]
    while len(x) < 700:
        x, state = [*x, c @ state], a @ state
    omega = np.linspace(0, np.pi, 9)
    wanted = np.exp(-1j * np.outer(omega, np.arange(len(x)))) @ x
    np.testing.assert_allclose(part.response(omega), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
