r"""Bound the worst MSE of every causal K of a lag from below, by a point that is feasible for the dual problem.

With F' = e^{-iωD}F: for every p and q on the circle whose causal parts are the same, every causal K and every V,
V ‖F' - K‖∞² + c²<|K|>² ≥ 2 Re<p* F'> - <|p|>²/V - sup|q|²/c², since a² ≥ 2ab - b² for <p* (F' - K)> and for <q* K>, and
<(q - p)* K> = 0. Here q - p is a strictly anticausal rational function: its coefficients are those of a cone program
on a grid; p and q between its nodes are then the best that they allow, in closed form but for one angle.
"""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.rational_basis import Basis
from dpfast.design.programs.solver import solve_program
from dpfast.filters.quadrature import QuadratureGrid, graded_grid

_FINER = 4  # degree of the grid on which the bound is evaluated, as a multiple of the taps of the basis
MOST_VALUES = 2**21  # of functions at angles: programs of so many take minutes, and gigabytes
_LARGE = 2**18  # values of functions at angles
_LARGE_PROGRAM = (0.7, 1e-4)  # the degree of its grid, as a multiple of the taps, and its accuracy
_LARGE_DUAL = (0.5, 1e-3)  # feasible on a finer grid whatever its own, which costs 1e-4 to 3e-4 of the bound
_PHASES = 64
_GOLDEN = (np.sqrt(5) - 1) / 2


def program_grid(
    problem: Problem, basis: Basis, large: tuple[float, float] = _LARGE_PROGRAM
) -> tuple[QuadratureGrid, float | None]:
    """Return the grid of a cone program over a basis, and the accuracy that is asked of it, None for the solver's own.

    Large programs have fewer angles and are solved less exactly, as their time is that of functions² x angles: what
    they find is measured at all frequencies, and costs some 1e-4 of the error.
    """
    grid = problem.grid(basis.poles, basis.taps // 2)
    if basis.size * len(grid.omega) <= _LARGE:
        return grid, None
    degree, accuracy = large
    return graded_grid(basis.poles, degree=math.ceil(degree * basis.taps)), accuracy


def robust_lower_bound(problem: Problem, mean_square: float, lag: int, basis: Basis, solver: str) -> float:
    """Return the bound, evaluated on a grid finer than that of the program; the quadrature is its only error."""
    grid, accuracy = program_grid(problem, basis, _LARGE_DUAL)
    # down to zeros of the target on the circle, where its phase jumps and no rational q - p can
    fine = problem.grid(np.concatenate([basis.poles, problem.target.zeros]), _FINER * basis.taps)
    scale = grid.mean(problem.gain(grid.omega))
    weight = problem.cost / mean_square  # p and q are in units of c² · scale

    def wanted(omega: Array) -> Complex:
        return np.asarray(problem.target.response(omega) * np.exp(-1j * lag * omega) / scale)

    def anticausal(omega: Array) -> Complex:
        return np.asarray((basis.response(omega) * np.exp(-1j * omega)[:, None]).conj())

    functions = anticausal(grid.omega)
    coefficients, largest, size = _solve_dual(grid.weights, wanted(grid.omega), functions, weight, solver, accuracy)
    n_pieces = 1 + basis.size * len(fine.omega) // MOST_VALUES
    a = np.concatenate([anticausal(x) @ coefficients for x in np.array_split(fine.omega, n_pieces)])
    f = wanted(fine.omega)
    p = _best_point(f, a, largest, weight * size)
    top = fine.mean((p.conj() * f).real)
    bottom = weight * fine.mean(np.abs(p)) ** 2 + float(np.abs(p + a).max()) ** 2
    return problem.cost * scale**2 * max(top, 0.0) ** 2 / bottom  # the best multiple of p and q


def _solve_dual(
    weights: Array, wanted: Complex, functions: Complex, weight: float, solver: str, accuracy: float | None
) -> tuple[Array, float, float]:
    """Solve the dual as a cone program; return the coefficients of q - p, sup|q| and <|p|>."""
    import cvxpy as cp

    n = len(wanted)
    coefficients, q = cp.Variable(functions.shape[1]), cp.Variable((2, n))
    largest, size = cp.Variable(), cp.Variable(n)
    p = q - cp.vstack([functions.real @ coefficients, functions.imag @ coefficients])
    correlation = (weights * wanted.real) @ p[0] + (weights * wanted.imag) @ p[1]
    mean = weights @ size
    value = 2 * correlation - weight * cp.square(mean) - cp.square(largest)
    cones = [cp.SOC(cp.multiply(np.ones(n), largest), q, axis=0), cp.SOC(size, p, axis=0)]
    solve_program(cp.Problem(cp.Maximize(value), cones), solver, roughly=True, accuracy=accuracy)
    return np.asarray(coefficients.value), float(largest.value), float(mean.value)


def _best_point(f: Complex, a: Complex, largest: float, weight: float) -> Complex:
    """Return p with a large Re(p* f) - weight·|p| for |p + a| ≤ largest.

    It is the better one of the least p that is allowed and the best with p + a on the boundary.
    """

    def value(p: Complex) -> Array:
        return np.asarray((p.conj() * f).real - weight * np.abs(p))

    def at(phase: Array) -> Complex:
        return np.asarray(largest * np.exp(1j * phase) - a)

    phases = np.linspace(-np.pi, np.pi, _PHASES, endpoint=False)
    first = phases[np.argmax([value(at(x)) for x in phases], axis=0)]
    low, high = first - phases[1] + phases[0], first + phases[1] - phases[0]
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        rising = value(at(left)) < value(at(right))
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    least = a * (np.minimum(1, largest / np.maximum(np.abs(a), 1e-300)) - 1)
    boundary = at((low + high) / 2)
    return np.where(value(least) >= value(boundary), least, boundary)
