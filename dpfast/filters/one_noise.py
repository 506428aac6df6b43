"""A filter of one white noise in the place of a system that shapes several into one stream."""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.conversion import reached_states
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.riccati import find_innovation
from dpfast.filters.state_space import balance_states

_ROUNDING = 1e-15  # of a response: states that are no more


def shape_one_noise(a: Array, b: Array, c: Array, d: Array) -> Filter:
    """Return a filter with the spectrum of x = C s + D e, s⁺ = A s + B e, of white noises e of variance one.

    Where one noise alone reaches x, and at once, it is the filter from there, to rounding; else it is minimum-phase,
    with the zeros of the predictor.

    Parameters
    ----------
    a, b, c, d : array, (n, n), (n, k), (1, n), (1, k)
        Of a stream whose variance is about one.
    """
    behind = reached_states(a.T, c[0])
    heard = (d[0] != 0) | (b[behind] != 0).any(axis=0)
    b, d = b[:, heard], d[:, heard]
    alone = b.shape[1] == 1 and bool(d.any())
    if not alone:
        found = find_innovation(a, b, c, d)
        d = np.sqrt(found.innovation)
        b = found.gain @ d
    into, out = balance_states(a, b, c, _ROUNDING)
    if len(into) < len(a):  # else they are nearer as they are given
        a, b, c = into @ a @ out, into @ b, c @ out
    if alone:
        return FilterMatrix.from_state_space(a, b, c, d)[0, 0]
    return Filter.from_zpk(np.linalg.eigvals(a - b @ c / d), np.linalg.eigvals(a), d.item())
