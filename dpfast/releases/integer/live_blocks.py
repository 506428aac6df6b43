"""The receiver behind released sums of blocks: it runs piece by piece, with a state that can be stored."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.block_estimates import LivePlan, estimate_live
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.releases.integer.block_schedule import BlockSchedule
from dpfast.releases.integer.last_block import LastBlock
from dpfast.releases.integer.live_receiver import Integers, state_error

_MAGIC, _VERSION = b"dplb", 1
_HEADER = struct.Struct("<4sI4Q")  # magic, version, streams, numbers of a stream, of the mean, position; then numbers
_NUMBER = np.dtype("<f8")


class LiveBlocks:
    """Estimate from released integers by a periodic Kalman filter, piece by piece.

    Parameters
    ----------
    receiver : PeriodicKalman
    target : Filter or Toeplitz
        F, whose step response the mean goes through; over a horizon the whole of it is known.
    schedule : BlockSchedule
        When sums are released, and how many inputs are in each.
    unit : float
        Of the sums: the receiver takes sums in the units of the signal.
    shift : float
        The mean of the integers.
    n_streams : int
    last_block : LastBlock, optional
        What estimates make of unfinished blocks, where these are released at the last step.

    Notes
    -----
    *Privacy.* All that is seen here is public: the estimates are post-processing of v.
    """

    def __init__(
        self,
        receiver: PeriodicKalman,
        target: Filter | Toeplitz,
        schedule: BlockSchedule,
        unit: float,
        shift: float,
        n_streams: int,
        last_block: LastBlock | None = None,
    ) -> None:
        n, slot = receiver.n_states, receiver.schedule.slot
        advance = receiver.advance.reshape(-1, n, n)
        self._plan = LivePlan(advance, receiver.gains, receiver.weights, slot, receiver.phase, receiver.lag)
        self._schedule, self._unit, self._shift = schedule, unit, shift
        self._mean, self._filter = receiver.mean, target.as_filter()
        horizon = target.horizon
        self._offsets = None if horizon is None else self._mean * np.cumsum(target.impulse(horizon))
        self._position, self._n_levels = 0, len(receiver.lengths)
        self._states = np.zeros((n_streams, self._plan.n_kept, n))
        self._innovations = np.zeros((n_streams, self._plan.n_kept, self._n_levels))
        self._last = last_block
        self._surprise = np.zeros((n_streams, 0 if last_block is None else len(last_block.levels)))
        self._of_mean = np.zeros(0 if self._filter is None or not self._mean else self._filter.n_states)

    @property
    def position(self) -> int:
        """Count the steps of each stream that were pushed."""
        return self._position

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates, with the bits of all at once, however it is cut.

        Parameters
        ----------
        v : array of int64, (n_streams, n) or (n_streams, levels, n)
            The next steps of all streams; n may be 0.
        end : int, optional
            The steps with inputs of a stream that is over: nothing is released from it on.

        Returns
        -------
        array, (n_streams, n)
            At step t of y at t - lag.
        """
        streams, n = len(self._states), v.shape[-1] if v.ndim > 1 else 0
        if v.dtype != np.int64 or v.shape not in ((streams, n), (streams, self._n_levels, n)):
            raise validation.fail("v", f"an array of int64 ({streams}, {self._n_levels}, n)", v.shape)
        sums = v.reshape(streams, self._n_levels, n)
        if self._last is None:
            return self._estimate(sums, end)
        pieces = np.split(sums, [max(0, min(n, self._last.n_steps - self._position))], axis=2)
        return np.concatenate([self._estimate(x, end) for x in pieces], axis=1)

    def _estimate(self, sums: Integers, end: int | None) -> Array:
        """Return the next estimates from sums (streams, levels, n) that do not go on beyond the declared last step."""
        n = sums.shape[2]
        due = self._schedule.due(self._position, n, end)
        mean = self._shift * self._schedule.weighed(self._position, n)
        centred = np.where(due, (sums - mean) * self._unit, 0.0)
        estimates = np.empty((len(sums), n))
        place = self._position, np.ascontiguousarray(centred), self._schedule.finished(self._position, n, end)
        estimate_live(*self._plan, *place, self._states, self._innovations, estimates)
        if self._last is not None:
            if n and self._position + n == self._last.n_steps and due[list(self._last.levels), -1].any():
                turn = (self._last.n_steps + self._plan.phase) // self._plan.slot % self._plan.n_kept
                unfinished = centred[:, list(self._last.levels), -1]
                self._surprise = self._last.surprise(unfinished, self._states[:, turn])
            self._last.correct(estimates, self._surprise, self._position)
        estimates += self._mean_of_output(n)
        self._position += n
        return estimates

    def _mean_of_output(self, n: int) -> Array:
        """Return what the mean comes to at the output, at the next n steps; none before the first estimate."""
        late = self._position + np.arange(n) - self._plan.lag
        if not self._mean or not n:
            return np.zeros(n)
        if self._offsets is not None:
            return np.where(late >= 0, self._offsets[np.clip(late, 0, len(self._offsets) - 1)], 0.0)
        assert self._filter is not None
        found, self._of_mean = self._filter.filter(np.where(late >= 0, self._mean, 0.0), self._of_mean)
        return np.asarray(found)

    def state(self) -> bytes:
        """Return all that the next push depends on, for :meth:`restore`."""
        header = _HEADER.pack(_MAGIC, _VERSION, *self._sizes(), self._position)
        numbers = np.concatenate([self._of_mean, *(x.ravel() for x in self._of_streams())])
        return header + numbers.astype(_NUMBER).tobytes()

    def _sizes(self) -> tuple[int, int, int]:
        streams = len(self._states)
        return streams, sum(x.size for x in self._of_streams()) // streams, len(self._of_mean)

    def _of_streams(self) -> tuple[Array, Array, Array]:
        """Return the numbers that it keeps of each stream."""
        return self._states, self._innovations, self._surprise

    def restore(self, state: bytes) -> None:
        """Go on from a state that a receiver of the same make gave, in any process.

        Raises
        ------
        ValueError
            For what is no such state; the receiver is then as it was.
        """
        validation.instance("state", state, bytes, "bytes that .state() gave")
        *header, position = _HEADER.unpack(state[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        expected = [_MAGIC, _VERSION, *self._sizes()]
        if header != expected:
            raise state_error("format, version, streams, numbers of each and of the mean", expected, header)
        numbers = state[_HEADER.size :]
        size = len(self._of_mean) + sum(x.size for x in self._of_streams())
        if len(numbers) != 8 * size:
            raise state_error("bytes of the numbers", 8 * size, len(numbers))
        values: NDArray[Any] = np.frombuffer(numbers, _NUMBER).astype(np.float64)
        if not np.isfinite(values).all():
            raise state_error("finite numbers", "all", "others")
        sizes = [len(self._of_mean), self._states.size, self._innovations.size]
        of_mean, states, innovations, surprise = np.split(values, np.cumsum(sizes))
        self._of_mean, self._position = of_mean, position
        self._states = states.reshape(self._states.shape)
        self._innovations = innovations.reshape(self._innovations.shape)
        self._surprise = surprise.reshape(self._surprise.shape)
