r"""The joint optimum of several streams with a prefilter that mixes them, without causality: no lag goes below it.

It is min over K of J = ‖(F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, and with Ψ = Σ λ_a a a* over what a person may change, a, the
largest over λ ≥ 0 of

    min over K of ‖(F - K)Ω‖² + 2κ²<‖KΨ^½‖_*> - κ²Σ λ_a,

which is concave. K, or of loud streams what it has beside F, is found at every frequency by itself, the nuclear norm
smoothed as in ``mixing_norm`` less and less: by Newton's method, with steps as long as pay there. So are the few λ. For
every ψ with ‖ψΨ^{-½}‖ ≤ κ²

    J ≥ <tr F P F*> - <tr (FP - ψ)P⁻¹(FP - ψ)*> - κ²Σ λ_a;

it is (F - K)P with singular values of ψΨ^{-½} that are cut there. The bound is of the problem in N steps of a circle:
the change from N/2 to N is taken off it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, inner, invert
from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture, even_mixture
from dpfast.design.mimo.joint_channels import ChannelsOptimum
from dpfast.design.mimo.mixing_norm import MixingNorm, NormPoint, Softness
from dpfast.design.mimo.mixing_optimum import SLACK, SampleCircle
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.design.mimo.mixing_step import flatten, join_parts
from dpfast.filters.warped_circle import make_circle

_LONGEST = 2**12
_AMPLE = 0.1  # of the goal: the gap that ends the search for events, as those of a stage gain much
_RESOLVED = 1.5  # times the gap on a circle: what it is on one of twice as many steps at the most
_FIRST, _SHRINK, _LAST = 0.3, 0.1, 1e-6  # how much is smoothed: at first, from stage to stage, and at last
_STAGES_BACK = 2  # where a finer circle gives no such gap, as what is smoothed least keeps K as it was between nodes
_BARRIER = 0.1  # of that, for the shares
_STEPS_OF_SHARES, _STEPS_OF_K = 30, 100
_MOST_ROUNDS = 6  # of a stage, in which events are taken in: the next one, which smooths less, gains more
_MOST_WORK = 8 << 20  # of all of them, in norms of an entry of K at a node: more is not spent on a gap
_ON_FIRST, _OF_ROUNDS = 0.5, 0.8  # of it: on the first circle, and of a circle's, where rounds and stages still begin
_OF_CURVATURE, _OF_STEP = 3.0, 1.0  # norms is the work of a curvature, and of a step of the shares
_OF_EVENT, _OF_EVENT_STEP = 0.01, 0.05  # norms it is the more for each event, of a norm and of a step
_SETTLED, _FITTED = 0.03, 1e-3  # of the barrier: what steps of the shares, and of K, still promise
_UNSETTLED = 0.1  # of it: what is left of the slope, at K
_ROUNDING, _LOST = 1e-13, 1e-12  # of J: what a step may lose, and what it must gain for another one
_INSIDE = 0.95  # of the way to where a share is zero
_SUFFICIENT, _SHORTEST = 0.1, 1e-9  # of what a slope promises, and of a step
_SINGULAR = 1e-8  # eigenvalues of spectra, of the largest, that are not divided by


def mixing_smoother(sample: SampleCircle, atoms: EventAtoms, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Solve on a circle to a relative gap, and on ones of twice as many steps until that changes no more."""
    search = _SmootherSearch(sample(make_circle(warp, size)), atoms, _ON_FIRST * _MOST_WORK)
    stage, before = search.solve(search.start(), goal, _AMPLE * goal)
    left = _MOST_WORK - search.spent
    while True:
        finer = _SmootherSearch(sample(make_circle(warp, 2 * search.size)), stage.mixture.atoms, left)
        enough = goal if before.gap <= goal else _RESOLVED * before.gap
        spread = stage._replace(beside=spread_nodes(stage.beside, finer.size))
        stage, after = finer.solve(spread, enough, enough)
        if after.gap > enough:
            spread = spread._replace(softened=min(_FIRST, spread.softened / _SHRINK**_STAGES_BACK))
            stage, after = min((stage, after), finer.solve(spread, enough, enough), key=lambda x: x[1].gap)
        left -= finer.spent
        change = abs(after.mse - before.mse)
        worked_off = left < finer.spent or 2 * finer.size > max(_LONGEST, 2 * size)
        if change <= goal * after.mse or worked_off:
            return after._replace(lower_bound=max(0.0, after.lower_bound - change))
        search, before = finer, after


class _SmootherStage(NamedTuple):
    """The state of a search: K beside what is known of it (nodes, p, m), the shares λ of events, and the smoothing."""

    beside: Complex
    mixture: EventMixture
    softened: float


class _SmootherFit(NamedTuple):
    """The best K for some λ: beside what is known of it, the norm, the inverse curvature, and the smoothed cost."""

    beside: Complex
    norm: NormPoint
    inverse: Array
    value: float


class _SmootherSearch:
    """The problem on one circle, and the most work there."""

    def __init__(self, problem: SampledChannels, atoms: EventAtoms, most: float) -> None:
        self.problem, self.size, self.spent, self._most = problem, problem.circle.size, 0.0, most
        self._norm, self._noise = MixingNorm(problem, atoms), problem.noise**2

    def start(self) -> _SmootherStage:
        """Return the first stage, at the first guess."""
        mixture = even_mixture(self._norm.atoms)
        k = self._norm.first_guess()
        whole = self._norm.whole(k, mixture.shares) ** 2
        return _SmootherStage(k - self.problem.known, mixture._replace(shares=whole * mixture.shares), _FIRST)

    def solve(self, stage: _SmootherStage, goal: float, ample: float) -> tuple[_SmootherStage, ChannelsOptimum]:
        """Take in events, and smooth less and less, until the gap is small; return the best, with its stage.

        A gap that is ample ends it also where events are missed.
        """
        best: tuple[_SmootherStage, ChannelsOptimum] | None = None
        rounds = 0
        while True:
            fit = self._climb(stage)
            point = fit.norm
            stage = stage._replace(beside=fit.beside, mixture=stage.mixture._replace(shares=point.shares))
            found = self._judge(fit)
            best = (stage, found) if best is None or found.gap < best[1].gap else best
            if best[1].gap <= ample or self.spent >= _OF_ROUNDS * self._most:
                return best
            missed, rounds = self._missed_events(stage, point), rounds + 1
            if len(missed.changes) and rounds < _MOST_ROUNDS:
                stage = stage._replace(mixture=stage.mixture.extended(missed))
                self._norm = MixingNorm(self.problem, stage.mixture.atoms)
            elif best[1].gap <= goal or stage.softened < _LAST:
                return best
            else:
                stage, rounds = stage._replace(softened=_SHRINK * stage.softened), 0

    def _missed_events(self, stage: _SmootherStage, point: NormPoint) -> EventAtoms:
        """Return events at other times that change more."""
        weights = MixingPrefilter(self.problem, point.events, causal=False)
        return weights.missed_events(point.k, SLACK * stage.softened)

    def _climb(self, stage: _SmootherStage) -> _SmootherFit:
        """Find the worst shares, with one smoothing, by Newton's method."""
        k = self.problem.known + stage.beside
        whole = stage.softened * self._norm.whole(k, stage.mixture.shares)
        soft = Softness(whole / min(k.shape[1:]), _BARRIER * self._noise * whole / len(stage.mixture.shares))
        found = self._fit(stage.beside, stage.mixture.shares, soft)
        for _ in range(_STEPS_OF_SHARES):
            step, promised, moved = self._newton_step(found, soft)
            if promised <= _SETTLED * soft.barrier or self.spent >= self._most:
                break
            length = min(1.0, _INSIDE / float((-step / found.norm.shares).max(initial=_INSIDE)))
            while length > _SHORTEST:
                further = self._fit(found.beside + length * moved, found.norm.shares + length * step, soft)
                if further.value >= found.value + _SUFFICIENT * length * promised - _ROUNDING * abs(found.value):
                    break
                length /= 2
            else:
                break
            found = further
        return found

    def _newton_step(self, at: _SmootherFit, soft: Softness) -> tuple[Array, float, Complex]:
        """Return a step of the shares, what it promises, and how K moves with it."""
        norm = at.norm
        self._count(_OF_STEP + _OF_EVENT_STEP * len(norm.shares))
        slope, curvature = norm.bend()
        couplings = norm.couplings.reshape(len(norm.k), -1, len(norm.shares))
        coupled = np.concatenate([couplings.real, couplings.imag], axis=1)  # (nodes, parts, n_atoms)
        pulled = (self.problem.circle.grid.weights[:, None, None] * at.inverse) @ coupled
        joint = coupled.reshape(-1, len(norm.shares)).T @ pulled.reshape(-1, len(norm.shares))
        gradient = self._noise * (2 * slope - 1) + soft.barrier / norm.shares
        bent = 2 * self._noise * curvature - 2 * self._noise**2 * joint
        step = np.linalg.solve(np.diag(soft.barrier / norm.shares**2) - bent, gradient)
        return np.asarray(step), float(gradient @ step), -self._noise * _apply(at.inverse, norm.couplings @ step)

    def _fit(self, beside: Complex, shares: Array, soft: Softness) -> _SmootherFit:
        """Find the best K for shares, at each frequency by itself."""
        norm = self._norm.at_shares(self.problem.known + beside, shares, soft.size)
        before, barrier = math.inf, soft.barrier * float(np.log(shares).sum())
        for _ in range(_STEPS_OF_K):
            costs, inverse = self._costs(beside, norm), self._invert(norm)
            residual = (self.problem.unknown - beside) @ self.problem.psd - self._noise * norm.slope
            step = _apply(inverse, residual)
            promised = inner(residual, step)
            value = float(self.problem.mean(costs)) - self._noise * float(shares.sum()) + barrier
            unsettled = float(self.problem.mean(np.abs(inner(residual, norm.k))))
            fitted = float(self.problem.mean(promised)) <= _FITTED * soft.barrier
            done = fitted and unsettled <= _UNSETTLED * soft.barrier
            gained, before = before - value, value
            if done or gained <= _LOST * abs(value) or self.spent >= self._most:
                break
            beside, norm = self._go(beside, norm, step, costs, promised)
        return _SmootherFit(beside, norm, inverse, value)

    def _go(
        self, beside: Complex, norm: NormPoint, step: Complex, costs: Array, promised: Array
    ) -> tuple[Complex, NormPoint]:
        """Go so far at each frequency as pays, or is lost in rounding."""
        length = np.ones(len(costs))
        while True:
            further = beside + length[:, None, None] * step
            there = norm.elsewhere(self.problem.known + further)
            self._count(1 + _OF_EVENT * len(norm.shares))
            enough = costs * (1 + _ROUNDING) - 2 * _SUFFICIENT * length * promised
            short = self._costs(further, there) > enough
            if not short.any() or length[short].max() < _SHORTEST:
                return further, there
            length[short] /= 2

    def _count(self, norms: float) -> None:
        self.spent += norms * self.problem.wanted.size

    def _costs(self, beside: Complex, norm: NormPoint) -> Array:
        left = self.problem.unknown - beside
        return np.asarray(inner(left @ self.problem.psd, left) + 2 * self._noise * norm.sizes.sum(axis=1))

    def _invert(self, norm: NormPoint) -> Array:
        """Return the inverse of half the curvature at each frequency, of real and imaginary parts."""
        self._count(_OF_CURVATURE)
        return norm.inverse_curvature(self.problem.psd, self._noise)

    def _judge(self, fit: _SmootherFit) -> ChannelsOptimum:
        """Return the error of K with the best prefilter for it, and the lower bound."""
        problem, norm, left = self.problem, fit.norm, self.problem.unknown - fit.beside
        weights = MixingPrefilter(problem, norm.events, causal=False)
        mse = problem.mean_power(left) + self._noise * weights.squared_norm(norm.k)
        bound = bound_beside_mixture(problem, left, norm.mixture, float(norm.shares.sum()))
        return ChannelsOptimum(weights, norm.k, mse, min(max(bound, 0.0), mse))


def bound_beside_mixture(problem: SampledChannels, left: Complex, mixture: Complex, whole: float) -> float:
    """Return what no K errs less than, by ψ = (F - K)P of any K and any Ψ; the nearer the better both are.

    Parameters
    ----------
    problem : SampledChannels
    left : array, (nodes, p, m)
        F - K.
    mixture : array, (nodes, m, m) or (1, m, m)
        Ψ.
    whole : float
        Σ λ of it.
    """
    noise = problem.noise**2
    psi, root = left @ problem.psd, adjoint(np.asarray(np.linalg.cholesky(mixture), dtype=np.complex128))
    rows, sizes, columns = np.linalg.svd(psi @ invert(root), full_matrices=False)
    touched = problem.mean_power(left) + 2 * float(problem.mean(inner(psi, problem.wanted - left)))
    bound = touched - whole * float(sizes.max()) ** 2 / noise
    if _is_singular(problem.psd):
        return bound
    cut = np.asarray(rows * np.minimum(sizes, noise)[:, None, :] @ columns @ root)
    return max(bound, _dual_value(problem, cut) - noise * whole)


def _is_singular(psd: Complex) -> bool:
    """Tell whether spectra cannot be divided by."""
    sizes = np.linalg.eigvalsh(psd)
    return bool(sizes[:, 0].min() <= _SINGULAR * sizes.max())


def _dual_value(problem: SampledChannels, psi: Complex) -> float:
    """Return <tr F P F*> - <tr (FP - ψ)P⁻¹(FP - ψ)*>."""
    told = adjoint(np.asarray(np.linalg.solve(problem.psd, adjoint(psi)), dtype=np.complex128))
    return float(problem.mean(2 * inner(psi, problem.wanted) - inner(told, psi)))


def _apply(inverse: Array, values: Complex) -> Complex:
    """Return what an inverse of real and imaginary parts makes of values (nodes, p, m)."""
    return join_parts((inverse @ flatten(values)[..., None])[..., 0], values.shape)


def spread_nodes(values: Complex, size: int) -> Complex:
    """Interpolate values at the nodes of a circle (nodes, ...) at those of one of more steps of the same warp."""
    places = np.linspace(0, len(values) - 1, size // 2 + 1)
    first = np.minimum(places.astype(int), len(values) - 2)
    part = (places - first).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray((1 - part) * values[first] + part * values[first + 1])
