"""The lasso, argmin ½‖Dx - v‖₂² + λ‖x‖₁, by a semismooth Newton method."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.errors import ConvergenceWarning, warn
from dpfast._support.validation import Array

_INNER = 0.01  # of the tolerance: how closely a weight's problem is solved
_ROUNDING = 1e-15
_GROWTH = 3.0  # of the weight; 20 makes problems that Newton's method does not solve
_LARGEST_WEIGHT = 1e8
_HALVINGS = 40


def lasso(dictionary: Array, v: Array, penalty: float, tolerance: float, max_iterations: int) -> Array:
    r"""Find the coefficients x (n,) of observations v (m,) in a dictionary (m, n).

    The augmented Lagrangian of the dual, min ½‖ξ‖² + ⟨b, ξ⟩ subject to ‖Dᵀξ‖_∞ ≤ 1 with b = v/λ: for a weight σ that
    grows, min ½‖ξ‖² + ⟨b, ξ⟩ + ‖x⁺‖²/(2σ) with x⁺ = S(x - σDᵀξ, σ), S the soft threshold, by Newton's method, whose
    Hessian is 1 + σ D_+ D_+ᵀ over the columns where x⁺ is not zero; then x ← x⁺ (Li, Sun and Toh 2018). Once x⁺ has
    the right signs, the linear equations for its size end it.

    Parameters
    ----------
    penalty : float
        λ, above 0.
    tolerance : float
        Relative duality gap at which it ends.
    max_iterations : int
        Newton's steps and weights; where they are used up, a ConvergenceWarning tells the gap. Rounding may be the
        reason, where v is 10⁹ times λ or more.
    """
    b = v / penalty
    x, dual, weight = np.zeros(dictionary.shape[1]), -b, 1.0
    correlation = dual @ dictionary
    size, norm = float(np.linalg.norm(b)), float(np.linalg.norm(dictionary))
    for _ in range(max_iterations):
        new = _soft_threshold(x - weight * correlation, weight)
        columns = dictionary[:, new != 0]
        gradient = dual + b - columns @ new[new != 0]
        if np.linalg.norm(gradient) <= max(_INNER * tolerance * size, _ROUNDING * (size + weight * norm)):
            x, weight = new, min(weight * _GROWTH, _LARGEST_WEIGHT)
            for found in (x, _solve_for_signs(dictionary, np.sign(x), b)):
                if relative_gap(dictionary, found, b) <= tolerance:
                    return found * penalty
        else:
            direction = _newton_direction(columns, weight, gradient)
            turned = direction @ dictionary
            line = _Line(dual + b, direction, x - weight * correlation, turned, weight)
            step = _choose_step(line, float(gradient @ direction))
            dual, correlation = dual + step * direction, correlation + step * turned
    gap = relative_gap(dictionary, x, b)
    warn(
        f"the lasso stopped after {max_iterations} iterations at a relative duality gap of {gap:.1g}, above its "
        f"tolerance {tolerance:g}: raise max_iterations or the tolerance",
        ConvergenceWarning,
    )
    return x * penalty


def relative_gap(dictionary: Array, x: Array, b: Array) -> float:
    """Return the duality gap for λ = 1 at the residual, scaled until it is feasible, relative to the objective.

    With the residual r, c = Dᵀr and s ≤ 1 for which |s c| ≤ 1: ½(1 - s)²‖r‖² + Σ (|x| - s c x), two sums that are not
    negative, so that nothing cancels.
    """
    residual = b - dictionary @ x
    correlation = residual @ dictionary
    energy, norm = float(residual @ residual), float(np.abs(x).sum())
    scale = 1 / max(1.0, float(np.abs(correlation).max()))
    gap = (1 - scale) ** 2 * energy / 2 + norm - scale * float(correlation @ x)
    objective = energy / 2 + norm
    return gap / objective if objective > 0 else 0.0


def _soft_threshold(x: Array, threshold: float) -> Array:
    """Move all numbers towards zero by a threshold, and to zero within it."""
    return np.asarray(x - np.clip(x, -threshold, threshold))


def _newton_direction(columns: Array, weight: float, gradient: Array) -> Array:
    """Return -(1 + σ D Dᵀ)⁻¹ g, through the smaller of D Dᵀ and Dᵀ D."""
    m, n_active = columns.shape
    if n_active == 0:
        return -gradient
    if n_active >= m:
        return -_solve_positive(np.eye(m) + weight * (columns @ columns.T), gradient)
    return columns @ _solve_positive(np.eye(n_active) / weight + columns.T @ columns, gradient @ columns) - gradient


def _solve_for_signs(dictionary: Array, signs: Array, b: Array) -> Array:
    """Solve Dᵀ(b - Dx) = signs for the coefficients where those are not zero; zeros where nothing does alone."""
    x = np.zeros(len(signs))
    used = signs != 0
    columns = dictionary[:, used]
    if 0 < columns.shape[1] <= len(b):
        with contextlib.suppress(linalg.LinAlgError):  # dependent columns: not the only solution
            x[used] = _solve_positive(columns.T @ columns, b @ columns - signs[used])
    return x


def _solve_positive(matrix: Array, right: Array) -> Array:
    return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix), right))


class _Line(NamedTuple):
    """The problem of a weight along a direction; its slope grows with the step."""

    start: Array  # ξ + b
    direction: Array
    unshrunk: Array  # x - σDᵀξ
    turned: Array  # Dᵀ direction
    weight: float

    def slope(self, step: float) -> float:
        new = _soft_threshold(self.unshrunk - self.weight * step * self.turned, self.weight)
        return float((self.start + step * self.direction) @ self.direction - new @ self.turned)


def _choose_step(line: _Line, slope: float) -> float:
    """Return one, or where that is beyond the least value a step before it, with a tenth of the slope at most."""
    if line.slope(1.0) <= -1e-3 * slope:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        here = line.slope(middle)
        if here > 0:
            high = middle
        else:
            low = middle
            if here >= 0.1 * slope:
                break
    return low
