"""Design the prefilter by the paper's convex programs for x(ω) = |G(ω)|² / ‖G‖₂², which take constraints on x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfast._support.design_calls import public_design
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_inputs, check_one_event, check_tolerance
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.objectives import (
    Excess,
    Objective,
    feedback_objective,
    shape_objective,
    smoother_objective,
)
from dpfast.design.prefilter.order_selection import realize
from dpfast.design.prefilter.water_filling import (
    WaterFilling,
    feedback_mse,
    feedback_water_filling,
    smoother_water_filling,
)
from dpfast.design.programs.solver import solve_program
from dpfast.filters.filter import Filter
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.spectral_factor import Spectrum
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

Constraints = Callable[[Any, Array], list[Any]]
_SMALLEST_GUESS = 1.0  # the mean of x
_FLOOR = 1e-6  # of the mean of x: no filter of finite order is zero on a band


@dataclass(frozen=True, eq=False)
class Program:
    """Take the solution of a convex program.

    Attributes
    ----------
    grid : QuadratureGrid
        Angles ``grid.omega`` in [0, π]; ``grid.mean(values)`` is the mean over the circle.
    x : array
        The optimal |G|²/‖G‖₂² at these angles.
    mse : float
        The value of the criterion.
    """

    grid: QuadratureGrid
    x: Array
    mse: float
    _problem: Problem
    _objective: Callable[[Problem, WaterFilling], Objective]
    _unconstrained: WaterFilling

    def prefilter(self, *, tolerance: float = 1e-3) -> Filter:
        """Return a filter of few states with |G|² near x, for ``lmmse(..., prefilter=...)`` or ``decision_feedback``.

        Both its criterion is within a relative `tolerance` of `mse`, and a zero-forcing loss <|G|²><x²/|G|²> within one
        of <x>²: |G|² follows x, and constraints hold, to about the root of the tolerance.
        """
        shape = floored_shape(self.grid, self.x)
        criterion = self._objective(self._problem, self._unconstrained._replace(x=shape, mse=self.mse))
        shaped = shape_objective(self._problem, shape, criterion.detail, self._unconstrained.cutoffs)
        return realize_shape(shaped, criterion.excess, tolerance)


@public_design
def lmmse_program(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    constraints: Constraints | None = None,
    solver: str = "CLARABEL",
) -> Program:
    """Design the prefilter of the LMMSE mechanism by a convex program, under further constraints on its gain.

    Minimises <P_u|F|² / (P_u x/c² + 1)> over x ≥ 0 with <x> = 1 (Le Ny 2013, equation (7)), on the nodes of a graded
    grid instead of a uniform one. Without further constraints the optimum is the closed form behind
    :func:`dpfast.lmmse`.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        For one event: the sensitivity to several is not a multiple of the norm of G.
    model : Model
        Spectrum of u.
    constraints : callable, optional
        (x, omega) → list of cvxpy constraints on the variable x, which holds |G|²/‖G‖₂² at the angles omega.
    solver : str
        A cvxpy solver for second-order cones.

    Returns
    -------
    Program

    Raises
    ------
    DesignError
        Where the solver finds no optimum (infeasible constraints, or too little precision), where constraints do not
        follow cvxpy's rules, or for several events.

    Examples
    --------
    A cap on the gain, and what it costs:

    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> target, privacy = dp.Filter([1], [1, -0.9]), dp.Privacy(epsilon=1, delta=1e-3)
    >>> free = dp.lmmse_program(target, privacy, chain)
    >>> capped = dp.lmmse_program(target, privacy, chain, constraints=lambda x, omega: [x <= 3])
    >>> capped.mse > free.mse
    True
    """
    problem = one_event_problem(target, privacy, model)
    water = smoother_water_filling(problem)

    def criterion(cp: Any, ratio: Any, guess: Array, grid: QuadratureGrid) -> Any:
        # with x = ratio · guess and s = P_u · guess/c² it is the mean of (P_u|F|²/s) / (ratio + 1/s)
        snr = problem.psd(grid.omega) * guess / problem.cost
        passed = snr > 0
        error = grid.weights * problem.cost * problem.gain(grid.omega) ** 2 / guess / water.mse
        return cp.Minimize(error[passed] @ cp.inv_pos(ratio[passed] + 1 / snr[passed]))

    grid, x, value = _solve_near_guess(problem, water, criterion, constraints, solver)
    return Program(grid, x, value * water.mse, problem, smoother_objective, water)


@public_design
def feedback_program(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    constraints: Constraints | None = None,
    solver: str = "CLARABEL",
) -> Program:
    """Design the prefilter of ideal decision feedback by a convex program, under further constraints on its gain.

    Maximises <ln(P_u x/c² + 1)> over x ≥ 0 with <x> = 1 (Le Ny 2013, equation (11)); ``mse`` *assumes error-free
    decisions*.

    Parameters
    ----------
    target : Filter
        F, on which the value depends, but not x.
    privacy : Privacy
        For one event.
    model : Model
        Spectrum of u.
    constraints : callable, optional
        As for :func:`lmmse_program`.
    solver : str
        A cvxpy solver for exponential cones.

    Returns
    -------
    Program

    Raises
    ------
    DesignError
        As for :func:`lmmse_program`.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> program = dp.feedback_program(dp.Filter([1], [1, -0.9]), dp.Privacy(epsilon=10, delta=1e-3), chain)
    >>> bool(program.x.max() < 2)  # nearly flat: there is little noise
    True
    """
    problem = one_event_problem(target, privacy, model)
    water = feedback_water_filling(problem)

    def criterion(cp: Any, ratio: Any, guess: Array, grid: QuadratureGrid) -> Any:
        return cp.Maximize(grid.weights @ cp.log1p(cp.multiply(problem.psd(grid.omega) * guess / problem.cost, ratio)))

    grid, x, _ = _solve_near_guess(problem, water, criterion, constraints, solver)
    return Program(grid, x, feedback_mse(problem, grid, x), problem, feedback_objective, water)


def floored_shape(grid: QuadratureGrid, x: Array) -> Spectrum:
    """Return a shape that a filter can follow: x, interpolated between the nodes of a grid and nowhere zero."""
    above = np.maximum(x, _FLOOR)
    return lambda omega: np.interp(omega, grid.omega, above)


def realize_shape(shaped: Objective, excess: Excess, tolerance: float) -> Filter:
    """Realise a shape: return a filter of few states with both its loss and another excess within the tolerance."""

    def larger(g: Filter) -> float:
        return max(excess(g), shaped.excess(g))

    return realize(shaped, tolerance=check_tolerance(tolerance), excess=larger)


def one_event_problem(target: Filter, privacy: Privacy, model: Model) -> Problem:
    """Check the arguments of a convex program, which is for one event a person, and return its problem."""
    check_inputs(target, privacy)
    check_model(model)
    check_one_event(privacy)
    return Problem(target, model, noise_cost(privacy, None))


def _solve_near_guess(
    problem: Problem,
    water: WaterFilling,
    criterion: Callable[[Any, Any, Array, QuadratureGrid], Any],
    constraints: Constraints | None,
    solver: str,
) -> tuple[QuadratureGrid, Array, float]:
    """Solve for ratio = x / guess, the guess near the free optimum, as solvers work best with numbers of like size."""
    import cvxpy as cp

    grid = problem.grid(breaks=water.cutoffs)
    guess = np.maximum(water.x(grid.omega), _SMALLEST_GUESS)
    ratio = cp.Variable(len(grid.omega), nonneg=True)
    goal = criterion(cp, ratio, guess, grid)
    x = cp.multiply(guess, ratio)
    total = (grid.weights * guess) @ ratio == 1
    program = cp.Problem(goal, [total, *(constraints(x, grid.omega) if constraints else [])])
    value = solve_program(program, solver)
    return grid, np.maximum(np.asarray(x.value), 0), value
