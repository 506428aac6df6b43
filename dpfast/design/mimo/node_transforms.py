"""From taps to the nodes of a warped circle and back, each entry of a matrix by an FFT of its own, on several threads.

Values at nodes are times the circle's unit, as an FFT leaves them: then all nodes have the same weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpfast._kernels.matrix_tiles import make_room
from dpfast._kernels.threads import share_work
from dpfast._support import thread_count
from dpfast._support.validation import Array, Complex

_WORTH_A_THREAD = 2**17  # entries at all steps of a circle


def _nothing(rows: slice) -> None:
    """Leave rows as they are."""


class NodeTransforms:
    """Transforms of matrices (p, m) on a circle, with the room that they take: made anew, it costs as much as an FFT.

    Parameters
    ----------
    p, m : int
    size : int
        Steps of the circle.

    Attributes
    ----------
    n_threads : int
        What is worth it; results are the same for any number.
    found : array, (p m, size)
        The taps of what the last matrices were changed to.
    n_taps : int
        How many of them are causal.
    """

    def __init__(self, p: int, m: int, size: int) -> None:
        self.n_taps = size // 2
        self.n_threads = max(1, min(thread_count.n_threads(None), p * m * size // _WORTH_A_THREAD))
        self._nodes = size // 2 + 1
        self._room, self.found = make_room(p, m, self._nodes), np.empty((p * m, size))

    def taps(self, values: Complex) -> Array:
        """Return the taps (p m, size) of values at nodes (nodes, p, m), which are times the circle's unit."""
        turned = np.moveaxis(values, 0, 2)
        return np.fft.irfft(turned.reshape(-1, turned.shape[2]))

    def through(
        self,
        change: Callable[[Complex], None],
        taps: Array,
        before: Callable[[slice], None] = _nothing,
        after: Callable[[slice], None] = _nothing,
    ) -> Array:
        """Return the taps of what taps (p m, size) are changed to at the nodes (p, m, ...).

        What is done to entries alone before and after is called for slices of them, by the thread that has them at
        hand.
        """
        values = self._room.reshape(len(taps), -1)

        def forth(first: int, count: int) -> None:
            here = slice(first, first + count)
            before(here)
            np.fft.rfft(taps[here], out=values[here, : self._nodes])
            values[here, self._nodes :] = 0

        def back(first: int, count: int) -> None:
            here = slice(first, first + count)
            np.fft.irfft(values[here, : self._nodes], out=self.found[here])
            after(here)

        share_work(forth, len(taps), self.n_threads)
        change(self._room)
        share_work(back, len(taps), self.n_threads)
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
        self.n_threads, self.n_taps, self._nodes = 1, size + 2, size // 2 + 1
        self._roots = np.full(self._nodes, math.sqrt(2 / size))
        self._roots[[0, -1]] = math.sqrt(1 / size)
        self._room, self.found = make_room(p, m, self._nodes), np.empty((p * m, self.n_taps))

    def taps(self, values: Complex) -> Array:
        """Return the parts (p m, 2 nodes) of values at nodes (nodes, p, m), which are times the circle's unit."""
        rows = np.moveaxis(values, 0, 2).reshape(-1, self._nodes) * self._roots
        return np.concatenate([rows.real, rows.imag], axis=1)

    def values(self, taps: Array) -> Complex:
        """Return the values at nodes (nodes, p, m), times the circle's unit, of parts (2 nodes, p, m)."""
        real, imaginary = np.split(taps, 2)
        return np.asarray((real + 1j * imaginary) / self._roots[:, None, None])

    def through(
        self,
        change: Callable[[Complex], None],
        taps: Array,
        before: Callable[[slice], None] = _nothing,
        after: Callable[[slice], None] = _nothing,
    ) -> Array:
        """Return the parts of what values are changed to, as :meth:`NodeTransforms.through` does the taps."""
        every, values = slice(len(taps)), self._room.reshape(len(taps), -1)
        before(every)
        values[:, : self._nodes] = (taps[:, : self._nodes] + 1j * taps[:, self._nodes :]) / self._roots
        values[:, self._nodes :] = 0
        change(self._room)
        rows = values[:, : self._nodes] * self._roots
        self.found[:, : self._nodes], self.found[:, self._nodes :] = rows.real, rows.imag
        after(every)
        return self.found
