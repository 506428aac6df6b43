"""Prefilters of fewer channels than inputs that see no more of the inputs than a few sums of them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix

_NOTHING = 1e-9  # of the largest column, or of a weight
_LARGEST = 64  # denominator of a weight


class InputMixture(NamedTuple):
    """The sums of inputs that a system G of q channels sees: G = K M, with numbers in M alone.

    Attributes
    ----------
    columns : list of int, (q,)
        Inputs that K is of: the columns of G there are those of K.
    weights : array of int64, (q, m)
        M times `unit`.
    unit : int
    """

    columns: list[int]
    weights: NDArray[np.int64]
    unit: int


def find_mixture(system: FilterMatrix) -> InputMixture | None:
    """Find the sums of inputs that a system sees, as many as it has outputs; None where there are no such sums.

    So it is of the total of all inputs, and of differences of inputs, behind whatever filters: whole multiples of their
    weights can stand before a filter that is rounded, which is undone as if there were no more inputs than outputs.

    Parameters
    ----------
    system : FilterMatrix

    Examples
    --------
    >>> from dpfast.filters.filter import Filter
    >>> found = find_mixture(FilterMatrix([[Filter([1], [1, -0.5]), Filter([0.5], [1, -0.5])]]))
    >>> found.columns, found.weights.tolist(), found.unit
    ([0], [[2, 1]], 2)
    >>> find_mixture(FilterMatrix([[Filter([1], [1, -0.5]), Filter([1], [1, -0.8])]])) is None
    True
    """
    q = system.shape[0]
    responses = system.impulse(2 * system.order + 1)  # of two entries no other ones begin alike
    stacked = np.moveaxis(responses, 1, -1).reshape(-1, system.shape[1])
    triangle, order = linalg.qr(stacked, mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    if np.count_nonzero(sizes > _NOTHING * sizes[0]) != q:
        return None
    columns = sorted(int(i) for i in order[:q])
    weights: Array = np.linalg.lstsq(stacked[:, columns], stacked, rcond=None)[0].astype(np.float64)
    return _make_whole(columns, weights)


def _make_whole(columns: list[int], weights: Array) -> InputMixture | None:
    """Return weights as whole multiples of a unit; None where they are no simple fractions."""
    simple = [[Fraction(x).limit_denominator(_LARGEST) for x in row] for row in weights.tolist()]
    if np.abs(weights - np.array(simple, float)).max() > _NOTHING * max(1.0, np.abs(weights).max()):
        return None
    unit = math.lcm(*(x.denominator for row in simple for x in row))
    if unit > _LARGEST:
        return None
    return InputMixture(columns, np.array([[int(x * unit) for x in row] for row in simple], np.int64), unit)
