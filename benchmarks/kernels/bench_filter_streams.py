"""Filters a step or a few at a time, by streams that keep their state and by `filter` with its `zi`, against scipy."""

import importlib.util

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from benchmarks.harness.race import race_on_one_core, repeated
from benchmarks.kernels.bench_stages import WAITING
from dpfast._kernels.simd import lanes

SIZES = [(1, 1), (100, 1), (1, 1000), (1, 100_000)]  # steps and streams
B, A = signal.butter(3, 0.2)
SAMPLES, CALLS = 200_000, (6, 2000)  # that a contestant filters in a turn, if not in too few or too many calls
MULTIPLY_ADDS = len(B) + len(A) - 1
KEPT = len(A) - 1  # numbers of the state


def limits(n_steps, n_streams):
    """What a sample may meet first: the call; of one stream the waiting in a lane, of many their numbers and sums."""
    call = {"call": 1 / (n_steps * n_streams)}
    if n_streams == 1:
        return call | {"latency": WAITING * lanes(np.float64)}  # which is of whole rows
    return call | {"peak": MULTIPLY_ADDS, "copy": 1 + KEPT / n_steps}


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.benchmark(group="filters that keep their state")
def bench_push(benchmark, size):
    """Both get arrays as they take them best: lfilter's are (streams, time)."""
    n_steps, n_streams = size
    x = np.random.default_rng(1).standard_normal(size)
    rows, step = np.ascontiguousarray(x.T), x[0].copy() if n_steps == 1 else x
    stream = dp.Filter(B, A).stream(n_streams)
    rest = np.zeros((n_streams, len(A) - 1))
    np.testing.assert_allclose(stream.copy().push(x), signal.lfilter(B, A, rows, zi=rest)[0].T, atol=1e-12)
    state = [rest]

    def lfilter():
        state[0] = signal.lfilter(B, A, rows, zi=state[0])[1]

    what, others, missing = f"push of {n_steps} × {n_streams}", {"lfilter": lfilter}, {}
    if importlib.util.find_spec("jax") is None:
        missing["JAX"] = "JAX is not installed"
    else:
        from benchmarks.native.jax_filter import JaxFilter

        np.testing.assert_allclose(JaxFilter(B, A, n_streams).push(x), stream.copy().push(x), atol=1e-12)
        compiled = JaxFilter(B, A, n_streams)
        others["JAX"] = lambda: compiled.push(x)
    calls = int(np.clip(SAMPLES // x.size, *CALLS))
    subject, *contestants = (repeated(f, calls, x.size) for f in (lambda: stream.push(step), *others.values()))
    references = dict(zip(others, contestants, strict=True))
    race_on_one_core(benchmark, what, np.float64, subject, references, limits=limits(*size), missing=missing)
    benchmark.extra_info["figures"][f"{what}: ns"] = benchmark.extra_info["race"]["ns"]


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.benchmark(group="filters from state to state")
def bench_filter_on(benchmark, size):
    """Each call gets the state that the one before gave, as both give it."""
    n_steps, n_streams = size
    x = np.random.default_rng(1).standard_normal((n_streams, n_steps))
    filter, rest = dp.Filter(B, A), np.zeros((n_streams, len(A) - 1))
    np.testing.assert_allclose(filter.filter(x).y, signal.lfilter(B, A, x, zi=rest)[0], atol=1e-12)
    states = [filter.filter(x).zf, rest]

    def run():
        states[0] = filter.filter(x, states[0]).zf

    def lfilter():
        states[1] = signal.lfilter(B, A, x, zi=states[1])[1]

    calls = int(np.clip(SAMPLES // x.size, *CALLS))
    subject, other = (repeated(function, calls, x.size) for function in (run, lfilter))
    what = f"filter of {n_steps} × {n_streams} from state to state"
    race_on_one_core(benchmark, what, np.float64, subject, {"lfilter": other}, limits=limits(*size))
    benchmark.extra_info["figures"][f"{what}: ns"] = benchmark.extra_info["race"]["ns"]
