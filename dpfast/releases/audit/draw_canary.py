"""Canaries behind noise that is drawn once for each value: the likelihood ratio of the values that the events touch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpfast._support.validation import Array
from dpfast.privacy.response_table import ResponseTable
from dpfast.releases.audit.canary import MOST_EVENTS, SAMPLES, as_numbers, largest_change, with_floats
from dpfast.releases.audit.confidence_bounds import Measure
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.noise import NoiseOfLaws

_LONGEST = 2**16  # steps in which all values that an event touches are published
_CERTAIN = 1e6  # stands for an infinite log-likelihood ratio
_DIGITS = 9  # in which two ratios are the same
_MOST_ATOMS = 2**21  # of pairs of ratios, that are added up


@dataclass(frozen=True, eq=False)
class DrawCanary:
    """Make two signals that differ by one person's events, from the beginning of a stream on.

    Attributes
    ----------
    plan : ExactBase
    x : pair of arrays of int64, (streams, steps)
        Without and with the events.
    """

    plan: ExactBase
    x: tuple[Integers, Integers]

    @property
    def size(self) -> int:
        """Count the inputs of a run."""
        return self.x[0].size

    @classmethod
    def place(cls, plan: ExactBase, rng: np.random.Generator, sign: int = 1) -> DrawCanary:
        """Place events as near to one another as they may be, with signs that add up; the rest is at random ends.

        sign : 1 where the first event increases its value, -1 where it decreases it.
        """
        inputs, privacy = plan.inputs, plan.mechanism.privacy
        places = np.arange(min(privacy.max_events, MOST_EVENTS)) * privacy.min_separation
        n_steps = _steps_until_published(plan, int(places[-1]))
        low, high = Fraction(inputs.low), Fraction(inputs.high)
        ends = np.array([float(x) for x in (low, high, low - (high - low), high + (high - low))])
        without = rng.choice(ends, (inputs.streams_per_person, n_steps))
        with_ = without.copy()
        for k in places[places < n_steps]:
            pairs = [largest_change(inputs, privacy, direction) for direction in (sign, -sign)]
            found = []
            for pair in pairs:
                trial = without.copy(), with_.copy()
                for values, value in zip(trial, pair, strict=True):
                    values[:, k] = value
                found.append((_distance(plan, trial), trial))
            without, with_ = max(found, key=lambda x: x[0])[1]  # the first of equal ones
        return cls(plan, _as_integers(plan, (without, with_)))

    def statistic(self, noise: NoiseOfLaws, n_runs: int, *, present: bool) -> Array:
        """Return ln P(v | with) - ln P(v | without) of independent runs."""
        v = self._publish(np.tile(self.x[int(present)], (n_runs, 1)), noise)
        found = self._ratio(v.reshape(n_runs, *self._noiseless(0).shape))
        return np.asarray(found.reshape(n_runs, -1).sum(axis=1))

    def published(self, n_runs: int, noise: NoiseOfLaws) -> Integers:
        """Return what is published of some runs, in one row, of the values that carry noise."""
        x = np.tile(self.x[1], (n_runs, 1))
        return self._publish(x, noise)[..., self.plan.released(0, x.shape[1])].ravel()

    def _publish(self, x: Integers, noise: NoiseOfLaws) -> Integers:
        """Publish signals from their first step on."""
        n_draws = self.plan.n_draws(0, x.shape[1])
        noise.ready(len(x), n_draws)
        return self.plan.privatize(x[:, :0], x, noise.take(len(x), n_draws))

    def ratio_law(self) -> tuple[Array, Array, Array] | None:
        """Return the values of the ratio, and the probability of each without and with the events.

        None where they are too many.
        """
        laws = [expect(x) for x in self.plan.laws]
        changed = self._noiseless(0) != self._noiseless(1)
        ratios, chances = np.zeros(1), np.ones((2, 1))
        for place in np.flatnonzero(changed):
            noise, p = laws[np.unravel_index(place, changed.shape)[-2] if len(laws) > 1 else 0].few_values
            if not len(noise):
                return None
            own = []
            for which in (0, 1):
                v = np.stack([self._noiseless(which, int(n)) for n in noise])
                own.append(self._ratio(v).reshape(len(noise), -1)[:, place])
            if len(ratios) * 2 * len(noise) > _MOST_ATOMS:
                return None
            values, index = np.unique(np.concatenate(own).round(_DIGITS), return_inverse=True)
            n = len(noise)
            parts = [np.bincount(index[i * n : (i + 1) * n], p, len(values)) for i in (0, 1)]
            sums, index = np.unique((ratios[:, None] + values).round(_DIGITS), return_inverse=True)
            index = index.ravel()
            products = [np.outer(a, b).ravel() for a, b in zip(chances, parts, strict=True)]
            ratios, chances = sums, np.stack([np.bincount(index, x, len(sums)) for x in products])
        return (ratios, chances[0], chances[1]) if len(ratios) > 1 else None

    def _noiseless(self, which: int, noise: int = 0) -> Integers:
        """Return what is published where all of the noise is this value."""
        x = self.x[which]
        return self.plan.privatize(x[:, :0], x, np.full((len(x), sum(self.plan.n_draws(0, x.shape[1]))), noise))

    def _ratio(self, v: Integers) -> Array:
        """Return the log-likelihood ratio of each published value."""
        law = self.plan.laws[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            if isinstance(law, ResponseTable):  # v is the answer itself
                logs = []
                for which in (0, 1):
                    answers = zip(law.values, law.probabilities, strict=True)
                    likely = [float(p) * (v == self._noiseless(which, value)) for value, p in answers]
                    logs.append(np.log(np.sum(likely, axis=0)))
            else:
                logs = [self._log_probability(v - self._noiseless(which)) for which in (0, 1)]
            found = np.nan_to_num(logs[1] - logs[0], posinf=_CERTAIN, neginf=-_CERTAIN)
        return np.asarray(np.clip(found, -_CERTAIN, _CERTAIN))

    def _log_probability(self, noise: Integers) -> Array:
        """Return ln P of the noise on each published value, up to a constant; of several at a step each has its law."""
        laws = [expect(x) for x in self.plan.laws]
        if len(laws) == 1:
            return laws[0].log_probability(noise)
        return np.stack([law.log_probability(noise[..., i, :]) for i, law in enumerate(laws)], axis=-2)


def ratios(
    canaries: Sequence[DrawCanary],
    n_runs: int,
    *,
    present: bool,
    apart: bool = False,
    advance: Callable[[int], object] = lambda n: None,
) -> Array:
    """Return the statistic of runs that publish all of the canaries.

    apart : every canary in a release of its own, with noise of its own; else as pushes to one stream.
    advance : hears of the runs that are done.
    """
    at_once = max(1, SAMPLES // sum(x.size for x in canaries))
    result, laws = np.zeros(n_runs), canaries[0].plan.drawn_laws
    for first in range(0, n_runs, at_once):
        part = result[first : first + at_once]
        noise = NoiseOfLaws.of(laws)
        for i, canary in enumerate(canaries):
            source = NoiseOfLaws.of(laws) if apart and i else noise
            part += canary.statistic(source, len(part), present=present)
        advance(len(part))
    return result


def reachable_ratio(canaries: Sequence[DrawCanary], n_runs: int, measure: Measure, miss: float) -> float | None:
    """Return what `judge_rule` finds of noise as stated, at expected counts; None where the ratio has many values."""
    trials, total, chances = n_runs - n_runs // 2, np.zeros(1), np.ones((2, 1))
    for canary in canaries:
        if (law := canary.ratio_law()) is None:
            return None
        total = (total[:, None] + law[0]).ravel()
        chances = np.stack([np.outer(a, b).ravel() for a, b in zip(chances, law[1:], strict=True)])
    order = np.argsort(total, kind="stable")
    last = np.append(np.diff(total[order].round(_DIGITS - 1)) > 0, True)  # of equal ratios
    below = np.minimum(np.cumsum(chances[:, order], axis=1)[:, last], 1.0) * trials
    above = trials - below
    found = [measure(above[1], above[0], trials, miss / 2), measure(below[0], below[1], trials, miss / 2)]
    return float(np.max(found))


def _steps_until_published(plan: ExactBase, last: int) -> int:
    """Return after how many steps all values are published that an event at step `last` touches."""
    fixed = plan.fixed_steps
    most = last + _LONGEST if fixed is None else fixed
    released = np.atleast_2d(plan.released(0, most))
    ends = [np.flatnonzero(row[last:]) for row in released]
    return last + max((int(x[0]) for x in ends if len(x)), default=most - last - 1) + 1


def _as_integers(plan: ExactBase, u: tuple[Array, Array]) -> tuple[Integers, Integers]:
    numbers = [as_numbers(values) for values in u]
    accepting = plan.inputs if all(x.dtype.kind == "i" for x in numbers) else with_floats(plan.inputs)
    without, with_ = (replace(accepting, n_streams=len(x)).integers(x) for x in numbers)
    return without, with_


def _distance(plan: ExactBase, u: tuple[Array, Array]) -> int:
    """Return by how much all published values change together."""
    canary = DrawCanary(plan, _as_integers(plan, u))
    return int(np.abs(canary._noiseless(1, 1) - canary._noiseless(0, 1)).sum())
