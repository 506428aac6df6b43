"""What strategies and reconstructions may be: matrices that know their columns, for the sensitivity, and their rows.

Tuples of plain arrays and numbers, which go through files and between processes by their names.
"""

from __future__ import annotations

import typing
import weakref
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.validation import Array

# those that operators have already, by their ids
_OWN: weakref.WeakValueDictionary[int, NDArray[Any]] = weakref.WeakValueDictionary()


class NotLinearError(Exception):
    """A reconstruction that is no matrix: only a simulation tells its error."""


class Operator(Protocol):
    """A linear map of sequences; a reconstruction that is not linear says so where it is asked for a matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    def apply(self, x: Array) -> Array:
        """Apply the map to sequences: (..., columns) to (..., rows)."""

    def products(self) -> Array:
        """Bound ⟨column s, column t⟩ by size where s and t are ≥ 0, 1, ... apart: (columns,), never growing.

        The first, the largest squared ℓ₂ norm of a column, is exact.
        """

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column."""

    def squared_rows(self) -> Array:
        """Return the squared ℓ₂ norms of the rows."""

    def matrix(self) -> Array:
        """Return all entries (rows, columns)."""

    def check(self) -> None:
        """Refuse arrays that are no such matrix, of which the norms would not be true."""


def own_operator(name: str, operator: Any) -> Any:
    """Return the operator with arrays of its own that nobody can change, as the noise is computed from them once.

    Raises
    ------
    ValueError
        For what is no operator, and for arrays that are not finite or no such matrix.
    """
    if not (isinstance(operator, tuple) and hasattr(operator, "check")):
        raise validation.fail(
            name, "an operator of dpfast.mechanisms.operators, such as Dense or Convolution", operator
        )
    kind: Any = type(operator)
    hints = typing.get_type_hints(kind)
    own = [_own_array(f"{name}.{field}", x, hints[field]) for field, x in zip(kind._fields, operator, strict=True)]
    made = operator if all(x is y for x, y in zip(own, operator, strict=True)) else kind(*own)
    try:
        made.check()
    except ValueError as error:
        raise ValueError(f"{name} cannot be used: {error}") from None
    return made


def _own_array(name: str, value: Any, hint: Any) -> Any:
    if hint not in (Array, NDArray[np.int64]):
        return value
    if _OWN.get(id(value)) is value:
        return value
    found = validation.array(name, value)  # a copy of read-only arrays too: views of before may still be written to
    own = validation.freeze(found if hint == Array else found.astype(np.int64))
    validation.check_size(name, own)
    _OWN[id(own)] = own
    return own


def check_shape(name: str, array: NDArray[Any], ndim: int) -> None:
    """Refuse an array of other dimensions, or without entries."""
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim > 1)} and not be empty, got {array.shape}")


def largest_from_here(r: Array) -> Array:
    """Return the largest of each and all that come after."""
    return np.maximum.accumulate(r[::-1])[::-1]
