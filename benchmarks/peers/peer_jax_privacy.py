"""jax-privacy on the targets: each of its strategies, by its own errors and sensitivities and by its own streams.

    python -m benchmarks.peers.peer_jax_privacy TASK.json ROWS.json

What a receiver of its noise has to know, the strategies, is written beside the rows.

It has workloads other than prefix sums for banded and for dense strategies; the others are made for prefix sums, and
used on any target through its noising matrix. Errors do not depend on u. σ is dp-accounting's exact one, as in its
documentation.
"""

import functools
import math
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dp_accounting import gaussian_mechanism
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, dense, optimization, toeplitz
from jax_privacy.matrix_factorization.streaming_matrix import StreamingMatrix

from benchmarks.peers.targets import PURE, Released, Row, Task, floats, no_model, timed, write

BY = "jax-privacy"
BANDS = 16
MANY_BANDS = 64
DENSE_HORIZON = 256  # what it optimises in seconds; at the whole horizon minutes
DENSE_TARGET, DENSE_SECONDS = "running sum", 600.0  # at the whole horizon: on which, and how long it may take
LEFT_OUT = f"at the whole horizon left out: ten minutes a target; it had them on the {DENSE_TARGET}"
PATIENCE, GAIN = 20, 1e-5  # steps, and the part of the loss that they must gain together
ADVICE = "takes minutes; its documentation advises Toeplitz bands"
OWN_LOSS = "its optimiser and its errors, put together here: its own function for it takes prefix sums alone"


class Strategy(NamedTuple):
    """C, by its sensitivity (the largest norm of a column) and C⁻¹ as a stream or as a matrix."""

    sensitivity: float
    noising: StreamingMatrix | jax.Array
    seconds: float
    is_toeplitz: bool = True

    def inverse(self, n):
        """C⁻¹ (n, n), or its first column where it is Toeplitz."""
        if not isinstance(self.noising, StreamingMatrix):
            return np.asarray(self.noising)
        unit = jnp.eye(n, 1 if self.is_toeplitz else n)
        found = np.asarray(jax.jit(lambda x: self.noising @ x)(unit))
        return found[:, 0] if self.is_toeplitz else found


def by_coefficients(optimize):
    """A Toeplitz strategy."""
    coefficients, seconds = timed(lambda: jax.block_until_ready(optimize()))
    sensitivity = jnp.sqrt(toeplitz.sensitivity_squared(coefficients))
    return Strategy(float(sensitivity), toeplitz.inverse_as_streaming_matrix(coefficients), seconds)


def by_buffers(n, error):
    blt, seconds = timed(lambda: buffered_toeplitz.optimize(n=n, error=error))
    sensitivity = jnp.sqrt(buffered_toeplitz.sensitivity_squared(blt, n))
    return Strategy(float(sensitivity), blt.inverse_as_streaming_matrix(), seconds)


def by_columns(n):
    c, seconds = timed(lambda: jax.block_until_ready(banded.optimize(n, bands=BANDS)))
    return Strategy(1.0, c.inverse_as_streaming_matrix(), seconds, is_toeplitz=False)


def for_prefix_sums(n):
    return {
        "square root": by_coefficients(lambda: toeplitz.optimal_max_error_strategy_coefs(n)),
        "BLT, max": by_buffers(n, "max"),
        "BLT, mean": by_buffers(n, "mean"),
        **{
            f"banded Toeplitz, {bands}": by_coefficients(
                lambda bands=bands: toeplitz.optimize_banded_toeplitz(n, bands)
            )
            for bands in (BANDS, MANY_BANDS)
        },
        f"banded, {BANDS}": by_columns(n),
    }


def workload(target):
    """The target's difference equation, as the stream that it takes for a workload."""
    b, a = jnp.array(target.b) / target.a[0], jnp.array(target.a) / target.a[0]

    def init(x):
        return jnp.zeros((len(b) - 1, *x.shape), x.dtype), jnp.zeros((len(a) - 1, *x.shape), x.dtype)

    def following(x, state):
        inputs, outputs = state
        y = b[0] * x + jnp.tensordot(b[1:], inputs, 1) - jnp.tensordot(a[1:], outputs, 1)
        return y, (pushed(x, inputs), pushed(y, outputs))

    return StreamingMatrix.from_array_implementation(init, following)


def pushed(x, past):
    return jnp.concatenate([x[None], past])[: len(past)]


def settled(seconds=math.inf):
    """Stops where steps gain nothing, or the time is over.

    Its own rule asks for a gradient, which stops too soon where errors are small.
    """
    losses, start = [], time.perf_counter()

    def has_settled(found):
        losses.append(float(found.loss))
        if time.perf_counter() - start > seconds:
            return True
        return len(losses) > PATIENCE and losses[-1] > (1 - GAIN) * losses[-1 - PATIENCE]

    return has_settled


def for_target(target, n):
    """Strategies made for this workload: name → (a function that makes it, horizon, note)."""
    f = jnp.array(target.coefficients(n))

    def toeplitz_bands(bands):
        def loss(c):
            error = toeplitz.per_query_error(strategy_coef=c, n=n, workload_coef=f, skip_checks=True)
            return error.mean() * toeplitz.sensitivity_squared(c)

        start = jnp.zeros(bands).at[0].set(1.0)
        return by_coefficients(lambda: optimization.optimize(loss, start))

    def matrix(steps, allowed=math.inf):
        A = toeplitz.materialize_lower_triangular(f[:steps])
        c, seconds = timed(lambda: jax.block_until_ready(dense.optimize(steps, A=A, callback=settled(allowed))))
        return Strategy(float(jnp.linalg.norm(c, axis=0).max()), jnp.linalg.inv(c), seconds, is_toeplitz=False)

    by_loss = {
        f"banded Toeplitz, {bands}, for this target": (functools.partial(toeplitz_bands, bands), n, OWN_LOSS)
        for bands in (BANDS, MANY_BANDS)
    }
    if target.name == DENSE_TARGET:
        whole = functools.partial(matrix, n, DENSE_SECONDS)
        by_loss["dense, the whole horizon"] = whole, n, f"stopped after {DENSE_SECONDS:g} s, if not before"
    return by_loss | {"dense": (functools.partial(matrix, DENSE_HORIZON), DENSE_HORIZON, f"for {DENSE_HORIZON} steps")}


def row(mechanism, target, strategy, n, std, task, **fields):
    """Its error by the norms of the rows of A C⁻¹, and by noise that runs through both."""
    A, unit = workload(target), strategy.sensitivity * std
    streams = isinstance(strategy.noising, StreamingMatrix)
    if streams:
        squared = (A @ strategy.noising).row_norms_squared(n)
    else:
        f = jnp.array(target.coefficients(n))
        squared = dense.per_query_error(
            noising_matrix=strategy.noising, workload_matrix=toeplitz.materialize_lower_triangular(f)
        )
    noise = unit * jax.random.normal(jax.random.key(task.seed), (n, task.n_streams))
    error = jax.jit(lambda x: A @ (strategy.noising @ x))(noise)
    simulated = floats((error**2).mean(axis=0))
    predicted = floats(unit**2 * squared)
    return Row(BY, mechanism, target.name, seconds=strategy.seconds, step_mse=predicted, stream_mse=simulated, **fields)


def strategies(task):
    """Of every target: name, strategy, horizon, note. They are the same for every level of privacy."""
    n = task.horizon
    prefix = for_prefix_sums(n)
    for target in task.targets:
        note = "" if is_prefix(target, n) else "its strategy for prefix sums on this target"
        own = [(name, make(), horizon, note) for name, (make, horizon, note) in for_target(target, n).items()]
        yield target, [(name, x, n, note) for name, x in prefix.items()] + own


def is_prefix(target, n):
    return bool(np.all(target.coefficients(n) == 1))


def rows(task, stds, released, arrays):
    """Also what is known of the noise, into a list and a dictionary, for strategies over the whole horizon."""
    for target, made in strategies(task):
        for name, strategy, n, _ in made:
            if n == task.horizon:
                key = f"{len(arrays)}"
                arrays[key] = strategy.inverse(n)
                noise = {level: std * strategy.sensitivity for level, std in stds.items()}
                released.append(Released(BY, name, target.name, key, noise))
        for level in (x.name for x in task.levels):
            if level in stds:
                found = [row(name, target, x, n, stds[level], task, note=note) for name, x, n, note in made]
            else:
                found = [Row(BY, name, target.name, missing=PURE) for name, *_ in made]
            if not is_prefix(target, task.horizon):
                found.append(Row(BY, f"banded, {BANDS}, for this target", target.name, missing=ADVICE))
            if target.name != DENSE_TARGET:
                found.append(Row(BY, "dense, the whole horizon", target.name, missing=LEFT_OUT))
            yield from (x._replace(level=level) for x in (*found, no_model(BY, target)))


def main(task_path, path):
    jax.config.update("jax_enable_x64", True)
    task = Task.read(task_path)
    stds = {x.name: gaussian_mechanism.get_sigma_gaussian(x.epsilon, x.delta) for x in task.levels if x.delta}
    packages = ("jax-privacy", "jax", "optax", "dp-accounting", "numpy")
    released, arrays = [], {}
    made = rows(task, stds, released, arrays)
    write(path, made, packages, released=released, arrays=arrays, noise_multiplier=stds)


if __name__ == "__main__":
    main(*sys.argv[1:])
