"""Sentences on who errs least in a sweep, and on what is not decided: for its text and for its page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpfast.simulation.sweep.rows import Cell, Row
from dpfast.simulation.sweep.tables import paired_ratio

_MOST_NAMED = 4  # winners


def say_who_wins(cells: Sequence[Cell], name: Callable[[Cell, Row], str] = Cell.name) -> str:
    """Name the mechanisms that err least, in how many cases, and by how much the nearest one errs more."""
    behind: dict[str, list[float]] = {}
    for cell in cells:
        ratio = math.nan if cell.second is None else paired_ratio(cell.second, cell.best)
        behind.setdefault(name(cell, cell.best), []).append(100 * (ratio - 1))
    ordered = sorted(behind, key=lambda x: -len(behind[x]))
    parts = [f"{x} in {len(behind[x])} of {len(cells)} cases{_write_lead(behind[x])}" for x in ordered[:_MOST_NAMED]]
    more = len(ordered) - len(parts)
    others = f"; {more} more in the rest" if more else ""
    return f"Least error: {'; '.join(parts)}{others}.{_say_constant(cells)}"


def _say_constant(cells: Sequence[Cell]) -> str:
    """Say in how many cases publishing the mean is known to err less than all mechanisms; nothing where in none."""
    n = sum(x.best.variance is not None and x.best.interval[0] ** 2 > x.best.variance for x in cells)
    return f" In {n} of {len(cells)} cases the constant, which publishes the mean alone, errs less." if n else ""


def say_what_is_open(cells: Sequence[Cell]) -> str:
    """Say which cases are not decided, and what would decide them."""
    n_open = sum(x.state == "undecided" for x in cells)
    if not n_open:
        return f"All {len(cells)} cases are decided." if len(cells) > 1 else "It is decided."
    are = "is" if n_open == 1 else "are"
    return (
        f"{n_open} of {len(cells)} cases {are} not decided: there the first two may be the other way round, and "
        "more streams (a larger budget, or decide=) would tell."
    )


def _write_lead(percents: Sequence[float]) -> str:
    known = [x for x in percents if math.isfinite(x)]
    return f", where the nearest errs {write_range(known)} % more" if known else ""


def write_range(values: Sequence[float]) -> str:
    """Write the least and the largest of some values; one where they read the same."""
    low, high = (_write_number(x) for x in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _write_number(x: float) -> str:
    return f"{x:.2g}".replace("-", "−") if abs(x) < 99.5 else f"{x:,.0f}".replace("-", "−")
