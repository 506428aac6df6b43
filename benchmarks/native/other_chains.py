"""The chain of `case` as others run it: NumPy and SciPy, scalar Numba, C++. Each does the same work for a sample.

Every function returns the mean squared error, by which the contestants are compared before they race.
"""

import ctypes
import functools
import shutil
import subprocess
from pathlib import Path

import numpy as np
from numba import njit
from scipy import signal

from benchmarks.harness.case import FEEDBACK, FORWARD, LAG, LEVEL, NOISE_STD, SOS, TARGET_A, TARGET_B

SOURCE = Path(__file__).with_name("chain.cpp")
COMPILE = ["c++", "-std=c++20", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
CPP_ROWS = 480  # CHUNK there: n_samples must be a multiple, n_streams of 32
BLOCK = 8  # streams that NumPy works on at a time: 4096 samples of each stay in the cache


# --- NumPy and SciPy ------------------------------------------------------------------------------


def numpy_scipy(dtype, n_streams, n_samples, seed, *, forward_by_lfilter=False):
    """Vectorised draw, sosfilt, ziggurat normals, lfilter for F; decisions need a loop."""
    sos, forward, feedback, b, a = (np.asarray(x, dtype) for x in (SOS, FORWARD, FEEDBACK, TARGET_B, TARGET_A))
    level, std, one = dtype(LEVEL), dtype(NOISE_STD), np.ones(1, dtype)
    rng, total = np.random.default_rng(seed), 0.0
    for _ in range(0, n_streams, BLOCK):
        flips = rng.integers(4, size=(BLOCK, n_samples), dtype=np.uint8) == 0
        u = np.where(np.logical_xor.accumulate(flips, axis=1), -level, level)
        noise = rng.standard_normal(u.shape, dtype)
        noise *= std
        v = signal.sosfilt(sos, u)
        v += noise
        if forward_by_lfilter:
            decisions = feed_back(one, feedback, level, signal.lfilter(forward, one, v))
        else:
            decisions = feed_back(forward, feedback, level, v)
        error = signal.lfilter(b, a, u[:, :-LAG] - decisions[:, LAG:])
        total += np.mean(np.square(error, out=error))
    return total / (n_streams / BLOCK)


@njit(nogil=True)
def feed_back(forward, feedback, level, v):
    decisions = np.empty_like(v)
    for stream, decided in zip(v, decisions):  # noqa: B905, Numba's has no strict
        for t in range(len(stream)):
            decided[t] = decide(forward, feedback, level, stream, decided, t)
    return decisions


@njit(nogil=True)
def decide(forward, feedback, level, v, decisions, t):
    x = v.dtype.type(0)
    for k in range(min(len(forward), t + 1)):
        x += forward[k] * v[t - k]
    for k in range(min(len(feedback), t)):
        x += feedback[k] * decisions[t - 1 - k]
    return level if x >= 0 else -level


# --- one scalar loop a stream ---------------------------------------------------------------------


def scalar_numba(dtype, n_streams, n_samples, seed):
    arrays = [np.asarray(x, dtype) for x in (SOS, FORWARD, FEEDBACK, TARGET_B, TARGET_A)]
    rng = np.random.default_rng(seed)
    return _scalar_loop(rng, *arrays, dtype(LEVEL), dtype(NOISE_STD), LAG, n_streams, n_samples)


@njit(nogil=True)
def _scalar_loop(rng, sos, forward, feedback, b, a, level, std, lag, n_streams, n_samples):
    number = sos.dtype.type
    u, v, decisions = np.empty((3, n_samples), sos.dtype)
    total = 0.0
    for _ in range(n_streams):
        state, s, sign = np.zeros((len(sos), 2), sos.dtype), number(0), level
        for t in range(n_samples):
            if rng.random() < 0.25:
                sign = -sign
            u[t] = x = sign
            for i in range(len(sos)):
                y = sos[i, 0] * x + state[i, 0]
                state[i, 0] = sos[i, 1] * x - sos[i, 4] * y + state[i, 1]
                state[i, 1] = sos[i, 2] * x - sos[i, 5] * y
                x = y
            v[t] = x + std * number(rng.standard_normal())
            decisions[t] = decide(forward, feedback, level, v, decisions, t)
            if t >= lag:
                x = u[t - lag] - decisions[t]
                y = b[0] * x + s
                s = b[1] * x - a[1] * y
                total += y * y
    return total / (n_streams * (n_samples - lag))


IN_PYTHON = {
    "numpy + scipy": numpy_scipy,
    "numpy + scipy, forward taps by lfilter": functools.partial(numpy_scipy, forward_by_lfilter=True),
    "scalar numba": scalar_numba,
}


# --- C++ ------------------------------------------------------------------------------------------


class NotHereError(Exception):
    """A peer that this machine does not have; says why."""


def build_cpp(folder):
    """The chain of chain.cpp as a function like those above, compiled into a folder."""
    if shutil.which(COMPILE[0]) is None:
        raise NotHereError("no C++ compiler")
    library = folder / "chain.so"
    result = subprocess.run([*COMPILE, str(SOURCE), "-o", str(library)], capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.splitlines()
        raise NotHereError("compiler fails: " + next((x for x in lines if "error" in x), lines[0]))
    functions = {
        np.float64: (ctypes.CDLL(library).simulate_float64, ctypes.c_double),
        np.float32: (ctypes.CDLL(library).simulate_float32, ctypes.c_float),
    }

    def cpp(dtype, n_streams, n_samples, seed):
        function, number = functions[dtype]
        sections, target = np.delete(SOS, 3, axis=1), [*TARGET_B, TARGET_A[1]]
        arrays = [np.ascontiguousarray(x, dtype) for x in (sections, FORWARD, FEEDBACK, target)]
        sizes = ctypes.c_long(n_streams), ctypes.c_long(n_samples), ctypes.c_uint64(seed)
        squared_error = np.empty(n_streams)
        function(*(x.ctypes for x in arrays), number(NOISE_STD), *sizes, squared_error.ctypes)
        return squared_error.mean() / n_samples

    return cpp
