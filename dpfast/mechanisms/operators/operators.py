"""What strategies and reconstructions may be: matrices that know their columns, for the sensitivity, and their rows.

Tuples of plain arrays and numbers, which go through files and between processes by their names.
"""

from __future__ import annotations

import typing
import weakref
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import convolve_series

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


class Convolution(NamedTuple):
    """A lower-triangular Toeplitz matrix."""

    coefficients: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns, as many as there are coefficients."""
        return len(self.coefficients), len(self.coefficients)

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, in FFTs."""
        return convolve_series(self.coefficients, x)

    def products(self) -> Array:
        """Bound them by autocorrelations of the magnitudes.

        That is exact where no coefficient is negative and none is larger than before.
        """
        size = 1 << (2 * len(self.coefficients) - 1).bit_length()
        r = np.fft.irfft(np.abs(np.fft.rfft(np.abs(self.coefficients), size)) ** 2, size)[: len(self.coefficients)]
        energy = float(self.coefficients @ self.coefficients)
        r += _ROUNDING * energy
        r[0] = energy
        return _largest_from_here(np.minimum(r, energy))

    def largest_l1(self) -> float:
        """Return the ℓ₁ norm of the first column, which is the largest."""
        return float(np.abs(self.coefficients).sum())

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, of which row t has the first t + 1 coefficients."""
        return np.cumsum(self.coefficients**2)

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        from scipy.linalg import toeplitz

        return np.asarray(toeplitz(self.coefficients, np.zeros(len(self.coefficients))))

    def check(self) -> None:
        """Refuse coefficients that are not of one dimension."""
        check_shape("coefficients", self.coefficients, 1)


_ROUNDING = 1e-13  # of FFTs, relative to the energy


class Dense(NamedTuple):
    """A matrix of any entries."""

    entries: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of the array."""
        return self.entries.shape[0], self.entries.shape[1]

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences by a matrix product."""
        return np.asarray(x @ self.entries.T)

    def products(self) -> Array:
        """Return the largest products of columns, exactly, from all of them."""
        gram = np.abs(self.entries.T @ self.entries)
        return _largest_from_here(np.array([gram.diagonal(lag).max() for lag in range(len(gram))]))

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, exactly."""
        return float(np.abs(self.entries).sum(axis=0).max())

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, exactly."""
        return np.asarray(np.einsum("ij,ij->i", self.entries, self.entries))

    def matrix(self) -> Array:
        """Return the array."""
        return self.entries

    def check(self) -> None:
        """Refuse an array that is not of two dimensions."""
        check_shape("entries", self.entries, 2)


class Sparse(NamedTuple):
    """A matrix in compressed rows, as of :class:`scipy.sparse.csr_array`, sorted by columns."""

    data: Array
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    n_columns: int

    @classmethod
    def of(cls, matrix: Any) -> Sparse:
        """Make one of a sparse matrix of scipy's."""
        from scipy.sparse import csr_array

        rows: Any = csr_array(matrix)
        rows.sum_duplicates()
        return cls(rows.data.astype(float), rows.indices.astype(np.int64), rows.indptr.astype(np.int64), rows.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.indptr) - 1, self.n_columns

    def apply(self, x: Array) -> Array:
        """Apply the matrix to sequences, entry by entry, one sequence like the other."""
        from scipy.sparse import csr_array

        rows: Any = csr_array((self.data, self._columns, self.indptr.astype(np.int64)), shape=self.shape)
        flat = x.reshape(-1, self.n_columns)
        return np.ascontiguousarray((rows @ flat.T).T).reshape(*x.shape[:-1], self.shape[0])

    def products(self) -> Array:
        """Bound them by rows: columns s and t share those that reach over both.

        A row counts up to the distance of its ends.

        At a distance, the sum over those rows of an entry's magnitude times the row's largest: exact for trees.
        """
        sizes, columns, rows = np.abs(self.data), self._columns, self._rows
        ends = self.indptr.astype(np.int64)
        filled = np.flatnonzero(ends[1:] > ends[:-1])
        largest, reach = np.zeros(self.shape[0]), np.full(self.shape[0], -1)
        largest[filled] = np.maximum.reduceat(sizes, ends[filled])
        reach[filled] = columns[ends[filled + 1] - 1] - columns[ends[filled]]
        shares, energy = sizes * largest[rows], self._squared_columns.max()
        sums, order = np.zeros(self.n_columns), np.argsort(-reach[rows], kind="stable")
        reaches, largest_sums, so_far = [], [], 0.0
        for same in np.split(order, np.flatnonzero(np.diff(reach[rows][order])) + 1):
            np.add.at(sums, columns[same], shares[same])
            so_far = max(so_far, float(sums[columns[same]].max()))
            reaches.append(int(reach[rows[same[0]]]))
            largest_sums.append(so_far)
        # A distance is bounded by the rows that reach as far: the last of them, as they come from far to near
        last = len(reaches) - np.searchsorted(reaches[::-1], np.arange(self.n_columns))
        bounds = np.append(0.0, largest_sums)[last]
        bounds[0] = energy
        return np.asarray(np.minimum(bounds, energy))

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, exactly."""
        return float(np.bincount(self._columns, np.abs(self.data), self.n_columns).max())

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, exactly."""
        return np.asarray(np.bincount(self._rows, self.data**2, self.shape[0]))

    def matrix(self) -> Array:
        """Return all entries, for a short horizon."""
        dense = np.zeros(self.shape)
        dense[self._rows, self._columns] = self.data
        return dense

    def check(self) -> None:
        """Refuse rows that are not sorted, and entries that are there twice."""
        data, indices, indptr, n_columns = self
        for name, array in (("data", data), ("indices", indices), ("indptr", indptr)):
            check_shape(name, array, 1)
        if indptr[0] != 0 or (np.diff(indptr) < 0).any() or not len(data) == len(indices) == indptr[-1]:
            raise ValueError("indptr must begin with 0, never fall, and end with the number of entries")
        same_row = np.diff(self._rows) == 0
        if (indices < 0).any() or (indices >= n_columns).any() or (np.diff(indices) < 1)[same_row].any():
            raise ValueError("indices must be columns, and grow within each row: Sparse.of brings them into this form")

    @property
    def _columns(self) -> NDArray[np.int64]:
        return self.indices.astype(np.int64)

    @property
    def _rows(self) -> NDArray[np.int64]:
        ends = self.indptr.astype(np.int64)
        return np.repeat(np.arange(self.shape[0]), ends[1:] - ends[:-1])

    @property
    def _squared_columns(self) -> Array:
        return np.asarray(np.bincount(self._columns, self.data**2, self.n_columns), float)


def _largest_from_here(r: Array) -> Array:
    """Return the largest of each and all that come after."""
    return np.maximum.accumulate(r[::-1])[::-1]
