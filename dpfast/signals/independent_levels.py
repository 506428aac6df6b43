"""The model IndependentLevels: a stream of independent samples of a few levels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import signal_sources
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.privacy.provenance import Provenance, check_source
from dpfast.signals.model import ShapedModel, center_levels, normalize_rows, set_fields


@dataclass(frozen=True, eq=False)
class IndependentLevels(ShapedModel):
    """Assume that a stream is drawn independently from finitely many levels.

    Parameters
    ----------
    levels : array_like, (k,)
        Distinct values.
    probabilities : array_like, (k,)
        Their probabilities, summing to one.
    source : {"assumed", "public", "fitted-from-private"}
        Where they come from. Numbers that were found from private data make the design depend on them.

    Examples
    --------
    >>> coin = IndependentLevels([0, 1], [0.75, 0.25])
    >>> coin.mean, coin.variance
    (0.25, 0.1875)
    """

    levels: Array
    probabilities: Array
    mean: float
    variance: float
    shaping: Filter
    source: Provenance

    def __init__(self, levels: ArrayLike, probabilities: ArrayLike, *, source: Provenance = "assumed") -> None:
        x = validation.array("levels", levels, ndim=1, empty=False)
        p = validation.array("probabilities", probabilities, ndim=1, empty=False)
        if len(x) != len(p) or len(np.unique(x)) != len(x):
            raise ValueError(f"levels must be distinct, one for each of the {len(p)} probabilities, got {len(x)}")
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise ValueError(f"probabilities must be non-negative and sum to one, got a sum of {p.sum():.9g}")
        order = np.argsort(x)
        x, p = x[order], normalize_rows(p[order])
        mean, centred = center_levels(p, x)
        variance = float(p @ centred**2)
        if variance <= 0:
            raise ValueError("probabilities must not all fall on one level: a constant stream needs no publication")
        set_fields(self, levels=validation.freeze(x), probabilities=validation.freeze(p))
        set_fields(self, mean=mean, variance=variance, shaping=Filter([math.sqrt(variance)]))
        set_fields(self, source=check_source("source", source))

    def compiled(self) -> signal_sources.SignalSource:
        """Return the source that the compiled simulation draws from."""
        cumulative = np.cumsum(self.probabilities)
        return signal_sources.LevelSource(cumulative, cumulative[None], self.levels)
