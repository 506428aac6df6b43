"""The whole Monte Carlo chain as a user runs it, against everyone else's on the same core."""

import functools
import importlib.util

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness import case
from benchmarks.harness.race import Contestant, race_on_one_core
from benchmarks.native import other_chains

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
# Streams and samples: each peer where it is fastest, caches considered.
SIZE = (512, 40 * other_chains.CPP_ROWS)
PEER_SIZES = {
    "numpy + scipy": (64, 4096),
    "numpy + scipy, forward taps by lfilter": (64, 4096),
    "scalar numba": (64, 4096),
    "JAX": (256, 2048),
    "C++": SIZE,
}
COMMON_SIZE = (512, 2 * other_chains.CPP_ROWS)


def dpfast(dtype, n_streams, n_samples, seed, n_threads=1):
    options = {"n_streams": n_streams, "n_samples": n_samples, "seed": seed, "n_threads": n_threads, "dtype": dtype}
    return dp.monte_carlo(case.MECHANISM, case.MODEL, burn_in=0, **options)["chain"].mse


def contestant(simulate, dtype, size):
    return Contestant(functools.partial(simulate, dtype, *size, 1), size[0] * size[1])


@pytest.fixture(scope="module")
def everyone(tmp_path_factory):
    """Peers by name, and why the others are not here."""
    found, missing = dict(other_chains.IN_PYTHON), {}
    try:
        found["C++"] = other_chains.build_cpp(tmp_path_factory.mktemp("cpp"))
    except other_chains.NotHereError as error:
        missing["C++"] = str(error)
    if importlib.util.find_spec("jax") is None:
        missing["JAX"] = "not installed"
    else:
        from benchmarks.native import jax_chain

        found["JAX"] = jax_chain.simulate
    return found, missing


@DTYPES
@pytest.mark.benchmark(group="chain")
def bench_chain(benchmark, everyone, dtype):
    found, missing = everyone
    expected = dpfast(dtype, *COMMON_SIZE, 1)
    for name, simulate in found.items():
        assert simulate(dtype, *COMMON_SIZE, 1) == pytest.approx(expected, rel=0.15), f"{name} does something else"
    references = {name: contestant(simulate, dtype, PEER_SIZES[name]) for name, simulate in found.items()}
    subject = contestant(dpfast, dtype, SIZE)
    race_on_one_core(benchmark, "chain", dtype, subject, references, multiply_adds=case.MULTIPLY_ADDS, missing=missing)


@DTYPES
@pytest.mark.parametrize("size", [(32, 1000), (100, 10_000), (4096, 5000)], ids="{0[0]}x{0[1]}".format)
@pytest.mark.benchmark(group="chain by size")
def bench_size(benchmark, dtype, size):
    reference = contestant(other_chains.numpy_scipy, dtype, PEER_SIZES["numpy + scipy"])
    subject = contestant(dpfast, dtype, size)
    what = "chain, {} × {}".format(*size)
    race_on_one_core(benchmark, what, dtype, subject, {"numpy + scipy": reference}, multiply_adds=case.MULTIPLY_ADDS)
