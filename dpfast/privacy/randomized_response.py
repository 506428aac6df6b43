"""Randomised response to two levels: the law of what is published for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpfast._support import validation


@dataclass(frozen=True)
class RandomizedResponse(validation.Frozen):
    r"""Tell with probability δ the level itself, for certain; else the level, or with 1/(1 + e^ε) the other one.

    It is the best memoryless randomiser of two levels: any other that is (ε, δ)-DP is a post-processing of it (Kairouz,
    Oh and Viswanath 2015, of the pair on four outcomes). With z = ±1 where the level is told and ± tanh(ε/2) elsewhere,
    and r = E z² = δ + (1 - δ) tanh²(ε/2), w = (low + high)/2 + (high - low) z/(2r) is the input plus white noise of the
    constant variance (high - low)² (1 - r)/(4r), uncorrelated with every input.

    Parameters
    ----------
    epsilon, delta : float
    low, high : float
        The levels; an input from their middle on counts as the upper one.

    Examples
    --------
    >>> round(RandomizedResponse(1.0, 1e-6, -0.5, 0.5).variance, 6)
    0.920669
    """

    epsilon: float
    delta: float
    low: float
    high: float
    kind: ClassVar[str] = "randomized response"

    def __post_init__(self) -> None:
        validation.number("epsilon", self.epsilon, above=0)
        validation.fraction("delta", self.delta)
        validation.number("high", self.high, above=validation.number("low", self.low))

    @property
    def span(self) -> float:
        """The distance of the levels."""
        return self.high - self.low

    @property
    def truth(self) -> float:
        """The probability δ + (1 - δ)/(1 + e^{-ε}) with which the level itself is told."""
        return self.delta + (1 - self.delta) / (1 + math.exp(-self.epsilon))

    @property
    def trust(self) -> float:
        """The number z that stands for a level that is not told for certain: tanh(ε/2)."""
        return math.tanh(self.epsilon / 2)

    @property
    def shown(self) -> float:
        """The share r = E z² of the input in z."""
        return self.delta + (1 - self.delta) * self.trust**2

    @property
    def variance(self) -> float:
        """The variance of w about the input; 1 - r is (1 - δ)/cosh²(ε/2), which loses no digits."""
        hidden = (1 - self.delta) / math.cosh(min(self.epsilon / 2, 350.0)) ** 2
        return self.span**2 * hidden / (4 * self.shown)
