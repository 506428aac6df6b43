"""The unit circles of several inputs side by side, whose means add up, as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.filters.warped_circle import WarpedCircle, make_circle


class CirclesInARow:
    """Circles for functions that are one behind the other in the last axis: what each of them does to its part."""

    def __init__(self, circles: Sequence[WarpedCircle]) -> None:
        self.circles = tuple(circles)
        self._ends = np.cumsum([len(x.z) for x in circles])[:-1]
        self._weights = np.concatenate([x.grid.weights for x in circles])

    @property
    def longest(self) -> int:
        """The largest number of steps of a circle."""
        return max(x.size for x in self.circles)

    def split(self, values: Any) -> list[Any]:
        """Return the parts (..., nodes) of values at all nodes."""
        return np.split(values, self._ends, axis=-1)

    def mean(self, values: Array) -> float:
        """Return the sum of the means over all circles."""
        return float((self._weights * values).sum())

    def means(self, values: Array) -> Array:
        """Return the mean over each circle."""
        return np.array([x.grid.mean(part) for x, part in zip(self.circles, self.split(values), strict=True)])

    def outer_factor(self, power: Array) -> Complex:
        """Compute the minimum-phase functions of these squared magnitudes."""
        return self._each(WarpedCircle.outer_factor, power)

    def causal_part(self, values: Complex) -> Complex:
        """Compute the causal parts."""
        return self._each(WarpedCircle.causal_part, values)

    def _each(self, function: Callable[..., Complex], values: Any) -> Complex:
        parts = [function(x, part) for x, part in zip(self.circles, self.split(values), strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def doubled(self) -> CirclesInARow:
        """Return the circles in twice as many steps."""
        return CirclesInARow([make_circle(x.warp, 2 * x.size) for x in self.circles])

    def interpolate(self, values: Array, other: CirclesInARow) -> Array:
        """Interpolate positive values at the nodes of others."""
        parts = zip(self.circles, self.split(values), other.circles, strict=True)
        return np.concatenate([x.interpolate(part, y.grid.omega) for x, part, y in parts])
