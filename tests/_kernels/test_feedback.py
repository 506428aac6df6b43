import numpy as np
import pytest
from chains import assert_close, noise, paths
from equalizers import ALPHABETS, CASES, ERROR, SHRINKAGE, decider, equalizer, twin
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import signal

from dpfast._kernels import feedback
from dpfast._kernels.builder import Chain
from dpfast._kernels.feedback import AsIs, Feedback, Nearest, Sign, Soft
from dpfast._kernels.linear import TAPS
from dpfast._kernels.simd import lanes
from dpfast._kernels.tiles import ROWS

PAST = 80  # rows
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def soft(levels, slopes, offsets, dtype=np.float64):
    return Soft(np.concatenate([[7.0], levels, slopes, offsets]).astype(dtype), 1, len(levels))


def hard(levels, thresholds, dtype=np.float64):
    c = np.concatenate([[7.0], levels, thresholds]).astype(dtype)
    return Sign(c, 1) if len(levels) == 2 else Nearest(c, 1, len(levels))


def rule(alphabet, decision, dtype=np.float64):
    e = equalizer(alphabet, decision)
    if decision == "soft":
        return soft(e.levels, e.slopes, e.offsets, dtype)
    return hard(e.levels, e.thresholds, dtype)


def of_values(rule, values, dtype=np.float64):
    """What a rule makes of numbers, each in a row of its own."""
    n = len(values)
    x = np.zeros((2 * n, lanes(dtype)), dtype)
    x[:n] = np.reshape(values, (n, 1))
    feedback.round_to_levels(rule, x, 0, n, n)
    assert (x[n:] == x[n:, :1]).all()
    return x[n:, 0]


def run(rule, x, forward=(), taps=(), cuts=()):
    """The loop on x (streams, time), as many streams as lanes, one part after the other."""
    n = x.shape[1]
    rows = np.zeros((2 * (PAST + n + ROWS - 1), x.shape[0]), x.dtype)
    first, out = PAST, 2 * PAST + n + ROWS - 1
    rows[first : first + n] = x.T
    forward = np.pad(forward, (0, -len(forward) % TAPS))
    n_feedback = -(-max(0, len(taps) + 1 - ROWS) // TAPS)
    back = np.zeros(ROWS + n_feedback * TAPS)
    back[1 : 1 + len(taps)] = taps
    c = np.concatenate([[7.0], forward, back]).astype(x.dtype)
    places = Feedback(1, len(forward) // TAPS, 1 + len(forward), n_feedback)
    ends = [*sorted(cuts), n]
    for start, stop in zip([0, *ends], ends, strict=False):
        feedback.run(c, places, rule, rows, first + start, out + start, stop - start)
    return rows[out : out + n].T.copy()


# --- the loop -------------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("n_poles", [1, 4, 5, 6, 13, 40])
def test_without_decisions_it_is_a_recursion(n_poles, dtype):
    roots = 0.9 * np.exp(2j * np.pi * (np.arange(n_poles) + 0.5) / n_poles)
    a, x = np.poly(roots).real, noise(lanes(dtype), 70).astype(dtype)
    assert_close(run(AsIs(0), x, taps=-a[1:]), signal.lfilter([1.0], a, x))
    assert_close(run(AsIs(0), x, [0.5, 0.0, 0.2], -a[1:]), signal.lfilter([0.5, 0.0, 0.2], a, x))


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_parts_give_the_bits_of_the_whole(alphabet, decision, cuts):
    x, forward, taps = noise(lanes(np.float64), 40), 0.5 * noise(9, seed=1), 0.1 * noise(17, seed=2)
    whole = run(rule(alphabet, decision), x, forward, taps)
    assert np.array_equal(run(rule(alphabet, decision), x, forward, taps, cuts), whole)


def decide(e, v):
    """Decisions of an equaliser in a chain that reads v (streams, time)."""
    chain = Chain(v.dtype)
    return paths(chain, [chain.decide(e, chain.read())], *v.shape, x=v)[0]


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
@pytest.mark.parametrize("lag", range(8))
def test_decisions_are_those_of_the_twin(alphabet, decision, lag):
    v = noise(2, 40, seed=lag)
    assert_close(decide(equalizer(alphabet, decision, lag), v), twin(alphabet, decision, lag, v))


@pytest.mark.parametrize("decision", ["hard", "soft"])
@pytest.mark.parametrize(
    ("n_forward", "n_feedback"), [(1, 0), (1, 3), (8, 0), (9, 1), (4, 4), (4, 5), (4, 6), (4, 13), (4, 14), (64, 16)]
)
def test_any_number_of_taps(decision, n_forward, n_feedback):
    forward, taps = noise(n_forward, seed=1) / n_forward, 0.1 * noise(n_feedback, seed=2)
    v = noise(2, 70, seed=3)
    found = decide(equalizer("four", decision, 2, forward, taps), v)
    assert_close(found, twin("four", decision, 2, v, forward, taps))


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_decisions_in_float32_are_near_those_of_the_twin(alphabet, decision):
    v = noise(2, 40, seed=5)
    found = decide(equalizer(alphabet, decision, 3), v.astype(np.float32))
    assert found.dtype == np.float32
    assert_close(found, twin(alphabet, decision, 3, v))


@pytest.mark.parametrize("decision", ["hard", "soft"])
@pytest.mark.parametrize("lag", [0, 1, 5, 48, 50])
def test_decisions_are_zero_before_the_lag_and_never_after_it(decision, lag):
    x = decide(equalizer("asymmetric", decision, lag), noise(2, 49))
    assert not x[:, :lag].any()
    assert x[:, lag:].all()
    assert ((-0.2 <= x[:, lag:]) & (x[:, lag:] <= 1.0)).all()


# --- rules ----------------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_a_rule_is_that_of_the_twin(alphabet, decision, dtype):
    values = np.linspace(-np.pi, np.pi, 31, dtype=dtype)  # none on a threshold
    expected = [decider(alphabet, decision)(x / SHRINKAGE) for x in values.astype(float)]
    assert_close(of_values(rule(alphabet, decision, dtype), values, dtype), expected)


@DTYPES
def test_nearest_takes_the_interval_and_its_lower_neighbour_on_the_bound(dtype):
    nearest = hard([-1, 0, 3], [-0.5, 1.5], dtype)
    below, above = (np.nextafter(dtype(1.5), dtype(x)) for x in (-9, 9))
    for values, expected in [([-9, -0.51, -0.5, -0.49], [-1, -1, -1, 0]), ([below, 1.5, above, 9], [0, 0, 3, 3])]:
        assert of_values(nearest, values, dtype).tolist() == expected


def test_nearest_of_one_level_is_that_level():
    assert of_values(hard([0.25], []), [-1e9, 0.0, 1e9]).tolist() == [0.25] * 3


def test_the_sign_is_the_upper_level_above_the_threshold_only():
    sign = hard([-2.0, 5.0], [0.5])
    assert of_values(sign, [-9, 0.5, np.nextafter(0.5, 1)]).tolist() == [-2, -2, 5]


@DTYPES
@pytest.mark.parametrize("value", [-1e6, -1.0, 0.0, 0.3, 1e6])
def test_a_soft_decision_between_two_levels_is_a_tanh(value, dtype):
    decide = soft([-0.5, 0.5], [-2.5, 2.5], np.log([0.5, 0.5]), dtype)
    assert_close(of_values(decide, [value], dtype), [0.5 * np.tanh(2.5 * value)])


@given(value=st.floats(-1e300, 1e300))
def test_a_soft_decision_lies_between_the_levels(value):
    (decision,) = of_values(rule("asymmetric", "soft"), [value])
    assert -0.2 <= decision <= 1.0


@DTYPES
def test_a_soft_decision_never_gives_a_level_without_probability(dtype):
    found = of_values(rule("unused", "soft", dtype), [-1e-3, 0.0, 1e-3, 50.0], dtype)
    assert found[:3].tolist() == sorted(found[:3])
    assert_close(found[[1, 3]], np.array([0.0, 1.0]))
    slope = (found[2] - found[0]) / 2e-3  # of tanh(value / ERROR), which a third level would flatten
    assert slope == pytest.approx(1 / ERROR, rel=1e-3)


# --- exp ------------------------------------------------------------------------------------------


def through_soft(x):
    """exp(x) of float64 x < 0, from a decision between 0 and 1: w / (1 + w)."""
    decided = of_values(soft([0.0, 1.0], [0.0, 1.0], [0.0, 0.0]), x)
    return decided / (1 - decided)


@DTYPES
def test_exp_is_accurate_to_two_units_in_the_last_place(dtype):
    x = np.concatenate([-np.geomspace(1e-12, 87, 3000), [0.0]]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert (np.abs(feedback.exp(x) - exact) <= 2 * np.spacing(exact.astype(dtype))).all()


@given(x=st.floats(-30, -0.01))
@example(x=-np.log(2) / 2)
def test_the_compiled_exp_is_exp(x):
    np.testing.assert_allclose(through_soft([x]), np.exp(x), rtol=1e-12 * (1 + np.exp(x)))


@DTYPES
def test_exp_of_what_is_far_below_zero_is_negligible_and_no_trap(dtype):
    tiny = np.finfo(dtype).tiny
    for x in (-1e4, -1e30, -np.inf):
        (value,) = feedback.exp(np.array([x], dtype))
        assert tiny <= value <= 2 * tiny


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 14])
def test_estrin_is_horner(n):
    coefficients, x = noise(n).tolist(), np.linspace(-1, 1, 7)
    np.testing.assert_allclose(feedback.estrin(coefficients, x), np.polyval(coefficients[::-1], x), atol=1e-14)


def test_alphabets_are_sorted():
    """As the rules want them."""
    assert all(np.all(np.diff(levels) > 0) for levels, _ in ALPHABETS.values())
