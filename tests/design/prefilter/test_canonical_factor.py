"""The canonical factor against direct integrals and Jensen's product."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate

from dpfast import Filter
from dpfast.design.prefilter.canonical_factor import canonical_factor


def log_integral(zeros, poles, gain):
    """<ln|H|²> by adaptive quadrature between the angles of the roots."""

    def integrand(omega):
        z = np.exp(1j * omega)
        return 2 * (np.log(abs(gain)) + np.log(abs(z - zeros)).sum() - np.log(abs(z - poles)).sum())

    ends = np.unique(np.concatenate([[0, np.pi], np.abs(np.angle(zeros)), np.abs(np.angle(poles))]))
    pieces = [integrate.quad(integrand, *ends[i : i + 2], epsabs=1e-10, limit=200)[0] for i in range(len(ends) - 1)]
    return sum(pieces) / np.pi


ROOTS = {
    "inside": ([0.5, -0.3], [0.9]),
    "outside": ([2.0, -1.5], [0.9, 0.1]),
    "on the circle": ([1.0, -1.0], [0.7]),
    "pair on the circle": ([np.exp(1j), np.exp(-1j)], [0.5, 0.2]),
    "pair outside": ([1.2 + 1j, 1.2 - 1j, 0.4], [0.5, 0.8, -0.2]),
    "mixed": ([1.0, 3.0, 0.2], [0.95, 0.3, 0]),
    "double on the circle": ([1.0, 1.0], [0.3]),
}


@pytest.mark.parametrize(("zeros", "poles"), ROOTS.values(), ids=ROOTS)
def test_canonical_factor_against_the_log_integral(zeros, poles):
    h = Filter(-1.7 * np.poly(zeros).real, np.poly(poles).real)
    square, factor = canonical_factor(h)
    assert np.log(square) == pytest.approx(log_integral(np.array(zeros), np.array(poles), -1.7), rel=1e-8, abs=1e-8)
    assert factor.impulse(1) == pytest.approx([1], rel=1e-12)
    assert np.abs(factor.zeros).max() <= 1 + 1e-7
    omega = np.linspace(0.01, 3.1, 50)
    np.testing.assert_allclose(square * np.abs(factor.response(omega)) ** 2, np.abs(h.response(omega)) ** 2, rtol=1e-9)


def test_canonical_factor_of_a_delay_is_one():
    square, factor = canonical_factor(Filter([0, 0, -3]))
    assert square == pytest.approx(9, rel=1e-12)
    assert factor.b.tolist() == [1.0]


def test_canonical_factor_of_a_long_moving_average():
    square, factor = canonical_factor(Filter(np.full(288, 1 / 288)))
    assert square == pytest.approx(288**-2, rel=1e-9)
    assert np.isfinite(factor.b).all()


@given(
    zeros=hnp.arrays(float, st.integers(1, 5), elements=st.floats(-3, 3)),
    pole=st.floats(-0.95, 0.95),
    gain=st.floats(0.1, 10),
)
def test_canonical_factor_of_real_zeros_is_jensens_product(zeros, pole, gain):
    square, factor = canonical_factor(Filter(gain * np.poly(zeros), [1, -pole]))
    assert square == pytest.approx(gain**2 * np.prod(np.maximum(1, np.abs(zeros))) ** 2, rel=1e-6)
    assert factor.impulse(1) == pytest.approx([1], rel=1e-12)
