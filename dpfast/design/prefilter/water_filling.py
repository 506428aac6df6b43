"""Optimal squared magnitudes of the prefilter in closed form, by water-filling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support.root_finding import root_between
from dpfast._support.validation import Array
from dpfast.design.prefilter.design_problem import Problem
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.spectral_factor import Spectrum

_FEW_CROSSINGS = 16  # that are found one by one
_HALVINGS = 50  # of an interval of less than π
_PASSES = 3  # solve, insert the cutoffs into the grid, solve again
_LOWEST = 1e-12  # of the upper bound of τ: no search goes below
_SMALLEST = 1e-200  # of the largest |F|: a floor that keeps ln τ finite for every mean square

_Values = tuple[Array, ...]  # what a water level depends on, at angles


class WaterFilling(NamedTuple):
    """The optimal x = |G|²/‖G‖₂² of a problem.

    Attributes
    ----------
    x : callable
        ω → x(ω).
    mse : float
        The least MSE, the value of the criterion.
    cutoffs : tuple of float
        Angles at which x starts or stops being zero.
    level : float
        The water level: m or μ.
    """

    x: Spectrum
    mse: float
    cutoffs: tuple[float, ...]
    level: float


class RobustFilling(NamedTuple):
    """The best smoother against the worst input.

    Attributes
    ----------
    threshold : float
        τ, the largest |F - K|.
    passed : float
        <|K|>.
    mse : float
        The worst MSE.
    cutoffs : tuple of float
        Angles at which K starts or stops being zero.
    """

    threshold: float
    passed: float
    mse: float
    cutoffs: tuple[float, ...]


def zero_forcing_mse(problem: Problem) -> float:
    """Return the least MSE of zero forcing, c² <ψ|F|>² (Le Ny 2013, Theorem 5, for ψ = 1), at |G|² ∝ |F|/ψ."""
    return zero_forcing_root(problem) ** 2


def zero_forcing_root(problem: Problem) -> float:
    """Return c <ψ|F|>; the errors of inputs that one person may reach together are the square of their sum."""
    grid = problem.grid()
    return math.sqrt(problem.cost) * grid.mean(problem.weight(grid.omega) * problem.gain(grid.omega))


def smoother_water_filling(problem: Problem) -> WaterFilling:
    """Return the prefilter that is best in front of a smoother, the non-causal Wiener filter.

    With K = HG: |K| = (|F| - c²mψ/P_u)₊, m = <ψ|K|>, x = |K|/mψ, MSE = <P_u (|F| - |K|)²> + c²m². With ψ = 1 it is the
    solution of the program of Le Ny 2013, equation (7).
    """

    def evaluate(omega: Array) -> _Values:
        return problem.gain(omega), problem.psd(omega), problem.weight(omega)

    def margin(m: float, values: _Values) -> Array:
        gain, psd, weight = values
        return gain * psd - problem.cost * m * weight

    def product(m: float, values: _Values) -> Array:
        _, psd, _ = values
        return np.maximum(margin(m, values), 0) / np.where(psd > 0, psd, 1)

    def level(grid: QuadratureGrid, values: _Values) -> float:
        gain, psd, weight = values
        safe = np.where(psd > 0, psd, 1)

        def excess(m: float) -> float:
            return grid.mean(weight * np.maximum(gain * psd - problem.cost * m * weight, 0) / safe) - m

        everything = grid.mean(weight * gain)  # passes where the noise is lost in rounding
        return everything if excess(everything) >= 0 else _find_root(excess, 0.0, everything)

    m, grid, values, cutoffs = _solve_for_level(problem, evaluate, level, margin)
    gain, psd, _ = values
    mse = grid.mean(psd * (gain - product(m, values)) ** 2) + problem.cost * m * m
    return WaterFilling(lambda omega: product(m, evaluate(omega)) / (m * problem.weight(omega)), mse, cutoffs, m)


def feedback_water_filling(problem: Problem) -> WaterFilling:
    """Return the prefilter that is best for decision feedback, *assuming error-free decisions*.

    x = (μ - c²/P_u)₊ with <x> = 1 maximises <ln(P_u x/c² + 1)>: Le Ny 2013, equation (11). It does not depend on F.
    """

    def evaluate(omega: Array) -> _Values:
        return (problem.psd(omega),)

    def margin(mu: float, values: _Values) -> Array:
        return mu * values[0] - problem.cost

    def x(mu: float, values: _Values) -> Array:
        (psd,) = values
        return np.maximum(margin(mu, values), 0) / np.where(psd > 0, psd, 1)

    def level(grid: QuadratureGrid, values: _Values) -> float:
        high = 1.0
        while grid.mean(x(high, values)) < 1:
            high *= 2
        return _find_root(lambda mu: grid.mean(x(mu, values)) - 1, 0.0, high)

    mu, grid, values, cutoffs = _solve_for_level(problem, evaluate, level, margin)
    mse = feedback_mse(problem, grid, x(mu, values))
    return WaterFilling(lambda omega: x(mu, evaluate(omega)), mse, cutoffs, mu)


def robust_filling(problem: Problem, mean_square: float) -> RobustFilling:
    """Return the smoother that is best for the worst input of a mean square V: |K| = (|F| - τ)₊, K along F.

    Once |F - K| is τ somewhere it costs nothing to be τ everywhere; τ minimises V τ² + c² <(|F| - τ)₊>².
    """

    def evaluate(omega: Array) -> _Values:
        return (problem.gain(omega),)

    def margin(tau: float, values: _Values) -> Array:
        return values[0] - tau

    def passed(tau: float, grid: QuadratureGrid, values: _Values) -> float:
        return grid.mean(np.maximum(margin(tau, values), 0))

    def worst(tau: float, grid: QuadratureGrid, values: _Values) -> float:
        return mean_square * tau**2 + problem.cost * passed(tau, grid, values) ** 2

    def level(grid: QuadratureGrid, values: _Values) -> float:
        # the slope is no help: on a grid it jumps where τ is the gain at a node. The search is over ln τ, as τ is tiny
        # with little noise: about c²<|F|>/V at the most
        from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

        (gain,) = values
        top = float(gain.max())
        low = max(_LOWEST * min(top, problem.cost * grid.mean(gain) / mean_square), _SMALLEST * top)
        found = optimize.fminbound(lambda x: worst(math.exp(x), grid, values), math.log(low), math.log(top), xtol=1e-10)
        return min(math.exp(float(found)), top, key=lambda tau: worst(tau, grid, values))

    tau, grid, values, cutoffs = _solve_for_level(problem, evaluate, level, margin)
    return RobustFilling(tau, passed(tau, grid, values), worst(tau, grid, values), cutoffs)


def _find_root(function: Callable[[float], float], low: float, high: float, xtol: float = 1e-300) -> float:
    return float(root_between(function, low, high, xtol=xtol, rtol=4 * np.finfo(float).eps, steps=500))


def _solve_for_level(
    problem: Problem,
    evaluate: Callable[[Array], _Values],
    solve: Callable[[QuadratureGrid, _Values], float],
    margin: Callable[[float, _Values], Array],
) -> tuple[float, QuadratureGrid, _Values, tuple[float, ...]]:
    """Solve for the water level, with the angles where the margin changes sign as breakpoints of the grid.

    What the level depends on is evaluated once for a grid: beside zeros of a long target it has a million angles.
    """
    cutoffs: tuple[float, ...] = ()
    for number in range(_PASSES):
        # at first down to zeros of the target on the circle too, as there may be cutoffs beside them
        grid = problem.grid(breaks=cutoffs) if number else problem.grid(problem.target.zeros)
        values = evaluate(grid.omega)
        level = solve(grid, values)
        crossings = np.nonzero(np.diff(margin(level, values) > 0))[0]

        def margin_at(omega: Array, level: float = level) -> Array:
            return margin(level, evaluate(omega))

        if len(crossings) <= _FEW_CROSSINGS:
            cutoffs = tuple(_find_crossing(margin_at, *grid.omega[i : i + 2]) for i in crossings)
        else:
            cutoffs = _find_crossings(margin_at, grid.omega[crossings], grid.omega[crossings + 1])
    return level, grid, values, cutoffs


def _find_crossing(margin: Callable[[Array], Array], low: float, high: float) -> float:
    def at(omega: float) -> float:
        return margin(np.array(omega)).item()

    ends = at(low), at(high)
    if (ends[0] > 0) == (ends[1] > 0):  # of one angle and of many at once it is rounded differently
        return low if abs(ends[0]) < abs(ends[1]) else high
    return _find_root(at, low, high, xtol=1e-15)


def _find_crossings(margin: Callable[[Array], Array], low: Array, high: Array) -> tuple[float, ...]:
    """Halve all intervals at once, until they are as short as rounding lets them be."""
    above = margin(low) > 0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        same = (margin(middle) > 0) == above
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return tuple(low.tolist())


def feedback_mse(problem: Problem, grid: QuadratureGrid, x: Array) -> float:
    """Return the MSE of ideal decision feedback *assuming error-free decisions*.

    It is γ_u² γ_F² exp(-<ln(P_u x/c² + 1)>): Le Ny 2013, equation (10).
    """
    return problem.log_mean_output * math.exp(-grid.mean(np.log1p(problem.psd(grid.omega) * x / problem.cost)))
