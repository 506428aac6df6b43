"""Stages of the simulation against scipy and NumPy on the same work, one thread; read ratios, not times."""

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from dpfast._kernels import chain, linear, random

N_STREAMS, N_SAMPLES = 64, 4096
TARGET = dp.Filter([1, 0.995], [1, -0.995])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PRIVACY = dp.Privacy(np.log(3), 0.05)


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((N_STREAMS, N_SAMPLES))


def factors(taps=(1.0,), sections=(), recursion=(1.0,)):
    return dp.Filter.from_factors(taps, sections, recursion).factors


@pytest.mark.parametrize("n_sections", [1, 4, 8])
class BenchSections:
    def sos(self, n_sections):
        return signal.butter(2 * n_sections, 0.3, output="sos")

    @pytest.mark.benchmark(group="sections")
    def bench_dpfast(self, benchmark, x, n_sections):
        filter = factors(sections=self.sos(n_sections))
        state = np.zeros((N_STREAMS, filter.n_states))
        benchmark(lambda: linear.run(filter, state, x.copy()))  # in place: a fresh input every time

    @pytest.mark.benchmark(group="sections")
    def bench_scipy(self, benchmark, x, n_sections):
        benchmark(signal.sosfilt, self.sos(n_sections), x)


@pytest.mark.parametrize("n_taps", [64, 256])
class BenchFir:
    @pytest.mark.benchmark(group="fir")
    def bench_dpfast(self, benchmark, x, n_taps):
        filter = factors(taps=np.full(n_taps, 1 / n_taps))
        state = np.zeros((N_STREAMS, filter.n_states))
        benchmark(lambda: linear.run(filter, state, x.copy()))  # in place: a fresh input every time

    @pytest.mark.benchmark(group="fir")
    def bench_scipy(self, benchmark, x, n_taps):
        benchmark(signal.lfilter, np.full(n_taps, 1 / n_taps), 1.0, x)


class BenchNoise:
    @pytest.mark.benchmark(group="normals")
    def bench_dpfast(self, benchmark, x):
        generators = random.generators(1, 0, N_STREAMS, random.NOISE)
        benchmark(random.draw_normals, generators, x)

    @pytest.mark.benchmark(group="normals")
    def bench_numpy(self, benchmark, x):
        benchmark(np.random.default_rng(1).standard_normal, out=x)


@pytest.mark.parametrize("decision", ["sign", "soft"])
@pytest.mark.benchmark(group="decision feedback 64+16")
def bench_decision_feedback(benchmark, x, decision):
    mechanism = dp.decision_feedback(TARGET, PRIVACY, CHAIN, prefilter="zero-forcing", decision=decision)
    stage = chain.FeedbackStage(mechanism.receiver.compiled(), N_STREAMS)
    benchmark(lambda: stage.decide(x.copy()))


class BenchChain:
    """u, G, noise, smoother or equaliser, F, squared error: a whole study."""

    @pytest.mark.benchmark(group="chain")
    def bench_zero_forcing(self, benchmark):
        self.study(benchmark, dp.zero_forcing(TARGET, PRIVACY))

    @pytest.mark.benchmark(group="chain")
    def bench_smoother(self, benchmark):
        self.study(benchmark, dp.lmmse(TARGET, PRIVACY, CHAIN))

    @pytest.mark.benchmark(group="chain")
    def bench_decision_feedback(self, benchmark):
        self.study(benchmark, dp.decision_feedback(TARGET, PRIVACY, CHAIN, prefilter="zero-forcing"))

    def study(self, benchmark, mechanism):
        options = {"n_streams": N_STREAMS, "n_samples": N_SAMPLES, "burn_in": 0, "seed": 1, "n_threads": 1}
        benchmark(dp.monte_carlo, mechanism, CHAIN, **options)
