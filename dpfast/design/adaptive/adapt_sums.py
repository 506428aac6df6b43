"""Receivers of block sums fitted to what was published: another Kalman filter behind the same sums."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from dpfast._support.errors import DesignError
from dpfast.design.adaptive.adaptation import CONFIDENCE, SURPRISE, AdaptableSums, SumAdaptation, decide
from dpfast.design.adaptive.cross_validation import N_PARTS, Gain
from dpfast.design.adaptive.published_sums import SHORTEST, PublishedSums
from dpfast.design.adaptive.sum_spectrum import HIGHEST, SumCircle, SumFit, SumLikelihood, SumPeriodogram
from dpfast.signals.arma import ARMA
from dpfast.signals.model import Model

_LINE = 5.0  # distance of a pole from the circle, in steps of a part, below which it is a line
_CHANCE = 1e-3  # that a stationary input is taken for a changing one


def least_steps(plan: AdaptableSums) -> int:
    """Return how many steps with inputs a fit takes: all parts, and what is before the first whole cycle."""
    longest: int = max(plan.mechanism.lengths)
    return (N_PARTS * SHORTEST + 2) * longest


def check_known(plan: AdaptableSums) -> None:
    """Refuse a receiver of which it is not known how it errs."""
    if isinstance(why := plan.respond(), str):
        raise DesignError(f"mechanism must have a receiver whose errors v tells, to adapt it: {why}")


def adapt_sums(plan: AdaptableSums, v: ArrayLike, order: int | None, end: int | None = None) -> SumAdaptation[Any]:
    """Fit the spectrum of the input to published sums, and redesign the receiver for it.

    Parameters
    ----------
    plan : AdaptableSums
    v : array_like
        As of :func:`adapt`.
    order : int, optional
    end : int, optional
        The steps with inputs; by default all of v but those of the lag, which may be declared zeros.

    Raises
    ------
    ValueError
        For v that is too short.
    """
    values = plan.receiver_sums(np.asarray(v))
    steps = max(0, values.shape[-1] - (plan.lag or 0)) if end is None else end
    check_known(plan)
    sums = plan.published_sums(values, steps)
    if sums is None or sums.values.shape[1] < N_PARTS * SHORTEST:
        raise ValueError(
            f"v must have at least {least_steps(plan) + (plan.lag or 0)} steps, got {values.shape[-1]}: adapt when "
            "more is published"
        )
    fitting = _Fitting.of(sums)
    fit, best = fitting.find(order)
    model = fitting.model(fit)
    refusal = fitting.explain_refusal(fit, plan.mechanism.model)
    if refusal:
        return SumAdaptation(plan, False, plan, model, fit.order, None, None, refusal)
    gain = _cross_validate(plan, fitting, fit)
    doubts = fitting.find_doubts(fit, best)
    if gain.relative < gain.predicted - SURPRISE * gain.standard_error:
        doubts += (f"it promises a gain of {gain.predicted:.2%}",)
    taken, reason = decide(gain, doubts)
    half = CONFIDENCE * gain.standard_error
    interval = gain.relative - half, gain.relative + half
    chosen = plan.redesigned_for(model) if taken else plan
    return SumAdaptation(chosen, taken, plan, model, fit.order, gain.relative, interval, reason)


class _Fitting(NamedTuple):
    """Published sums, cut in time."""

    sums: PublishedSums
    parts: tuple[SumPeriodogram, ...]
    circle: SumCircle
    whole: SumPeriodogram

    @classmethod
    def of(cls, sums: PublishedSums) -> _Fitting:
        parts = sums.in_time(N_PARTS)
        return cls(sums, parts, sums.circle(parts[0].length), SumPeriodogram.join(parts))

    def find(self, order: int | None) -> tuple[SumFit, SumFit]:
        """Return the fit of the order, and that of the order which explains the sums best."""
        likelihood = SumLikelihood(self.circle, self.whole)
        fits = [x._replace(mean=likelihood.find_mean(x.psd)) for x in likelihood.fit_orders(max(HIGHEST, order or 0))]
        best = max(fits, key=lambda x: x.score)
        return (best if order is None else fits[order]), best

    def model(self, fit: SumFit) -> ARMA:
        """Return the input as it was fitted."""
        assert fit.a is not None
        return ARMA([fit.innovation_std], fit.a, mean=self.sums.mean + fit.mean, source="public")

    def refit(self, fit: SumFit, data: SumPeriodogram) -> SumFit:
        """Fit the same order to other data."""
        likelihood = SumLikelihood(self.circle, data)
        found = likelihood.refit(fit.parameters)
        return found._replace(mean=likelihood.find_mean(found.psd))

    def explain_refusal(self, fit: SumFit, model: Model) -> str:
        """Say why there is nothing to adapt to; nothing where there is."""
        likelihood = SumLikelihood(self.circle, self.whole)
        mean, variance = likelihood.measure_mean(fit.psd)
        noise_alone = likelihood.of_psd(np.zeros(len(self.circle.omega))) - mean**2 / variance / 2
        # the fit has the mean as one parameter more
        if noise_alone >= fit.score - likelihood.penalty(1):
            return "Nothing can be learnt: v does not differ from its noise."
        psd = model.psd(self.circle.omega)
        mean, variance = likelihood.measure_mean(psd)
        away = mean - (model.mean - self.sums.mean)
        if likelihood.of_psd(psd) - away**2 / variance / 2 >= fit.score - likelihood.penalty(1):
            return "The model that it was designed for explains v as well as the fit does, so the given receiver stays."
        return ""

    def find_doubts(self, fit: SumFit, best: SumFit) -> tuple[str, ...]:
        """List why the fit may not be trusted."""
        assert fit.a is not None
        doubts = []
        if best.order > fit.order:
            doubts.append(f"order {best.order} fits v far better than {fit.order}")
        slowest = float(np.abs(np.roots(fit.a)).max(initial=0.0))
        if slowest > 1 - _LINE / (self.parts[0].length * self.circle.cycle):
            doubts.append("v has a line narrower than its parts resolve")
        if self._chance_of_change(fit) < _CHANCE:
            doubts.append("the spectrum or the mean changes in time")
        return tuple(doubts)

    def _chance_of_change(self, fit: SumFit) -> float:
        """Return the chance that parts of a stationary input differ as much as these: a likelihood ratio."""
        statistic, means, variances = 0.0, [], []
        for part in self.parts:
            likelihood = SumLikelihood(self.circle, part)
            own = likelihood.refit(fit.parameters)
            statistic += 2 * (own.score + likelihood.penalty(len(fit.parameters)) - likelihood.of_psd(fit.psd))
            statistic -= float(fit.parameters[1:] @ fit.parameters[1:])  # the prior of the fit
            mean, variance = likelihood.measure_mean(fit.psd)
            means.append(mean)
            variances.append(variance)
        seen = bool(np.isfinite(variances).all())
        statistic += float(np.var(means)) * len(means) / variances[0] if seen else 0.0
        return float(special.chdtrc((len(self.parts) - 1) * (len(fit.parameters) + seen), max(0.0, statistic)))


def _cross_validate(plan: AdaptableSums, fitting: _Fitting, fit: SumFit) -> Gain:
    """Hold each part out once, from a fit of this order to the others, and return what adapting saves on it."""
    given: Any = plan.respond()
    sums, circle = fitting.sums, fitting.circle
    errors, saved, foreseen, variance = [], [], [], 0.0
    for i, part in enumerate(fitting.parts):
        found = fitting.refit(fit, SumPeriodogram.join(fitting.parts[:i] + fitting.parts[i + 1 :]))
        model = fitting.model(found)
        other: Any = plan.redesigned_for(model).respond()
        about = sums.about(model.mean)  # what the other receiver takes the mean to be
        trial, new = sums.errors(circle, found), about.errors(circle, found._replace(mean=0.0))
        here, weights = trial.tell(given, part)
        there, others = new.tell(other, about.in_time(N_PARTS)[i])
        errors.append(here)
        saved.append(here - there)
        foreseen.append(1 - new.foresee_error(other) / trial.foresee_error(given))
        variance += trial.variance(weights - others, part, of_bias=weights)
    mean = max(float(np.mean(errors)), given.noise)
    relative = np.array(saved) / mean
    deviation = math.sqrt(variance) / (N_PARTS * mean)
    return Gain(float(relative.mean()), deviation, float(np.mean(foreseen)), tuple(map(float, relative)))
