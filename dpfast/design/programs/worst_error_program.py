"""Minimise the worst error over all frequencies, and the noise, by a cone program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.programs.solver import solve_program
from dpfast.filters.quadrature import QuadratureGrid

SOLVER = "CLARABEL"
_LEAST_GUESS = 1e-2  # of the mean of |F|


def minimize_worst_error(
    weight: float,
    grid: QuadratureGrid,
    wanted: Any,
    functions: Any,
    noise: Callable[[Any, QuadratureGrid, Any, Any], tuple[Any, list[Any]]],
    constraint: Callable[[Any], Any] | None = None,
    *,
    accuracy: float | None = None,
) -> Array:
    """Return the coefficients x with the least sup|wanted - functions · x|² + weight · noise² on a grid."""
    import cvxpy as cp

    mean = grid.mean(np.abs(wanted))
    level = math.sqrt(weight) * mean  # as bad as the noise of zero forcing
    x, largest = cp.Variable(functions.shape[1]), cp.Variable()
    pairs = zip(_real_parts(wanted), _real_parts(functions * (mean / level)), strict=True)
    error = [w / level - f @ x for w, f in pairs]
    cones = [cp.SOC(cp.multiply(np.ones(len(wanted)), largest), cp.vstack(error), axis=0)]
    root, more = noise(cp, grid, functions, x)
    cones += more if constraint is None else [*more, constraint(x)]
    solve_program(
        cp.Problem(cp.Minimize(cp.square(largest) + cp.square(root)), cones), SOLVER, roughly=True, accuracy=accuracy
    )
    return np.asarray(x.value) * mean


def noise_of_product(cp: Any, grid: QuadratureGrid, functions: Any, x: Any) -> tuple[Any, list[Any]]:
    """Return <|K|>, the noise behind the best G and H, with the cones that it takes."""
    size = np.abs(functions).max(axis=1)
    guess = np.maximum(size, _LEAST_GUESS * grid.mean(size))
    gain = cp.Variable(len(guess))
    product = cp.vstack([part @ x for part in _real_parts(functions / guess[:, None])])
    return (grid.weights * guess) @ gain, [cp.SOC(gain, product, axis=0)]


def noise_of_positive_product(cp: Any, grid: QuadratureGrid, functions: Any, x: Any) -> tuple[Any, list[Any]]:
    """Return <|K|> for a K that is positive."""
    return (grid.weights @ functions) @ x, []


def noise_of_receiver(cp: Any, grid: QuadratureGrid, functions: Any, x: Any) -> tuple[Any, list[Any]]:
    """Return ‖H‖₂ in an orthonormal basis, the noise behind a G of unit norm."""
    return cp.norm(x), []


def _real_parts(values: Any) -> list[Any]:
    return [values.real, values.imag] if np.iscomplexobj(values) else [values]
