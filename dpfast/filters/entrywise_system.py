"""A matrix of filters as its entries: each runs by itself, with states of its own."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter import Filter

Rows = tuple[tuple[Filter, ...], ...]


class EntrywiseSystem:
    """A system that keeps each entry of a FilterMatrix as a filter of its own.

    Parameters
    ----------
    rows : tuple of tuples of Filter
        The entries, output by output.
    """

    is_shared = False

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._entries = [entry for row in rows for entry in row]
        self.shape = len(rows), len(rows[0])
        self.n_states = sum(entry.n_states for entry in self._entries)
        self.order = max(entry.order for entry in self._entries)

    @functools.cached_property
    def poles(self) -> Complex:
        """The poles of all entries, each as often as entries have it."""
        return validation.freeze(np.concatenate([entry.poles for entry in self._entries]))

    @property
    def links(self) -> NDArray[np.bool_]:
        """A table (p, m) of which inputs reach which outputs."""
        return np.array([[bool(entry.b.any()) for entry in row] for row in self.rows])

    def run(self, x: Array, states: Array) -> tuple[Array, Array]:
        """Filter (..., m, time) from states (..., n_states); return outputs, and the states at the end."""
        y, zf, first = np.zeros((*x.shape[:-2], self.shape[0], x.shape[-1])), np.empty_like(states), 0
        for i, row in enumerate(self.rows):
            for j, entry in enumerate(row):
                here = slice(first, first := first + entry.n_states)
                part, zf[..., here] = entry.filter(x[..., j, :], states[..., here])
                y[..., i, :] += part
        return y, zf

    def impulse(self, n: int) -> Array:
        """Return the first samples of all impulse responses, (p, m, n)."""
        return np.array([[entry.impulse(n) for entry in row] for row in self.rows])

    def response(self, omega: ArrayLike) -> Complex:
        """Return the frequency responses (..., p, m) at angles (...)."""
        rows = [np.stack([entry.response(omega) for entry in row], axis=-1) for row in self.rows]
        return np.stack(rows, axis=-2)

    def column_norms(self) -> Array:
        """Return the root of the energy that an impulse at each input causes at all outputs, (m,)."""
        return np.array([math.hypot(*(row[j].h2_norm() for row in self.rows)) for j in range(self.shape[1])])

    def settling_time(self, level: float) -> int:
        """Count the samples after which each impulse response stays below `level` times its largest value."""
        heard = [entry for entry in self._entries if entry.b.any()]
        return max([max(len(x.factors.taps), x.settling_time(level)) for x in heard], default=0)

    def state_space(self) -> tuple[Array, Array, Array, Array]:
        """Return the matrices A, B, C, D of the entries side by side."""
        from scipy import linalg  # late: it takes longer to load than a filter takes to make

        systems = [[entry.state_space() for entry in row] for row in self.rows]
        every = [(i, j, x) for i, row in enumerate(systems) for j, x in enumerate(row)]
        (p, m), n = self.shape, self.n_states
        b, c = np.zeros((n, m)), np.zeros((p, n))
        first = 0
        for i, j, (a, b_ij, c_ij, _) in every:
            here = slice(first, first := first + len(a))
            b[here, j], c[i, here] = b_ij[:, 0], c_ij[0]
        d = np.array([[x[3].item() for x in row] for row in systems])
        return linalg.block_diag(*(x[0] for _, _, x in every)), b, c, d

    def times(self, factor: Filter | float) -> EntrywiseSystem:
        """Return the system with a filter, or a gain, behind each output."""
        return EntrywiseSystem(tuple(tuple(entry * factor for entry in row) for row in self.rows))

    def content(self) -> Any:
        """Return all that it is, to compare and to hash."""
        return self.rows
