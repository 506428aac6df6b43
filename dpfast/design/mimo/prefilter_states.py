"""Prefilters of few states near to one at the nodes of a circle, and the first of them that errs little enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from scipy import linalg

from dpfast._support.progress import report_step
from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import StateSpace
from dpfast.filters.few_states import ReducedStates
from dpfast.filters.warped_circle import WarpedCircle

JointForm = Literal["diagonal", "general"]

_MOST_STATES = 32  # of the prefilter, for each of its channels
_GAIN = 0.95  # times the least excess before: what is a gain
_PATIENCE = 16  # states, and half as many as there were at the last gain, which may be tried without one


class PrefilterStates:
    """A prefilter given at the nodes of a circle, (nodes, q, m), to be had in any number of states.

    Parameters
    ----------
    circle : WarpedCircle
    g : array, (nodes, q, m)
    form : {"diagonal", "general"}
    changes : array, (m,)
        The largest change of each input.
    n_taps : int
        How many of its taps states are made of, at most half of the steps of the circle.
    """

    def __init__(self, circle: WarpedCircle, g: Complex, form: JointForm, changes: Array, n_taps: int) -> None:
        _, q, m = self._shape = g.shape
        self._changes = changes
        taps = np.fft.irfft(g * changes, axis=0)[:n_taps]  # what matters is what events change
        taps /= math.sqrt((taps**2).sum())
        if form == "general":
            self._blocks = [(slice(0, q), slice(0, m))]
        else:
            seen = np.abs(taps).max(axis=0).argmax(axis=1).tolist()
            self._blocks = [(slice(k, k + 1), slice(j, j + 1)) for k, j in enumerate(seen)]
        self._parts = [
            ReducedStates(taps[:, rows, columns], circle.warp, _MOST_STATES * (rows.stop - rows.start))
            for rows, columns in self._blocks
        ]
        sizes = np.concatenate([x.sizes for x in self._parts])
        whose = np.repeat(np.arange(len(self._parts)), [len(x.sizes) for x in self._parts])
        self._largest_first = whose[np.argsort(-sizes, kind="stable")]

    @property
    def most(self) -> int:
        """The largest number of states that there is."""
        return len(self._largest_first)

    def reduce(self, order: int) -> StateSpace:
        """Return A, B, C, D of the states that matter most."""
        _, q, m = self._shape
        counts = np.bincount(self._largest_first[:order], minlength=len(self._parts))
        systems = [x.reduce(n) for x, n in zip(self._parts, counts, strict=True)]
        a = linalg.block_diag(*(x[0] for x in systems))
        b, c, d = np.zeros((len(a), m)), np.zeros((q, len(a))), np.zeros((q, m))
        first = 0
        for (rows, columns), (part, b_part, c_part, d_part) in zip(self._blocks, systems, strict=True):
            here = slice(first, first := first + len(part))
            b[here, columns], c[rows, here], d[rows, columns] = b_part, c_part, d_part
        return a, b / self._changes, c, d / self._changes


def fewest_states(
    kinds: Sequence[PrefilterStates], excess_of: Callable[[StateSpace], float], within: float
) -> tuple[float, StateSpace]:
    """Return the first excess within a limit and the prefilter that has it, of the fewest states; else the least.

    It ends where more and more states have gained nothing to speak of.
    """
    least, best = math.inf, kinds[0].reduce(0)
    gained, where = math.inf, 0
    for order in range(max(x.most for x in kinds) + 1):
        if order > where + where // 2 + _PATIENCE:
            break
        report_step(f"{order} states of the prefilter")
        for system in (x.reduce(order) for x in kinds if order <= x.most):
            excess = excess_of(system)
            if excess < least:
                least, best = excess, system
            if least <= within:
                return least, best
        if least < _GAIN * gained:
            gained, where = least, order
    return least, best
