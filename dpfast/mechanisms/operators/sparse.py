"""Matrices of few entries that are not zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.mechanisms.operators.operator_protocol import check_shape


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
