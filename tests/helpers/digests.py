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
from dpfast._kernels.block_sums import Blocks, Kalman, Schedule, estimate_between_releases, release_blocks
from dpfast._kernels.compiled_mechanisms import (
    CompiledBlock,
    CompiledBlockMechanism,
    CompiledLaplaceMechanism,
    CompiledLatticeMechanism,
    CompiledMechanism,
    CompiledResponseMechanism,
)
from dpfast._kernels.compiled_receivers import (
    CompiledDecisionFeedback,
    CompiledLinearReceiver,
    CompiledPeriodicKalman,
    CompiledSmoother,
)
from dpfast._kernels.equalizer import Feedback, Soft, decide_rows
from dpfast._kernels.filter_in_time import filter_in_time, plan_in_time
from dpfast._kernels.fir_and_sections import Added, Part, Taps, Terms, filter_rows
from dpfast._kernels.integer_draws import Draws
from dpfast._kernels.randomized_response import ResponseNumbers, TwoLevelResponse, respond
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import INPUT, NOISE, fill_laplace, fill_normals, seed_generators
from dpfast._kernels.simulation import CompiledStudy
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric

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
FEW, MANY = (TwoSidedGeometric(rate).tails() for rate in (0.7, 0.01))  # those of which are counted, and searched


def block_sums(lengths, phase, lag, law):
    """Block sums in eighths, with a periodic filter of any numbers behind them."""
    rng, n_states, n_levels = np.random.default_rng(len(lengths)), 3 + len(lengths), len(lengths)
    cycle = 2 * lengths[-1]
    numbers = (
        rng.uniform(-0.4, 0.4, (n_states, n_states)),
        rng.uniform(-0.5, 0.5, (cycle // lengths[0], n_levels, n_states)),
        rng.uniform(-1, 1, (cycle, n_states + n_levels * -(-lag // lengths[0]))),
    )
    receiver = CompiledPeriodicKalman(*numbers, lengths, phase, TARGET, LEVEL, lag)
    blocks = tuple(CompiledBlock(length, *law) for length in lengths)
    return CompiledBlockMechanism(LEVEL, blocks, 0.0, 0.125, True, receiver, None)


def signed_sums():
    """Two signed sums of six inputs, of which one is released two samples late, with a filter of any numbers."""
    rng = np.random.default_rng(4)
    numbers = (
        rng.uniform(-0.4, 0.4, (3, 5, 5)),
        rng.uniform(-0.5, 0.5, (3, 2, 5)),
        rng.uniform(-1, 1, (6, 5 + 2 * 4)),
    )
    receiver = CompiledPeriodicKalman(*numbers, (6, 6), 3, TARGET, LEVEL, 7, (0, 2))
    signs = (1.0, -1.0, 0.0, 0.0, 1.0, 0.0), (-1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    blocks = tuple(CompiledBlock(6, *FEW, x, late) for x, late in zip(signs, (0, 2), strict=True))
    return CompiledBlockMechanism(LEVEL, blocks, 0.0, 0.125, True, receiver, None)


OTHERS = {
    "block sums": block_sums((7,), 2, 5, FEW),
    "sums of single inputs": block_sums((1,), 0, 0, MANY),
    "two levels of blocks": block_sums((2, 6), 1, 9, MANY),
    "signed sums in turn": signed_sums(),
    "a lattice": CompiledLatticeMechanism(LEVEL, CompiledBlock(1, *FEW), 0.0, 0.125, True, RECEIVERS["linear"]),
    "Laplace noise": CompiledLaplaceMechanism(LEVEL, 0.7, RECEIVERS["two soft"]),
    "responses": CompiledResponseMechanism(LEVEL, TwoLevelResponse(0.5, 0.1, 0.8, 3.0, 1.5, 0.5), RECEIVERS["linear"]),
}
DTYPES = (np.float64, np.float32)
THREADS = 2


def results():
    n = 33  # streams: no whole number of bundles
    for name, model in MODELS.items():
        yield f"samples of {name}", model.sample(n, 500, seed=1)
        for dtype in DTYPES:
            every = (*LINKS.values(), *OTHERS.values())
            mechanisms = every if name == "two states" else (LINKS["linear"], LINKS["two soft"], OTHERS["block sums"])
            run = CompiledStudy(model.compiled(), mechanisms, 50, 130, dtype)
            yield f"study of {name}, {np.dtype(dtype)}", simulation.squared_errors(run, 3, 1, THREADS)
    for dtype in DTYPES:
        yield f"normals, {np.dtype(dtype)}", unit_normals(2, n, 100, dtype=dtype)
        for name, factors in FACTORS.items():
            y, zf = Filter.from_factors(*factors).filter(noise(3, 100), dtype=dtype)
            yield f"{name}, {np.dtype(dtype)}", np.concatenate([y, zf], axis=1)
    for name, law in {"few": FEW, "many": MANY}.items():
        yield f"{name} integers", simulation.draw_integers(CompiledBlock(1, *law), 5, 0, n, 100)
    for name, link in (LINKS | OTHERS).items():
        yield f"paths of {name}", simulation.simulate(link, MODELS["two states"].sample(2, 100, seed=3), 4, THREADS)


def results_of_kernels():
    """Sixteen streams, in bundles of any width, through kernels by themselves.

    They are compiled in a fraction of the time that the loop takes which calls them.
    """
    width, n = lanes(np.float64), 48
    coefficients = np.random.default_rng(1).uniform(-0.25, 0.25, 100)
    numbers = np.append(coefficients[:98], [4.0, 0.0])  # the last ones are the length of a block, and how late it is
    streams = [np.empty((rows, 0)) for rows in (2 * n, 1, n, n, n, n, n)]
    thresholds = np.sort(np.random.default_rng(2).integers(2**31, size=31, dtype=np.uint32))[::-1].copy()
    draws = (Draws(0, 0, 28, 0, np.uint32(0), 1.0), Draws(0, 0, 31, 5, np.uint32(16), 0.5))  # counted, and searched
    chances = np.array([2**30, 3 * 2**30], np.uint32)
    kalman, schedule = Kalman(3, 1, 3, 2, 0, 1, 9, 12, 98, 8 * n, 8 * n + 9), Schedule(4, 1, 4, 7)
    for first in range(0, 16, width):
        noise_states, words = (seed_generators(1, first, width, purpose) for purpose in (NOISE, INPUT))
        rows, totals = np.zeros((10 * n, width)), np.zeros((1, width))
        fill_normals(noise_states, 0, rows, n, n)
        terms = Terms(n, 1, Added(n, 1, 0, 1, 0.5), 0, 0)
        part = Part(Taps(0, 2, 3), 20, 2, 0)
        filter_rows(coefficients, part, terms, words, totals, rows, n, 2 * n, 0, n)
        filter_rows(coefficients, part, terms._replace(n_squares=1), words, totals, rows, n, 3 * n, 0, n)
        taps = Feedback(Taps(40, 1, 2), 50, Taps(55, 1, 1))
        decide_rows(coefficients, taps, Soft(coefficients, 70, 4), rows, 2 * n, 4 * n, n)
        fill_laplace(noise_states, 0, rows, 5 * n, n)
        respond(noise_states, ResponseNumbers(0, 0, 0.0, 2.5, 1.25, 0.5), chances, rows, n, 6 * n, n)
        blocks, half = Blocks(8 * n + 20, 4, 0.25, 8.0, 0.125, 0.5, 1, 80, 4), n // 2
        release_blocks(noise_states, draws[0], thresholds, numbers, blocks, rows, n, 7 * n, 1, half)
        blocks = blocks._replace(n_weights=0)
        release_blocks(
            noise_states, draws[1], thresholds, numbers, blocks, rows, n + half, 7 * n + half, 1 + half, half
        )
        estimate_between_releases(numbers, kalman, schedule, rows, 7 * n, 0, 9 * n, 0, n)
        parts = rows[n : 3 * n], totals, *(rows[k * n : (k + 1) * n] for k in (4, 5, 6, 7, 9))
        streams = [np.concatenate([x, part], axis=1) for x, part in zip(streams, parts, strict=True)]
    names = "normals and filter", "squares", "decisions", "Laplace noise", "responses", "block sums", "estimates"
    yield from zip(names, streams, strict=True)
    for dtype in DTYPES:
        factors, x = FACTORS["Wiener"], noise(33, 203).astype(dtype)
        states = noise(33, factors.n_states, seed=1).astype(dtype)
        for in_squares in (False, True):
            filter_in_time(plan_in_time(factors, x.dtype), x, states, x, np.inf, 1, in_squares)
        yield f"along time, {np.dtype(dtype)}", np.concatenate([x, states], axis=1)


def digests_of(results):
    """By name; results of the same bits have the same."""
    return {name: hashlib.sha256(np.ascontiguousarray(x)).hexdigest() for name, x in results}


def digests():
    return digests_of(results())


def digests_of_kernels():
    return digests_of(results_of_kernels())


if __name__ == "__main__":
    print(json.dumps(digests()))
