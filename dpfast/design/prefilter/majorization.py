r"""Find the joint optimum of G and H for a receiver of finite lag, by majorization and with certificates.

With K = HG the least MSE is min over causal K of ‖(z^{-D}F - K)Ω‖₂² + c²<ψ|K|>², reached by |G|² ∝ |K|/ψ; ψ = 1 for
one event a person. (By Cauchy-Schwarz ‖G‖₂‖H‖₂ ≥ <|K|>, and K = K_i K_o with G = K_o^{1/2} and H = K_i K_o^{1/2}.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import MOST_STEPS, resolve_on_circle
from dpfast.design.prefilter.water_filling import smoother_water_filling, zero_forcing_mse
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


class JointOptimum(NamedTuple):
    """The joint optimum, at the nodes of a circle.

    Attributes
    ----------
    circle : WarpedCircle
    product : array
        |K|.
    power : array
        |G|², up to a factor.
    mse : float
        The MSE of K, evaluated at the nodes.
    lower_bound : float
        From :func:`joint_optimum`, no linear mechanism of this lag has a smaller MSE. From a :class:`Majorization`,
        it is a bound for the problem at the nodes of its circle.
    cutoffs : tuple of float
        Angles at which the smoother of the same problem starts or stops letting anything pass.
    """

    circle: WarpedCircle
    product: Array
    power: Array
    mse: float
    lower_bound: float
    cutoffs: tuple[float, ...] = ()

    @property
    def gap(self) -> float:
        """The relative distance of the MSE from the bound."""
        return max(0.0, 1 - self.lower_bound / self.mse)


def joint_optimum(problem: Problem, lag: int, goal: float) -> JointOptimum:
    """Solve on a circle, and on circles of twice as many steps until that changes nothing.

    A certificate holds for the problem in N steps: the change from N/2 to N is taken off it.

    Parameters
    ----------
    problem : Problem
    lag : int
        D ≥ 0.
    goal : float
        The iteration ends at this relative gap.
    """
    smoother = smoother_water_filling(problem)
    held, finest = resolve_on_circle(problem, lag, smoother.cutoffs)
    circle = make_circle(finest.warp, max(SHORTEST, finest.size // _COARSER))
    found = _zero_forcing_optimum(problem, circle, smoother.mse)
    if found.gap <= goal:
        return found._replace(cutoffs=smoother.cutoffs)
    before = Majorization(problem, held, lag, circle).solve(found.power, goal, smoother.mse)
    while True:
        circle = make_circle(circle.warp, 2 * circle.size)
        start = before.circle.interpolate(before.power, circle.grid.omega)
        after = Majorization(problem, held, lag, circle).solve(start, goal, smoother.mse)
        change = abs(after.mse - before.mse)
        forcing = _zero_forcing_optimum(problem, circle, smoother.mse)
        bound = after.lower_bound - change
        # a bound above what is reached tells that the steps do not resolve the problem
        known = change <= _RESOLVED * after.mse and bound <= forcing.mse
        found = after if after.mse <= forcing.mse else forcing
        found = found._replace(lower_bound=max(smoother.mse, bound) if known else smoother.mse)
        if found.gap <= 2 * goal or 2 * circle.size > max(MOST_STEPS, 2 * finest.size):
            return found._replace(cutoffs=smoother.cutoffs)
        before = after


def _zero_forcing_optimum(problem: Problem, circle: WarpedCircle, bound: float) -> JointOptimum:
    """Return K = z^{-D}F, the best point known where, with hardly any noise, rounding or steps spoil the iteration."""
    product = problem.gain(circle.grid.omega)
    power = np.maximum(product, _FLOOR * product.max()) / problem.weight(circle.grid.omega)
    return JointOptimum(circle, product, power, zero_forcing_mse(problem), bound)


class Majorization:
    """The iteration that majorizes <ψ|K|>² ≤ <xψ²><|K|²/x>, with equality for x = |K|/ψ, and minimizes over K.

    It uses the spectrum that the circle resolves; errors and bounds are those of the spectrum of the problem.
    """

    def __init__(self, problem: Problem, held: Problem, lag: int, circle: WarpedCircle) -> None:
        omega = circle.grid.omega
        self.circle, self.cost, self.mean = circle, problem.cost, circle.grid.mean
        self.psd, self.weight = problem.psd(omega), problem.weight(omega)
        self.held = held.psd(omega)
        self.wanted = problem.target.response(omega) * circle.z**-lag
        self.largest = np.abs(self.held * self.wanted).max()
        positive = self.psd.min() > _POSITIVE * self.psd.max()
        self.shaping = circle.outer_factor(self.psd) if positive else None

    def solve(self, x: Array, goal: float, bound: float) -> JointOptimum:
        """Iterate from x = |G|² until the gap to the largest of all bounds is the goal, or nothing closes it."""
        best, largest, gaps = None, math.inf, [math.inf] * _PATIENCE
        for step in range(max(_FEWEST, _EFFORT // self.circle.size)):
            x = np.maximum(x, _FLOOR * x.max())
            noise = self.cost * self.mean(x * self.weight**2) / x
            inverse = self.circle.outer_factor(self.held + noise)
            k = self.circle.causal_part(self.held * self.wanted / inverse.conj()) / inverse
            size = np.abs(k)
            if step % _CERTIFY_EVERY == 0 or step < _PLAIN_STEPS:
                error = self.wanted - k
                distortion = self.mean(self.psd * np.abs(error) ** 2)
                mse = distortion + self.cost * self.mean(self.weight * size) ** 2
                bound = max(bound, distortion + self._bound_by_iterate(noise, k, error), self._bound_by_phase(k, size))
                if best is None or mse < best.mse:
                    power = np.maximum(size, _FLOOR * size.max()) / self.weight
                    best = JointOptimum(self.circle, size, power, mse, bound)
                best = best._replace(lower_bound=min(bound, best.mse))
                gaps.append(best.gap)
                excess = (noise * size / self.weight).max() / (self.cost * self.mean(self.weight * size)) - 1
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
        bound = 2 * self.mean((phi.conj() * k).real) - (np.abs(phi) / self.weight).max() ** 2 / self.cost
        return float(bound - 2 * self.mean(np.abs(anticausal) * np.abs(early)))

    def _bound_by_phase(self, k: Complex, size: Array) -> float:
        """Return the dual at φ = c²<ψ|K|>ψK/|K|, which is 2 Re<F* z^D φ> - ‖[φ/Ω*]₊‖² - c²<ψ|K|>², if P_u > 0."""
        if self.shaping is None:
            return -math.inf
        norm = self.mean(self.weight * size)
        phi = self.cost * norm * self.weight * np.divide(k, size, out=np.zeros_like(k), where=size > 0)
        filtered = self.circle.causal_part(phi / self.shaping.conj())
        gained = 2 * self.mean((self.wanted.conj() * phi).real) - self.mean(np.abs(filtered) ** 2)
        return gained - self.cost * norm**2
