"""Two-sided geometric noise, also called discrete Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise, check_rate, whole


@dataclass(frozen=True)
class TwoSidedGeometric(IntegerNoise):
    r"""P(N = n) = (1 - q)/(1 + q) q^{|n|} with q = e^{-ε/d}: ε-DP for every change of at most d steps.

    A change by k steps costs ε|k|/d, whatever k is, and changes in several draws add up: it is the law for several
    events of one person. Its variance is 2q/(1 - q)² (Ghosh, Roughgarden and Sundararajan 2012).

    Examples
    --------
    >>> noise = TwoSidedGeometric(1.0)
    >>> round(noise.variance, 6), noise.guarantee(3)
    (1.841347, (3.0, 0.0))
    """

    epsilon: float
    steps: int = 1
    delta: float = field(default=0.0, init=False, repr=False)
    kind: ClassVar[IntegerKind] = "geometric"

    def __post_init__(self) -> None:
        validation.integer("steps", self.steps, 1)
        check_rate(self.epsilon, self.steps)

    @property
    def rate(self) -> float:
        """ε/d, what a change by one step costs."""
        return self.epsilon / self.steps

    @property
    def variance(self) -> float:
        """2q/(1 - q)² = 1/(2 sinh²(ε/2d)), which loses no digits at small ε."""
        half = self.rate / 2
        return 2 * math.exp(-2 * half) / math.expm1(-2 * half) ** 2

    def log_probability(self, n: ArrayLike) -> Array:
        """Return ln P(N = n) of integers."""
        return math.log(math.tanh(self.rate / 2)) - self.rate * np.abs(whole("n", n))

    def tail(self, n: ArrayLike) -> Array:
        """Return P(N ≥ n) = qⁿ/(1 + q) of integers n ≥ 1."""
        return np.asarray(np.exp(-self.rate * whole("n", n)) / (1 + math.exp(-self.rate)))

    def guarantee(self, change: int) -> tuple[float, float]:
        """Return (ε·change/d, 0)."""
        return self.rate * validation.integer("change", change, 0), 0.0

    def magnitude(self, uniform: Array) -> Array:
        """Return |N| from uniform numbers in (0, 1]."""
        k = np.floor(np.log(uniform * (1 + math.exp(-self.rate)) / 2) / -self.rate)
        return np.maximum(k, 0.0)
