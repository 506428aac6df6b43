"""The discrete canonical noise: the least variance of all integer noises at (ε, δ)."""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise, check_rate, whole

_SUMMED = 2**16  # terms of a variance
_NOTHING = 60.0  # an exponent that leaves nothing


@dataclass(frozen=True)
class DiscreteCanonical(IntegerNoise):
    r"""Bounded noise of which P(N ≥ 1) = (1 - δ)/(1 + e^ε) and P(N ≥ k+1) = max(0, e^{-ε}(P(N ≥ k) - δ)).

    Of all integer noises that are (ε, δ)-DP for a change of one it has the least variance (Awan and Ramasethu 2023). A
    change of k steps costs (kε, δ(1 + e^ε + ... + e^{(k-1)ε})), and no less up to k = `largest`. Its support is
    bounded: with a probability that δ allows, a value is revealed for certain.

    Examples
    --------
    >>> noise = DiscreteCanonical(math.log(3), 0.05)
    >>> noise.largest, round(noise.variance, 6)
    (3, 0.891667)
    """

    epsilon: float
    delta: float
    steps: int = field(default=1, init=False, repr=False)
    kind: ClassVar[IntegerKind] = "canonical"

    def __post_init__(self) -> None:
        check_rate(self.epsilon, 1)
        validation.number("delta", self.delta, above=0, below=1)
        if self._lost < sys.float_info.min:
            raise ValueError(
                f"delta must be at least {sys.float_info.min:.2g} times e^epsilon, got {self.delta:g} at an epsilon of "
                f"{self.epsilon:g}: take geometric noise, which is as good then"
            )

    @property
    def _first(self) -> float:
        """The probability P(N ≥ 1)."""
        return (1 - self.delta) * math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))

    @property
    def _lost(self) -> float:
        """δ e^{-ε}, by which the tails fall at every step, beside the factor e^{-ε}."""
        return self.delta * math.exp(-self.epsilon)

    @functools.cached_property
    def _limit(self) -> float:
        """The fixed point -T* = δ/(e^ε - 1) of the recursion of the tails, which lies below zero."""
        return self._lost / -math.expm1(-self.epsilon)

    @functools.cached_property
    def largest(self) -> int:
        """The largest |n| that can be drawn."""
        n = max(1, math.ceil(math.log1p(self._first / self._limit) / self.epsilon))
        while self._tail(n) <= 0:
            n -= 1
        while self._tail(n + 1) > 0:
            n += 1
        return n

    def _tail(self, k: Any) -> Any:
        """Return T_1 e^{-ε(k-1)} - δ e^{-ε} (1 - e^{-ε(k-1)})/(1 - e^{-ε}), below zero beyond `largest`."""
        exponent = -self.epsilon * (k - 1)
        return self._first * np.exp(exponent) + self._limit * np.expm1(exponent)

    @functools.cached_property
    def variance(self) -> float:
        """2 Σ (2k - 1) P(N ≥ k), of which an integral by Gauss and Legendre stands for many terms.

        Σ f(k) over 1 ... n is ∫ f from ½ to n + ½ less the difference of f' there over 24 (Euler and Maclaurin), but
        for what is n⁴ times smaller.
        """
        n = min(self.largest, math.ceil(_NOTHING / self.epsilon))
        if n <= _SUMMED:
            k = np.arange(1.0, n + 1)
            return float(2 * ((2 * k - 1) @ self._tail(k)))
        nodes, weights = np.polynomial.legendre.leggauss(64)
        k = 0.5 + n * (nodes + 1) / 2
        integral = n / 2 * weights @ ((2 * k - 1) * self._tail(k))
        falling = self.epsilon * math.exp(-self.epsilon * (n - 0.5)) * (self._first + self._limit)
        ends = 2 * self._tail(n + 0.5) - 2 * n * falling - 2 * self._tail(0.5)
        return float(2 * (integral - ends / 24))

    def log_probability(self, n: ArrayLike) -> Array:
        """Return ln P(N = n) of integers, minus infinity beyond `largest`."""
        size = np.abs(whole("n", n))
        q = math.exp(-self.epsilon)
        step = math.log(self._first * -math.expm1(-self.epsilon) + self._lost)  # from one tail to the next
        log_p = step - self.epsilon * (size - 1.0)
        log_p[size == 0] = math.log((-math.expm1(-self.epsilon) + 2 * self._lost) / (1 + q))
        log_p[size == self.largest] = math.log(self._tail(self.largest))
        log_p[size > self.largest] = -math.inf
        return log_p

    def tail(self, n: ArrayLike) -> Array:
        """Return P(N ≥ n) of integers n ≥ 1."""
        k = whole("n", n)
        return np.where(k <= self.largest, self._tail(k), 0.0)

    def guarantee(self, change: int) -> tuple[float, float]:
        """Return (kε, min(1, δ(1 + e^ε + ... + e^{(k-1)ε}))) for a change of k steps."""
        k = validation.integer("change", change, 0)
        if k * self.epsilon > 700:
            return k * self.epsilon, 1.0
        delta = self.delta * math.expm1(k * self.epsilon) / math.expm1(self.epsilon)
        return k * self.epsilon, min(1.0, delta)

    def magnitude(self, uniform: Array) -> Array:
        """Return |N| from uniform numbers in (0, 1]."""
        half = uniform / 2
        ratio = np.maximum((self._first - half) / (half + self._limit), 0.0)
        k = np.minimum(np.floor(np.log1p(ratio) / self.epsilon) + (half <= self._first), self.largest)
        k = k + ((k < self.largest) & (half <= self._tail(k + 1)))  # where it was rounded
        return np.asarray(k - ((k > 0) & (half > self._tail(np.maximum(k, 1)))))
