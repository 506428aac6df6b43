"""Zero forcing: the prefilter that has the least error when the receiver undoes it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, overload

from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import check_inputs, check_tolerance
from dpfast.design.mimo.channel_designs import force_channels
from dpfast.design.mimo.channel_parts import AnyForm, check_form
from dpfast.design.mimo.mixed_zero_forcing import mix_channels
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.family_realization import realize_family
from dpfast.design.prefilter.ideal_mechanism import Ideal
from dpfast.design.prefilter.objectives import Objective, zero_forcing_objective
from dpfast.design.prefilter.water_filling import zero_forcing_mse
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.undoing import undo_filter
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.privacy import Privacy


@overload
def zero_forcing(target: Filter, privacy: Privacy, *, tolerance: float = ..., name: str = ...) -> Mechanism: ...


@overload
def zero_forcing(
    target: FilterMatrix,
    privacy: Privacy,
    *,
    prefilter: AnyForm = ...,
    tolerance: float = ...,
    name: str = ...,
) -> ChannelsMechanism: ...


@public_design
def zero_forcing(
    target: Filter | FilterMatrix,
    privacy: Privacy,
    *,
    prefilter: AnyForm = "diagonal",
    tolerance: float = 1e-3,
    name: str = "LZF",
) -> Mechanism | ChannelsMechanism:
    r"""Design a mechanism without distortion and with the least noise (LZF). It needs no model of the signal.

    Model
    -----
    H = F/G, MSE = c²‖G‖₂²‖F/G‖₂² ≥ c²<|F|>², reached by |G|² ∝ |F| (Le Ny 2013, Theorem 5). F may have zeros on and
    outside of the circle: 1/G stays stable. Of several streams each input i has a prefilter of its own,
    |G_i|² ∝ |F_i|₂, the norm of its column: MSE ≥ κ² Σ d_i²<|F_i|₂>² where one event is at one input, and
    κ² <Σ d_i |F_i|₂>² where it may be at all of them. A prefilter that mixes inputs reaches κ² <‖FΦ^½‖_*>², the nuclear
    norm, with Φ the worst mixture of a a* over what a person may change, a: G*G = F*(FΦF*)^{-½}F.

    Parameters
    ----------
    target : Filter or FilterMatrix
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for; for several inputs with an adjacency.
    prefilter : {"diagonal", "general", "separate"}
        For several streams: "diagonal", a filter for each input; "general", filters from all inputs to as many channels
        as there are outputs or inputs, the fewer, which has the least error of all mechanisms without distortion; or,
        to compare with, one for each filter from an input to an output, as many designs of one stream, between which
        the guarantee is split as is best.
    tolerance : float
        Accept this relative increase of the MSE in exchange for a G of lower order; the order is found from it.
    name : str
        What tables and pictures call it.

    Returns
    -------
    Mechanism or ChannelsMechanism
        ``ideal_mse`` is c²<|F|>². A ChannelsMechanism for a FilterMatrix; its MSE is of all outputs together, and
        ``lower_bound_mse`` is for prefilters that mix inputs too.

    Raises
    ------
    ValueError
        For another word for the prefilter, and where a single Filter is given another than "diagonal".
    DesignError
        For a target that is zero, and for a FilterMatrix with an input that no output sees at some frequency, though
        its entries are not multiples of one filter. For "general" where outputs or inputs of the target are
        combinations of others, and of more than 32 states an entry if entries are not multiples of one filter.

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> privacy = dp.Privacy(math.log(3), 0.05, calibration="paper")
    >>> mechanism = dp.zero_forcing(dp.Filter([1, 0.995], [1, -0.995]), privacy)
    >>> round(mechanism.ideal_rmse, 4), mechanism.prefilter.order
    (7.4715, 4)
    >>> slow = dp.Filter([0.05], [1, -0.95])
    >>> one_of_three = dp.Privacy(math.log(3), 0.05, adjacency="one_input")
    >>> round(dp.zero_forcing(dp.total(3) * slow, one_of_three).ideal_rmse, 4)
    0.1793
    >>> round(dp.zero_forcing(dp.total(3) * slow, one_of_three, prefilter="general").ideal_rmse, 4)
    0.1035
    """
    check_form(target, prefilter, get_args(AnyForm))
    if isinstance(target, FilterMatrix):
        if prefilter == "general":
            return mix_channels(target, privacy, zero_forcing_ideal, check_tolerance(tolerance), name)
        return force_channels(target, privacy, zero_forcing_ideal, prefilter, check_tolerance(tolerance), name)
    check_inputs(target, privacy)
    tolerance = check_tolerance(tolerance)
    problem = Problem(target, None, noise_cost(privacy, None))
    g, ideal, bound = realize_family(problem, privacy, zero_forcing_ideal, tolerance)
    receiver = LinearReceiver(target * g.inverse(), target, 0.0, 0)
    options = (("tolerance", tolerance),)
    return Mechanism(name, target, privacy, None, g, receiver, ideal, bound, options=options)


def zero_forcing_ideal(problem: Problem) -> Ideal:
    """Return the ideal of zero forcing, K = F. The fit does not depend on the noise, not even by rounding."""
    mse = zero_forcing_mse(problem)

    def shape(p: Problem) -> Objective:
        return zero_forcing_objective(replace(p, cost=1.0))

    return Ideal(mse, mse, problem.gain, 0.0, shape, zero_forcing_objective)


def redesign_inverse(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> LinearReceiver:
    """Return the target behind the inverse of another prefilter, as late as the mechanism; noise makes no difference.

    Raises
    ------
    UnstableFilterError
        Where the prefilter has no stable inverse.
    """
    target, lag = mechanism.target, mechanism.lag or 0
    late = Filter([0.0] * lag + [1.0])
    return LinearReceiver(undo_filter(target, prefilter) * late, target, mechanism.receiver.mean, lag)
