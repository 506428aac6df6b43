"""Block sums of one input of several: what they err for all outputs together, with any part of ε, and as a column."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple

from dpfast.design.block_plan import Plan
from dpfast.design.block_problem import BlockProblem, LengthTrials
from dpfast.filters.filter import Filter
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model
from dpfast.signals.output_variance import output_variance

_RATIO = 1.1  # of lengths that are tried one after the other


class ChannelRequest(NamedTuple):
    """Say what the sums of one input are for, and under which privacy.

    Attributes
    ----------
    targets : dict
        The filters of the outputs that want something of it, by their numbers.
    model : Model
    privacy : Privacy
        Of this input alone, with all of ε and δ.
    noise : {"best", "geometric", "canonical", "staircase"}
    length : int or None
        Of its blocks; None for the best one.
    phase : int
    unit : float or None
    lag : int
    """

    targets: dict[int, Filter]
    model: Model
    privacy: Privacy
    noise: IntegerKind | Literal["best"]
    length: int | None
    phase: int
    unit: float | None
    lag: int


class ChannelBlocks:
    """The sums of one input with a share of ε and δ that is to be chosen.

    Parameters
    ----------
    request : ChannelRequest
    """

    def __init__(self, request: ChannelRequest) -> None:
        self.request = request
        others = request.privacy, request.model, request.lag, request.unit
        self.problems = {a: BlockProblem.check(f, *others) for a, f in request.targets.items()}
        self._trials = LengthTrials(tuple(self.problems.values()))

    @functools.cached_property
    def variance(self) -> float:
        """The error where nothing of it is published: the variance of what it adds to all outputs."""
        return math.fsum(output_variance(f, self.request.model) for f in self.request.targets.values())

    def privacy(self, share: float) -> Privacy:
        """Return a share of ε and δ."""
        given = self.request.privacy
        return Privacy(
            *(share * given.epsilon, share * given.delta),
            max_change=given.max_change,
            max_events=given.max_events,
            min_separation=given.min_separation,
            calibration=given.calibration,
        )

    def law(self, share: float) -> IntegerNoise:
        """Return the law of the noise at a share of ε and δ."""
        steps = next(iter(self.problems.values())).lattice.steps
        return integer_noise(self.request.noise, self.privacy(share), steps)

    def mse(self, share: float, length: int) -> float:
        """Return the error of all outputs together at a share of ε, with blocks of a length."""
        return self._trials.mse(length, self.law(share).variance)

    def find_length(self, share: float) -> int:
        """Return the length of least error at a share of ε, among all."""
        return self.request.length or self._trials.find(self.law(share).variance)

    def improve_length(self, share: float, length: int) -> tuple[float, int]:
        """Return the least error at a share of ε, and its length, near to a length: for shares one after the other."""
        best = self.mse(share, length)
        for step in (1, -1) if self.request.length is None else ():
            while 1 <= (other := _next(length, step)) <= self._trials.longest:
                if (found := self.mse(share, other)) >= best:
                    break
                best, length = found, other
        return best, length

    def build(self, share: float, length: int, name: str, options: Any) -> dict[int, BlockMechanism]:
        """Return the mechanism of each output that wants something of it."""
        request, law = self.request, self.law(share)
        plan, privacy, found = Plan.sums(length), self.privacy(share), {}
        for a, problem in self.problems.items():
            kalman = problem.receiver(plan, (law.variance,), request.phase)
            unit = None if request.unit is None else problem.lattice.unit
            given = request.targets[a], privacy, request.model, kalman
            found[a] = BlockMechanism(name, *given, noise_kinds=(law.kind,), unit=unit, options=options)
        return found


def _next(length: int, step: int) -> int:
    """Return the next longer or shorter length that is tried."""
    if step > 0:
        return max(length + 1, math.floor(length * _RATIO))
    return min(length - 1, math.ceil(length / _RATIO))
