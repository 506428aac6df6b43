"""The errors that a Kalman filter behind block sums takes itself to have, which a scan of lengths compares."""

import numpy as np
import pytest

from dpfast import ARMA, Filter, Privacy, Toeplitz, block_sums, running_sum
from dpfast.mechanisms import block_kalman
from dpfast.mechanisms.block_dynamics import ReleaseSchedule, build_system, find_stretches
from dpfast.mechanisms.block_kalman import find_cycle, run_over_horizon

MODEL = ARMA([0.8, 0.5], [1, -1.2, 0.52], mean=-3.0)
SCHEDULES = [((1,), 0), ((1,), 3), ((5,), 0), ((5,), 4), ((6,), 20), ((3, 12), 7)]
EVERY_SCHEDULE = pytest.mark.parametrize(("lengths", "lag"), SCHEDULES)


def problem(target, lengths, lag):
    mechanism = block_sums(target, Privacy(1), MODEL, length=lengths, lag=lag)
    system = build_system(MODEL.shaping.factors, target.factors, len(lengths))
    schedule = ReleaseSchedule(lengths)
    return mechanism, (system, find_stretches(system, schedule), schedule, tuple(x.variance for x in mechanism.noise))


@EVERY_SCHEDULE
def test_in_a_cycle_they_are_those_of_signal_and_filter_together(lengths, lag):
    mechanism, (system, stretches, *rest) = problem(Filter([1, 0.3], [1, -0.9]), lengths, lag)
    assumed = find_cycle(system, stretches, *rest).errors(system, stretches, lag).mse
    np.testing.assert_allclose(np.roll(assumed, lag), mechanism.phase_mse, rtol=1e-10)


@EVERY_SCHEDULE
@pytest.mark.parametrize("target", [running_sum(31), Toeplitz.of(Filter([1, 0.3], [1, -0.9]), 36)], ids=["31", "36"])
def test_over_a_horizon_they_are_those_of_signal_and_filter_together(target, lengths, lag):
    mechanism, given = problem(target, lengths, lag)
    assumed = run_over_horizon(*given, target.horizon, lag).errors.mse
    assert len(assumed) == target.horizon
    np.testing.assert_allclose(assumed, mechanism.step_mse(), rtol=1e-9, atol=1e-12 * assumed.max())


@EVERY_SCHEDULE
def test_a_filter_that_has_settled_is_not_computed_again(monkeypatch, lengths, lag):
    mechanism, given = problem(Toeplitz.of(Filter([1, 0.3], [1, -0.9]), 2400), lengths, lag)
    taken, take = [], block_kalman.take_release
    monkeypatch.setattr(block_kalman, "take_release", lambda *x: taken.append(1) or take(*x))
    assumed = run_over_horizon(*given, 2400, lag).errors.mse
    assert len(taken) < 0.7 * 2400 // lengths[0]
    np.testing.assert_allclose(assumed, mechanism.step_mse(), rtol=1e-9, atol=1e-12 * assumed.max())
