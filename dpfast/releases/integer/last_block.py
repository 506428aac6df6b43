"""The last block of block sums: what becomes of it where the last step leaves it unfinished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.block_ending import find_ending, unfinished_levels
from dpfast.mechanisms.block_errors import ClosedLoop

LAST_BLOCKS = ("drop", "publish")
_MOST_STEPS = 2**62  # that a store counts
LastBlockChoice = Literal["drop", "publish"]


class End(NamedTuple):
    """Hold what is declared of the end of a stream."""

    last_block: LastBlockChoice | None = None
    n_steps: int | None = None


NOT_DECLARED = End()


def check_last_block(mechanism: Any, last_block: str | None, n_steps: int | None) -> int | None:
    """Return after how many steps unfinished blocks are published; None where they are dropped.

    Parameters
    ----------
    mechanism : AnyMechanism
        A design.
    last_block : {"drop", "publish"}, optional
    n_steps : int, optional
        The declared steps of the stream; by default those of the horizon of the design.

    Raises
    ------
    ValueError
        For designs without blocks, and steps that are not declared, or for nothing.
    """
    if last_block is not None and not mechanism.exact_kind.startswith("block sums"):
        raise no_blocks(mechanism, last_block)
    if last_block is not None:
        validation.choice("last_block", last_block, LAST_BLOCKS)
    if last_block != "publish":
        if n_steps is not None:
            raise ValueError(
                f"n_steps must come with last_block='publish', got {n_steps!r}: where an unfinished block is dropped "
                "a stream may end at any step"
            )
        return None
    n_steps = mechanism.horizon if n_steps is None else n_steps
    if n_steps is None:
        raise ValueError(
            "n_steps must be given with last_block='publish', got None: an unfinished block is published at the last "
            "step, which is declared before any data are seen; say how many steps there will be"
        )
    return validation.integer("n_steps", n_steps, 1, _MOST_STEPS)


@dataclass(frozen=True, eq=False)
class LastBlock(validation.Frozen):
    """Release unfinished blocks at the last step, and estimate from them what waits then.

    Attributes
    ----------
    n_steps : int
        The declared steps of the stream.
    levels : tuple of int
        Those whose block is unfinished then.
    predicted : array, (levels, states)
        The sums that a state of the receiver predicts, of that behind the last time at which it looks at releases.
    weights : array, (lag + 1, levels)
        With which each of the last estimates takes in what was not predicted; the first one comes at the last step.
    """

    n_steps: int
    levels: tuple[int, ...]
    predicted: Array
    weights: Array

    def __post_init__(self) -> None:
        for name in ("predicted", "weights"):
            object.__setattr__(self, name, validation.freeze(np.array(getattr(self, name), dtype=np.float64)))

    @classmethod
    def make(cls, loop: ClosedLoop, n_steps: int) -> Self:
        """Make it for a receiver: the best linear estimates of all that was released, if that receiver is the best."""
        ending = find_ending(loop, n_steps)
        return cls(n_steps, unfinished_levels(loop, n_steps), ending.predicted, ending.weights)

    @property
    def configuration(self) -> dict[str, Any]:
        """Return all of it, as JSON holds it."""
        return {
            "n_steps": self.n_steps,
            "levels": list(self.levels),
            "predicted": self.predicted.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> Self:
        """Make the same to the last bit."""
        return cls(given["n_steps"], tuple(given["levels"]), given["predicted"], given["weights"])

    def surprise(self, sums: Array, states: Array) -> Array:
        """Return what sums (streams, levels) have beyond what the states (streams, states) of a receiver predict.

        Numbers are added in one order, so that the bits do not depend on how many streams there are.
        """
        found = np.array(sums)
        for row, level in zip(self.predicted, found.T, strict=True):
            for factor, state in zip(row, states.T, strict=True):
                level -= factor * state
        return found

    def correct(self, estimates: Array, surprise: Array, position: int) -> None:
        """Add what the last estimates take in of it, to those from a position on (streams, n), in place."""
        before = self.n_steps - 1 - position  # steps of this piece before the last one
        for t in range(max(0, before), min(estimates.shape[1], before + len(self.weights))):
            for weight, of_level in zip(self.weights[t - before], surprise.T, strict=True):
                estimates[:, t] += weight * of_level


def no_blocks(mechanism: Any, last_block: str) -> ValueError:
    """Return the error for a last block of a mechanism that has no blocks."""
    return ValueError(
        f"last_block must be left out for a mechanism without blocks, got {last_block!r} for {mechanism.full_name}: "
        "every step of it is published"
    )


def demand_of(n_steps: int | None) -> dict[str, Any]:
    """Return what is declared of unfinished blocks, as JSON holds it: nothing where they are dropped."""
    return {} if n_steps is None else {"last_block": "publish", "n_steps": n_steps}
