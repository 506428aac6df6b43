"""A sum of decaying exponentials as a recursion with a buffer for each, and its exact inverse."""

from __future__ import annotations

from dpfast._kernels._jit import kernel
from dpfast._kernels.fir_and_sections import Array


@kernel
def accumulate(distances: Array, weights: Array, buffers: Array, x: Array, out: Array) -> None:
    """Write y_t = x_t + Σ_j w_j r_j to out (streams, n), where r_j ← (1 - d_j) r_j + x_t from zero.

    Buffers (streams, poles) hold the state, and are left as they are at the end.
    """
    for stream in range(x.shape[0]):
        for t in range(x.shape[1]):
            value, total = x[stream, t], x[stream, t]
            for j in range(len(distances)):
                kept = buffers[stream, j]
                total += weights[j] * kept
                buffers[stream, j] = kept + (value - distances[j] * kept)
            out[stream, t] = total


@kernel
def recover(distances: Array, weights: Array, buffers: Array, y: Array, out: Array) -> None:
    """Write the x of which :func:`accumulate` makes y: each from what came before it, by the same buffers."""
    for stream in range(y.shape[0]):
        for t in range(y.shape[1]):
            value = y[stream, t]
            for j in range(len(distances)):
                value -= weights[j] * buffers[stream, j]
            for j in range(len(distances)):
                kept = buffers[stream, j]
                buffers[stream, j] = kept + (value - distances[j] * kept)
            out[stream, t] = value
