"""Noise of the laws that releases draw exactly, imitated by a seed: for what is compared with v, never for v."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.table_law import TableLaw


def imitate_noise(law: GeometricRate | TableLaw, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw values of a law, up to the rounding of its probabilities."""
    if isinstance(law, GeometricRate):
        leave = -math.expm1(-float(law.per_step))
        return np.asarray(rng.geometric(leave, shape) - rng.geometric(leave, shape), np.float64)
    cumulative = np.cumsum([float(x) for x in law.probabilities])
    drawn = np.searchsorted(cumulative[:-1], rng.random(shape), side="right")
    return np.asarray(law.values, np.float64)[drawn]


def noise_kurtosis(law: GeometricRate | TableLaw) -> float:
    """Return the excess of the kurtosis of noise about 0 over that of normal noise.

    Examples
    --------
    >>> round(noise_kurtosis(GeometricRate.below(1.0, 1)), 4)
    3.5431
    """
    if isinstance(law, GeometricRate):
        return 3 + 1 / law.variance
    return excess_of_table(np.asarray(law.values, np.float64), np.array([float(x) for x in law.probabilities]))


def excess_of_table(values: Array, probabilities: Array) -> float:
    """Return the excess kurtosis of values of mean zero over that of normal ones."""
    return float(probabilities @ values**4) / float(probabilities @ values**2) ** 2 - 3
