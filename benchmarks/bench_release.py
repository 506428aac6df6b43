"""Noise for releases, with the time of the operating system for the random words; against opendp, if installed."""

import importlib.util

import numpy as np
import pytest

from benchmarks.race import Contestant, race_on_one_core
from dpfast.release.accountant import Sigma
from dpfast.release.noise import Noise

BLOCKS, BLOCK = 16, 4096
OPENDP = 4096  # samples of a call


def opendp(std):
    """Its exact discrete Gaussian, by the algorithm of Canonne, Kamath and Steinke (2020)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement, zeros = dp.m.make_gaussian(*space, scale=std), [0] * OPENDP
    return Contestant(lambda: measurement(zeros), OPENDP)


@pytest.mark.parametrize("sigma", [Sigma(23, 3), Sigma(645, 1), Sigma(2**40, 0)], ids=lambda sigma: f"{sigma.std:g}")
@pytest.mark.benchmark(group="release")
def bench_noise(benchmark, sigma):
    noise = Noise(sigma, BLOCK)

    def run():
        for _ in range(BLOCKS):
            noise.ready(BLOCK)
            noise.take(BLOCK)

    references, missing = {}, {"opendp": "not installed"}
    if importlib.util.find_spec("opendp") is not None:
        references, missing = {"opendp": opendp(sigma.std)}, {}
    what = f"discrete Gaussian of {sigma.std:g}"
    race_on_one_core(benchmark, what, np.int64, Contestant(run, BLOCKS * BLOCK), references, missing=missing)
    nanoseconds = benchmark.extra_info["race"]["ns"]
    benchmark.extra_info["figures"][f"{what}: millions a second"] = 1e3 / nanoseconds
