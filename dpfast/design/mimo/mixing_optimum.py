r"""The joint optimum of several streams with a prefilter that mixes them, for a receiver of finite lag.

It is min over causal K of J = ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, with g of ``mixing_norm`` for γ, smoothed less and
less: Newton's method, with steps from conjugate gradients. K has finitely many taps on a warped circle, so that it is
causal whatever its nodes resolve. With r the causal part of (z^{-D}F - K)P - κ²gY⁻¹KΦ, which a minimum makes zero, and
ψ = κ²gY⁻¹KΦ + r, convexity gives for every L = HG

    J ≥ ‖(z^{-D}F - K)Ω‖² + 2 Re<tr ψK*> - ρ²,   ρ = κg + sup‖rΦ^{-½}‖/κ,

as Re<tr ψL*> ≤ sup‖ψΦ^{-½}‖ <‖LΦ^½‖_*> and ‖Y⁻¹KΦ^½‖ < 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, inner
from dpfast.design.mimo.joint_channels import ChannelsOptimum
from dpfast.design.mimo.mixing_norm import MixingNorm, NormPoint, Softness
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_GOAL = 1e-5  # of the gap, relative, on a circle of twice as many steps
_RESOLVED = 30.0  # times the gap on a circle: what it is on that at the most
_FIRST, _SHRINK, _LAST = 0.3, 0.1, 1e-8  # how much is smoothed: at first, from stage to stage, and at last
_BARRIER = 0.1  # of that, for the shares
_NEWTON_STEPS, _PRODUCTS = 40, 100  # of a stage, and of the conjugate gradients of a step
_MOST_WORK = 2**21  # of all of them, in steps of circles: more is not spent on a gap
_ACCURATE = 1e-2  # of the residual of conjugate gradients
_SETTLED = 0.2  # of the gap: what is left of the slope
_SUFFICIENT, _SHORTEST = 0.1, 1e-6  # of what the slope promises, and of a step
_ROUNDING = 1e-13  # of J
_BETWEEN = 2.0  # times the largest at nodes: what a function of half as many taps as steps is below between them
_LONGEST = 2**14

SampleCircle = Callable[[WarpedCircle], SampledChannels]


class _MixingStage(NamedTuple):
    """The state of a search: taps of K (taps, p, m), shares, the smoothing, and the work spent."""

    taps: Array
    shares: Array
    share: float
    spent: int


def mixing_optimum(sample: SampleCircle, atoms: Array, warp: float, size: int) -> ChannelsOptimum:
    """Smooth less and less, on circles of twice as many steps where those do not resolve it, until the gap is small."""
    search = _MixingSearch(sample(make_circle(warp, size)), atoms)
    stage = _MixingStage(search.taps(search.problem.wanted), np.full(len(atoms), 1 / len(atoms)), _FIRST, 0)
    best: ChannelsOptimum | None = None
    while True:
        finer = _MixingSearch(sample(make_circle(warp, 2 * search.size)), atoms)
        stage, gap = search.settle(stage)
        padded = stage._replace(taps=np.concatenate([stage.taps, np.zeros_like(stage.taps)]))
        found = finer.judge(finer.point(padded.taps, padded.shares, finer.soften(padded))).optimum(finer)
        best = found if best is None or found.gap < best.gap else best
        if best.gap <= _GOAL or stage.spent >= _MOST_WORK or stage.share < _LAST:
            return best
        if found.gap > _RESOLVED * gap and 2 * finer.size <= _LONGEST:
            search, stage = finer, padded
        else:
            stage = stage._replace(share=_SHRINK * stage.share)


class _MixingPoint(NamedTuple):
    """A K: its taps, the norm there, its distortion, J, and minus half the slope of J, which is r (taps, p, m)."""

    taps: Array
    norm: NormPoint
    distortion: float
    value: float
    residual: Array


class _Judgement(NamedTuple):
    """The certificate of a K: its error, a lower bound of the least, and how much of the gap is for r."""

    point: _MixingPoint
    mse: float
    lower_bound: float
    unsettled: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return 1 - self.lower_bound / self.mse

    def optimum(self, search: _MixingSearch) -> ChannelsOptimum:
        """Return it with the prefilters that it has."""
        norm = self.point.norm
        weights = MixingPrefilter(search.problem, norm.mixture)
        return ChannelsOptimum(weights, norm.k, self.mse, min(self.lower_bound, self.mse))


class _MixingSearch:
    """The problem on one circle."""

    def __init__(self, problem: SampledChannels, atoms: Array) -> None:
        self.problem = problem
        self._norm, self._noise = MixingNorm(problem, atoms), problem.noise**2
        self.size, self._unit = problem.circle.size, problem.circle.unit[:, None, None]
        self._told = problem.wanted @ problem.psd

    def taps(self, values: Complex) -> Array:
        """Return the taps of the causal part, as many as half of the steps."""
        return np.asarray(np.fft.irfft(values * self._unit, axis=0)[: self.size // 2])

    def values(self, taps: Array) -> Complex:
        """Return them at the nodes."""
        return np.asarray(np.fft.rfft(taps, self.size, axis=0) / self._unit)

    def soften(self, stage: _MixingStage) -> Softness:
        """Return what is smoothed, as a share of singular values of K."""
        k = self.values(stage.taps)
        sizes = np.linalg.svd(k @ np.linalg.cholesky(self._norm.mixture(stage.shares)), compute_uv=False)
        whole = stage.share * float(self.problem.mean(sizes.sum(axis=1)))
        return Softness(whole / sizes.shape[1], _BARRIER * whole / len(stage.shares))

    def point(self, taps: Array, shares: Array, soft: Softness) -> _MixingPoint:
        """Evaluate a K, from shares that are near to the worst."""
        problem = self.problem
        norm = self._norm.at(self.values(taps), shares, soft)
        distortion = problem.mean_power(problem.wanted - norm.k)
        residual = self.taps(self._told - norm.k @ problem.psd - self._noise * norm.value * norm.slope)
        return _MixingPoint(taps, norm, distortion, distortion + self._noise * norm.value**2, residual)

    def settle(self, stage: _MixingStage) -> tuple[_MixingStage, float]:
        """Minimize with one smoothing, until the gap, which is returned, is hardly for what is left of the slope."""
        soft, spent = self.soften(stage), stage.spent
        found = self.judge(self.point(stage.taps, stage.shares, soft))
        for _ in range(_NEWTON_STEPS):
            if found.unsettled <= _SETTLED * found.gap or spent >= _MOST_WORK:
                break
            step, products = _NewtonModel(self, found.point).step()
            spent += products * self.size
            further = self._go(found.point, step, soft)
            if further is None:
                break
            found, before = self.judge(further), found
            if found.unsettled >= before.unsettled and further.value >= before.point.value * (1 - _ROUNDING):
                found = before
                break
        return _MixingStage(found.point.taps, found.point.norm.shares, stage.share, spent), found.gap

    def _go(self, start: _MixingPoint, step: Array, soft: Softness) -> _MixingPoint | None:
        """Go so far along a step that it pays, or is lost in rounding; None if nothing is as good."""
        promised, length = 2 * float((start.residual * step).sum()), 1.0
        while length > _SHORTEST:
            found = self.point(start.taps + length * step, start.norm.shares, soft)
            if found.value <= start.value * (1 + _ROUNDING) - _SUFFICIENT * length * promised:
                return found
            length /= 2
        return None

    def judge(self, point: _MixingPoint) -> _Judgement:
        """Return the error of K with the best prefilter for it, and the lower bound."""
        problem, norm = self.problem, point.norm
        weights = MixingPrefilter(problem, norm.mixture)
        mse = point.distortion + self._noise * weights.squared_norm(norm.k)
        half = np.linalg.cholesky(np.linalg.inv(norm.mixture))
        left = _BETWEEN * np.linalg.norm(self.values(point.residual) @ half, 2, axis=(1, 2)).max()
        psi = self._noise * norm.value * float(problem.mean(inner(norm.slope, norm.k)))
        psi += float((point.residual * point.taps).sum())
        smooth = problem.noise * norm.value
        rho = smooth + left / problem.noise
        return _Judgement(point, mse, point.distortion + 2 * psi - rho**2, (rho**2 - smooth**2) / mse)

    def curve(self, at: _MixingPoint, e: Array) -> Array:
        """Return half the curvature of J along taps E."""
        values, norm = self.values(e), at.norm
        along = float(self.problem.mean(inner(norm.slope, values)))
        bent = norm.value * norm.curve(values) + along * norm.slope
        return self.taps(values @ self.problem.psd + self._noise * bent)

    def curve_alone(self, at: _MixingPoint, e: Complex) -> Complex:
        """Return it at each frequency, of one mixture, for many E (..., nodes, p, m) at once."""
        return np.asarray(e @ self.problem.psd + self._noise * at.norm.value * at.norm.curve_alone(e))


class _NewtonModel:
    """J near a K, minimized by conjugate gradients.

    They are preconditioned by the inverse of its curvature frequency by frequency, the worst mixture as it is.
    """

    def __init__(self, search: _MixingSearch, at: _MixingPoint) -> None:
        self._search, self._at = search, at
        _, p, m = at.norm.k.shape
        each = np.eye(p * m).reshape(p * m, 1, p, m)
        curved = search.curve_alone(at, np.concatenate([each, 1j * each]))
        self._inverse = np.linalg.inv(np.moveaxis(flatten(curved), 0, -1))

    def step(self) -> tuple[Array, int]:
        """Return the step, and how many products with the curvature it took."""
        step, left, products = np.zeros_like(self._at.residual), self._at.residual, 0
        direction = conditioned = self._condition(left)
        size = first = float((left * conditioned).sum())
        while size > _ACCURATE**2 * first and products < _PRODUCTS:
            curved, products = self._search.curve(self._at, direction), products + 1
            length = size / float((direction * curved).sum())
            step, left = step + length * direction, left - length * curved
            conditioned = self._condition(left)
            size, before = float((left * conditioned).sum()), size
            direction = conditioned + size / before * direction
        return step, products

    def _condition(self, taps: Array) -> Array:
        values = self._search.values(taps)
        flat = (self._inverse @ flatten(values)[..., None])[..., 0]
        half = flat.shape[-1] // 2
        return self._search.taps((flat[:, :half] + 1j * flat[:, half:]).reshape(values.shape))


def flatten(values: Complex) -> Array:
    """Return real and imaginary parts of (..., p, m) as one axis."""
    flat = values.reshape(*values.shape[:-2], -1)
    return np.concatenate([flat.real, flat.imag], axis=-1)
