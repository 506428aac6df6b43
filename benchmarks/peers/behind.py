"""The peers' noise behind our receiver: what a mechanism gains, apart from what the receiver does.

    python -m benchmarks.peers.behind TASK.json ROWS.json PEER.json ...

Post-processing is free: whoever knows the model of u may put the linear receiver with the least mean square error
behind any v = C u + n. It sees v alone, and needs of the noise its variance and of C the matrix. Predicted are the
errors of every step; simulated, with normals of that variance (a linear receiver's mean square error depends on no
more), on streams of the model.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import linalg

import dpfast as dp
from benchmarks.peers.ours import LAG, LATER, MODEL, MODELLED
from benchmarks.peers.targets import Released, Row, Task, arrays_of, floats, timed, write
from dpfast.filters.toeplitz import inverse_series
from dpfast.mechanisms.least_squares import lmmse_receiver
from dpfast.signals.model import autocovariance

SUFFIX = ", behind our receiver"
LAGS = {0: MODELLED, LAG: f"{MODELLED}, {LATER}"}
UNKNOWN = "the covariance of its noise is not told"


def lower(coefficients):
    """The lower-triangular Toeplitz matrix of a first column."""
    return linalg.toeplitz(coefficients, np.zeros(len(coefficients)))


def strategy(released, f, arrays):
    """C, of n steps."""
    if released.strategy == "input":
        return np.eye(len(f))
    if released.strategy == "output":
        return lower(f)
    inverse = arrays[released.strategy]
    return lower(inverse_series(inverse)) if inverse.ndim == 1 else linalg.inv(inverse)


def row(released, level, target, c, lag, task):
    """One peer's noise at one level of privacy, and the receiver of this lag."""
    std, f = released.std[level], target.coefficients(task.horizon)
    b, seconds = timed(lambda: lmmse_receiver(c, dp.Toeplitz(f), MODEL, std**2 * np.eye(len(c)), lag))
    error = b @ c - lower(f)
    covariance = linalg.toeplitz(autocovariance(MODEL, task.horizon))
    steps = std**2 * (b**2).sum(axis=1) + np.einsum("ij,ij->i", error @ covariance, error)
    u = MODEL.sample(task.n_streams, task.horizon, seed=task.seed).T - MODEL.mean
    noise = std * np.random.default_rng(task.seed).standard_normal(u.shape)
    simulated = ((error @ u + b @ noise) ** 2).mean(axis=0)
    name = f"{released.mechanism}{'' if lag == 0 else f', lag {lag}'}"
    fields = {"seconds": seconds, "step_mse": floats(steps), "stream_mse": floats(simulated), "level": level}
    return Row(released.by + SUFFIX, name, target.name, LAGS[lag], **fields)


def rows(task, peers):
    """Of all that peers released, and of what they did not tell enough of, the reason."""
    targets = {x.name: x for x in task.targets}
    for part, arrays in peers:
        told = [Released(**x) for x in part["released"]]
        for released in told:
            target = targets[released.target]
            c = strategy(released, target.coefficients(task.horizon), arrays)
            for level in released.std:
                yield from (row(released, level, target, c, lag, task) for lag in LAGS)
        known = {(x.by, x.mechanism, x.target) for x in told}
        for x in part["rows"]:
            whole = x["step_mse"] is None or len(x["step_mse"]) == task.horizon
            if not x["missing"] and whole and (x["by"], x["mechanism"], x["target"]) not in known:
                yield Row(x["by"] + SUFFIX, x["mechanism"], x["target"], MODELLED, missing=UNKNOWN, level=x["level"])


def main(task_path, path, *peer_paths):
    task = Task.read(task_path)
    peers = [(json.loads(Path(x).read_text(encoding="utf-8")), np.load(arrays_of(x))) for x in peer_paths]
    write(path, rows(task, peers), ("dpfast", "numpy", "scipy", "numba"))


if __name__ == "__main__":
    main(*sys.argv[1:])
