"""Durable steps of a stream, beside what the disk takes to make one write last."""

import itertools
import os

import numpy as np
import pytest

import dpfast as dp
from benchmarks.race import Contestant, race
from dpfast.release.inputs import Inputs
from dpfast.release.stream import open_stream

STREAMS, PAGE = 3, 4096
CALLS = 20  # pushes, or writes, of one turn


@pytest.fixture
def stream(tmp_path):
    """The paper's target under zero forcing, of about as many taps as it takes."""
    mechanism = dp.zero_forcing(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(np.log(3), 0.05))
    with open_stream(mechanism, tmp_path / "store", Inputs(0, 20, n_streams=STREAMS)) as stream:
        yield stream


@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.benchmark(group="stream")
def bench_push(benchmark, stream, tmp_path, n):
    chunks = itertools.cycle(np.random.default_rng(1).integers(0, 20, (8, STREAMS, n)))

    def push():
        for _ in range(CALLS):
            stream.push(next(chunks))

    with (tmp_path / "file").open("wb", buffering=0) as file:

        def sync():
            for _ in range(CALLS):
                file.write(bytes(PAGE))
                os.fsync(file.fileno())

        own, others = race(benchmark, Contestant(push, CALLS), {"fsync": Contestant(sync, CALLS)}, rounds=25)
    what = f"durable push of {n} × {STREAMS}"
    benchmark.extra_info["figures"] = {
        f"{what}, ms": float(np.median(own)) * 1e3,
        f"{what}: fsync": float(np.median(own / others["fsync"])),
    }
