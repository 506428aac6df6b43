r"""The joint optimum of several streams with a prefilter that mixes them, for a receiver of finite lag.

It is min over causal K of J = ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with g of ``mixing_norm`` for γ, smoothed less and
less: Newton's method, with steps from conjugate gradients. K has finitely many taps on a warped circle, so that it is
causal whatever its nodes resolve. With r the causal part of (z^{-D}F - K)P - κ²gY⁻¹KΦ, which a minimum makes zero, the
ψ of ``mixing_bound`` is κ²gY⁻¹KΦ + r. Nowhere is ‖Y⁻¹KΦ^½‖ above 1: that more of ψ is above κ²g is what steps may still
mend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, inner
from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture, even_mixture
from dpfast.design.mimo.joint_channels import ChannelsOptimum, twice_as_many
from dpfast.design.mimo.mixing_bound import MixingBound
from dpfast.design.mimo.mixing_norm import MixingNorm, NormPoint, Softness
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.design.mimo.slope_bound import interpolate
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_RESOLVED = 2.0  # times the gap on a circle: what is left of the slope on one of twice as many steps at the most
_PROJECTIONS = 60  # of a certificate
_FIRST, _SHRINK, _LAST = 0.3, 0.1, 1e-8  # how much is smoothed: at first, from stage to stage, and at last
_ENOUGH = 0.5  # of the goal: the gap that the next stage is for, as gaps shrink with what is smoothed
_NEWTON_STEPS, _PRODUCTS = 40, 100  # of a stage, and of the conjugate gradients of a step
_MOST_WORK = 24 << 20  # of all of them, in products of an entry of K at a step of a circle: more is not spent on a gap
_OF_ROUNDS = 0.8  # of it: after that neither events nor stages begin, so that what there is can be settled
_OF_THE_NEXT = 0.5  # times what has settled last: what must be left for another to begin
_OF_STEP, _OF_EVENT, _OF_CERTIFICATE = 45, 2, 130  # products is the work of a Newton step, and for each event more
_ACCURATE = 1e-2  # of the residual of conjugate gradients
_AMPLE = 0.8  # of the goal: the gap on a circle, with all events, that ends the search for more
_ROUGH = 0.5  # a gap above which events are not looked for: they would be those of what is smoothed, and too many
_SHRINK_ROUGHLY = 0.5  # how much less is smoothed where K is as far as that from where it will be
_NEARLY, _LARGE = 2.0, 2**12  # times the goal: a gap that is not worth a finer circle than that, as dear as all before
_SETTLED = 0.05  # of the gap: what is left of the slope, as the shares of events move with it
_FITTED = 0.2  # of the goal: what is left on a circle of twice as many steps where the gap is below it
_SUFFICIENT, _SHORTEST = 0.1, 1e-6  # of what the slope promises, and of a step
_ROUNDING = 1e-13  # of J
SLACK = 0.3  # of what is smoothed: events that change the more are taken in
_LOST = 30.0  # times the best gap: rounding has taken over
_LONGEST = 2**14

SampleCircle = Callable[[WarpedCircle], SampledChannels]


class _MixingStage(NamedTuple):
    """The state of a search: taps of K (taps, p, m), the worst mixture, the smoothing, and the work: in all, and last.

    The smoothing is a share of <‖KΦ^½‖_*> as that was when the share began: what moved with K would unsettle it.
    """

    taps: Array
    mixture: EventMixture
    share: float
    smoothed: float
    spent: float
    latest: float = 0.0

    @property
    def has_time(self) -> bool:
        """It is true while work is left to settle with more events, or with less smoothing."""
        return self.spent < _OF_ROUNDS * _MOST_WORK and self.spent + _OF_THE_NEXT * self.latest < _MOST_WORK


def mixing_optimum(sample: SampleCircle, atoms: EventAtoms, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Smooth less and less, on circles of twice as many steps where those do not resolve it, until the gap is small.

    What is returned is of the circle of twice as many steps, with all events of a person; its bound is seen at twice as
    many nodes again.
    """
    search = _MixingSearch(sample(make_circle(warp, size)), atoms)
    stage = search.start(even_mixture(atoms))
    best: ChannelsOptimum | None = None
    while True:
        stage, settled = _settle_events(search.problem, stage, goal)
        stage = stage._replace(spent=stage.spent + _OF_CERTIFICATE * search.entries)
        gap, (finer, finest) = settled.gap, (sample(make_circle(warp, x * search.size)) for x in (2, 4))
        padded, finer_search = stage._replace(taps=twice_as_many(stage.taps)), _MixingSearch(finer, stage.mixture.atoms)
        slope = interpolate(search.problem.circle, finer.circle, settled.point.norm.slope)
        judged = finer_search.certify(finer_search.begin(padded), slope, finest, goal)
        found = judged.optimum()
        best = found if best is None or found.gap < best.gap else best
        lost = min(gap, found.gap) > _LOST * best.gap
        if best.gap <= goal or lost or stage.spent >= _MOST_WORK or stage.share < _LAST:
            return best
        between = _RESOLVED * gap if gap > goal else _FITTED * goal
        if min(judged.unsettled, found.gap) > between and 2 * finer.circle.size <= _LONGEST:
            if finer.circle.size >= _LARGE and best.gap <= _NEARLY * goal:
                return best
            search, stage = finer_search, padded
        elif not stage.has_time:
            return best
        else:
            search = _MixingSearch(search.problem, stage.mixture.atoms)
            enough = _ENOUGH * min(1.0, goal / gap)
            shrink = _SHRINK if gap <= _ROUGH else _SHRINK_ROUGHLY
            stage = search.soften(stage._replace(share=max(shrink, enough) * stage.share))


def _settle_events(problem: SampledChannels, stage: _MixingStage, goal: float) -> tuple[_MixingStage, _Judgement]:
    """Minimize with one smoothing, and take in events at other times that change more than the mixture.

    Return also the certificate without those that are left. It ends where with them the gap is below the goal, too, or
    where what work is left is needed to settle all on a circle that resolves it. A round that is cut as the work ends
    is lost, as nothing is settled by then: what is returned is of the one before.
    """
    before: tuple[_MixingStage, _Judgement] | None = None
    while True:
        search = _MixingSearch(problem, stage.mixture.atoms)
        stage, found = search.settle(stage)
        if stage.spent >= _MOST_WORK and before is not None and found.gap > before[1].gap:
            return before[0]._replace(spent=stage.spent), before[1]
        if found.gap > _ROUGH:
            return stage, found
        missed = found.weights.missed_events(found.point.norm.k, SLACK * stage.share)
        enough = len(missed.changes) and found.gap <= _AMPLE * goal and search.judge(found.point).gap <= _AMPLE * goal
        if not len(missed.changes) or enough or not stage.has_time:
            return stage, found
        before = stage, found
        stage = stage._replace(mixture=stage.mixture.extended(missed))


class _MixingPoint(NamedTuple):
    """A K: its taps, the norm there, its distortion, J, and minus half the slope of J, which is r (taps, p, m)."""

    taps: Array
    norm: NormPoint
    distortion: float
    value: float
    residual: Array


class _Judgement(NamedTuple):
    """The certificate of a K: its prefilters, its error, a bound of the least, and how much of the gap is for r."""

    point: _MixingPoint
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


class _MixingSearch:
    """The problem on one circle."""

    def __init__(self, problem: SampledChannels, atoms: EventAtoms) -> None:
        self.problem = problem
        self._norm, self._noise = MixingNorm(problem, atoms), problem.noise**2
        self.size, self._unit = problem.circle.size, problem.circle.unit[:, None, None]
        self.entries = self.size * problem.wanted[0].size
        self._told = problem.wanted @ problem.psd

    def taps(self, values: Complex) -> Array:
        """Return the taps of the causal part, as many as half of the steps."""
        return np.asarray(np.fft.irfft(values * self._unit, axis=-3)[..., : self.size // 2, :, :])

    def values(self, taps: Array) -> Complex:
        """Return them at the nodes."""
        return np.asarray(np.fft.rfft(taps, self.size, axis=-3) / self._unit)

    def point(self, taps: Array, shares: Array, soft: Softness) -> _MixingPoint:
        """Evaluate a K, from shares that are near to the worst."""
        k = self.values(taps)
        return self._point(taps, self._norm.at(k, shares, soft), self._distortion(k))

    def point_below(self, most: float, taps: Array, shares: Array, soft: Softness) -> _MixingPoint | None:
        """Return the same if its value is not above one, else None, which takes less than to find it."""
        k = self.values(taps)
        distortion = self._distortion(k)
        norm = self._norm.at_below(math.sqrt(max(0.0, most - distortion) / self._noise), k, shares, soft)
        return None if norm is None else self._point(taps, norm, distortion)

    def _point(self, taps: Array, norm: NormPoint, distortion: float) -> _MixingPoint:
        residual = self._residual(norm.k, self._noise * norm.value * norm.slope)
        return _MixingPoint(taps, norm, distortion, distortion + self._noise * norm.value**2, residual)

    def _residual(self, k: Complex, slope: Complex) -> Array:
        """Return the taps of r."""
        return self.taps(self._told - k @ self.problem.psd - slope)

    def _distortion(self, k: Complex) -> float:
        return self.problem.mean_power(self.problem.wanted - k)

    def start(self, mixture: EventMixture) -> _MixingStage:
        """Return the first stage."""
        return self.soften(_MixingStage(self.taps(self._norm.first_guess()), mixture, _FIRST, 0.0, 0.0))

    def soften(self, stage: _MixingStage) -> _MixingStage:
        """Return a stage that smooths its share of K."""
        whole = self._norm.whole(self.values(stage.taps), stage.mixture.shares)
        return stage._replace(smoothed=stage.share * whole)

    def begin(self, stage: _MixingStage) -> _MixingPoint:
        """Return the point of a stage."""
        return self.point(stage.taps, stage.mixture.shares, self._norm.soften(stage.smoothed))

    def settle(self, stage: _MixingStage) -> tuple[_MixingStage, _Judgement]:
        """Minimize with one smoothing, until the gap is hardly for what is left of the slope."""
        of_step = _OF_STEP + _OF_EVENT * len(stage.mixture.shares)
        found, spent = self._estimate(self.begin(stage)), stage.spent
        for _ in range(_NEWTON_STEPS):
            if found.unsettled <= _SETTLED * found.gap or spent >= _MOST_WORK:
                break
            step, products = _NewtonModel(self, found.point).step()
            spent += self.entries * (products + of_step)
            further = self._go(found.point, step)
            if further is None:
                break
            found, before = self._estimate(further), found
            if found.unsettled >= before.unsettled and further.value >= before.point.value * (1 - _ROUNDING):
                found = before
                break
        taps, events, latest = found.point.taps, found.point.norm.events, spent - stage.spent
        return _MixingStage(taps, events, stage.share, stage.smoothed, spent, latest), found

    def _go(self, start: _MixingPoint, step: Array) -> _MixingPoint | None:
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

    def judge(self, point: _MixingPoint) -> _Judgement:
        """Return the error of K with the best prefilter for it, and the lower bound."""
        weights, _ = self._best_prefilter(point)
        return self._compare(point, weights, weights.squared_norm(point.norm.k), self._bound(point))

    def _estimate(self, point: _MixingPoint) -> _Judgement:
        """Return the same as far as events of the mixture tell: of events at one time it is all."""
        return self._compare(point, *self._best_prefilter(point), self._bound(point))

    def _best_prefilter(self, point: _MixingPoint) -> tuple[MixingPrefilter, float]:
        """Return the prefilter for K that is smoothed or not, whichever costs less, with what it costs."""
        norm, costs = point.norm, []
        for smoothed in (0.0, norm.soft.size):
            weights = MixingPrefilter(self.problem, norm.events, smoothed=smoothed)
            costs.append((weights, weights.known_norm(norm.k, self._norm.responses)))
        return min(costs, key=lambda x: x[1])

    def _bound(self, point: _MixingPoint) -> float:
        """Return the lower bound from the slope of g."""
        norm, limit = point.norm, self._noise * point.norm.value
        psi = limit * norm.slope + self.values(point.residual)
        return MixingBound(self.problem, norm.mixture, limit).lowest(psi, norm.k, point.distortion)

    def _compare(self, point: _MixingPoint, weights: MixingPrefilter, cost: float, lower: float) -> _Judgement:
        """Return the certificate from what the prefilter costs, and the bound."""
        norm, mse = point.norm, point.distortion + self._noise * cost
        smoothed = 2 * float(self.problem.mean(inner(norm.slope, norm.k))) - norm.value
        settled = point.distortion + self._noise * norm.value * smoothed
        return _Judgement(point, weights, mse, lower, (settled - lower) / mse)

    def certify(self, point: _MixingPoint, slope: Complex, finest: SampledChannels, goal: float) -> _Judgement:
        """Return the error of K with the best prefilter for it, and the lower bound, seen at twice as many nodes.

        It is from the slope of g at K. If that has too large a gap, it is also from one that was interpolated, as where
        gains have kinks the other has more between the nodes of a circle than before; what it has before now is chosen
        by projections.
        """
        (weights, _), limit = self._best_prefilter(point), self._noise * point.norm.value
        circle, taps, cost = finest.circle, twice_as_many(point.taps), weights.squared_norm(point.norm.k)
        k = np.fft.rfft(taps, circle.size, axis=0) / circle.unit[:, None, None]
        seen = MixingBound(finest, point.norm.events.at(circle.grid.omega), limit)

        def lowest(psi: Complex) -> float:
            return seen.lowest(interpolate(self.problem.circle, circle, psi), k, point.distortion)

        found = self._compare(point, weights, cost, lowest(limit * point.norm.slope + self.values(point.residual)))
        if found.gap <= goal or found.gap - found.unsettled > _ROUGH:
            return found
        bound = MixingBound(self.problem, point.norm.mixture, limit)
        shortened = bound.shorten(slope)
        psi = bound.tighten(shortened + self.values(self._residual(point.norm.k, shortened)), _PROJECTIONS)
        return self._compare(point, weights, cost, max(found.lower_bound, lowest(psi)))

    def few_directions(self, at: _MixingPoint) -> Array:
        """Return the few U (directions, taps, p, m) with which the curvature is that of one mixture and UᵀU."""
        directions = np.concatenate([at.norm.slope[None], math.sqrt(at.norm.value) * at.norm.mixing()])
        return math.sqrt(self._noise) * self.taps(directions)

    def curvature_alone(self, at: _MixingPoint) -> Array:
        """Return the matrices of the same, of real and imaginary parts."""
        return at.norm.curvature(self.problem.psd, self._noise * at.norm.value)

    def curve_alone(self, at: _MixingPoint, e: Complex) -> Complex:
        """Return half the curvature of J along E at each frequency, of one mixture; of (..., nodes, p, m) at once."""
        return np.asarray(e @ self.problem.psd + self._noise * at.norm.value * at.norm.curve_alone(e))


class _NewtonModel:
    """J near a K, minimized by conjugate gradients.

    They are preconditioned by the inverse of its curvature frequency by frequency, of one mixture, to which is added
    that the mixture and the size of the norm change: of as few ranks as there are events.
    """

    def __init__(self, search: _MixingSearch, at: _MixingPoint) -> None:
        self._search, self._at = search, at
        self._inverse = np.linalg.inv(search.curvature_alone(at))
        few = search.few_directions(at)
        self._few = few.reshape(len(few), -1)
        self._conditioned = self._condition_alone(few).reshape(self._few.shape)
        self._stiffened = linalg.cho_factor(np.eye(len(few)) + self._few @ self._conditioned.T)

    def step(self) -> tuple[Array, int]:
        """Return the step, and how many products with the curvature it took."""
        step, left, products = np.zeros_like(self._at.residual), self._at.residual, 0
        direction = conditioned = self._condition(left)
        size = first = float((left * conditioned).sum())
        while size > _ACCURATE**2 * first and products < _PRODUCTS:
            curved, products = self._curve(direction), products + 1
            length = size / float((direction * curved).sum())
            step, left = step + length * direction, left - length * curved
            conditioned = self._condition(left)
            size, before = float((left * conditioned).sum()), size
            direction = conditioned + size / before * direction
        return step, products

    def _curve(self, taps: Array) -> Array:
        """Return half the curvature of J along taps."""
        alone = self._search.taps(self._search.curve_alone(self._at, self._search.values(taps)))
        return np.asarray(alone + ((self._few @ taps.ravel()) @ self._few).reshape(taps.shape))

    def _condition(self, taps: Array) -> Array:
        """Apply (A + UᵀU)⁻¹ = A⁻¹ - A⁻¹Uᵀ(1 + UA⁻¹Uᵀ)⁻¹UA⁻¹."""
        alone = self._condition_alone(taps[None])[0]
        shares = linalg.cho_solve(self._stiffened, self._few @ alone.ravel())
        return np.asarray(alone - (shares @ self._conditioned).reshape(taps.shape))

    def _condition_alone(self, taps: Array) -> Array:
        """Apply A⁻¹ to many (..., taps, p, m)."""
        values = self._search.values(taps)
        flat = np.moveaxis(self._inverse @ np.moveaxis(flatten(values), 0, -1), -1, 0)
        half = flat.shape[-1] // 2
        return self._search.taps((flat[..., :half] + 1j * flat[..., half:]).reshape(values.shape))


def flatten(values: Complex) -> Array:
    """Return real and imaginary parts of (..., p, m) as one axis."""
    flat = values.reshape(*values.shape[:-2], -1)
    return np.concatenate([flat.real, flat.imag], axis=-1)
