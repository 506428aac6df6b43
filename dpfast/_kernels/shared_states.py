"""Systems in state space on arrays (streams, channel, time): s⁺ = A s + B x, y = C s + D x, from a state that is kept.

Streams run in lanes side by side, so that sums of different streams are in flight together. Each sum is of the same
stream in the same order, whatever the lanes, pieces and threads: inputs first, then states, those left out whose weight
is zero. (Chains have a form of their own, as their signals lie in rows.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import threads
from dpfast._kernels._jit import kernel
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.simd import Row, fma, lanes, load, repeat, store, traced

Array = NDArray[Any]

_SLICE = 2**14  # samples between two looks at whether to stop
_WORTH_A_THREAD = 4_000_000  # multiply-adds; fewer are done before another thread has started


class SharedStatesPlan(NamedTuple):
    """The rows of [B A; D C] without their zeros, one behind the other.

    Attributes
    ----------
    starts : array, (n + p + 1,)
        Where each row begins.
    columns, weights : array
        What is weighed, of [x; s], and by how much.
    n_states, n_inputs : int
    """

    starts: Array
    columns: Array
    weights: Array
    n_states: int
    n_inputs: int


def plan_shared_states(a: Array, b: Array, c: Array, d: Array) -> SharedStatesPlan:
    """Lay out a system."""
    matrix = np.block([[b, a], [d, c]])
    row, column = np.nonzero(matrix)
    starts = np.searchsorted(row, np.arange(len(matrix) + 1))
    return SharedStatesPlan(starts, column, matrix[row, column], len(a), b.shape[1])


@traced
def weigh_row(columns: Array, weights: Array, begin: int, end: int, now: Array, then: Array, to: int) -> None:
    """Write a weighed sum of rows."""

    def add(k: Any, total: Row) -> tuple[Row, ...]:
        return (fma(load(now, columns[begin + k]), weights[begin + k], total),)

    (total,) = repeat(end - begin, add, np.full_like(load(now, 0), 0))
    store(then, to, total)


@kernel
def pass_shared_states(
    starts: Array,
    columns: Array,
    weights: Array,
    x: Array,
    states: Array,
    y: Array,
    now: Array,
    then: Array,
    begin: int,
    end: int,
) -> None:
    """Pass a part of x (streams, m, time) through a system into y (streams, p, time); move states (streams, n) on.

    now, then : scratch (m + n, lanes) and (n + p, lanes), for no more streams than lanes
    """
    before = flush()
    n_streams, m, _ = x.shape
    n, p = states.shape[1], y.shape[1]
    for i in range(n):
        for lane in range(n_streams):
            now[m + i, lane] = states[lane, i]
    for t in range(begin, end):
        for j in range(m):
            for lane in range(n_streams):
                now[j, lane] = x[lane, j, t]
        for i in range(n + p):
            weigh_row(columns, weights, starts[i], starts[i + 1], now, then, i)
        for i in range(n):
            for lane in range(now.shape[1]):
                now[m + i, lane] = then[i, lane]
        for i in range(p):
            for lane in range(n_streams):
                y[lane, i, t] = then[n + i, lane]
    for i in range(n):
        for lane in range(n_streams):
            states[lane, i] = now[m + i, lane]
    restore(before)


def run_shared_states(plan: SharedStatesPlan, x: Array, states: Array, y: Array, n_threads: int) -> None:
    """Filter x (streams, m, time) into y (streams, p, time), all contiguous; move the states (streams, n) on."""
    (n_streams, _, n_samples), width = x.shape, lanes(np.float64)

    def task(first: int, count: int, check: Callable[[], None]) -> None:
        here = slice(first, first + count)
        now, then = (np.zeros((rows, width)) for rows in (plan.n_inputs + plan.n_states, len(plan.starts) - 1))
        for t in range(0, n_samples, _SLICE):
            check()
            arrays = plan.starts, plan.columns, plan.weights, x[here], states[here], y[here], now, then
            pass_shared_states(*arrays, t, min(t + _SLICE, n_samples))

    work = (len(plan.weights) + 1) * n_streams * n_samples
    threads.for_ranges(task, n_streams, width, max(1, min(n_threads, work // _WORTH_A_THREAD)))
