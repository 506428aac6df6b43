"""Linear mechanisms: zero forcing, LMMSE, and the two extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import optimize

from dpfast import _validate
from dpfast.design.inputs import check_filter, check_inputs, check_tolerance
from dpfast.design.prefilter import (
    Problem,
    WaterFilling,
    noise_cost,
    shape_objective,
    smoother_objective,
    smoother_water_filling,
    zero_forcing_mse,
    zero_forcing_objective,
)
from dpfast.design.wiener import wiener, wiener_mse
from dpfast.errors import ToleranceWarning, warn
from dpfast.filters import Filter
from dpfast.mechanism import Mechanism
from dpfast.models import Model, check_model
from dpfast.privacy import Privacy
from dpfast.realize import Objective, realize
from dpfast.receivers import LinearReceiver
from dpfast.spectra import MAX_FFT, fft_length

_ROUNDS = 10
_CONVERGED = 1e-6  # relative change of an MSE when the FFT grid is doubled
_SEARCH_DECAY = 8.0  # of the slowest mode over the FFT that is searched on: the best θ is flat


def zero_forcing(target: Filter, privacy: Privacy, *, tolerance: float = 1e-3, name: str = "LZF") -> Mechanism:
    r"""Linear zero-forcing mechanism: no distortion, the least noise. It needs no model of the signal.

    Model
    -----
    H = F/G, MSE = c²‖G‖₂²‖F/G‖₂² ≥ c²<|F|>², reached by |G|² ∝ |F| (Le Ny 2013, Theorem 5). F may have zeros on and
    outside of the circle: 1/G stays stable.

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    tolerance : float
        Relative excess of the MSE that the realisation of G may cost; the order is found from it.
    name : str

    Returns
    -------
    Mechanism
        ``ideal_mse`` is c²<|F|>².

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G.

    Examples
    --------
    >>> privacy = Privacy(np.log(3), 0.05, calibration="paper")
    >>> mechanism = zero_forcing(Filter([1, 0.995], [1, -0.995]), privacy)
    >>> round(mechanism.ideal_rmse, 4), mechanism.prefilter.order
    (7.4715, 4)
    """
    check_inputs(target, privacy)
    tolerance = check_tolerance(tolerance)
    unit = Problem(target, None, 1.0)
    prefilter = realize(zero_forcing_objective(unit), tolerance=tolerance)
    problem = Problem(target, None, noise_cost(privacy, prefilter))
    receiver = LinearReceiver(target * prefilter.inverse(), target, 0.0, 0)
    options = (("tolerance", tolerance),)
    return Mechanism(name, target, privacy, None, prefilter, receiver, zero_forcing_mse(problem), options=options)


def input_perturbation(target: Filter, privacy: Privacy, *, name: str = "input perturbation") -> Mechanism:
    """Noise on the input: G = 1, H = F, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    name : str

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> round(input_perturbation(Filter([1, 1]), Privacy.from_gdp(1, 1e-6)).predicted_mse, 6)
    2.0
    """
    check_inputs(target, privacy)
    return _extreme(name, target, privacy, Filter([1.0]), target)


def output_perturbation(target: Filter, privacy: Privacy, *, name: str = "output perturbation") -> Mechanism:
    """Noise on the output: G = F, H = 1, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    name : str

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.

    Examples
    --------
    >>> round(output_perturbation(Filter([1, 1]), Privacy.from_gdp(1, 1e-6)).noise_std ** 2, 6)
    2.0
    """
    check_inputs(target, privacy)
    return _extreme(name, target, privacy, target, Filter([1.0]))


def _extreme(name: str, target: Filter, privacy: Privacy, prefilter: Filter, post: Filter) -> Mechanism:
    receiver = LinearReceiver(post, target, 0.0, 0)
    ideal = (privacy.noise_std(prefilter) * post.h2_norm()) ** 2
    return Mechanism(name, target, privacy, None, prefilter, receiver, ideal)


def lmmse(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: int | None = None,
    prefilter: Filter | None = None,
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism:
    r"""Linear minimum mean square error mechanism: a Wiener receiver.

    Model
    -----
    Smoother: H = P_u F G* / (P_u|G|² + σ²) (Le Ny 2013, equation (4), with the d² that its display drops) behind the G
    that is optimal for it. Finite lag D: H = [z^{-D} P_u F G* / Q*]₊ / Q with P_v = |Q|², behind the G of the smoother
    with its zero band filled: |G|² ∝ x + θ, θ ≥ 0 the one with the least MSE at this lag. (Where x is zero G would be
    a brick wall, which no causal receiver can use.)

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    model : Model
        Mean and spectrum of u; the guarantee does not depend on their being right, the error does.
    lag : int or None
        Delay of the estimate in samples; None for the smoother.
    prefilter : Filter, optional
        A G to use instead; ``ideal_mse`` is then that of the ideal Wiener receiver behind it.
    tolerance : float
        Relative excess of the MSE that the realisation of G may cost.
    name : str, optional

    Raises
    ------
    ValueError
        For lag < 0.
    DesignError
        Where the target or the prefilter is zero.

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G. The model must not be fitted to the data that
    are to be released.

    Examples
    --------
    >>> from dpfast.models import MarkovChain
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> privacy = Privacy(np.log(3), 0.05, calibration="paper")
    >>> round(lmmse(Filter([1, 0.995], [1, -0.995]), privacy, chain).ideal_rmse, 4)
    4.6704
    """
    check_inputs(target, privacy)
    check_model(model)
    lag = None if lag is None else _validate.lag(lag)
    name = name or ("LMMSE smoother" if lag is None else f"LMMSE lag {lag}")
    tolerance = check_tolerance(tolerance)
    if prefilter is not None:
        check_filter("prefilter", prefilter)
        mechanism = _with_wiener(name, target, privacy, model, prefilter, lag)
        return replace(mechanism, ideal_mse=mechanism.predicted_mse, options=(("lag", lag), ("prefilter", "given")))
    best, ideal = _two_step(target, privacy, model, lag, tolerance)
    options = (("lag", lag), ("tolerance", tolerance))
    return replace(_with_wiener(name, target, privacy, model, best, lag), ideal_mse=ideal, options=options)


# --- the smoother's prefilter, and its zero band filled for a finite lag --------------------------


class _Wanted(NamedTuple):
    """Ideal MSE, what is realised, and the excess that decides."""

    ideal: float
    objective: Objective
    excess: Callable[[Filter], float]


def _two_step(
    target: Filter, privacy: Privacy, model: Model, lag: int | None, tolerance: float
) -> tuple[Filter, float]:
    """Realised G, and the ideal MSE at the noise that this G needs.

    The sensitivity to several events depends on G: it is designed for the noise of the one before, until it is within
    the tolerance of the ideal at its own noise.
    """
    wanted = _wanted(Problem(target, model, noise_cost(privacy, None)), lag)
    excess = math.inf
    for _ in range(_ROUNDS):
        best = realize(wanted.objective, tolerance=tolerance, excess=wanted.excess)
        if privacy.max_events == 1:
            return best, wanted.ideal
        wanted = _wanted(Problem(target, model, noise_cost(privacy, best)), lag)
        excess = wanted.excess(best)
        if excess <= tolerance:
            return best, wanted.ideal
    warn(
        f"the prefilter for {privacy.max_events} events a person has an MSE {excess:.2g} (relative) above the ideal at "
        f"its own noise, tolerance is {tolerance:g}: raise tolerance",
        ToleranceWarning,
    )
    return best, wanted.ideal


def _wanted(problem: Problem, lag: int | None) -> _Wanted:
    water = smoother_water_filling(problem)
    if lag is None:
        objective = smoother_objective(problem, water)
        return _Wanted(water.mse, objective, objective.excess)
    fill, ideal, n = best_filling(problem, water, lag)

    def excess(g: Filter) -> float:
        grid = problem.grid(g.poles, g.order, water.cutoffs)
        length = max(n, fft_length(float(np.abs(g.poles).max(initial=0.0))))
        return wiener_mse(problem, lambda omega: np.abs(g.response(omega)) ** 2, lag, length, grid) / ideal - 1

    detail = problem.detail(water.cutoffs)
    objective = shape_objective(problem, lambda omega: water.x(omega) + fill, detail, water.cutoffs)
    return _Wanted(ideal, objective, excess)


def best_filling(problem: Problem, water: WaterFilling, lag: int) -> tuple[float, float, int]:
    """The θ with the least MSE of the ideal Wiener receiver behind |G|² = x + θ, that MSE, and the FFT it took."""
    grid = problem.grid(breaks=water.cutoffs)

    def mse(log_fill: float, n: int) -> float:
        fill = math.exp(log_fill)
        return wiener_mse(problem, lambda omega: water.x(omega) + fill, lag, n, grid)

    n, bounds = max(2**14, fft_length(problem.slowest, decay=_SEARCH_DECAY)), (-25.0, 8.0)
    best, value, *_ = optimize.fminbound(mse, *bounds, args=(n,), xtol=1e-3, full_output=True)
    while n < MAX_FFT // 2:
        n, before = 2 * n, value
        value = mse(best, n)
        if abs(value / before - 1) < _CONVERGED:
            break
    return math.exp(best), value, n


def _with_wiener(
    name: str, target: Filter, privacy: Privacy, model: Model, prefilter: Filter, lag: int | None
) -> Mechanism:
    """The mechanism of a given prefilter and the Wiener receiver behind it."""
    receiver = wiener(target, model, prefilter, privacy.noise_std(prefilter), lag)
    return Mechanism(name, target, privacy, model, prefilter, receiver)
