"""Systems with one state for all outputs, against a loop over time."""

import numpy as np
import pytest
from helpers.chains import EXAMPLES, LANES, TOLERANCE, unit_normals
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.simulated_noise import NOISE, of_channel
from dpfast._kernels.state_space_pass import StateSpace

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def system(n, k, p, seed=0):
    """A stable system of n states, k inputs and p outputs."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, n))
    a *= 0.9 / max(1e-9, np.abs(np.linalg.eigvals(a)).max(initial=0.0))
    return StateSpace(a, rng.normal(size=(n, k)), rng.normal(size=(p, n)), rng.normal(size=(p, k)))


def loop(x, system, state):
    """y (p, streams, time) of inputs x (k, streams, time), from a state (n, streams)."""
    y = np.empty((len(system.c), *x.shape[1:]))
    for t in range(x.shape[-1]):
        y[..., t] = system.c @ state + system.d @ x[..., t]
        state = system.a @ state + system.b @ x[..., t]
    return y


@DTYPES
@EXAMPLES
@given(
    sizes=st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)),
    n_streams=st.integers(1, LANES + 2),
    n=st.integers(1, 130),
    chunk=st.sampled_from([6, 48]),
    begins=st.booleans(),
)
def test_outputs_are_those_of_a_loop(dtype, sizes, n_streams, n, chunk, begins):
    built, made = system(*sizes), Chain(dtype, chunk)
    noises = tuple(made.normals(of_channel(NOISE, j)) for j in range(sizes[1]))
    first = np.random.default_rng(1).normal(size=(sizes[0], n_streams)) if begins else np.zeros((sizes[0], n_streams))
    begin = (lambda seed, start, count: first[:, start : start + count]) if begins else None
    for y in made.run_system(built, noises, begin=begin):
        made.write(y)
    out = np.empty((sizes[2], n_streams, n), dtype)
    execute(made, n_streams, n, seed=5, out=out)
    x = np.stack([unit_normals(5, n_streams, n, of_channel(NOISE, j), dtype) for j in range(sizes[1])])
    expected = loop(x.astype(np.float64), built, first)
    size = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(out, expected, atol=10 * TOLERANCE[np.dtype(dtype).itemsize] * size)


def test_a_chunk_does_not_change_the_bits():
    found = []
    for chunk in (6, 48, 480):
        made = Chain(np.float64, chunk)
        for y in made.run_system(system(3, 2, 2), tuple(made.normals(of_channel(NOISE, j)) for j in range(2))):
            made.write(y)
        found.append(np.empty((2, 20, 700)))
        execute(made, 20, 700, seed=5, out=found[-1], n_threads=2)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
