"""Sentences on top of an evaluation: what errs least on each series, beside the constant, and what is not decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpfast.simulation.evaluation import SeriesResult
from dpfast.simulation.least_error import say_least_error
from dpfast.simulation.study import Result, compare_results

_MOST_SERIES = 6  # of which each has sentences of its own


def say_in_short(results: Sequence[SeriesResult]) -> list[str]:
    """Say of each series what errs least as a stream, and what errs less still with the whole log; of many a tally.

    Nothing is said of a series for which there is nothing but the constant.
    """
    series: dict[str, list[SeriesResult]] = {}
    for x in results:
        series.setdefault(x.series, []).append(x)
    known = {name: rows for name, rows in series.items() if _live(rows)}
    if len(known) > _MOST_SERIES:
        return _tally(list(known.values()))
    return [f"{name}: {_say_series(rows)}" for name, rows in known.items()]


def _say_series(rows: Sequence[SeriesResult]) -> str:
    live = _live(rows)
    said = f"as a stream, {say_least_error(live, _constant(rows).rmse, compare_results)}"
    late = [x.result for x in rows if x.mechanism.lag is None]
    best = min(late, key=lambda x: x.rmse, default=live[0])
    if best.rmse >= live[0].rmse:
        return said
    low, high = best.interval
    return f"{said} With the whole log at hand, {best.name} errs by {best.rmse:.4g} ({low:.4g} to {high:.4g})."


def _tally(series: Sequence[Sequence[SeriesResult]]) -> list[str]:
    """Count on how many series each errs least, and on how many nothing errs less than the constant."""
    best = Counter(_live(rows)[0].name for rows in series)
    named = "; ".join(f"{name} on {n} of {len(series)} series" for name, n in best.most_common())
    ratios = [_live(rows)[0].rmse / _constant(rows).rmse for rows in series]
    low, high = (f"{100 * x:.0f} %" for x in (min(ratios), max(ratios)))
    worse = sum(x >= 1 for x in ratios)
    of_constant = (
        f"The least RMSE is {low} to {high} of that of the constant, which publishes the mean at no cost of privacy"
    )
    return [
        f"As a stream, least error: {named}.",
        f"{of_constant}; on {worse} of {len(series)} series the constant errs no more." if worse else f"{of_constant}.",
    ]


def _live(rows: Sequence[SeriesResult]) -> list[Result]:
    """Return the results of mechanisms that can run as a stream, the best first, without the constant."""
    found = [x.result for x in rows if x.mechanism.lag is not None and x.mechanism.sees_data]
    return sorted(found, key=lambda x: x.rmse)


def _constant(rows: Sequence[SeriesResult]) -> Result:
    return next(x.result for x in rows if not x.mechanism.sees_data)
