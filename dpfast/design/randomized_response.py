"""Design randomised response to two levels, with the linear receiver behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import check_inputs, check_name
from dpfast.design.block_plan import Plan
from dpfast.design.block_problem import BlockProblem
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.mechanisms.chain_law import chain_of
from dpfast.mechanisms.input_noise import InputNoise
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.posterior_response import PosteriorResponseMechanism
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

_SAME = 1e-9  # of the distance of levels: numbers that are the same but for rounding


@public_design
def randomized_response(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = 0,
    receiver: Literal["linear", "bayes"] = "linear",
    name: str | None = None,
) -> Mechanism:
    r"""Publish each of two levels as it is or, by chance, as the other one, and filter that.

    Use it where ε is large or the memory of the target short. What is published is the input plus white noise of a
    constant variance, uncorrelated with every input, so that the Wiener filter behind it is the best linear receiver;
    with ``receiver="bayes"`` it is the posterior mean, which no receiver beats at all.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        δ may be zero. For several events of a person each pays for itself: (ε/m, δ/m) an event.
    model : Model
        A model of two levels, no farther apart than max_change.
    lag : int or "smoother"
        D ≥ 0: the estimate at t is of the output at t - D. The smoother, which None is too, takes the whole signal;
        the posterior mean waits as long as that gains the linear receiver anything, which is then its lag.
    receiver : {"linear", "bayes"}
        "bayes" is the exact posterior mean E[y_{t-D} | v] for a :class:`MarkovChain` or :class:`IndependentLevels` of
        two levels. It has no prediction: only simulation tells (:func:`monte_carlo`, where the linear one is its
        control). With k states of the chain, and p states of the target and outputs that the lag asks for, it takes k²p
        multiply-adds for a sample, of which more than 10⁵ are refused.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    Mechanism
        With ``noise`` the response, and G = 1.

    Raises
    ------
    DesignError
        For a model without levels, or with another number of them than two; for a posterior mean of a model that is no
        chain of levels.
    ValueError
        For levels that lie farther apart than max_change.

    Notes
    -----
    *Privacy.* Another input than the two levels counts as the nearer one, so that the guarantee holds for any input,
    and any change; the prediction is for inputs of these levels alone, and there is none on a model of others.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = randomized_response(dp.Filter([1, -2]), dp.Privacy(1), chain)
    >>> round(mechanism.predicted_rmse, 4)
    0.7782
    """
    filter = check_inputs(target, privacy)
    check_model(model)
    delay = check_lag(lag)
    levels = model.levels
    if levels is None or len(levels) != 2:
        got = "none" if levels is None else str(len(levels))
        raise DesignError(f"model must have two levels for randomised response, got {got}: take block_sums")
    low, high = (float(x) for x in levels)
    if high - low > privacy.max_change * (1 + _SAME):
        raise ValueError(
            f"max_change must be at least {high - low:g}, the distance of the levels, for randomised response, got "
            f"{privacy.max_change:g}: an event may change one level into the other"
        )
    noise, identity = InputNoise("randomised response", levels=(low, high)), Filter([1.0])
    std, when = noise.law(privacy).std, "smoother" if delay is None else f"lag {delay}"
    if validation.choice("receiver", receiver, ("linear", "bayes")) == "bayes":
        chain_of(model)
        late = _waiting_lag(filter, model, std, high - low) if delay is None else delay
        return PosteriorResponseMechanism(
            check_name(name, f"randomised response Bayes {when}"),
            filter,
            privacy,
            model,
            identity,
            wiener_receiver(filter, model, identity, std, late),
            options=(("lag", delay), ("receiver", receiver)),
            noise=noise,
        )
    mechanism = Mechanism(
        check_name(name, f"randomised response {when}"),
        filter,
        privacy,
        model,
        identity,
        wiener_receiver(filter, model, identity, std, delay),
        options=(("lag", delay),),
        noise=noise,
    )
    return replace(mechanism, ideal_mse=mechanism.predicted_mse)


def _waiting_lag(target: Filter, model: Model, std: float, span: float) -> int:
    """Return a lag beyond which waiting gains the linear receiver nothing: as behind sums of one input each."""
    lattice = Lattice(span, float(model.mean), 1, rounds=False)
    return BlockProblem(target.factors, None, model, lattice, 0).wait_longer(Plan.sums(1), ((std / span) ** 2,)).lag
