"""The times of designs that the table of goals shows."""

import functools
import math
import time

import numpy as np
import pytest

import dpfast as dp
from benchmarks.designs.bench_design import CHAIN, PRIVACY, TARGETS
from dpfast.filters import sections


def least_seconds(benchmark, name, design, rounds):
    """Time of the process that a design takes, the least of so many rounds; what others compute is not in it."""
    seconds = []

    def timed():
        start = time.process_time()
        design()
        seconds.append(time.process_time() - start)

    benchmark.pedantic(timed, rounds=rounds)
    benchmark.extra_info["figures"] = {name: min(seconds)}


@pytest.mark.parametrize("lag", [5, 20])
@pytest.mark.benchmark(group="time of designs")
def bench_time_of_optimal(benchmark, lag):
    design = functools.partial(dp.optimal, TARGETS["example"], PRIVACY, CHAIN, lag=lag)
    design()
    least_seconds(benchmark, f"optimal, lag {lag}: s", design, 7)


@pytest.mark.benchmark(group="time of designs")
def bench_time_of_robust(benchmark):
    design, average = functools.partial(dp.robust, mean_square=0.25), dp.Filter(np.full(50, 1 / 50))
    design(dp.Filter([0.5, 0.5]), PRIVACY, lag=1)  # which loads what solves programs
    design = functools.partial(design, average, PRIVACY, lag=20)
    least_seconds(benchmark, "robust, moving average of 50: s", design, 1)


@pytest.mark.benchmark(group="time of designs")
def bench_time_of_long_models(benchmark):
    """A moving average of 500 with an autoregression of 60 states."""
    random = np.random.default_rng(0)
    poles = random.uniform(0.5, 0.9, 30) * np.exp(1j * random.uniform(0.1, 3, 30))
    model = dp.ARMA([1e-3], np.poly(np.concatenate([poles, poles.conj()])).real)
    design = functools.partial(dp.optimal, dp.Filter(np.full(500, 1 / 500)), PRIVACY, model, lag=5)
    least_seconds(benchmark, "optimal, 500 taps and 60 states: s", design, 1)


@pytest.mark.parametrize(("steps", "model"), [(1024, None), (512, CHAIN), (1024, CHAIN)])
@pytest.mark.benchmark(group="time of designs")
def bench_time_of_optimal_factorization(benchmark, steps, model):
    design = functools.partial(dp.optimal_factorization, dp.running_sum(steps), PRIVACY, model)
    kind = "without a model" if model is None else "with one"
    least_seconds(benchmark, f"optimal factorization, {steps} steps {kind}: s", design, 1)


@pytest.mark.benchmark(group="time of designs")
def bench_time_of_exact(benchmark):
    def design():
        sections._long_roots.cache_clear()
        dp.exact(dp.zero_forcing(TARGETS["pole .9999"], dp.Privacy(1, 1e-6)), dp.Inputs(0, 20))

    least_seconds(benchmark, "zero forcing and exact, pole .9999: s", design, 3)


@pytest.mark.benchmark(group="time of designs")
def bench_time_of_streams_that_mix(benchmark):
    """Three streams that correlate, a total and a difference, with a prefilter that mixes them."""
    model = dp.VectorARMA([np.diag([0.9, 0.8, 0.5])], innovation_covariance=np.full((3, 3), 0.6) + 0.4 * np.eye(3))
    slow, quick = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
    target = dp.FilterMatrix([[slow] * 3, [quick, -1 * quick, 0]])
    privacy = dp.Privacy(math.log(3), 0.05, adjacency="one_input")
    design = functools.partial(dp.optimal, target, privacy, model, lag=10, prefilter="general")
    design()
    least_seconds(benchmark, "optimal, three streams that mix: s", design, 3)


@pytest.mark.benchmark(group="time of designs")
def bench_time_of_streams_that_are_nearly_one(benchmark):
    """Six streams with innovations that correlate by .9999, and 36 filters, at a long lag: the slowest drawn."""
    random = np.random.default_rng(11)
    poles, memory = random.uniform(0.5, 0.95, (6, 6)), random.uniform(0.3, 0.95, 6)
    sizes = np.sqrt(1 - memory**2)
    innovations = (np.full((6, 6), 0.9999) + 1e-4 * np.eye(6)) * np.outer(sizes, sizes)
    model = dp.VectorARMA([np.diag(memory)], innovation_covariance=innovations)
    target = dp.FilterMatrix([[dp.Filter([1 - x], [1, -x]) for x in row] for row in poles])
    design = functools.partial(dp.optimal, target, dp.Privacy(1.1, 0.05, adjacency="one_input"), model, lag=40)
    least_seconds(benchmark, "optimal, six streams that are nearly one: s", design, 1)
