"""The law of integer noise by its name, or the one of least variance that serves."""

from __future__ import annotations

import math
import sys
from typing import Literal, get_args

from dpfast._support import validation
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise
from dpfast.privacy.integer_noise.staircase import MOST_STEPS, Staircase
from dpfast.privacy.privacy import Privacy

_SAME = 1e-9  # of a variance: laws of which the first is as good


def integer_noise(
    kind: IntegerKind | Literal["best"], privacy: Privacy, steps: int, share: float = 1.0
) -> IntegerNoise:
    r"""Make the law of noise that hides `max_events` changes of a person, each of at most so many units.

    With ε and δ those of the privacy times the share: two-sided geometric noise of q = e^{-ε/(m d)}; or, by group
    privacy, what gives (ε/m, δ/(1 + e^{ε/m} + ... + e^{(m-1)ε/m})) to one change. Both hold wherever the events fall.

    Parameters
    ----------
    kind : {"best", "geometric", "canonical", "staircase"}
        "canonical" needs a δ, and changes of one step; "best" is the law of least variance that serves.
    privacy : Privacy
    steps : int
        d, the largest change in units.
    share : float
        Of ε and δ, where an event touches several values.

    Raises
    ------
    ValueError
        For a law that does not serve, which says what does.

    Examples
    --------
    >>> integer_noise("best", Privacy(1, 0.01), 1).kind, integer_noise("best", Privacy(3), 4).kind
    ('canonical', 'staircase')
    """
    validation.choice("noise", kind, ("best", *get_args(IntegerKind)))
    if kind == "best":
        laws = [_LAWS[x](privacy, steps, share) for x in get_args(IntegerKind) if not _hindrance(x, privacy, steps)]
        least = min(law.variance for law in laws)
        return next(law for law in laws if law.variance <= least * (1 + _SAME))
    if hindrance := _hindrance(kind, privacy, steps):
        raise ValueError(f"noise must not be {kind!r} here: {hindrance}; take 'geometric', or 'best'")
    return _LAWS[kind](privacy, steps, share)


def _hindrance(kind: str, privacy: Privacy, steps: int) -> str:
    """Say why a law does not serve; nothing where it does."""
    if kind == "canonical" and privacy.delta == 0:
        return "it needs a delta above 0"
    if kind == "canonical" and steps > 1:
        return f"it hides a change of one unit, and max_change is {steps} of them"
    if kind == "staircase" and steps > MOST_STEPS:
        return f"it is for at most {MOST_STEPS:,} units, and max_change is {steps:,} of them"
    return ""


def _geometric(privacy: Privacy, steps: int, share: float) -> IntegerNoise:
    return TwoSidedGeometric(share * privacy.epsilon, steps * privacy.max_events)


def _canonical(privacy: Privacy, steps: int, share: float) -> IntegerNoise:
    epsilon, delta = share * privacy.epsilon / privacy.max_events, _canonical_delta(privacy, share)
    return DiscreteCanonical(epsilon, delta) if delta else TwoSidedGeometric(epsilon)


def _canonical_delta(privacy: Privacy, share: float) -> float:
    """Return δ(e^{ε/m} - 1)/(e^ε - 1), without overflow; zero where its effect is no number."""
    epsilon = share * privacy.epsilon / privacy.max_events
    ratio = math.expm1(-share * privacy.epsilon) / math.expm1(-epsilon)
    delta = share * privacy.delta / ratio * math.exp(epsilon - share * privacy.epsilon)
    return 0.0 if delta * math.exp(-epsilon) < sys.float_info.min else delta


def _staircase(privacy: Privacy, steps: int, share: float) -> IntegerNoise:
    return Staircase(share * privacy.epsilon / privacy.max_events, steps)


_LAWS = {"geometric": _geometric, "canonical": _canonical, "staircase": _staircase}
