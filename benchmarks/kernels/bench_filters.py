"""Filters on arrays (streams, time) in C order, as users call them, against scipy on the same core."""

import functools

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
LONG = 1_000_000  # samples of one stream
AT_LEAST = 2_000_000  # samples of a turn, a millisecond or more: a small array many times


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


def convolved(b):
    def run(x):
        return signal.oaconvolve(x[0], np.asarray(b, x.dtype))[None, : x.shape[1]]

    return run


MANY_TAPS = signal.firwin(256, 0.3)
ONE_STREAM = {
    "4 sections": (dp.Filter.from_sos(SOS), {"sosfilt": sosfilt}, 5 * len(SOS)),
    "FIR of 64 taps": (dp.Filter(TAPS), {"lfilter": lfilter(TAPS), "oaconvolve": convolved(TAPS)}, len(TAPS)),
    "FIR of 256 taps": (
        dp.Filter(MANY_TAPS),
        {"lfilter": lfilter(MANY_TAPS), "oaconvolve": convolved(MANY_TAPS)},
        len(MANY_TAPS),
    ),
    "64 taps and 4 sections": (
        dp.Filter(TAPS) * dp.Filter.from_sos(SOS),
        {"lfilter, sosfilt": lambda x: sosfilt(lfilter(TAPS)(x))},
        len(TAPS) + 5 * len(SOS),
    ),
}


@DTYPES
@pytest.mark.parametrize("name", ONE_STREAM)
@pytest.mark.benchmark(group="one long stream")
def bench_one_stream(benchmark, name, dtype):
    """No other stream fills the lanes: those are sections, or samples in a row."""
    filter, references, multiply_adds = ONE_STREAM[name]
    x = np.random.default_rng(1).standard_normal((1, LONG), dtype)
    out = np.empty_like(x)

    def run():
        return filter.filter(x, dtype=dtype, out=out, n_threads=1).y

    for reference in references.values():
        np.testing.assert_allclose(run(), reference(x), atol=1e-9 if dtype is np.float64 else 2e-2)
    others = {key: repeated(functools.partial(reference, x), 1, LONG) for key, reference in references.items()}
    what = f"{name} on one stream of {LONG}"
    race_on_one_core(benchmark, what, dtype, repeated(run, 1, LONG), others, multiply_adds=multiply_adds)
