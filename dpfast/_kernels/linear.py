"""Linear filters: FIR, second-order sections, direct-form recursion; in place, state carried.

The whole state of a filter is one row (streams, states): past inputs of the FIR, two states a section, past outputs of
the recursion, the newest first. It is the state of ``Filter.state_space``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[np.float64]


class Factors(NamedTuple):
    """H(z) = taps(z) · Π sections(z) / recursion(z)."""

    taps: Array
    sections: Array  # (n, 6), leading denominator coefficient one
    recursion: Array  # monic

    @property
    def n_states(self) -> int:
        return len(self.taps) + 2 * len(self.sections) + len(self.recursion) - 2


def fir(taps: Array) -> Factors:
    """The factors of an FIR filter."""
    taps, none, one = taps.view(), np.empty((0, 6)), np.ones(1)
    for x in (taps, none, one):
        x.setflags(write=False)  # as those of a Filter: one type, one compilation
    return Factors(taps, none, one)


@kernel
def run(factors: Factors, state: Array, x: Array) -> None:
    """Filter x in place and update the state."""
    taps, sections, recursion = factors
    n_past, n_sections = len(taps) - 1, len(sections)
    for i in range(x.shape[0]):
        if n_past > 0:
            _fir(taps, state[i, :n_past], x[i])
        elif taps[0] != 1.0:
            x[i] *= taps[0]
        for j in range(n_sections):
            _section(sections[j], state[i, n_past + 2 * j : n_past + 2 * j + 2], x[i])
        if len(recursion) > 1:
            _recursion(recursion, state[i, n_past + 2 * n_sections :], x[i])


@kernel
def _fir(taps: Array, past: Array, x: Array) -> None:
    """x[t] = sum_k taps[k] x[t - k]; past[k] is x[-1 - k]."""
    n = len(past)
    extended = np.concatenate((past[::-1], x))
    x[:] = 0.0
    for k in range(n, -1, -1):
        x += taps[k] * extended[n - k : n - k + len(x)]
    past[:] = extended[len(x) :][::-1]


@kernel
def _section(section: Array, state: Array, x: Array) -> None:
    """Transposed direct form II: y = b0 x + s, s = b1 x - a1 y + z, z = b2 x - a2 y."""
    b0, b1, b2, _, a1, a2 = section
    s, z = state[0], state[1]
    for t in range(len(x)):
        value = x[t]
        y = b0 * value + s
        s = b1 * value - a1 * y + z
        z = b2 * value - a2 * y
        x[t] = y
    state[0], state[1] = s, z


@kernel
def _recursion(recursion: Array, past: Array, x: Array) -> None:
    """x[t] -= sum_{k > 0} recursion[k] x[t - k]; past[k] is x[-1 - k]."""
    n = len(past)
    extended = np.concatenate((past[::-1], x))
    for t in range(n, len(extended)):
        value = extended[t]
        for k in range(n, 0, -1):
            value -= recursion[k] * extended[t - k]
        extended[t] = value
    x[:] = extended[n:]
    past[:] = extended[len(x) :][::-1]


@kernel
def add_squares(x: Array, start: int, stop: int, total: Array) -> None:
    """Add the squares of x[:, start:stop] to the total of each stream."""
    for i in range(x.shape[0]):
        for t in range(start, stop):
            total[i] += x[i, t] * x[i, t]
