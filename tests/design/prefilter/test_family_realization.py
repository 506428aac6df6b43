"""A tolerance that is missed is a warning."""

import numpy as np
import pytest
from helpers.plants import CHAIN, PRIVACY

from dpfast import Filter, decision_feedback, zero_forcing
from dpfast._support.errors import ToleranceWarning
from dpfast.design.prefilter import order_selection, rational_fit, short_fir


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
