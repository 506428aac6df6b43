"""Taps and sections run on arrays (streams, time) in the order in which they lie, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import threads
from dpfast._kernels.factors import Factors
from dpfast._kernels.filter_streams import any_beyond
from dpfast._kernels.fir_and_sections import fold_factors
from dpfast._kernels.sections_in_squares import SquaresPlan, plan_squares, run_bundles
from dpfast._kernels.sections_in_time import LANES, STREAMS, SectionsPlan, plan_sections, run_streams
from dpfast._kernels.simd import lanes
from dpfast._kernels.taps_in_time import TapsPlan, convolve_streams, plan_taps

Array = NDArray[Any]

BLOCK = 2**18  # samples that one stage filters before the next
_SLICE = 2**22  # of one stream, no longer between two looks at whether to stop
_WORTH_A_THREAD = 8_000_000  # multiply-adds; fewer are done before another thread has started


class TimePlan(NamedTuple):
    """Taps and sections laid out, and the multiply-adds of a sample."""

    taps: TapsPlan | None
    sections: SectionsPlan | None
    squares: SquaresPlan | None  # the same sections
    n_past: int  # inputs among the states, before those of sections
    work: int


def plan_in_time(factors: Factors, dtype: np.dtype[Any]) -> TimePlan:
    """Lay out a filter without a recursion."""
    taps, sections = fold_factors(factors)
    work = len(taps) + 5 * LANES * -(-len(sections) // LANES)
    first = plan_taps(taps, dtype) if len(taps) else None
    second = plan_sections(sections, dtype) if len(sections) else None
    third = plan_squares(sections, dtype) if len(sections) else None
    return TimePlan(first, second, third, len(factors.taps) - 1, max(1, work))


def filter_block(plan: TimePlan, x: Array, states: Array, y: Array, limit: float, in_squares: bool) -> bool:
    """Filter flat streams of equal length into y, which may be x, and move their states (streams, states) on.

    Tell whether a sample is beyond the limits; nobody may want the outputs then.
    """
    found = False
    if plan.taps is None and plan.sections is None:
        y[...] = x
        return any_beyond(x, 0, len(x), limit, lanes(x.dtype))
    if plan.taps is not None:
        table, chunk = plan.taps.table, plan.taps.chunk
        found = convolve_streams(table, plan.taps.room(), chunk, plan.taps.tile, limit, states, x, y)
        x, limit = y, np.inf
    n_streams, rest = len(states), 0
    if in_squares and plan.squares is not None:
        c, square, side = plan.squares
        rest = n_streams - n_streams % side
        if rest:
            n = len(x) // n_streams * rest
            memory = plan.squares.memory()
            found |= run_bundles(c, memory, square, limit, states[:rest], plan.n_past, x[:n], y[:n])
    if rest < n_streams and plan.sections is not None:
        n = len(x) // n_streams * rest
        c, n_sections = plan.sections
        memory = plan.sections.memory()
        found |= run_streams(c, n_sections, memory, limit, states[rest:], plan.n_past, x[n:], y[n:])
    return found


def filter_in_time(
    plan: TimePlan, x: Array, states: Array, out: Array, limit: float, n_threads: int, in_squares: bool
) -> bool:
    """Filter x (streams, time) into `out`, which may be x, in any memory order; move the states on.

    in_squares : whether sections run by ``sections_in_squares``, as far as streams fill a bundle; else in time.

    Tell whether a sample is beyond the limits.
    """
    n_streams, n_samples = x.shape
    side = plan.squares.side if in_squares and plan.squares is not None else STREAMS
    n_workers = max(1, min(n_threads, plan.work * x.size // _WORTH_A_THREAD))
    size = min(max(1, BLOCK // n_samples), -(-n_streams // n_workers))
    size = 1 if n_samples > _SLICE else size + -size % side
    found: list[bool] = []

    def task(first: int, count: int, check: Callable[[], None]) -> None:
        here = slice(first, first + count)
        for t in range(0, n_samples, _SLICE):
            check()
            now = slice(t, t + _SLICE)
            found.append(_filter_view(plan, x[here, now], states[here], out[here, now], limit, in_squares))

    threads.for_ranges(task, n_streams, size, n_workers)
    return any(found)


def _filter_view(plan: TimePlan, x: Array, states: Array, out: Array, limit: float, in_squares: bool) -> bool:
    """Filter what may not lie side by side, by way of copies then; kernels take arrays of one type."""
    flat = x.ravel() if x.flags.carray else x.flatten()
    if out.flags.carray:
        return filter_block(plan, flat, states, out.ravel(), limit, in_squares)
    y = np.empty(flat.shape, flat.dtype)
    found = filter_block(plan, flat, states, y, limit, in_squares)
    out[...] = y.reshape(out.shape)
    return found
