"""The stages of a chain, each alone on rows that stay in the cache, against the peak of the CPU and against others."""

import dataclasses

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from benchmarks.harness import case
from benchmarks.harness.race import Contestant, race_on_one_core
from benchmarks.kernels.bench_chain import DTYPES
from benchmarks.native import other_chains
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import NOISE

LENGTH = 480 * 2000  # samples of the streams of a bundle
WAITING = 1.5  # multiply-adds of a section: s of every other sample waits for z, z for s, and both for c1 x + z
POLYNOMIALS = 12  # multiply-adds and products of a normal, in float32; the rest is integers and half a square root
BLOCK = (8, 4096)  # streams and samples of the arrays that others work on


class LastStage(Chain):
    """A chain of which only the last stage runs: what it reads is zero."""

    def compile(self, n_samples):
        program = super().compile(n_samples)
        return program._replace(stages=program.stages[-1:])


def race_stage(benchmark, what, dtype, add, references, multiply_adds, waiting=0):
    """`add` adds the stage to a chain, behind a signal; `waiting` multiply-adds of a sample wait for one another."""
    chain, n_streams = LastStage(dtype), lanes(dtype)
    add(chain, chain.step(0.0, 0))
    subject = Contestant(lambda: execute(chain, n_streams, LENGTH, n_threads=1), n_streams * LENGTH)
    limits = {"peak": multiply_adds, "copy": 1} | ({"latency": waiting} if waiting else {})
    race_on_one_core(benchmark, what, dtype, subject, references, limits=limits)


def on_array(function, dtype):
    x = np.random.default_rng(1).standard_normal(BLOCK, dtype)
    return Contestant(lambda: function(x), x.size)


@DTYPES
@pytest.mark.parametrize("n_sections", [1, 4, 8])
@pytest.mark.benchmark(group="stages")
def bench_sections(benchmark, n_sections, dtype):
    sos = signal.butter(2 * n_sections, 0.3, output="sos").astype(dtype)
    references = {"scipy": on_array(lambda x: signal.sosfilt(sos, x), dtype)}
    factors = dp.Filter.from_sos(sos).factors
    what = f"{n_sections} section{'s' * (n_sections > 1)}"
    limits = 5 * n_sections, WAITING
    race_stage(benchmark, what, dtype, lambda chain, x: chain.filter(factors, x), references, *limits)


@DTYPES
@pytest.mark.parametrize("n_taps", [64, 256])
@pytest.mark.benchmark(group="stages")
def bench_fir(benchmark, n_taps, dtype):
    taps = signal.firwin(n_taps, 0.3).astype(dtype)
    references = {
        "lfilter": on_array(lambda x: signal.lfilter(taps, np.ones(1, dtype), x), dtype),
        "oaconvolve": on_array(lambda x: signal.oaconvolve(x, taps[None], axes=1), dtype),
    }
    factors = dp.Filter(taps).factors
    race_stage(benchmark, f"FIR of {n_taps} taps", dtype, lambda chain, x: chain.filter(factors, x), references, n_taps)


@DTYPES
@pytest.mark.parametrize("decision", ["sign", "nearest of 4", "soft"])
@pytest.mark.benchmark(group="stages")
def bench_decision_feedback(benchmark, decision, dtype):
    receiver, references = case.MECHANISM.receiver, {}
    if decision == "sign":
        arrays = case.FORWARD.astype(dtype), case.FEEDBACK.astype(dtype), dtype(case.LEVEL)
        references["scalar numba"] = on_array(lambda x: other_chains.feed_back(*arrays, x), dtype)
    elif decision == "soft":
        receiver = dataclasses.replace(receiver, decision="soft")
    else:
        four = {"levels": np.array([-1.5, -0.5, 0.5, 1.5]), "probabilities": np.full(4, 0.25)}
        receiver = dataclasses.replace(receiver, decision="quantizer", **four)
    equalizer, n_taps = receiver.compiled().equalizer, len(case.FORWARD) + len(case.FEEDBACK)
    what = f"decision feedback, {decision}"
    race_stage(benchmark, what, dtype, lambda chain, x: chain.decide(equalizer, x), references, n_taps)


@DTYPES
@pytest.mark.benchmark(group="stages")
def bench_gaussian(benchmark, dtype):
    rng = np.random.default_rng(1)
    references = {"numpy": on_array(lambda x: rng.standard_normal(out=x, dtype=dtype), dtype)}
    in_float32 = POLYNOMIALS * np.dtype(np.float32).itemsize / np.dtype(dtype).itemsize
    race_stage(benchmark, "Gaussian", dtype, lambda chain, x: chain.normals(NOISE), references, in_float32)
