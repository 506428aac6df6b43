"""Smoothers of several streams: estimates so late that waiting for all that is published would gain next to nothing."""

from __future__ import annotations

from collections.abc import Callable

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism

_FIRST_LAG = 8
NEXT_TO_NOTHING = 1e-4  # of the error


def smooth_channels(complete: Callable[[int], ChannelsMechanism], excess: Callable[[int], float]) -> ChannelsMechanism:
    """Return the mechanism of the shortest of the lags 8, 16, 32, … that errs at most 1e-4 more than a smoother.

    Parameters
    ----------
    complete : callable
        Gives the mechanism of a lag, behind the same prefilters. Its models are known.
    excess : callable
        Gives how much more than a smoother it errs, relatively, so that those that err more are not made; 0 where that
        is not known. It may refuse a lag, as `complete` may.

    Raises
    ------
    DesignError
        Where there is none up to the longest lag, or the receiver would have too many states.
    """
    lag = _FIRST_LAG
    while lag <= validation.MAX_LAG:
        try:
            made = complete(lag) if excess(lag) <= NEXT_TO_NOTHING else None
        except ValueError as error:  # of a lag that nobody has given
            if lag == _FIRST_LAG:
                raise
            raise DesignError(
                f"lag must be a number of samples here: an estimate that is {lag // 2} samples late is not yet as near "
                f"to that of a smoother as {NEXT_TO_NOTHING:g} of its error, and a later one takes too many states "
                f"({error})"
            ) from None
        if made is not None and _is_near(made):
            return made
        lag *= 2
    raise DesignError(
        f"lag must be a number of samples here: an estimate that is {lag // 2} samples late is not yet as near to that "
        f"of a smoother as {NEXT_TO_NOTHING:g} of its error"
    )


def _is_near(made: ChannelsMechanism) -> bool:
    """Tell whether a mechanism, as it was realised, errs hardly more than a smoother."""
    assert made.smoothed_mse is not None, "as its models are known"
    return made.predicted_mse <= (1 + NEXT_TO_NOTHING) * float(made.smoothed_mse.sum())
