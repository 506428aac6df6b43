import numpy as np
import pytest
from helpers.chains import EXAMPLES, NO_SECTIONS, ONE, assert_close, noise, paths
from helpers.equalizers import CASES, ERROR, SHRINKAGE, decider, equalizer, twin
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import signal

from dpfast._kernels import equalizer as feedback
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def decide(e, v):
    """Decisions of an equaliser in a chain that reads v (streams, time)."""
    chain = Chain(v.dtype, 48)
    return paths(chain, [chain.decide(e, chain.read())], *v.shape, x=v)[0]


def of_values(e, values, dtype=np.float64):
    """What the rule of an equaliser makes of numbers."""
    memoryless = e._replace(forward=np.empty(0), feedback=np.empty(0))
    return decide(memoryless, np.array([values], dtype))[0]


def hard(levels, thresholds):
    return equalizer("two", "hard")._replace(levels=np.array(levels), thresholds=np.array(thresholds))


def soft(levels, slopes, offsets):
    numbers = {"levels": np.array(levels), "slopes": np.array(slopes), "offsets": np.array(offsets)}
    return equalizer("two", "soft")._replace(**numbers)


# --- the loop -------------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("n_poles", [1, 4, 5, 6, 13, 14, 40])
def test_without_decisions_it_is_a_recursion(n_poles, dtype):
    roots = 0.9 * np.exp(2j * np.pi * (np.arange(n_poles) + 0.5) / n_poles)
    a, x, chain = np.poly(roots).real, noise(3, 70).astype(dtype), Chain(dtype, 48)
    y = chain.filter(Factors(ONE, NO_SECTIONS, a), chain.read())
    assert_close(paths(chain, [y], *x.shape, x=x)[0], signal.lfilter([1.0], a, x))


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_decisions_are_those_of_the_twin(alphabet, decision):
    for lag in range(8):
        v = noise(2, 40, seed=lag)
        assert_close(decide(equalizer(alphabet, decision, lag), v), twin(alphabet, decision, lag, v), lag)


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


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_the_place_in_a_tile_leaves_no_trace_in_the_bits(alphabet, decision):
    v, e = noise(2, 40), equalizer(alphabet, decision, 0, 0.5 * noise(9, seed=1), 0.1 * noise(17, seed=2))
    expected, delays = decide(e, v), [1, 2, 3, 4, 5, 6, 45]
    later = {delay: decide(e._replace(lag=delay), np.pad(v, [(0, 0), (delay, 0)])) for delay in delays}
    assert [delay for delay, x in later.items() if not np.array_equal(x[:, delay:], expected)] == []


@pytest.mark.parametrize("decision", ["hard", "soft"])
@pytest.mark.parametrize("lag", [0, 1, 5, 48, 50])
def test_decisions_are_zero_before_the_lag_and_never_after_it(decision, lag):
    x = decide(equalizer("asymmetric", decision, lag), noise(2, 49))
    assert not x[:, :lag].any()
    assert x[:, lag:].all()
    assert ((-0.2 <= x[:, lag:]) & (x[:, lag:] <= 1.0)).all()


# --- states ---------------------------------------------------------------------------------------


def in_pieces(e, v, cuts):
    """Decisions and the last states, one piece of v after the other."""
    chain, outputs, past = Chain(v.dtype, 48), [], 0
    chain.write(chain.decide(e, chain.read(), states=True))
    states = np.zeros((len(v), len(chain.end)), v.dtype)
    for part in np.split(v, sorted(cuts), axis=1):
        out = np.empty((1, *part.shape), v.dtype)
        if part.shape[1]:
            states = execute(chain, *part.shape, x=part, states=states, past=past, out=out).states
        outputs.append(out[0])
        past += part.shape[1]
    return np.concatenate(outputs, axis=1), states


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_decisions_one_after_the_other_are_those_of_the_twin(alphabet, decision):
    for lag in (0, 1, 7):
        v = noise(2, 20, seed=lag)
        found, _ = in_pieces(equalizer(alphabet, decision, lag), v, range(20))
        assert_close(found, twin(alphabet, decision, lag, v), lag)


def test_states_are_past_inputs_and_past_decisions_the_newest_first():
    e, v = equalizer("four", "soft", 3), noise(2, 11)
    decisions, states = in_pieces(e, v, [4])
    assert np.array_equal(states, np.hstack([v[:, :-4:-1], decisions[:, :-4:-1]]))


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("decision", ["hard", "soft"])
@pytest.mark.parametrize(("n_forward", "n_feedback"), [(1, 0), (1, 3), (8, 1), (4, 5), (4, 13), (64, 16)])
@EXAMPLES
@given(cuts=st.lists(st.integers(0, 120), max_size=6), lag=st.sampled_from([0, 1, 5, 6, 47, 48, 50, 119, 200]))
def test_decisions_in_any_pieces_have_the_bits_of_the_whole(dtype, decision, n_forward, n_feedback, cuts, lag):
    e = equalizer("four", decision, lag, noise(n_forward, seed=1) / n_forward, 0.1 * noise(n_feedback, seed=2))
    v = noise(2, 120).astype(dtype)
    (found, states), (whole, last) = in_pieces(e, v, cuts), in_pieces(e, v, [])
    assert found.tobytes() == decide(e, v).tobytes() == whole.tobytes()
    assert states.tobytes() == last.tobytes()


# --- rules ----------------------------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_a_rule_is_that_of_the_twin(alphabet, decision, dtype):
    values = np.linspace(-np.pi, np.pi, 31, dtype=dtype)  # none on a threshold
    expected = [decider(alphabet, decision)(x / SHRINKAGE) for x in values.astype(float)]
    assert_close(of_values(equalizer(alphabet, decision), values, dtype), expected)


@DTYPES
def test_nearest_takes_the_interval_and_its_lower_neighbour_on_the_bound(dtype):
    e = hard([-1.0, 0.0, 3.0], [-0.5, 1.5])
    below, above = (np.nextafter(dtype(1.5), dtype(x)) for x in (-9, 9))
    values = [-9, -0.51, -0.5, -0.49, below, 1.5, above, 9]
    assert of_values(e, values, dtype).tolist() == [-1, -1, -1, 0, 0, 0, 3, 3]


def test_one_level_is_always_taken():
    assert of_values(hard([0.25], []), [-1e9, 0.0, 1e9]).tolist() == [0.25] * 3


def test_the_sign_is_the_upper_level_above_the_threshold_only():
    values = [-9, 0.5, np.nextafter(0.5, 1)]
    assert of_values(hard([-2.0, 5.0], [0.5]), values).tolist() == [-2, -2, 5]


@DTYPES
def test_a_soft_decision_between_two_levels_is_a_tanh(dtype):
    values = np.array([-1e6, -1.0, 0.0, 0.3, 1e6])
    e = soft([-0.5, 0.5], [-2.5, 2.5], np.log([0.5, 0.5]))
    assert_close(of_values(e, values, dtype), 0.5 * np.tanh(2.5 * values))


@given(value=st.floats(-1e300, 1e300))
def test_a_soft_decision_lies_between_the_levels(value):
    (decision,) = of_values(equalizer("asymmetric", "soft"), [value])
    assert -0.2 <= decision <= 1.0


@DTYPES
def test_a_soft_decision_never_gives_a_level_without_probability(dtype):
    found = of_values(equalizer("unused", "soft"), [-1e-3, 0.0, 1e-3, 50.0], dtype)
    assert found[:3].tolist() == sorted(found[:3])
    assert_close(found[[1, 3]], np.array([0.0, 1.0]))
    slope = (found[2] - found[0]) / 2e-3  # of tanh(value / ERROR), which a third level would flatten
    assert slope == pytest.approx(1 / ERROR, rel=1e-3)


# --- exp ------------------------------------------------------------------------------------------


@DTYPES
def test_exp_is_accurate_to_two_units_in_the_last_place(dtype):
    x = np.concatenate([-np.geomspace(1e-12, 87, 3000), [0.0]]).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    assert (np.abs(feedback.exp(x) - exact) <= 2 * np.spacing(exact.astype(dtype))).all()


@given(x=st.floats(-30, -0.01))
@example(x=-np.log(2) / 2)
def test_the_compiled_exp_is_exp(x):
    """Between 0 and 1, with weights 1 and e^x, a soft decision is e^x / (1 + e^x)."""
    (decision,) = of_values(soft([0.0, 1.0], [0.0, 1.0], [0.0, 0.0]), [x])
    assert decision / (1 - decision) == pytest.approx(np.exp(x), rel=1e-14 * (1 + np.exp(x)))


@DTYPES
def test_exp_of_what_is_far_below_zero_is_negligible_and_a_normal_number(dtype):
    tiny = np.finfo(dtype).tiny
    for x in (-1e4, -1e30, -np.inf):
        (value,) = feedback.exp(np.array([x], dtype))
        assert tiny <= value <= 2 * tiny


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 14])
def test_estrin_is_horner(n):
    coefficients, x = noise(n).tolist(), np.linspace(-1, 1, 7)
    np.testing.assert_allclose(feedback.estrin(coefficients, x), np.polyval(coefficients[::-1], x), atol=1e-14)
