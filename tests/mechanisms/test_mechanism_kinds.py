"""A matrix mechanism is refused where only filters can be, with a reason."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.guarantee_text import describe
from dpfast.releases.audit.floating_point_grid import evidence
from dpfast.simulation.evaluation import name_saved

PRIVACY, INPUTS = dp.Privacy(1.0, 1e-6), dp.Inputs(0, 3)
MATRIX = dp.square_root(dp.running_sum(8), PRIVACY)
LAPLACE = dp.binary_tree(dp.running_sum(8), dp.Privacy(0.5, 1e-6, max_events=2), noise="laplace")
NAMED = r"^mechanism must be a Mechanism, of filters, got the MatrixMechanism 'square root' over a horizon of 8 steps: "


@pytest.mark.parametrize(
    "run",
    [
        lambda path: dp.exact(MATRIX, INPUTS),
        lambda path: dp.release(MATRIX, np.zeros(8, int), INPUTS),
        lambda path: dp.open_stream(MATRIX, path / "store", INPUTS),
        lambda path: dp.audit(MATRIX, INPUTS),
    ],
)
def test_nothing_is_released_by_a_matrix_mechanism(run, tmp_path):
    with pytest.raises(dp.ReleaseError, match=NAMED + ".*integer taps, .* Release a design for a Filter"):
        run(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (lambda: dp.adapt(MATRIX, np.zeros(8)), "its v has no spectrum to fit"),
        (lambda: evidence(MATRIX, np.zeros(8), np.zeros((1, 8))), "the grids of its values"),
        (lambda: name_saved([MATRIX], dp.Filter([1]), PRIVACY), "a log of events has another length"),
    ],
)
def test_what_is_about_filters_refuses_it_likewise(run, reason):
    with pytest.raises(ValueError, match=NAMED + reason):
        run()


def test_its_guarantee_is_told_with_the_horizon_and_without_delta_for_laplace():
    told = " ".join(describe(MATRIX).split())
    assert "Two streams of 8 steps that differ by one event" in told
    assert "no better than (1, 1e-06)-differential privacy" in told
    assert "It ends with these steps" in told
    told = " ".join(describe(LAPLACE).split())
    assert "at most 2 events of size at most 1, at least 1 sample apart" in told
    assert "no better than (0.5, 0)-differential privacy" in told
    assert f"with Laplace noise of standard deviation {np.sqrt(2) * 8 / 0.5:.6g}" in told  # Δ₁ = 2 events in 4 levels
