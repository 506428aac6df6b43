"""How long a design takes, realisation included."""

import numpy as np
import pytest

import dpfast as dp

PRIVACY = dp.Privacy(np.log(3), 0.05)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
TARGETS = {
    "example": dp.Filter([1, 0.995], [1, -0.995]),
    "pole .9999": dp.Filter([1], [1, -0.9999]),
    "moving average 12": dp.Filter(np.full(12, 1 / 12)),
    "resonator .9999": dp.Filter([1], [1, -2 * 0.9999 * np.cos(1), 0.9999**2]),
    "resonator .97": dp.Filter([1, 0.2], [1, -1.140303389447398, 0.9409]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.benchmark(group="zero forcing", max_time=0.5, min_rounds=2)
def bench_zero_forcing(benchmark, target):
    benchmark(dp.zero_forcing, TARGETS[target], PRIVACY)


@pytest.mark.filterwarnings("ignore::dpfast.ToleranceWarning")  # what is lost is in the table
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lag", [0, 5, 50])
@pytest.mark.benchmark(group="optimal", max_time=0.5, min_rounds=2)
def bench_optimal(benchmark, target, lag):
    mechanism = benchmark(dp.optimal, TARGETS[target], PRIVACY, CHAIN, lag=lag)
    benchmark.extra_info["states of G"] = mechanism.prefilter.order
    benchmark.extra_info["gap"] = mechanism.ideal_mse / mechanism.lower_bound_mse - 1
    benchmark.extra_info["loss"] = mechanism.predicted_mse / mechanism.ideal_mse - 1


@pytest.mark.parametrize("separation", [1, 50])
@pytest.mark.benchmark(group="two events a person", max_time=0.5, min_rounds=2)
def bench_optimal_for_two_events(benchmark, separation):
    privacy = dp.Privacy(np.log(3), 0.05, max_events=2, min_separation=separation)
    benchmark(dp.optimal, TARGETS["example"], privacy, CHAIN, lag=5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lag", [None, 0, 5])
@pytest.mark.benchmark(group="lmmse", max_time=0.5, min_rounds=2)
def bench_lmmse(benchmark, target, lag):
    benchmark(dp.lmmse, TARGETS[target], PRIVACY, CHAIN, lag=lag)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.benchmark(group="optimal program", max_time=0.5, min_rounds=2)
def bench_optimal_program(benchmark, target, lag):
    benchmark(dp.optimal_program, TARGETS[target], PRIVACY, CHAIN, lag=lag)


@pytest.mark.parametrize("target", [x for x in TARGETS if x != "moving average 12"])
@pytest.mark.parametrize("lag", [None, 0, 5])
@pytest.mark.benchmark(group="robust", max_time=0.5, min_rounds=2)
def bench_robust(benchmark, target, lag):
    benchmark(dp.robust, TARGETS[target], PRIVACY, mean_square=0.25, lag=lag)
