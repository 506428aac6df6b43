"""Design randomised response to two levels, with the linear receiver behind it."""

from __future__ import annotations

from dataclasses import replace

from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import check_inputs
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.mechanisms.input_noise import InputNoise
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

_SAME = 1e-9  # of the distance of levels: numbers that are the same but for rounding


def randomized_response(
    target: Filter, privacy: Privacy, model: Model, *, lag: Lag = 0, name: str | None = None
) -> Mechanism:
    r"""Publish each of two levels as it is or, by chance, as the other one, and filter that.

    Use it where ε is large or the memory of the target short. What is published is the input plus white noise of a
    constant variance, uncorrelated with every input, so that the Wiener filter behind it is the best linear receiver.

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
        δ may be zero. For several events of a person each pays for itself: (ε/m, δ/m) an event.
    model : Model
        Of two levels, no farther apart than max_change.
    lag : int or "smoother"
        D ≥ 0: the estimate at t is of the output at t - D. The smoother, which None is too, takes the whole signal.
    name : str, optional

    Returns
    -------
    Mechanism
        With ``noise`` the response, and G = 1.

    Raises
    ------
    DesignError
        For a model without levels, or with another number of them than two.
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
    noise = InputNoise("randomised response", levels=(low, high))
    receiver = wiener_receiver(filter, model, Filter([1.0]), noise.law(privacy).std, delay)
    label = "smoother" if delay is None else f"lag {delay}"
    mechanism = Mechanism(
        name or f"randomised response {label}",
        filter,
        privacy,
        model,
        Filter([1.0]),
        receiver,
        options=(("lag", delay),),
        noise=noise,
    )
    return replace(mechanism, ideal_mse=mechanism.predicted_mse)
