import copy
import math
import pickle

import control
import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import signal

from dpfast import Filter, UnstableFilterError
from dpfast.filters.filter import ratio

LIMIT = 1 - 2e-5
OMEGA = np.concatenate([[0, np.pi], np.geomspace(1e-6, 3.1, 200)])
CASES = {
    "example": ([1, 0.995], [1, -0.995]),
    "one": ([1.0], [1.0]),
    "moving average": (np.ones(12) / 12, [1.0]),
    "difference": ([1, -1], [1.0]),
    "not minimum phase": ([1, -2], [1.0]),
    "delay": ([0, 0, 3], [1, -0.5]),
    "more taps than poles": ([1, 2, 3, 4], [1, -0.5]),
    "a0 not one": ([2, 1], [4, 1, -1]),
    "resonator": ([1.0], [1, -1.9 * math.cos(1), 0.9025]),
    "trailing zeros": ([1, 2, 0, 0], [1, -0.5, 0, 0]),
    "zero": ([0.0, 0.0], [1, -0.5]),
    "long denominator": ([1, 1], [1] + [0] * 39 + [-0.9]),
}
FILTERS = {
    **{name: Filter(*ba) for name, ba in CASES.items()},
    "sections": Filter.from_sos(signal.ellip(5, 0.5, 40, 0.3, output="sos")),
    "clustered": Filter.from_sos(signal.butter(8, 0.02, output="sos")),
    "delay in a section": Filter.from_sos([[0, 1, 0.5, 1, -0.5, 0]]),
    "taps in sections": Filter.from_sos([[1, 2, 3, 1, 0, 0]] * 3),
    "product": Filter([1, 0.995], [1, -0.995]) * Filter(np.ones(5)) * Filter([0, 1], [1] + [0] * 35 + [0.5]),
}
every_filter = pytest.mark.parametrize("f", FILTERS.values(), ids=FILTERS)


@st.composite
def coefficients(draw):
    """(b, a) of a stable filter: real and complex poles of modulus up to 0.95."""
    radii = draw(st.lists(st.floats(-0.95, 0.95), max_size=2))
    pairs = draw(st.lists(st.tuples(st.floats(0.1, 0.95), st.floats(0.1, 3.0)), max_size=2))
    a = np.poly(radii + [r * np.exp(1j * s * w) for r, w in pairs for s in (1, -1)]).real
    b = draw(st.lists(st.floats(-4, 4), min_size=1, max_size=8))
    return np.array(b), np.atleast_1d(a)


def impulse(n):
    return np.eye(1, n)[0]


def slow_h2_norm(f):
    """‖H‖₂ of the sections to 60 digits, by doubling the Lyapunov sum."""
    with mpmath.workdps(60):
        a, b, c, d = (mpmath.matrix(x.tolist()) for x in f.state_space())
        covariance, power = b * b.T, a
        for _ in range(28):
            covariance, power = covariance + power * covariance * power.T, power * power
        return float(mpmath.sqrt((c * covariance * c.T)[0] + d[0] ** 2))


# --- response and impulse -------------------------------------------------------------------------


@pytest.mark.parametrize(("b", "a"), CASES.values(), ids=CASES)
def test_response_is_that_of_freqz(b, a):
    expected = signal.freqz(b, a, OMEGA)[1]
    np.testing.assert_allclose(Filter(b, a).response(OMEGA), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("b", "a"), CASES.values(), ids=CASES)
def test_impulse_is_that_of_lfilter(b, a):
    np.testing.assert_allclose(Filter(b, a).impulse(300), signal.lfilter(b, a, impulse(300)), rtol=1e-10, atol=1e-12)


@given(coefficients())
@example((np.array([2.5e-29, 1, 0, 1]), np.array([1, -1.04, 0.52, -0.125])))
@example((np.array([1e-13, 1, 0, 1]), np.array([1, -1.04, 0.52, -0.125])))
def test_response_and_impulse_of_random_filters(ba):
    b, a = ba
    f, scale = Filter(b, a), 1 + np.abs(b).sum()
    np.testing.assert_allclose(f.impulse(60), signal.lfilter(b, a, impulse(60)), rtol=1e-7, atol=1e-9 * scale)
    omega = np.linspace(0, np.pi, 20)
    np.testing.assert_allclose(f.response(omega), signal.freqz(b, a, omega)[1], rtol=1e-7, atol=1e-8 * scale)


@given(coefficients(), coefficients())
def test_product_is_the_convolution_of_impulse_responses(first, second):
    f, g = Filter(*first), Filter(*second)
    expected = np.convolve(f.impulse(40), g.impulse(40))[:40]
    np.testing.assert_allclose((f * g).impulse(40), expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(expected).max()))


@every_filter
def test_response_is_the_transform_of_the_impulse_response(f):
    h = f.impulse(1 << 14)
    expected = np.fft.rfft(h)[::512]
    omega = np.linspace(0, np.pi, len(expected))
    np.testing.assert_allclose(f.response(omega), expected, rtol=1e-9, atol=1e-10 * np.abs(h).sum())


@every_filter
def test_state_space_reproduces_the_impulse_response(f):
    a, b, c, d = f.state_space()
    expected = np.squeeze(signal.dimpulse((a, b, c, d, 1), n=120)[1][0]) if len(a) else d.item() * impulse(120)
    np.testing.assert_allclose(f.impulse(120), expected, rtol=1e-9, atol=1e-11)


@every_filter
def test_sos_runs_the_whole_filter(f):
    np.testing.assert_allclose(signal.sosfilt(f.sos.copy(), impulse(80)), f.impulse(80), rtol=1e-8, atol=1e-8)


def test_sos_can_be_given_to_sosfilt():
    assert signal.sosfilt(Filter([1, 2], [1, -0.5]).sos, impulse(3)).tolist() == [1, 2.5, 1.25]


@every_filter
def test_b_and_a_run_the_whole_filter(f):
    assert f.a[0] == 1
    np.testing.assert_allclose(signal.lfilter(f.b, f.a, impulse(60)), f.impulse(60), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("sos", [signal.butter(8, 0.02, output="sos"), signal.cheby1(7, 1, 0.6, output="sos")])
def test_from_sos_is_sosfilt(sos):
    np.testing.assert_allclose(Filter.from_sos(sos).impulse(500), signal.sosfilt(sos, impulse(500)), atol=1e-13)


def test_sections_are_divided_by_their_leading_coefficient():
    assert Filter.from_sos([[2, 0, 0, 2, -1, 0]]).impulse(3).tolist() == [1, 0.5, 0.25]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_response_keeps_the_shape_of_omega(shape):
    assert Filter([1, 2], [1, -0.5]).response(np.ones(shape)).shape == shape


def test_impulse_of_no_samples_is_empty():
    assert Filter([1, 2], [1, -0.5]).impulse(0).shape == (0,)


# --- norms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.5, 0.995, 0.9999, LIMIT, -LIMIT])
def test_h2_norm_of_one_pole_is_exact(radius):
    assert Filter([1], [1, -radius]).h2_norm() == pytest.approx(1 / math.sqrt(1 - radius**2), rel=1e-10)


def test_h2_norm_of_the_example():
    assert Filter([1, 0.995], [1, -0.995]).h2_norm() ** 2 == pytest.approx(1 + 1.99**2 / (1 - 0.995**2), rel=1e-12)


@pytest.mark.parametrize("radius", [0.9, 0.999, 0.9999, LIMIT])
@pytest.mark.parametrize("angle", [0.5, 2.0])
def test_h2_norm_of_a_resonator_is_exact(radius, angle):
    a1, a2 = -2 * radius * math.cos(angle), radius**2
    # the variance of an AR(2) process (Box and Jenkins)
    expected = (1 + a2) / ((1 - a2) * ((1 + a2) ** 2 - a1**2))
    assert Filter([1], [1, a1, a2]).h2_norm() ** 2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("poles", "tolerance"),
    [
        ([0.9999, 0.9998], 1e-7),
        ([0.9999, 0.99990001], 1e-7),
        ([0.9999, 0.9999], 1e-7),
        ([-0.9999, -0.99990001], 1e-7),
        ([0.999] * 4, 1e-7),
        ([1 - 2.1e-5, 1 - 2.2e-5], 1e-5),
        ([0.9999 * np.exp(0.1j), 0.9999 * np.exp(-0.1j)] * 2, 1e-7),
        ([0.9999 + 1e-5j, 0.9999 - 1e-5j, 0.9999], 1e-5),
        ([0.9999] * 4, 1e-3),
    ],
)
def test_h2_norm_of_near_coincident_poles(poles, tolerance):
    f = Filter.from_zpk([], poles, 1.0)
    assert f.h2_norm() == pytest.approx(slow_h2_norm(f), rel=tolerance)


@every_filter
def test_h2_norm_is_the_sum_of_squares(f):
    assert f.h2_norm() == pytest.approx(np.linalg.norm(f.impulse(50_000)), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("name", ["example", "a0 not one", "resonator", "sections"])
def test_h2_norm_is_that_of_python_control(name):
    f = FILTERS[name]
    assert f.h2_norm() == pytest.approx(control.system_norm(control.ss(*f.state_space(), True), 2), rel=1e-9)


def test_h2_norm_of_many_taps_over_a_pole():
    # a moving sum of n over a pole r: the response rises for n samples and then decays
    n, r = 400, 0.5
    rise = np.cumsum(r ** np.arange(n))
    expected = math.sqrt(rise @ rise + (rise[-1] * r) ** 2 / (1 - r * r))
    assert Filter(np.ones(n), [1, -r]).h2_norm() == pytest.approx(expected, rel=1e-12)


@every_filter
def test_hinf_norm_is_never_below_a_dense_scan(f):
    seen = np.abs(f.response(np.linspace(0, np.pi, 200_001))).max()
    assert seen <= f.hinf_norm() <= seen * 1.01 + 1e-300


@pytest.mark.parametrize("radius", [0.9, 0.9999, LIMIT])
@pytest.mark.parametrize("angle", [0.3, 1.0, 2.5])
def test_hinf_norm_finds_narrow_peaks(radius, angle):
    f = Filter([1], [1, -2 * radius * math.cos(angle), radius**2])
    # the peak of |1/A| is where cos ω = cos θ (1 + r²)/2r
    peak = 1 / ((1 - radius**2) * math.sin(angle))
    assert peak <= f.hinf_norm() * (1 + 1e-11)
    assert f.hinf_norm() == pytest.approx(peak, rel=2e-9)


@pytest.mark.parametrize("seed", [0, 8, 172, 256])
def test_hinf_norm_of_a_comb_with_almost_equal_peaks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 140))
    h = 10 ** -rng.uniform(3.5, 5) * rng.standard_normal(n + 1)
    h[0] += 1
    h[n] += 0.9
    assert np.abs(np.fft.rfft(h, 1 << 20)).max() <= Filter(h).hinf_norm()


def test_hinf_norm_finds_a_narrow_peak_of_a_long_denominator():
    peak = 0.99998 * np.exp([1.0003j, -1.0003j])
    poles = [0.9998, *peak, *(0.5 * np.exp(2j * np.pi * np.arange(40) / 40))]
    f = Filter([1], np.poly(poles).real)
    assert len(f.factors[2]) > 33
    assert abs(f.response(1.0003).item()) <= f.hinf_norm()


@pytest.mark.parametrize(("p", "expected"), [(1, 2.0), (2, math.sqrt(4 / 3)), (3, (8 / 7) ** (1 / 3)), (math.inf, 1)])
def test_impulse_norm_of_one_pole(p, expected):
    assert Filter([1], [1, -0.5]).impulse_norm(p) == pytest.approx(expected, rel=1e-13)


@every_filter
def test_impulse_norm_is_the_norm_of_a_long_response(f):
    response, norms = f.impulse(50_000), (1, 2, math.inf)
    expected = {p: np.linalg.norm(response, p) for p in norms}
    assert {p: f.impulse_norm(p) for p in norms} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("radius", [0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [1, 2, 8, 20])
def test_settling_time_is_past_the_decay_of_repeated_poles(radius, n):
    f = Filter.from_zpk([], [radius] * n, (1 - radius) ** n)
    settled = f.settling_time(1e-14)
    h = f.impulse(2 * settled + 2000)
    assert np.abs(h[settled:]).max(initial=0.0) <= 1e-11 * np.abs(h).max()
    # all impulse responses here are positive with sum one
    assert f.impulse_norm(1) == pytest.approx(1.0, rel=1e-8)


def test_settling_time_covers_every_tap():
    assert Filter(np.ones(1000)).settling_time(1e-14) >= 1000
    assert Filter.from_sos([[1, 1, 1, 1, 0, 0]] * 10).settling_time(1e-14) >= 21


@pytest.mark.parametrize("p", [0.5, 0, math.nan, "1", None, True])
def test_impulse_norm_refuses_what_is_no_norm(p):
    with pytest.raises(ValueError, match="p must be"):
        Filter([1]).impulse_norm(p)


@pytest.mark.parametrize("shape", [(7,), (2, 7), (2, 3, 7), (0, 7), (2, 0), (0,)])
def test_filter_runs_along_the_last_axis_as_scipy_does(shape):
    f = Filter([1, 0.5, 0.2], [1, -0.6, 0.2])
    x = np.random.default_rng(0).standard_normal(shape)
    expected = signal.lfilter(f.b, f.a, x) if x.size else x
    np.testing.assert_allclose(f.filter(x).y, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(
        f.filter(x[..., ::2]).y, signal.lfilter(f.b, f.a, x[..., ::2]) if x.size else x[..., ::2]
    )


def test_filter_writes_between_the_samples_of_its_input():
    f, both = Filter([1, 0.5], [1, -0.6]), np.random.default_rng(0).standard_normal((3, 50, 2))
    expected = f.filter(both[..., 0]).y
    np.testing.assert_array_equal(f.filter(both[..., 0], out=both[..., 1]).y, expected)
    np.testing.assert_array_equal(both[..., 1], expected)
    for overlapping in (both[:, :-1, 1], both[::-1, 1:, 1]):
        with pytest.raises(ValueError, match="out must be x itself or share no memory with it"):
            f.filter(both[:, 1:, 1], out=overlapping)


def test_the_output_may_take_the_place_of_the_states():
    """Those of other streams, before they are filtered."""
    f, x, memory = Filter([1], [1, -0.5]), np.ones((40, 1)), np.arange(82.0).reshape(41, 2)
    expected = f.filter(x, memory[:40])
    found = f.filter(x, memory[:40], out=memory[1:, :1])
    assert np.array_equal(found.y, 1 + 2 * np.arange(40.0)[:, None])
    assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("given_out", [False, True])
@pytest.mark.parametrize("value", [2e9, 1e300, np.longdouble("1e400")])
def test_filter_refuses_what_is_too_large_for_float32(value, given_out):
    out = np.empty(1, np.float32) if given_out else None
    with pytest.raises(ValueError, match=r"x must be (at most 1e\+09 in magnitude|finite), got 1 "):
        Filter([1]).filter(np.array([value]), dtype=np.float32, out=out)
    assert Filter([1]).filter([1e9], dtype=np.float32, out=out).y == 1e9


def test_filter_of_a_number_is_refused():
    with pytest.raises(ValueError, match="x must be an array"):
        Filter([1]).filter(3.0)


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_a_filter_is_not_multiplied_by_what_is_no_number(factor):
    with pytest.raises(ValueError, match="the factor of a filter must be a finite number"):
        Filter([1, 2]) * factor


@pytest.mark.parametrize(
    ("b", "a", "message"),
    [
        ([1], [0, 1], r"a\[0\] must not be zero"),
        ([1], [0], r"a\[0\] must not be zero"),
        ([math.nan], [1], "b must be finite, got 1 NaN or infinite"),
        ([1], [1, math.inf], "a must be finite"),
        ([], [1], r"b must not be empty, got shape \(0,\)"),
        ([1], [], "a must not be empty"),
        ([[1, 2]], [1], r"b must have 1 dimension, got shape \(1, 2\)"),
        (([1, 2], [1, 0.5]), [1], r"got shape \(2, 2\): give a pair of coefficients as Filter\(b, a\)"),
        (signal.butter(4, 0.1, output="sos"), [1], r"got shape \(2, 6\): .* sections as Filter.from_sos\(sos\)"),
        (1.0, [1], r"b must have 1 dimension, got shape \(\)"),
        ([1j], [1], "b must hold real numbers, got dtype complex"),
        (["1"], [1], "b must hold real numbers"),
        ([[1], [1, 2]], [1], "b must be an array of numbers"),
    ],
)
def test_bad_coefficients_are_refused(b, a, message):
    with pytest.raises(ValueError, match=message):
        Filter(b, a)


@pytest.mark.parametrize(("b", "a"), [([1.0], [1e-310, 0.5]), ([1e-310, 1], [1, -0.5])])
def test_coefficients_of_extreme_scale_give_a_filter_or_a_clear_error(b, a):
    try:
        f = Filter(b, a)
    except ValueError as error:
        assert "must" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(f.impulse(9), signal.lfilter(b, a, impulse(9)), atol=1e-12)


@pytest.mark.parametrize("sos", [[[1, 0, 0, 0, 1, 0]], [[1, 0, 0, 1, 0]], [], [[1, 0, 0, 1, math.nan, 0]]])
def test_bad_sections_are_refused(sos):
    with pytest.raises(ValueError, match=r"must"):
        Filter.from_sos(sos)


@pytest.mark.parametrize("sign", [1, -1])
def test_pole_at_the_limit_is_accepted_and_beyond_refused(sign):
    assert abs(Filter([1], [1, -sign * LIMIT]).poles[0]) == pytest.approx(LIMIT, abs=1e-12)
    with pytest.raises(UnstableFilterError, match=r"at most 0\.99998, got a pole at -?0\.99999 \(modulus 0\.99999\)"):
        Filter([1], [1, -sign * (1 - 1e-5)])


@pytest.mark.parametrize("angle", [1e-3, 0.1, 1.0, 3.0])
def test_complex_poles_at_the_limit_are_accepted(angle):
    assert Filter([1], [1, -2 * LIMIT * math.cos(angle), LIMIT**2]).order == 2


@pytest.mark.parametrize("n", [2, 3])
def test_repeated_poles_at_the_limit_are_accepted(n):
    assert Filter.from_zpk([], [LIMIT] * n, 1.0).order == n


@pytest.mark.parametrize("a", [[1, -1], [1, -1.5], [1, 0, 1.21], [1] + [0] * 39 + [-1.5]])
def test_unstable_filters_are_refused(a):
    with pytest.raises(UnstableFilterError, match=r"stable with every pole .* at most 0\.99998, got a pole at"):
        Filter([1], a)


# --- attributes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "a", "order", "is_fir"),
    [
        ([1], [1], 0, True),
        ([1, 2, 3], [1], 2, True),
        ([1, 2, 3], [1, -0.5], 2, False),
        ([1], [1, -0.5, 0.06], 2, False),
        ([0, 0, 1], [1], 2, True),
        ([1, 2, 0, 0], [1, 0, 0], 1, True),
    ],
)
def test_order_is_the_number_of_states(b, a, order, is_fir):
    f = Filter(b, a)
    assert (f.order, f.is_fir) == (order, is_fir)


@pytest.mark.parametrize(("b", "a"), [([1, -0.3, -0.1], [1, -0.5, 0.06]), ([0, 2, -1], [1, 0, 0.81]), ([1], [1])])
def test_poles_and_zeros_are_the_roots(b, a):
    f = Filter(b, a)
    np.testing.assert_allclose(np.sort_complex(f.poles), np.sort_complex(np.roots(a)), atol=1e-12)
    np.testing.assert_allclose(np.sort_complex(f.zeros), np.sort_complex(np.roots(b)), atol=1e-12)


@every_filter
def test_filter_is_numerator_over_denominator(f):
    assert f.numerator.is_fir
    assert f.denominator.is_fir
    expected = f.response(OMEGA)
    np.testing.assert_allclose(f.numerator.response(OMEGA) / f.denominator.response(OMEGA), expected, rtol=1e-9)


@pytest.mark.parametrize("scalar", [2, -0.5, np.float32(4), 0])
def test_scalars_scale(scalar):
    f = Filter([1, 2], [1, -0.5])
    np.testing.assert_allclose((scalar * f).impulse(9), scalar * f.impulse(9))
    np.testing.assert_allclose((f * scalar).impulse(9), scalar * f.impulse(9))


@pytest.mark.parametrize("other", ["a", None, [1, 2]])
def test_products_with_anything_else_are_refused(other):
    with pytest.raises(TypeError):
        Filter([1]) * other


@pytest.mark.parametrize("name", ["example", "one", "a0 not one", "resonator", "long denominator"])
def test_inverse_undoes_a_minimum_phase_filter(name):
    f = FILTERS[name] if name != "long denominator" else Filter([1, 0.5], CASES[name][1])
    np.testing.assert_allclose((f * f.inverse()).impulse(50), impulse(50), atol=1e-10)


@pytest.mark.parametrize("b", [[1, -2], [1, -1], [0, 1], [0.0]])
def test_inverse_of_another_phase_is_refused(b):
    with pytest.raises(UnstableFilterError):
        Filter(b, [1, -0.5]).inverse()


@pytest.mark.parametrize("top", [[[0, 1, 0.5, 1, 0, 0]], [[0, 0, 1, 1, 0, 0], [2, 1, 0, 1, 0, 0]]])
def test_ratio_keeps_delays_that_sections_hold(top):
    f = Filter.from_sos(top)
    expected = signal.lfilter(f.b, [1, -0.5], impulse(20))
    np.testing.assert_allclose(ratio((f,), (Filter([1, -0.5]),)).impulse(20), expected, atol=1e-12)


@given(coefficients())
def test_ratio_of_numerator_and_denominator_is_the_filter(ba):
    f = Filter(*ba)
    again = ratio((f.numerator,), (f.denominator,))
    np.testing.assert_allclose(again.impulse(40), f.impulse(40), rtol=1e-6, atol=1e-7 * (1 + np.abs(ba[0]).sum()))


# --- identity -------------------------------------------------------------------------------------


def test_arrays_are_read_only_and_the_callers_is_not():
    b, a = np.array([1.0, 0.5]), np.array([1.0, -0.5])
    f = Filter(b, a)
    before = f.impulse(5)
    b[0], a[1] = 7, 0.9
    np.testing.assert_array_equal(f.impulse(5), before)
    for x in (f.b, f.a, f.poles, f.zeros, *f.factors):
        assert not x.flags.writeable


def test_sections_of_the_caller_are_copied():
    sos = np.array([[1.0, 0, 0, 1, -0.5, 0]])
    f = Filter.from_sos(sos)
    sos[0, 4] = 0.9
    assert f.impulse(2).tolist() == [1, 0.5]


def test_attributes_cannot_be_set_or_deleted():
    f = Filter([1])
    with pytest.raises(AttributeError):
        f.b = np.ones(2)
    with pytest.raises(AttributeError):
        f.anything = 1
    with pytest.raises(AttributeError):
        del f._taps
    assert f.h2_norm() == 1


def test_equal_filters_have_equal_hashes():
    assert Filter([1, 2], [1, -0.5]) == Filter([2, 4], [2, -1])
    assert hash(Filter([1, 2], [1, -0.5])) == hash(Filter([2, 4], [2, -1]))
    assert Filter([1, 2]) != Filter([1, 3])
    assert Filter([1]) != "a filter"


def test_negative_zeros_leave_the_hash_alone():
    first, second = Filter([0, 1]) * -1, Filter([0, -1])
    assert first == second
    assert hash(first) == hash(second)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_and_pickles_are_equal_and_frozen(twin):
    f = Filter([1, 0.995], [1, -0.995])
    again = twin(f)
    assert again == f
    assert not again.factors[0].flags.writeable


@every_filter
def test_repr_is_short(f):
    assert len(repr(f)) < 400


def test_short_repr_makes_the_filter_again():
    f = Filter([1, 0.995], [1, -0.995])
    assert eval(repr(f)) == f


# --- size -----------------------------------------------------------------------------------------


def test_long_fir_runs():
    h = np.random.default_rng(0).standard_normal(2000)
    f = Filter(h)
    np.testing.assert_array_equal(f.impulse(2000), h)
    assert f.h2_norm() == pytest.approx(np.linalg.norm(h), rel=1e-12)
    assert f.hinf_norm() >= np.abs(np.fft.rfft(h, 1 << 16)).max()


@pytest.mark.parametrize("n", [32, 33, 64, 200])
def test_long_denominators_run(n):
    f = Filter([1], [1] + [0] * (n - 1) + [-0.9])
    assert f.h2_norm() == pytest.approx(1 / math.sqrt(1 - 0.81), rel=1e-10)
    assert f.hinf_norm() == pytest.approx(10, rel=1e-8)
    assert f.hinf_norm() >= 10
    assert f.impulse_norm(1) == pytest.approx(10, rel=1e-10)
    assert (f * f).impulse(2 * n + 1)[2 * n] == pytest.approx(3 * 0.81, rel=1e-12)
