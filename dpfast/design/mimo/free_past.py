"""What a slope has before now is free, as products are causal: it is chosen so that little is beyond limits.

That is by accelerated projections (Beck and Teboulle, SIAM J. Imaging Sci. 2, 2009; begun anew as by O'Donoghue and
Candès, Found. Comput. Math. 15, 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpfast._kernels.threads import share_work
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.node_transforms import NodeTransforms

Exceed = Callable[[Array, int, int], None]


def choose_past(
    transforms: NodeTransforms, unit: Complex, psi: Complex, exceed: Exceed, n_items: int, projections: int
) -> Complex:
    """Return ψ (nodes, p, m) with another part before now, of as many taps as a quarter of the steps.

    What ``exceed(values, first, count)`` leaves of values (p m, 2, places), which are times the circle's unit, is the
    slope of what is to be small, and changes by no more than they do; items are places, or tiles of them.
    """
    unit = unit[:, None, None]
    ahead = transforms.taps(psi * unit)
    causal, half = transforms.n_kept, ahead.shape[2]
    free = slice(half - causal // 2, half)
    ahead[:, :, causal : free.start] = 0
    before_now, back = ahead[:, :, free], transforms.found[:, :, free]
    latest, moved, turned, pace = before_now.copy(), np.zeros_like(before_now), np.empty(len(ahead)), 1.0

    def leave_beyond(nodes: Array) -> None:
        share_work(lambda first, count: exceed(nodes, first, count), n_items, transforms.n_threads)

    def take_off(first: int, count: int) -> None:
        rows = slice(first, first + count)
        np.subtract(before_now[rows], back[rows], out=before_now[rows])
        np.subtract(before_now[rows], latest[rows], out=moved[rows])
        latest[rows] = before_now[rows]
        turned[rows] = np.einsum("ikt,ikt->i", back[rows], moved[rows])

    def go_on(first: int, count: int) -> None:
        rows = slice(first, first + count)
        before_now[rows] += share * moved[rows]

    share = 0.0
    for _ in range(projections):
        transforms.through(leave_beyond, ahead, go_on, take_off)
        pace = 1.0 if float(turned.sum()) > 0 else pace
        faster = (1 + math.sqrt(1 + 4 * pace**2)) / 2
        share, pace = (pace - 1) / faster, faster
    return np.asarray(np.fft.rfft(transforms.matrices(ahead), axis=0) / unit)
