"""A tolerance that is missed is a warning; designs for several events share what is the same of them."""

import numpy as np
import pytest
from helpers.plants import CHAIN, PRIVACY

from dpfast import ARMA, Filter, Privacy, decision_feedback, lmmse, zero_forcing
from dpfast._support.errors import ToleranceWarning
from dpfast.design.prefilter import least_favourable, order_selection, rational_fit, short_fir


@pytest.mark.parametrize(
    "design",
    [
        lambda: zero_forcing(Filter(np.ones(12)), PRIVACY, tolerance=1e-9),
        lambda: decision_feedback(Filter(np.ones(12)), PRIVACY, CHAIN, prefilter="zero-forcing", tolerance=1e-9),
    ],
)
def test_a_missed_tolerance_is_shown_at_the_line_of_the_caller(design, monkeypatch):
    for module in (order_selection, short_fir):
        monkeypatch.setattr(module, "MAX_TAPS", 32)
    for module in (order_selection, rational_fit):
        monkeypatch.setattr(module, "MAX_ORDER", 3)
    with pytest.warns(ToleranceWarning, match="tolerance is 1e-09") as caught:
        design()
    assert caught[0].filename == __file__


def test_mechanisms_of_all_lags_share_the_least_favourable_times_and_are_the_same_to_the_last_bit(monkeypatch):
    searched, search = [], least_favourable.find_saddle
    monkeypatch.setattr(least_favourable, "find_saddle", lambda *args: searched.append(args) or search(*args))
    target, model, privacy = Filter([0.5, 0.5]), ARMA([1], [1, -0.5]), Privacy(1, 1e-3, max_events=2)
    least_favourable._KEPT.clear()
    shared = [lmmse(target, privacy, model, lag=lag, tolerance=0.3) for lag in (0, 2, None)]
    assert len(searched) == 1
    alone = []
    for lag in (0, 2, None):
        least_favourable._KEPT.clear()
        alone.append(lmmse(target, privacy, model, lag=lag, tolerance=0.3))
    assert len(searched) == 1 + 3
    for one, other in zip(shared, alone, strict=True):
        assert one.predicted_mse == other.predicted_mse
        assert (one.prefilter.b.tolist(), one.prefilter.a.tolist()) == (
            other.prefilter.b.tolist(),
            other.prefilter.a.tolist(),
        )
    lmmse(target, Privacy(1, 1e-3, max_events=3), model, lag=0, tolerance=0.3)
    lmmse(target, privacy, ARMA([1], [1, -0.6]), lag=0, tolerance=0.3)
    assert len(searched) == 1 + 3 + 2
