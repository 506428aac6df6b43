"""Time and memory over samples, streams, order and taps: each case in a process of its own.

python -m benchmarks.growth.measure docs/measurements/performance/growth.json
"""

import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
from scipy import signal

import dpfast as dp
from benchmarks.harness import case

LEAST_SECONDS, MOST_CALLS = 0.4, 20_000  # a case is repeated so long, or so often; the fastest call counts
SEED = 1


def simulate(n):
    """Monte Carlo of the chain, so many counted samples in all."""
    n_streams = min(512, max(2, n // 100))
    run = {"n_streams": n_streams, "n_samples": n // n_streams, "burn_in": 0, "seed": SEED, "n_threads": 1}
    return lambda: dp.monte_carlo(case.MECHANISM, case.MODEL, **run)


def filter_long(n):
    """One stream of so many samples through four sections, into an array that is there."""
    target, x = dp.Filter.from_sos(case.SOS), noise(1, n)[0]
    out = x.copy()
    return lambda: target.filter(x, out=out, n_threads=1)


def sosfilt_long(n):
    x = noise(1, n)[0]
    return lambda: signal.sosfilt(case.SOS, x)


def push(n):
    """A step of so many streams, of a filter that keeps its state."""
    stream, x = dp.Filter.from_sos(case.SOS).stream(n), noise(1, n)[0]
    out = x.copy()
    return lambda: stream.push(x, out=out)


def sosfilt_step(n):
    x, zi = noise(n, 1), np.zeros((len(case.SOS), n, 2))
    return lambda: signal.sosfilt(case.SOS, x, zi=zi)


def filter_order(n):
    """64 streams of 10,000 samples through a Butterworth filter of so many poles."""
    target, x = dp.Filter.from_sos(butterworth(n)), noise(64, 10_000)
    out = x.copy()
    return lambda: target.filter(x, out=out, n_threads=1)


def sosfilt_order(n):
    sos, x = butterworth(n), noise(64, 10_000)
    return lambda: signal.sosfilt(sos, x)


def filter_taps(n):
    """The same streams through so many taps."""
    target, x = dp.Filter(weights(n)), noise(64, 10_000)
    out = x.copy()
    return lambda: target.filter(x, out=out, n_threads=1)


def lfilter_taps(n):
    b, x = weights(n), noise(64, 10_000)
    return lambda: signal.lfilter(b, [1.0], x)


def oaconvolve_taps(n):
    b, x = weights(n)[None], noise(64, 10_000)
    return lambda: signal.oaconvolve(x, b, axes=1)


def noise(n_streams, n):
    return np.random.default_rng(SEED).standard_normal((n_streams, n))


def butterworth(order):
    return signal.butter(order, 0.3, output="sos")


def weights(n):
    return np.random.default_rng(SEED).standard_normal(n) / n


DECADES = [10**k for k in range(10)]
ORDERS, TAPS = [2**k for k in range(7)], [4**k for k in range(7)]
BATCH = 64 * 10_000
GROUPS = {  # what grows: the values, what is measured at each, and the samples of a call at a value
    "samples": {
        "Monte Carlo of the chain": (simulate, DECADES[3:], int),
        "one stream, 4 sections": (filter_long, DECADES[3:9], int),
        "sosfilt, one stream": (sosfilt_long, DECADES[3:9], int),
    },
    "streams": {
        "push of a step, 4 sections": (push, DECADES[:7], int),
        "sosfilt, a step": (sosfilt_step, DECADES[:7], int),
    },
    "order": {
        "64 streams × 10,000": (filter_order, ORDERS, lambda n: BATCH),
        "sosfilt, 64 × 10,000": (sosfilt_order, ORDERS, lambda n: BATCH),
    },
    "taps": {
        "64 streams × 10,000": (filter_taps, TAPS, lambda n: BATCH),
        "lfilter, 64 × 10,000": (lfilter_taps, TAPS, lambda n: BATCH),
        "oaconvolve, 64 × 10,000": (oaconvolve_taps, TAPS, lambda n: BATCH),
    },
}


def measure(make, n):
    """Nanoseconds of the fastest call at n, and the largest memory that a call holds beside what it is given."""
    call = make(n)
    call()
    tracemalloc.start()
    call()
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    fastest, begin, n_calls = np.inf, time.perf_counter(), 0
    while n_calls == 0 or (time.perf_counter() - begin < LEAST_SECONDS and n_calls < MOST_CALLS):
        start = time.process_time_ns()
        call()
        fastest, n_calls = min(fastest, time.process_time_ns() - start), n_calls + 1
    return fastest, memory


def run_case(group, name, n):
    """Measure in a new process."""
    command = [sys.executable, "-m", __spec__.name, group, name, str(n)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main(arguments):
    if len(arguments) == 3:
        group, name, n = arguments
        make, _, count = GROUPS[group][name]
        nanoseconds, memory = measure(make, int(n))
        print(json.dumps({"ns": nanoseconds / count(int(n)), "MB": memory / 1e6}))
        return
    rows = []
    for group, curves in GROUPS.items():
        for name, (_, values, _) in curves.items():
            for n in values:
                rows.append({"group": group, "name": name, "n": n, **run_case(group, name, n)})
                print(rows[-1], flush=True)
    Path(arguments[0]).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments[0]).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
