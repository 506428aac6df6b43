"""Releases of known zeros: all that they publish is noise."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import note_warnings
from dpfast.privacy.response_table import ResponseTable
from dpfast.releases.audit.canary import as_numbers, with_floats
from dpfast.releases.batch import release
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.stream_opening import open_stream

_VALUES = 2**17  # of each release, where one is published at every step
_MOST_STEPS = 2**20  # of each release, where it is not
_SEEN = 2**12  # steps that show how often something is published
_MOST_STREAMS = 8
_MOST_PAIRS = 2048  # of streams of fixed steps
_PUSHES = 16


class Silence(NamedTuple):
    """Releases of known zeros, (streams, time) each.

    Attributes
    ----------
    batches : pair of arrays
        Two releases of the same data.
    live : array or None
        What a stream published, in pushes of the same length; None of a smoother, which cannot run as one.
    laws : array, (streams, time)
        Which of the laws of the noise each value has.
    """

    batches: tuple[Integers, Integers]
    live: Integers | None
    laws: Integers

    @property
    def series(self) -> tuple[Integers, ...]:
        """The published integers, batch by batch."""
        return self.batches if self.live is None else (*self.batches, self.live)

    def noise_of(self, law: int) -> Integers:
        """Return the published integers of a law, in one row."""
        return np.concatenate([x[self.laws == law] for x in self.series])

    @classmethod
    def publish(cls, plan: ExactBase) -> Silence:
        """Publish the centre, by the functions that publish data, in stores that are deleted afterwards."""
        few, u = _few_streams(plan)
        n = u.shape[1]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with note_warnings():  # zeros contradict most models
                first, second = (
                    _noise(few, release(few, u, folder / part / "store").privatized[..., :n])
                    for part in ("first", "second")
                )
            laws = _laws(few, n)
            if plan.lag is None:
                return cls((first, second), None, laws)
            with open_stream(few, folder / "live" / "store") as stream:
                pieces = [stream.push(piece).privatized for piece in np.array_split(u, min(n, _PUSHES), axis=1)]
        return cls((first, second), _noise(few, np.concatenate(pieces, axis=-1)), laws)


def _noise(plan: ExactBase, v: Integers) -> Integers:
    """Return the noise of all values that were published of zeros, (streams, values) in the order of time."""
    released = plan.released(0, v.shape[-1])
    noise = np.moveaxis(v, 1, -1)[:, released.T] if v.ndim > 2 else v[:, released]
    if isinstance(law := plan.laws[0], ResponseTable):  # what is published says which answer it is
        zero = np.zeros((1, 1), np.int64)
        answers = [int(plan.privatize(zero[:, :0], zero, zero + k)[0, 0]) for k in law.values]
        noise = np.searchsorted(np.sort(answers), noise)
        noise = np.argsort(answers)[noise].astype(np.int64)
    return _in_long_streams(plan, noise)


def _laws(plan: ExactBase, n: int) -> Integers:
    """Return which of the drawn laws each of the published values of n steps has, as `_noise` orders them."""
    of_level = np.array([plan.drawn_laws.index(x) for x in plan.laws])
    published = np.broadcast_to(of_level, (n, len(of_level)))[np.atleast_2d(plan.released(0, n)).T]
    return _in_long_streams(plan, np.tile(published, (plan.inputs.n_streams, 1)))


def _in_long_streams(plan: ExactBase, x: Integers) -> Integers:
    """Join streams of fixed steps, which are short and many: two long ones have correlations that are nearly normal."""
    return x if plan.fixed_steps is None else x.reshape(2, -1)


def _shape(plan: ExactBase) -> tuple[int, int]:
    """Return how many streams of how many steps publish enough values; where that is fixed, many of just so many."""
    fixed = plan.fixed_steps
    seen = plan.released(0, _SEEN if fixed is None else fixed)
    steps_per_value: float = max(1.0, seen.shape[-1] / max(1, int(np.count_nonzero(seen))))
    steps = min(_MOST_STEPS, math.ceil(_VALUES * steps_per_value))
    if fixed is not None:
        return 2 * min(_MOST_PAIRS, math.ceil(steps / (2 * fixed))), fixed
    n_streams = min(max(2, plan.inputs.n_streams), _MOST_STREAMS)
    return n_streams, steps // n_streams // _PUSHES * _PUSHES


def _few_streams(plan: ExactBase) -> tuple[ExactBase, NDArray[Any]]:
    """Return the mechanism for at least two streams, and their values: the centre, which is the integer zero."""
    inputs = plan.inputs
    n_streams, n = _shape(plan)
    few = replace(inputs, n_streams=n_streams, streams_per_person=min(inputs.streams_per_person, n_streams))
    u = as_numbers(np.full((n_streams, n), float(Fraction(inputs.centre))))
    accepting = few if u.dtype.kind == "i" else with_floats(few)
    assert not accepting.integers(u).any()
    publishing: ExactBase = replace(cast(Any, plan), inputs=accepting)
    return publishing, u
