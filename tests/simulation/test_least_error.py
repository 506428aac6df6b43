"""Sentences on the least error, from figures that are given."""

from types import SimpleNamespace

import pytest

from dpfast.simulation.least_error import say_least_error


def error(name, rmse, explained=0.639, interval=None):
    low, high = interval or (0.9 * rmse, 1.1 * rmse)
    return SimpleNamespace(name=name, rmse=rmse, explained=explained, interval=(low, high), confidence=0.95)


def decided(a, b):
    return SimpleNamespace(rmse_ratio=a.rmse / b.rmse, decided=True)


def doubtful(a, b):
    return SimpleNamespace(rmse_ratio=a.rmse / b.rmse, decided=False)


ERRORS = [error("LMMSE", 1.025), error("optimal", 1.0), error("LZF", 3.0)]
LEAST = "optimal errs least, with an RMSE of 1 (95 % interval 0.9 to 1.1); "
CONSTANT = "The constant, which publishes the mean at no cost of privacy, errs by "


@pytest.mark.parametrize(
    ("results", "compare", "said"),
    [
        (ERRORS, decided, f"{LEAST}the next, LMMSE, errs 2.5 % more."),
        (ERRORS, doubtful, f"{LEAST}the next, LMMSE, errs 2.5 % more, and the two may be the other way round."),
        (ERRORS[1:], decided, f"{LEAST}the next, LZF, errs by 3 (2.7 to 3.3)."),
        ([ERRORS[1], error("same", 1.0)], decided, f"{LEAST}same errs as much."),
        (ERRORS[1:2], decided, "optimal has an RMSE of 1 (95 % interval 0.9 to 1.1)."),
    ],
)
def test_the_least_error_and_the_next(results, compare, said):
    assert say_least_error(results, None, compare) == said


@pytest.mark.parametrize(
    ("constant", "explained", "said"),
    [
        (2.0, 0.639, f"{CONSTANT}2: optimal explains 63 % of the variance."),
        (2.0, None, f"{CONSTANT}2."),
        (1.05, 0.05, f"{CONSTANT}1.05, inside that interval."),
        (0.5, -3.0, f"{CONSTANT}0.5, which is less."),
    ],
)
def test_the_constant_stands_beside_it(constant, explained, said):
    shown = say_least_error([error("optimal", 1.0, explained)], constant, decided)
    assert shown == f"optimal has an RMSE of 1 (95 % interval 0.9 to 1.1). {said}"
