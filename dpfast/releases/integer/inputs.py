"""Declarations of the data before any of them is seen, and how values become integers."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.dataframes import unwrap

Integers = NDArray[np.int64]
Rational = int | float | Fraction
LARGEST = 2**40  # units: a quotient of floats rounds to the right integer far beyond
_SLACK = Fraction(1, 2**10)  # units by which rounding of that quotient moves the thresholds between integers, at most
_MOST_STREAMS = 10**6


@dataclass(frozen=True)
class Inputs:
    r"""Declare public facts of a private signal: its unit, range, centre, and who is in how many streams.

    A value u becomes the integer x = min(max(⌊u/unit + 1/2⌋, low), high) - centre, with low, high and centre in units;
    where the centre is no multiple of the unit, all are counted from it, and all values are it plus whole units.
    Nothing of this is read off the data, and no value is ever refused: a refusal would itself be an observable.

    Parameters
    ----------
    low, high : int, float or Fraction
        The range, in the units of the signal; values outside are clamped. Both differ from `centre` by multiples of
        `unit`.
    unit : int, float or Fraction
        The distance between values that are told apart, from 1e-50 to 1e50: 1 for counts, and for levels ±1/2 with a
        centre of 1/2. A float is read as the decimal that it is written as.
    centre : int, float or Fraction
        The value that is subtracted before the prefilter: about what you expect, within the range, never a mean of the
        data.
    n_streams : int
        Streams that are released together.
    streams_per_person : int
        In how many of them one person may be.
    multiples : bool
        True where values differ by multiples of `unit`, as counts do: a change of d is then one of ⌊d/unit⌋ units.
        False for measurements, which are rounded to it: ⌊d/unit⌋ + 1 units.
    missing : int, float or Fraction, optional
        What a NaN counts as, a multiple of `unit` in the range. Without it arrays of floats are refused by their type.

    Raises
    ------
    ValueError
        For a range that is empty or of more than 2**40 units about zero, and for what is no multiple of the unit.

    Notes
    -----
    *Privacy.* Clamping and rounding change values of one time alone, by no more than they differ by: two streams of
    which one lacks an event are as close behind them as before. The data must be such as they are declared to be.

    Examples
    --------
    >>> Inputs(0, 5).integers(np.array([0, 3, 9]))
    array([[0, 3, 5]])
    >>> Inputs(-0.5, 0.5, unit=0.5, missing=0).integers(np.array([-0.5, np.nan, 0.5]))
    array([[-1,  0,  1]])
    """

    low: Rational
    high: Rational
    _: KW_ONLY
    unit: Rational = 1
    centre: Rational = 0
    n_streams: int = 1
    streams_per_person: int = 1
    multiples: bool = True
    missing: Rational | None = None

    def __post_init__(self) -> None:
        for name in ("unit", "low", "high", "centre", "missing"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None and name == "missing" else _rational(name, value))
        if not validation.SMALLEST <= self.unit <= validation.LARGEST:
            raise _fail("unit", f"from {validation.SMALLEST:g} to {validation.LARGEST:g}", self.unit)
        if self.offset and (Fraction(self.low) / Fraction(self.unit)).denominator == 1:
            raise _fail("centre", f"a multiple of the unit {self.unit}, as low is", self.centre)
        low, high = (self._in_units(name) for name in ("low", "high"))
        if not (low < high and max(abs(low), abs(high)) <= LARGEST):
            must_be = f"below high, and both at most 2**40 units of {self.unit} in magnitude"
            raise _fail("low", must_be, f"low {self.low} and high {self.high}")
        for name in ("centre", "missing"):
            if getattr(self, name) is not None and not low <= self._in_units(name) <= high:
                raise _fail(name, f"in the range from {self.low} to {self.high}", getattr(self, name))
        object.__setattr__(self, "n_streams", validation.integer("n_streams", self.n_streams, 1, _MOST_STREAMS))
        most = validation.integer("streams_per_person", self.streams_per_person, 1, self.n_streams)
        object.__setattr__(self, "streams_per_person", most)
        validation.instance("multiples", self.multiples, bool, "True or False")

    @classmethod
    def of_counts(cls, low: Rational, high: Rational, *, unit: Rational = 1, **others: Any) -> Self:
        """Declare whole numbers: they are multiples of the unit where 1 is one."""
        exact = _rational("unit", unit)
        multiples = exact == 0 or (1 / exact).denominator == 1  # 0 is refused below
        return cls(low, high, unit=exact, multiples=multiples, **others)

    @functools.cached_property
    def offset(self) -> Fraction:
        """Return the least of these values that is not below 0."""
        return Fraction(self.centre) % Fraction(self.unit)

    def _in_units(self, name: str) -> int:
        value = (Fraction(getattr(self, name)) - self.offset) / Fraction(self.unit)
        if value.denominator != 1:
            through = f", behind the centre {self.centre}" if self.offset else ""
            near = (self.offset + Fraction(self.unit) * x for x in (math.floor(value), math.ceil(value)))
            advice = f"{getattr(self, name)}: the nearest are {' and '.join(map(str, near))}"
            raise _fail(name, f"a multiple of the unit {self.unit}{through}", advice)
        return int(value)

    @functools.cached_property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest integer behind the prefilter's centre."""
        centre = self._in_units("centre")
        return self._in_units("low") - centre, self._in_units("high") - centre

    @functools.cached_property
    def dtype(self) -> np.dtype[Any]:
        """Return the smallest dtype that holds these integers."""
        largest = max(self.range[1], ~self.range[0])
        return next(x for x in map(np.dtype, ("i1", "i2", "i4", "i8")) if largest <= np.iinfo(x).max)

    def change(self, max_change: float) -> int:
        """Return the largest change of an integer when a value changes by at most `max_change`.

        Raises
        ------
        ValueError
            Where it is zero: then nothing would be protected.
        """
        steps = _rational("max_change", max_change) / Fraction(self.unit)
        change = math.floor(steps) if self.multiples else math.floor(steps + _SLACK) + 1
        if change == 0:
            must_be = f"at most the largest change of an event, {max_change:g}, where values are multiples of it"
            raise _fail("unit", must_be, self.unit)
        low, high = self.range
        return min(change, high - low)

    def check(self, name: str, u: Any) -> NDArray[Any]:
        """Return the values as an array (streams, time); types, shapes and labels are refused, values never are.

        Raises
        ------
        ValueError
            For what is no array of numbers with a plain dtype, for floats where `missing` is not declared, for another
            number of streams, and for labels of time that are not equally spaced.
        """
        u, _ = unwrap(name, u)
        dtype = getattr(u, "dtype", None)
        if not isinstance(dtype, np.dtype) or isinstance(u, np.ma.MaskedArray):
            # the dtype that NumPy would find for a list depends on the values in it
            raise _no_array_error(name, u)
        if dtype.kind not in "iub" and not (dtype.kind == "f" and self.missing is not None):
            must_be = "of an integer dtype, or of floats where Inputs(missing=...) says what a NaN counts as"
            hint = f": {name}.astype(int) makes integers of whole numbers" if dtype.kind == "f" else ""
            raise _fail(name, must_be, f"dtype {dtype}{hint}")
        shape = np.shape(u)
        if len(shape) == 1 and self.n_streams == 1:
            shape = (1, *shape)
        if len(shape) != 2 or shape[0] != self.n_streams:
            must_be = f"of shape ({self.n_streams}, time)" + (" or (time,)" if self.n_streams == 1 else "")
            hint = ""
            if shape[1:] == (self.n_streams,):
                hint = ": transpose it, as time is the last axis"
            elif len(shape) == 2:
                hint = (
                    f": Inputs(n_streams={shape[0]}) declares as many streams as there are rows, or columns of a table"
                )
            raise ValueError(f"{name} must be {must_be}, got shape {np.shape(u)}{hint}")
        x = np.asarray(u)
        if (x.dtype, x.shape) != (dtype, np.shape(u)):  # such as a sparse matrix
            raise _no_array_error(name, u)
        return x.reshape(shape)

    def integers(self, u: Any) -> Integers:
        """Return integers (streams, time) of values as `check` takes them: rounded, clamped, less the centre."""
        x = self.check("u", u)
        rounded = self._round_floats(x) if x.dtype.kind == "f" else self._scale_integers(x)
        centre = self._in_units("centre")
        inside = np.clip(rounded, self.range[0] + centre, self.range[1] + centre)
        return inside.astype(np.int64) - np.int64(centre)

    def _round_floats(self, x: NDArray[Any]) -> Integers:
        """Return ⌊(u - offset)/unit + 1/2⌋ of floats; the range comes first, which also makes infinities finite."""
        with np.errstate(all="ignore"):  # a warning would tell of values
            wide = x.astype(np.float64)
        wide[np.isnan(wide)] = float(self.missing or 0)
        quotient = (np.clip(wide, float(self.low), float(self.high)) - float(self.offset)) / float(self.unit)
        down = np.floor(quotient)
        return np.asarray(down + (quotient - down >= 0.5), dtype=np.int64)

    def _scale_integers(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the same of integers, exactly, and not yet clamped to the unit: 64 bits may be too few for them."""
        q = math.lcm(Fraction(self.unit).denominator, self.offset.denominator)
        p, r = int(self.unit * q), int(self.offset * q)
        info = np.iinfo(x.dtype if x.dtype.kind != "b" else np.uint8)
        low, high = (min(max(x, int(info.min)), int(info.max)) for x in (math.floor(self.low), math.ceil(self.high)))
        # Python's integers, where products would overflow, take as long as they are large
        fits = 2 * (q * max(1, abs(low), abs(high)) + r + p) < 2**63
        inside = np.clip(x.astype(info.dtype), low, high).astype(np.int64 if fits else object)
        return np.asarray((inside * (2 * q) - 2 * r + p) // (2 * p)).reshape(x.shape)

    def public(self) -> dict[str, Any]:
        """Return all that is declared, as JSON holds it."""
        shown = {x.name: getattr(self, x.name) for x in fields(self)}
        return {name: str(x) if isinstance(x, Fraction) else x for name, x in shown.items()}

    @classmethod
    def from_public(cls, given: Mapping[str, Any]) -> Inputs:
        """Return the inputs of which :meth:`public` gave this."""
        values: dict[str, Any] = {name: Fraction(x) if isinstance(x, str) else x for name, x in given.items()}
        return cls(**values)


def _fail(name: str, must_be: str, got: object) -> ValueError:
    return ValueError(f"{name} must be {must_be}, got {got}")


def _no_array_error(name: str, u: Any) -> ValueError:
    must_be = "an array of numbers, not masked, as numpy.asarray(u, dtype=numpy.int64) gives it"
    return _fail(name, must_be, type(u).__name__)


def _rational(name: str, value: Any) -> Fraction:
    """Return a number exactly, a float as the decimal that it is written as."""
    decimal = isinstance(value, Decimal) and value.is_finite()
    if decimal or isinstance(value, Fraction) or (isinstance(value, int) and not isinstance(value, bool)):
        return Fraction(value)
    return Fraction(str(validation.number(name, value)))
