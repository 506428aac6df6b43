"""The running sum without a horizon, as a target."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array


class EndlessSum:
    """The target y_t = u_0 + ... + u_t for t = 0, 1, ... without an end, which no stable filter is.

    Examples
    --------
    >>> EndlessSum().apply([1, 2, 3])
    array([1., 3., 6.])
    """

    horizon: ClassVar[None] = None

    def apply(self, u: ArrayLike) -> Array:
        """Return the sums of sequences (..., n), along the last axis."""
        return np.cumsum(self.checked(u), axis=-1)

    def checked(self, u: ArrayLike) -> Array:
        """Return an input of any number of steps as an array; mechanisms check theirs by it."""
        return np.asarray(validation.samples("u", u), float)

    def impulse(self, n: int) -> Array:
        """Return the first n coefficients, which are all 1."""
        return np.ones(n)

    def as_filter(self) -> None:
        """Return None, as it is no stable filter."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EndlessSum)

    def __hash__(self) -> int:
        return hash(EndlessSum)

    def __repr__(self) -> str:
        return "EndlessSum()"
