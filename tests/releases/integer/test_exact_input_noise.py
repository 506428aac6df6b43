"""Integer noise on every input: what is released, with what law, error and promise."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import lfilter

import dpfast as dp
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.noise import Noise

TARGET = dp.Filter([0.1], [1, -0.9])
INPUTS = dp.Inputs(0, 20)


def planned(privacy=None, inputs=INPUTS, **options):
    options = {"noise": "geometric", **options}
    mechanism = dp.input_perturbation(TARGET, privacy or dp.Privacy(1), **options)
    return mechanism, dp.exact(mechanism, inputs)


def test_geometric_noise_of_a_rate_that_is_rounded_down():
    mechanism, plan = planned(dp.Privacy(1, max_change=2, max_events=3), dp.Inputs(0, 20, n_streams=2))
    assert plan.guarantee.loss.pure == (6 * plan.noise.per_step,)
    assert 1 - Fraction(1, 10**8) < plan.guarantee.loss.pure[0] <= 1
    assert plan.guarantee.delta == 0
    assert plan.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-6)
    assert "drawn exactly, once for every step" in plan.guarantee.items()["noise"]


def test_canonical_noise_is_a_table():
    mechanism, plan = planned(dp.Privacy(1, 0.05), noise="canonical")
    assert plan.guarantee.loss.approximate == ((plan.noise.epsilon, plan.noise.delta),)
    assert plan.noise.delta <= Fraction(0.05)
    assert plan.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-5)
    assert plan.guarantee.groups[10] == math.inf  # at that δ ten such people are not protected
    assert "10 people: ε = ∞" in plan.guarantee.items()["groups"]
    assert json.loads(plan.guarantee.to_json())["groups"]["10"] is None


def test_several_events_of_a_person_share_a_table_by_group_privacy():
    _, plan = planned(dp.Privacy(1, 0.05, max_events=2), noise="canonical")
    ((epsilon, delta),) = plan.guarantee.loss.approximate
    assert epsilon <= 1
    assert delta <= Fraction(0.05)
    assert delta > Fraction(0.0499)


@pytest.mark.parametrize("noise", ["geometric", "canonical"])
def test_pieces_are_the_whole(noise):
    _, plan = planned(dp.Privacy(1, 0.05), noise=noise)
    v = np.random.default_rng(1).integers(-30, 60, (1, 31))
    live, pieces = plan.live(), []
    for a in range(0, 31, 4):
        again = plan.live()
        again.restore(live.state())
        live = again
        pieces.append(live.push(v[:, a : a + 4]))
    assert (np.concatenate(pieces, axis=1) == plan.estimate(v)).all()
    assert load_exact(json.loads(json.dumps(plan.configuration))).digest == plan.digest


def test_estimates_are_those_of_the_mechanism():
    """The simulation of the mechanism, by other code, of the integers that it has published itself."""
    mechanism, plan = planned()
    u = np.random.default_rng(2).integers(0, 20, (1, 40))
    paths = mechanism.simulate(u, seed=5)
    v = paths.privatized + mechanism.receiver.mean
    np.testing.assert_allclose(plan.estimate(np.rint(v).astype(np.int64)), paths.estimate, rtol=1e-9)


def test_the_prediction_is_what_the_exact_path_errs_by():
    """Within 5 standard errors; noise of the operating system, so a false alarm comes once in 1.7 million runs."""
    streams, n = 300, 300
    _, plan = planned(inputs=dp.Inputs(0, 20, n_streams=streams))
    x = np.random.default_rng(3).integers(0, 20, (streams, n))
    noise = Noise(plan.noise)
    noise.ready(x.size)
    v = plan.privatize(x[:, :0], x, noise.take(x.size).reshape(x.shape))
    means = ((plan.estimate(v) - lfilter([0.1], [1, -0.9], x)) ** 2)[:, 150:].mean(axis=1)
    assert abs(means.mean() - plan.predicted_mse) < 5 * means.std(ddof=1) / math.sqrt(streams)


def test_a_unit_is_that_of_the_inputs():
    _, plan = planned(inputs=dp.Inputs(0, 20, unit=0.25, multiples=False), unit=0.25)
    assert plan.guarantee.loss.pure == (5 * plan.noise.per_step,)
    mechanism = plan.mechanism
    assert plan.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-6)
    with pytest.raises(dp.DesignError, match=r"multiples of 0.25, got the unit 1 .* unit=0.25\)"):
        dp.exact(mechanism, INPUTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "laplace"}, "Laplace noise cannot be drawn exactly .* and a unit for real inputs"),
        ({"noise": "staircase"}, 'staircase noise cannot be drawn exactly .* noise="geometric"'),
    ],
)
def test_what_has_no_exact_form_is_refused_with_what_to_do(options, message):
    mechanism = dp.input_perturbation(TARGET, dp.Privacy(3), **options)
    with pytest.raises(dp.ReleaseError, match=message):
        dp.exact(mechanism, INPUTS)


def test_less_noise_is_refused():
    _, plan = planned()
    with pytest.raises(dp.DesignError, match="at most epsilon 1"):
        replace(plan, noise=plan.noise._replace(s=plan.noise.s + 1))
    assert "input perturbation" in repr(plan)
    assert "every input" in plan._repr_html_()
