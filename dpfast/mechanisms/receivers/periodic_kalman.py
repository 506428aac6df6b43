"""The Kalman filter of a periodic schedule of releases, behind block sums."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import compiled_receivers
from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.block_dynamics import ReleaseSchedule
from dpfast.mechanisms.group_levels import given_levels, take_levels
from dpfast.mechanisms.serialization.json_fields import Fields


@dataclass(frozen=True, eq=False)
class PeriodicKalman(validation.Frozen):
    r"""x̂ ← T x̂ + K (v - predicted) at releases; ŷ_t = W x̂ + (later innovations) + mean · (step response of F)_{t-lag}.

    It is the best linear estimate where the model holds (Kalman 1960); the weights repeat after a cycle.

    Attributes
    ----------
    advance : array, (states, states) or (slots, states, states)
        T, over the shortest block; the last states are what it predicts of the sums so far. Where sums are released
        within a block, T over each slot of the schedule.
    gains : array, (releases of a cycle, levels, states)
        K.
    weights : array, (samples of a cycle, states + levels · later releases)
        W of the estimate of each sample, the first one at a release of all levels.
    lengths : tuple of int
        Of the blocks of each level, each a multiple of the one before; the same for several sums of a block.
    phase : int
        Samples that the first blocks are shorter.
    mean : float
        That it takes u to have.
    lag : int
        Samples by which the estimate is late.
    offsets : tuple of int
        Samples after the end of a block at which each of its sums is released; none where all are at its end.
    groups : tuple of int
        Blocks that share noise, of these groups how many share noise again, and so on; none for noise of their own. The
        states before the sums are then what the noises of a group of each level have in common, and T has as many slots
        as there are blocks.
    """

    advance: Array
    gains: Array
    weights: Array
    lengths: tuple[int, ...]
    phase: int
    mean: float
    lag: int
    offsets: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    kind: ClassVar[str] = "periodic Kalman"

    def __post_init__(self) -> None:
        for name in ("advance", "gains", "weights"):
            object.__setattr__(self, name, validation.freeze(np.array(getattr(self, name), dtype=np.float64)))

    @property
    def n_states(self) -> int:
        """Count the numbers that it remembers of a release."""
        return int(self.advance.shape[-1])

    @property
    def schedule(self) -> ReleaseSchedule:
        """The times of releases."""
        return ReleaseSchedule(self.lengths, self.offsets, self.groups)

    def compiled(self, target: Factors) -> compiled_receivers.CompiledPeriodicKalman:
        """Return the compiled form, which studies run."""
        return compiled_receivers.CompiledPeriodicKalman(
            self.advance, self.gains, self.weights, self.lengths, self.phase, target, self.mean, self.lag, self.offsets
        )

    def size_text(self) -> str:
        """Say how large it is, in words."""
        return f"{self.n_states} states"

    def to_fields(self) -> dict[str, Any]:
        """Return all of it as JSON holds it, in the order of files, without the kind."""
        return {
            "advance": self.advance.reshape(-1, self.n_states).tolist(),  # rows: arrays of files have no third axis
            "gains": self.gains.reshape(-1, self.n_states).tolist(),
            "weights": self.weights.tolist(),
            "lengths": list(self.lengths),
            "phase": self.phase,
            "mean": self.mean,
            "lag": self.lag,
            **({"offsets": list(self.offsets)} if self.offsets else {}),
            **({"group": given_levels(self.groups)} if self.groups else {}),
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Self:
        """Take a receiver out of fields that :meth:`to_fields` has made."""
        advance, gains, weights = (fields.array(name, 2) for name in ("advance", "gains", "weights"))
        lengths, phase = tuple(fields.integers("lengths").tolist()), fields.take("phase")
        if not lengths or min(lengths) < 1 or len(gains) % len(lengths):
            raise validation.fail(fields.path("lengths"), "of as many levels as there are gains for", list(lengths))
        if any(longer % shorter for shorter, longer in itertools.pairwise(lengths)):
            raise ValueError(
                f"{fields.path('lengths')} must be nested, each a multiple of the last, got {list(lengths)}"
            )
        n, mean, lag = advance.shape[1], fields.number("mean"), fields.lag()
        offsets = tuple(fields.integers("offsets").tolist()) if fields.has("offsets") else ()
        if offsets and not (len(offsets) == len(lengths) and set(offsets) <= set(range(min(lengths))) and any(offsets)):
            raise validation.fail(fields.path("offsets"), f"{len(lengths)} from 0 to {lengths[0] - 1}", list(offsets))
        groups = take_levels(fields, "group", 2) if fields.has("group") else ()
        if groups and (offsets or len(lengths) > 1):
            raise validation.fail(fields.path("group"), "there with one sum alone, at the end of blocks", list(groups))
        schedule = ReleaseSchedule(lengths, offsets, groups)
        n_slots = schedule.n_slots if offsets or groups else 1
        validation.integer(fields.path("phase"), phase, 0, lengths[0] - 1)
        per_release = -(-lag // schedule.slot) * len(lengths)
        if advance.shape != (n_slots * n, n) or gains.shape[1] != n or weights.shape[1] != n + per_release:
            raise validation.fail(fields.path("weights"), f"rows of {n + per_release} numbers, for {n} states", weights)
        if len(weights) != len(gains) // len(lengths) * schedule.slot:
            raise validation.fail(fields.path("weights"), "a row for each sample of the cycle of the gains", weights)
        if (weights[:, n:].reshape(len(weights), len(lengths), -1) * _too_late(len(weights), schedule.slot, lag)).any():
            raise ValueError(f"{fields.path('weights')} must be 0 of what is released when an estimate is out already")
        steps = advance.reshape(-1, n, n) if n_slots > 1 or offsets else advance
        return cls(steps, gains.reshape(-1, len(lengths), n), weights, lengths, phase, mean, lag, offsets, groups)


def _too_late(n: int, block: int, lag: int) -> NDArray[np.bool_]:
    """Tell for each of n samples which of the next releases come after its estimate: (samples, 1, releases)."""
    until_first = block - np.arange(n) % block
    releases = until_first[:, None] + block * np.arange(-(-lag // block))
    return np.asarray((releases > lag)[:, None, :])
