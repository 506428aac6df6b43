"""A matrix of filters as one system in state space: all entries share its few states."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import thread_count, validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import StateSpace, chain_systems, reached_states, split_system
from dpfast.filters.entrywise_system import EntrywiseSystem, Rows
from dpfast.filters.filter import Filter, check_stable


class StateSpaceSystem:
    """A system that keeps a FilterMatrix in state space: s⁺ = A s + B u, y = C s + D u.

    Parameters
    ----------
    a, b, c, d : array, (n, n), (n, m), (p, n), (p, m)

    Raises
    ------
    UnstableFilterError
        Where an eigenvalue of A has a modulus beyond what poles may have.
    """

    is_shared = True

    def __init__(self, a: Array, b: Array, c: Array, d: Array) -> None:
        self._matrices: StateSpace = (_keep(a), _keep(b), _keep(c), _keep(d))
        self.shape = d.shape[0], d.shape[1]
        self.n_states = self.order = len(a)
        self.poles: Complex = validation.freeze(np.linalg.eigvals(a).astype(np.complex128))
        check_stable(self.poles)

    @functools.cached_property
    def rows(self) -> Rows:
        """The entries, each with all of the poles that lie between its input and its output."""
        read = ([Filter.from_system(entry) for entry in row] for row in split_system(*self.state_space()))
        return tuple(tuple(entry if entry.b.any() else Filter([0.0]) for entry in row) for row in read)

    @property
    def links(self) -> NDArray[np.bool_]:
        """A table (p, m) of which inputs may reach which outputs, by what is not zero."""
        a, b, c, d = self._matrices
        there = np.stack([reached_states(a, column) for column in b.T], axis=-1)
        return np.asarray((d != 0) | ((c != 0) @ there))

    @functools.cached_property
    def _plan(self) -> Any:
        from dpfast._kernels.shared_states import plan_shared_states  # late, as it loads what compiles

        return plan_shared_states(*self._matrices)

    def run(self, x: Array, states: Array) -> tuple[Array, Array]:
        """Filter (..., m, time) from states (..., n_states); return outputs, and the states at the end."""
        from dpfast._kernels.shared_states import run_shared_states

        (p, m), time, n_streams = self.shape, x.shape[-1], math.prod(x.shape[:-2])
        y, zf = np.empty((*x.shape[:-2], p, time)), np.array(states)
        run_shared_states(
            self._plan,
            np.require(x, requirements=["C", "W"]).reshape(n_streams, m, time),  # one kind of array, compiled once
            zf.reshape(n_streams, self.n_states),
            y.reshape(n_streams, p, time),
            thread_count.n_threads(None),
        )
        return y, zf

    def impulse(self, n: int) -> Array:
        """Return the first samples of all impulse responses, (p, m, n)."""
        m = self.shape[1]
        x = np.zeros((m, m, n))
        x[..., :1] = np.eye(m)[..., None]
        return np.swapaxes(self.run(x, np.zeros((m, self.n_states)))[0], 0, 1)

    def response(self, omega: ArrayLike) -> Complex:
        """Return the frequency responses (..., p, m) at angles (...)."""
        from dpfast.filters.state_space import frequency_response  # late: with it comes scipy.linalg

        return frequency_response(*self._matrices, np.asarray(omega, dtype=np.float64))

    def column_norms(self) -> Array:
        """Return the root of the energy that an impulse at each input causes at all outputs, (m,)."""
        from dpfast.filters.state_space import gramian_root  # late, likewise

        a, b, c, d = self._matrices
        behind = gramian_root(a.T, c.T) @ b
        return np.asarray(np.sqrt((np.vstack([d, behind]) ** 2).sum(axis=0)))

    def settling_time(self, level: float) -> int:
        """Count the samples after which each impulse response stays below `level` times its largest value.

        Measured on twice the samples that the slowest pole alone would take, and twice that until it holds. Zero where
        nothing gets through, as for entries.
        """
        radius = float(np.abs(self.poles).max(initial=0.0))
        n = 1 + self.n_states + (math.ceil(math.log(level) / math.log(radius)) if radius > 0 else 0)
        while True:
            size = np.abs(self.impulse(2 * n))
            loud = (size > level * size.max(axis=-1, keepdims=True)).any(axis=(0, 1))
            last = int(np.flatnonzero(loud).max(initial=-1))
            if last < n:
                return last + 1
            n *= 2

    def state_space(self) -> StateSpace:
        """Return the matrices A, B, C, D."""
        a, b, c, d = self._matrices
        return a.copy(), b.copy(), c.copy(), d.copy()

    def times(self, factor: Filter | float) -> StateSpaceSystem:
        """Return the system with a filter at each output or each input, where there are fewer; or with a gain."""
        a, b, c, d = self._matrices
        if not isinstance(factor, Filter):
            return StateSpaceSystem(a, b, factor * c, factor * d)
        (p, m), zero = self.shape, Filter([0.0])
        n = min(p, m)
        diagonal = EntrywiseSystem(tuple(tuple(factor if i == j else zero for j in range(n)) for i in range(n)))
        both = (self._matrices, diagonal.state_space()) if p <= m else (diagonal.state_space(), self._matrices)
        return StateSpaceSystem(*chain_systems(*both))

    def content(self) -> Any:
        """Return all that it is, to compare and to hash."""
        return tuple((x.shape, (x + 0.0).tobytes()) for x in self._matrices)


def _keep(x: Array) -> Array:
    return validation.freeze(np.ascontiguousarray(x))
