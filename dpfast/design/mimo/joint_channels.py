r"""The joint optimum of G and H of several streams, which may depend on one another, for a receiver of finite lag.

With a prefilter for each input it is min over causal K of J = ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with γ of
``gain_norm``, smoothed less and less, about directions that are known better and better: Newton's method, with steps
from conjugate gradients. K has finitely many taps on a warped circle, so that it is causal whatever its nodes resolve.
With r the causal part of (z^{-D}F - K)P - κ²s, s half the slope of γ², which a minimum makes zero, and ψ = κ²s + r,
convexity gives for every L = HG

    J ≥ ‖(z^{-D}F - K)Ω‖² + 2 Re<tr ψK*> - ρ²,   ρ the least with Re<tr ψL*> ≤ ρκγ(L).

Σ over columns of (sup|ψ_i|₂/κd_i)² is ρ², or its largest term where one person may be at all inputs. (Add ψ(L - K) to
the distortion at K, and take the least over γ(L).) Another bound has ψ = κ²s, whose ρ is κγ as it is smoothed, and
takes off <tr rP⁻¹r*>, the most that r may gain: ‖(L - K)Ω‖² - 2 Re<tr r(L - K)*> is nowhere less. Of a small r that is
far less, as it is squared. Directions between nodes are interpolated for s.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import DiagonalWeights, InverseSpectrum, SampledChannels, inner
from dpfast.design.mimo.gain_norm import GainPoint, centre_at
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_RESOLVED = 3.0  # times the gap on a circle: what it is on one of twice as many steps at the most
_UNSETTLED = 0.5  # of the gap on a circle: what is left of the slope there, as between the nodes, at the most
_FIRST, _SHRINK, _LAST = 0.3, 0.316, 3e-5  # how much is smoothed: at first, from stage to stage, and at last
_MOST_STAGES = 60
_NEWTON_STEPS, _PRODUCTS = 40, 1000  # of a stage, and of the conjugate gradients of a step
_MOST_WORK = 3 * 2**27  # of all of them, in entries of K at steps of circles: more is not spent on a gap
_ACCURATE = 0.1  # of the residual of conjugate gradients
_SETTLED = 0.2  # of the gap: what is left of the slope
_DAMPED = 1.0  # times the share that is smoothed: of the curvature, more, as else some of it is that share squared
_PATIENCE = 4  # steps in which less is left of the slope
_SUFFICIENT, _SHORTEST = 0.1, 1e-6  # of what the slope promises, and of a step
_ROUNDING = 1e-13  # of J
_BETWEEN = 2.0  # times what ψ is above its level by at nodes, four for each tap: what it is above it by between them
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
        Of K.
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

    def go_on(self, directions: Complex) -> ChannelsStage:
        """Return the next stage, which smooths less about the directions that this one has settled at."""
        return self._replace(centre=centre_at(directions), share=max(_LAST, _SHRINK * self.share))


def _twice_as_many(taps: Array) -> Array:
    return np.concatenate([taps, np.zeros_like(taps)])


def _between(circle: WarpedCircle, finer: WarpedCircle, values: Complex) -> Complex:
    """Interpolate values at the nodes of a circle at those of one of twice as many steps."""
    taps = np.fft.irfft(values * circle.unit[:, None, None], axis=0)
    half = circle.size // 2
    taps[half] /= 2  # of which one half is at a positive time, and one at a negative
    spread = np.zeros((finer.size, *taps.shape[1:]))
    spread[: half + 1], spread[-half:] = taps[: half + 1], taps[half:]
    return np.asarray(np.fft.rfft(spread, axis=0) / finer.unit[:, None, None])


def channels_optimum(sample: SampleProblem, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Smooth less and less, on circles of twice as many steps where those do not resolve it, until the gap is small.

    What is returned is of the circle of twice as many steps; what the error of its K changes by from one circle to the
    other is taken off the bound.
    """
    search = ChannelsSearch(sample(make_circle(warp, size)))
    stage, best = search.begin(), None
    for _ in range(_MOST_STAGES):
        stage, judged = search.settle(stage)
        finer = ChannelsSearch(sample(make_circle(warp, 2 * search.size)))
        padded, found = finer.interpolate(stage, judged.point)
        found = found._replace(lower_bound=found.lower_bound - abs(found.mse - judged.mse))
        best = found if best is None else _better(best, found)
        if best.gap <= goal or stage.spent >= _MOST_WORK:
            break
        # Where P is singular, ψ stays above its level between the nodes of a coarse circle, however little is left.
        coarse = found.gap > _RESOLVED * judged.gap or judged.unsettled > _UNSETTLED * judged.gap
        if coarse and 2 * finer.size <= _LONGEST:
            search, stage = finer, padded
        else:
            stage = stage.go_on(judged.point.norm.directions)
    assert best is not None
    return best


def _better(a: ChannelsOptimum, b: ChannelsOptimum) -> ChannelsOptimum:
    """Return the one of less error, with the higher of both bounds; of different circles that of less gap."""
    if len(a.product) != len(b.product):
        return min(a, b, key=lambda x: x.gap)
    least = a if a.mse <= b.mse else b
    return least._replace(lower_bound=min(least.mse, max(a.lower_bound, b.lower_bound)))


class _ChannelsPoint(NamedTuple):
    """A K: its taps, the norm there, J, and minus half the slope of J, which is r (taps, p, m)."""

    taps: Array
    norm: GainPoint
    value: float
    residual: Array


class ChannelsJudgement(NamedTuple):
    """The certificate of a K: its error, a lower bound of the least, and how much of the gap is for r.

    The values of K are at the nodes of the circle of the weights, which may be finer than that of the point.
    """

    point: _ChannelsPoint
    k: Complex
    weights: DiagonalWeights
    mse: float
    lower_bound: float
    unsettled: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return 1 - self.lower_bound / self.mse

    def optimum(self) -> ChannelsOptimum:
        """Return it with the prefilters that it has."""
        return ChannelsOptimum(self.weights, self.k, self.mse, min(self.lower_bound, self.mse))


class ChannelsSearch:
    """The problem on one circle."""

    def __init__(self, problem: SampledChannels) -> None:
        self.problem, self._noise = problem, problem.noise**2
        self.size, self._unit = problem.circle.size, problem.circle.unit[:, None, None]
        self._told = problem.wanted @ problem.psd

    @functools.cached_property
    def _inverse(self) -> InverseSpectrum:
        return InverseSpectrum(self.problem)

    def taps(self, values: Complex) -> Array:
        """Return the taps of the causal part, as many as half of the steps."""
        return np.asarray(np.fft.irfft(values * self._unit, axis=0)[: self.size // 2])

    def values(self, taps: Array) -> Complex:
        """Return them at the nodes."""
        return np.asarray(np.fft.rfft(taps, self.size, axis=0) / self._unit)

    def begin(self) -> ChannelsStage:
        """Return the stage that begins with the causal part of what is wanted, about nothing."""
        return ChannelsStage(self.taps(self.problem.wanted), np.zeros_like(self.problem.wanted), _FIRST, 0)

    def soften(self, stage: ChannelsStage) -> Array:
        """Return how much each gain is smoothed: by as much in changes of the output, as a share of all means."""
        changes = self.problem.changes
        means: Array = self.problem.mean(np.linalg.norm(self.values(stage.taps), axis=1))
        return np.asarray(stage.share * float(changes @ means) / len(means) / changes)

    def point(self, taps: Array, soft: Array, centre: Complex) -> _ChannelsPoint:
        """Evaluate the error of a K, and its slope."""
        problem = self.problem
        norm = GainPoint(problem, self.values(taps), soft, centre)
        value = problem.mean_power(problem.wanted - norm.k) + self._noise * norm.value
        return _ChannelsPoint(taps, norm, value, self._residual(norm.k, norm.slope))

    def _residual(self, k: Complex, slope: Complex) -> Array:
        """Return the taps of r."""
        return self.taps(self._told - k @ self.problem.psd - self._noise * slope)

    def settle(self, stage: ChannelsStage) -> tuple[ChannelsStage, ChannelsJudgement]:
        """Minimize with one smoothing, until the gap is hardly for what is left of the slope."""
        soft, spent = self.soften(stage), stage.spent
        point, waited = self.point(stage.taps, soft, stage.centre), 0
        duals, found = point.norm.directions, self.judge(point)
        for _ in range(_NEWTON_STEPS):
            if found.unsettled <= _SETTLED * found.gap or spent >= _MOST_WORK or waited > _PATIENCE:
                break
            step, products = self._step(point, duals, _DAMPED * stage.share)
            spent += products * self.size * point.norm.k[0].size
            further, length = self._go(point, step, soft, stage.centre)
            if further is None:
                break
            duals = point.norm.move_duals(self.values(length * step), duals)
            lost = further.value >= point.value * (1 - _ROUNDING)  # in rounding: the slope alone tells
            point, judged = further, self.judge(further)
            waited = waited + 1 if lost and judged.unsettled >= found.unsettled else 0
            found = found if waited else judged
        return stage._replace(taps=found.point.taps, spent=spent), found

    def judge(self, point: _ChannelsPoint) -> ChannelsJudgement:
        """Return the error of K with the best prefilters for it, and the lower bound."""
        return self._certify(point, point.norm.k, point.norm.slope, point.residual)

    def interpolate(self, stage: ChannelsStage, point: _ChannelsPoint) -> tuple[ChannelsStage, ChannelsOptimum]:
        """Return a stage of the circle of half as many steps, and the certificate of its point, for this one.

        Directions between nodes are those of K about a centre that is interpolated; or they are interpolated, and made
        no longer than 1, which serves narrow kinks better but for spectra that are singular. The better is taken.
        """
        coarse, taps = make_circle(self.problem.circle.warp, self.size // 2), _twice_as_many(point.taps)
        centre = _between(coarse, self.problem.circle, stage.centre)
        smooth = self.judge(self.point(taps, point.norm.soft, centre))
        directions = _between(coarse, self.problem.circle, point.norm.directions)
        directions /= np.maximum(1.0, np.linalg.norm(directions, axis=1))[:, None]
        slope = point.norm.levels * directions
        residual = self._residual(smooth.point.norm.k, slope)
        cut = self._certify(point._replace(taps=taps), smooth.point.norm.k, slope, residual)
        if smooth.lower_bound >= cut.lower_bound:
            return stage._replace(taps=taps, centre=centre), smooth.optimum()
        return stage._replace(taps=taps, centre=centre_at(directions)), cut.optimum()

    def _certify(self, point: _ChannelsPoint, k: Complex, slope: Complex, residual: Array) -> ChannelsJudgement:
        """Return it from K, s and r."""
        problem, norm, weights = self.problem, point.norm, DiagonalWeights(self.problem)
        distortion = problem.mean_power(problem.wanted - k)
        mse = distortion + self._noise * weights.squared_norm(k)
        beyond = self._beyond(norm.levels, slope, residual)
        each = (problem.noise * norm.levels + beyond / problem.noise) / problem.changes
        rho = float(each @ each if problem.adjacency == "one_input" else each.max() ** 2)
        left, least = float((residual * point.taps).sum()), self._noise * norm.value
        below, beside = rho - least - 2 * left, self._inverse.power(self.values(residual))
        bound = distortion + 2 * self._noise * float(problem.mean(inner(slope, k))) - least
        unsettled = min(below + 2 * (left + abs(left)), beside) / mse
        return ChannelsJudgement(point, k, weights, mse, bound - min(below, beside), unsettled)

    def _beyond(self, levels: Array, slope: Complex, residual: Array) -> Array:
        """Return by how much each |ψ_i|₂ is above its level anywhere, on a circle of twice as many steps."""
        circle = self.problem.circle
        psi = _between(circle, make_circle(circle.warp, 2 * self.size), self._noise * slope + self.values(residual))
        return np.asarray(_BETWEEN * np.maximum(0.0, np.linalg.norm(psi, axis=1).max(axis=0) - self._noise * levels))

    def _go(
        self, start: _ChannelsPoint, step: Array, soft: Array, centre: Complex
    ) -> tuple[_ChannelsPoint | None, float]:
        """Go so far along a step that it pays, or is lost in rounding; None if nothing is as good."""
        promised, length = 2 * float((start.residual * step).sum()), 1.0
        while length > _SHORTEST:
            found = self.point(start.taps + length * step, soft, centre)
            if found.value <= start.value * (1 + _ROUNDING) - _SUFFICIENT * length * promised:
                return found, length
            length /= 2
        return None, 0.0

    def _step(self, at: _ChannelsPoint, duals: Complex, damped: float) -> tuple[Array, int]:
        """Return the step to the least of J as it bends near a K, and how many products with its curvature it took.

        Conjugate gradients are preconditioned by the inverse of the curvature frequency by frequency. What is damped
        takes a few steps more, of far fewer products: directions that hardly bend matter little.
        """
        psd, noise, norm = self.problem.psd, self.problem.noise, at.norm
        divide = norm.divide(psd, noise, duals, damped)
        step, left, products = np.zeros_like(at.residual), at.residual, 0
        direction = conditioned = self.taps(divide(self.values(left)))
        size = first = float((left * conditioned).sum())
        while size > _ACCURATE**2 * first and products < _PRODUCTS:
            values, products = self.values(direction), products + 1
            curved = self.taps((1 + damped) * (values @ psd) + self._noise * norm.curve(values, duals, damped))
            length = size / float((direction * curved).sum())
            step, left = step + length * direction, left - length * curved
            conditioned = self.taps(divide(self.values(left)))
            size, before = float((left * conditioned).sum()), size
            direction = conditioned + size / before * direction
        return step, products
