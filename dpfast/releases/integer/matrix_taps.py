"""Integer taps for a matrix of prefilters, and how much one person can move what they give: integers, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.input_mixture import InputMixture
from dpfast.privacy.placed_events import largest_placed
from dpfast.privacy.sensitivity_of_matrix import Adjacency
from dpfast.releases.integer.inputs import Integers

_MOST_SIGNED = 16  # inputs whose signs are all tried
_LARGEST = 2**62


def matrix_taps(prefilter: FilterMatrix, n_taps: int, bits: int, mixture: InputMixture | None = None) -> Integers:
    """Return round(2^bits · g) of the first samples g of all responses, (q, m, n), of which G has the norm one.

    The scale of a prefilter is that of its noise, and has no other meaning. Zeros at the end of all of them are left
    out. With the mixture of a prefilter its filters are rounded, and the weights are kept as they are.
    """
    scale = 2.0**bits / prefilter.h2_norm()
    if mixture is None:
        g = np.rint(scale * prefilter.impulse(n_taps)).astype(np.int64)
    else:
        filters = np.rint(scale / mixture.unit * prefilter.impulse(n_taps)[:, mixture.columns]).astype(np.int64)
        g = np.einsum("akn,ki->ain", filters, mixture.weights)
    used = np.flatnonzero(g.any(axis=(0, 1)))
    return np.ascontiguousarray(g[..., : used[-1] + 1 if len(used) else 0])


def squared_change(taps: Integers, changes: Sequence[int], adjacency: Adjacency) -> int:
    r"""Bound Σ_a,t (Σ_i,k g_ai,k e_i,t-k)² for what one event e changes, |e_i,t| ≤ d_i; mostly it is the largest.

    With R_ij(τ) = Σ_a,k g_ai,k g_aj,k+τ: of "one_input" it is max d_i² R_ii(0); of "each_input_same_time" max sᵀRs over
    all signs s, R = (d_i d_j R_ij(0)); of "each_input" Σ d_i² R_ii(0) + 2 max Σ_{i<j} s_i s_j d_i d_j R_ij(t_i - t_j)
    over signs and times. Squares grow towards the corners of what an event may change, so that no other event changes
    more, and a stream that ends before the taps do loses terms alone.

    The last is found input by input where inputs that meet in an output make no ring, and over all times for rings of
    three; for others it is a bound (:func:`largest_placed`), as Σ |d_i d_j R_ij| is of the second beyond 16 inputs.

    Parameters
    ----------
    taps : array of int64, (q, m, n)
        Whose squares sum to less than 2^62.
    changes : sequence of int, (m,)
        d, each at least 1.
    adjacency : {"one_input", "each_input_same_time", "each_input"}

    Examples
    --------
    >>> taps = np.array([[[3, 0], [0, 4]]])
    >>> [squared_change(taps, [1, 1], x) for x in ("one_input", "each_input_same_time", "each_input")]
    [16, 25, 49]
    """
    d = [int(x) for x in changes]
    energies = [d[i] ** 2 * int((taps[:, i].astype(object) ** 2).sum()) for i in range(len(d))]
    if adjacency == "one_input":
        return max(energies)
    products = {(i, j): _products(taps, i, j) for i, j in itertools.combinations(range(len(d)), 2)}
    if adjacency == "each_input_same_time":
        at_once = {couple: int(r[len(r) // 2]) for couple, r in products.items()}
        return sum(energies) + 2 * _largest_signed(at_once, d)
    return sum(energies) + 2 * _largest_at_any_times(products, d)


def _products(taps: Integers, i: int, j: int) -> Integers:
    """Return R_ij at τ from 1 - n to n - 1."""
    none = np.zeros(2 * taps.shape[2] - 1, np.int64)
    return sum((np.correlate(row[j], row[i], "full") for row in taps if row[i].any() and row[j].any()), none)


def _largest_signed(products: dict[tuple[int, int], int], d: Sequence[int]) -> int:
    """Return the largest Σ_{i<j} s_i s_j d_i d_j R_ij over all signs, or for many inputs a bound of it."""
    weighted = {(i, j): d[i] * d[j] * r for (i, j), r in products.items() if r}
    bound = sum(map(abs, weighted.values()))
    used = sorted({i for couple in weighted for i in couple})
    if len(used) > _MOST_SIGNED or len(used) < 2:
        return bound
    bits = np.arange(1 << (len(used) - 1))  # the first is +: -s changes as much as s
    signs = {i: 1 - 2 * (bits >> (k - 1) & 1) if k else np.ones_like(bits) for k, i in enumerate(used)}
    dtype = np.int64 if bound < _LARGEST else object
    total = sum((signs[i] * signs[j]).astype(dtype) * r for (i, j), r in weighted.items())
    return int(np.max(total))


def _largest_at_any_times(products: dict[tuple[int, int], Integers], d: Sequence[int]) -> int:
    """Return the largest Σ_{i<j} s_i s_j d_i d_j R_ij(t_i - t_j) over all signs and times, or a bound of it."""
    unit = math.gcd(*d)
    bound = sum(d[i] * d[j] * int(np.abs(r).max()) for (i, j), r in products.items())
    if bound // unit**2 >= _LARGEST:  # all as large as the largest: what is multilinear grows with what may change
        unit = max(d)
    met = {couple: r for couple, r in products.items() if r.any()}  # of others changes may be as large as they like
    scaled = {(i, j): -(-d[i] // unit) * -(-d[j] // unit) * r for (i, j), r in met.items()}
    return min(bound, unit**2 * math.ceil(largest_placed(scaled)))
