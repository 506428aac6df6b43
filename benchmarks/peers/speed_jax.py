"""jax-privacy's streaming matrices, and plain JAX (`lax.scan` with `vmap`): compiled, in float64, one thread.

    python -m benchmarks.peers.speed_jax

answers the races of `speed`. Arrays are (time, streams) for jax-privacy, which takes a slice a step.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_privacy.matrix_factorization import buffered_toeplitz, dense, toeplitz

from benchmarks.peers import cases, turns
from benchmarks.peers.targets import floats


def streaming_matrix():
    blt = buffered_toeplitz.BufferedToeplitz.build(buf_decay=cases.BUF_DECAY, output_scale=cases.OUTPUT_SCALE)
    return blt.inverse_as_streaming_matrix()


# --- filters --------------------------------------------------------------------------------------


def by_jax_privacy(pieces, mode):
    """A function that runs over all pieces (time, streams), and what it gives."""
    matrix = streaming_matrix()
    if mode == "as one batch":
        (x,), multiply = pieces, jax.jit(lambda x: matrix @ x)
        return lambda: multiply(x)
    if mode == "step by step":
        pieces, following = [x[0] for x in pieces], jax.jit(matrix.multiply_next)
    else:
        following = jax.jit(functools.partial(scanned, matrix))
    start = matrix.init_multiply(jnp.zeros(pieces[0].shape[-1]))

    def run():
        state, outputs = start, []
        for x in pieces:
            y, state = following(x, state)
            outputs.append(y)
        return outputs

    return run


def scanned(matrix, x, state):
    state, y = lax.scan(lambda state, value: matrix.multiply_next(value, state)[::-1], state, x)
    return y, state


def by_scan(pieces):
    """The difference equation, transposed direct form II, over pieces (streams, time)."""
    b, a = (jnp.asarray(x) for x in cases.noising())

    def step(state, x):
        y = b[0] * x + state[0]
        return b[1:] * x - a[1:] * y + jnp.append(state[1:], 0.0), y

    following = jax.jit(jax.vmap(functools.partial(lax.scan, step)))
    start = jnp.zeros((len(pieces[0]), len(a) - 1))

    def run():
        state, outputs = start, []
        for x in pieces:
            state, y = following(state, x)
            outputs.append(y)
        return outputs

    return run


def filters(by, mode, n_streams, n_samples):
    """By "jax-privacy" or by "lax.scan"."""
    x = cases.numbers(n_streams, n_samples)
    parts = np.split(x, n_samples // cases.chunk_of(mode, n_samples), axis=-1)
    time_first = by == "jax-privacy"
    pieces = [jnp.asarray(part.T if time_first else part) for part in parts]
    run = by_jax_privacy(pieces, mode) if time_first else by_scan(pieces)
    outputs = [np.asarray(y).reshape(-1, n_streams).T if time_first else y for y in as_list(run())]
    return turns.Job(lambda: jax.block_until_ready(run()), x.size, cases.checked(np.concatenate(outputs, axis=-1)))


def as_list(outputs):
    return outputs if isinstance(outputs, list) else [outputs]


# --- noise, designs -------------------------------------------------------------------------------


def noise(n_streams, n_samples):
    """Drawn and shaped; checked by its standard deviation."""
    matrix = streaming_matrix()
    draw = jax.jit(lambda key: matrix @ jax.random.normal(key, (n_samples, n_streams)))
    keys = iter(jax.random.split(jax.random.key(1), 1000))
    expected = jnp.sqrt(matrix.row_norms_squared(n_samples).mean())
    spread = jnp.sqrt((draw(next(keys)) ** 2).mean()) / expected
    return turns.Job(lambda: jax.block_until_ready(draw(next(keys))), n_streams * n_samples, [float(spread)])


def square_root(n):
    return toeplitz.optimal_max_error_strategy_coefs(n), toeplitz.optimal_max_error_noising_coefs(n)


def buffers(n):
    blt = buffered_toeplitz.optimize(n=n, min_buffers=3, max_buffers=3)
    return blt.toeplitz_coefs(n), blt.inverse().toeplitz_coefs(n)


def bands(n):
    c = toeplitz.optimize_banded_toeplitz(n, cases.BANDS)
    return c, toeplitz.inverse_coef(c, n)


def matrix(n):
    c = dense.optimize(n)
    return c, jnp.linalg.inv(c)


DESIGNS = {"square root": square_root, "BLT of 3 buffers": buffers, "banded Toeplitz": bands, "dense": matrix}


def design(what, n):
    """Checked by the mean and the largest error of a prefix sum a unit of noise, by its own functions."""
    make = DESIGNS[what]
    c, inverse = make(n)
    if c.ndim == 1:
        squared = toeplitz.per_query_error(noising_coef=inverse, n=n) * toeplitz.sensitivity_squared(c)
    else:
        squared = dense.per_query_error(noising_matrix=inverse) * jnp.linalg.norm(c, axis=0).max() ** 2
    return turns.Job(
        lambda: jax.block_until_ready(make(n)), 1, floats(jnp.sqrt(jnp.array([squared.mean(), squared.max()])))
    )


def prepare(kind, **case):
    return {"design": design, "noise": noise}.get(kind, functools.partial(filters, kind))(**case)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    turns.serve(prepare, "jax-privacy", "jax", "jaxlib", "numpy")
