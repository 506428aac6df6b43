"""Matrices of any entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.mechanisms.operators.operator_protocol import check_shape, largest_from_here


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
        return largest_from_here(np.array([gram.diagonal(lag).max() for lag in range(len(gram))]))

    def largest_l1(self) -> float:
        """Return the largest ℓ₁ norm of a column, exactly."""
        return float(np.abs(self.entries).sum(axis=0).max())

    def squared_rows(self) -> Array:
        """Return the squared norms of the rows, exactly."""
        return np.asarray(np.einsum("ij,ij->i", self.entries, self.entries))

    def matrix(self) -> Array:
        """Return the entries, which are the matrix already."""
        return self.entries

    def check(self) -> None:
        """Refuse an array that is not of two dimensions."""
        check_shape("entries", self.entries, 2)
