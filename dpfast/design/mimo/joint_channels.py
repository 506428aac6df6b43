r"""The joint optimum of G and H of several streams, which may depend on one another, for a receiver of finite lag.

With a prefilter for each input it is min over causal K of J = ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with γ of
``gain_norm``, smoothed less and less, about directions that are known better and better: Newton's method, with steps
from conjugate gradients. K has finitely many taps on a warped circle, so that it is causal whatever its nodes resolve;
or what it has beside z^{-D}F, where streams are so loud that rounding would tell the difference of F and K.
With s half the slope of γ², and r the causal part of (z^{-D}F - K)P - κ²s, which a minimum makes zero, κ²s + r is the ψ
of ``slope_bound``. No column of κ²s is longer than its level: that columns of ψ are is what steps may still mend.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, inner
from dpfast.design.mimo.circle_taps import at_nodes, causal_taps, interpolate, twice_as_many
from dpfast.design.mimo.gain_norm import GainPoint, centre_at
from dpfast.design.mimo.merged_streams import MergedStreams
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.design.mimo.newton_step import NewtonSteps
from dpfast.design.mimo.node_transforms import NodeTransforms
from dpfast.design.mimo.slope_bound import SlopeBound
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_RESOLVED = 1.3  # times the gap as the nodes of a circle tell: what it is anywhere, at the most
_FIRST, _SHRINK, _LAST = 0.3, 0.2, 1e-6  # how much is smoothed: at first, from stage to stage, and at last
_GAINED, _MOST_STAGES = 0.9, 8  # times the gap: less than that is gained in so many stages, and the search ends
_NEWTON_STEPS = 40  # of a stage
_MOST_WORK = 5 * 2**28  # of all of them, in entries of K at steps of circles: more is not spent on a gap
_ACCURATE = 0.3  # of the residual of conjugate gradients
_LATE = 1e-4  # how much is smoothed in late stages, at the most
_MOST_DAMPED = 1.0  # of the curvature: steps get shorter
_PATIENCE = 12  # steps in which no less is left of the slope
_SUFFICIENT, _SHORTEST = 0.1, 1e-6  # of what the slope promises, and of a step
_PROJECTIONS, _PROJECTIONS_WHERE_SEEN = 60, 10  # of a certificate: first, and then at the nodes where it is seen
_NEAR = 2.0  # times the goal: a gap from which on stages smooth no less than they must
_UNSETTLED = 0.8  # of the gap: where so much is left of the slope, it tells nothing of nodes
_LESS = 0.7  # times what was smoothed: so much less a stage smooths then, at least, on the circle of the last one
_LEFT_SMOOTHED, _LEFT_BETWEEN = 0.5, 0.25  # of the goal: what may be left then of what is smoothed, and between nodes
_ROUNDING = 1e-15  # of J, and of the powers of what it is a small difference of where streams depend on one another
_LONGEST = 2**15

SampleProblem = Callable[[WarpedCircle], SampledChannels]


class ChannelsOptimum(NamedTuple):
    """The joint optimum at the nodes of a circle.

    Attributes
    ----------
    weights : DiagonalWeights or MixingPrefilter
        What prefilters it has.
    product : array, (nodes, p, m)
        K.
    mse, lower_bound : float
    """

    weights: DiagonalWeights | MixingPrefilter
    product: Complex
    mse: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return max(0.0, 1 - self.lower_bound / self.mse)


class ChannelsStage(NamedTuple):
    """The state of a search.

    Attributes
    ----------
    taps : array, (taps, p, m)
        Of K, or of what it has beside what is known.
    centre : array, (nodes, p, m)
        About what is smoothed.
    share : float
        How much is smoothed.
    spent : int
        The work.
    """

    taps: Array
    centre: Complex
    share: float
    spent: int

    def go_on(self, centre: Complex, less: float = _SHRINK) -> ChannelsStage:
        """Return the next stage, which smooths less, about another centre."""
        return self._replace(centre=centre, share=max(_LAST, less * self.share))


def _shorten(directions: Complex) -> Complex:
    """Make none longer than 1."""
    return np.asarray(directions / np.maximum(1.0, np.linalg.norm(directions, axis=1))[:, None])


def channels_optimum(sample: SampleProblem, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Smooth less and less, on circles of twice as many steps where those do not resolve it, until the gap is small.

    What is returned is of the circle of twice as many steps, with the error as one of four times as many has it; what
    that changes by from one circle to the other is taken off the bound. Streams that are multiples of one another are
    one meanwhile.
    """
    circle = make_circle(warp, size)
    streams = MergedStreams.of(sample(circle).psd)
    search = ChannelsSearch(lambda x: streams.merge(sample(x)), circle)
    best = search_optimum(search, goal)
    problem = sample(best.weights.problem.circle)
    return best._replace(weights=DiagonalWeights(problem), product=streams.spread(best.product, problem))


def search_optimum(search: ChannelsSearch, goal: float) -> ChannelsOptimum:
    """Do so from a circle on."""
    stage, best, waited, refined = search.begin(), None, 0, False
    while True:
        stage, judged = search.settle(stage)
        padded, found = search.finer.certify(stage, judged)
        waited = 0 if best is None or found.gap < _GAINED * best.gap else waited + 1
        best = found if best is None else _better(best, found)
        if best.gap <= goal or stage.spent >= _MOST_WORK or waited > _MOST_STAGES:
            return best
        near, between = found.gap <= _NEAR * goal, found.gap - judged.smoothed
        told = judged.smoothed if judged.unsettled > _UNSETTLED * judged.gap else max(judged.gap, judged.smoothed)
        coarse = between > _LEFT_BETWEEN * goal if near else found.gap > _RESOLVED * told
        refined = coarse and 4 * search.size <= _LONGEST and not (refined and waited)  # or nodes are not what lacks
        less = max(_SHRINK, 1 / max(1.0, judged.smoothed / (_LEFT_SMOOTHED * goal)))
        if refined:
            search, stage = search.finer, padded.go_on(padded.centre, less if near else 1.0)
        else:
            stage = stage.go_on(padded.centre[::2], min(_LESS, less) if near else _SHRINK)


def _better(a: ChannelsOptimum, b: ChannelsOptimum) -> ChannelsOptimum:
    """Return the one of less error, with the higher of both bounds; of different circles that of less gap."""
    if len(a.product) != len(b.product):
        return min(a, b, key=lambda x: x.gap)
    least = a if a.mse <= b.mse else b
    return least._replace(lower_bound=min(least.mse, max(a.lower_bound, b.lower_bound)))


class _ChannelsPoint(NamedTuple):
    """A K: its taps, the norm there, J, its rounding, and minus half the slope of J, which is r (taps, p, m)."""

    taps: Array
    norm: GainPoint
    value: float
    rounding: float
    residual: Array


class ChannelsJudgement(NamedTuple):
    """The certificate of a K as the nodes tell: its error, a lower bound, and how much of the gap is for r."""

    point: _ChannelsPoint
    mse: float
    lower_bound: float
    unsettled: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return 1 - self.lower_bound / self.mse

    @property
    def smoothed(self) -> float:
        """The part of the gap that is for what is smoothed."""
        return max(0.0, self.gap - self.unsettled)


class ChannelsSearch:
    """The problem on one circle."""

    _settled, _settled_late = 0.2, 0.5  # of the gap: what is left of the slope, early and late
    _damped = 20.0  # times the share that is smoothed, of the curvature

    def __init__(self, sample: SampleProblem, circle: WarpedCircle) -> None:
        self._sample, self.problem = sample, sample(circle)
        self._noise, self.size = self.problem.noise**2, circle.size
        self._powers: Array = np.einsum("wii->wi", self.problem.psd).real

    @functools.cached_property
    def finer(self) -> ChannelsSearch:
        """The problem on a circle of twice as many steps."""
        return ChannelsSearch(self._sample, make_circle(self.problem.circle.warp, 2 * self.size))

    def taps(self, values: Complex) -> Array:
        """Return the taps of the causal part."""
        return causal_taps(self.problem.circle, values)

    def values(self, taps: Array) -> Complex:
        """Return them at the nodes."""
        return at_nodes(self.problem.circle, taps)

    def begin(self) -> ChannelsStage:
        """Return the stage that begins with what is wanted, about nothing."""
        return ChannelsStage(self.taps(self.problem.unknown), np.zeros_like(self.problem.wanted), _FIRST, 0)

    def product(self, taps: Array) -> Complex:
        """Return K."""
        return np.asarray(self.problem.known + self.values(taps))

    def left(self, taps: Array) -> Complex:
        """Return z^{-D}F - K."""
        return np.asarray(self.problem.unknown - self.values(taps))

    def soften(self, stage: ChannelsStage) -> Array:
        """Return how much each gain is smoothed: by as much in changes of the output, as a share of all means."""
        changes = self.problem.changes
        means: Array = self.problem.mean(np.linalg.norm(self.product(stage.taps), axis=1))
        return np.asarray(stage.share * float(changes @ means) / len(means) / changes)

    def point(self, taps: Array, soft: Array, centre: Complex) -> _ChannelsPoint:
        """Evaluate the error of a K, and its slope."""
        left, norm = self.left(taps), GainPoint(self.problem, self.product(taps), soft, centre)
        value = self.problem.mean_power(left) + self._noise * norm.value
        apart = float(self.problem.mean((np.linalg.norm(left, axis=1) ** 2 * self._powers).sum(axis=1)))
        return _ChannelsPoint(taps, norm, value, _ROUNDING * (value + apart), self._residual(left, norm.slope))

    def _residual(self, left: Complex, slope: Complex) -> Array:
        """Return the taps of r."""
        return self.taps(left @ self.problem.psd - self._noise * slope)

    def settle(self, stage: ChannelsStage) -> tuple[ChannelsStage, ChannelsJudgement]:
        """Minimize with one smoothing, until the gap is hardly for what is left of the slope."""
        soft, spent = self.soften(stage), stage.spent
        early = stage.share >= _LATE  # others rest on them, and they are cheap
        settled = self._settled if early else self._settled_late
        point, waited = self.point(stage.taps, soft, stage.centre), 0
        duals, found = point.norm.directions, self.judge(point, early)
        for _ in range(_NEWTON_STEPS):
            if found.unsettled <= settled * found.gap or spent >= _MOST_WORK or waited > _PATIENCE:
                break
            damped = min(_MOST_DAMPED, self._damped * stage.share)
            step, products = self._steps.towards_least(point.norm, point.residual, duals, damped)
            spent += products * self.size * point.norm.k[0].size
            further, length = self._go(point, step, soft, stage.centre)
            if further is None:
                break
            duals = point.norm.move_duals(self.values(length * step), duals)
            lost = further.value >= point.value - point.rounding  # the slope alone tells
            point, judged = further, self.judge(further, early)
            waited = waited + 1 if lost and judged.unsettled >= found.unsettled else 0
            found = found if waited else judged
        return stage._replace(taps=found.point.taps, spent=spent), found

    def judge(self, point: _ChannelsPoint, early: bool = False) -> ChannelsJudgement:
        """Return the error of K with the best prefilters for it, and the lower bound, as these nodes tell.

        Columns of ψ are not made longer early on: it would hide what is left of the slope, by which stages end.
        """
        problem, norm = self.problem, point.norm
        distortion, mse = self.distortion(norm.k), self.error(norm.k)
        psi = self._noise * norm.slope + self.values(point.residual)
        lower = SlopeBound(problem, norm.levels).lowest(psi, norm.k, distortion, lengthened=not early)
        settled = distortion + self._noise * (2 * float(problem.mean(inner(norm.slope, norm.k))) - norm.value)
        return ChannelsJudgement(point, mse, lower, (settled - lower) / mse)

    def certify(self, stage: ChannelsStage, judged: ChannelsJudgement) -> tuple[ChannelsStage, ChannelsOptimum]:
        """Return a stage of the circle of half as many steps for this one, and the certificate of the K it ended with.

        ψ begins with directions that are interpolated, and made no longer than 1. It is tightened on a circle of twice
        as many steps, and a little on one of twice as many again, where it and K are seen: between nodes columns have
        kinks. (There alone, it would take more where streams determine one another.) The next stage smooths about the
        directions of the former.
        """
        problem, dense, finest, levels = self.problem, self.finer, self.finer.finer, judged.point.norm.levels
        coarse, taps = make_circle(problem.circle.warp, self.size // 2), twice_as_many(judged.point.taps)
        directions = _shorten(interpolate(coarse, problem.circle, judged.point.norm.directions))
        k, slope = self.product(taps), levels * directions
        psi = self._noise * slope + self.values(self._residual(self.left(taps), slope))
        psi = interpolate(problem.circle, dense.problem.circle, psi)
        psi = SlopeBound(dense.problem, levels).tighten(psi, _PROJECTIONS)
        centre = centre_at(_shorten(psi[::2] / (self._noise * levels)))
        psi = interpolate(dense.problem.circle, finest.problem.circle, psi)
        bound, between = SlopeBound(finest.problem, levels), finest.product(twice_as_many(twice_as_many(taps)))
        mse, distortion = finest.error(between), finest.distortion(between)
        psi = bound.tighten(psi, _PROJECTIONS_WHERE_SEEN)
        lower = bound.lowest(psi, between, distortion) - abs(mse - self.error(k))
        found = ChannelsOptimum(DiagonalWeights(problem), k, mse, min(mse, lower))
        return stage._replace(taps=taps, centre=centre), found

    def distortion(self, k: Complex) -> float:
        """Return what K errs without noise."""
        return self.problem.mean_power(self.problem.wanted - k)

    def error(self, k: Complex) -> float:
        """Return what K errs with the best prefilters for it."""
        return DiagonalWeights(self.problem).error(k)

    def _go(
        self, start: _ChannelsPoint, step: Array, soft: Array, centre: Complex
    ) -> tuple[_ChannelsPoint | None, float]:
        """Go so far along a step that it pays; None if nothing does.

        What it gains may be lost in rounding. Then it must not be seen to lose, and the slope along it must not have
        turned round by as much as it was (Hager and Zhang, SIAM J. Optim. 16, 2005).
        """
        promised, length = 2 * float((start.residual * step).sum()), 1.0
        while length > _SHORTEST:
            found = self.point(start.taps + length * step, soft, centre)
            gained, left = start.value - found.value, 2 * float((found.residual * step).sum())
            if gained >= _SUFFICIENT * length * promised or (
                gained >= -start.rounding and left >= (2 * _SUFFICIENT - 1) * promised
            ):
                return found, length
            length /= 2
        return None, 0.0

    @functools.cached_property
    def _steps(self) -> NewtonSteps:
        _, p, m = self.problem.wanted.shape
        return NewtonSteps(self.problem, NodeTransforms(p, m, self.size), _ACCURATE)
