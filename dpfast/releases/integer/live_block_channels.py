"""The receivers behind released sums of several streams: what each says of every output, added up, piece by piece."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.releases.integer.exact_base import LiveEstimator
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.integer.live_receiver import state_error

_MAGIC, _VERSION = b"dpbc", 1
_HEADER = struct.Struct("<4sIQQQ")  # magic, version, receivers, numbers of the rest, position
_SIZE = struct.Struct("<Q")  # of the state of a receiver, which follows it
_NUMBER = np.dtype("<f8")


class LiveBlockChannels:
    """Estimate outputs from released sums of several streams that are independent: the sum of what each says of them.

    Parameters
    ----------
    receivers : mapping of (int, int) to LiveEstimator
        By output and row of v.
    rest : FilterMatrix
        What outputs take in of streams that are not published, of which the mean alone is known.
    means : array, (m,)
        Of the streams as `rest` takes them.
    lag : int
    """

    def __init__(
        self, receivers: Mapping[tuple[int, int], LiveEstimator], rest: FilterMatrix, means: Array, lag: int
    ) -> None:
        self._receivers, self._rest, self._means, self._lag = dict(receivers), rest, means, lag
        self._numbers = np.zeros(rest.n_states)
        self._position = 0

    @property
    def position(self) -> int:
        """Return the number of the next step."""
        return self._position

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates (p, n) from v (q, n), the same bits however a stream is cut."""
        n, late = v.shape[1], max(0, self._lag - self._position)
        estimates = np.zeros((self._rest.shape[0], n))
        for (a, k), receiver in self._receivers.items():
            estimates[a] += receiver.push(v[k : k + 1], end)[0]
        if self._means.any() and late < n:
            known = np.repeat(self._means[:, None], n - late, axis=1)
            found, self._numbers = self._rest.filter(known, self._numbers)
            estimates[:, late:] += found
        self._position += n
        return estimates

    def state(self) -> bytes:
        """Return all that the next push depends on, for :meth:`restore`."""
        header = _HEADER.pack(_MAGIC, _VERSION, len(self._receivers), len(self._numbers), self._position)
        states = [x.state() for x in self._receivers.values()]
        return b"".join([header, self._numbers.astype(_NUMBER).tobytes(), *(_SIZE.pack(len(x)) + x for x in states)])

    def restore(self, state: bytes) -> None:
        """Go on from a state that a receiver of the same make gave, in any process.

        Raises
        ------
        ValueError
            For what is no such state; the receiver is then as it was.
        """
        validation.instance("state", state, bytes, "bytes that .state() gave")
        *header, position = _HEADER.unpack(state[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        expected = [_MAGIC, _VERSION, len(self._receivers), len(self._numbers)]
        if header != expected:
            raise state_error("format, version, receivers, numbers of the rest", expected, header)
        values, parts = self._split(state[_HEADER.size :])
        if not np.isfinite(values).all():
            raise state_error("finite numbers", True, False)
        before = [x.state() for x in self._receivers.values()]
        try:
            self._restore_receivers(parts)
            if any(x.position != position for x in self._receivers.values()):
                raise state_error("steps of all receivers", position, "others")
        except ValueError:
            self._restore_receivers(before)
            raise
        self._numbers, self._position = values, position

    def _split(self, content: bytes) -> tuple[Array, list[bytes]]:
        """Return the numbers of the rest, and the state of each receiver."""
        at = _NUMBER.itemsize * len(self._numbers)
        values: Array = np.frombuffer(content[: len(content[:at]) // 8 * 8], _NUMBER).astype(np.float64)
        parts = []
        for _ in self._receivers:
            size = _SIZE.unpack(content[at : at + _SIZE.size].ljust(_SIZE.size, b"\0"))[0]
            parts.append(content[at + _SIZE.size : at + _SIZE.size + size])
            at += _SIZE.size + size
        if at != len(content):
            raise state_error("bytes", at, len(content))
        return values, parts

    def _restore_receivers(self, states: list[bytes]) -> None:
        for receiver, state in zip(self._receivers.values(), states, strict=True):
            receiver.restore(state)
