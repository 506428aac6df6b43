"""Randomised response, exactly: what is published, with what law, error and promise."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import lfilter

import dpfast as dp
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.noise import Noise

TARGET = dp.Filter([1, -0.5])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
INPUTS = dp.Inputs(-0.5, 0.5, centre=-0.5, missing=-0.5)


def planned(privacy=None, inputs=INPUTS, **options):
    mechanism = dp.randomized_response(TARGET, privacy or dp.Privacy(1, 0.05), CHAIN, **options)
    return mechanism, dp.exact(mechanism, inputs)


def test_answers_are_the_level_for_certain_truly_or_falsely():
    _, plan = planned()
    x = np.array([[0, 0, 0, 1, 1, 1]])
    v = plan.privatize(x[:, :0], x, np.array([[0, 1, 2, 0, 1, 2]]))
    assert v.tolist() == [[-2, -1, 1, 2, 1, -1]]


@pytest.mark.parametrize("delta", [0, 0.05])
def test_the_law_of_an_answer_is_close_by_enumeration(delta):
    """All of the law, in fractions: P(A) <= e^ε P'(A) + δ for every set A of answers."""
    _, plan = planned(dp.Privacy(1, delta))
    laws = []
    for level in (0, 1):
        law = dict.fromkeys((-2, -1, 1, 2), Fraction(0))
        for code, p in zip(plan.noise.values, plan.noise.probabilities, strict=True):
            v = plan.privatize(np.empty((1, 0), int), np.array([[level]]), np.array([[code]]))
            law[int(v[0, 0])] += p
        laws.append(law)
    factor = Fraction(math.exp(1)) * (1 + Fraction(1, 10**15))
    for one, other in (laws, laws[::-1]):
        assert sum(max(Fraction(0), one[v] - factor * other[v]) for v in one) <= Fraction(delta)
    assert plan.guarantee.epsilon <= 1
    assert plan.guarantee.delta == delta


def test_the_prediction_is_what_the_exact_path_errs_by():
    """Within 5 standard errors; noise of the operating system, so a false alarm comes once in 1.7 million runs."""
    streams, n = 300, 200
    mechanism, plan = planned(inputs=replace(INPUTS, n_streams=streams), lag=1)
    assert plan.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-6)
    rng = np.random.default_rng(3)
    flips = rng.random((streams, n)) < np.where(np.arange(n) == 0, 0.5, 0.25)
    x = np.cumsum(flips, axis=1) % 2
    noise = Noise(plan.noise)
    noise.ready(x.size)
    v = plan.privatize(x[:, :0], x, noise.take(x.size).reshape(x.shape))
    errors = plan.estimate(v)[:, 1:] - lfilter([1, -0.5], [1], x - 0.5)[:, :-1]
    means = (errors**2)[:, 50:].mean(axis=1)
    assert abs(means.mean() - plan.predicted_mse) < 5 * means.std(ddof=1) / math.sqrt(streams)


def test_pieces_are_the_whole_and_a_configuration_makes_the_same():
    _, plan = planned(lag=2)
    v = np.random.default_rng(1).choice([-2, -1, 1, 2], (1, 31))
    live, pieces = plan.live(), []
    for a in range(0, 31, 4):
        again = plan.live()
        again.restore(live.state())
        live = again
        pieces.append(live.push(v[:, a : a + 4]))
    assert (np.concatenate(pieces, axis=1) == plan.estimate(v)).all()
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    assert again.digest == plan.digest
    assert again.guarantee == plan.guarantee


def test_a_release_and_a_stream(tmp_path):
    _, plan = planned(lag=1)
    u = np.random.default_rng(1).integers(0, 2, (1, 9)) - 0.5
    result = dp.release(plan, u, tmp_path / "batch")
    assert set(np.unique(result.privatized)) <= {-2, -1, 1, 2}
    with dp.open_stream(plan, tmp_path / "live") as stream:
        stream.push(u[:, :4])
    with dp.open_stream(plan, tmp_path / "live") as stream:
        stream.push(u[:, 4:])
        stream.close()
    assert dp.read_release(tmp_path / "live").privatized.shape == (1, 10)
    said = result.guarantee.items()["noise"]
    assert said.startswith("randomised response: told for certain with a chance of about ")
    about, exactly = said.split(" (exactly ")
    chances = [Fraction(x) for x in exactly.split(")")[0].split(", ")]
    assert chances == [plan.noise.certain, plan.noise.truly, plan.noise.falsely]
    assert sum(chances) == 1
    assert [float(x) for x in re.findall(r"[\d.]*\d", about)] == pytest.approx(list(map(float, chances)), rel=1e-3)


def test_events_of_a_person_add_up():
    _, plan = planned(dp.Privacy(1, 0.05, max_events=3), replace(INPUTS, n_streams=2, streams_per_person=2))
    assert plan.guarantee.loss.approximate == ((6 * plan.noise.epsilon, 6 * plan.noise.delta),)
    assert plan.guarantee.epsilon <= 1
    assert plan.noise.epsilon == Fraction(1, 6)
    with pytest.raises(dp.DesignError, match="at most epsilon 1"):
        replace(plan, noise=planned()[1].noise)


@pytest.mark.parametrize("inputs", [dp.Inputs(0, 1), dp.Inputs(-0.5, 0.5, unit=0.5), dp.Inputs(-0.5, 1.5, centre=-0.5)])
def test_other_levels_are_refused(inputs):
    with pytest.raises(dp.DesignError, match=r"Inputs\(-0.5, 0.5, unit=1, centre=-0.5\), got low"):
        planned(inputs=inputs)


def test_a_smoother_is_for_batches():
    _, plan = planned(lag=None)
    assert plan.estimate(np.ones((1, 9), np.int64)).shape == (1, 9)
    with pytest.raises(dp.ReleaseError, match="causal to run as a stream"):
        plan.live()
    assert "ExactResponse" in repr(plan)
    assert "two levels" in plan._repr_html_()
