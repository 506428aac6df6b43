"""Descent by L-BFGS, in single precision as well, and from one precision to the next."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.progress import report_step
from dpfast._support.validation import Array

_REMEMBERED = 10  # steps
_MOST_STEPS = 1000
_IN_A_ROW = 2  # small steps that end a descent
_SHORTEST = 1e-4  # part of a step: where an error does not decrease along it, no more can be told from rounding
_TINY = 1e-30  # a slope as small has no direction
_ENOUGH = 1e-4  # of the decrease that the slope promises (Armijo)

Error = Callable[[Array], tuple[float, Array]]  # of a point, and its gradient


class Step(NamedTuple):
    """A step, by how much it changed the gradient, and the product of the two, which is positive."""

    length: Array
    change: Array
    curvature: float


class StepMemory:
    """The last steps of a descent; a further one, in another precision, may go on with them."""

    def __init__(self) -> None:
        self.steps: collections.deque[Step] = collections.deque(maxlen=_REMEMBERED)

    def remember(self, length: Array, change: Array) -> None:
        """Take a step into account, if the gradient grew along it."""
        curvature = float(length @ change)
        if curvature > 0:
            self.steps.append(Step(length, change, curvature))

    def direction(self, slope: Array) -> Array:
        """Return minus the slope times an approximate inverse of the Hessian (Nocedal 1980)."""
        if not self.steps:
            return np.asarray(-slope / max(float(np.linalg.norm(slope)), _TINY))
        way, shares = -slope, []
        for step in reversed(self.steps):
            shares.append(float(step.length @ way) / step.curvature)
            way -= shares[-1] * step.change
        last = self.steps[-1]
        way *= last.curvature / float(last.change @ last.change)
        for step in self.steps:
            way += (shares.pop() - float(step.change @ way) / step.curvature) * step.length
        return way


def descend(error: Error, point: Array, decrease: float, memory: StepMemory) -> Array:
    """Descend until two steps in a row gain less than `decrease`, relatively, or nothing that rounding lets see."""
    value, slope = error(point)
    small = 0
    for count in range(_MOST_STEPS):
        report_step(f"step {count + 1}")
        before, way, part = value, memory.direction(slope), 1.0
        promised = float(slope @ way)
        while True:
            ahead = point + part * way
            value, new_slope = error(ahead)
            if value <= before + _ENOUGH * part * promised:
                break
            part *= _shorter(value - before, part * promised)
            if part < _SHORTEST:
                return point
        memory.remember(ahead - point, new_slope - slope)
        point, slope = ahead, new_slope
        small = small + 1 if before - value <= decrease * value else 0
        if small == _IN_A_ROW:
            break
    return point


def _shorter(gained: float, promised: float) -> float:
    """Return the part of a step at which a parabola has its minimum, from a tenth to a half."""
    return min(0.5, max(0.1, -0.5 * promised / (gained - promised)))
