"""The curves of one panel over an axis: errors of mechanisms, what they are compared with, and percent above it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfast.mechanisms.constant import NAME
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.lines_and_panels import Panel
from dpfast.reports.sweep.short_sentences import known_rmse
from dpfast.simulation.study import compare_paired
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row

BOUND, ADDITIVE_BOUND, CONSTANT = "lower bound, Gaussian noise", "additive bound, any noise", NAME
Estimate = tuple[float, float, float]  # with its interval: low, high
Excess = dict[str, list[Estimate]]
_NAN: Estimate = (math.nan, math.nan, math.nan)
_SAME = 1e-6  # of an RMSE that is at the bound


@dataclass(frozen=True)
class PanelCurves:
    """The curves of a panel: rows by mechanism along the axis, or None; bounds and constant by name, or NaN.

    Bounds are there where they are known somewhere, and so is the constant, unless a mechanism of the panel is it.
    """

    xs: list[Label]
    rows: dict[str, list[Row | None]]
    references: dict[str, list[float]]
    confidence: float

    @classmethod
    def collect(cls, sweep: Sweep, panel: Panel, axis: str, names: Sequence[str]) -> PanelCurves:
        """Collect the rows of a panel; those that do not depend on the axis are everywhere on it."""
        xs = panels.axis_values(panel.rows, axis)
        rows: dict[str, list[Row | None]] = {panels.row_name(x, names): [None] * len(xs) for x in panel.rows}
        levels: dict[str, list[list[float]]] = {x: [[] for _ in xs] for x in (BOUND, ADDITIVE_BOUND, CONSTANT)}
        for row in panel.rows:
            found = _references(sweep, row)
            for i in range(len(xs)) if axis not in row.settings else [xs.index(row.settings[axis])]:
                rows[panels.row_name(row, names)][i] = None if row.failed else row
                for name, level in found.items():
                    levels[name][i] += [] if level is None or row.failed else [level]
        known = {name: some for name, some in rows.items() if any(some)}
        highest = {name: [max(x, default=math.nan) for x in some] for name, some in levels.items()}
        drawn = {name: some for name, some in highest.items() if name not in known and not all(map(math.isnan, some))}
        return cls(xs, known, drawn, sweep.confidence)

    @property
    def is_bounded(self) -> bool:
        """True where there is a lower bound everywhere, and nothing is below, as mechanisms of other noise may be."""
        bounds = self.references.get(BOUND, [math.nan])
        if any(map(math.isnan, bounds)):
            return False
        rows = [(x, bound) for some in self.rows.values() for x, bound in zip(some, bounds, strict=True)]
        predicted = [(x.predicted_rmse, bound) for x, bound in rows if x is not None and x.predicted_rmse is not None]
        return all(x >= bound * (1 - _SAME) for x, bound in predicted)

    def rmse_estimates(self, name: str) -> list[Estimate]:
        """Return the RMSE and its interval along the axis."""
        return [_NAN if x is None else (x.rmse, *x.drawn_interval) for x in self.rows[name]]

    def ranks(self) -> dict[str, float]:
        """Rank the mechanisms from the worst, 0, to the best, below 1: the best is drawn over the others."""
        means = {
            name: float(np.mean([math.log(x.mse) if x.mse > 0 else -math.inf for x in rows if x is not None]))
            for name, rows in self.rows.items()
        }
        ordered = sorted(means, key=lambda name: -means[name])
        return {name: i / len(ordered) for i, name in enumerate(ordered)}

    def excess(self, bounded: bool) -> Excess:
        """Return percent above the lower bound, or above the least RMSE."""
        if bounded:
            bounds = self.references[BOUND]
            return {
                name: [_excess_over_bound(*x) for x in zip(rows, bounds, strict=True)]
                for name, rows in self.rows.items()
            }
        return {
            name: [self._excess_over(*x) for x in zip(rows, self._best, strict=True)]
            for name, rows in self.rows.items()
        }

    def excess_of_references(self, bounded: bool) -> dict[str, list[float]]:
        """Return percent of bounds and constant above the lower bound, or above the least RMSE.

        They are exact, so that they are compared with what was predicted of it, where that is known: else what is at
        the bound would be drawn above or below it, by chance.
        """
        least = [math.nan if x is None else known_rmse(x) for x in self._best]
        bases = self.references[BOUND] if bounded else least
        return {
            name: [_percent(x / base) if base > 0 else math.nan for x, base in zip(levels, bases, strict=True)]
            for name, levels in self.references.items()
        }

    @functools.cached_property
    def _best(self) -> list[Row | None]:
        """The row of the least error along the axis; None where no mechanism has a design."""
        several = zip(*self.rows.values(), strict=True)
        return [min((x for x in some if x is not None), key=lambda x: x.mse, default=None) for some in several]

    def _excess_over(self, row: Row | None, best: Row | None) -> Estimate:
        """Compare on the streams of both, which ran on the same inputs."""
        if row is None or best is None or best.mse == 0:
            return _NAN
        n = min(len(row.batch_means), len(best.batch_means))
        found = compare_paired(row.batch_means[:n], best.batch_means[:n], self.confidence, (row.sizes, best.sizes))
        mse = float(best.batch_means[:n].mean())
        low, high = (_percent(math.sqrt(max(0.0, 1 + x / mse))) for x in found.interval)
        if row.is_rare or best.is_rare:
            low = high = math.nan
        return _percent(found.rmse_ratio), low, high


def _references(sweep: Sweep, row: Row) -> dict[str, float | None]:
    """Return what a row is compared with; the additive bound where it is not for Gaussian noise alone: block sums."""
    blocks = panels.row_family(row) == "block_sums"
    return {
        BOUND: panels.lower_bound(sweep, row),
        ADDITIVE_BOUND: row.additive_bound_rmse if blocks else None,
        CONSTANT: None if row.variance is None else math.sqrt(row.variance),
    }


def _excess_over_bound(row: Row | None, bound: float) -> Estimate:
    if row is None:
        return _NAN
    low, high = row.drawn_interval
    return _percent(row.rmse / bound), _percent(low / bound), _percent(high / bound)


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)
