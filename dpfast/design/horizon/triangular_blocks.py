"""Products of lower-triangular matrices, and of others that are zero far above the diagonal, by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array

_SIZE = 128  # rows and columns of a block


class TriangularBlocks:
    """The blocks of square matrices, and which of them can be other than zero where a mask keeps so many to the left.

    Attributes
    ----------
    strips : list of (int, int)
        First row of a strip and first row after it; the same for columns.
    first : list of int
        The first row that keeps anything in the columns of each strip.
    reach : list of int
        How many columns the rows of each strip keep.
    """

    def __init__(self, kept: NDArray[np.bool_]) -> None:
        n = len(kept)
        self.strips = [(i, min(i + _SIZE, n)) for i in range(0, n, _SIZE)]
        columns = np.broadcast_to(kept, (n, n)).sum(axis=1)  # they grow with the rows
        self.first = [int(np.searchsorted(columns, i, "right")) for i, _ in self.strips]
        self.reach = [int(columns[j - 1]) for _, j in self.strips]
        self._below = [j for _, j in self.strips]

    def of_lower(self, left: Array, right: Array) -> Array:
        """Multiply two lower-triangular matrices: a quarter of the multiplications of others."""
        return self._product(left, right, self._below)

    def of_kept(self, left: Array, right: Array) -> Array:
        """Multiply what the mask keeps by a lower-triangular matrix."""
        return self._product(left, right, self.reach)

    def _product(self, left: Array, right: Array, reach: list[int]) -> Array:
        product = np.zeros_like(left)
        for (i, j), end in zip(self.strips, reach, strict=True):
            for k, m in self.strips:
                if k < end:
                    np.matmul(left[i:j, k:end], right[k:end, k:m], out=product[i:j, k:m])
        return product


def inverse_of_root(gram: Array) -> Array:
    """Return L⁻¹ of L Lᵀ, of which the entries on and below the diagonal are given; they are overwritten.

    LAPACK counts columns first: what is below the diagonal here is above it there.
    """
    root = linalg.cholesky(gram.T, lower=False, overwrite_a=True, check_finite=False)
    invert: Any = linalg.get_lapack_funcs("trtri", (root,))
    return np.asarray(invert(root, lower=0, overwrite_c=True)[0].T)
