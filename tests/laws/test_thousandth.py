"""Designs keep their default tolerance, a thousandth, where the fast session asks for wider ones."""

import json
import math
from pathlib import Path

import pytest

from dpfast import ARMA, Filter, Privacy, lmmse, optimal, robust, zero_forcing

pytestmark = pytest.mark.long

CASES = json.loads((Path(__file__).parents[1] / "data" / "designs.json").read_text(encoding="utf-8"))["cases"]
TARGETS = {case["name"]: Filter(**case["target"]) for case in CASES}
PRIVACIES = {
    "paper": Privacy(math.log(3), 0.05, calibration="paper"),
    "weak": Privacy(20, 0.05),
    "strong": Privacy(0.1, 1e-6),
}
LAGS = [0, 1, 5, 20, None]


def assert_kept(mechanism):
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1.001e-3)


@pytest.mark.parametrize("privacy", PRIVACIES)
@pytest.mark.parametrize("target", TARGETS)
def test_zero_forcing(target, privacy):
    assert_kept(zero_forcing(TARGETS[target], PRIVACIES[privacy]))


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['name']}")
@pytest.mark.parametrize("design", [lmmse, optimal])
def test_models(design, case, lag):
    privacy = Privacy(case["epsilon"], case["delta"], max_change=case["max_change"], calibration="paper")
    model = ARMA(**case["signal_shaping"])
    assert_kept(design(Filter(**case["target"]), privacy, model, lag=lag))


@pytest.mark.parametrize("lag", [0, None])
@pytest.mark.parametrize("target", TARGETS)
def test_robust(target, lag):
    assert_kept(robust(TARGETS[target], PRIVACIES["paper"], mean_square=0.25, lag=lag))
