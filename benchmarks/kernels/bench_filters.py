"""Filters on arrays (streams, time) in C order, as users call them, against scipy on the same core."""

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from benchmarks.harness.race import race_on_one_core, repeated
from benchmarks.kernels.bench_chain import DTYPES

SIZES = [(16, 1000), (64, 10_000), (1000, 20_000)]  # streams and samples: for the second cache, the third, and none
SOS = signal.butter(8, 0.3, output="sos")
TAPS = signal.firwin(64, 0.3)
B, A = [1.0, 0.995], [1.0, -0.995]
AT_LEAST = 50_000  # samples that a call of a contestant filters: a small array several times


def sosfilt(x):
    return signal.sosfilt(SOS.astype(x.dtype), x)


def lfilter(b, a=(1.0,)):
    def run(x):
        return signal.lfilter(np.asarray(b, x.dtype), np.asarray(a, x.dtype), x)

    return run


FILTERS = {
    "4 sections": (dp.Filter.from_sos(SOS), sosfilt, 5 * len(SOS)),
    "FIR of 64 taps": (dp.Filter(TAPS), lfilter(TAPS), len(TAPS)),
    "one pole": (dp.Filter(B, A), lfilter(B, A), 3),
}


@DTYPES
@pytest.mark.parametrize("into", ["a new array", "the same array"])
@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.benchmark(group="array filters")
def bench_filter(benchmark, name, size, into, dtype):
    """A new array costs a page fault for every 4 kB, scipy's too; `out=` saves that."""
    filter, reference, multiply_adds = FILTERS[name]
    x = np.random.default_rng(1).standard_normal(size, dtype)
    out = np.empty_like(x) if into == "the same array" else None

    def run():
        return filter.filter(x, dtype=dtype, out=out, n_threads=1).y

    np.testing.assert_allclose(run(), reference(x), atol=1e-9 if dtype is np.float64 else 2e-2)
    calls = max(1, AT_LEAST // x.size)
    subject, other = (repeated(function, calls, x.size) for function in (run, lambda: reference(x)))
    what = "{} on {} × {} into {}".format(name, *size, into)
    race_on_one_core(benchmark, what, dtype, subject, {"scipy": other}, multiply_adds=multiply_adds)
