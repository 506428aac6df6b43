"""What a release declares of the inputs of a design: options of ``dpfast release``, or the same in Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.exact_numbers import meant_number, write_in_python, write_number
from dpfast._support.validation import Array
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.privacy.lattice import Lattice, is_whole, largest_unit
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

ANY = "--high LARGEST"
_ROUNDS = "It rounds real numbers to multiples of {0}; dpfast release takes counts, for which design without a unit."
_ROUNDS_COUNTS = "It rounds counts to multiples of {0}, so that LARGEST has to be one."
_OF_LEVELS = "It takes values that are {0} plus multiples of {1}, and dpfast release takes counts."
_ON_LEVELS = "Its model is of the levels {0}, and dpfast release takes counts."
_SMALL = (
    "It hides changes of {0:g}, and dpfast release counts events, each of which is a change of 1. Real numbers are "
    "rounded to a unit: a tenth of such a change is fine enough for most."
)
_APART = "Its streams are in different units, in which no release can declare them together."


class DeclaredInputs(NamedTuple):
    """Hold what a release of a design declares of its inputs.

    Attributes
    ----------
    options : tuple of str
        Those of ``dpfast release``; empty where it does not take the design.
    python : str
        The same in Python; empty where no release takes it.
    why : str
        Why the command does not take it, or what else is to know; empty where there is nothing.
    """

    options: tuple[str, ...]
    python: str
    why: str = ""


COUNTS = DeclaredInputs((ANY,), "dp.Inputs(LOW, HIGH)")


def declare_inputs(mechanism: AnyMechanism | AnyChannels, models: Sequence[Model]) -> DeclaredInputs:
    """Find what a release declares of the inputs of a mechanism.

    Parameters
    ----------
    mechanism : mechanism
    models : sequence of Model
        Of its inputs; none where it was designed without.
    """
    lattices = mechanism.input_lattices
    if len({(x.unit, x.offset % x.unit, x.rounds) for x in lattices}) > 1:
        return DeclaredInputs((), "", _APART)
    levels = _join_levels(mechanism, models)
    least = _least_change(mechanism.privacy)
    found = _declare_lattice(lattices[0], levels) if lattices else _declare_levels(mechanism, levels, least)
    streams = f", n_streams={mechanism.target.shape[1]})" if isinstance(mechanism, AnyChannels) else ")"
    return found._replace(python=f"{found.python.removesuffix(')')}{streams}")


def _join_levels(mechanism: AnyMechanism | AnyChannels, models: Iterable[Model]) -> Array | None:
    """Return all values that inputs take, in order: of a response, or of the models; None where they may be any."""
    response = getattr(getattr(mechanism, "noise", None), "levels", None)
    known = [response] if response is not None else [x.levels for x in models if x.levels is not None]
    return np.unique(np.concatenate(known)) if known else None


def _declare_lattice(lattice: Lattice, levels: Array | None) -> DeclaredInputs:
    """Declare inputs whose unit is that of the design."""
    unit = write_number(meant_number(lattice.unit))
    if lattice.rounds:
        python = _write_rounded(lattice.unit)
        if is_whole(np.array([1 / lattice.unit])):  # such counts are multiples already, which it does not take them for
            return DeclaredInputs((), python, _ROUNDS.format(unit))
        return DeclaredInputs(("--high LARGEST", f"--unit {unit}"), python, _ROUNDS_COUNTS.format(unit))
    if levels is None or (lattice.unit == 1 and _are_counts(levels)):
        return COUNTS
    start = write_number(meant_number(lattice.offset))
    return DeclaredInputs((), _write_levels(levels, lattice.unit), _OF_LEVELS.format(start, unit))


def _declare_levels(mechanism: AnyMechanism | AnyChannels, levels: Array | None, change: float) -> DeclaredInputs:
    """Declare inputs of any unit: counts, where the values that they take are counts."""
    rounded = _write_rounded(change / 10)
    if levels is not None and len(levels) > 1:
        if not _are_counts(levels):
            unit = _find_unit(levels, change)
            python = rounded if unit is None else _write_levels(levels, unit)
            return DeclaredInputs((), python, _ON_LEVELS.format(_join(levels)))
        if getattr(getattr(mechanism, "noise", None), "levels", None) is not None:
            return _declare_answers(levels)
    return COUNTS if change >= 1 else DeclaredInputs((), rounded, _SMALL.format(change))


def _declare_answers(levels: Array) -> DeclaredInputs:
    """Declare the two levels of a response, which has to know them."""
    step = float(levels[1] - levels[0])
    low, high, unit = (write_number(meant_number(x)) for x in (*levels.tolist(), step))
    more = [] if (low, unit) == ("0", "1") else [f"--unit {unit}", f"--centre {low}"]
    return DeclaredInputs((f"--low {low}", f"--high {high}", *more), _write_levels(levels, step))


def _find_unit(levels: Array, change: float) -> float | None:
    """Find a unit of which the differences of levels are multiples, and that is no larger than a change."""
    try:
        unit = largest_unit(levels)
    except ValueError:  # of such as 0, 1 and √2
        return None
    return unit / math.ceil(unit / change)


def _are_counts(levels: Array) -> bool:
    return is_whole(levels) and bool(levels.min() >= 0)


def _write_levels(levels: Array, unit: float) -> str:
    """Write the declaration of levels, whose ends are the first one and a number of units from it."""
    first, step = meant_number(float(levels[0])), meant_number(unit)
    last = first + step * round((float(levels[-1]) - float(levels[0])) / unit)
    low, high, step_text = (write_in_python(x) for x in (first, last, step))
    return f"dp.Inputs({low}, {high}, unit={step_text}, centre={low}, missing={low})"


def _write_rounded(unit: float) -> str:
    """Write the declaration of real numbers that are rounded to a unit."""
    return f"dp.Inputs(LOW, HIGH, unit={write_in_python(meant_number(unit))}, multiples=False, missing=LOW)"


def _join(levels: Array) -> str:
    shown = [f"{x:g}" for x in levels.tolist()]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _least_change(privacy: Privacy) -> float:
    return min(privacy.max_change) if isinstance(privacy.max_change, tuple) else privacy.max_change
