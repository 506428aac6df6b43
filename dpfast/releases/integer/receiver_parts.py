"""The receiver of a stream in parts of its streams, whose states are stored by turns: all would take too long."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from dpfast._support.validation import Array
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.store.release_rows import PartState

_STREAMS = 2**14  # of a part, at least
_PARTS = 16  # at most: so many steps may have to be estimated again when a stream is opened
_VALUES_AT_ONCE = 2**23  # that are read for that


class ReceiverParts:
    """Estimate from the published integers of many streams, each part of them by a receiver of its own.

    What a part was at some step, and the published integers since then, determine what it is: the bits of estimates do
    not depend on how pushes are cut. So each push stores the states of those parts alone that were stored longest ago,
    one for each of its steps.

    Parameters
    ----------
    plan : ExactBase
    """

    def __init__(self, plan: ExactBase) -> None:
        n_streams = plan.inputs.n_streams
        edges = np.linspace(0, n_streams, min(_PARTS, max(1, n_streams // _STREAMS)) + 1).astype(int)
        self._rows = [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]
        self._parts = [plan.live(rows.stop - rows.start) for rows in self._rows]
        self._stored = [0] * len(self._parts)  # the step behind which each was

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates (n_streams, n); from the step `end` on there are no inputs any more."""
        if len(self._parts) == 1:
            return self._parts[0].push(v, end)
        estimates = np.empty((len(v), v.shape[-1]))
        for rows, part in zip(self._rows, self._parts, strict=True):
            estimates[rows] = part.push(v[rows], end)
        return estimates

    def next_states(self, n: int) -> tuple[PartState, ...]:
        """Return the states to be stored with the last n steps."""
        oldest = sorted(range(len(self._parts)), key=lambda i: self._stored[i])[: max(1, n)]
        for i in oldest:
            self._stored[i] = self._parts[i].position
        return tuple(PartState(i, self._stored[i], self._parts[i].state()) for i in oldest)

    @property
    def needed_from(self) -> int:
        """Return the step from which on what was published may be needed to restore it."""
        return min(self._stored)

    def restore(self, states: Iterable[PartState], position: int, read: Callable[[int, int], Integers]) -> None:
        """Go on from stored states, and from what was published since each of them.

        Parameters
        ----------
        states : iterable of PartState
        position : int
            The next step.
        read : callable
            Gives the published integers (n_streams, n) of n steps from a first one.

        Raises
        ------
        ValueError
            For states that are none of this receiver.
        """
        for number, at, state in states:
            if not (number < len(self._parts) and at <= position):
                raise ValueError("states must be of parts of this receiver up to the next step")
            self._parts[number].restore(state)
            if self._parts[number].position != at:
                raise ValueError("states must be of the steps that they are entered with")
            self._stored[number] = at
        at_once = max(1, _VALUES_AT_ONCE // self._rows[-1].stop)
        for first in range(min(self._stored), position, at_once):
            v = read(first, min(at_once, position - first))
            for rows, part in zip(self._rows, self._parts, strict=True):
                part.push(np.ascontiguousarray(v[rows, ..., max(0, part.position - first) :]))
