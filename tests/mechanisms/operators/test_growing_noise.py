"""The factorization without a horizon against matrices, sums and integrals that are written out."""

import numpy as np
import pytest
from scipy import integrate

from dpfast.filters.half_integrator import half_integrator
from dpfast.mechanisms.operators.growing_noise import (
    GrowingReconstruction,
    GrowingStrategy,
    _geometric_sums,
    growing_scales,
    squared_rows,
)

N = 300


def impulses(n, steps):
    """Columns of C at given steps, as far as n steps."""
    x = np.zeros((len(steps), n))
    x[np.arange(len(steps)), steps] = 1
    return GrowingStrategy(n).apply(x)


def row_square(t):
    return np.exp(-4 * ((1 + np.log(t + 1) / 3) ** (2 / 3) - 1))


def test_the_reconstruction_of_the_strategy_is_the_running_sum():
    C, B = GrowingStrategy(N).matrix(), GrowingReconstruction(N).matrix()
    np.testing.assert_allclose(B @ C, np.tril(np.ones((N, N))), atol=1e-12)


def test_nothing_is_published_before_it_comes():
    assert (np.triu(GrowingStrategy(N).matrix(), 1) == 0).all()
    assert (np.triu(GrowingReconstruction(N).matrix(), 1) == 0).all()


def test_scales_are_constant_on_intervals_that_cover_all_time():
    starts, rows, columns = growing_scales()
    assert (starts[:17] == np.arange(17)).all()
    assert starts[-1] == 2.0**62
    assert (np.diff(starts[16:]) / starts[16:-1] < 0.13).all()
    np.testing.assert_allclose(rows**2, row_square(starts), rtol=1e-12)
    assert (np.diff(rows) < 0).all()
    assert (np.diff(columns) < 0).all()
    spread = growing_scales().spread(rows, 40)
    assert [spread[t] for t in range(40)] == [rows[starts <= t][-1] for t in range(40)]
    assert len(growing_scales().spread(rows, 0)) == 0


def test_the_norm_of_a_column_over_all_time_is_at_most_one():
    """As far as 2¹⁷ steps it is summed; of what comes later, an integral of the same at the ends of intervals."""
    n = 2**17
    steps = np.array([0, 1, 2, 7, 15, 16, 17, 31, 100, 1023, 1024, 5000])
    found = (impulses(n, steps) ** 2).sum(axis=1)
    assert (found < 1).all()
    columns = growing_scales().spread(growing_scales().column_scales, n)[steps]
    # c_k² is near to 1/(π k), and a is constant on eighths of octaves, its value that of their starts
    later, _ = integrate.quad(lambda x: row_square(np.exp(x)) / np.pi, np.log(n), 43)
    whole = found + later * 2 ** (1 / 16 * 0.5) / columns**2
    begins = np.isin(steps, growing_scales().starts)
    np.testing.assert_allclose(whole[begins], 1, atol=2e-3 * (1 + later / columns[begins] ** 2).max())
    assert (whole <= 1.002).all()
    assert (whole > 0.97).all()


def test_late_columns_have_no_larger_norm():
    n = 2**17
    steps = np.array([2048, 4095, 8192, 16_383, 2**16, 2**16 - 1])
    assert ((impulses(n, steps) ** 2).sum(axis=1) < 1).all()


def test_a_column_of_the_last_interval_is_one_of_a_constant_scale():
    """Where it has no end: its norm is a ‖T‖, by an integral over the circle."""

    def squared_gain(log_omega):
        """|T|² at a frequency, times the frequency, as |1 - p z⁻¹|² = d² + 4 (1 - d) sin²(ω/2) for p = 1 - d."""
        omega = np.exp(log_omega)
        half, s = half_integrator(), 4 * np.sin(omega / 2) ** 2
        above, below = half.zero_distances[:-1], half.pole_distances
        return omega / np.pi * np.prod((above**2 + (1 - above) * s) / (below**2 + (1 - below) * s))

    energy = sum(integrate.quad(squared_gain, x, x + 1)[0] for x in np.arange(np.log(np.pi) - 60, np.log(np.pi) - 0.5))
    scales = growing_scales()
    assert scales.column_scales[-1] == pytest.approx(scales.row_scales[-1] * np.sqrt(energy), rel=1e-8)


def test_sums_of_powers_have_a_closed_form_also_for_the_pole_at_one():
    p = 1 - half_integrator().zero_distances
    expected = sum(np.outer(p, p) ** k for k in range(9))
    np.testing.assert_allclose(_geometric_sums(9.0), expected, rtol=1e-12)


def test_squared_rows_are_those_of_the_matrix():
    B = GrowingReconstruction(N).matrix()
    np.testing.assert_allclose(GrowingReconstruction(N).squared_rows(), (B**2).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("t", [1000, 4095, 4096, 6001])
def test_squared_rows_are_those_of_noise_in_reverse(t):
    """The row t of B by its transpose, which is written out: B = S diag(e) T⁻¹ diag(1/a)."""
    scales = growing_scales()
    rows, columns = (scales.spread(x, t + 1) for x in (scales.row_scales, scales.column_scales))
    row = half_integrator().undo(columns[::-1])[::-1] / rows
    assert squared_rows(t, 1)[0] == pytest.approx(row @ row, rel=1e-11)


def test_any_part_of_the_rows_is_the_same():
    whole = squared_rows(0, 10_000)
    np.testing.assert_allclose(squared_rows(4321, 2000), whole[4321:6321], rtol=1e-14)
    assert (np.diff(whole) > 0).all()
    assert squared_rows(2**53 - 1, 1)[0] > squared_rows(2**52, 1)[0] > whole[-1]


def test_norms_that_are_asked_for_are_bounds():
    C, B = GrowingStrategy(N), GrowingReconstruction(N)
    entries = C.matrix()
    gram = np.abs(entries.T @ entries)
    assert (C.products() >= gram.max()).all()
    assert C.largest_l1() >= np.abs(entries).sum(axis=0).max()
    np.testing.assert_allclose(C.squared_rows(), (entries**2).sum(axis=1), rtol=1e-12)
    assert B.largest_l1() == pytest.approx(np.abs(B.matrix()).sum(axis=0).max())
    assert B.products()[0] == pytest.approx((B.matrix() ** 2).sum(axis=0).max())


@pytest.mark.parametrize("operator", [GrowingStrategy, GrowingReconstruction])
def test_a_horizon_that_is_none_is_refused(operator):
    with pytest.raises(ValueError, match="horizon must"):
        operator(0).check()
    operator(3).check()
    assert operator(3).shape == (3, 3)
