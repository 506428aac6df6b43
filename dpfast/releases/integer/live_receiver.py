"""Receivers behind integers, which run all at once, or piece by piece with a state that can be stored."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast._support.validation import Array
from dpfast.mechanisms.receivers.base import CausalReceiver, Receiver

Integers = NDArray[np.int64]

_MAGIC, _VERSION = b"dplr", 2
_HEADER = struct.Struct("<4sI3Q")  # magic, version, streams, states of a stream, position; then common states, and own
_NUMBER = np.dtype("<f8")
_LARGEST = 2**62  # what v may come to for inputs of one unit
_NUMBERS = 2**16  # of states that are worked on at once: they and their copies stay in a cache


class LiveReceiver:
    r"""A receiver that estimates from published integers, piece by piece.

    Model: :math:`v_t = \sum_k g_k x_{t-k} + n_t` of integers x = u / unit - centre. The receiver expects
    :math:`v'_t = \sum_k g_k (u_{t-k} - mean) / unit + n_t`, and gets it as
    :math:`v_t - shift \cdot \sum_{k \le t} g_k` with shift = mean / unit - centre.

    Parameters
    ----------
    receiver : LinearReceiver or DecisionFeedback
        Designed for the prefilter g / unit, in the unit of the signal.
    taps : array of int64, (n_taps,)
        g.
    shift : float
        What the receiver takes for the mean of the integers x.
    n_streams : int
        At least 1.

    Raises
    ------
    ValueError
        For a smoother, which needs the whole, and for arguments of the wrong kind, shape or size.

    Notes
    -----
    *Privacy.* All that is seen here is public: the estimates are post-processing of v.

    Examples
    --------
    >>> from dpfast.filters.filter import Filter
    >>> from dpfast.mechanisms.receivers.linear import LinearReceiver
    >>> receiver = LinearReceiver(Filter([0.5]), Filter([1]), mean=3.0, lag=0)
    >>> live = LiveReceiver(receiver, np.array([2]), shift=3.0, n_streams=1)
    >>> live.push(np.array([[8, 6]])).tolist()
    [[4.0, 3.0]]
    >>> again = LiveReceiver(receiver, np.array([2]), shift=3.0, n_streams=1)
    >>> again.restore(live.state())
    >>> again.position
    2
    """

    def __init__(self, receiver: CausalReceiver, taps: Integers, shift: float, n_streams: int) -> None:
        validation.instance(
            "receiver", receiver, CausalReceiver, "a linear receiver or a decision feedback (no smoother)"
        )
        self._receiver, self._mean = receiver, _mean_in_v(taps, shift)
        self._position, self._own = 0, receiver.own_states
        # a row of all states, of which those count that streams have in common; and the others of each stream
        self._common = np.zeros(receiver.n_states)
        self._states = np.zeros((validation.integer("n_streams", n_streams, 1), len(self._common[self._own])))

    @property
    def position(self) -> int:
        """The number of steps of each stream that were pushed."""
        return self._position

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates, with the bits of :func:`estimate` on the whole, however it is cut.

        Parameters
        ----------
        v : array of int64, (n_streams, n)
            The next steps of all streams; n may be 0.
        end : int, optional
            The steps with inputs of a stream that is over, behind which zeros are published like inputs.

        Returns
        -------
        array, (n_streams, n)
            At step t of y at t - lag.
        """
        _check_integers(v)
        if len(v) != len(self._states):
            raise ValueError(f"v must have {len(self._states)} streams in rows, got shape {v.shape}")
        result, at_once = np.empty(v.shape), max(1, _NUMBERS // len(self._common))
        after = self._common
        for first in range(0, len(v), at_once):
            rows = slice(first, first + at_once)
            state = np.tile(self._common, (len(v[rows]), 1))
            state[:, self._own] = self._states[rows]
            result[rows], _, state = self._receiver.continued(self._centred(v[rows]), state)
            self._states[rows], after = state[:, self._own], state[0]
        self._common = after.copy()
        self._position += v.shape[1]
        return result

    def _centred(self, v: Integers) -> Array:
        return _subtract_mean(v, self._mean, self._position)

    def state(self) -> bytes:
        """Return all that the next push depends on, for :meth:`restore`."""
        header = _HEADER.pack(_MAGIC, _VERSION, len(self._states), len(self._common), self._position)
        shared = np.delete(self._common, self._own)
        return b"".join([header, *(x.astype(_NUMBER, copy=False).tobytes() for x in (shared, self._states))])

    def restore(self, state: bytes) -> None:
        """Go on from a state that a receiver of the same make gave, in any process.

        Raises
        ------
        ValueError
            For what is no such state; the receiver is then as it was.
        """
        validation.instance("state", state, bytes, "bytes that .state() gave")
        *header, position = _HEADER.unpack(state[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        expected = [_MAGIC, _VERSION, len(self._states), len(self._common)]
        if header != expected:
            raise state_error("format, version, streams, numbers of each", expected, header)
        others = np.delete(np.arange(len(self._common)), self._own)
        n_bytes, needed = len(state) - _HEADER.size, _NUMBER.itemsize * (len(others) + self._states.size)
        if n_bytes != needed:
            raise state_error("bytes of the numbers", needed, n_bytes)
        values, seen = np.frombuffer(state, _NUMBER, offset=_HEADER.size), min(position, self._receiver.lag)
        if not (np.isfinite(values).all() and values[len(others) - 1] == seen):
            raise state_error("finite numbers, and samples seen", seen, "others")
        self._common[others], self._position = values[: len(others)], position
        self._states[:] = values[len(others) :].reshape(self._states.shape)


class LiveResponse(LiveReceiver):
    """Estimate from published answers to two levels, piece by piece.

    Parameters
    ----------
    receiver : LinearReceiver
    values : array, (5,)
        What the answers -2 ... 2 stand for, about the mean.
    n_streams : int
    """

    def __init__(self, receiver: CausalReceiver, values: Array, n_streams: int) -> None:
        super().__init__(receiver, np.ones(1, np.int64), 0.0, n_streams)
        self._values = values

    def _centred(self, v: Integers) -> Array:
        return self._values[v + 2]


def causal_receiver(receiver: Receiver, name: str) -> CausalReceiver:
    """Return a receiver that runs as a stream; refuse a smoother.

    Raises
    ------
    ReleaseError
        Naming the mechanism.
    """
    causal = receiver.as_causal()
    if causal is None:
        raise ReleaseError(f"mechanism must be causal to run as a stream, got the smoother {name!r}: give it a lag")
    return causal


def estimate(receiver: Receiver, taps: Integers, shift: float, v: Integers) -> Array:
    """Return the estimates from whole streams v, with arguments as of :class:`LiveReceiver`, or a smoother.

    Parameters
    ----------
    receiver : LinearReceiver, DecisionFeedback or Smoother
    taps : array of int64, (n_taps,)
    shift : float
    v : array of int64, (n_streams, n)

    Returns
    -------
    array, (n_streams, n)
        At step t of y at t - lag, or at t for a smoother.

    Examples
    --------
    >>> from dpfast.filters.filter import Filter
    >>> from dpfast.mechanisms.receivers.linear import LinearReceiver
    >>> estimate(LinearReceiver(Filter([0.5]), Filter([1]), 3.0, 0), np.array([2]), 3.0, np.array([[8, 6]])).tolist()
    [[4.0, 3.0]]
    """
    return receiver.estimate(center_integers(taps, shift, v))[0]


def center_integers(taps: Integers, shift: float, v: Integers) -> Array:
    """Return what the receiver gets for whole streams v (n_streams, n): v', as of :class:`LiveReceiver`."""
    _check_integers(v)
    return _subtract_mean(v, _mean_in_v(taps, shift), 0)


def _mean_in_v(taps: Integers, shift: float) -> Array:
    """Return what the mean comes to in v, from its first step until it stays."""
    if not (_is_integers(taps, 1) and len(taps) and sum(map(abs, taps.tolist())) <= _LARGEST):
        raise validation.fail("taps", "an array of int64 (n_taps,), of sum at most 2**62 in magnitude, not empty", taps)
    bound = validation.LARGEST
    return validation.number("shift", shift, above=-bound, below=bound) * np.cumsum(taps).astype(np.float64)


def _subtract_mean(v: Integers, mean: Array, position: int) -> Array:
    """Return steps, from a position on, without the mean."""
    last = len(mean) - 1
    return v - mean[np.minimum(min(position, last) + np.arange(v.shape[1]), last)]


def _check_integers(v: Integers) -> None:
    if not _is_integers(v, 2):
        raise validation.fail("v", "an array of int64 (n_streams, n)", v)


def _is_integers(x: Any, ndim: int) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == ndim


def state_error(what: str, expected: object, got: object) -> ValueError:
    """Return the error for a state that is none of a receiver."""
    return ValueError(
        f"state must be one of this receiver ({what}: {expected}), got {got}: was it of another mechanism?"
    )
