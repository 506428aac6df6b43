"""Studies of block sums as a user runs them, beside loops in NumPy, and what their design takes."""

import functools
import time

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness.race import Contestant, race_on_one_core
from benchmarks.kernels.bench_chain import DTYPES
from benchmarks.native import block_sums_in_numpy, posterior_in_numpy

TARGET = dp.Filter([1, 0.995], [1, -0.995])
STAY, LEVELS = 0.75, np.array([-0.5, 0.5])
CHAIN = dp.MarkovChain([[STAY, 1 - STAY], [1 - STAY, STAY]], levels=LEVELS)
# A level takes ten operations of the generator and two comparisons; the target and a square four multiply-adds.
LIMITS = {"integers": 12, "peak": 4}
SIZE, OTHER_SIZE, COMMON_SIZE = (512, 40_000), (512, 2000), (4096, 2000)


def dpfast(mechanism, dtype, n_streams, n_samples, seed):
    options = {"n_streams": n_streams, "n_samples": n_samples, "seed": seed, "n_threads": 1, "dtype": dtype}
    return dp.monte_carlo(mechanism, CHAIN, burn_in=0, **options)[mechanism.name].mse


@DTYPES
@pytest.mark.parametrize("lag", [0, 5])
@pytest.mark.benchmark(group="block sums")
def bench_study(benchmark, lag, dtype):
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), CHAIN, lag=lag)
    in_numpy = functools.partial(block_sums_in_numpy.simulate, mechanism, LEVELS, STAY)
    expected = dpfast(mechanism, dtype, *COMMON_SIZE, 1)
    assert in_numpy(*COMMON_SIZE, 1) == pytest.approx(expected, rel=0.1)
    subject = Contestant(lambda: dpfast(mechanism, dtype, *SIZE, 1), SIZE[0] * SIZE[1])
    references = {"numpy": Contestant(lambda: in_numpy(*OTHER_SIZE, 1), OTHER_SIZE[0] * OTHER_SIZE[1])}
    what = f"block sums, lag {lag}"
    race_on_one_core(benchmark, what, dtype, subject, references, limits=LIMITS)
    name = f"{what}, {np.dtype(dtype)}"
    benchmark.extra_info["figures"][f"{name}: ns"] = benchmark.extra_info["race"]["ns"]


@DTYPES
@pytest.mark.benchmark(group="block sums")
def bench_posterior(benchmark, dtype):
    """A study of the posterior mean: beside it runs the linear receiver, its control."""
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), CHAIN, length=8, receiver="bayes")
    in_numpy = functools.partial(posterior_in_numpy.simulate, mechanism, CHAIN.transition, LEVELS)
    expected = dpfast(mechanism, dtype, *COMMON_SIZE, 1)
    assert in_numpy(*COMMON_SIZE, 1) == pytest.approx(expected, rel=0.1)
    subject = Contestant(lambda: dpfast(mechanism, dtype, *SIZE, 1), SIZE[0] * SIZE[1])
    references = {"numpy": Contestant(lambda: in_numpy(512, 200, 1), 512 * 200)}
    race_on_one_core(benchmark, "posterior mean", dtype, subject, references, limits=LIMITS)
    name = f"posterior mean, {np.dtype(dtype)}: ns"
    benchmark.extra_info["figures"][name] = benchmark.extra_info["race"]["ns"]


@pytest.mark.benchmark(group="block sums")
def bench_design(benchmark):
    """The design with its search for the length of blocks."""
    design = functools.partial(dp.block_sums, TARGET, dp.Privacy(1), CHAIN)
    design()
    seconds = []

    def timed():
        start = time.perf_counter()
        design()
        seconds.append(time.perf_counter() - start)

    benchmark.pedantic(timed, rounds=15)
    benchmark.extra_info["figures"] = {"design of block sums": float(np.median(seconds))}
