"""A large sweep at a tenth: a thousand cases of a million samples, beside the bare kernels; store, tasks, memory."""

import itertools
import json
import time
from concurrent.futures import Executor, Future
from dataclasses import replace

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness.race import Contestant, one_core, race
from benchmarks.processes.bench_process import python
from dpfast._kernels import simulation as kernels
from dpfast.simulation.prepared_study import settling_time
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.stream_blocks import STREAMS

CASES, PLANNED = 1000, 10_000
N_SAMPLES = 8192  # of each of the 128 streams of a block: a million of a case
LINKS = 16
TARGET = dp.Filter([1, 0.995], [1, -0.995])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
# the largest resident set: with the designs, with a million samples of each case, with four
MEMORY = """
import sys, dpfast
from benchmarks.sweeps.bench_sweep import grid, options
def largest():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
figures = []
for budget in (1, 1e6, 4.2e6):
    dpfast.sweep(grid(), **options({store!r}, 1, budget) | {{"n_samples": 1 if budget == 1 else {n_samples}}})
    figures.append(largest())
print(figures)
"""


def mechanisms():
    """Those of the paper and the optimum, under many epsilons: a filter is designed once, and the noise follows."""
    privacy = dp.Privacy(1, 0.05)
    designs = [
        dp.input_perturbation(TARGET, privacy),
        dp.zero_forcing(TARGET, privacy),
        dp.lmmse(TARGET, privacy, CHAIN),
        dp.lmmse(TARGET, privacy, CHAIN, lag=5),
        *(dp.optimal(TARGET, privacy, CHAIN, lag=lag) for lag in (0, 5, 20)),
        dp.decision_feedback(TARGET, privacy, CHAIN, lag=5),
    ]
    epsilons = np.geomspace(0.1, 10, CASES // len(designs))
    return [
        replace(design, name=f"{design.name}, {epsilon:.4g}", privacy=dp.Privacy(epsilon, 0.05), ideal_mse=None)
        for design, epsilon in itertools.product(designs, epsilons)
    ]


def grid():
    return {"mechanism": mechanisms(), "stream": CHAIN}


def options(store, seed, budget=1):
    """Of a sweep that simulates as many whole blocks of each case as are in the budget, at least one."""
    return {"store": store, "seed": seed, "width": None, "budget": budget, "n_samples": N_SAMPLES, "n_threads": 1}


def bare(items):
    """The same samples by the kernels alone."""
    source = CHAIN.compiled()
    burn_in = max(settling_time(x) for x in items)
    studies = [
        kernels.CompiledStudy(source, tuple(x.compiled() for x in some), burn_in, N_SAMPLES)
        for some in (items[i : i + LINKS] for i in range(0, len(items), LINKS))
    ]

    def run():
        for x in studies:
            kernels.squared_errors(x, STREAMS, 1, 1)

    return run


@pytest.mark.parametrize("clock", [time.process_time, time.perf_counter], ids=["processor", "clock"])
@pytest.mark.benchmark(group="studies")
def bench_sweep(benchmark, tmp_path, clock):
    """What a sweep takes beyond one that finds all finished, and so beyond the designs, beside bare kernels."""
    store, items, seeds = tmp_path / "study.sqlite", mechanisms(), itertools.count(1)
    definition = ParameterGrid({"mechanism": items, "stream": CHAIN})

    def sweep(seed):
        return dp.sweep(definition, **options(store, seed))

    sweep(0)
    size = store.stat().st_size
    references = {"finished": Contestant(lambda: sweep(0), 1), "kernels": Contestant(bare(items), 1)}
    with one_core():
        own, others = race(benchmark, Contestant(lambda: sweep(next(seeds)), 1), references, clock=clock, rounds=5)
    ratio = float(np.median((own - others["finished"]) / others["kernels"]))
    what = f"sweep of {CASES} cases, {clock.__name__}"
    benchmark.extra_info["figures"] = {
        f"{what}: overhead over the kernels, %": 100 * (ratio - 1),
        f"{what}: kernels, ms a case": 1e3 * float(np.median(others["kernels"])) / CASES,
        f"{what}: all finished, ms a case": 1e3 * float(np.median(others["finished"])) / CASES,
        f"store of {PLANNED} cases, {clock.__name__}, MB": size * PLANNED / CASES / 1e6,
    }


class Timed(Executor):
    """Runs what it gets at once, and keeps how long that took."""

    def __init__(self):
        self.seconds = []

    def submit(self, function, *arguments):
        start, future = time.perf_counter(), Future()
        future.set_result(function(*arguments))
        self.seconds.append(time.perf_counter() - start)
        return future


@pytest.mark.benchmark(group="studies")
def bench_tasks(benchmark, tmp_path):
    """How long the tasks of a sweep are; the first, by which the pace is learnt, and the last are shorter."""
    store = tmp_path / "study.sqlite"
    dp.sweep(grid(), **options(store, 1))
    executor = Timed()
    del (more := options(store, 1, 4.2e6))["n_threads"]
    benchmark.pedantic(lambda: dp.sweep(grid(), executor=executor, in_flight=4, **more), rounds=1)
    benchmark.extra_info["figures"] = {
        "sweep of 1000 cases: longest task, s": max(executor.seconds),
        "sweep of 1000 cases: tasks for each second": len(executor.seconds) / sum(executor.seconds),
    }


@pytest.mark.benchmark(group="studies")
def bench_memory(benchmark, tmp_path):
    """Whether memory grows with the samples."""
    script = MEMORY.format(store=str(tmp_path / "study.sqlite"), n_samples=N_SAMPLES)
    figures = benchmark.pedantic(lambda: json.loads(python(["-c", script], tmp_path)), rounds=1)
    designs, one, four = (x / 1e6 for x in figures)
    benchmark.extra_info["figures"] = {
        "sweep of 1000 cases: memory beyond that of designs, MB": one - designs,
        "sweep of 1000 cases: memory of four times the samples, MB": four - one,
    }


@pytest.mark.benchmark(group="studies")
def bench_report(benchmark, tmp_path):
    """The page of a sweep of many points, its table and its winners; beside them the growth from a quarter of them."""
    few, many = (small_sweep(n) for n in (EACH // 2, EACH))
    folders = (tmp_path / str(i) for i in itertools.count())
    figures = {}
    for what, make in {
        "report": lambda found: dp.report(found, next(folders)),
        "to_pandas": lambda found: found.to_pandas(),
        "winners": lambda found: found.winners(),
    }.items():
        quarter, whole = (fastest(lambda found=found, make=make: make(found)) for found in (few, many))
        figures |= {f"{what} of 5000 points, s": whole, f"{what}: growth with four times the points": whole / quarter}
    benchmark.pedantic(many.winners, rounds=1)
    benchmark.extra_info["figures"] = figures


EACH = 50  # values of epsilon, and of delta


def small_sweep(n):
    """A sweep of 2 n² points, each on no more samples than it must have."""
    axes = {"epsilon": list(np.geomspace(0.1, 10, n)), "delta": list(np.geomspace(1e-7, 1e-2, n))}
    grid = {"mechanism": ["input_perturbation", "output_perturbation"], "target": TARGET, "model": CHAIN}
    return dp.sweep(grid | axes, seed=1, width=None, budget=1, n_samples=8, n_threads=1)


def fastest(call, rounds=3):
    """The least time of the process that a call takes."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)
