"""The optimal linear mechanism: prefilter and receiver together, for any lag."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args, overload

import numpy as np

from dpfast._support.design_calls import public_design
from dpfast._support.errors import ConvergenceWarning, warn
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_inputs, check_name, check_tolerance
from dpfast.design.lmmse import check_one_model, smoother_ideal, two_step_columns, wiener_mechanism
from dpfast.design.mimo.channel_parts import AnyForm, check_form
from dpfast.design.mimo.channels_lmmse import ColumnIdeals, estimate_channels
from dpfast.design.mimo.joint_mechanism import estimate_jointly
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.family_realization import realize_family
from dpfast.design.prefilter.ideal_mechanism import Ideal
from dpfast.design.prefilter.least_favourable import GAP
from dpfast.design.prefilter.majorization import JointOptimum, OptimalColumn, joint_optimum
from dpfast.design.prefilter.noise_shares import NOTHING
from dpfast.design.prefilter.objectives import Objective, shape_objective, wiener_objective
from dpfast.design.prefilter.several_events import ONE_EVENT
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import without_others
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

LONG_LAG = 50  # beyond it the iteration converges more slowly
GAPS = (1e-7, 1e-5)  # relative gaps up to a long lag, and beyond
_MARGIN = 5.0  # of a gap, left for what a finer grid changes
_LOST = 1e-300  # stands for zero in a logarithm


@overload
def optimal(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = ...,
    tolerance: float = ...,
    name: str | None = ...,
) -> Mechanism: ...


@overload
def optimal(
    target: FilterMatrix,
    privacy: Privacy,
    model: Sequence[Model] | VectorARMA,
    *,
    lag: Lag = ...,
    prefilter: AnyForm = ...,
    tolerance: float = ...,
    name: str | None = ...,
) -> ChannelsMechanism: ...


@public_design
def optimal(
    target: Filter | FilterMatrix,
    privacy: Privacy,
    model: Model | Sequence[Model] | VectorARMA,
    *,
    lag: Lag = 0,
    prefilter: AnyForm = "diagonal",
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism | ChannelsMechanism:
    r"""Design prefilter and receiver together, with the least mean square error of all linear mechanisms at a lag.

    Model
    -----
    With K = HG, the MSE of a receiver of lag D is ‖(z⁻ᴰF - K)Ω‖₂² + c²‖G‖₂²‖H‖₂², and ‖G‖₂‖H‖₂ ≥ <|K|>, reached by
    |G|² ∝ |K|. So the best G and H are those of the convex problem

        min over causal K of ‖(z⁻ᴰF - K)Ω‖₂² + c²<|K|>²,

    which Le Ny 2013 leaves to future work. It is solved by majorisation, with x the last |K|:

        <|K|>² ≤ <x><|K|²/x>.

    Every step is a Wiener filter. The dual problem gives the certificate. For the smoother (lag "smoother") the problem
    is equation (7) of Le Ny 2013, which :func:`lmmse` solves too.

    Of several streams each has a prefilter of its own, |G_i|² ∝ |K_i|/d_i with K_i the column of input i and d_i its
    largest change. Where one event is at one of them, the noise is κ²Σ (d_i<|K_i|>)², so that of independent streams
    each column is such a problem, with the error of all outputs; where it may be at all, they share κ²(Σ d_i<|K_i|>)².
    A prefilter that mixes inputs has κ² max <‖KΦ^½‖_*>², the nuclear norm, over mixtures Φ of a a* over what a person
    may change, a. The receiver of streams that depend on one another, or are mixed, is a fixed-lag Kalman filter.

    Parameters
    ----------
    target : Filter or FilterMatrix
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for; for several inputs with an adjacency.
    model : Model, sequence of Model, or VectorARMA
        Mean and spectrum of u; the guarantee does not depend on their being right, the error does. The spectrum may be
        zero at some frequencies. For a FilterMatrix a model for each input, which are independent then, or one of all.
    lag : int or "smoother"
        D, delay of the estimate in samples. None is the smoother too, of several streams the shortest of the lags 8,
        16, 32, … that errs at most 1e-4 more than waiting for all of v would, as :func:`lmmse` has it.
    prefilter : {"diagonal", "general", "separate"}
        For several streams: "diagonal", a filter for each input; "general", filters from all inputs to as many channels
        as there are outputs or inputs, the fewer (of a smoother, inputs), which has the least error of all linear
        mechanisms; or, to compare with and of independent streams, one for each filter from an input to an output, as
        many designs of one stream, between which the guarantee is split as is best.
    tolerance : float
        Accept this relative increase of the MSE in exchange for a G of lower order; the order is found from it.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    Mechanism or ChannelsMechanism
        ``ideal_mse`` is that of the best G and H of any order, ``lower_bound_mse`` what no linear mechanism of this lag
        with Gaussian noise goes below. Their relative gap is at most 1e-7 up to lag 50 and 1e-5 beyond; for two events
        a person about 1e-3; for more the bound is that of events far apart, and may be far below. A ChannelsMechanism
        for a FilterMatrix: both are then those of mechanisms with such prefilters, of which "general" has all, with a
        gap of at most 1e-4 there and for a VectorARMA, or a quarter of `tolerance`, at most 2.5e-3, for "general" and
        "each_input", and several events cost as many times the sensitivity of one. Both are for `model`: a bound for
        independent streams is none for those that depend on one another.

    Raises
    ------
    ValueError
        For lag < 0, for a FilterMatrix with another number of models than inputs, for another word for the prefilter,
        where a single Filter is given another than "diagonal", and for "separate" with a VectorARMA.
    DesignError
        Where the target is zero.

    Warns
    -----
    ConvergenceWarning
        Where the gap is larger; the bound still holds. For several events, where the design for their least
        favourable times may be more than 1e-2 above the best one.
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
    >>> mechanism = dp.optimal(dp.Filter([1, 0.995], [1, -0.995]), privacy, chain, lag=5, tolerance=0.01)
    >>> round(mechanism.ideal_rmse, 4), mechanism.prefilter.order
    (5.0866, 2)
    >>> mechanism.lower_bound_mse <= mechanism.ideal_mse <= mechanism.predicted_mse <= 1.01 * mechanism.ideal_mse
    True
    >>> slow, one_of_two = dp.Filter([0.05], [1, -0.95]), dp.Privacy(math.log(3), 0.05, adjacency="one_input")
    >>> several = dp.optimal(dp.total(2) * slow, one_of_two, [chain, chain], lag=2, tolerance=0.01)
    >>> several.lower_bound_mse <= several.ideal_mse <= several.predicted_mse <= 1.01 * several.ideal_mse
    True
    >>> mixing = dp.optimal(several.target, one_of_two, [chain, chain], lag=2, prefilter="general", tolerance=0.01)
    >>> mixing.prefilter.shape, round(mixing.ideal_mse / several.ideal_mse, 2)
    ((1, 2), 0.6)
    """
    tolerance = check_tolerance(tolerance)
    check_form(target, prefilter, get_args(AnyForm))
    if isinstance(target, FilterMatrix):
        models = without_others(model)
        form = "diagonal" if prefilter == "general" and target.shape[1] == 1 else prefilter
        if form == "general" or (form == "diagonal" and isinstance(models, VectorARMA)):
            return estimate_jointly(target, privacy, models, lag, form, tolerance, name)
        return estimate_channels(target, privacy, models, lag, _joint_columns, tolerance, name, "optimal", form)
    check_inputs(target, privacy)
    known = check_one_model(model)
    delay = check_lag(lag)
    name = check_name(name, "optimal smoother" if delay is None else f"optimal lag {delay}")
    problem = Problem(target, known, noise_cost(privacy, None))
    family = smoother_ideal if delay is None else lambda p: joint_ideal(p, delay)
    best = realize_family(problem, privacy, family, tolerance)
    mechanism = wiener_mechanism(name, target, privacy, known, best.prefilter, delay)
    options = (("lag", delay), ("tolerance", tolerance))
    assert mechanism.predicted_mse is not None
    ideal = max(best.lower_bound_mse, min(best.ideal_mse, mechanism.predicted_mse))  # as steps do not resolve all
    return replace(mechanism, ideal_mse=ideal, lower_bound_mse=best.lower_bound_mse, options=options)


def joint_ideal(problem: Problem, lag: int) -> Ideal:
    """Return the joint optimum of prefilter and receiver at a lag; warn where its certificate is loose."""
    if problem.contributions is ONE_EVENT:
        found = _certified_optimum([problem], lag)
    else:
        found = joint_optimum([problem], lag, GAP / _MARGIN)
    (column,) = found.columns
    return _column_ideal(column, lag, max(found.mse, found.lower_bound), found.lower_bound)


def _certified_optimum(problems: Sequence[Problem], lag: int) -> JointOptimum:
    """Return the joint optimum for one event a person; warn where its certificate is loose."""
    largest_gap = GAPS[lag > LONG_LAG]
    found = joint_optimum(problems, lag, largest_gap / _MARGIN)
    if found.gap > largest_gap:
        warn(
            f"the optimum of lag {lag} is certified to a relative gap of {found.gap:.1e} only, {largest_gap:g} is "
            "usual: it is at least lower_bound_mse; smooth the target or take a shorter lag",
            ConvergenceWarning,
        )
    return found


def _joint_columns(problems: Sequence[Problem], lag: int | None) -> ColumnIdeals:
    """Return what is best for inputs that one person may reach together: each has what it passes of the sensitivity."""
    if lag is None:
        return two_step_columns(problems, None)
    found = _certified_optimum(problems, lag)
    norms = [
        math.sqrt(x.cost) * column.circle.grid.mean(column.product)
        for x, column in zip(problems, found.columns, strict=True)
    ]
    shares = [norm / sum(norms) for norm in norms]
    ideals = [
        _column_ideal(column, lag, column.distortion + norm * sum(norms), 0.0)
        for column, norm, share in zip(found.columns, norms, shares, strict=True)
        if share > NOTHING
    ]
    return ColumnIdeals(shares, ideals, max(found.mse, found.lower_bound), found.lower_bound)


def _column_ideal(column: OptimalColumn, lag: int, mse: float, bound: float) -> Ideal:
    """Return the ideal of one input of a joint optimum, with its part of the error and of the bound."""
    circle, size = column.circle, np.maximum(column.product, _LOST)

    def shape(p: Problem) -> Objective:
        starts = shape_objective(
            p, lambda omega: circle.interpolate(column.power, omega), p.finest_detail(column.cutoffs)
        )
        return wiener_objective(p, lag, starts, column.cutoffs)

    def product(omega: Array) -> Array:
        return circle.interpolate(size, omega)

    return Ideal(mse, bound, product, column.distortion, shape, shape)
