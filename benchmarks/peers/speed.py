"""Races against the peers, each in its own environment: everybody on one processor, taking turns round by round.

    python -m benchmarks.peers.speed JAX_PYTHON OPENDP_PYTHON SPEED.json

Outputs are compared before a race starts.
"""

import functools
import json
import math
import os
import sys
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
from scipy import signal

import dpfast as dp
from benchmarks.harness.race import one_core
from benchmarks.peers import cases
from benchmarks.peers.targets import LEVELS, LEVELS_OF_PRIVACY, TRANSITION, versions
from benchmarks.peers.turns import Elsewhere, Here, Job, race
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.releases.noise import Noise

PRIVACY = dp.Privacy(*LEVELS_OF_PRIVACY[0][1:])
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # for JAX, which reads XLA_FLAGS
AGREE = 1e-9  # outputs that should be equal
LAW_AGREES = 0.06  # a standard deviation of 4096 samples or more: more than 5 of its own
DESIGN_ROUNDS = 2
STEPS = "step by step"
SETTLED = 64, 10_000  # streams and samples, to check a simulation


# --- filters --------------------------------------------------------------------------------------


def by_dpfast(**case):
    shaper = dp.Filter(*cases.noising())
    if case["mode"] == STEPS:
        return by_steps(shaper, case["n_streams"], case["n_samples"])
    return by_pieces(lambda x, state: shaper.filter(x, state, n_threads=1), None, **case)


def by_steps(shaper, n_streams, n_samples):
    """Steps of all streams, as a filter takes them that keeps its state: a step lies side by side."""
    x = cases.numbers(n_streams, n_samples)
    steps, from_rest = np.ascontiguousarray(x.T), shaper.stream(n_streams)

    def run():
        stream = from_rest.copy()
        return [stream.push(step) for step in steps]

    return Job(run, x.size, cases.checked(np.stack(run(), axis=-1)))


def by_scipy(n_streams, **case):
    b, a = cases.noising()
    start = np.zeros((n_streams, len(a) - 1))
    return by_pieces(lambda x, state: signal.lfilter(b, a, x, zi=state), start, n_streams=n_streams, **case)


def by_pieces(following, start, mode, n_streams, n_samples):
    """Pieces (streams, samples) are filtered each from the state behind the one before."""
    x = cases.numbers(n_streams, n_samples)
    parts = np.split(x, n_samples // cases.chunk_of(mode, n_samples), axis=-1)
    pieces = [np.ascontiguousarray(part) for part in parts]

    def run():
        state, outputs = start, []
        for piece in pieces:
            y, state = following(piece, state)
            outputs.append(y)
        return outputs

    return Job(run, x.size, cases.checked(np.concatenate(run(), axis=-1)))


def filter_races(jax_privacy, jax):
    own, scipy = Here(by_dpfast), Here(by_scipy)
    for mode, sizes in cases.SIZES.items():
        for n_streams, n_samples in sizes:
            case = {"mode": mode, "n_streams": n_streams, "n_samples": n_samples}
            others = {
                "jax-privacy": (jax_privacy, case | {"kind": "jax-privacy"}),
                "JAX (`lax.scan` with `vmap`)": (jax, case | {"kind": "lax.scan"}),
                "scipy (`lfilter`)": (scipy, case),
            }
            yield race(f"{mode}, {named(n_streams)}", {"dpfast": (own, case)} | others, tolerance=AGREE)


def named(n_streams):
    return "1 stream" if n_streams == 1 else f"{n_streams} streams"


# --- noise ----------------------------------------------------------------------------------------


def simulated(n_streams, n_samples):
    """Input, noise, mechanism, target and error: more than the noise that the other draws and shapes."""
    model = dp.MarkovChain(TRANSITION, LEVELS)
    target, strategy, noising = dp.Filter([0.1], [1, -0.9]), cases.strategy(), cases.noising()
    receiver = LinearReceiver(target * dp.Filter(*noising), target, 0.0, 0)
    mechanism = dp.Mechanism("BLT", target, PRIVACY, model, dp.Filter(*strategy), receiver)
    seeds = count(1)

    def run(n_streams, n_samples, **options):
        size = {"n_streams": n_streams, "n_samples": n_samples, "n_threads": 1}
        return dp.monte_carlo(mechanism, model, seed=next(seeds), **size, **options)

    settled = run(*SETTLED)["BLT"].rmse / mechanism.predicted_rmse
    return Job(lambda: run(n_streams, n_samples, burn_in=0), n_streams * n_samples, [settled])


def exact_noise():
    noise = Noise(Sigma(round(2 * cases.EXACT_STD), 1), cases.EXACT_BLOCK)

    def block():
        noise.ready(cases.EXACT_BLOCK)
        return noise.take(cases.EXACT_BLOCK)

    return Job(block, cases.EXACT_BLOCK, [float(block().std()) / cases.EXACT_STD])


def noise_races(jax_privacy, opendp):
    own = Here(simulated)
    for n_streams, n_samples in cases.DRAWN:
        case = {"n_streams": n_streams, "n_samples": n_samples}
        contestants = {"dpfast": (own, case), "jax-privacy": (jax_privacy, case | {"kind": "noise"})}
        yield race(f"{cases.DRAW}, {named(n_streams)}", contestants, tolerance=LAW_AGREES)
    yield race(cases.EXACT, {"dpfast": (Here(exact_noise), {}), "opendp": (opendp, {})}, tolerance=LAW_AGREES)


# --- designs --------------------------------------------------------------------------------------

MAKE = {
    "square root": dp.square_root,
    "BLT of 3 buffers": functools.partial(dp.buffered_toeplitz, n_buffers=3, error="max"),
    "dense": dp.optimal_factorization,
}


def design(what, n):
    """Checked by its mean and its largest error a unit of noise."""
    make, target = MAKE[what], np.ones(n)
    mechanism = make(target, PRIVACY)
    errors = mechanism.predicted_rmse, math.sqrt(mechanism.max_mse)
    return Job(lambda: make(target, PRIVACY), 1, [x / PRIVACY.noise_multiplier for x in errors])


def design_races(jax_privacy):
    own = Here(design)
    for what, n in cases.DESIGNS:
        case = {"what": what, "n": n}
        contestants = {"dpfast": (own, case)} if what in MAKE else {}
        contestants["jax-privacy"] = jax_privacy, case | {"kind": "design"}
        yield race(f"{what}, n = {n}", contestants, rounds=DESIGN_ROUNDS)


def main(jax_python, opendp_python, path):
    os.environ["XLA_FLAGS"] = ONE_THREAD
    where = (jax_python, "speed_jax"), (jax_python, "speed_jax"), (opendp_python, "speed_opendp")
    with one_core():
        others = [Elsewhere(python, f"benchmarks.peers.{module}") for python, module in where]
        jax_privacy, jax, opendp = others
        with closing(jax_privacy), closing(jax), closing(opendp):
            result = {
                "versions": jax_privacy.versions | opendp.versions | versions("dpfast", "numpy", "scipy", "numba"),
                "filters": list(filter_races(jax_privacy, jax)),
                "noise": list(noise_races(jax_privacy, opendp)),
                "designs": list(design_races(jax_privacy)),
            }
    Path(path).write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
