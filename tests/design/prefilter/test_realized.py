"""A tolerance that is missed is a warning."""

import numpy as np
import pytest
from helpers.plants import CHAIN, PRIVACY

from dpfast import Filter, decision_feedback, zero_forcing
from dpfast._support.errors import ToleranceWarning
from dpfast.design.prefilter import realization


@pytest.mark.parametrize(
    "design",
    [
        lambda: zero_forcing(Filter(np.ones(12)), PRIVACY, tolerance=1e-9),
        lambda: decision_feedback(Filter(np.ones(12)), PRIVACY, CHAIN, prefilter="zero-forcing", tolerance=1e-9),
    ],
)
def test_a_missed_tolerance_is_shown_at_the_line_of_the_caller(design, monkeypatch):
    monkeypatch.setattr(realization, "MAX_TAPS", 32)
    monkeypatch.setattr(realization, "MAX_ORDER", 3)
    with pytest.warns(ToleranceWarning, match="tolerance is 1e-09") as caught:
        design()
    assert caught[0].filename == __file__
