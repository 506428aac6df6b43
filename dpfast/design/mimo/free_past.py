"""What a slope has before now is free, as products are causal: it is chosen so that little is beyond limits.

That is by accelerated projections (Beck and Teboulle, SIAM J. Imaging Sci. 2, 2009; begun anew as by O'Donoghue and
Candès, Found. Comput. Math. 15, 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpfast._kernels.threads import share_work
from dpfast._support.validation import Complex
from dpfast.design.mimo.node_transforms import NodeTransforms
from dpfast.filters.warped_circle import WarpedCircle

Exceed = Callable[[Complex, int, int], None]


def choose_past(circle: WarpedCircle, psi: Complex, exceed: Exceed, n_items: int, projections: int) -> Complex:
    """Return ψ (nodes, p, m) with another part before now, of as many taps as a quarter of the steps.

    What ``exceed(values, first, count)`` leaves of values (p, m, nodes), which are times the circle's unit, is the
    slope of what is to be small, and changes by no more than they do; items are nodes, or tiles of them.
    """
    _, p, m = psi.shape
    unit, causal, free = circle.unit[:, None, None], circle.size // 2, slice(-circle.size // 4, None)
    transforms = NodeTransforms(p, m, circle.size)
    ahead = transforms.taps(psi * unit)
    ahead[:, causal : free.start] = 0
    before_now, back = ahead[:, free], transforms.found[:, free]
    latest, moved, turned, pace = before_now.copy(), np.zeros_like(before_now), np.empty(p * m), 1.0

    def leave_beyond(nodes: Complex) -> None:
        share_work(lambda first, count: exceed(nodes, first, count), n_items, transforms.n_threads)

    def take_off(rows: slice) -> None:
        np.subtract(before_now[rows], back[rows], out=before_now[rows])
        np.subtract(before_now[rows], latest[rows], out=moved[rows])
        latest[rows] = before_now[rows]
        turned[rows] = np.einsum("it,it->i", back[rows], moved[rows])

    def go_on(rows: slice) -> None:
        before_now[rows] += share * moved[rows]

    share = 0.0
    for _ in range(projections):
        transforms.through(leave_beyond, ahead, go_on, take_off)
        pace = 1.0 if float(turned.sum()) > 0 else pace
        faster = (1 + math.sqrt(1 + 4 * pace**2)) / 2
        share, pace = (pace - 1) / faster, faster
    return np.ascontiguousarray(np.moveaxis(np.fft.rfft(ahead).reshape(p, m, -1), 2, 0) / unit)
