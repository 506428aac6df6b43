"""The receiver of several streams behind integers: matrices of filters one behind the other, piece by piece."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import circle_response, fft_angles
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.integer.live_receiver import state_error

_MAGIC, _VERSION = b"DPFC", 1
_HEADER = struct.Struct("<4sIQQ")  # magic, version, count of numbers, position
_NUMBER = np.dtype("<f8")


@dataclass(frozen=True)
class MatrixReceiver:
    """Estimate F u from G (u - mean) + n: H, as filters one behind the other, and F of the mean, late.

    Attributes
    ----------
    stages : tuple of FilterMatrix
        Whose product is H, p × q; the first one sees v.
    target : FilterMatrix
        F, p × m.
    means : tuple of float, (m,)
        In the units of the signal.
    lag : int
    """

    stages: tuple[FilterMatrix, ...]
    target: FilterMatrix
    means: tuple[float, ...]
    lag: int

    def response(self, n: int) -> Complex:
        """Return H at the angles of an FFT of length n, (angles, p, q)."""
        found = matrix_on_circle(self.stages[0], n)
        for stage in self.stages[1:]:
            found = matrix_on_circle(stage, n) @ found
        return found


def matrix_on_circle(matrix: FilterMatrix, n: int) -> Complex:
    """Return the response of a matrix of filters at the angles of an FFT of length n, (angles, p, m)."""
    if matrix.shares_states:
        return matrix.response(fft_angles(n))
    rows = [np.stack([circle_response(entry, n) for entry in row], axis=-1) for row in matrix.rows]
    return np.stack(rows, axis=-2)


class LiveChannels:
    """Estimate from published integers of all channels, piece by piece.

    Parameters
    ----------
    receiver : MatrixReceiver
    taps : array of int64, (q, m, n)
    shifts : sequence of float, (m,)
        The mean of the integers of each input, as the receiver takes it.
    """

    def __init__(self, receiver: MatrixReceiver, taps: Integers, shifts: Sequence[float]) -> None:
        self._receiver = receiver
        self._mean: Array = np.einsum("i,qin->qn", np.array(shifts), np.cumsum(taps, axis=2).astype(np.float64))
        systems = *receiver.stages, receiver.target  # the last is what the mean goes through
        self._edges = np.cumsum([0, *(x.n_states for x in systems)])
        self._numbers = np.zeros(int(self._edges[-1]))
        self._position = 0

    @property
    def position(self) -> int:
        """Return the number of the next step."""
        return self._position

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates (p, n) from v (q, n), the same bits however a stream is cut."""
        last, n = self._mean.shape[1] - 1, v.shape[1]
        x: Array = v - self._mean[:, np.minimum(min(self._position, last) + np.arange(n), last)]
        for i, stage in enumerate(self._receiver.stages):
            x = self._run(i, stage, x)
        means, late = np.array(self._receiver.means), max(0, self._receiver.lag - self._position)
        if means.any() and late < n:
            x[:, late:] += self._run(-1, self._receiver.target, np.repeat(means[:, None], n - late, axis=1))
        self._position += n
        return x

    def _run(self, i: int, system: FilterMatrix, x: Array) -> Array:
        """Run one of the systems, whose states go on."""
        edges = self._edges[:-1], self._edges[1:]
        here = slice(int(edges[0][i]), int(edges[1][i]))
        found: NDArray[np.float64]
        found, self._numbers[here] = system.filter(x, self._numbers[here])
        return found

    def state(self) -> bytes:
        """Return all that the next push depends on, for :meth:`restore`."""
        header = _HEADER.pack(_MAGIC, _VERSION, len(self._numbers), self._position)
        return header + self._numbers.astype(_NUMBER, copy=False).tobytes()

    def restore(self, state: bytes) -> None:
        """Go on from a state that a receiver of the same make gave, in any process.

        Raises
        ------
        ValueError
            For what is no such state; the receiver is then as it was.
        """
        validation.instance("state", state, bytes, "bytes that .state() gave")
        *header, position = _HEADER.unpack(state[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        expected = [_MAGIC, _VERSION, len(self._numbers)]
        if header != expected:
            raise state_error("format, version, numbers", expected, header)
        needed, given = _NUMBER.itemsize * len(self._numbers), len(state) - _HEADER.size
        if given != needed:
            raise state_error("bytes of the numbers", needed, given)
        values = np.frombuffer(state, _NUMBER, offset=_HEADER.size)
        if not np.isfinite(values).all():
            raise state_error("finite numbers", True, False)
        self._numbers[:], self._position = values, position
