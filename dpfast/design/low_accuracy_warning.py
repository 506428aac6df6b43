"""Say what would help a mechanism that explains less than half of the true output's variance."""

from __future__ import annotations

import math
from dataclasses import replace

from dpfast._support.errors import AccuracyWarning, warn
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.water_filling import smoother_water_filling
from dpfast.filters.filter import Filter
from dpfast.privacy.privacy import LARGEST_EPSILON, Privacy
from dpfast.signals.model import Model
from dpfast.signals.output_variance import explained_share, output_variance

HALF = 0.5
_STEPS = 12  # halvings of an interval of log(epsilon), which find epsilon to a thousandth
_TARGET = "and a target of a narrower band, such as a longer average, may help too"


def warn_of_low_accuracy(
    name: str, target: Filter, privacy: Privacy, model: Model | None, lag: int | None, mse: float | None
) -> None:
    """Warn where a mechanism explains less than half of the variance of the true output, and say what would help.

    The warning rests on the model alone and reads no data. Without a model or a prediction there is none.
    """
    if model is None or mse is None:
        return
    part = explained_share(mse, output_variance(target, model))
    if part is not None and part < HALF:
        mean = "publishing the mean, at no cost of privacy, errs less" if part < 0 else "the mean explains nothing"
        warn(
            f"{name!r} explains {part:.0%} of the variance of the true output, if the model holds ({mean}): "
            f"{advice_text(target, privacy, model, lag)}",
            AccuracyWarning,
        )


def advice_text(target: Filter, privacy: Privacy, model: Model, lag: int | None) -> str:
    """Return what would help, judged by the smoother with the least error, which sees the whole signal.

    That smoother has Gaussian noise: without a δ there is none to judge by.
    """
    if privacy.delta == 0:
        return f"{'' if lag is None else 'a larger lag or '}a larger epsilon would help; {_TARGET}"
    most = _largest_share(target, privacy, model)
    if most >= HALF:
        how = "another mechanism" if lag is None else "a larger lag"
        return f"{how} would help, up to {most:.0%} with the whole signal; so would a larger epsilon; {_TARGET}"
    enough = _sufficient_epsilon(target, privacy, model)
    more = "a larger epsilon" if enough is None else f"an epsilon of at least {_format_rounded_down(enough)}"
    return (
        f"no lag brings a linear mechanism with Gaussian noise above {most:.0%} here; half of it takes {more}; "
        f"{_TARGET}"
    )


def _largest_share(target: Filter, privacy: Privacy, model: Model) -> float:
    """Return the share of the variance that the smoother with the least error explains."""
    mse = smoother_water_filling(Problem(target, model, noise_cost(privacy, None))).mse
    return explained_share(mse, output_variance(target, model)) or 0.0


def _sufficient_epsilon(target: Filter, privacy: Privacy, model: Model) -> float | None:
    """Return the epsilon, from below, with which that smoother explains half; None where none does."""
    low, high = math.log(privacy.epsilon), math.log(LARGEST_EPSILON * (1 - 1e-9))

    def enough(log_epsilon: float) -> bool:
        return _largest_share(target, replace(privacy, epsilon=math.exp(log_epsilon)), model) >= HALF

    if not enough(high):
        return None
    while not enough(min(low + 1, high)):
        low += 1
    high = min(low + 1, high)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.exp(low)


def _format_rounded_down(x: float) -> str:
    """Format a number in two digits, rounded down, as it is a lower bound of what is needed."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return f"{math.floor(x / unit) * unit:.2g}"
