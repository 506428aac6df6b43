"""Confidence bounds: from how often a test is right to the privacy that there is at most.

A mechanism that is (ε, δ)-differentially private has P(E | with) ≤ e^ε P(E | without) + δ for every event E, and the
other way round (Kairouz, Oh and Viswanath 2015). So rates of an event bound ε from below, with a confidence that rates
have. One that is μ-Gaussian DP has Φ⁻¹(P(E | with)) ≤ Φ⁻¹(P(E | without)) + μ (Dong, Roth and Su 2022), which events of
any probability bound, and not only rare ones: so few runs see little (Nasr et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpfast._support.validation import Array

Measure = Callable[
    [ArrayLike, ArrayLike, int, float], Array
]  # hits, false alarms, trials of each, miss: a bound from below

_N_THRESHOLDS = 100
_STRICTER = 1e-3  # where a rule is chosen: else a lucky rare event wins, and does not last
_N_CUTS = 2000
_TAIL = 7.0  # standard deviations


class ProbabilityBounds(NamedTuple):
    """Bounds of a probability, each of which fails with a given probability."""

    low: Array
    high: Array


def clopper_pearson(successes: ArrayLike, trials: int, miss: float) -> ProbabilityBounds:
    """Return exact one-sided bounds of a probability, each above or below it but for a probability `miss` (1934).

    Parameters
    ----------
    successes : array_like
        Of independent trials; expected counts need not be whole.
    trials : int
        At least 1.
    miss : float
        Strictly between 0 and 1; both bounds together hold with confidence 1 - 2 miss.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 10, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0, 0.3085)
    """
    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # at the ends, which are put in
        low = np.where(k > 0, special.betaincinv(np.maximum(k, 0.5), trials - k + 1, miss), 0.0)
        high = np.where(k < trials, special.betainccinv(k + 1, np.maximum(trials - k, 0.5), miss), 1.0)
    return ProbabilityBounds(low, high)


def least_epsilon(hits: ArrayLike, false_alarms: ArrayLike, trials: int, delta: float, miss: float) -> Array:
    """Bound ln((P(hit) - δ)/P(false alarm)) from below, by at least 0, but for a probability 2 miss.

    Examples
    --------
    >>> round(float(least_epsilon(9000, 1000, 10_000, 1e-6, 0.01)), 2)
    2.12
    """
    high = clopper_pearson(false_alarms, trials, miss).high
    low = clopper_pearson(hits, trials, miss).low
    return np.log(np.maximum((low - delta) / high, 1.0))


def epsilon_at(delta: float) -> Measure:
    """Return the measure of ε at this δ."""
    return lambda hits, false_alarms, trials, miss: least_epsilon(hits, false_alarms, trials, delta, miss)


def least_mu(hits: ArrayLike, false_alarms: ArrayLike, trials: int, miss: float) -> Array:
    """Bound Φ⁻¹(P(hit)) - Φ⁻¹(P(false alarm)) from below, by at least 0, but for a probability 2 miss.

    Examples
    --------
    >>> round(float(least_mu(60_000, 50_000, 100_000, 0.01)), 3)
    0.235
    """
    high = clopper_pearson(false_alarms, trials, miss).high
    low = clopper_pearson(hits, trials, miss).low
    return np.maximum(special.ndtri(low) - special.ndtri(high), 0.0)


class AttackRule(NamedTuple):
    """A rule that says "with" above a threshold of the statistic, or "without" where it is not, or the reverse."""

    threshold: float
    above: bool  # the event is to be above
    of_with: bool  # it speaks for "with"

    def counts(self, without: Array, with_: Array) -> tuple[Array, Array]:
        """Count how often the event is found where it should be, and where it should not."""
        events = [np.count_nonzero((x > self.threshold) == self.above) for x in (without, with_)]
        hits, false_alarms = events[::-1] if self.of_with else events
        return np.asarray(hits), np.asarray(false_alarms)


class Judged(NamedTuple):
    """The result of a rule on runs that had no part in its choice."""

    hits: int
    false_alarms: int
    trials: int  # of each of the two
    bound: float  # ε or μ is at least this


def choose_rule(without: Array, with_: Array, measure: Measure, miss: float) -> AttackRule:
    """Choose the rule with the largest bound, on these runs."""
    n, (sorted_without, sorted_with) = len(without), (np.sort(without), np.sort(with_))
    tail = np.logspace(-math.log10(2 * n), math.log10(0.5), _N_THRESHOLDS // 2)
    pooled = np.concatenate([without, with_])
    cuts = np.unique(np.quantile(pooled, np.concatenate([tail, 1 - tail]), method="lower"))
    above = [n - np.searchsorted(x, cuts, side="right") for x in (sorted_without, sorted_with)]
    best: list[tuple[float, AttackRule]] = []
    for is_above in (True, False):
        events = above if is_above else [n - x for x in above]
        for of_with in (True, False):
            hits, false_alarms = events[::-1] if of_with else events
            bounds = measure(hits, false_alarms, n, miss)
            best.append((float(bounds.max()), AttackRule(float(cuts[bounds.argmax()]), is_above, of_with)))
    return max(best)[1]


def judge_rule(without: Array, with_: Array, measure: Measure, miss: float) -> Judged:
    """Bound from a statistic's values in runs of both kinds: the first half chooses a rule, the other judges it.

    Parameters
    ----------
    without, with_ : array, (runs,)
        As many of each; independent.
    measure : callable
        What is bounded: :func:`epsilon_at` a δ, or :func:`least_mu`.
    miss : float
        The probability that the bound is above the truth.
    """
    n = len(without) // 2
    rule = choose_rule(without[:n], with_[:n], measure, miss / 2 * _STRICTER)
    hits, false_alarms = rule.counts(without[n:], with_[n:])
    trials = len(without) - n
    bound = float(measure(hits, false_alarms, trials, miss / 2))
    return Judged(int(hits), int(false_alarms), trials, bound)


def reachable_bound(mu: float, runs: int, measure: Measure, miss: float) -> float:
    """Return what `judge_rule` finds of a Gaussian statistic whose mean moves by `mu`, at expected counts.

    Rare events bound ε best, and few runs have few of them: an honest mechanism shows less than its ε.

    Examples
    --------
    >>> found = reachable_bound(0.2367, 10**6, epsilon_at(1e-6), 0.01)  # of a mechanism with an epsilon of 1
    >>> round(found, 1), round(reachable_bound(0.2367, 10**6, least_mu, 0.01), 2)
    (0.6, 0.23)
    """
    trials = runs - runs // 2
    cuts = np.linspace(-_TAIL, mu + _TAIL, _N_CUTS)
    hits, false_alarms = trials * special.ndtr(mu - cuts), trials * special.ndtr(-cuts)
    return float(measure(hits, false_alarms, trials, miss / 2).max())
