"""From taps to the nodes of a warped circle and back, each entry of a matrix by an FFT of its own, on several threads.

Values at nodes are times the circle's unit, as an FFT leaves them: then all nodes have the same weight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpfast._kernels.matrix_tiles import make_room
from dpfast._kernels.threads import share_work
from dpfast._support import thread_count
from dpfast._support.validation import Array, Complex

_WORTH_A_THREAD = 2**16  # entries at all steps of a circle


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
    """

    def __init__(self, p: int, m: int, size: int) -> None:
        self.n_threads = max(1, min(thread_count.n_threads(None), p * m * size // _WORTH_A_THREAD))
        self._size, self._nodes = size, size // 2 + 1
        self._room, self._found = make_room(p, m, self._nodes), np.empty((p, m, size))

    def through(self, change: Callable[[Complex], None], taps: Array) -> Array:
        """Return the taps (p, m, size) of what taps (p, m, ...) are changed to at the nodes, until the next are."""
        rows = self._found.shape[0] * self._found.shape[1]
        given, values, found = taps.reshape(rows, -1), self._room.reshape(rows, -1), self._found.reshape(rows, -1)

        def forth(first: int, count: int) -> None:
            here = slice(first, first + count)
            np.fft.rfft(given[here], self._size, out=values[here, : self._nodes])
            values[here, self._nodes :] = 0

        def back(first: int, count: int) -> None:
            here = slice(first, first + count)
            np.fft.irfft(values[here, : self._nodes], self._size, out=found[here])

        share_work(forth, rows, self.n_threads)
        change(self._room)
        share_work(back, rows, self.n_threads)
        return self._found
