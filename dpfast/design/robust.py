r"""Robust mechanisms, which are best for the worst input of a given mean square, whatever its spectrum.

They minimise V ‖e^{-iωD}F - K‖∞² + c² <|K|>² over K = HG, V the mean square: by Cauchy-Schwarz the noise behind the
best G and H with HG = K is c²<|K|>², and a sinusoid at the worst frequency makes the rest, the square of an H-infinity
norm. The smoother has a closed form; a finite lag is a cone program, and so is the rational response that realises the
smoother.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError, ToleranceWarning, warn
from dpfast._support.progress import report_step
from dpfast._support.validation import Array, Complex
from dpfast.design.argument_checks import check_inputs, check_name, check_one_event, check_tolerance
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.objectives import shape_objective
from dpfast.design.prefilter.order_selection import realize
from dpfast.design.prefilter.rational_basis import Basis, basis_for
from dpfast.design.prefilter.robust_lower_bound import MOST_VALUES, program_grid, robust_lower_bound
from dpfast.design.prefilter.water_filling import RobustFilling, robust_filling, zero_forcing_mse
from dpfast.design.programs.worst_error_program import (
    SOLVER,
    minimize_worst_error,
    noise_of_positive_product,
    noise_of_product,
    noise_of_receiver,
)
from dpfast.filters.filter import Filter, ratio
from dpfast.filters.peak_gain import fft_points, hinf_norm
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.mechanisms.steady_error import worst_errors
from dpfast.privacy.privacy import Privacy

_RICHNESS = 2.0  # of the basis at a finite lag: |E| is flat on a band, which takes more functions than least squares
_GROWTH = (1 / 3, 1 / 2, 2 / 3, 1.0, 4 / 3, 2.0, 3.0)  # richness of what is realised, until the tolerance is reached
_FOR_THE_PREFILTER, _FOR_THE_PRODUCT = 0.5, 0.45  # of the tolerance
_POSITIVE = 1e-2  # of the tolerance: <|K|> where the smoother's is zero, so that |R|² has a factor
_ALL_PASSED = 1e-9  # of the MSE: zero forcing is hardly worse
_ROUNDING = 8 * np.finfo(float).eps  # of the largest |F|, between F and HG where they should be the same
_FINER = 4


@public_design
def robust(
    target: Filter,
    privacy: Privacy,
    *,
    mean_square: float,
    lag: Lag = None,
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism:
    r"""Design the mechanism that is best for the worst input of a given power: no other statistics are needed.

    Whatever the input, as long as its mean square is at most `mean_square`, the stationary MSE is at most
    ``predicted_mse``; and no linear mechanism of this lag can promise less than ``lower_bound_mse``.

    Model
    -----
    Minimise V ‖e^{-iωD}F - HG‖∞² + c²‖G‖₂²‖H‖₂², V the mean square of u about zero. Smoother: HG = F (1 - τ/|F|)₊, τ
    from a scalar search, realised as F|R|² with a rational R. Finite lag: a cone program for K = HG in a rational
    basis, |G|² ∝ |K|, and the best H behind the realised G in a basis that grows. For V → ∞ it is zero forcing.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        For one event: the sensitivity to several is not a multiple of the norm of G.
    mean_square : float
        V, above 0: bound of the time average of u². (Subtract a public level from u first, if it has one.)
    lag : int or "smoother"
        Delay of the estimate in samples. None is the smoother too.
    tolerance : float
        Relative excess of the worst MSE over the ideal that the realisation may cost.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    Mechanism
        Its ``mean_square`` is V, and its figures are worst cases. ``ideal_mse``: the closed form of the smoother, or
        what the cone program reaches (its K, over all frequencies), or the realised filters where they are better.
        ``lower_bound_mse``: the closed form too, or the larger of that and a dual feasible point, which bounds every
        causal K of this lag, evaluated on a grid finer than the program's: within some 1e-4 of the ideal for ordinary
        targets, 1e-3 for moving averages, 1e-2 where V is so small that hardly anything can be told.

    Raises
    ------
    ValueError
        For lag < 0 or mean_square ≤ 0.
    DesignError
        Where the target is zero, for several events, where mean_square is so large beside the noise that rounding
        would distort more than the tolerance, or where the solver fails.

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G. The guarantee does not depend on `mean_square`;
    the error does.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> privacy = dp.Privacy(math.log(3), 0.05, calibration="paper")
    >>> mechanism = dp.robust(dp.Filter([1, 0.995], [1, -0.995]), privacy, mean_square=0.25, tolerance=0.1)
    >>> round(mechanism.ideal_rmse, 3), mechanism.predicted_mse < mechanism.ideal_mse * 1.1
    (5.177, True)
    """
    check_inputs(target, privacy)
    check_one_event(privacy)
    mean_square = validation.number("mean_square", mean_square, above=0)
    delay = check_lag(lag)
    name = check_name(name, "robust smoother" if delay is None else f"robust lag {delay}")
    design = _RobustProblem(Problem(target, None, noise_cost(privacy, None)), mean_square, check_tolerance(tolerance))
    filling = robust_filling(design.problem, mean_square)
    found = _try_silence(design, filling, delay) or _try_zero_forcing(design, filling, delay)
    if found is None:
        found = _design_smoother(design, filling) if delay is None else _design_causal(design, filling, delay)
    options = (("mean_square", mean_square), ("lag", delay), ("tolerance", tolerance))
    mechanism = Mechanism(
        name, target, privacy, None, found.prefilter, found.receiver, found.ideal, found.bound, mean_square, options
    )
    assert mechanism.predicted_mse is not None
    if mechanism.predicted_mse > found.ideal * (1 + tolerance):
        warn(
            f"the realised filters have a worst MSE {mechanism.predicted_mse / found.ideal - 1:.2g} (relative) above "
            f"the ideal, tolerance is {tolerance:g}: raise tolerance",
            ToleranceWarning,
        )
    # a receiver of more functions than the program had may be better than its K
    return replace(mechanism, ideal_mse=max(found.bound, min(found.ideal, mechanism.predicted_mse)))


def keep_receiver(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    """Return the receiver that there is, for a prefilter of norm 1: another one would have another worst input."""
    return mechanism.receiver.scaled(mechanism.prefilter.h2_norm())


class _RobustFilters(NamedTuple):
    prefilter: Filter
    receiver: LinearReceiver | Smoother
    ideal: float
    bound: float


class _RobustProblem(NamedTuple):
    """A target with its noise, the mean square of the input, and the tolerance."""

    problem: Problem
    mean_square: float
    tolerance: float

    @property
    def noise_weight(self) -> float:
        """The weight of the noise beside the square of the largest distortion, c²/V."""
        return self.problem.cost / self.mean_square

    def worst_mse(self, largest: float, noise: float) -> float:
        """Return the worst MSE, V ‖E‖∞² + c² · noise."""
        return self.mean_square * largest**2 + self.problem.cost * noise

    def prefilter(self, product: Callable[[Array], Array], poles: Complex, largest: float, worst: float) -> Filter:
        """Realise a G for |HG| = product; its noise may raise the worst MSE by a part of the tolerance."""
        problem = self.problem

        def excess(g: Filter) -> float:
            grid = problem.grid(np.concatenate([poles, g.poles, g.zeros]), g.order)
            power = np.abs(g.response(grid.omega)) ** 2
            noise = grid.mean(power) * grid.mean(product(grid.omega) ** 2 / power)
            return self.worst_mse(largest, noise) / worst - 1

        objective = shape_objective(problem, product, problem.finest_detail())
        return realize(objective, tolerance=_FOR_THE_PREFILTER * self.tolerance, excess=excess)


# --- finite lag -----------------------------------------------------------------------------------


def _design_causal(design: _RobustProblem, filling: RobustFilling, lag: int) -> _RobustFilters:
    problem, target = design.problem, design.problem.target
    report_step("both filters together")
    basis = basis_for(problem, lag, _RICHNESS)
    grid, accuracy = program_grid(problem, basis)
    wanted = target.response(grid.omega) * np.exp(-1j * lag * grid.omega)
    found = minimize_worst_error(
        design.noise_weight, grid, wanted, basis.response(grid.omega), noise_of_product, accuracy=accuracy
    )
    product = basis.filter(found)
    poles = np.concatenate([target.poles, product.poles])

    def error(omega: Array) -> Array:
        return np.asarray(np.abs(target.response(omega) * np.exp(-1j * lag * omega) - product.response(omega)))

    def gain(omega: Array) -> Array:
        return np.asarray(np.abs(product.response(omega)))

    largest = _largest_error(error, poles, target.order + product.order + lag)
    fine = problem.grid(poles, product.order)
    ideal, forcing = design.worst_mse(largest, fine.mean(gain(fine.omega)) ** 2), zero_forcing_mse(problem)
    if forcing < ideal:  # K = z^-D F is the best that is known with hardly any noise
        product, poles, largest, ideal = _delay_target(target, lag), target.poles, 0.0, forcing
    prefilter = design.prefilter(gain, poles, largest, ideal)
    receiver = LinearReceiver(_post_filter(design, prefilter, product, lag, ideal), target, 0.0, lag)
    report_step("bound")
    bound = robust_lower_bound(problem, design.mean_square, lag, basis, SOLVER)
    return _RobustFilters(prefilter, receiver, ideal, min(max(bound, filling.mse), forcing))


def _post_filter(design: _RobustProblem, prefilter: Filter, product: Filter, lag: int, ideal: float) -> Filter:
    """Return the best H behind a given G, of as many functions as the tolerance takes; K/G where none reach it."""
    problem, target = design.problem, design.problem.target
    noise_std = math.sqrt(problem.cost) * prefilter.h2_norm()
    for richness in _GROWTH:
        report_step("receiver")
        basis = basis_for(problem, lag, richness).with_poles(prefilter.zeros)
        grid = problem.grid(np.concatenate([basis.poles, prefilter.poles]), basis.taps // 2)
        if basis.size * len(grid.omega) > MOST_VALUES:
            break  # poles at hundreds of zeros of G near the circle: K/G has its error, in no time
        wanted = target.response(grid.omega) * np.exp(-1j * lag * grid.omega)
        functions = basis.response(grid.omega) * prefilter.response(grid.omega)[:, None]
        try:
            h = basis.filter(minimize_worst_error(design.noise_weight, grid, wanted, functions, noise_of_receiver))
        except DesignError:  # the solver failed for so many functions: others do, or K/G
            continue
        receiver = LinearReceiver(h, target, 0.0, lag)
        mse = sum(worst_errors(target, design.mean_square, prefilter, noise_std, receiver))
        if mse <= ideal * (1 + design.tolerance):
            return h
    return ratio((product.numerator, prefilter.denominator), (product.denominator, prefilter.numerator))


def _try_silence(design: _RobustProblem, filling: RobustFilling, lag: int | None) -> _RobustFilters | None:
    """Give no estimate, where the power of the input is so small that hardly anything is better."""
    target, nothing = design.problem.target, Filter([0.0])
    mse = design.mean_square * target.hinf_norm() ** 2
    if mse > filling.mse * (1 + design.tolerance / 2):
        return None
    if lag is None:
        return _RobustFilters(Filter([1.0]), Smoother(nothing, Filter([1.0]), target, 0.0), filling.mse, filling.mse)
    return _RobustFilters(Filter([1.0]), LinearReceiver(nothing, target, 0.0, lag), mse, filling.mse)


def _try_zero_forcing(design: _RobustProblem, filling: RobustFilling, lag: int | None) -> _RobustFilters | None:
    """Take zero forcing, where the power of the input is so large that no distortion is worth having."""
    problem, target, forcing = design.problem, design.problem.target, zero_forcing_mse(design.problem)
    largest = design.tolerance * forcing / (_ROUNDING * target.hinf_norm()) ** 2
    if design.mean_square > largest:
        raise DesignError(
            f"mean_square must be at most {10.0 ** math.floor(math.log10(largest)):g} for this target, noise and "
            f"tolerance, got {design.mean_square:g}: far above it the rounding of numbers distorts more than that; "
            "use zero_forcing, whose error does not depend on the input"
        )
    if forcing > filling.mse * (1 + _ALL_PASSED):
        return None
    prefilter = design.prefilter(problem.gain, target.poles, 0.0, forcing)
    tops = _delay_target(target, lag or 0).numerator, prefilter.denominator
    after = ratio(tops, (target.denominator, prefilter.numerator))
    if lag is None:
        return _RobustFilters(prefilter, Smoother(after, Filter([1.0]), target, 0.0), filling.mse, filling.mse)
    return _RobustFilters(prefilter, LinearReceiver(after, target, 0.0, lag), forcing, min(filling.mse, forcing))


def _delay_target(target: Filter, lag: int) -> Filter:
    """Return z^-D F, the target delayed by a lag."""
    return ratio((target.numerator, Filter([0.0] * lag + [1.0])), (target.denominator,))


# --- smoother -------------------------------------------------------------------------------------


def _design_smoother(design: _RobustProblem, filling: RobustFilling) -> _RobustFilters:
    """Return the smoother H = F|R|²/G, which runs forward through F R/G and backward through R."""
    problem, target = design.problem, design.problem.target
    root, largest, worst = _smoother_root(design, filling)

    def product(omega: Array) -> Array:
        return np.asarray(problem.gain(omega) * np.abs(root.response(omega)) ** 2)

    prefilter = design.prefilter(product, np.concatenate([target.poles, root.poles]), largest, worst)
    forward = ratio(
        (target.numerator, root.numerator, prefilter.denominator),
        (target.denominator, root.denominator, prefilter.numerator),
    )
    return _RobustFilters(prefilter, Smoother(forward, root, target, 0.0), filling.mse, filling.mse)


def _smoother_root(design: _RobustProblem, filling: RobustFilling) -> tuple[Filter, float, float]:
    """Return R with |R|² near (1 - τ/|F|)₊, the H-infinity norm of F(1 - |R|²), and the worst MSE.

    R has as many functions as the tolerance takes.
    """
    problem, least, failure = design.problem, np.inf, None
    for richness in _GROWTH:
        basis = basis_for(problem, 0, richness, filling.cutoffs)
        try:
            root = basis.root_filter(_passed_share(design, filling, basis))
        except DesignError as refused:  # the solver failed for so many functions: others may do
            failure = refused
            continue

        def error(omega: Array, root: Filter = root) -> Array:
            return np.asarray(problem.gain(omega) * np.abs(1 - np.abs(root.response(omega)) ** 2))

        largest = _largest_error(error, np.concatenate([problem.target.poles, root.poles]), root.order + problem.degree)
        grid = problem.grid(root.poles, basis.taps, filling.cutoffs)
        passed = grid.mean(problem.gain(grid.omega) * np.abs(root.response(grid.omega)) ** 2)
        worst = design.worst_mse(largest, passed**2)
        if worst < least:
            least, best = worst, (root, largest, worst)
        if least <= filling.mse * (1 + design.tolerance * _FOR_THE_PRODUCT):
            break
    if failure is not None and least == np.inf:
        raise failure
    return best


def _passed_share(design: _RobustProblem, filling: RobustFilling, basis: Basis) -> Array:
    """Return coefficients of the function whose real part is |R|² = K/F, above zero at all angles."""
    problem = design.problem
    grid, fine, finest = (problem.grid(basis.poles, n * basis.taps, filling.cutoffs) for n in (1, _FINER, _FINER**2))
    share, gain = basis.response(grid.omega).real, problem.gain(grid.omega)
    mean, everywhere = grid.mean(gain), basis.response(fine.omega).real
    least = _POSITIVE * design.tolerance * filling.passed / mean
    functions = share * (gain / mean)[:, None]

    def above_zero(x: Any) -> Any:
        return everywhere @ x >= least

    weight, noise = design.noise_weight, noise_of_positive_product
    found = minimize_worst_error(weight, grid, gain, functions, noise, above_zero) / mean
    found[0] += max(0.0, least / 2 - float((basis.response(finest.omega).real @ found).min()))
    return found


def _largest_error(error: Callable[[Array], Array], poles: Complex, order: int) -> float:
    """Return the H-infinity norm of an error, its largest value over all frequencies."""
    return hinf_norm(error, poles, error(np.linspace(0, np.pi, fft_points(order) // 2 + 1)))
