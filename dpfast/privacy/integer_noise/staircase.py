"""Staircase noise: where a change of several steps is to be hidden at little privacy."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise, check_rate, whole


@dataclass(frozen=True)
class Staircase(IntegerNoise):
    r"""P(N = n) ∝ e^{-ε⌊|n|/d⌋}, times e^{-ε} where |n| mod d ≥ r: ε-DP for every change of at most d steps.

    At d = 1 it is the two-sided geometric noise; at d ≥ 2 and ε ≥ 2 its standard deviation is 5 to 40 % less (Geng and
    Viswanath 2014). A change by fewer steps than d may cost the full ε, and changes in several draws cost ε each: it is
    no law for several events of one person, unless each is paid for.

    Parameters
    ----------
    epsilon : float
    steps : int
        d.
    high : int, optional
        r, how many values of each stair are the likelier ones, 1 ... d; by default the one of least variance.

    Examples
    --------
    >>> noise = Staircase(3.0, 2)
    >>> noise.high, round(noise.variance, 6), noise.guarantee(1)
    (1, 0.527762, (3.0, 0.0))
    """

    epsilon: float
    steps: int
    high: int | None = None
    delta: float = field(default=0.0, init=False, repr=False)
    kind: ClassVar[IntegerKind] = "staircase"

    def __post_init__(self) -> None:
        d = validation.integer("steps", self.steps, 1, MOST_STEPS)
        check_rate(self.epsilon, d)
        if self.high is None:
            variances = _variance(self.epsilon, d, np.arange(1.0, d + 1))
            object.__setattr__(self, "high", 1 + int(np.argmin(variances)))
        validation.integer("high", self.high, 1, d)

    @property
    def period(self) -> int:
        """The integers of a stair."""
        return self.steps

    @property
    def _r(self) -> int:
        assert self.high is not None  # __post_init__ has found it
        return self.high

    @functools.cached_property
    def _total(self) -> float:
        """The sum of the weights e^{-ε...} of all integers."""
        return float(_total(self.epsilon, self.steps, self._r))

    @functools.cached_property
    def variance(self) -> float:
        """The variance, from sums over one stair and geometric sums over the stairs."""
        return float(_variance(self.epsilon, self.steps, self._r))

    def log_probability(self, n: ArrayLike) -> Array:
        """Return ln P(N = n) of integers."""
        stair, place = np.divmod(np.abs(whole("n", n)), self.steps)
        return -self.epsilon * (stair + (place >= self._r)) - math.log(self._total)

    def tail(self, n: ArrayLike) -> Array:
        """Return P(N ≥ n) of integers n ≥ 1."""
        stair, place = np.divmod(whole("n", n), self.steps)
        q, low = math.exp(-self.epsilon), self.steps - self._r
        stair_weight = self._r + low * q
        rest = np.maximum(self._r - place, 0) + np.minimum(self.steps - place, low) * q
        higher = q * stair_weight / -math.expm1(-self.epsilon)
        return np.asarray(np.exp(-self.epsilon * stair) * (rest + higher) / self._total)

    def guarantee(self, change: int) -> tuple[float, float]:
        """Return (ε⌈change/d⌉, 0): a change below d may cost as much as one of d."""
        k = validation.integer("change", change, 0)
        return self.epsilon * -(-k // self.steps), 0.0

    def magnitude(self, uniform: Array) -> Array:
        """Return |N| from uniform numbers in (0, 1]."""
        d, r, q = self.steps, self._r, math.exp(-min(self.epsilon, _ENOUGH))
        low = (d - r) * q
        above = (r + low) * q / -math.expm1(-self.epsilon)  # the weight of all stairs above one, in its units
        weight = uniform * (self._total / 2)  # of what is as large or larger, on one side
        stair = np.maximum(np.floor(np.log((above + r + low) / weight) / self.epsilon), 0.0)
        rest = np.minimum(weight * np.exp(self.epsilon * stair) - above, r + low)
        place = np.where(rest < low, np.ceil(d - rest / q) - 1, np.ceil(r + low - rest) - 1)
        return np.where(weight > self._total / 2 - 0.5, 0.0, np.maximum(stair * d + np.clip(place, 0, d - 1), 0.0))


MOST_STEPS = 10**6
_ENOUGH = 500.0  # no draw shows a larger ε


def _total(epsilon: float, d: int, r: Any) -> Any:
    """Sum the weights of all integers; zero counts once."""
    return 2 * (r + (d - r) * math.exp(-epsilon)) / -math.expm1(-epsilon) - 1


def _variance(epsilon: float, d: int, r: Any) -> Any:
    """Return the variance, from Σ (jd + i)² q^j = d² Σ j²q^j + 2di Σ jq^j + i² Σ q^j over the places i of a stair."""
    q, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    none, one, two = 1 / gap, q / gap**2, q * (1 + q) / gap**3
    count = r + (d - r) * q
    first = _sum(r) + q * (_sum(d) - _sum(r))
    second = _square_sum(r) + q * (_square_sum(d) - _square_sum(r))
    return 2 * (d * d * two * count + 2 * d * one * first + none * second) / _total(epsilon, d, r)


def _sum(n: Any) -> Any:
    """Return 0 + 1 + ... + (n - 1)."""
    return n * (n - 1) / 2


def _square_sum(n: Any) -> Any:
    """Return 0² + 1² + ... + (n - 1)²."""
    return (n - 1) * n * (2 * n - 1) / 6
