"""The lattice that inputs lie on, or are rounded to, before integer noise hides them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.exact_numbers import meant_number, write_number
from dpfast._support.validation import Array
from dpfast.privacy.privacy import Privacy

_SAME = 1e-9  # of a step: numbers that are the same but for rounding
_FINEST = 1e-6  # of the range of levels


TAKE_UNIT = "real inputs take a unit, to whose multiples they are rounded"
TAKE_LAPLACE = 'for real inputs take noise="laplace"'  # of strategies, which publish sums of inputs as they are


class Lattice(NamedTuple):
    """The values offset + unit · integer, and the largest change of an input in steps of it.

    Attributes
    ----------
    unit, offset : float
    steps : int
        The integer part of max_change/unit, and one more where inputs are rounded: both ends may move.
    rounds : bool
        True where inputs are any real numbers, and rounded.
    """

    unit: float
    offset: float
    steps: int
    rounds: bool

    @property
    def rounding_variance(self) -> float:
        """The variance unit²/12 that rounding adds to an input, zero where there is none."""
        return self.unit**2 / 12 if self.rounds else 0.0

    @property
    def condition(self) -> str:
        """The sentence that a guarantee ends with: which inputs it holds for; nothing where all are rounded.

        Examples
        --------
        >>> Lattice(1.0, -0.5, 1, rounds=False).condition, Lattice(1.0, 0.0, 1, rounds=True).condition
        (' It holds for inputs that are -0.5 plus multiples of 1.', '')
        """
        if self.rounds:
            return ""
        offset, unit = (write_number(meant_number(x)) for x in (self.offset, self.unit))
        start = "" if is_whole(np.array([self.offset / self.unit])) else f"{offset} plus "
        words = "integers" if self.unit == 1 and not start else f"{start}multiples of {unit}"
        return f" It holds for inputs that are {words}."


def find_lattice(privacy: Privacy, levels: Array | None, unit: float | None, for_reals: str = TAKE_UNIT) -> Lattice:
    """Find the lattice of inputs: of levels, of counts (neither levels nor a unit), or of real numbers to be rounded.

    Parameters
    ----------
    privacy : Privacy
    levels : array, 1-D, or None
        The sorted values that an input takes.
    unit : float, optional
    for_reals : str
        What the error of counts says of real inputs.

    Raises
    ------
    ValueError
        For a unit that the levels are not multiples of, and a max_change that is no multiple of it.

    Examples
    --------
    >>> find_lattice(Privacy(1), np.array([-0.5, 0.5]), None)
    Lattice(unit=1.0, offset=-0.5, steps=1, rounds=False)
    >>> find_lattice(Privacy(1), None, 0.25)
    Lattice(unit=0.25, offset=0.0, steps=5, rounds=True)
    """
    if unit is not None:
        unit = validation.number("unit", unit, above=validation.SMALLEST, below=1 / validation.SMALLEST)
    if levels is None and unit is not None:
        return Lattice(unit, 0.0, math.floor(privacy.max_change / unit * (1 + _SAME)) + 1, rounds=True)
    offset = 0.0 if levels is None else float(levels[0])
    if levels is None:
        unit = 1.0
    elif unit is None:
        unit = largest_unit(levels) or privacy.max_change
    elif not is_whole((levels - offset) / unit) or (np.diff(np.rint((levels - offset) / unit)) == 0).any():
        raise ValueError(
            f"unit must divide all differences of the model's levels, got {write_number(meant_number(unit))} for "
            f"levels {levels.tolist()}: "
            "leave it out"
        )
    steps = privacy.max_change / unit
    if steps < 0.5 or not is_whole(np.array([steps])):
        step = write_number(meant_number(unit))
        what = "counts, which are integers" if levels is None else f"the levels, which lie {step} apart"
        hint = f"; {for_reals}" if levels is None else ""
        raise ValueError(
            f"max_change must be a multiple of {step}, the step of {what}, got {privacy.max_change:g}: round it up"
            f"{hint}"
        )
    return Lattice(unit, offset, round(steps), rounds=False)


def largest_unit(levels: Array) -> float:
    """Return the largest number of which all differences of levels are multiples; zero of a single level.

    It is Euclid's algorithm, with remainders that are rounding taken for zero.
    """
    unit, span = 0.0, float(levels[-1] - levels[0])
    for difference in np.diff(levels):
        a, b = unit, float(difference)
        while b > _FINEST * span:
            a, b = b, abs(a - b * round(a / b))
        unit = a
    if unit and not is_whole((levels - levels[0]) / unit):
        raise ValueError(
            f"model must have levels that are whole multiples of one distance apart, got {levels.tolist()}: round them"
        )
    return unit


def is_whole(x: Array) -> bool:
    """Tell whether all are integers but for rounding."""
    return bool((np.abs(x - np.rint(x)) <= _SAME * np.maximum(1.0, np.abs(x))).all())
