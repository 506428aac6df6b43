r"""Find the joint optimum of G and H for a receiver of finite lag, by majorization and with certificates.

With K = HG the least MSE is min over causal K of ‖(z^{-D}F - K)Ω‖₂² + c²<ψ|K|>², reached by |G|² ∝ |K|/ψ; ψ = 1 for
one event a person. (By Cauchy-Schwarz ‖G‖₂‖H‖₂ ≥ <|K|>, and K = K_i K_o with G = K_o^{1/2} and H = K_i K_o^{1/2}.)

Several inputs that one person may reach together are one problem, with Σ‖(z^{-D}F_i - K_i)Ω_i‖₂² + (Σ c_i<|K_i|>)²:
its circle are all of theirs side by side, whose means add up. F_i and K_i have a row for each output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.circles_in_a_row import CirclesInARow
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.noise_shares import share_noise
from dpfast.design.prefilter.objectives import MOST_STEPS, resolve_on_circle
from dpfast.design.prefilter.water_filling import zero_forcing_root
from dpfast.filters.warped_circle import SHORTEST, WarpedCircle, make_circle

_FLOOR = 1e-13  # of the largest x: a smaller x would make the next spectrum overflow
_PLAIN_STEPS = 3
_RELAXATION = 1.8
_EFFORT = 2**26  # steps of the iteration times those of the circle
_RESOLVED = 1e-2  # change of the MSE by more steps, below which it bounds what still more would change
_FEWEST = 200
_PATIENCE = 60  # certificates in which the gap must shrink
_PROGRESS = 0.999
_COARSER = 4  # a circle to start from, and to compare with
_CERTIFY_EVERY = 5
_ROUNDING = 1e-12  # of the largest value: what a difference of two functions may be without being there
_POSITIVE = 1e-10  # of the largest P_u: where it is smaller, nothing is divided by it


class OptimalColumn(NamedTuple):
    """The optimum for one input, at the nodes of a circle.

    Attributes
    ----------
    circle : WarpedCircle
    product : array
        |K|, of all outputs together.
    power : array
        |G|², up to a factor.
    distortion : float
        The part of the MSE that is distortion of this input.
    cutoffs : tuple of float
        Angles at which the smoother of the same problem starts or stops letting anything pass.
    """

    circle: WarpedCircle
    product: Array
    power: Array
    distortion: float
    cutoffs: tuple[float, ...]


class JointOptimum(NamedTuple):
    """The joint optimum of one input, or of several.

    Attributes
    ----------
    columns : tuple of OptimalColumn
        One for each input.
    mse : float
        The MSE of K, evaluated at the nodes.
    lower_bound : float
        No linear mechanism of this lag has a smaller MSE; of several inputs, none with a prefilter for each.
    """

    columns: tuple[OptimalColumn, ...]
    mse: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return _gap(self.mse, self.lower_bound)


class Iterate(NamedTuple):
    """A K of the iteration, at the nodes of its circles, and a bound for the problem at these nodes."""

    circle: CirclesInARow
    product: Array
    power: Array
    distortion: Array
    mse: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return _gap(self.mse, self.lower_bound)


def joint_optimum(problem: Problem | Sequence[Problem], lag: int, goal: float) -> JointOptimum:
    """Solve on circles, and on ones of twice as many steps until that changes nothing.

    A certificate holds for the problem in N steps: the change from N/2 to N is taken off it.

    Parameters
    ----------
    problem : Problem, or sequence of Problem
        Or those of all inputs that one person may reach together.
    lag : int
        D ≥ 0.
    goal : float
        The iteration ends at this relative gap.
    """
    problems = [problem] if isinstance(problem, Problem) else list(problem)
    smoother = share_noise(problems)
    resolved = [resolve_on_circle(x, lag, cut) for x, cut in zip(problems, smoother.cutoffs, strict=True)]
    finest = CirclesInARow([circle for _, circle in resolved])
    held = [x for x, _ in resolved]
    circle = CirclesInARow([make_circle(x.warp, max(SHORTEST, x.size // _COARSER)) for x in finest.circles])
    before = _forced_iterate(problems, circle, smoother.mse)
    if before.gap <= goal:
        return _describe(problems, before, smoother.cutoffs)
    before = Majorization(sample(problems, held, lag, circle)).solve(before.power, goal, smoother.mse)
    while True:
        circle = before.circle.doubled()
        start = before.circle.interpolate(before.power, circle)
        after = Majorization(sample(problems, held, lag, circle)).solve(start, goal, smoother.mse)
        change = abs(after.mse - before.mse)
        forced = _forced_iterate(problems, circle, smoother.mse)
        bound = after.lower_bound - change
        # a bound above what is reached tells that the steps do not resolve the problem
        known = change <= _RESOLVED * after.mse and bound <= forced.mse
        found = after if after.mse <= forced.mse else forced
        found = found._replace(lower_bound=max(smoother.mse, bound) if known else smoother.mse)
        if found.gap <= 2 * goal or 2 * circle.longest > max(MOST_STEPS, 2 * finest.longest):
            return _describe(problems, found, smoother.cutoffs)
        before = after


def _describe(problems: list[Problem], found: Iterate, cutoffs: Sequence[tuple[float, ...]]) -> JointOptimum:
    parts = zip(
        found.circle.circles,
        [x / math.sqrt(p.cost) for x, p in zip(found.circle.split(found.product), problems, strict=True)],
        found.circle.split(found.power),
        found.distortion.tolist(),
        cutoffs,
        strict=True,
    )
    return JointOptimum(tuple(OptimalColumn(*part) for part in parts), found.mse, found.lower_bound)


def _forced_iterate(problems: list[Problem], circle: CirclesInARow, bound: float) -> Iterate:
    """Return K = z^{-D}F, the best point known where, with hardly any noise, rounding or steps spoil the iteration."""
    nodes = [(p, x.grid.omega) for p, x in zip(problems, circle.circles, strict=True)]
    product = np.concatenate([math.sqrt(p.cost) * p.gain(omega) for p, omega in nodes])
    weight = np.concatenate([p.weight(omega) for p, omega in nodes])
    mse = sum(zero_forcing_root(p) for p in problems) ** 2
    return Iterate(circle, product, _positive_power(product, weight), np.zeros(len(problems)), mse, bound)


class Sampled(NamedTuple):
    """The problems of all inputs at the nodes of their circles: each in units of its noise, so that c = 1.

    Attributes
    ----------
    circle : CirclesInARow
    psd, weight : array
        P_u/c², and ψ.
    held : array
        P_u/c² as the circle resolves it.
    wanted : array, (p, nodes)
        c z^{-D}F.
    """

    circle: CirclesInARow
    psd: Array
    weight: Array
    held: Array
    wanted: Complex


def sample(problems: Sequence[Problem], held: Sequence[Problem], lag: int, circle: CirclesInARow) -> Sampled:
    """Evaluate problems at the nodes of their circles, and the spectra of those that the circles resolve."""
    nodes = [(p, h, x) for p, h, x in zip(problems, held, circle.circles, strict=True)]
    return Sampled(
        circle,
        np.concatenate([p.psd(x.grid.omega) / p.cost for p, _, x in nodes]),
        np.concatenate([p.weight(x.grid.omega) for p, _, x in nodes]),
        np.concatenate([h.psd(x.grid.omega) / p.cost for p, h, x in nodes]),
        _beside([math.sqrt(p.cost) * p.response(x.grid.omega) * x.z**-lag for p, _, x in nodes]),
    )


def _beside(columns: list[Complex]) -> Complex:
    """Put columns of unequal lengths side by side, with zeros below: which output a row is for plays no part."""
    p = max(map(len, columns))
    return np.concatenate([np.pad(x, ((0, p - len(x)), (0, 0))) for x in columns], axis=1)


class Majorization:
    """The iteration that majorizes <ψ|K|>² ≤ <xψ²><|K|²/x>, with equality for x = |K|/ψ, and minimizes over K.

    It uses the spectrum that the circle resolves; errors and bounds are those of the spectrum of the problem.
    """

    def __init__(self, sampled: Sampled) -> None:
        self.circle, self.psd, self.weight, self.held, self.wanted = sampled
        self.mean = self.circle.mean
        self.largest = np.abs(self.held * self.wanted).max()
        positive = self.psd.min() > _POSITIVE * self.psd.max()
        self.shaping = self.circle.outer_factor(self.psd) if positive else None

    def solve(self, x: Array, goal: float, bound: float) -> Iterate:
        """Iterate from x = |G|² until the gap to the largest of all bounds is the goal, or nothing closes it."""
        best, largest, gaps = None, math.inf, [math.inf] * _PATIENCE
        for step in range(max(_FEWEST, _EFFORT // self.circle.longest)):
            x = np.maximum(x, _FLOOR * x.max())
            noise = self.mean(x * self.weight**2) / x
            inverse = self.circle.outer_factor(self.held + noise)
            k = self.circle.causal_part(self.held * self.wanted / inverse.conj()) / inverse
            size = _size(k)
            if step % _CERTIFY_EVERY == 0 or step < _PLAIN_STEPS:
                error = self.wanted - k
                distortions = self.circle.means(self.psd * _size(error) ** 2)
                distortion, norm = float(distortions.sum()), self.mean(self.weight * size)
                mse = distortion + norm**2
                bound = max(bound, distortion + self._bound_by_iterate(noise, k, error), self._bound_by_phase(k, size))
                if best is None or mse < best.mse * (1 + _ROUNDING):  # then of two as good ones the later
                    best = Iterate(self.circle, size, _positive_power(size, self.weight), distortions, mse, bound)
                best = best._replace(lower_bound=min(bound, best.mse))
                gaps.append(best.gap)
                excess = (noise * size / self.weight).max() / norm - 1
                # where the excess is small it has converged: the rest of the gap is that of the steps
                if best.gap <= goal or excess <= goal / 2 or best.gap > _PROGRESS * gaps[-_PATIENCE]:
                    break
            ratio = size / (x * self.weight)
            largest, before = ratio.max() / self.mean(ratio * x) * self.mean(x), largest
            x = x * ratio ** (_RELAXATION if step >= _PLAIN_STEPS and largest <= before else 1.0)
        assert best is not None
        return best

    def _bound_by_iterate(self, noise: Array, k: Complex, error: Complex) -> float:
        """Return 2 Re<φ*K> - sup|φ/ψ|²/c², which together with <P_u|z^{-D}F - K|²> is a bound, without dividing by Ω.

        It is one for every φ for which P_u (z^{-D}F - K) - φ is strictly anticausal. K is the best for another spectrum
        P in front of the noise n, so that φ = nK - (P - P_u)(z^{-D}F - K) is such a φ. Where the steps do not resolve
        Ω, that fails by more than rounding: what is missing is added to φ, and what keeps K from being causal is taken
        off the bound.
        """
        phi, anticausal = noise * k - (self.held - self.psd) * error, self.held * error - noise * k
        missing = self.circle.causal_part(anticausal)
        if np.abs(missing).max() > _ROUNDING * self.largest:
            phi, anticausal = phi + missing, anticausal - missing
        early = k - self.circle.causal_part(k)
        bound = 2 * self.mean(_inner(phi, k)) - (_size(phi) / self.weight).max() ** 2
        return float(bound - 2 * self.mean(_size(anticausal) * _size(early)))

    def _bound_by_phase(self, k: Complex, size: Array) -> float:
        """Return the dual at φ = c²<ψ|K|>ψK/|K|, which is 2 Re<F* z^D φ> - ‖[φ/Ω*]₊‖² - c²<ψ|K|>², if P_u > 0."""
        if self.shaping is None:
            return -math.inf
        norm = self.mean(self.weight * size)
        phi = np.divide(norm * self.weight * k, size, out=np.zeros_like(k), where=size > 0)
        filtered = self.circle.causal_part(phi / self.shaping.conj())
        return 2 * self.mean(_inner(self.wanted, phi)) - self.mean(_size(filtered) ** 2) - norm**2


def _size(rows: Complex) -> Array:
    """Return the magnitude of all outputs together."""
    return np.asarray(np.hypot.reduce(np.abs(rows), axis=0))


def _inner(a: Complex, b: Complex) -> Array:
    """Return Re a*b, over all outputs."""
    return np.asarray((a.conj() * b).real.sum(axis=0))


def _positive_power(size: Array, weight: Array) -> Array:
    return np.asarray(np.maximum(size, _FLOOR * size.max()) / weight)


def _gap(mse: float, bound: float) -> float:
    return max(0.0, 1 - bound / mse)
