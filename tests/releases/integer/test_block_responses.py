"""Responses of the errors of block sums, against the exact errors of their closed loop on any model."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.releases.integer import block_responses

COUNTS = dp.ARMA([1.2], [1, -0.9], mean=5)
TARGET = dp.Filter([0.1, 0.05], [1, -0.9])


def mse_of(responses, model, mean):
    """noise + <P_u D> + D(0) bias², on a circle that is fine enough for responses and spectrum."""
    n = 2**13
    power = model.psd(np.linspace(0, np.pi, n // 2 + 1)) * responses.distortion(n)
    return (
        responses.noise
        + (2 * power.sum() - power[0] - power[-1]) / n
        + responses.distortion(n)[0] * (model.mean - mean) ** 2
    )


@pytest.mark.parametrize("model", [COUNTS, dp.ARMA([2.4], [1], mean=8), dp.ARMA([1, 0.5], [1, 0, 0.5], mean=4.5)])
@pytest.mark.parametrize(
    "options",
    [
        {"length": 1},
        {"length": 4},
        {"length": 5, "phase": 3},
        {"length": (2, 6), "lag": 3},
        {"length": (2, 6), "shares": (0.3, 0.7)},
        {"length": 4, "weights": "best"},
        {"length": 3, "weights": [[1, 0], [0, 1], [0, -1]], "releases": [1, 3], "lag": 2},
        {"lag": "smoother"},
    ],
    ids=str,
)
def test_error_and_closed_loop_agree_on_any_model(options, model):
    plan = dp.exact(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, **options), dp.Inputs(0, 40))
    expected = plan.mse_on(model)
    assert mse_of(plan.respond(), model, plan.receiver.mean) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("last_block", ["drop", "publish"])
def test_over_a_horizon_all_its_steps_count(last_block):
    mechanism = dp.block_sums(dp.running_sum(50), dp.Privacy(1), COUNTS, length=4, lag=2)
    plan = dp.exact(mechanism, dp.Inputs(0, 40), last_block=last_block)
    expected = plan.step_mse(50).mean()
    assert mse_of(plan.respond(), COUNTS, plan.receiver.mean) == pytest.approx(expected, rel=1e-3)


def test_rounding_is_noise_of_the_input():
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=4, unit=0.5, noise="geometric")
    plan = dp.exact(mechanism, dp.Inputs(0, 40, unit=0.5, multiples=False))
    assert mse_of(plan.respond(), COUNTS, 5) == pytest.approx(plan.predicted_mse, rel=1e-3)


def test_what_takes_too_much_memory_is_said(monkeypatch):
    monkeypatch.setattr(block_responses, "_MOST_NUMBERS", 100)
    plan = dp.exact(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=4), dp.Inputs(0, 40))
    assert "remembers too long" in plan.respond()
    assert "remembers too long" in plan.evidence(np.zeros((1, 100), np.int64), 100).estimate_error(contradicted=False)
