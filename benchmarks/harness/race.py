"""Races: contestants take turns within a round, and a ratio is the median of the ratios of the rounds.

A machine that others use changes its speed from second to second; what runs side by side suffers alike.
"""

import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from benchmarks.harness import peak

ROUNDS = 15


class Contestant(NamedTuple):
    """Something to call, and the samples that one call processes."""

    run: Callable[[], object]
    samples: float


def repeated(function, calls, samples=1):
    """Calls of a function, as one run; each processes so many samples."""

    def run():
        for _ in range(calls):
            function()

    return Contestant(run, calls * samples)


@contextmanager
def one_core():
    """Hold this thread, and those that it starts, to one processor, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def race(benchmark, subject, references, *, clock=time.perf_counter, rounds=ROUNDS):
    """Seconds a sample of every round: (rounds,) of the subject, a dict of them of the references."""
    seconds = {name: [] for name in ("", *references)}

    def timed(name, contestant):
        start = clock()
        contestant.run()
        seconds[name].append((clock() - start) / contestant.samples)

    def run_references():
        for name, contestant in references.items():
            timed(name, contestant)

    benchmark.pedantic(timed, ("", subject), setup=run_references, rounds=rounds, warmup_rounds=1)
    own, *others = (np.array(x[1:]) for x in seconds.values())
    return own, dict(zip(references, others, strict=True))


LIMITS = {
    "peak": peak.loop,
    "latency": peak.waiting_loop,
    "copy": peak.copying_loop,
    "integers": peak.integer_loop,
    "call": peak.calls,
    "random words": peak.random_words,
}


def race_on_one_core(benchmark, what, dtype, subject, references, *, multiply_adds=None, limits=None, missing=None):
    """Race against references and, for a number of multiply-adds a sample, against the peak of the CPU; note figures.

    `limits` are others that a sample may meet first: how often it takes what a call of each of `LIMITS` counts.
    Ratios are those of the time of a reference to that of the subject; `missing` says why a reference does not run.
    Time is that of the process, all threads: when others use the processor it stands still.
    """
    contestants, name = dict(references), f"{what}, {np.dtype(dtype)}"
    limits = ({} if multiply_adds is None else {"peak": multiply_adds}) | (limits or {})
    for limit, times in limits.items():
        run, n = LIMITS[limit](dtype)
        contestants[limit] = Contestant(run, n / times)
    with one_core():
        own, others = race(benchmark, subject, contestants, clock=time.process_time)
    ratios = {reference: float(np.median(times / own)) for reference, times in others.items()}
    shares = {limit: ratios[limit] for limit in limits}
    benchmark.extra_info["figures"] = {f"{name}: {reference}": ratio for reference, ratio in ratios.items()}
    if shares:
        benchmark.extra_info["figures"][f"{name}: limit"] = max(shares.values())
    benchmark.extra_info["missing"] = {f"{name}: {reference}": why for reference, why in (missing or {}).items()}
    benchmark.extra_info["race"] = {
        "what": what,
        "dtype": str(np.dtype(dtype)),
        "ns": float(np.median(own)) * 1e9,
        "limits": shares,
        "ratios": {reference: ratios[reference] for reference in references},
        "reference_ns": {reference: float(np.median(others[reference])) * 1e9 for reference in references},
    }
