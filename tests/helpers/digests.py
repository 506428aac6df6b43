"""Digests of a fixed set of results: to compare processes, compilers and processors by their bits.

`python digests.py` prints them. Small: without the compiler it takes seconds.
"""

import hashlib
import json

import numpy as np
from helpers.chains import FACTORS, noise, unit_normals
from helpers.equalizers import CASES, equalizer

from dpfast import ARMA, Filter, IndependentLevels, MarkovChain
from dpfast._kernels import simulation
from dpfast._kernels.equalizer import Feedback, Soft, decide_rows
from dpfast._kernels.fir_and_sections import Added, Part, Taps, Terms, filter_rows
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import INPUT, NOISE, fill_normals, seed_generators
from dpfast._kernels.simulation import (
    CompiledDecisionFeedback,
    CompiledLinearReceiver,
    CompiledMechanism,
    CompiledSmoother,
    CompiledStudy,
)

MODELS = {
    "two states": MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0]),
    "three states": MarkovChain([[0.7, 0.3, 0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], [2.0, -1.0, 0.5]),
    "independent": IndependentLevels([1.0, 0.0, 5.0], [0.2, 0.7, 0.1]),
    "rounded ARMA": ARMA([0.3, 0.1], [1.0, -0.5], levels=[-1.0, 0.0, 1.0]),
}
TARGET, LEVEL = FACTORS["section"], 0.25
RECEIVERS = {
    "linear": CompiledLinearReceiver(FACTORS["Wiener"], TARGET, LEVEL, 5),
    "recursion": CompiledLinearReceiver(FACTORS["all"], TARGET, LEVEL, 0),
    "smoother": CompiledSmoother(FACTORS["section"], FACTORS["Wiener"], TARGET, LEVEL, 100),
    **{" ".join(x): CompiledDecisionFeedback(equalizer(*x, 3), TARGET, LEVEL) for x in CASES},
}
LINKS = {name: CompiledMechanism(LEVEL, FACTORS["section"], 0.7, receiver) for name, receiver in RECEIVERS.items()}
DTYPES = (np.float64, np.float32)
THREADS = 2


def results():
    n = 33  # streams: no whole number of bundles
    for name, model in MODELS.items():
        yield f"samples of {name}", model.sample(n, 500, seed=1)
        for dtype in DTYPES:
            mechanisms = tuple(LINKS.values()) if name == "two states" else (LINKS["linear"], LINKS["two soft"])
            run = CompiledStudy(model.compiled(), mechanisms, 50, 130, dtype)
            yield f"study of {name}, {np.dtype(dtype)}", simulation.squared_errors(run, 3, 1, THREADS)
    for dtype in DTYPES:
        yield f"normals, {np.dtype(dtype)}", unit_normals(2, n, 100, dtype=dtype)
        for name, factors in FACTORS.items():
            y, zf = Filter.from_factors(*factors).filter(noise(3, 100), dtype=dtype)
            yield f"{name}, {np.dtype(dtype)}", np.concatenate([y, zf], axis=1)
    for name, link in LINKS.items():
        yield f"paths of {name}", simulation.simulate(link, MODELS["two states"].sample(2, 100, seed=3), 4, THREADS)


def results_of_kernels():
    """Sixteen streams, in bundles of any width, through kernels by themselves.

    They are compiled in a fraction of the time that the loop takes which calls them.
    """
    width, n = lanes(np.float64), 48
    coefficients = np.random.default_rng(1).uniform(-0.25, 0.25, 100)
    streams = [np.empty((rows, 0)) for rows in (2 * n, 1, n)]
    for first in range(0, 16, width):
        noise_states, words = (seed_generators(1, first, width, purpose) for purpose in (NOISE, INPUT))
        rows, totals = np.zeros((6 * n, width)), np.zeros((1, width))
        fill_normals(noise_states, 0, rows, n, n)
        terms = Terms(n, 1, Added(n, 1, 0, 1, 0.5), 0, 0)
        part = Part(Taps(0, 2, 3), 20, 2, 0)
        filter_rows(coefficients, part, terms, words, totals, rows, n, 2 * n, 0, n)
        filter_rows(coefficients, part, terms._replace(n_squares=1), words, totals, rows, n, 3 * n, 0, n)
        taps = Feedback(Taps(40, 1, 2), 50, Taps(55, 1, 1))
        decide_rows(coefficients, taps, Soft(coefficients, 70, 4), rows, 2 * n, 4 * n, n)
        parts = rows[n : 3 * n], totals, rows[4 * n : 5 * n]
        streams = [np.concatenate([x, part], axis=1) for x, part in zip(streams, parts, strict=True)]
    yield from zip(("normals and filter", "squares", "decisions"), streams, strict=True)


def digests_of(results):
    """By name; results of the same bits have the same."""
    return {name: hashlib.sha256(np.ascontiguousarray(x)).hexdigest() for name, x in results}


def digests():
    return digests_of(results())


def digests_of_kernels():
    return digests_of(results_of_kernels())


if __name__ == "__main__":
    print(json.dumps(digests()))
