"""Where events, one at each of several inputs, change the outputs of filters most: over all their times and signs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

Couple = tuple[int, int]
Products = Any  # of integers or of floats: all that is done with them is exact, or rounded as sums are
_MOST_PLACES, _AT_ONCE = 2**28, 2**18  # that are tried of three inputs, and at once


def largest_placed(products: Mapping[Couple, Products]) -> Fraction:
    r"""Return the largest Σ_{i<j} s_i s_j R_ij(t_i - t_j) over signs s and times t, or a bound of it.

    Inputs that never meet are found apart. Two, and chains and trees of more, are placed couple by couple, and three
    are placed by trying what may be the largest: both are exact. Of more inputs, each couple belongs to m - 2 of their
    triples, so that the mean of what these allow is a bound, which is at most Σ max |R_ij|.

    Parameters
    ----------
    products : mapping of (i, j), i < j, to array, (2h + 1,)
        R_ij at times from -h to h, all of the same length; beyond, and of couples that are missing, it is zero.
    """
    return sum((_largest_of(ring) for ring in _rings(products)), Fraction(0))


def _rings(products: Mapping[Couple, Products]) -> list[dict[Couple, Products]]:
    """Return those couples together that hang together by inputs; without those that never meet."""
    met = {couple: r for couple, r in products.items() if r.any()}
    group = {i: i for couple in met for i in couple}
    for i, j in met:
        group = {k: group[i] if name == group[j] else name for k, name in group.items()}
    return [{c: r for c, r in met.items() if group[c[0]] == name} for name in sorted(set(group.values()))]


def _largest_of(ring: dict[Couple, Products]) -> Fraction:
    inputs = sorted({i for couple in ring for i in couple})
    each = sum(Fraction(np.abs(r).max().item()) for r in ring.values())
    if len(ring) < len(inputs):  # a tree
        return Fraction(each)
    none = np.zeros_like(next(iter(ring.values())))
    triples = (
        largest_of_three(*(ring.get(couple, none) for couple in itertools.combinations(three, 2)))
        for three in itertools.combinations(inputs, 3)
    )
    return min(Fraction(each), sum(map(Fraction, triples), Fraction(0)) / (len(inputs) - 2))


def largest_of_three(x: Products, y: Products, z: Products) -> Any:
    """Return the largest ±x(a) ± y(b) ± z(b - a) over all times a and b, of signs whose product is +, or a bound of it.

    It is the sum of the three magnitudes, less twice the least of them where the product of the three is negative. It
    is bounded by the largest of each where too much would have to be tried.
    """
    best, _, complete = place_three(x, y, z)
    return best if complete else sum(np.abs(r).max() for r in (x, y, z)).item()


def place_three(x: Products, y: Products, z: Products) -> tuple[Any, tuple[int, int], bool]:
    """Return the largest such sum that was found, its times a and b, and whether there is none that is larger.

    One of the times may be twice as far as products reach, where the third input is between the two. What cannot be
    the largest, as the other two are nowhere large enough, is not tried.
    """
    x, y, z = _crop(x, y, z)
    far = len(x) - 1  # from -far to far: twice as far as products reach
    x, y = (np.pad(r, far // 2) for r in (x, y))
    z = np.pad(z, 2 * far - far // 2)  # from -2 far to 2 far
    sizes, others = np.abs(x), np.abs(y)
    of_y, of_z = others.max(), np.abs(z).max()
    y_order = np.argsort(-others, kind="stable")
    falling = -others[y_order]
    best, times, tried = 0, (0, 0), 0
    order, done = np.argsort(-sizes, kind="stable"), 0
    while done < len(order) and sizes[order[done]] + of_y + of_z > best:
        seen = y_order[: np.searchsorted(falling, sizes[order[done]] + of_z - best, side="right")]
        block = order[done : done + max(1, _AT_ONCE // max(1, len(seen)))]
        done += len(block)
        tried += len(seen) * len(block)
        if tried > _MOST_PLACES:
            return best, times, False
        sums = _sums_beside(x[block, None], y[seen], z[seen - block[:, None] + 2 * far])
        if sums.size and sums.max() > best:
            row, column = np.unravel_index(sums.argmax(), sums.shape)
            best, times = sums[row, column].item(), (int(block[row]) - far, int(seen[column]) - far)
    return best, times, True


def _crop(x: Products, y: Products, z: Products) -> list[Products]:
    """Cut off of three products what belongs to no sum that is larger than one at hand.

    Where one of the times is beyond 2h, another one is beyond h, as the longest is the sum of the others: the sum is
    not above the largest product and twice what is left beyond h. Slow tails, which are long and low, so are not tried.
    """
    n = len(x) // 2
    sizes = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(z))
    left = np.maximum.accumulate(np.maximum(sizes[n:], sizes[n::-1])[::-1])[::-1]  # from each time on
    a, b = int(np.abs(x).argmax()), int(np.abs(y).argmax())
    c = b - a + n
    at_hand = _sums_beside(x[a], y[b], z[c] if 0 <= c < len(z) else 0)
    most = min(n, 2 * int(np.count_nonzero(left[0] + 2 * left[1:] > at_hand)))
    return [r[n - most : n + most + 1] for r in (x, y, z)]


def _sums_beside(near: Any, y: Products, z: Products) -> Products:
    sizes = np.abs(y), np.abs(z)
    least = np.minimum(np.minimum(*sizes), np.abs(near))
    opposed = np.sign(y) * np.sign(z) * np.sign(near) < 0
    return sizes[0] + sizes[1] + np.abs(near) - 2 * np.where(opposed, least, 0)
