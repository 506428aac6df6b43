"""Pushes of a stream: durable ones beside what the disk takes to make one write last, and without the disk."""

import itertools
import json
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness.race import race, repeated
from benchmarks.processes.bench_process import ROOT, python

STREAMS, PAGE = 3, 4096
MANY, SHARD = 1_000_000, 100_000  # streams
CALLS = 20  # pushes, or writes, of one turn
IN_MEMORY = Path("/dev/shm")  # a file system that is none of a disk
FASTEST_DISK = 20e-6  # seconds of a write that lasts: what is faster keeps nothing
STEPS = pytest.mark.parametrize("n", [1, 32])


@contextmanager
def pushes(folder, n):
    """A contestant that pushes so many steps a call: the paper's target under zero forcing, with hundreds of taps."""
    mechanism = dp.zero_forcing(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(np.log(3), 0.05))
    chunks = itertools.cycle(np.random.default_rng(1).integers(0, 20, (8, STREAMS, n)))
    with dp.open_stream(mechanism, folder, dp.Inputs(0, 20, n_streams=STREAMS)) as stream:
        yield repeated(lambda: stream.push(next(chunks)), CALLS)


@STEPS
@pytest.mark.benchmark(group="stream")
def bench_durable_push(benchmark, tmp_path, n):
    with pushes(tmp_path / "store", n) as subject, (tmp_path / "file").open("wb", buffering=0) as file:

        def sync():
            file.write(bytes(PAGE))
            os.fsync(file.fileno())

        own, others = race(benchmark, subject, {"fsync": repeated(sync, CALLS)}, rounds=25)
    what, fsync = f"durable push of {n} × {STREAMS}", others["fsync"]
    figures = {f"{what}, ms": float(np.median(own)) * 1e3, f"{what}: ms of an fsync": float(np.median(fsync)) * 1e3}
    if np.median(fsync) < FASTEST_DISK:
        benchmark.extra_info["missing"] = {f"{what}: fsync": "temporary files are on no disk"}
    else:
        figures[f"{what}: fsync"] = float(np.median(own / fsync))
    benchmark.extra_info["figures"] = figures


@STEPS
@pytest.mark.benchmark(group="stream")
def bench_push_without_a_disk(benchmark, n):
    """In time of the process."""
    what = f"push of {n} × {STREAMS} without a disk, ms"
    if not IN_MEMORY.is_dir():
        benchmark.pedantic(lambda: None)
        benchmark.extra_info["missing"] = {what: "no file system in memory"}
        return
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, pushes(Path(folder, "store"), n) as subject:
        own, _ = race(benchmark, subject, {}, clock=time.process_time, rounds=25)
    benchmark.extra_info["figures"] = {what: float(np.median(own)) * 1e3}


@pytest.mark.benchmark(group="stream")
def bench_many_streams(benchmark, tmp_path):
    """A process of its own, for its memory; sizes are those of the files behind a checkpoint."""
    script, found = str(ROOT / "benchmarks/releases/many_streams.py"), []
    arguments = [script, str(MANY), str(tmp_path)]
    benchmark.pedantic(lambda: found.append(json.loads(python(arguments, tmp_path / "cache"))), rounds=1)
    names = {
        "seconds": "s",
        "processor": "s of the processor",
        "opening": "s to open",
        "bytes": "bytes of a value",
        "written": "bytes written for a value",
        "MB": "MB of memory",
    }
    figures = {f"a step of {MANY} streams, {text}": found[0][name] for name, text in names.items()}
    benchmark.extra_info["figures"] = figures


@pytest.mark.benchmark(group="stream")
def bench_shard_of_many_streams(benchmark, tmp_path):
    """The stages of a step that an engine delivers, with an event in every stream: time of the processor, and sizes."""
    script, found = str(ROOT / "benchmarks/releases/many_shards.py"), []
    arguments = [script, str(SHARD), str(tmp_path)]
    benchmark.pedantic(lambda: found.append(json.loads(python(arguments, tmp_path / "cache"))), rounds=1)
    names = {
        "cut": "µs to close a value in a piece",
        "read": "µs to read it there",
        "publish": "µs to publish it with a row of the table",
        "piece": "bytes of it in a piece",
        "table": "bytes of its row of the table",
    }
    figures = {f"a shard of {SHARD} streams, {text}": found[0][name] for name, text in names.items()}
    benchmark.extra_info["figures"] = figures
