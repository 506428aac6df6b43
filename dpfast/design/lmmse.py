"""LMMSE mechanisms: a prefilter, and the linear receiver with the least mean square error behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

from dpfast._support.design_calls import public_design
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_filter, check_inputs, check_name, check_tolerance
from dpfast.design.mimo.channels_lmmse import ColumnIdeals, estimate_channels
from dpfast.design.mimo.correlated_lmmse import estimate_behind, estimate_correlated
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.family_realization import realize_family
from dpfast.design.prefilter.ideal_mechanism import Ideal
from dpfast.design.prefilter.noise_shares import NOTHING, share_noise, with_share
from dpfast.design.prefilter.objectives import (
    Objective,
    resolve_on_circle,
    shape_objective,
    smoother_objective,
    wiener_loss,
    wiener_objective,
)
from dpfast.design.prefilter.water_filling import WaterFilling, smoother_water_filling
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.fft_grid import MAX_FFT
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.warped_circle import WarpedCircle, make_circle
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import without_others
from dpfast.signals.model import Model, check_model
from dpfast.signals.vector_arma import VectorARMA

_CONVERGED = 1e-6  # relative change of an MSE when the steps of the circle are doubled
_SEARCH_SIZE = 2**14  # the fewest steps of the circle: x has kinks


@overload
def lmmse(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = ...,
    prefilter: Filter | None = ...,
    tolerance: float = ...,
    name: str | None = ...,
) -> Mechanism: ...


@overload
def lmmse(
    target: FilterMatrix,
    privacy: Privacy,
    model: Sequence[Model] | VectorARMA,
    *,
    lag: Lag = ...,
    prefilter: FilterMatrix | None = ...,
    tolerance: float = ...,
    name: str | None = ...,
) -> ChannelsMechanism: ...


@public_design
def lmmse(
    target: Filter | FilterMatrix,
    privacy: Privacy,
    model: Model | Sequence[Model] | VectorARMA,
    *,
    lag: Lag = None,
    prefilter: Filter | FilterMatrix | None = None,
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism | ChannelsMechanism:
    r"""Design a mechanism whose receiver is the Wiener filter: linear, with the least mean square error (LMMSE).

    Model
    -----
    Smoother: H = P_u F G* / (P_u|G|² + σ²) (Le Ny 2013, equation (4), with the d² that its display drops) behind the G
    that is optimal for it. Finite lag D: H = [z⁻ᴰ P_u F G* / Q*]₊ / Q with P_v = |Q|², behind the G of the smoother
    whose suppressed frequencies are kept slightly open: |G|² ∝ x + θ, θ ≥ 0 the one with the least MSE at this lag.
    (Where x is zero, no causal receiver could use G.)

    Of several independent streams each has a prefilter of its own, that for a target as loud as its column, and each
    output the Wiener filter of each stream behind it. Of streams that depend on one another, a VectorARMA, each has the
    prefilter that it would have alone, and all outputs one receiver, which is the fixed-lag Kalman filter of the states
    of streams, prefilters and target, and the best linear one behind these prefilters.

    Parameters
    ----------
    target : Filter or FilterMatrix
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for; for several inputs with an adjacency.
    model : Model, sequence of Model, or VectorARMA
        Mean and spectrum of u; the guarantee does not depend on their being right, the error does. For a FilterMatrix a
        model for each input, which are independent then, or one of all.
    lag : int or "smoother"
        Delay of the estimate in samples. None is the smoother too. For a FilterMatrix that is the shortest of the lags
        8, 16, 32, … that errs at most 1e-4 more than waiting for all of v would; the mechanism's ``lag`` tells it.
    prefilter : Filter or FilterMatrix, optional
        A G to use instead; ``ideal_mse`` is then that of the ideal Wiener receiver behind it. For a FilterMatrix it may
        mix inputs, with a row for each channel that is published; the receiver is a Kalman filter.
    tolerance : float
        Accept this relative increase of the MSE in exchange for a G of lower order.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    Mechanism or ChannelsMechanism
        For the smoother, ``ideal_mse`` is the least that any G and H reach, and the lower bound too. At a finite lag
        it is that of the ideal G with |G|² ∝ x + θ: the realised G, which is fitted to the error itself, may
        come below it, and :func:`optimal` tells how far one can get. A ChannelsMechanism for a FilterMatrix: its
        ``lower_bound_mse`` is the least error of smoothers behind a prefilter for each input, for a VectorARMA to 1e-6
        of it, which no lag goes below; None behind a given prefilter.

    Raises
    ------
    ValueError
        For lag < 0, and for a FilterMatrix with another number of models than inputs.
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
    >>> import math
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> privacy = dp.Privacy(math.log(3), 0.05, calibration="paper")
    >>> round(dp.lmmse(dp.Filter([1, 0.995], [1, -0.995]), privacy, chain).ideal_rmse, 4)
    4.6704
    >>> slow, one_of_two = dp.Filter([0.05], [1, -0.95]), dp.Privacy(math.log(3), 0.05, adjacency="one_input")
    >>> several = dp.lmmse(dp.total(2) * slow, one_of_two, [chain, chain], lag=2, tolerance=0.01)
    >>> several.lower_bound_mse < several.predicted_mse < dp.zero_forcing(several.target, one_of_two).predicted_mse
    True
    """
    if isinstance(target, FilterMatrix):
        tolerance = check_tolerance(tolerance)
        if prefilter is not None:
            return estimate_behind(target, privacy, model, lag, prefilter, name)
        models = without_others(model)
        if isinstance(models, VectorARMA):
            return estimate_correlated(target, privacy, models, lag, two_step_columns, tolerance, name)
        return estimate_channels(target, privacy, models, lag, two_step_columns, tolerance, name, "LMMSE")
    check_inputs(target, privacy)
    known = check_one_model(model)
    delay = check_lag(lag)
    name = check_name(name, "LMMSE smoother" if delay is None else f"LMMSE lag {delay}")
    tolerance = check_tolerance(tolerance)
    if prefilter is not None:
        mechanism = wiener_mechanism(name, target, privacy, known, _check_prefilter(prefilter), delay)
        return replace(mechanism, ideal_mse=mechanism.predicted_mse, options=(("lag", delay), ("prefilter", "given")))
    problem = Problem(target, known, noise_cost(privacy, None))
    if delay is None:
        best = realize_family(problem, privacy, smoother_ideal, tolerance)
    else:
        best = realize_family(problem, privacy, lambda p: _two_step_ideal(p, delay), tolerance, smoother_ideal)
    mechanism = wiener_mechanism(name, target, privacy, known, best.prefilter, delay)
    bound = best.lower_bound_mse if delay is None else None
    options = (("lag", delay), ("tolerance", tolerance))
    return replace(mechanism, ideal_mse=best.ideal_mse, lower_bound_mse=bound, options=options)


def two_step_columns(problems: Sequence[Problem], lag: int | None) -> ColumnIdeals:
    """Return the ideals of inputs that one person may reach together, of a lag or of the smoother."""
    noise = share_noise(problems)
    opened = [with_share(x, share) for x, share in zip(problems, noise.shares, strict=True) if share > NOTHING]
    if lag is None:
        return ColumnIdeals(noise.shares, [smoother_ideal(x) for x in opened], noise.mse, noise.mse)
    return ColumnIdeals(noise.shares, [_two_step_ideal(x, lag) for x in opened], None, noise.mse)


def _check_prefilter(prefilter: Any) -> Filter:
    check_filter("prefilter", prefilter)
    checked: Filter = prefilter
    return checked


def check_one_model(model: Any) -> Model:
    """Refuse what is no model of one stream."""
    check_model(model)
    checked: Model = model
    return checked


def wiener_mechanism(
    name: str, target: Filter, privacy: Privacy, model: Model, prefilter: Filter, lag: int | None
) -> Mechanism:
    """Return the mechanism of a given prefilter and the Wiener receiver behind it."""
    receiver = wiener_receiver(target, model, prefilter, privacy.noise_std(prefilter), lag)
    return Mechanism(name, target, privacy, model, prefilter, receiver)


def redesign_wiener(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    """Design the Wiener filter of a mechanism's lag behind another prefilter and noise."""
    assert mechanism.model is not None
    return wiener_receiver(mechanism.target, mechanism.model, prefilter, noise_std, mechanism.lag)


def smoother_ideal(problem: Problem) -> Ideal:
    """Return the ideal of the smoother, by water-filling."""
    water = smoother_water_filling(problem)
    distortion = water.mse - problem.cost * water.level**2

    def product(omega: Array) -> Array:
        return water.level * problem.weight(omega) * water.x(omega)

    def objective(p: Problem) -> Objective:
        return smoother_objective(p, water)

    return Ideal(water.mse, water.mse, product, distortion, objective, objective)


def _two_step_ideal(problem: Problem, lag: int) -> Ideal:
    """Return the ideal of a lag behind the smoother's prefilter, suppressed frequencies kept slightly open.

    Prefilters are fitted to that shape, and measured by the error at the lag.
    """
    water = smoother_water_filling(problem)
    fill, mse = best_filling(problem, water, lag)

    def shape(p: Problem) -> Objective:
        return shape_objective(p, lambda omega: water.x(omega) + fill, p.finest_detail(water.cutoffs), water.cutoffs)

    def loss(p: Problem) -> Objective:
        return wiener_objective(p, lag, shape(p), water.cutoffs)

    return smoother_ideal(problem)._replace(mse=mse, shape=shape, loss=loss)


def best_filling(problem: Problem, water: WaterFilling, lag: int) -> tuple[float, float]:
    """Return the θ with the least MSE of the ideal Wiener receiver behind |G|² = x + θ, and that MSE."""
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    held, circle = resolve_on_circle(problem, lag, water.cutoffs, size=_SEARCH_SIZE)
    x = water.x if held is problem else smoother_water_filling(held).x

    def mse(log_fill: float, circle: WarpedCircle) -> float:
        return wiener_loss(held, lag, circle)(x(circle.grid.omega) + math.exp(log_fill))[0]

    best, value, *_ = optimize.fminbound(mse, -25.0, 8.0, args=(circle,), xtol=1e-3, full_output=True)
    while circle.size < MAX_FFT // 2:
        circle, before = make_circle(circle.warp, 2 * circle.size), value
        value = mse(best, circle)
        if abs(value / before - 1) < _CONVERGED:
            break
    return math.exp(best), value
