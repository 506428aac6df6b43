"""Sums over all noises of one group, by a table: how much of them is above zero, and how much below."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array

_UNSEEN = 40.0  # e^-40 of the law is left out


class GroupSums(NamedTuple):
    """The sums that the law of a group adds up to behind its first noises.

    Attributes
    ----------
    remaining : array, (noises of the group, sizes, sizes)
        R_1 ... R_q relative to R_0(0, 0): R_q(a, b) is the law of noises of which a is above zero and b below, and R_j
        what it adds up to over all values of the noises behind the first j.
    log_total : float
        The logarithm of R_0(0, 0).
    """

    remaining: Array
    log_total: float

    def tails(self) -> Array:
        """Return P(x ≥ 1), P(x ≥ 2), ... of one noise."""
        return np.cumsum(self.remaining[0][:0:-1, 0])[::-1]

    def covariances(self) -> tuple[float, ...]:
        """Return the variance of a noise, and the covariance of two."""
        first, second = self.remaining[:2]
        size = np.arange(first.shape[0], dtype=np.float64)
        alike = second[:, 0] @ (size**3 - size) / 6  # of two that are above zero: Σ x (s - x) over x = 1 ... s - 1
        return float(2 * (size**2 @ first[:, 0])), float(2 * (alike - size @ second @ size))


def solve(rate: float, group: int, slack: int) -> GroupSums:
    """Return the sums of the law exp(-rate max(|Σ x|, Σ |x| - slack)) of the noises x of a group."""
    n = n_sizes(rate, group, slack)
    up, down = np.arange(n)[:, None], np.arange(n)
    tables = [np.exp(-rate * np.maximum(np.abs(up - down), up + down - slack))]
    for _ in range(group):
        later = tables[-1]
        above = np.cumsum(later[::-1], axis=0)[::-1]
        below = np.cumsum(later[:, ::-1], axis=1)[:, ::-1]
        tables.append(above + below - later)
    total = float(tables[-1][0, 0])
    return GroupSums(np.array(tables[-2::-1]) / total, math.log(total))


def n_sizes(rate: float, group: int, slack: int) -> int:
    """Count the sizes above and below zero that are told apart."""
    return math.ceil((_UNSEEN + 4 * group) / rate + slack) + 2
