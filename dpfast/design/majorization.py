r"""The joint optimum of G and H for a receiver of finite lag: an iteration with certificates.

With K = HG the least MSE is min over causal K of ‖(z^{-D}F - K)Ω‖₂² + c²<ψ|K|>², reached by |G|² ∝ |K|/ψ; ψ = 1 for
one event a person. (By Cauchy-Schwarz ‖G‖₂‖H‖₂ ≥ <|K|>, and K = K_i K_o with G = K_o^{1/2} and H = K_i K_o^{1/2}.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._validate import Array
from dpfast.circle import Circle, circle_for, make_circle
from dpfast.design.prefilter import Problem, smoother_water_filling

Complex = NDArray[np.complex128]
_FLOOR = 1e-13  # of the largest x: a smaller one makes the next spectrum overflow
_PLAIN_STEPS = 3
_RELAXATION = 1.8
_EFFORT = 2**26  # steps of the iteration times those of the circle
_RESOLVED = 1e-2  # change of the MSE by more steps, below which it bounds what still more would change
_FEWEST = 200
_PATIENCE = 60  # certificates in which the gap must shrink
_PROGRESS = 0.999
_LARGEST = 2**18  # steps of the circle; more where the poles alone need more
_CERTIFY_EVERY = 5
_POSITIVE = 1e-10  # of the largest P_u: where it is smaller, nothing is divided by it
_ROUNDING = 1e-14


class JointOptimum(NamedTuple):
    """The solution, at the nodes of a circle.

    Attributes
    ----------
    circle : Circle
    response : array of complex
        K.
    power : array
        |G|², in any unit.
    mse : float
        That of K: no bound for the continuous problem, but for `change`.
    lower_bound : float
        From :func:`joint_optimum`: no linear mechanism of this lag has a smaller MSE. From one circle: of the problem
        in its steps.
    """

    circle: Circle
    response: Complex
    power: Array
    mse: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Relative distance of the MSE to the bound."""
        return max(0.0, 1 - self.lower_bound / self.mse)


def joint_optimum(problem: Problem, lag: int, goal: float) -> JointOptimum:
    """Solve on a circle, and on one of twice as many steps until that changes nothing.

    A certificate is one for the problem in N steps: the change from N/2 to N is taken off it.

    Parameters
    ----------
    problem : Problem
    lag : int
        D ≥ 0.
    goal : float
        Relative gap at which the iteration ends.
    """
    smoother = smoother_water_filling(problem).mse
    circle = circle_for(problem.details, max(lag, problem.degree))
    before = _Iteration(problem, lag, circle).solve(problem.gain(circle.grid.omega), goal, smoother)
    while True:
        circle = make_circle(circle.warp, 2 * circle.size)
        start = before.circle.interpolate(before.power, circle.grid.omega)
        after = _Iteration(problem, lag, circle).solve(start, goal, smoother)
        change = abs(after.mse - before.mse)
        bound = after.lower_bound - change if change <= _RESOLVED * after.mse else 0.0
        certified = after._replace(lower_bound=max(smoother, bound))
        if certified.gap <= 2 * goal or 2 * circle.size > _LARGEST:
            return certified
        before = after


class _Iteration:
    """Majorise and minimise: <ψ|K|>² ≤ <xψ²><|K|²/x>, with equality for x = |K|/ψ."""

    def __init__(self, problem: Problem, lag: int, circle: Circle) -> None:
        omega = circle.grid.omega
        self.circle, self.cost, self.mean = circle, problem.cost, circle.grid.mean
        self.psd, self.weight = problem.psd(omega), problem.weight(omega)
        self.wanted = problem.target.response(omega) * circle.z**-lag
        positive = self.psd.min() > _POSITIVE * self.psd.max()
        self.shaping = circle.outer(self.psd) if positive else None

    def solve(self, x: Array, goal: float, bound: float) -> JointOptimum:
        """From x = |G|² until the gap to the largest of all bounds is the goal."""
        best, largest, gaps = None, math.inf, [math.inf] * _PATIENCE
        for step in range(max(_FEWEST, _EFFORT // self.circle.size)):
            x = np.maximum(x, _FLOOR * x.max())
            noise = self.cost * self.mean(x * self.weight**2) / x
            inverse = self.circle.outer(self.psd + noise)
            k = self.circle.causal(self.psd * self.wanted / inverse.conj()) / inverse
            size = np.abs(k)
            if step % _CERTIFY_EVERY == 0 or step < _PLAIN_STEPS:
                distortion = self.mean(self.psd * np.abs(self.wanted - k) ** 2)
                mse = distortion + self.cost * self.mean(self.weight * size) ** 2
                bound = max(bound, self._by_iteration(x, size), self._by_phase(k, size))
                if best is None or mse < best.mse:
                    best = JointOptimum(self.circle, k, np.maximum(size, _FLOOR * size.max()) / self.weight, mse, bound)
                best = best._replace(lower_bound=min(bound, best.mse))
                gaps.append(best.gap)
                if best.gap <= goal or best.gap > _PROGRESS * gaps[-_PATIENCE]:
                    break
            ratio = size / (x * self.weight)
            largest, before = ratio.max() / self.mean(ratio * x) * self.mean(x), largest
            x = x * ratio ** (_RELAXATION if step >= _PLAIN_STEPS and largest <= before else 1.0)
        assert best is not None
        return best

    def _by_iteration(self, x: Array, size: Array) -> float:
        """<P_u|F|²> - <P_u|K|²> - ρ²c²<xψ²>², ρ = max |K|/xψ, less its rounding. Without a division by Ω.

        P_u F z^{-D} - φ is P_u K plus something strictly anticausal, for φ = c²<xψ²>K/x.
        """
        largest = float((size / (x * self.weight)).max()) * self.mean(x * self.weight**2)
        output = self.mean(self.psd * np.abs(self.wanted) ** 2)
        return output * (1 - _ROUNDING) - self.mean(self.psd * size**2) - self.cost * largest**2

    def _by_phase(self, k: Complex, size: Array) -> float:
        """The dual at φ = c²<ψ|K|>ψK/|K|: 2 Re<F* z^D φ> - ‖[φ/Ω*]₊‖² - c²<ψ|K|>², where P_u > 0."""
        if self.shaping is None:
            return -math.inf
        norm = self.mean(self.weight * size)
        phi = self.cost * norm * self.weight * np.divide(k, size, out=np.zeros_like(k), where=size > 0)
        filtered = self.circle.causal(phi / self.shaping.conj())
        gained = 2 * self.mean((self.wanted.conj() * phi).real) - self.mean(np.abs(filtered) ** 2)
        return gained - self.cost * norm**2
