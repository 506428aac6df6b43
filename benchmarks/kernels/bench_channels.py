"""Studies of several streams, beside as many studies of one stream."""

import numpy as np
import pytest

import dpfast as dp
from benchmarks.harness.race import Contestant, race_on_one_core
from benchmarks.kernels.bench_chain import DTYPES

TARGET = dp.Filter([1, 0.995], [1, -0.995])
EPSILON, DELTA = float(np.log(3)), 0.05
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
SIZE = {"n_streams": 512, "n_samples": 20_000, "seed": 1, "burn_in": 100, "n_threads": 1}


@DTYPES
@pytest.mark.parametrize("m", [3, 6])
@pytest.mark.benchmark(group="several streams")
def bench_diagonal(benchmark, m, dtype):
    """A prefilter and a receiver for each input, and an output of each: m chains in one, which one stream has alone."""
    target = dp.FilterMatrix.diagonal([TARGET] * m)
    several = dp.zero_forcing(target, dp.Privacy(EPSILON, DELTA, adjacency="one_input"), tolerance=0.01)
    one = dp.zero_forcing(TARGET, dp.Privacy(EPSILON, DELTA), tolerance=0.01)
    found = dp.monte_carlo(several, [CHAIN] * m, **SIZE, dtype=dtype)["LZF"]
    assert found.outputs[0].mse == pytest.approx(dp.monte_carlo(one, CHAIN, **SIZE, dtype=dtype)["LZF"].mse, rel=1e-3)
    n = SIZE["n_streams"] * SIZE["n_samples"]
    subject = Contestant(lambda: dp.monte_carlo(several, [CHAIN] * m, **SIZE, dtype=dtype), m * n)
    references = {"one stream": Contestant(lambda: dp.monte_carlo(one, CHAIN, **SIZE, dtype=dtype), n)}
    race_on_one_core(benchmark, f"{m} diagonal channels", dtype, subject, references)


@pytest.mark.benchmark(group="several streams")
def bench_correlated(benchmark):
    """Three correlated inputs, drawn and mixed by full matrices of filters, beside three of one stream each."""
    model = dp.VectorARMA([np.diag([0.5, 0.5, 0.8])], innovation_covariance=np.full((3, 3), 0.6) + 0.4 * np.eye(3))
    slow, quick = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
    target = dp.FilterMatrix([[slow] * 3, [quick, -1 * quick, 0]])
    several = dp.zero_forcing(target, dp.Privacy(EPSILON, DELTA, adjacency="one_input"), tolerance=0.01)
    one = dp.zero_forcing(slow, dp.Privacy(EPSILON, DELTA), tolerance=0.01)
    n = SIZE["n_streams"] * SIZE["n_samples"]
    alone = dp.ARMA([1], [1, -0.5])
    subject = Contestant(lambda: dp.monte_carlo(several, model, **SIZE), 3 * n)
    references = {"one stream": Contestant(lambda: dp.monte_carlo(one, alone, **SIZE), n)}
    race_on_one_core(benchmark, "correlated channels", np.float64, subject, references)
