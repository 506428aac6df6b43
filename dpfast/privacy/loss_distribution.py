r"""The composition of randomised responses and Gaussian noise by its privacy losses, rounded upwards.

A mechanism that is ε-DP is dominated by randomised response, of losses ±ε with probabilities e^±ε/(1 + e^ε) (Kairouz,
Oh and Viswanath 2015), and dominating pairs compose, also where each mechanism is chosen from earlier outputs (Zhu,
Dong and Wang 2022). The loss of several is a sum of independent ones, so that

    δ(ε) = Σ over losses ℓ of P(ℓ) δ_μ(ε - ℓ),

with δ_μ the curve of the Gaussian mechanism that joins them, (1 - e^x)₊ where there is none. δ_μ falls, a randomised
response of a larger ε dominates one of a smaller: both are what lets every number be rounded to the safe side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfast._support.validation import Array
from dpfast.privacy.gaussian import LOG_DELTA_MARGIN, log_deltas_beyond

MOST_OUTCOMES = 20_000
_MOST_ON_A_GRID = 2_000  # responses: more of them would be rounded up by too much
_MARGIN = 1e-14  # relative to every term of a logarithm, tens of what libraries are wrong by
_TINY = 1e-290  # more than all that underflows


@dataclass(frozen=True, eq=False)
class Losses:
    """Hold the distribution of the sum of the losses of some randomised responses, to find their δ.

    Attributes
    ----------
    losses, probabilities : array
    slack : float
        What a loss may be too low by.
    margin : float
        What a probability may be too low by, relative to it.
    """

    losses: Array
    probabilities: Array
    slack: float
    margin: float

    @classmethod
    def of_responses(cls, epsilons: Sequence[float]) -> Losses | None:
        """Return the distribution for some ε; None where it would have too many outcomes, even rounded to a grid."""
        counts = Counter(x for x in epsilons if x > 0)
        if math.prod(k + 1 for k in counts.values()) <= MOST_OUTCOMES:
            return cls._by_products(counts)
        return cls._on_grid(counts) if counts.total() <= _MOST_ON_A_GRID else None

    @classmethod
    def _by_products(cls, counts: Counter[float]) -> Losses:
        losses, logs, terms = np.zeros(1), np.zeros(1), 0.0
        for epsilon, k in counts.items():
            log_probability, size = _log_binomial(epsilon, k)
            losses = np.add.outer(losses, epsilon * np.arange(-k, k + 1, 2)).ravel()
            logs = np.add.outer(logs, log_probability).ravel()
            terms += size
        total = sum(epsilon * k for epsilon, k in counts.items())
        return cls(losses, np.exp(logs), _MARGIN * total, _MARGIN * (terms + 10))

    @classmethod
    def _on_grid(cls, counts: Counter[float]) -> Losses:
        """Round every ε up to a multiple of the step of a grid."""
        n, total = counts.total(), sum(epsilon * k for epsilon, k in counts.items())
        step = total / (MOST_OUTCOMES - 2 * n)
        steps: Counter[int] = Counter()
        for epsilon, k in counts.items():
            steps[math.ceil(epsilon / step * (1 + _MARGIN))] += k
        largest, probabilities, terms = 0, np.ones(1), 0.0
        for m, k in steps.items():
            log_probability, size = _log_binomial(m * step, k)
            together = np.zeros(largest + m * k + 1)
            for j, probability in enumerate(np.exp(log_probability)):
                together[m * j : m * j + largest + 1] += probability * probabilities
            largest, probabilities, terms = largest + m * k, together, terms + size + 4 * k
        losses = np.multiply(step, np.arange(-largest, largest + 1, 2), dtype=float)
        return cls(losses, probabilities, 2 * _MARGIN * step * largest, _MARGIN * (terms + 10))

    def delta(self, epsilon: float, mu: float) -> float:
        """Return δ of the responses together with a μ-GDP mechanism, rounded upwards and at most 1."""
        at = epsilon - self.losses - self.slack - 4e-16 * abs(epsilon)
        total = float(self.probabilities @ _gaussian_deltas(at, mu))
        return min(1.0, total * (1 + self.margin + 1e-12) + _TINY)


def _log_binomial(epsilon: float, k: int) -> tuple[Array, float]:
    """Return the logarithms of the probabilities of 0, 1, ..., k losses of +ε, and the size of their terms."""
    j = np.arange(k + 1.0)
    log_factorials = np.array([math.lgamma(x + 1) for x in range(k + 1)])
    log_choose = log_factorials[-1] - log_factorials - log_factorials[::-1]
    log_no = np.logaddexp(0.0, epsilon)
    terms = 3 * log_factorials[-1] + 2 * k * float(log_no)
    return log_choose + j * epsilon - k * log_no, float(terms)


def _gaussian_deltas(epsilon: Array, mu: float) -> Array:
    """Return δ of a μ-GDP mechanism at values of ε of either sign, at least the truth."""
    beyond = np.zeros_like(epsilon)
    if math.isinf(mu):
        return beyond + 1
    if mu > 0:
        size = np.minimum(np.abs(epsilon), mu * (50 + mu))  # beyond it is 0 anyway, and a quotient could overflow
        thresholds = size / mu - mu / 2
        thresholds -= 4e-16 * (size / mu + mu)
        seen = thresholds < 40  # beyond it is below 1e-347
        beyond[seen] = np.exp(log_deltas_beyond(thresholds[seen], mu) * (1 - LOG_DELTA_MARGIN))
        np.minimum(beyond, 1.0, out=beyond)
    odds = np.exp(np.minimum(epsilon, 0.0))
    return np.where(epsilon >= 0, beyond, -np.expm1(np.minimum(epsilon, 0.0)) + odds * beyond)
