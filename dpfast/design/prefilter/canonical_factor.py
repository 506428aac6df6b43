"""Canonical spectral factors, and models whose zeros are moved off the circle."""

from __future__ import annotations

import math

import numpy as np

from dpfast.filters.filter import Filter
from dpfast.filters.roots import multiply_roots
from dpfast.signals.arma import ARMA
from dpfast.signals.model import Model

_NONE = 1e-300  # replaces the modulus of a root at zero


def canonical_factor(filter: Filter) -> tuple[float, Filter]:
    r"""Return the canonical spectral factor of |H|²: γ² and the monic, causal, minimum-phase Q with |H|² = γ²|Q|².

    By Jensen's formula γ² = exp<ln|H|²> = (leading coefficient)² Π max(1, |zero|)².
    """
    lead = np.trim_zeros(filter.b, "f")[0]
    modulus = np.abs(filter.zeros)
    reflected = np.where(modulus > 1, filter.zeros / np.maximum(modulus, 1) ** 2, filter.zeros)
    gain = float(lead * np.prod(np.maximum(1.0, modulus))) ** 2
    _, sections, recursion = filter.factors
    poles = sections.copy()
    poles[:, :3] = [1.0, 0.0, 0.0]
    return gain, Filter.from_factors(multiply_roots(reflected), poles, recursion)


def move_zeros_off_circle(model: Model, distance: float) -> Model:
    """Return the model with those zeros of its spectrum that are nearer to the circle moved to a distance inside.

    For a zero on the circle that adds (1 - r)²/r to the factor |1 - e^{-iω}|², r its new modulus, at all angles.
    """
    gain, monic = canonical_factor(model.shaping)
    modulus = np.maximum(np.abs(monic.zeros), _NONE)
    ratio = np.minimum(1, (1 - distance) / modulus)
    _, sections, recursion = monic.factors
    taps = math.sqrt(gain / np.prod(ratio)) * multiply_roots(monic.zeros * ratio)
    return ARMA.from_shaping(Filter.from_factors(taps, sections, recursion), mean=model.mean)
