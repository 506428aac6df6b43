"""What a process of its own takes: import, the first simulation, memory."""

import json
import os
import statistics
import subprocess
import sys
from itertools import count, repeat
from pathlib import Path

import pytest

import dpfast as dp
from benchmarks.harness import case

ROOT = Path(__file__).parents[2]
LENGTHS = (1_000, 10_000, 100_000)
LATER = {"float64": "", "float32": ", float32"}  # of which the second is compared with the first
IMPORT = """
from time import perf_counter
start = perf_counter()
import {modules}
print(perf_counter() - start)
"""
SIMULATE = """
from time import perf_counter
import dpfast
mechanism = dpfast.load({file!r})
start = perf_counter()
dpfast.monte_carlo(mechanism, mechanism.model, n_streams=64, n_samples=1000, burn_in=0, seed=1, dtype={dtype!r})
print(perf_counter() - start)
"""
# VmHWM: the largest resident set so far. Numba is imported with the first kernel, the rest with the mechanism.
MEMORY = """
import dpfast, numba
def largest():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
mechanism = dpfast.load({file!r})
figures = [largest()]
for n_samples in {lengths}:
    dpfast.monte_carlo(mechanism, mechanism.model, n_streams=512, n_samples=n_samples, burn_in=0, seed=1, n_threads=2)
    figures.append(largest())
print(figures)
"""


@pytest.fixture
def file(tmp_path):
    """The mechanism of the chain, for a process that imports nothing else."""
    path = tmp_path / "mechanism.json"
    dp.save(case.MECHANISM, path)
    return str(path)


def python(arguments, cache):
    """What Python prints in a new process that has Numba's cache in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout


def run(code, cache):
    """The JSON that a program prints in a new process."""
    return json.loads(python(["-c", code], cache))


def median_seconds(benchmark, code, folders, **rounds):
    """The median of what processes print that run one after the other, each with the next of the cache folders."""
    seconds = []
    benchmark.pedantic(lambda: seconds.append(run(code, next(folders))), **rounds)
    return statistics.median(seconds[-rounds["rounds"] :])


@pytest.mark.parametrize("modules", ["numpy, numba", "dpfast"])
@pytest.mark.benchmark(group="process")
def bench_import(benchmark, tmp_path, modules):
    code = IMPORT.format(modules=modules)
    seconds = median_seconds(benchmark, code, repeat(tmp_path), rounds=5, warmup_rounds=1)
    benchmark.extra_info["figures"] = {f"import {modules}": seconds}


@pytest.mark.parametrize("dtype", LATER)
@pytest.mark.benchmark(group="process")
def bench_first_simulation_cold(benchmark, tmp_path, file, dtype):
    new = (tmp_path / str(i) for i in count())
    seconds = median_seconds(benchmark, SIMULATE.format(file=file, dtype=dtype), new, rounds=3)
    benchmark.extra_info["figures"] = {f"first simulation, cold{LATER[dtype]}": seconds}


@pytest.mark.benchmark(group="process")
def bench_first_simulation_cached(benchmark, tmp_path, file):
    code = SIMULATE.format(file=file, dtype="float64")
    seconds = median_seconds(benchmark, code, repeat(tmp_path), rounds=5, warmup_rounds=1)
    benchmark.extra_info["figures"] = {"first simulation, cached": seconds}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the memory of a process")
@pytest.mark.benchmark(group="process")
def bench_memory(benchmark, tmp_path, file):
    run(SIMULATE.format(file=file, dtype="float64"), tmp_path)
    code = MEMORY.format(file=file, lengths=LENGTHS)
    imported, *used = benchmark.pedantic(run, (code, tmp_path), rounds=1)
    figures = {f"memory, {n} samples": (x - imported) / 1e6 for n, x in zip(LENGTHS, used, strict=True)}
    figures["memory of the whole process, MB"] = used[-1] / 1e6
    benchmark.extra_info["figures"] = figures
