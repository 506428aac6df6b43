"""How much one event of a person changes the outputs of a matrix of filters, by which inputs it reaches."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Literal

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.filters.column_products import column_products
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.privacy.placed_events import largest_placed

Adjacency = Literal["one_input", "each_input_same_time", "each_input"]

_MOST_SIGNED = 16  # inputs whose signs are all tried
_KEPT = 16  # sensitivities of the last matrices: a design asks for the same one several times
_NEGLIGIBLE = 1e-14  # of a column: what is cut off of it, which is bounded and added


def matrix_sensitivity(prefilter: FilterMatrix, changes: Array, adjacency: Adjacency) -> float:
    """Return the largest ℓ₂ change of all outputs together by one event, or a bound of it that is sound.

    Parameters
    ----------
    prefilter : FilterMatrix
    changes : array, (m,)
        The largest change of each input.
    adjacency : {"one_input", "each_input_same_time", "each_input"}
        As for ``Privacy``.
    """
    return _find_sensitivity(prefilter, tuple(changes.tolist()), adjacency)


@functools.lru_cache(maxsize=_KEPT)
def _find_sensitivity(prefilter: FilterMatrix, largest: tuple[float, ...], adjacency: Adjacency) -> float:
    """Find it once: a design asks for it, and the mechanism that is made."""
    changes = np.array(largest)
    norms = changes * prefilter.column_norms()
    if adjacency == "one_input":
        return float(norms.max())
    links = prefilter.links()
    couples = [(i, j) for i, j in itertools.combinations(range(len(changes)), 2) if (links[:, i] & links[:, j]).any()]
    if not couples:  # of a diagonal matrix times count for nothing
        return math.hypot(*norms)
    if adjacency == "each_input":
        return math.sqrt(float(norms @ norms) + 2 * _largest_products(prefilter, changes, couples))
    return math.sqrt(_largest_form(np.outer(changes, changes) * gram_matrix(prefilter)))


def sampled_sensitivity(gram: Complex, changes: Array, adjacency: Adjacency) -> float:
    """Return the same from G*G at the angles of an FFT that resolves it: near to it, no bound.

    Parameters
    ----------
    gram : array of complex, (angles, m, m)
    changes : array, (m,)
    adjacency : {"one_input", "each_input_same_time", "each_input"}
    """
    products = np.fft.irfft(gram, axis=0)
    if adjacency != "each_input":
        return math.sqrt(largest_change(np.outer(changes, changes) * products[0], adjacency))
    reach = len(products) // 2 - 1
    centred = np.concatenate([products[-reach:], products[: reach + 1]])
    return math.sqrt(placed_change(np.moveaxis(centred, 0, -1), changes))


def largest_change(products: Array, adjacency: Literal["one_input", "each_input_same_time"]) -> float:
    """Return the same, squared, from the inner products of what the inputs change most, (m, m)."""
    return float(np.diagonal(products).max() if adjacency == "one_input" else _largest_form(products))


def placed_change(products: Array, changes: Array) -> float:
    """Return the same, squared, of "each_input" from R_ij(τ) at times from -T to T, (m, m, 2T + 1)."""
    m = len(changes)
    couples = itertools.combinations(range(m), 2)
    placed = largest_placed({(i, j): changes[i] * changes[j] * products[i, j] for i, j in couples})
    return float(changes**2 @ np.diagonal(products[:, :, products.shape[2] // 2])) + 2 * float(placed)


def gram_matrix(prefilter: FilterMatrix) -> Array:
    """Return R(0), the inner products of the columns of a matrix of filters, (m, m)."""
    grid = graded_grid(prefilter.poles, degree=prefilter.order)
    response = prefilter.response(grid.omega)
    weighted = response.conj() * grid.weights[:, None, None]
    return np.asarray(np.einsum("wqi,wqj->ij", weighted, response).real)


def _largest_form(r: Array) -> float:
    """Return the largest sᵀRs over all signs s, or for many a bound: of Σ|R_ij| and m λ_max the smaller."""
    m = len(r)
    if m > _MOST_SIGNED:
        return min(float(np.abs(r).sum()), m * float(np.linalg.eigvalsh(r)[-1]))
    signs = np.ones((1 << (m - 1), m))  # the first is +: -s changes as much as s
    bits = np.arange(len(signs))
    for i in range(1, m):
        signs[:, i] -= 2.0 * (bits >> (i - 1) & 1)
    return float(((signs @ r) * signs).sum(axis=1).max())


def _largest_products(prefilter: FilterMatrix, changes: Array, couples: list[tuple[int, int]]) -> float:
    """Return the largest Σ s_i s_j d_i d_j R_ij(t_i - t_j) over couples of inputs; what is cut off of them is added."""
    found = column_products(prefilter, couples, _NEGLIGIBLE)
    sizes = {(i, j): float(changes[i] * changes[j]) for i, j in couples}
    missed = sum(sizes[x] * found.beyond[x] for x in couples)
    return float(largest_placed({x: sizes[x] * found.near[x] for x in couples})) + missed
