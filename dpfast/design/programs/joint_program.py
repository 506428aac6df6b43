"""Design prefilter and receiver of a lag by a cone program, which takes constraints on both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.validation import Array, Complex
from dpfast.design.argument_checks import check_name
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import shape_objective
from dpfast.design.prefilter.rational_basis import Basis, basis_for
from dpfast.design.prefilter.water_filling import WaterFilling, smoother_water_filling
from dpfast.design.programs.prefilter_program import floored_shape, one_event_problem, realize_shape
from dpfast.design.programs.solver import solve_program
from dpfast.filters.filter import Filter, ratio
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.mechanisms.lags import check_causal
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

_LEAST_GUESS = 1e-2  # of the mean of x, or of h: the least guess
_FINER = 2  # for the ripples that a constraint makes, with peaks between nodes
_CLOSE = 2e-3  # to a break: an edge of the panel beside it, so that its first node is 1e-5 away


@dataclass(frozen=True, eq=False)
class JointVariables:
    """Write constraints of :func:`optimal_program` with these cvxpy expressions at the angles `omega`, for ‖G‖₂ = 1.

    Attributes
    ----------
    omega : array, (n,)
        Angles in [0, π].
    x : expression, (n,)
        The squared gain of the prefilter, |G|². Convex and concave.
    h : expression, (n,)
        The squared gain of the receiver, |H|². Convex and concave.
    real, imag : expression, (n,)
        The parts of K = HG, the response from the signal to its part of the estimate. They are convex and concave.
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
    """Take the solution of :func:`optimal_program`.

    Attributes
    ----------
    grid : QuadratureGrid
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

    grid: QuadratureGrid
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
        """The sum of distortion and noise."""
        return self.distortion_mse + self.noise_mse

    def prefilter(self, *, tolerance: float = 1e-3) -> Filter:
        """Realise the prefilter: a filter of few states with |G|² near x, of unit H2 norm.

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

        shaped = shape_objective(problem, floored_shape(self.grid, self.x), problem.finest_detail())
        return realize_shape(shaped, excess, tolerance)

    def mechanism(self, *, tolerance: float = 1e-3, name: str | None = None) -> Mechanism:
        """Return the mechanism with a realised prefilter G and the receiver H = K/G.

        Constraints on K = HG hold for it as in the program, to about 1e-8 of the largest gain. Those on G, on H alone
        and on the noise hold to what `tolerance` leaves, see :meth:`prefilter`.

        Parameters
        ----------
        tolerance : float
            Accept this relative increase of the MSE in exchange for a G of lower order.
        name : str, optional
            How tables and pictures call it.

        Notes
        -----
        *Privacy.* The noise is that of the sensitivity of the realised G.
        """
        target, model = self._problem.target, self._problem.model
        assert model is not None
        prefilter = self.prefilter(tolerance=tolerance)
        post = ratio((self.product.numerator, prefilter.denominator), (self.product.denominator, prefilter.numerator))
        receiver = LinearReceiver(post, target, model.mean, self.lag)
        name = check_name(name, f"optimal program lag {self.lag}")
        options = (("lag", self.lag), ("constraints", "given"), ("tolerance", tolerance))
        return Mechanism(name, target, self._privacy, model, prefilter, receiver, self.mse, options=options)


@public_design
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
    r"""Design the jointly optimal prefilter and receiver of a lag under further convex constraints.

    Model
    -----
    Minimise <P_u |e^{-iωD}F - K|²> + c²<h> over causal K = HG, x = |G|² and h = |H|² with |K|² ≤ x h and <x> = 1. As
    ‖G‖₂‖H‖₂ ≥ <|K|>, with equality for the square roots of the outer factor of K, the optimum without further
    constraints is that of all linear mechanisms of this lag. K is in a rational orthonormal basis (Takenaka and
    Malmquist), chosen for the target, the spectrum and the lag so that this costs about 1e-6 of the MSE, or an FIR.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
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
        gain from above instead. They hold at the angles ``omega``; between these a gain may be larger by about 0.2 %.
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
    *Privacy.* See :meth:`JointProgram.mechanism`.

    Examples
    --------
    The power gain of the prefilter at most twice its mean, and what it costs:

    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> target, privacy = dp.Filter([1], [1, -0.9]), dp.Privacy(epsilon=1, delta=1e-3)
    >>> free = dp.optimal_program(target, privacy, chain, lag=2)
    >>> capped = dp.optimal_program(target, privacy, chain, lag=2, constraints=lambda v: [v.x <= 2])
    >>> bool(capped.x.max() < 2.0001), capped.mse > free.mse
    (True, True)
    """
    problem = one_event_problem(target, privacy, model)
    angles = validation.array("breaks", breaks, ndim=1)
    if ((angles < 0) | (angles > np.pi)).any():
        raise validation.fail("breaks", "angles in [0, π]", breaks)
    lag = check_causal(lag, "optimal(lag='smoother') is the smoother, which needs no cone program")
    basis = basis_for(problem, lag) if taps is None else Basis(validation.integer("taps", taps, 1), np.empty((0, 2)))
    degree = basis.taps // 2 if constraints is None else _FINER * basis.size
    grid = problem.grid(basis.poles, degree, tuple(np.add.outer([-_CLOSE, 0, _CLOSE], angles).ravel()))
    cone = _Cone(problem, grid, basis.response(grid.omega), lag, constraints, solver, smoother_water_filling(problem))
    solution = cone.solve(*cone.initial_guess(), roughly=True)
    if not solution.exact:
        solution = cone.solve(solution.x, solution.h, roughly=False)
    error = cone.wanted_response() - cone.functions @ solution.coefficients
    return JointProgram(
        grid,
        basis.filter(solution.coefficients),
        solution.x,
        solution.h,
        lag,
        grid.mean(problem.psd(grid.omega) * np.abs(error) ** 2),
        grid.mean(solution.h) * problem.cost,
        problem,
        privacy,
    )


class _Solution(NamedTuple):
    coefficients: Array
    x: Array
    h: Array
    exact: bool


class _Cone(NamedTuple):
    """The program on a grid, K = functions · coefficients."""

    problem: Problem
    grid: QuadratureGrid
    functions: Complex
    lag: int
    constraints: JointConstraints | None
    solver: str
    water: WaterFilling

    def wanted_response(self) -> Complex:
        """Return e^{-iωD}F, the response that K should have."""
        omega = self.grid.omega
        return np.asarray(self.problem.target.response(omega) * np.exp(-1j * self.lag * omega))

    def initial_guess(self) -> tuple[Array, Array]:
        """Guess x and h from those of the smoother or of zero forcing, at each angle the larger."""
        problem, grid = self.problem, self.grid
        psd, flat = problem.psd(grid.omega), problem.gain(grid.omega)
        x = np.maximum(self.water.x(grid.omega), flat / grid.mean(flat))
        x = np.maximum(x, _LEAST_GUESS)
        multiple = grid.mean(psd * flat * x) / (grid.mean(psd * x**2) + problem.cost)  # the best |K| = multiple · x
        return x, multiple**2 * x

    def solve(self, near_x: Array, near_h: Array, *, roughly: bool) -> _Solution:
        """Solve for ratios to x and h nearby, as solvers work best with numbers of like size."""
        import cvxpy as cp

        omega, weights = self.grid.omega, self.grid.weights
        near_x, near_h = (np.maximum(near, _LEAST_GUESS * self.grid.mean(near)) for near in (near_x, near_h))
        size = np.sqrt(near_x * near_h)
        scale = self.grid.mean(size)
        coefficients = cp.Variable(self.functions.shape[1])
        x, h = cp.Variable(len(omega), nonneg=True), cp.Variable(len(omega), nonneg=True)
        scaled = self.functions * (scale / size)[:, None]
        real, imag = scaled.real @ coefficients, scaled.imag @ coefficients

        unit = self.water.mse
        noise = self.problem.cost / unit * (weights * near_h) @ h
        distortion = self._distortion(cp, coefficients, scale, unit)
        variables = JointVariables(
            omega,
            x=cp.multiply(near_x, x),
            h=cp.multiply(near_h, h),
            real=cp.multiply(size, real),
            imag=cp.multiply(size, imag),
            gain=cp.multiply(size, cp.norm(cp.vstack([real, imag]), 2, axis=0)),
            noise_mse=unit * noise,
            distortion_mse=unit * distortion,
        )
        product = cp.SOC(x + h, cp.vstack([2 * real, 2 * imag, x - h]), axis=0)
        every = [product, (weights * near_x) @ x == 1, *(self.constraints(variables) if self.constraints else [])]
        program = cp.Problem(cp.Minimize(distortion + noise), every)
        solve_program(program, self.solver, roughly=roughly)
        return _Solution(
            np.asarray(coefficients.value) * scale,
            np.maximum(np.asarray(variables.x.value), 0),
            np.maximum(np.asarray(variables.h.value), 0),
            program.status == cp.OPTIMAL,
        )

    def _distortion(self, cp: Any, coefficients: Any, scale: float, unit: float) -> Any:
        """Return <P_u |wanted - K|²> as a sum of at most one square more than there are coefficients."""
        root = np.sqrt(self.grid.weights * self.problem.psd(self.grid.omega) / unit)
        rows = np.column_stack([self.functions * scale, self.wanted_response()]) * root[:, None]
        triangle = np.asarray(np.linalg.qr(np.vstack([rows.real, rows.imag]), mode="r"))
        return cp.sum_squares(triangle[:, :-1] @ coefficients - triangle[:, -1])
