"""How impulses at several inputs, at times of their own, meet at all outputs: the products of what each of them causes.

Of G with columns g_i they are R_ij(τ) = Σ_t g_i(t)ᵀ g_j(t+τ). Where entries share states, s⁺ = A s + B u and
y = C s + D u, and with Q the observability Gramian, R_ij(τ) is entry i, j of (DᵀC + BᵀQA) A^{τ-1} B for τ > 0: slow
poles make it long, but powers of A take it in strides, where impulse responses would be summed sample by sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.conversion import StateSpace
from dpfast.filters.filter_matrix import FilterMatrix

Couple = tuple[int, int]
_STRIDE = 1024  # times that are taken at once


class ColumnProducts(NamedTuple):
    """Products of columns at times near to one another, and what bounds them at others.

    Attributes
    ----------
    near : mapping of (i, j) to array, (2h + 1,)
        R_ij at times from -h to h.
    beyond : mapping of (i, j) to float
        What the modulus of R_ij is at most at all other times.
    """

    near: dict[Couple, Array]
    beyond: dict[Couple, float]


def column_products(matrix: FilterMatrix, couples: Sequence[Couple], negligible: float) -> ColumnProducts:
    """Return the products of some couples of columns, as far as these have more than a negligible part left to come.

    Parameters
    ----------
    matrix : FilterMatrix
    couples : sequence of (i, j)
        Of inputs.
    negligible : float
        Relative to a whole column.
    """
    if matrix.shares_states:
        return products_of_states(matrix.state_space(), couples, negligible)
    return _products_of_responses(matrix, couples, negligible)


def products_of_states(system: StateSpace, couples: Sequence[Couple], negligible: float) -> ColumnProducts:
    """Return the same of a system in state space; beyond is a bound by Cauchy and Schwarz.

    What column j has left to come after τ steps is |Q^½A^{τ-1}B_j|, which never rises with τ.
    """
    from dpfast.filters.state_space import gramian_root  # late: with it comes scipy.linalg

    a, b, c, d = system
    m, seen = b.shape[1], gramian_root(a.T, c.T)
    now = np.vstack([d, seen @ b])
    norms = np.linalg.norm(now, axis=0)
    rows, columns, power = d.T @ c + (seen @ b).T @ (seen @ a), b, a
    while ((left := np.linalg.norm(seen @ power @ b, axis=0)) > negligible * norms).any():
        if columns.shape[1] < _STRIDE * m:
            columns = np.hstack([columns, power @ columns])
        else:
            rows = np.vstack([rows, rows @ power])
        power = power @ power
    later = (rows @ columns).reshape(len(rows) // m, m, -1, m)
    at_once, near, beyond = now.T @ now, {}, {}
    for i, j in couples:
        near[i, j] = np.concatenate([later[:, j, :, i].ravel()[::-1], at_once[i, j, None], later[:, i, :, j].ravel()])
        beyond[i, j] = float(max(norms[i] * left[j], norms[j] * left[i]))
    return ColumnProducts(near, beyond)


def _products_of_responses(matrix: FilterMatrix, couples: Sequence[Couple], negligible: float) -> ColumnProducts:
    """Return the same from impulse responses, which are cut; beyond is what that misses at any time.

    It is at most t_i n_j + n_i t_j by Cauchy and Schwarz, with n the norms of columns and t those of what is cut off.
    """
    settled = matrix.settling_time(negligible)
    length = 2 * settled
    g = matrix.impulse(length)
    norms = np.sqrt((g**2).sum(axis=(0, 2)))
    cut = np.sqrt((g[..., settled:] ** 2).sum(axis=(0, 2)))  # more than what comes after `length`
    spectra = np.fft.rfft(g, 1 << (2 * length - 1).bit_length())
    near, beyond = {}, {}
    for i, j in couples:
        both = np.fft.irfft((spectra[:, i].conj() * spectra[:, j]).sum(axis=0))
        near[i, j] = np.concatenate([both[1 - length :], both[:length]])
        beyond[i, j] = float(cut[i] * norms[j] + norms[i] * cut[j])
    return ColumnProducts(near, beyond)
