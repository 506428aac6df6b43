"""From taps to the nodes of a warped circle and back, each entry of a matrix by an FFT of its own, on several threads.

Values at nodes are times the circle's unit, as an FFT leaves them: then all nodes have the same weight. They have a
place each (``node_fft``), and vectors of taps are as that takes them: even ones apart from odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpfast._kernels.matrix_tiles import make_room
from dpfast._kernels.node_fft import Turns, node_order, to_nodes, to_taps
from dpfast._kernels.threads import share_work
from dpfast._support import thread_count
from dpfast._support.validation import Array, Complex

_WORTH_A_THREAD = 2**17  # entries at all steps of a circle
_AT_ONCE = 2**15  # numbers of rows, which stay in the cache

OfRows = Callable[[int, int], None]


def _nothing(first: int, count: int) -> None:
    """Leave rows as they are."""


def _in_groups(first: int, count: int, at_once: int, *steps: OfRows) -> None:
    """Take steps with a few rows at a time."""
    for start in range(first, first + count, at_once):
        for step in steps:
            step(start, min(at_once, first + count - start))


class NodeTransforms:
    """Transforms of matrices (p, m) on a circle, with the room that they take: made anew, it costs as much as an FFT.

    Parameters
    ----------
    p, m : int
    size : int
        Steps of the circle, at least ``node_fft.FEWEST_STEPS``.

    Attributes
    ----------
    n_threads : int
        What is worth it; results are the same for any number.
    order : array of int
        Which node is at each place.
    found : array, (p m, 2, size/2)
        The taps of what the last matrices were changed to.
    n_kept : int
        How many of them are causal, in each of both parts.
    """

    def __init__(self, p: int, m: int, size: int) -> None:
        self.n_kept = size // 4
        self.n_threads = max(1, min(thread_count.n_threads(None), p * m * size // _WORTH_A_THREAD))
        self._shape, self._turns, self.order = (p, m), Turns(size), node_order(size)
        self._room = make_room(p, m, len(self.order))
        self.found = self._room[:, :, : size // 2]

    def rows(self, taps: Array) -> Array:
        """Return taps (taps, p, m) as rows (p m, 2, taps/2)."""
        n_taps = len(taps)
        return np.ascontiguousarray(np.moveaxis(taps.reshape(n_taps // 2, 2, -1), 2, 0).swapaxes(1, 2))

    def matrices(self, rows: Array) -> Array:
        """Return what has these rows."""
        return np.ascontiguousarray(np.moveaxis(rows, 0, 2).swapaxes(0, 1)).reshape(-1, *self._shape)

    def taps(self, values: Complex) -> Array:
        """Return the taps of values at nodes (nodes, p, m), which are times the circle's unit, as rows."""
        return self.rows(np.fft.irfft(values, axis=0))

    def through(
        self,
        change: Callable[[Array], None],
        taps: Array,
        before: OfRows = _nothing,
        after: OfRows = _nothing,
    ) -> Array:
        """Return the taps of what taps (p m, 2, any number) are changed to at nodes, as they lie (p m, 2, places).

        What is done to rows alone before and after is called with the first and the number of a few of them, by the
        thread that has them at hand.
        """
        turns, at_once = self._turns, max(1, _AT_ONCE // self.found.shape[2])

        def forth(first: int, count: int) -> None:
            to_nodes(taps, turns.cuts, turns.of_cuts, turns.forth, first, count, self._room)

        def back(first: int, count: int) -> None:
            to_taps(self._room, turns.cuts, turns.of_cuts, turns.back, first, count)

        share_work(lambda *rows: _in_groups(*rows, at_once, before, forth), len(taps), self.n_threads)
        change(self._room)
        share_work(lambda *rows: _in_groups(*rows, at_once, back, after), len(taps), self.n_threads)
        return self.found


class NodesAlone:
    """Nothing but the nodes, where no causality is asked: for taps, real and imaginary parts of values at each of them.

    They are times the root of a node's weight, so that products of them are means over the circle, as those of taps
    are.

    Parameters
    ----------
    p, m : int
    size : int
        Steps of the circle.
    """

    def __init__(self, p: int, m: int, size: int) -> None:
        self._shape, self.n_threads, self.order = (p, m), 1, np.arange(size // 2 + 1)
        self._roots = np.full(size // 2 + 1, math.sqrt(2 / size))
        self._roots[[0, -1]] = math.sqrt(1 / size)
        self.found = self._room = make_room(p, m, len(self._roots))
        self.n_kept = self._room.shape[2]

    def rows(self, taps: Array) -> Array:
        """Return parts (2 nodes, p, m) as rows (p m, 2, places)."""
        rows = np.zeros((taps[0].size, 2, self.n_kept))
        rows[:, :, : len(self._roots)] = np.moveaxis(taps.reshape(2, len(self._roots), -1), 2, 0)
        return rows

    def matrices(self, rows: Array) -> Array:
        """Return what has these rows."""
        parts = np.moveaxis(rows[:, :, : len(self._roots)], 0, 2)
        return np.ascontiguousarray(parts).reshape(-1, *self._shape)

    def parts(self, values: Complex) -> Array:
        """Return parts (2 nodes, p, m) of values at nodes (nodes, p, m), which are times the circle's unit."""
        scaled = values * self._roots[:, None, None]
        return np.concatenate([scaled.real, scaled.imag])

    def taps(self, values: Complex) -> Array:
        """Return these as rows."""
        return self.rows(self.parts(values))

    def values(self, taps: Array) -> Complex:
        """Return the values at nodes (nodes, p, m), times the circle's unit, of parts (2 nodes, p, m)."""
        real, imaginary = np.split(taps, 2)
        return np.asarray((real + 1j * imaginary) / self._roots[:, None, None])

    def through(
        self,
        change: Callable[[Array], None],
        taps: Array,
        before: OfRows = _nothing,
        after: OfRows = _nothing,
    ) -> Array:
        """Return the parts of what values are changed to, as :meth:`NodeTransforms.through` does the taps."""
        before(0, len(taps))
        nodes = self._room[:, :, : len(self._roots)]
        np.divide(taps[:, :, : len(self._roots)], self._roots, out=nodes)
        change(self._room)
        nodes *= self._roots
        self._room[:, :, len(self._roots) :] = 0.0
        after(0, len(taps))
        return self.found
