r"""Confidence intervals of means: of squared errors, which are skewed, of their differences, and of rare errors.

*Skewed errors.* Student's t takes a sample's mean and spread as independent. Where values are skewed to the right they
are not: a mean that is too small comes with a spread that is too small, and the upper end lies too low. Johnson (1978)
corrects t by the sample's skewness γ; Hall (1992) completes his correction to a cube, which is monotone and so has an
inverse whatever the sample:

    T = √n (x̄ - μ) / s,    k = γ / √n,    g(T) = T + k T² / 3 + k² T³ / 27 + k / 6

is much nearer to Student's t than T is. An interval here has the ends of g⁻¹(± t), or those of Student's t where they
are farther out: it is never narrower than Student's, as γ is an estimate too, and a bad one where values are few or
have heavy tails on both sides. A bootstrap would do about as well, but needs random numbers and a thousand times the
work. With 32 streams of 1,500 samples of the paper's example intervals are 7 % wider than Student's, with 512 streams
2 %.

*Rare errors.* A receiver that decides between levels errs in events, and where these are rare no spread tells what was
not seen: without any event it is zero. What is known then is the number of values with an event, which is binomial. A
value has an error event where it is more than one wrong decision makes (:class:`ErrorSizes`: ``smallest``). With
fewer than 16 such values, unless all are, the interval is

    low = p₁ · smallest,    high = p₂ · largest + (1 - p₂) · smallest,

(p₁, p₂) the exact binomial interval (Clopper-Pearson) of the probability of an event, and `largest` what no value can
exceed. Both ends hold whatever the distribution is, as E X ≥ P(X > a) a and E X ≤ P(X > a) b + P(X ≤ a) a for every X
between 0 and b. The upper end is mostly far above the error: so little is known from so few events.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dpfast._support.validation import Array

ENOUGH = 16  # values with an error event, from which on their spread tells the error


class ErrorSizes(NamedTuple):
    """The sizes between which errors of a receiver that decides between levels lie: they tell an error event from none.

    Attributes
    ----------
    smallest : float
        The mean squared error that one wrong decision makes, by half the least distance of two levels: what is more
        has an error event.
    largest : float
        The mean squared error of the worst decision at every time: no value exceeds it.
    """

    smallest: float
    largest: float


def mean_interval(values: Array, level: float | Array) -> tuple[Array, Array, Array]:
    """Estimate the mean of independent values along the last axis, with the ends (low, high) of its interval.

    The interval covers the mean with probability 1 - `level`.
    """
    n, mean = values.shape[-1], values.mean(axis=-1)
    away = values - mean[..., None]
    scale = np.abs(away).max(axis=-1)  # squares of small values would vanish
    away /= np.where(scale > 0, scale, 1)[..., None]
    squares = away * away
    variance = np.where(scale > 0, squares.mean(axis=-1), 1)
    skewness = (squares * away).mean(axis=-1) / (variance * np.sqrt(variance)) / math.sqrt(n)
    quantile = special.stdtrit(n - 1, 1 - np.asarray(level) / 2)
    error = scale * np.sqrt(variance / (n - 1))
    below = np.maximum(quantile, _inverse(quantile, skewness))
    above = np.maximum(quantile, -_inverse(-quantile, skewness))
    return mean, mean - error * below, mean + error * above


def _inverse(x: Any, k: Array) -> Array:
    """Compute Hall's g⁻¹(x) = 3 ((1 + k (x - k / 6))^(1/3) - 1) / k, without its division by k."""
    x = x - k / 6
    root = np.cbrt(1 + k * x)
    return np.asarray(3 * x / (root * root + root + 1))


def count_events(values: Array, sizes: ErrorSizes) -> int:
    """Count the values with an error event."""
    return int(np.count_nonzero(values > sizes.smallest))


def is_rare(values: Array, sizes: ErrorSizes | None) -> bool:
    """Tell whether too few values have an error event for their spread to tell the error."""
    return sizes is not None and count_events(values, sizes) < min(ENOUGH, len(values))


def mse_interval(values: Array, level: float, sizes: ErrorSizes | None = None) -> tuple[float, float]:
    """Estimate the confidence interval (low, high) of a mean squared error from independent ones; it is not below zero.

    Parameters
    ----------
    values : array, (n,)
    level : float
        The probability that the interval misses the mean.
    sizes : ErrorSizes, optional
        For a receiver that decides between levels.
    """
    if sizes is not None and is_rare(values, sizes):
        return _rare_interval(count_events(values, sizes), len(values), level, sizes)
    ends = mean_interval(values, level)[1:]
    return max(0.0, float(ends[0])), float(ends[1])


def _rare_interval(n_events: int, n: int, level: float, sizes: ErrorSizes) -> tuple[float, float]:
    least = float(special.betaincinv(n_events, n - n_events + 1, level / 2)) if n_events else 0.0
    most = float(special.betaincinv(n_events + 1, n - n_events, 1 - level / 2))
    return least * sizes.smallest, most * sizes.largest + (1 - most) * sizes.smallest


def difference_interval(
    first: Array,
    second: Array,
    level: float,
    sizes: tuple[ErrorSizes | None, ErrorSizes | None] = (None, None),
) -> tuple[float, float]:
    """Estimate the confidence interval (low, high) of a difference of mean squared errors from independent pairs.

    Where errors of one of them are rare, each has an interval of its own, at half the level.
    """
    pairs = [(x, size) for x, size in zip((first, second), sizes, strict=True)]
    if not any(is_rare(*x) for x in pairs):
        ends = mean_interval(first - second, level)[1:]
        return float(ends[0]), float(ends[1])
    (low, high), (low_of_second, high_of_second) = (mse_interval(x, level / 2, size) for x, size in pairs)
    return low - high_of_second, high - low_of_second


def rmse_interval(mse: Array, confidence: float, sizes: ErrorSizes | None = None) -> tuple[float, float]:
    """Estimate the confidence interval (low, high) of an RMSE from independent mean squared errors."""
    low, high = mse_interval(mse, 1 - confidence, sizes)
    return math.sqrt(low), math.sqrt(high)
