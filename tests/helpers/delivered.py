"""What engines deliver in tests that kill them: a mechanism, and the inputs of its steps."""

import functools

import numpy as np

import dpfast as dp

STREAMS = 2


@functools.cache
def plan():
    """A mechanism of six taps whose noise is small beside them: wrong inputs of a filter show in v."""
    target = dp.Filter([1], [1, -1.2, 0.5])
    mechanism = dp.zero_forcing(target, dp.Privacy(50, 1e-6))
    return dp.exact(mechanism, dp.Inputs(0, 9, centre=4, n_streams=STREAMS), tolerance=0.01)


def inputs(first, n):
    """Values of steps (streams, n)."""
    t = np.arange(first, first + n)
    return np.stack([(7 * t * t + 3 * t) % 10, (5 * t * t * t + t) % 10])


def length(first):
    """The steps of the piece that begins at a step."""
    return 1 + first * 7 % 4


def integers(first, n):
    return plan().inputs.integers(inputs(first, n))


def check_noise(v):
    """That v, from the first step on, is what the filter makes of the inputs, but for noise of its size."""
    x = integers(0, v.shape[1])
    filtered = plan().privatize(x[:, :0], x, np.zeros_like(x))
    assert abs(v - filtered).max() < 12 * plan().sigma.std
