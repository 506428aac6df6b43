import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import feedback
from dpfast._kernels.chain import FeedbackReceiver, FeedbackStage
from dpfast._kernels.feedback import Equalizer
from dpfast._kernels.linear import Factors

IDENTITY = Factors(np.ones(1), np.empty((0, 6)), np.ones(1))
FORWARD, FEEDBACK = np.array([0.4, 0.3, -0.1, 0.05]), np.array([0.35, -0.2, 0.1])
SHRINKAGE, ERROR = 0.8, 0.3
ALPHABETS = {
    "two": ([-0.5, 0.5], [0.5, 0.5]),
    "asymmetric": ([-0.2, 1.0], [0.9, 0.1]),
    "four": ([-1.0, -0.5, 0.25, 2.0], [0.1, 0.4, 0.3, 0.2]),
    "unused": ([-1.0, 0.0, 1.0], [0.5, 0.0, 0.5]),
}


def equalizer(alphabet, decision, lag=0, forward=FORWARD, taps=FEEDBACK):
    levels, probabilities = map(np.array, ALPHABETS[alphabet])
    with np.errstate(divide="ignore"):
        offsets = np.log(probabilities) - SHRINKAGE * levels**2 / (2 * ERROR)
    thresholds = SHRINKAGE * (levels[1:] + levels[:-1]) / 2
    return Equalizer(forward, taps, levels, thresholds, levels / ERROR, offsets, decision == "soft", lag)


def decider(alphabet, decision):
    levels, probabilities = ALPHABETS[alphabet]
    if decision == "sign":
        return reference.sign(levels)
    if decision == "nearest":
        return reference.nearest(levels)
    # u~ = shrinkage u + error of variance shrinkage · ERROR; divided by the shrinkage
    return reference.posterior_mean(levels, probabilities, ERROR / SHRINKAGE)


def decide(equalizer, v, level=0.0):
    x = v.copy()
    FeedbackStage(FeedbackReceiver(equalizer, IDENTITY, level), len(v)).decide(x)
    return x


def signal(n_streams, n_samples, seed=0):
    return np.random.default_rng(seed).normal(size=(n_streams, n_samples))


CASES = [
    (alphabet, decision)
    for alphabet in ALPHABETS
    for decision in ("sign", "nearest", "soft")
    if (len(ALPHABETS[alphabet][0]) == 2 or decision != "sign") and (alphabet, decision) != ("unused", "nearest")
]


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
@pytest.mark.parametrize("lag", range(8))
def test_decisions_are_those_of_the_twin(alphabet, decision, lag):
    v = signal(2, 60, seed=lag)
    twin = decider(alphabet, decision)
    expected = [reference.decision_feedback(FORWARD, FEEDBACK, SHRINKAGE, twin, lag, row) for row in v]
    np.testing.assert_allclose(decide(equalizer(alphabet, decision, lag), v), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("decision", ["nearest", "soft"])
@pytest.mark.parametrize(("n_forward", "n_feedback"), [(1, 0), (1, 3), (4, 0), (4, 1), (64, 16)])
def test_any_number_of_taps(decision, n_forward, n_feedback):
    forward, taps = signal(1, n_forward, seed=1)[0] / n_forward, 0.1 * signal(1, n_feedback, seed=2)[0]
    v, twin = signal(2, 90, seed=3), decider("four", decision)
    expected = [reference.decision_feedback(forward, taps, SHRINKAGE, twin, 2, row) for row in v]
    found = decide(equalizer("four", decision, 2, forward, taps), v)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("decision", ["nearest", "soft"])
@pytest.mark.parametrize("lag", [0, 3, 30])
@given(cuts=st.lists(st.integers(0, 25), max_size=6))
def test_chunks_equal_the_whole_to_the_bit(decision, lag, cuts):
    receiver = FeedbackReceiver(equalizer("four", decision, lag), IDENTITY, 0.75)
    stage, v = FeedbackStage(receiver, 2), signal(2, 25)
    parts = [part.copy() for part in np.split(v, sorted(cuts), axis=1)]
    for part in parts:
        stage.decide(part)
    assert np.array_equal(np.concatenate(parts, axis=1), decide(receiver.equalizer, v, level=0.75))


@pytest.mark.parametrize("decision", ["nearest", "soft"])
@pytest.mark.parametrize("level", [0.0, 10.0])
@pytest.mark.parametrize("lag", [0, 1, 5, 50])
def test_decisions_are_zero_before_the_lag_and_none_after_it(decision, level, lag):
    x = decide(equalizer("two", decision, lag), signal(2, 20), level)
    assert not x[:, :lag].any()
    assert (np.abs(x[:, lag:] - level) <= 0.5).all()
    assert x[:, lag:].all()


def test_the_level_is_added_to_decisions_and_not_fed_back():
    v, centred = signal(2, 40), decide(equalizer("four", "soft", 3), signal(2, 40))
    shifted = decide(equalizer("four", "soft", 3), v, level=2.0)
    assert np.array_equal(shifted[:, 3:], centred[:, 3:] + 2.0)


def test_nearest_is_one_of_the_neighbours():
    levels, thresholds = np.array([-1.0, 0.0, 3.0]), np.array([-0.5, 1.5])
    values = [-9.0, -0.51, -0.49, 1.49, 1.51, 9.0]
    assert [feedback.nearest(levels, thresholds, x) for x in values] == [-1, -1, 0, 0, 3, 3]


@pytest.mark.parametrize("value", [-1e6, -1.0, 0.0, 0.3, 1e6])
def test_posterior_mean_of_two_levels_is_a_tanh(value):
    levels = np.array([-0.5, 0.5])
    found = feedback.posterior_mean(levels, levels / 0.2, np.log([0.5, 0.5]), value)
    assert found == pytest.approx(0.5 * np.tanh(0.5 * value / 0.2), abs=1e-15)


@given(value=st.floats(-1e300, 1e300))
def test_posterior_mean_lies_between_the_levels(value):
    e = equalizer("asymmetric", "soft")
    assert -0.2 <= feedback.posterior_mean(e.levels, e.slopes, e.offsets, value) <= 1.0


def test_posterior_mean_never_gives_a_level_without_probability():
    e = equalizer("unused", "soft")
    near_zero = [feedback.posterior_mean(e.levels, e.slopes, e.offsets, x) for x in (-1e-3, 0.0, 1e-3)]
    assert near_zero == sorted(near_zero)
    assert near_zero[1] == pytest.approx(0, abs=1e-15)
    assert feedback.posterior_mean(e.levels, e.slopes, e.offsets, 50.0) == pytest.approx(1.0)
