"""Releases of known zeros: all that they publish is noise."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast.releases.audit.canary import as_numbers, with_floats
from dpfast.releases.batch import release
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.stream_opening import open_stream

_VALUES = 2**17  # of each release
_MOST_STREAMS = 8
_PUSHES = 16


class Silence(NamedTuple):
    """Releases of known zeros, (streams, time) each.

    Attributes
    ----------
    batches : pair of arrays
        Two releases of the same data.
    live : array or None
        What a stream published, in pushes of the same length; None of a smoother, which cannot run as one.
    """

    batches: tuple[Integers, Integers]
    live: Integers | None

    @property
    def series(self) -> tuple[Integers, ...]:
        """The published integers, batch by batch."""
        return self.batches if self.live is None else (*self.batches, self.live)

    @property
    def noise(self) -> Integers:
        """The published integers, in one row."""
        return np.concatenate([x.ravel() for x in self.series])

    @classmethod
    def publish(cls, plan: ExactMechanism) -> Silence:
        """Publish the centre, by the functions that publish data, in stores that are deleted afterwards."""
        few, u = _few_streams(plan)
        n = u.shape[1]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            first, second = (release(few, u, folder / part / "store").privatized[:, :n] for part in ("first", "second"))
            if plan.lag is None:
                return cls((first, second), None)
            with open_stream(few, folder / "live" / "store") as stream:
                pieces = [stream.push(piece).privatized for piece in np.split(u, _PUSHES, axis=1)]
        return cls((first, second), np.concatenate(pieces, axis=1))


def _few_streams(plan: ExactMechanism) -> tuple[ExactMechanism, NDArray[Any]]:
    """Return the mechanism for at least two streams, and their values: the centre, which is the integer zero."""
    inputs = plan.inputs
    n_streams = min(max(2, inputs.n_streams), _MOST_STREAMS)
    few = replace(inputs, n_streams=n_streams, streams_per_person=min(inputs.streams_per_person, n_streams))
    u = as_numbers(np.full((n_streams, _VALUES // n_streams // _PUSHES * _PUSHES), float(Fraction(inputs.centre))))
    accepting = few if u.dtype.kind == "i" else with_floats(few)
    assert not accepting.integers(u).any()
    return replace(plan, inputs=accepting), u
