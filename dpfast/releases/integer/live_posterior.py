"""The posterior mean behind released sums or answers: it runs piece by piece, with a state that can be stored."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.compiled_receivers import CompiledPosterior
from dpfast._kernels.simulation import build_live_chain, continue_chain
from dpfast._support import thread_count, validation
from dpfast._support.validation import Array
from dpfast.releases.integer.live_receiver import Integers, state_error

FOR_EVER = 2**60  # steps of what has no end
_MAGIC, _VERSION = b"dplp", 1
_HEADER = struct.Struct("<4sI3Q")  # magic, version, streams, numbers of a stream, position; then the numbers
_NUMBER = np.dtype("<f8")


class LivePosterior:
    """Estimate from released integers by the posterior mean of a chain of levels, as studies do, piece by piece.

    What is known of the past is a probability for each memory of the chain, and means of the target's states and of
    the outputs that a lag still asks for: so much is kept of a stream, however long it runs.

    Parameters
    ----------
    receiver : CompiledPosterior
        Behind what is released up to so many steps, those of a horizon or FOR_EVER.
    values : callable
        Gives of integers (streams, n), and of the position of the first one, what the receiver takes.
    n_streams : int

    Notes
    -----
    *Privacy.* All that is seen here is public: the estimates are post-processing of v.
    """

    def __init__(self, receiver: CompiledPosterior, values: Callable[[Integers, int], Array], n_streams: int) -> None:
        self._receiver, self._values, self._position = receiver, values, 0
        self._chain, self._end = build_live_chain(receiver), receiver.posterior.n_steps
        start = receiver.posterior.start
        self._states = np.zeros((n_streams, len(self._chain.end)))
        self._states[:, : len(start)] = start

    @property
    def position(self) -> int:
        """Count the steps of each stream that were pushed."""
        return self._position

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates, with the bits of all at once, however it is cut.

        Parameters
        ----------
        v : array of int64, (n_streams, n)
            The next steps of all streams; n may be 0.
        end : int, optional
            The steps with inputs of a stream that is over: what is published from it on tells nothing.

        Returns
        -------
        array, (n_streams, n)
            At step t of y at t - lag.
        """
        if v.dtype != np.int64 or v.ndim != 2 or len(v) != len(self._states):
            raise validation.fail("v", f"an array of int64 ({len(self._states)}, n)", v.shape)
        values = self._values(v, self._position)
        chain, n_threads = self._chain_until(end), thread_count.n_threads(None)
        found, self._states = continue_chain(chain, values, self._states, self._position, n_threads)
        self._position += v.shape[1]
        return np.asarray(found[0])

    def _chain_until(self, end: int | None) -> Chain:
        """Return what runs where nothing comes beyond an end."""
        end = self._receiver.posterior.n_steps if end is None else end
        if end != self._end:
            self._chain, self._end = build_live_chain(self._receiver.ending_after(end or 0)), end
        return self._chain

    def state(self) -> bytes:
        """Return all that the next push depends on, for :meth:`restore`."""
        header = _HEADER.pack(_MAGIC, _VERSION, *self._states.shape, self._position)
        return header + self._states.astype(_NUMBER).tobytes()

    def restore(self, state: bytes) -> None:
        """Go on from a state that a receiver of the same make gave, in any process.

        Raises
        ------
        ValueError
            For what is no such state; the receiver is then as it was.
        """
        validation.instance("state", state, bytes, "bytes that .state() gave")
        *header, position = _HEADER.unpack(state[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        expected = [_MAGIC, _VERSION, *self._states.shape]
        if header != expected:
            raise state_error("format, version, streams, numbers of each", expected, header)
        numbers = state[_HEADER.size :]
        if len(numbers) != self._states.nbytes:
            raise state_error("bytes of the numbers", self._states.nbytes, len(numbers))
        states = np.frombuffer(numbers, _NUMBER).reshape(self._states.shape).astype(np.float64)
        if not np.isfinite(states).all():
            raise state_error("finite numbers", "all", "others")
        self._states, self._position = states, position
