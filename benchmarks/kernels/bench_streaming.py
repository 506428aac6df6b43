"""Noise of a factorization of running sums, shaped while it streams: beside jax-privacy's streaming matrices.

The cases, and how each takes them best, are those of `nox -s compare`.
"""

import importlib.util

import numpy as np
import pytest

from benchmarks.harness.race import Contestant, race_on_one_core
from benchmarks.kernels.bench_filter_streams import limits
from benchmarks.peers import cases, speed

MODES = ["step by step", "as one batch"]
CASES = [(mode, *size) for mode in MODES for size in cases.SIZES[mode]]


@pytest.mark.parametrize("case", CASES, ids="{0[0]}-{0[1]}".format)
@pytest.mark.benchmark(group="streaming")
def bench_streaming(benchmark, case):
    mode, n_streams, n_samples = case
    words = {"mode": mode, "n_streams": n_streams, "n_samples": n_samples}
    jobs, missing = {"dpfast": speed.by_dpfast(**words), "lfilter": speed.by_scipy(**words)}, {}
    if importlib.util.find_spec("jax_privacy") is None:
        missing["jax-privacy"] = "jax-privacy is not installed"
    else:
        import jax

        from benchmarks.peers import speed_jax

        jax.config.update("jax_enable_x64", True)
        jobs["jax-privacy"] = speed_jax.prepare("jax-privacy", **words)
    for job in jobs.values():
        np.testing.assert_allclose(job.check, jobs["dpfast"].check, rtol=speed.AGREE, atol=speed.AGREE)
    subject, *others = (Contestant(job.run, job.samples) for job in jobs.values())
    references = dict(zip(list(jobs)[1:], others, strict=True))
    nearest = limits(cases.chunk_of(mode, n_samples), n_streams)
    what = f"noise of running sums {mode}, {n_streams} × {n_samples}"
    race_on_one_core(benchmark, what, np.float64, subject, references, limits=nearest, missing=missing)
