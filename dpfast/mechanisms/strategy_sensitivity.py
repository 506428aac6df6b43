"""Bound how much the events of one person change what a strategy publishes over a horizon."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array
from dpfast.mechanisms.operators.operator_protocol import Operator
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.sensitivity import several_events


def strategy_sensitivity(strategy: Operator, privacy: Privacy, *, l1: bool) -> float:
    """Return the ℓ₁ or the ℓ₂ sensitivity of a strategy, by the formulas of ``MatrixMechanism.sensitivity``."""
    horizon = strategy.shape[1]
    fitting = min(privacy.max_events, 1 + (horizon - 1) // privacy.min_separation)
    if l1:
        return float(privacy.max_change * fitting * strategy.largest_l1())
    products = strategy.products()
    squared = several_events(fitting, privacy.min_separation, products, 0.0, products[0], math.inf)
    if (c := getattr(strategy, "coefficients", None)) is not None and (np.diff(c, append=0.0) <= 0).all():
        squared = min(squared, first_columns(c, fitting, privacy.min_separation))
    return float(privacy.max_change * math.sqrt(squared))


def first_columns(c: Array, m: int, b: int) -> float:
    """Return the squared norm of the sum of m columns of a Toeplitz strategy, b apart, from the first on.

    The sum is that of the last m of every b-th coefficient, as the end of one block of m and the beginning of the next:
    no differences, and as many operations as coefficients.
    """
    n_rows = -(-len(c) // b)
    m = min(m, n_rows)
    blocks = np.zeros((-(-n_rows // m), m, b))
    blocks.reshape(-1)[: len(c)] = c
    sums = np.cumsum(blocks, axis=1)
    ends = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1]
    sums[1:, :-1] += ends[:-1, 1:]
    column = sums.reshape(-1)[: len(c)]
    return float(column @ column)
