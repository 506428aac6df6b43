"""Check the arguments that all design functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.filters.filter import A_FILTER, Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.matrix_mechanism import Noise
from dpfast.privacy.privacy import Privacy, check_privacy


def check_filter(name: str, value: Filter | Toeplitz) -> Filter:
    """Refuse what is no filter, and one that is zero; return it."""
    refuse_matrix(name, value)
    if isinstance(value, Toeplitz):
        raise ValueError(
            f"{name} must be a Filter here, got a Toeplitz of {value.horizon} steps, for which there is "
            "optimal_factorization (with a model, or without) and, faster, square_root or buffered_toeplitz"
        )
    validation.instance(name, value, Filter, A_FILTER)
    if not np.abs(value.b).max() > validation.SMALLEST:
        raise DesignError(
            f"{name} must not be zero, nor have all its coefficients below {validation.SMALLEST:g}: scale it"
        )
    return value


def refuse_matrix(name: str, value: object) -> None:
    """Refuse a matrix of filters where there is one stream, and say what there is for several."""
    if isinstance(value, FilterMatrix):
        raise ValueError(
            f"{name} must be of one stream here, got {value!r}: for several streams there is best, which compares "
            "zero_forcing, lmmse, optimal, block_sums, input_perturbation and output_perturbation of them; the filter "
            f"from input j to output i alone is {name}[i, j]"
        )


def check_target(target: Filter | Toeplitz) -> None:
    """Refuse what is neither a filter nor a target over a horizon, and a filter that is zero."""
    refuse_matrix("target", target)
    if toeplitz_or_none(target) is None:
        if filter_or_none(target) is None:
            raise validation.fail("target", f"{A_FILTER}, or a Toeplitz", target)
        check_filter("target", target)


def check_name(name: object, otherwise: str) -> str:
    """Return the name that a mechanism is given, and where there is none its usual one; refuse what is no text."""
    if name is None:
        return otherwise
    validation.instance("name", name, str, "text")
    return str(name) or otherwise


def check_inputs(target: Filter | Toeplitz, privacy: Privacy) -> Filter:
    """Refuse what no design of filters takes as its target or its privacy; return the target."""
    filter = check_filter("target", target)
    check_privacy(privacy)
    return filter


def check_tolerance(tolerance: float) -> float:
    """Return the relative excess of an MSE that a design may cost; refuse one that is not between 0 and 1."""
    return validation.number("tolerance", tolerance, above=0, below=1)


def check_unit(unit: float | None) -> float | None:
    """Return the unit whose multiples real inputs are rounded to, if any; refuse one that is not above 0."""
    return None if unit is None else validation.number("unit", unit, above=0)


def check_real_noise(noise: str) -> None:
    """Refuse noise on the integers, and words that are no noise, where sums or transforms of inputs are published."""
    validation.choice("noise", noise, get_args(Noise))


def check_one_event(privacy: Privacy) -> None:
    """Refuse several events a person, for which a convex program in |G|² has no noise."""
    if privacy.max_events > 1:
        raise DesignError(
            f"max_events must be 1 in a convex program, got {privacy.max_events}: the sensitivity to several events "
            "is not a multiple of the norm of G; use lmmse"
        )


def filter_or_none(value: object) -> Filter | None:
    """Return an argument that may be a filter or something else, where it is a filter."""
    return value if isinstance(value, Filter) else None


def toeplitz_or_none(value: object) -> Toeplitz | None:
    """Return an argument that may be a target over a horizon or something else, where it is one."""
    return value if isinstance(value, Toeplitz) else None


Target = Filter | Toeplitz | Sequence[float]


def target_over_horizon(target: Target, privacy: Privacy, horizon: int | None) -> Toeplitz:
    """Check target, privacy and horizon of a design over a horizon, and return the target over it."""
    refuse_matrix("target", target)
    check_privacy(privacy)
    return Toeplitz.of(target, horizon)
