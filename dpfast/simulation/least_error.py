"""The first sentences of a study: which mechanism errs least, by how much the next errs more, and the constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

_TWICE = 2.0  # ratio of errors, from which on the error itself says more than per cent


class _Simulated(Protocol):
    """A simulated error, as :class:`~dpfast.simulation.study.Result` has it."""

    @property
    def name(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def rmse(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float]: ...
    @property
    def explained(self) -> float | None: ...


class _Compared(Protocol):
    """A paired comparison, as :class:`~dpfast.simulation.study.Comparison` has it."""

    @property
    def rmse_ratio(self) -> float: ...
    @property
    def decided(self) -> bool: ...


R = TypeVar("R", bound=_Simulated)


def say_least_error(results: Sequence[R], constant: float | None, compare: Callable[[R, R], _Compared]) -> str:
    """Say in sentences which of several mechanisms errs least, how the next one does, and the constant.

    Parameters
    ----------
    results : sequence of Result
        At least one, of the same streams, without that of the constant.
    constant : float or None
        The RMSE of publishing the mean; None where it is not known.
    compare : callable
        Compares two of the results, pair by pair.
    """
    first, *others = sorted(results, key=lambda x: x.rmse)
    low, high = first.interval
    rmse = f"an RMSE of {first.rmse:.4g} ({100 * first.confidence:g} % interval {low:.4g} to {high:.4g})"
    if others:
        said = f"{first.name} errs least, with {rmse}; {_say_next(others[0], compare(others[0], first))}."
    else:
        said = f"{first.name} has {rmse}."
    return said if constant is None else f"{said} {_say_constant(first, constant)}"


def _say_next(second: _Simulated, found: _Compared) -> str:
    if found.rmse_ratio == 1:
        return f"{second.name} errs as much"
    low, high = second.interval
    itself = f"by {second.rmse:.4g} ({low:.4g} to {high:.4g})"
    more = f"{100 * (found.rmse_ratio - 1):.2g} % more" if found.rmse_ratio < _TWICE else itself
    doubt = "" if found.decided else ", and the two may be the other way round"
    return f"the next, {second.name}, errs {more}{doubt}"


def _say_constant(first: _Simulated, constant: float) -> str:
    """Set the least error beside that of publishing the mean; shares of the variance are rounded down."""
    low, high = first.interval
    said = f"The constant, which publishes the mean at no cost of privacy, errs by {constant:.4g}"
    if low <= constant <= high:
        return f"{said}, inside that interval."
    if first.rmse > constant:
        return f"{said}, which is less."
    if first.explained is None:
        return f"{said}."
    return f"{said}: {first.name} explains {math.floor(100 * first.explained)} % of the variance."
