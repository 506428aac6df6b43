"""Solve convex programs by cvxpy."""

from __future__ import annotations

import warnings
from typing import Any

from dpfast._support.errors import DesignError

# a band without gain leaves no interior, and the solver ends short of its goal: so near is near enough
_TOLERANCES = {"CLARABEL": ["tol_gap_abs", "tol_gap_rel", "tol_feas"]}
_NEAR_ENOUGH = 1e-7


def solve_program(program: Any, solver: str, *, roughly: bool = False, accuracy: float | None = None) -> float:
    """Solve a cvxpy problem and return its optimum, or raise an error that says what to do.

    `roughly` is for callers that measure the value themselves: an inaccurate optimum will do. `accuracy` is that of
    the solver if None.
    """
    import cvxpy as cp

    tolerances = _TOLERANCES.get(solver, [])
    near_enough = {f"reduced_{x}": _NEAR_ENOUGH for x in tolerances}
    options = {} if roughly else near_enough
    if accuracy is not None:
        options |= dict.fromkeys(tolerances, accuracy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of inaccuracy, which the status says too
            program.solve(solver=solver, **options)
    except cp.DCPError as error:
        raise DesignError(f"constraints must follow cvxpy's rules for convex programs: {error}") from error
    except cp.SolverError as error:
        raise DesignError(f"the solver {solver} failed: {error}; try another solver") from error
    inaccurate = program.status == cp.OPTIMAL_INACCURATE and (roughly or near_enough)
    if program.status != cp.OPTIMAL and not inaccurate:
        raise DesignError(f"the convex program is {program.status}: relax the constraints or try another solver")
    return float(program.value)
