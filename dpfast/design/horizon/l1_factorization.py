"""Factor a target into a strategy of bounded ℓ₁ norm and an unbiased receiver with a small mean error: pure ε."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from dpfast._support.progress import progress_bar
from dpfast._support.validation import Array
from dpfast.design.horizon.l1_descent import Descent, ErrorBehind, descend, without_small_entries

_TRIAL = 40  # steps from every start
_MOST = 500  # steps from the best one
_WORK = 3e11  # of such steps, times n³: what bounds them for long horizons
_FEWEST = 150
_SHORT = 512  # steps of a horizon up to which two starts are followed to the end


def l1_strategy(
    error_behind: ErrorBehind, starts: Sequence[Array], plain: Sequence[Array], *, progress: bool = False
) -> Array:
    """Search for a strategy C with columns of ℓ₁ norm one and a small error.

    Every start is followed for some steps, and the best of them further: two, or one over long horizons. The error is
    not convex in C: what is found is a local optimum, and never above that of any start or of a plain strategy, such
    as the identity, of which noise on the inputs consists, or sums of blocks.
    """
    n = starts[0].shape[1]
    n_steps = max(_FEWEST, min(_MOST, int(_WORK / n**3)))
    n_best = 2 if n <= _SHORT else 1
    with progress_bar(progress, _TRIAL * len(starts) + n_steps * n_best, "descending", unit="step") as advance:
        trials = [descend(x, error_behind, _TRIAL, advance) for x in starts]
        best = sorted(trials, key=lambda x: x.error)[:n_best]
        found = [descend(x.strategy, error_behind, n_steps, advance) for x in best]
    cleaned = [without_small_entries(x.strategy) for x in found]
    others = [x / np.abs(x).sum(axis=0) for x in (*plain, *starts)]
    return min((Descent(x, error_behind(x)[0]) for x in (*cleaned, *others)), key=lambda x: x.error).strategy


def least_squares_receiver(c: Array, a: Array, *, lower: bool) -> Array:
    """Return B = A C⁺."""
    if lower:
        return np.asarray(linalg.solve_triangular(c, a.T, lower=True, trans=1).T)
    q, r = linalg.qr(c, mode="economic")
    return np.asarray(linalg.solve_triangular(r, a.T, trans=1).T @ q.T)
