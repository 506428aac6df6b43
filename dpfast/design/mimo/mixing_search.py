r"""The search for the joint optimum with a prefilter that mixes inputs, on one circle and with one smoothing.

J = ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with g of ``mixing_norm`` for γ, is least by Newton's method, with steps from
conjugate gradients. K has finitely many taps on a warped circle, so that it is causal whatever its nodes resolve; or
what it has beside z^{-D}F, where streams are so loud that rounding would tell the difference of F and K. With
r the causal part of (z^{-D}F - K)P - κ²gY⁻¹KΦ, which a minimum makes zero, the ψ of ``mixing_bound`` is κ²gY⁻¹KΦ + r.
Nowhere is ‖Y⁻¹KΦ^½‖ above 1: that more of ψ is above κ²g is what steps may still mend.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, inner
from dpfast.design.mimo.circle_taps import at_nodes, causal_taps, interpolate, twice_as_many
from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture
from dpfast.design.mimo.joint_channels import ChannelsOptimum
from dpfast.design.mimo.mixing_bound import MixingBound
from dpfast.design.mimo.mixing_norm import MixingNorm, NormPoint, Softness
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.design.mimo.mixing_step import MixingModel

_PROJECTIONS = 40  # of a certificate
_ROUNDS, _FAR, _MOSTLY = 4, 10.0, 0.5  # of as many, where a gap is above so many goals, and that much of it unsettled
_FIRST = 0.3  # how much is smoothed at first
_NEWTON_STEPS = 40  # of a stage
_MOST_WORK = 21 << 20  # of all of them, in products of an entry of K at a step of a circle: more is not spent on a gap
_FEW_INPUTS = 3  # for so many inputs; for more it is times as much:
_OF_MANY, _OF_MANY_TIMES = 7, 3  # where events are at one time, and where they may be at any
_OF_ROUNDS = 0.8  # of it: after that neither events nor stages begin, so that what there is can be settled
_OF_THE_NEXT = 0.5  # times what has settled last: what must be left for another to begin
_OF_STEP, _OF_EVENT, _OF_CERTIFICATE = 24, 2, 95  # products is the work of a Newton step, and for each event more
ROUGH = 0.5  # a gap of a K that is far from where it will be
_SETTLED = 0.05  # of the gap: what is left of the slope, as the shares of events move with it
_SUFFICIENT, _SHORTEST = 0.1, 1e-6  # of what the slope promises, and of a step
_ROUNDING = 1e-13  # of J


class MixingStage(NamedTuple):
    """The state of a search: the worst mixture, smoothing, and work: in all, last, at most.

    Taps (taps, p, m) are those of K, or of what it has beside what is known. The smoothing is a share of <‖KΦ^½‖_*> as
    that was when the share began: what moved with K would unsettle it.
    """

    taps: Array
    mixture: EventMixture
    share: float
    smoothed: float
    spent: float
    latest: float = 0.0
    most_work: float = _MOST_WORK

    @property
    def worked_off(self) -> bool:
        """It is true when no work is left."""
        return self.spent >= self.most_work

    @property
    def has_time(self) -> bool:
        """It is true while work is left to settle with more events, or with less smoothing."""
        return self.spent < _OF_ROUNDS * self.most_work and self.spent + _OF_THE_NEXT * self.latest < self.most_work


class MixingPoint(NamedTuple):
    """A K: its taps, the norm there, its distortion, J, and minus half the slope of J, which is r (taps, p, m)."""

    taps: Array
    norm: NormPoint
    distortion: float
    value: float
    residual: Array


class MixingJudgement(NamedTuple):
    """The certificate of a K: its prefilters, its error, a bound of the least, and how much of the gap is for r."""

    point: MixingPoint
    weights: MixingPrefilter
    mse: float
    lower_bound: float
    unsettled: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return 1 - self.lower_bound / self.mse

    def optimum(self) -> ChannelsOptimum:
        """Return it with the prefilters that it has."""
        return ChannelsOptimum(self.weights, self.point.norm.k, self.mse, min(self.lower_bound, self.mse))


class MixingSearch:
    """The problem on one circle."""

    def __init__(self, problem: SampledChannels, atoms: EventAtoms) -> None:
        self.problem = problem
        self._norm, self._noise = MixingNorm(problem, atoms), problem.noise**2
        self.size = problem.circle.size
        self._entries = self.size * problem.wanted[0].size

    def values(self, taps: Array) -> Complex:
        """Return taps at the nodes."""
        return at_nodes(self.problem.circle, taps)

    def product(self, taps: Array) -> Complex:
        """Return K."""
        return np.asarray(self.problem.known + self.values(taps))

    def left(self, taps: Array) -> Complex:
        """Return z^{-D}F - K."""
        return np.asarray(self.problem.unknown - self.values(taps))

    def point(self, taps: Array, shares: Array, soft: Softness) -> MixingPoint:
        """Evaluate a K, from shares that are near to the worst."""
        return self._point(taps, self._norm.at(self.product(taps), shares, soft), self._distortion(taps))

    def point_below(self, most: float, taps: Array, shares: Array, soft: Softness) -> MixingPoint | None:
        """Return the same if its value is not above one, else None, which takes less than to find it."""
        distortion = self._distortion(taps)
        most_norm = math.sqrt(max(0.0, most - distortion) / self._noise)
        norm = self._norm.at_below(most_norm, self.product(taps), shares, soft)
        return None if norm is None else self._point(taps, norm, distortion)

    def _point(self, taps: Array, norm: NormPoint, distortion: float) -> MixingPoint:
        residual = self._residual(taps, self._noise * norm.value * norm.slope)
        return MixingPoint(taps, norm, distortion, distortion + self._noise * norm.value**2, residual)

    def _residual(self, taps: Array, slope: Complex) -> Array:
        """Return the taps of r."""
        return causal_taps(self.problem.circle, self.left(taps) @ self.problem.psd - slope)

    def _distortion(self, taps: Array) -> float:
        return self.problem.mean_power(self.left(taps))

    def start(self, mixture: EventMixture) -> MixingStage:
        """Return the first stage."""
        taps = causal_taps(self.problem.circle, self._norm.first_guess() - self.problem.known)
        return self.soften(MixingStage(taps, mixture, _FIRST, 0.0, 0.0, most_work=self._most_work()))

    def _most_work(self) -> float:
        """Return what a search may take: of many inputs there are more entries, and more events."""
        if self.problem.wanted.shape[2] <= _FEW_INPUTS:
            return _MOST_WORK
        return _MOST_WORK * (_OF_MANY_TIMES if self.problem.adjacency == "each_input" else _OF_MANY)

    def soften(self, stage: MixingStage) -> MixingStage:
        """Return a stage that smooths its share of K."""
        whole = self._norm.whole(self.product(stage.taps), stage.mixture.shares)
        return stage._replace(smoothed=stage.share * whole)

    def count_certificate(self, stage: MixingStage) -> MixingStage:
        """Return a stage with the work of its certificate."""
        return stage._replace(spent=stage.spent + _OF_CERTIFICATE * self._entries)

    def begin(self, stage: MixingStage) -> MixingPoint:
        """Return the point of a stage."""
        return self.point(stage.taps, stage.mixture.shares, self._norm.soften(stage.smoothed))

    def settle(self, stage: MixingStage) -> tuple[MixingStage, MixingJudgement]:
        """Minimize with one smoothing, until the gap is hardly for what is left of the slope."""
        of_step = _OF_STEP + _OF_EVENT * len(stage.mixture.shares)
        found, spent = self._estimate(self.begin(stage)), stage.spent
        for _ in range(_NEWTON_STEPS):
            if found.unsettled <= _SETTLED * found.gap or spent >= stage.most_work:
                break
            try:
                step, products = MixingModel(self.problem, found.point.norm).step(found.point.residual)
            except np.linalg.LinAlgError:  # a curvature of which no digit is left: it says where no step goes
                break
            spent += self._entries * (products + of_step)
            further = self._go(found.point, step)
            if further is None:
                break
            found, before = self._estimate(further), found
            if found.unsettled >= before.unsettled and further.value >= before.point.value * (1 - _ROUNDING):
                found = before
                break
        taps, events, latest = found.point.taps, found.point.norm.events, spent - stage.spent
        return stage._replace(taps=taps, mixture=events, spent=spent, latest=latest), found

    def _go(self, start: MixingPoint, step: Array) -> MixingPoint | None:
        """Go so far along a step that it pays, or is lost in rounding; None if nothing is as good."""
        promised, length = 2 * float((start.residual * step).sum()), 1.0
        moved = start.norm.shares_along(self.values(step))
        while length > _SHORTEST:
            shares = start.norm.shares * np.where(moved < 0, 1 / (1 + length * np.abs(moved)), 1 + length * moved)
            most = start.value * (1 + _ROUNDING) - _SUFFICIENT * length * promised
            taps = start.taps + length * step
            found = self.point_below(most, taps, shares / shares.sum(), start.norm.soft)
            if found is not None:
                return found
            length /= 2
        return None

    def judge(self, point: MixingPoint) -> MixingJudgement:
        """Return the error of K with the best prefilter for it, and the lower bound."""
        weights, _ = self._best_prefilter(point)
        return self._compare(point, weights, weights.error(point.norm.k), self._bound(point))

    def _estimate(self, point: MixingPoint) -> MixingJudgement:
        """Return the same as far as events of the mixture tell: of events at one time it is all."""
        weights, cost = self._best_prefilter(point)
        return self._compare(point, weights, point.distortion + self._noise * cost, self._bound(point))

    def _best_prefilter(self, point: MixingPoint) -> tuple[MixingPrefilter, float]:
        """Return the prefilter for K that is smoothed or not, whichever costs less, with what it costs."""
        norm, costs = point.norm, []
        for smoothed in (0.0, norm.soft.size):
            weights = MixingPrefilter(self.problem, norm.events, smoothed=smoothed)
            costs.append((weights, weights.known_norm(norm.k, self._norm.responses)))
        return min(costs, key=lambda x: x[1])

    def _bound(self, point: MixingPoint) -> float:
        """Return the lower bound from the slope of g."""
        norm, limit = point.norm, self._noise * point.norm.value
        psi = limit * norm.slope + self.values(point.residual)
        return MixingBound(self.problem, norm.mixture, limit).lowest(psi, norm.k, point.distortion)

    def _compare(self, point: MixingPoint, weights: MixingPrefilter, mse: float, lower: float) -> MixingJudgement:
        """Return the certificate from the error with the prefilter, and the bound."""
        norm = point.norm
        smoothed = 2 * float(self.problem.mean(inner(norm.slope, norm.k))) - norm.value
        settled = point.distortion + self._noise * norm.value * smoothed
        return MixingJudgement(point, weights, mse, lower, (settled - lower) / mse)

    def certify(self, point: MixingPoint, slope: Complex, finest: SampledChannels, goal: float) -> MixingJudgement:
        """Return the error of K with the best prefilter for it, and the lower bound, seen at twice as many nodes.

        It is from the slope of g at K. If that has too large a gap, it is also from one that was interpolated, as where
        gains have kinks the other has more between the nodes of a circle than before; what it has before now is chosen
        by projections where it is seen. What the error differs by from that at the nodes here is taken off.
        """
        (weights, _), limit = self._best_prefilter(point), self._noise * point.norm.value
        here, there = self.problem.circle, finest.circle
        values = at_nodes(there, twice_as_many(point.taps))
        k, distortion = finest.known + values, finest.mean_power(finest.unknown - values)
        mse = weights._replace(problem=finest).error(k)
        differs = abs(mse - weights.error(point.norm.k))
        seen = MixingBound(finest, point.norm.events.at(there.grid.omega), limit)

        def interpolated(slope: Complex) -> Complex:
            return interpolate(here, there, slope + self.values(self._residual(point.taps, slope)))

        def judged(psi: Complex) -> MixingJudgement:
            found = self._compare(point, weights, mse, seen.lowest(psi, k, distortion))
            return found._replace(lower_bound=found.lower_bound - differs)

        found = judged(interpolated(limit * point.norm.slope))
        if found.gap <= goal or found.gap - found.unsettled > ROUGH:
            return found
        shortened = MixingBound(self.problem, point.norm.mixture, limit).shorten(slope)
        psi = interpolated(shortened)
        for _ in range(_ROUNDS):
            psi = seen.tighten(psi, _PROJECTIONS)
            found = max(found, judged(psi), key=lambda x: x.lower_bound)
            if found.gap <= _FAR * goal or found.unsettled <= _MOSTLY * found.gap:
                break
        return found
