"""What undoes a prefilter: H with H G = F for the F that is wanted, and whether there is a stable one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.errors import UnstableFilterError
from dpfast._support.validation import Array
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter, ratio
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.input_mixture import find_mixture

_NOTHING = 1e-12  # of the largest sample: what is nothing but rounding
_SINGULAR = 1e-9  # of the largest singular value of the first samples


def undo_filter(target: Filter, prefilter: Filter) -> Filter:
    """Return H with H G = F; a delay that both have is left out of both.

    Raises
    ------
    UnstableFilterError
        Where the prefilter has a longer delay than the target, or zeros outside of, or too near to, the unit circle.

    Examples
    --------
    >>> undo_filter(Filter([0, 0, 3]), Filter([0, 1])).b.tolist()
    [0.0, 3.0]
    """
    delay = delay_of(prefilter)
    if target.b.any() and delay <= delay_of(target):
        target, prefilter = advance(target, delay), advance(prefilter, delay)
    return ratio((target.numerator, prefilter.denominator), (prefilter.numerator, target.denominator))


def can_undo(target: Filter, prefilter: Filter) -> bool:
    """Tell whether there is such an H that is causal and stable."""
    try:
        undo_filter(target, prefilter)
    except UnstableFilterError:
        return False
    return True


def can_undo_matrix(target: FilterMatrix, prefilter: FilterMatrix, served: NDArray[np.bool_]) -> bool:
    """Tell whether H with H G = F is certain to be stable, and stays so where G is rounded.

    Of channels of one input each, entry by entry; otherwise of as many columns as G has channels, those of all inputs
    or those that stand for the sums which G sees.

    Parameters
    ----------
    target, prefilter : FilterMatrix
        F and G.
    served : array of bool, (p, q)
        Which outputs the design estimates from which channels.
    """
    sizes = np.abs(prefilter.impulse(2 * prefilter.order + 1)).max(axis=2)
    links = sizes > _NOTHING * sizes.max()
    if (links.sum(axis=1) == 1).all():
        own = [int(j) for j in links.argmax(axis=1)]
        served = served_outputs(target, own, served)
        return all(can_undo(target[i, own[k]], prefilter[k, own[k]]) for i, k in zip(*np.nonzero(served), strict=True))
    columns = [int(j) for j in np.flatnonzero(links.any(axis=0))]
    if len(columns) > len(links):
        mixture = find_mixture(prefilter)
        columns = [] if mixture is None else mixture.columns
    return len(columns) == len(links) and _has_inverse(prefilter, columns)


def served_outputs(target: FilterMatrix, own: list[int], served: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which outputs are estimated from which channels, (p, q), of channels that have one input each.

    Where an input has one channel alone, that is for all outputs which see it; otherwise it is as the design has it.

    Parameters
    ----------
    target : FilterMatrix
    own : list of int, (q,)
        The input of each channel.
    served : array of bool, (p, q)
        As the design has it.
    """
    return target.links()[:, own] if len(set(own)) == len(own) else served


def delay_of(system: Filter) -> int:
    """Count the samples before the first of its impulse response that is not zero."""
    return int(np.argmax(system.factors.taps != 0))


def advance(system: Filter, delay: int) -> Filter:
    """Return it without so many samples of its delay."""
    taps, sections, recursion = system.factors
    return Filter.from_factors(taps[delay:], sections, recursion)


def _has_inverse(system: FilterMatrix, columns: list[int]) -> bool:
    """Tell whether columns of a system, as many as it has rows, have a stable inverse but for delays of the columns.

    It has the poles of A - B D⁻¹ C: those of the system that cancel are among them, and are stable.
    """
    a, b, c, d = system.state_space()
    b, d = b[:, columns], d[:, columns]
    for j in range(len(columns)):
        b[:, j], d[:, j] = _without_delay(a, b[:, j], c, d[:, j])
    sizes = np.linalg.svd(d, compute_uv=False)
    if sizes[-1] <= _SINGULAR * sizes[0]:
        return False
    zeros = linalg.eigvals(a - b @ np.linalg.solve(d, c))
    return bool(np.abs(zeros).max(initial=0.0) <= MAX_POLE_RADIUS)


def _without_delay(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """Return the column b, d of a system that begins as many samples earlier as nothing comes out of it."""
    nothing = _NOTHING * max(np.abs(d).max(), np.abs(c).max(initial=0.0) * np.abs(b).max(initial=0.0))
    for _ in range(len(a)):
        if np.abs(d).max() > nothing:
            break
        b, d = a @ b, c @ b
    return b, d
