"""Sentences of an evaluation, from errors that are given."""

import numpy as np

import dpfast as dp
from dpfast.reports.evaluation_sentences import say_in_short
from dpfast.simulation.evaluation import SeriesResult
from dpfast.simulation.study import Result

F = dp.Filter([1])
MODEL = dp.ARMA([1.0])
LIVE = dp.zero_forcing(F, dp.Privacy(1, 1e-6), name="live")
OTHER = dp.input_perturbation(F, dp.Privacy(1, 1e-6), name="other")
LATE = dp.lmmse(F, dp.Privacy(1, 1e-6), MODEL, prefilter=dp.Filter([1]), name="late")
CONSTANT = dp.constant(F, MODEL)


def rows(series, **mse):
    """Results of mechanisms by name, with these mean squared errors in four draws."""
    made = {"live": LIVE, "other": OTHER, "late": LATE, "constant": CONSTANT}
    spread = np.array([0.98, 1.02, 0.99, 1.01])
    return [
        SeriesResult(
            series, made[x], Result(x, None, y * (spread if x != "constant" else np.ones(4)), 0.95, 4.0), 2.0, spread
        )
        for x, y in mse.items()
    ]


def test_of_each_series_the_best_that_runs_as_a_stream_the_constant_and_what_waits():
    first, second = say_in_short(
        [
            *rows("EWR", live=1.0, other=1.21, late=0.25, constant=4.0),
            *rows("JFK", live=9.0, late=16.0, constant=4.0),
        ]
    )
    assert first.startswith("EWR: as a stream, live errs least, with an RMSE of 1 (95 % interval ")
    assert "; the next, other, errs 10 % more. The constant" in first
    assert "errs by 2: live explains 75 % of the variance." in first
    assert "With the whole log at hand, late errs by 0.5 (" in first
    assert second.startswith("JFK: as a stream, live has an RMSE of 3 (")
    assert second.endswith("errs by 2, which is less.")


def test_nothing_is_said_of_a_series_with_the_constant_alone():
    assert say_in_short(rows("EWR", constant=4.0)) == []


def test_of_many_series_there_is_a_tally():
    many = rows("first", live=16.0, other=9.0, constant=4.0)
    for i in range(6):
        many += rows(f"s{i}", live=1.0, other=2.0, constant=4.0)
    tally, beside = say_in_short(many)
    assert tally == "As a stream, least error: live on 6 of 7 series; other on 1 of 7 series."
    constant = "the constant, which publishes the mean at no cost of privacy"
    assert (
        beside == f"The least RMSE is 50 % to 150 % of that of {constant}; on 1 of 7 series the constant errs no more."
    )
