"""Sums of exponentials in buffers against the sums written out, and their inverse."""

import numpy as np

from dpfast._kernels import buffered_recursion

DISTANCES, WEIGHTS = np.array([0.6, 0.1, 1e-3]), np.array([0.3, 0.2, 0.05])


def run(kernel, x):
    out = np.empty(x.shape)
    kernel(DISTANCES, WEIGHTS, np.zeros((len(x), len(WEIGHTS))), x, out)
    return out


def test_each_buffer_is_an_exponential():
    x = np.random.default_rng(1).normal(size=(3, 40))
    c = np.append(1.0, ((1 - DISTANCES) ** np.arange(39)[:, None]) @ WEIGHTS)
    expected = [[sum(c[k] * row[t - k] for k in range(t + 1)) for t in range(40)] for row in x]
    np.testing.assert_allclose(run(buffered_recursion.accumulate, x), expected, rtol=0, atol=1e-13)


def test_the_inverse_gives_back_what_went_in():
    x = np.random.default_rng(2).normal(size=(2, 60))
    y = run(buffered_recursion.accumulate, x)
    np.testing.assert_allclose(run(buffered_recursion.recover, y), x, rtol=0, atol=1e-13)


def test_buffers_are_left_for_what_follows():
    x = np.random.default_rng(3).normal(size=(2, 30))
    for kernel in (buffered_recursion.accumulate, buffered_recursion.recover):
        buffers, parts = np.zeros((2, 3)), np.empty(x.shape)
        for cut in (slice(0, 11), slice(11, 30)):
            part = np.empty(x[:, cut].shape)
            kernel(DISTANCES, WEIGHTS, buffers, np.ascontiguousarray(x[:, cut]), part)
            parts[:, cut] = part
        assert (parts == run(kernel, x)).all()
