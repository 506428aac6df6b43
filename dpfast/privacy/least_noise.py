"""The least noise of any law, and what any unbiased mechanism must vary by: from here lower bounds of errors start."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array
from dpfast.privacy.privacy import Privacy

_NODES = np.concatenate([np.linspace(0.0, 0.5, 513), np.geomspace(1e-13, 9e-4, 200)])  # of x; large ε bends near 0
_NODES.sort()
_MOST_TERMS = 2**16  # of a sum over tails
_NOTHING = 60.0  # an exponent that leaves nothing
_ROUNDING = 1e-11  # relative, taken off


def least_variance(privacy: Privacy) -> float:
    r"""Return V_*, rounded down: no noise on real numbers that hides a shift of 1 has a smaller variance.

    Without a δ it is that of two-sided geometric noise. With one it is less than that of the best noise on the
    integers:

        V_* = 4 ∫₀^½ min_{h ≥ 0} φ_x(h) dx,  φ_x(h) = Σ_k (x + k) R_k(T + h) + (1 - x + k) R_k(T - e^{-ε} h),

    T = (1 - δ)/(1 + e^ε), R_0(t) = t, R_{k+1} = max(0, e^{-ε}(R_k - δ)). The noise X may be taken symmetric. Then
    a = P(X ≥ x) and b = P(X ≥ 1 - x) satisfy b ≥ e^{-ε}(1 - a - δ), further tails fall no faster than R_k, and
    E X² = 4 ∫ x P(X ≥ x) dx.

    Examples
    --------
    >>> round(least_variance(Privacy(1)), 6), round(least_variance(Privacy(math.log(3), 0.05)), 5)
    (1.841347, 0.89022)
    """
    epsilon, delta = privacy.epsilon, privacy.delta
    q = math.exp(-epsilon)
    if q == 0.0:
        return 0.0
    geometric = 2 * q / math.expm1(-epsilon) ** 2
    if delta == 0.0:
        return geometric * (1 - _ROUNDING)
    # by group privacy X hides a shift of n at (nε, δ(1 + e^ε + ... + e^{(n-1)ε})), and X/n one of 1
    n = math.ceil(_count_terms(epsilon, delta) / _MOST_TERMS)
    grouped = delta * math.expm1(n * epsilon) / math.expm1(epsilon) if n > 1 else delta
    return min(geometric, n**2 * _integral(n * epsilon, grouped)) * (1 - _ROUNDING)


def least_deviation(privacy: Privacy) -> float:
    r"""Return 1/C, rounded down: what is published in the mean one apart varies by that much, by any mechanism.

    C² = 4r/(1 - r) with r = δ + (1 - δ) tanh²(ε/2). Every pair of laws that is (ε, δ)-indistinguishable is made of one
    pair on four outcomes (Kairouz, Oh and Viswanath 2015); by Cauchy and Schwarz the squared difference of two means is
    at most 4r times the variance of their mixture, which is the mean variance and a quarter of that square. It is
    reached by outcomes that are weighted 1 where the truth is told for certain, and tanh(ε/2) elsewhere.

    Examples
    --------
    >>> round(least_deviation(Privacy(1, 1e-6)), 5), round(1 / (2 * math.sinh(0.5)), 5)
    (0.95952, 0.95952)
    """
    epsilon, delta = privacy.epsilon, privacy.delta
    shown = delta + (1 - delta) * math.tanh(epsilon / 2) ** 2
    hidden = 4 * (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon)) ** 2  # 1 - r, with all its digits
    return math.sqrt(hidden / (4 * shown)) * (1 - _ROUNDING)


def _count_terms(epsilon: float, delta: float) -> int:
    """Count the k with R_k(t) > 0 for the largest t = 1 - δ, up to those that contribute nothing."""
    every = math.log1p((1 - delta) / delta * math.expm1(min(epsilon, _NOTHING))) / epsilon
    return math.floor(min(every, _NOTHING / epsilon)) + 1


def _integral(epsilon: float, delta: float) -> float:
    """Return 4 ∫₀^½ min φ_x dx, or less: φ_x is left out beyond the terms that are counted.

    φ is piecewise linear in h, so that its minimum is at a kink; and linear in x, so that the minimum is concave in x,
    and the trapezoidal rule is below the integral.
    """
    q, k = math.exp(-epsilon), np.arange(_count_terms(epsilon, delta))
    power = np.exp(-epsilon * k)  # R_k(t) = t q^k - δ (q + ... + q^k), as long as that is above 0
    lost = delta * q * np.expm1(-epsilon * k) / math.expm1(-epsilon)
    ends = lost / power
    first = (1 - delta) * q / (1 + q)
    h = np.unique(np.clip(np.concatenate([ends - first, (first - ends) / q]), 0.0, first / q))
    sums = [np.concatenate([[0.0], np.cumsum(x)]) for x in (power, lost, k * power, k * lost)]

    def sum_tails(t: Array) -> tuple[Array, Array]:
        n = np.searchsorted(ends, t)
        return t * sums[0][n] - sums[1][n], t * sums[2][n] - sums[3][n]

    (above, above_k), (below, below_k) = sum_tails(first + h), sum_tails(np.maximum(first - q * h, 0.0))
    start, slope = above_k + below + below_k, above - below
    least = np.array([(start + slope * x).min() for x in _NODES])
    return 4 * float(np.diff(_NODES) @ (least[1:] + least[:-1]) / 2)
