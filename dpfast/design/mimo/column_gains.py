"""Filters as loud as the columns of a matrix of filters: what an input does to all outputs together."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.errors import DesignError, PaleyWienerError
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.sections import make_sections
from dpfast.filters.spectral_factor import factor_polynomial

_PROPORTIONAL = 1e-12  # of the largest gain
_SAME_POLE = 1e-10
_CLOSE = 1e-8  # of the largest power: how near to its column a factor is


def column_gain(target: FilterMatrix, j: int) -> Filter:
    r"""Return a minimum-phase filter with the power :math:`\sum_i |F_{ij}|^2`, or an entry where all are its multiples.

    Raises
    ------
    DesignError
        Where all entries of a column vanish together at a frequency, unless they are multiples of one of them.
    """
    entries = [row[j] for row in target.rows if row[j].b.any()]
    if (alone := _multiple_of_one(entries)) is not None:
        return alone
    poles = _union(entries)
    orders = [len(np.trim_zeros(e.b)) - 1 + len(poles) - len(e.poles) for e in entries]

    def spectrum(omega: Array) -> Array:
        return _power(entries, omega)

    try:
        q = factor_polynomial(spectrum, poles, max(*orders, len(poles)))
    except PaleyWienerError:
        raise _vanishes(j) from None
    found = Filter.from_factors(q, make_sections([], poles, 1.0))
    omega = graded_grid(poles, degree=found.order).omega
    wanted = spectrum(omega)
    if np.abs(np.abs(found.response(omega)) ** 2 - wanted).max() > _CLOSE * wanted.max():
        raise _vanishes(j)
    return found


def _vanishes(j: int) -> DesignError:
    return DesignError(
        f"target must not vanish, nor nearly, for input {j} at a frequency at all outputs together, unless its entries "
        "are multiples of one filter: add an output that sees the input there, or give one filter for all"
    )


def _power(entries: list[Filter], omega: Array) -> Array:
    return np.asarray(sum(np.abs(e.response(omega)) ** 2 for e in entries))


def _multiple_of_one(entries: list[Filter]) -> Filter | None:
    """Return the first entry, louder, where the gains of all others are multiples of its gain."""
    first, norm = entries[0], entries[0].h2_norm()
    poles = np.concatenate([e.poles for e in entries])
    omega = graded_grid(poles, degree=max(e.order for e in entries)).omega
    gain, scales = np.abs(first.response(omega)), [e.h2_norm() / norm for e in entries]
    for e, scale in zip(entries, scales, strict=True):
        if np.abs(np.abs(e.response(omega)) - scale * gain).max() > _PROPORTIONAL * scale * gain.max():
            return None
    return first * math.hypot(*scales) if len(entries) > 1 else first


def _union(entries: list[Filter]) -> Complex:
    """Return the poles of all entries, those that several have once."""
    every: list[complex] = []
    for e in entries:
        left = list(every)
        for pole in e.poles:
            near = [x for x in left if abs(x - pole) <= _SAME_POLE]
            if near:
                left.remove(near[0])
            else:
                every.append(complex(pole))
    return np.array(every, dtype=np.complex128)
