"""The Gaussian mechanism: the least noise for a guarantee (Balle and Wang 2018), and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from dpfast._support.root_finding import root_between
from dpfast._support.safe_rounding import round_up
from dpfast._support.validation import Array

LOG_DELTA_MARGIN = 1e-12  # relative, ten times what ln δ may be wrong by
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def gaussian_log_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return the natural logarithm of the δ of a Gaussian mechanism."""
    mu = 1 / noise_multiplier
    return log_delta_beyond(epsilon * noise_multiplier - mu / 2, mu)


def log_delta_beyond(threshold: float, mu: float) -> float:
    r"""Return ln δ of a μ-GDP mechanism whose privacy loss is above ε where X ~ N(0, 1) is above x.

    Here x is the threshold, ε = μ(x + μ/2). δ = Φ(-x) - e^ε Φ(-x - μ) (Balle and Wang 2018, Theorem 8) is, as
    φ(x) = e^ε φ(x + μ), Φ(-x) - φ(x) M(x + μ) = φ(x)·(M(x) - M(x + μ)) with Mills' ratio M(x) = Φ(-x)/φ(x): no
    cancellation of exponentially small terms. The relative error is below 1e-13 for all μ > 0 and ε ≥ 0.
    """
    log_density = -threshold * threshold / 2 - math.log(2 * math.pi) / 2
    if threshold < -1:  # then μ > 2
        log_tail = float(special.log_ndtr(-threshold))
        return log_tail + math.log1p(-math.exp(log_density - log_tail) * _mills(threshold + mu))
    if mu > 1:
        return log_density + math.log(_mills(threshold) - _mills(threshold + mu))
    slopes = _mills_slope(threshold + mu / 2 * (1 + _NODES))
    return log_density + math.log(mu / 2 * float(slopes @ _WEIGHTS))


def log_deltas_beyond(thresholds: Array, mu: float) -> Array:
    """Return :func:`log_delta_beyond` of many thresholds, none below -μ/2 by more than rounding."""
    log_density = -thresholds * thresholds / 2 - math.log(2 * math.pi) / 2
    if mu <= 1:
        slopes = _mills_slope(thresholds[:, None] + mu / 2 * (1 + _NODES))
        return np.asarray(log_density + np.log(mu / 2 * (slopes @ _WEIGHTS)))
    result, low = np.empty_like(thresholds), thresholds < -1
    x, density = thresholds[low], log_density[low]
    log_tail = special.log_ndtr(-x)
    result[low] = log_tail + np.log1p(-np.exp(density - log_tail) * _mills(x + mu))
    x, density = thresholds[~low], log_density[~low]
    result[~low] = density + np.log(_mills(x) - _mills(x + mu))
    return result


def _mills(x: Array | float) -> Any:
    """Return Mills' ratio M(x) = Φ(-x)/φ(x)."""
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def _mills_slope(x: Array) -> Array:
    """Return -M'(x) = 1 - x M(x), by the series 1/x² - 3/x⁴ + 15/x⁶ - ... where the difference would cancel."""
    square = 1 / np.maximum(x * x, 400.0)
    series = np.ones_like(x)
    for odd in range(19, 1, -2):
        series = 1 - odd * square * series
    return np.where(x > 20, square * series, 1 - x * _mills(x))


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest κ of a Gaussian mechanism that is (epsilon, delta)-DP, rounded up by 1e-9."""
    log_delta = math.log(delta)

    def gap(log_kappa: float) -> float:
        return gaussian_log_delta(math.exp(log_kappa), epsilon) - log_delta

    low = 0.0
    while gap(low) < 0:
        low -= 1
    return round_up(math.exp(_root(gap, low)))


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Return the smallest epsilon of a Gaussian mechanism at this delta, rounded up."""
    mu = 1 / noise_multiplier
    epsilon = round_up(mu * (threshold_above(math.log(delta), mu) + mu / 2))
    if epsilon <= 0:
        raise ValueError(
            f"delta must be smaller: with noise of {noise_multiplier:g} per unit of sensitivity "
            f"every epsilon above 0 has a delta below {delta:g}"
        )
    return epsilon


def threshold_above(log_delta: float, mu: float) -> float:
    """Return the smallest x ≥ -μ/2 (ε ≥ 0) at which ln δ of a μ-GDP mechanism is at most `log_delta`, rounded up."""

    def gap(threshold: float) -> float:
        return log_delta_beyond(threshold, mu) * (1 - LOG_DELTA_MARGIN) - log_delta

    low = max(-mu / 2, -10.0)  # a float δ below 1 has x > -9
    return low if gap(low) <= 0 else _root(gap, low) + 1e-12


def _root(gap: Callable[[float], float], low: float) -> float:
    """Return the root above `low` of a decreasing function, to 1e-14."""
    high = low + 1
    while gap(high) > 0:
        high += 1
    return root_between(gap, low, high, xtol=1e-14, rtol=1e-14)
