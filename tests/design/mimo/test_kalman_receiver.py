"""Errors of receivers of all lags from one Riccati equation, against receivers that are made, and of one stream."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.channels_smoother import smooth_channels
from dpfast.design.mimo.kalman_receiver import KalmanReceivers
from dpfast.design.wiener import wiener_mse
from dpfast.signals.channel_models import joint_model

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2, 0.1], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, 0], [QUICK, -1 * QUICK, dp.Filter([0, 0, 1.0])]])
MIXED = dp.FilterMatrix([[1.0, QUICK, 0.3], [dp.Filter([0.2, -0.1, 0.4]), SLOW, 1.0]])
DEMAND = dp.Privacy(math.log(3), 0.05, adjacency="one_input")
RELATED = dp.VectorARMA(
    [[[0.6, 0.2, 0], [0, 0.5, 0.1], [0.2, 0, -0.3]]],
    innovation_covariance=[[1, 0.4, 0.2], [0.4, 0.8, 0.1], [0.2, 0.1, 0.5]],
)


def behind(prefilter, model=RELATED, target=TARGET):
    return KalmanReceivers(target, joint_model(model), prefilter, DEMAND.noise_std(prefilter))


@pytest.mark.parametrize(
    "prefilter", [MIXED, dp.FilterMatrix([[1.0, 0.5, -0.2]]), dp.FilterMatrix.diagonal([1, SLOW, 2])]
)
def test_errors_of_all_lags_are_those_of_receivers_that_are_made(prefilter):
    receivers = behind(prefilter)
    for lag in (0, 1, 2, 5, 16):
        made = dp.lmmse(TARGET, DEMAND, RELATED, prefilter=prefilter, lag=lag)
        smoothed = made.smoothed_mse.sum()
        assert (1 + receivers.excess(lag)) * smoothed == pytest.approx(made.predicted_mse, rel=1e-10)


@pytest.mark.parametrize("lag", [0, 3, 20])
def test_of_one_stream_they_are_those_of_its_wiener_filter(lag):
    model, prefilter = dp.ARMA([1, 0.3], [1, -0.9]), dp.Filter([1, -0.4], [1, 0.2])
    std = DEMAND.noise_std(dp.FilterMatrix([[prefilter]]))
    receivers = behind(dp.FilterMatrix([[prefilter]]), [model], dp.FilterMatrix([[SLOW]]))
    least, late = (wiener_mse(SLOW, model, prefilter, std, x) for x in (2000, lag))
    assert receivers.excess(lag) == pytest.approx(late / least - 1, rel=1e-9)


@pytest.mark.parametrize("model", [RELATED, [RELATED.channel(j) for j in range(3)]])
def test_the_lag_is_that_of_trying_one_after_the_other(model):
    """Of the receivers that are made, there is one too many at the most."""
    tried = []

    def complete(lag):
        tried.append(lag)
        return dp.lmmse(TARGET, DEMAND, model, prefilter=MIXED, lag=lag)

    one_by_one = smooth_channels(complete, lambda lag: 0.0)
    assert tried == [8 << k for k in range(len(tried))]
    assert len(tried) > 2
    tried.clear()
    at_once = smooth_channels(complete, behind(MIXED, model).excess)
    assert tried == [one_by_one.lag]
    assert at_once == one_by_one


def test_a_receiver_that_errs_more_than_was_found_is_not_taken():
    tried = []

    def complete(lag):
        tried.append(lag)
        return dp.lmmse(TARGET, DEMAND, RELATED, prefilter=MIXED, lag=lag)

    found = smooth_channels(complete, lambda lag: 0.0 if lag >= 16 else 1.0)
    assert tried[0] == 16
    assert found.lag == tried[-1] > 16


def test_lags_of_too_many_states_are_refused():
    receivers = behind(MIXED)
    for refused in (receivers.excess, receivers.at_lag):
        with pytest.raises(ValueError, match=r"lag must be at most 49\d here, got 600"):
            refused(600)


def test_what_is_told_late_is_told_less():
    errors = [behind(MIXED).excess(lag) for lag in range(30)]
    assert (np.diff(errors) <= 0).all()
    assert errors[-1] >= 0


@pytest.mark.parametrize("left", [0.0, -1e-12])
def test_of_a_smoother_whose_error_is_lost_in_rounding_no_lag_is_said_to_err_more(monkeypatch, left):
    """Whether a lag is late enough is then known of the receiver that is made: it was a ZeroDivisionError."""
    monkeypatch.setattr(KalmanReceivers, "_smoothed", left)
    assert behind(MIXED).excess(3) == 0
    made = dp.lmmse(TARGET, DEMAND, RELATED, prefilter=MIXED, lag=None)
    assert made.predicted_mse <= (1 + 1e-4) * made.smoothed_mse.sum()
