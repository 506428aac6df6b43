r"""The best pair of prefilter and receiver of a lag as a second-order cone program: the place for constraints on both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast import _validate
from dpfast._validate import Array
from dpfast.design.prefilter import Problem, shape_objective, smoother_water_filling
from dpfast.design.programs import floored, one_event, realize_both, solve
from dpfast.design.rational import Basis, basis_for
from dpfast.filters import Filter, ratio
from dpfast.mechanism import LinearReceiver, Mechanism
from dpfast.models import Model
from dpfast.privacy import Privacy
from dpfast.quadrature import Grid

_LEAST_GUESS = 1e-2  # of the mean of x


@dataclass(frozen=True, eq=False)
class JointVariables:
    """The variables of :func:`optimal_program`, as cvxpy expressions at the angles `omega`, for ‖G‖₂ = 1.

    Attributes
    ----------
    omega : array, (n,)
        Angles in [0, π].
    x : expression, (n,)
        The squared gain of the prefilter, |G|². Convex and concave.
    h : expression, (n,)
        The squared gain of the receiver, |H|². Convex and concave.
    real, imag : expression, (n,)
        Of K = HG, the response from the signal to its part of the estimate. Convex and concave.
    gain : expression, (n,)
        |K|. Convex: it may be bounded from above.
    noise_mse : expression
        c²<h>, the noise in the estimate. Convex and concave.
    distortion_mse : expression
        <P_u |e^{-iωD}F - K|²>, the error without the noise. Convex.
    """

    omega: Array
    x: Any
    h: Any
    real: Any
    imag: Any
    gain: Any
    noise_mse: Any
    distortion_mse: Any


JointConstraints = Callable[[JointVariables], list[Any]]


@dataclass(frozen=True, eq=False)
class JointProgram:
    """The solution of :func:`optimal_program`.

    Attributes
    ----------
    grid : Grid
        Angles ``grid.omega`` in [0, π]; ``grid.mean(values)`` is the mean over the circle.
    product : Filter
        The optimal K = HG.
    x : array
        The optimal |G|²/‖G‖₂² at these angles.
    h : array
        The optimal |H|²·‖G‖₂².
    lag : int
    distortion_mse : float
        <P_u |e^{-iωD}F - K|²>.
    noise_mse : float
        c²<h>.
    mse : float
        Their sum, the value of the criterion.
    """

    grid: Grid
    product: Filter
    x: Array
    h: Array
    lag: int
    distortion_mse: float
    noise_mse: float
    _problem: Problem
    _privacy: Privacy

    @property
    def mse(self) -> float:
        """Distortion and noise."""
        return self.distortion_mse + self.noise_mse

    def prefilter(self, *, tolerance: float = 1e-3) -> Filter:
        """A filter of few states with |G|² near x, of unit H2 norm.

        Both the MSE, with the receiver K/G behind it, is within a relative `tolerance` of `mse`, and a zero-forcing
        loss <|G|²><x²/|G|²> within one of <x>²: |G|² follows x, and constraints on it hold, to about the root of the
        tolerance.
        """
        problem, cost = self._problem, self._problem.cost

        def excess(g: Filter) -> float:
            grid = problem.grid(np.concatenate([self.product.poles, g.poles, g.zeros]), self.product.order)
            power, passed = (np.abs(x.response(grid.omega)) ** 2 for x in (g, self.product))
            noise = cost * grid.mean(power) * grid.mean(passed / power)
            return (self.distortion_mse + noise) / self.mse - 1

        return realize_both(shape_objective(problem, floored(self.grid, self.x), problem.detail()), excess, tolerance)

    def mechanism(self, *, tolerance: float = 1e-3, name: str | None = None) -> Mechanism:
        """The mechanism with a realised prefilter G and the receiver H = K/G.

        Constraints on K = HG hold for it as in the program, to about 1e-9 of the largest gain (between the nodes of
        the grid: as far as the grid resolves K); constraints on G, on H alone and on the noise hold to what
        `tolerance` leaves, see :meth:`prefilter`.

        Parameters
        ----------
        tolerance : float
            Relative excess of the MSE that the realisation of G may cost.
        name : str, optional

        Notes
        -----
        *Privacy.* The noise is that of the sensitivity of the realised G.
        """
        target, model = self._problem.target, self._problem.model
        assert model is not None
        prefilter = self.prefilter(tolerance=tolerance)
        post = ratio(
            (self.product.numerator, prefilter.denominator), (self.product.denominator, prefilter.numerator)
        )
        receiver = LinearReceiver(post, target, model.mean, self.lag)
        name = name or f"optimal program lag {self.lag}"
        return Mechanism(name, target, self._privacy, model, prefilter, receiver, self.mse)


def optimal_program(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: int = 0,
    taps: int | None = None,
    constraints: JointConstraints | None = None,
    breaks: ArrayLike = (),
    solver: str = "CLARABEL",
) -> JointProgram:
    r"""The jointly optimal prefilter and receiver of a lag, with further convex constraints.

    Model
    -----
    Minimise <P_u |e^{-iωD}F - K|²> + c²<h> over causal K = HG, x = |G|² and h = |H|² with |K|² ≤ x h and <x> = 1. As
    ‖G‖₂‖H‖₂ ≥ <|K|>, with equality for the square roots of the outer factor of K, the optimum without further
    constraints is that of all linear mechanisms of this lag. K is in a rational orthonormal basis (Takenaka and
    Malmquist), chosen for the target, the spectrum and the lag so that this costs about 1e-6 of the MSE, or an FIR.

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
        For one event: the sensitivity to several is not a multiple of the norm of G.
    model : Model
        Mean and spectrum of u.
    lag : int
        Delay of the estimate in samples. Time and memory grow with it: some seconds at a hundred.
    taps : int, optional
        K is an FIR of so many taps.
    constraints : callable, optional
        :class:`JointVariables` → list of cvxpy constraints. A causal K that is not zero is zero on no band: bound its
        gain from above instead. They hold at the angles ``omega``, and between them as far as these resolve K.
    breaks : array_like
        Angles in [0, π] at which a constraint begins or ends: the grid is fine on both sides of them.
    solver : str
        A cvxpy solver for second-order cones.

    Returns
    -------
    JointProgram

    Raises
    ------
    ValueError
        For lag < 0 or taps < 1.
    DesignError
        As for :func:`lmmse_program`.

    Notes
    -----
    *Privacy.* Of the mechanism: :meth:`JointProgram.mechanism`.

    Examples
    --------
    The power gain of the prefilter at most twice its mean, and what it costs:

    >>> from dpfast import MarkovChain
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> target, privacy = Filter([1], [1, -0.9]), Privacy(epsilon=1, delta=1e-3)
    >>> free = optimal_program(target, privacy, chain, lag=2)
    >>> capped = optimal_program(target, privacy, chain, lag=2, constraints=lambda v: [v.x <= 2])
    >>> bool(capped.x.max() < 2.0001), capped.mse > free.mse
    (True, True)
    """
    problem = one_event(target, privacy, model)
    angles = _validate.array("breaks", breaks, ndim=1)
    if ((angles < 0) | (angles > np.pi)).any():
        raise _validate.fail("breaks", "angles in [0, π]", breaks)
    lag = _validate.lag(lag)
    basis = basis_for(problem, lag) if taps is None else Basis(_validate.integer("taps", taps, 1), np.empty((0, 2)))
    import cvxpy as cp

    grid = problem.grid(basis.poles, basis.taps // 2, tuple(angles))
    omega, water = grid.omega, smoother_water_filling(problem)
    flat, wanted = problem.gain(omega), target.response(omega) * np.exp(-1j * lag * omega)
    psd, functions = problem.psd(omega), basis.response(omega)

    # variables are ratios to guesses: solvers want numbers of like size
    guess = np.maximum(np.maximum(water.x(omega), flat / grid.mean(flat)), _LEAST_GUESS)
    norm = grid.mean(psd * flat * guess) / (grid.mean(psd * guess**2) + problem.cost)  # of K = norm · guess
    coefficients = cp.Variable(basis.size)
    x, h = cp.Variable(len(omega), nonneg=True), cp.Variable(len(omega), nonneg=True)
    scaled = functions / guess[:, None]
    real, imag = scaled.real @ coefficients, scaled.imag @ coefficients
    product = cp.SOC(x + h, cp.vstack([2 * real, 2 * imag, x - h]), axis=0)

    root = np.sqrt(grid.weights * psd / water.mse)
    noise = problem.cost * norm**2 / water.mse * (grid.weights * guess) @ h
    distortion = _squares(cp, root[:, None] * functions * norm, root * wanted, coefficients)
    variables = JointVariables(
        omega,
        x=cp.multiply(guess, x),
        h=cp.multiply(norm**2 * guess, h),
        real=cp.multiply(norm * guess, real),
        imag=cp.multiply(norm * guess, imag),
        gain=cp.multiply(norm * guess, cp.norm(cp.vstack([real, imag]), 2, axis=0)),
        noise_mse=water.mse * noise,
        distortion_mse=water.mse * distortion,
    )
    more = constraints(variables) if constraints else []
    solve(cp.Problem(cp.Minimize(distortion + noise), [product, (grid.weights * guess) @ x == 1, *more]), solver)
    found = np.asarray(coefficients.value) * norm
    values = functions @ found
    return JointProgram(
        grid,
        basis.filter(found),
        np.maximum(np.asarray(variables.x.value), 0),
        np.maximum(np.asarray(variables.h.value), 0),
        lag,
        grid.mean(psd * np.abs(wanted - values) ** 2),
        grid.mean(np.maximum(variables.h.value, 0)) * problem.cost,
        problem,
        privacy,
    )


def _squares(cp: Any, matrix: Any, wanted: Any, variable: Any) -> Any:
    """‖matrix · variable - wanted‖² as a sum of no more squares than there are variables, and one."""
    rows = np.column_stack([matrix, wanted])
    triangle = np.linalg.qr(np.vstack([rows.real, rows.imag]), mode="r")
    return cp.sum_squares(triangle[:, :-1] @ variable - triangle[:, -1])
