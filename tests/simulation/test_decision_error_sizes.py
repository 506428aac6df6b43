"""How large errors of wrong decisions are."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation.decision_error_sizes import error_sizes, input_range

LEVELS = dp.IndependentLevels([0.0, 1.0, 3.0], [0.5, 0.3, 0.2])


TARGETS = [dp.Filter([0.25, 0.5, 0.25]), dp.Filter([1, -0.4], [1, -0.9]), dp.Filter([1.0], [1, 0.5])]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("decision", ["quantizer", "soft"])
def test_sizes_are_those_of_wrong_decisions(target, decision):
    mechanism = dp.decision_feedback(target, dp.Privacy(5, 1e-3), LEVELS, lag=1, decision=decision)
    sizes = error_sizes(mechanism.compiled(), (0.0, 3.0), 400, 8)
    one = np.zeros(400)
    one[0] = 0.5  # half of the least distance
    assert sizes.smallest == pytest.approx(np.mean(target.filter(one).y ** 2) / 8, rel=1e-12)
    worst = np.where(target.impulse(400) >= 0, 3.0, -3.0)[::-1]
    assert sizes.largest == pytest.approx(target.filter(worst).y[-1] ** 2, rel=1e-9)
    for wrong in np.random.default_rng(1).choice([-3.0, -2.0, 0.0, 1.0, 3.0], (50, 400)):
        assert np.mean(target.filter(wrong).y ** 2) < sizes.largest
    assert error_sizes(mechanism.compiled(), (-7.0, 1.0), 400).largest == pytest.approx(sizes.largest * (10 / 3) ** 2)
    assert error_sizes(mechanism.compiled(), (-math.inf, math.inf), 400).largest == math.inf


def test_linear_mechanisms_have_no_error_events():
    target, privacy = dp.Filter([1.0], [1, -0.5]), dp.Privacy(1, 1e-3)
    linear = (
        dp.zero_forcing(target, privacy),
        dp.lmmse(target, privacy, LEVELS),
        dp.square_root(dp.Toeplitz([1.0], 4), privacy),
    )
    assert [error_sizes(x.compiled(), (0.0, 3.0), 4) for x in linear] == [None] * 3


def test_the_inputs_of_a_source():
    assert input_range(LEVELS.compiled()) == (0, 3)
    assert input_range(dp.ARMA([0.5], mean=1).compiled()) == (-math.inf, math.inf)
    assert input_range(dp.ARMA([0.5], mean=1, levels=[0, 1, 2]).compiled()) == (0, 2)
    assert input_range(dp.MarkovChain([[0.5, 0.5], [0.5, 0.5]], levels=[4, -2]).compiled()) == (-2, 4)
