"""Realise a wanted magnitude as a minimum-phase filter of few states.

The order of a rational filter grows until its loss is within the tolerance of the ideal. Where a target has many zeros
on the circle a short FIR is cheaper.
"""

from __future__ import annotations

import math

from dpfast._support.errors import ToleranceWarning, warn
from dpfast._support.progress import report_step
from dpfast.design.prefilter.objectives import Excess, Objective
from dpfast.design.prefilter.rational_fit import MAX_ORDER, rational_filters
from dpfast.design.prefilter.short_fir import MAX_TAPS, shortest_fir
from dpfast.filters.filter import Filter

TAPS_PER_STATE = 2.5  # a state in sections takes as many multiply-adds as this many taps
_NEAR = 3.0  # tolerances: up to this excess, if it is above one, fits are tried from more starts than a draft's
FAR = 1.5  # tolerances: a larger excess need not be exact
PATIENCE = 9  # orders after which the trend decides whether more states are worth while


def realize(objective: Objective, *, tolerance: float, excess: Excess | None = None) -> Filter:
    """Return a minimum-phase filter of unit H2 norm whose loss is within a relative `tolerance` of the ideal.

    It has the fewest states that reach the tolerance, or is a short FIR if that is cheaper.

    Parameters
    ----------
    objective : Objective
    tolerance : float
        Allowed relative excess of the loss.
    excess : callable, optional
        G → relative excess of the loss that decides; by default that of the objective.

    Warns
    -----
    ToleranceWarning
        Where neither 16 states nor 4096 taps reach the tolerance; the best filter found is returned.
    """
    measure = excess or objective.excess
    found, best = best_realization(objective, measure, tolerance)
    check_excess(found, tolerance)
    return best


def check_excess(excess: float, tolerance: float) -> None:
    """Warn where a realised prefilter does not reach its tolerance."""
    if excess > tolerance:
        warn(
            f"the realised prefilter has an MSE {excess:.2g} (relative) above the ideal, tolerance is {tolerance:g}: "
            f"no order up to {MAX_ORDER} and no FIR up to {MAX_TAPS} taps was found that reaches it; "
            "raise tolerance or smooth the target",
            ToleranceWarning,
        )


def best_realization(objective: Objective, measure: Excess, tolerance: float) -> tuple[float, Filter]:
    """Return the excess and the filter of :func:`realize`, without a warning."""
    found, best = math.inf, Filter([1.0])
    history: list[float] = []
    for excess, candidate in rational_filters(objective, measure, (tolerance, _NEAR * tolerance)):
        report_step(f"{len(history)} states of the prefilter")
        history.append(excess)
        if excess < found:
            found, best = excess, candidate
        if found <= tolerance or (len(history) > PATIENCE and not _worth_growing(history, tolerance)):
            break
    most = int(TAPS_PER_STATE * best.order) if found <= tolerance else MAX_TAPS
    if most > 0:
        report_step("taps of the prefilter")
        taps_found, taps = shortest_fir(objective.shape, measure, tolerance, most)
        if taps_found <= max(found, tolerance):
            found, best = taps_found, taps
    return found, best * (1 / best.h2_norm())


def _worth_growing(history: list[float], tolerance: float) -> bool:
    """Return whether the trend of the last orders reaches the tolerance within the largest order."""
    rate = math.log(max(history[-3], 1e-16) / max(history[-1], 1e-16)) / 2
    return rate > 0 and len(history) - 1 + math.log(history[-1] / tolerance) / rate <= MAX_ORDER
