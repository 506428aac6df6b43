"""The length of blocks that is found, against all lengths one by one."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.noise_tables import CHAIN, TARGETS

from dpfast import ARMA, Filter, Privacy, Toeplitz, block_sums, running_sum

COUNTS = ARMA([1.2], [1, -0.9], mean=5)
SLOW_PAIR = Filter([1], [1, -2 * 0.99 * math.cos(0.2), 0.99**2])


@dataclass(frozen=True)
class Problem:
    """What is asked for, and the longest block that is tried."""

    target: object
    epsilon: float
    model: object
    lag: int
    longest: int


PROBLEMS = {
    "resonator": Problem(TARGETS["resonator"], 0.3, CHAIN, 7, 150),  # with minima at 18 and 30 that are not the least
    "short": Problem(TARGETS["1-2z"], 0.05, CHAIN, 3, 120),
    "slow pair": Problem(SLOW_PAIR, 0.2, COUNTS, 0, 250),  # eight minima
    "paper": Problem(TARGETS["paper"], 0.1, CHAIN, 0, 400),
    "average": Problem(TARGETS["MA12"], 0.2, COUNTS, 5, 200),
    "long memory": Problem(Filter([1, 0.999], [1, -0.999]), 0.1, CHAIN, 5, 1_000),
    "running sum": Problem(running_sum(300), 0.3, CHAIN, 0, 300),  # five minima: lengths that end well
    "long running sum": Problem(running_sum(500), 0.1, CHAIN, 0, 500),
    "short running sum": Problem(running_sum(120), 0.3, CHAIN, 0, 120),  # a minimum at 36 comes before the least
    "horizon": Problem(Toeplitz.of(Filter([1, 0.98], [1, -0.98]), 200), 1.0, COUNTS, 9, 200),
}


@pytest.mark.parametrize("problem", long_but(PROBLEMS, {"short", "short running sum"}))
def test_no_other_length_errs_less(problem):
    asked = problem.target, Privacy(problem.epsilon), problem.model
    errors = [
        block_sums(*asked, lag=problem.lag, length=length).predicted_mse for length in range(1, problem.longest + 1)
    ]
    found = block_sums(*asked, lag=problem.lag)
    best = 1 + int(np.argmin(errors))
    assert problem.longest > 2 * best or problem.longest == problem.target.horizon
    assert found.predicted_mse == pytest.approx(min(errors), rel=1e-10)
    assert found.lengths == (best,)


def test_no_neighbour_of_a_long_block_errs_less():
    """Of long ones not every length is tried at first."""
    asked = Filter([1, 0.999], [1, -0.999]), Privacy(0.13), CHAIN
    found = block_sums(*asked)
    length = found.lengths[0]
    assert length > 150
    errors = {x: block_sums(*asked, length=x).predicted_mse for x in range(length - 15, length + 16)}
    assert min(errors, key=errors.get) == length
