"""Strict JSON: every field once, of the right type, and none left over; errors name the field.

The parser is Python's own, not msgspec's, which silently keeps the last of two fields of one name, so that a file could
show a reader one noise and load another; and which would need a second class for every part and operator of a file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz


def parse_json(text: str) -> Any:
    """Parse strict JSON: finite numbers, every field once."""

    def finite(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ValueError(f"numbers must be finite, got {digits[:20]}")
        return value

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(x for x in names if names.count(x) > 1)
            raise ValueError(f"field {twice!r} must be there once, got it {names.count(twice)} times")
        return result

    try:
        return json.loads(text, parse_float=finite, parse_constant=finite, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(f"it must be JSON: {error}; is it a file that dpfast.save wrote, and whole?") from None


def layout_json(value: Any, depth: int = 0) -> str:
    """Write JSON with a line for each field, and arrays on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False)
    lines = (f"{'  ' * (depth + 1)}{json.dumps(key)}: {layout_json(x, depth + 1)}" for key, x in value.items())
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


def filter_content(filter: Filter) -> dict[str, Any]:
    """Return a filter as JSON holds it, which :meth:`Fields.filter` reads."""
    return factors_content(filter.factors)


def factors_content(factors: Factors) -> dict[str, Any]:
    """Return the factors of a filter, stable or not, as JSON holds them."""
    return {name: factor.tolist() for name, factor in zip(("taps", "sections", "recursion"), factors, strict=True)}


class Fields:
    """The fields of a JSON object, each to be taken once."""

    def __init__(self, value: Any, name: str = "") -> None:
        if not isinstance(value, dict):
            raise validation.fail(f"field {name}", "an object", value)
        self._left, self.name = dict(value), name

    def path(self, name: str) -> str:
        """Return what an error calls a field."""
        return f"field {self._under(name)}"

    def _under(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name

    def take(self, name: str) -> Any:
        """Take the value of a field."""
        if name not in self._left:
            raise ValueError(f"{self.path(name)} must be there: design and save anew")
        return self._left.pop(name)

    def end(self) -> None:
        """Refuse fields that were not taken."""
        if self._left:
            raise ValueError(f"{self.path(next(iter(self._left)))} must not be there: this version does not know it")

    def inner(self, name: str) -> Fields:
        """Take a field that is an object."""
        return Fields(self.take(name), self._under(name))

    def rest(self) -> dict[str, Any]:
        """Take all fields that were not taken."""
        left, self._left = self._left, {}
        return left

    def text(self, name: str) -> str:
        """Take a field that must be a text."""
        value = self.take(name)
        if not isinstance(value, str):
            raise validation.fail(self.path(name), "text", value)
        return value

    def choice(self, name: str, options: Iterable[str]) -> str:
        """Take one of a few words."""
        return validation.choice(self.path(name), self.take(name), options)

    def number(self, name: str, *, above: float = -math.inf) -> float:
        """Take a finite number above a bound."""
        return validation.number(self.path(name), self.take(name), above=above)

    def optional(self, name: str) -> float | None:
        """Take a mean square, or None."""
        value = self.take(name)
        if value is not None and validation.number(self.path(name), value) < 0:
            raise validation.fail(self.path(name), "null or at least 0", value)
        return None if value is None else float(value)

    def lag(self) -> int:
        """Take a lag in samples."""
        return validation.integer(self.path("lag"), self.take("lag"), 0, validation.MAX_LAG)

    def array(self, name: str, ndim: int | None = 1, *, empty: bool = False) -> Array:
        """Take an array of finite numbers; where ndim is None, of rows or of numbers."""
        value = self.take(name)
        if not isinstance(value, list) or _has_booleans(value):
            raise validation.fail(self.path(name), "an array of numbers", value)
        if ndim is None:
            ndim = 2 if value and isinstance(value[0], list) else 1
        rows = value or np.empty((0,) * ndim)
        return validation.freeze(validation.array(self.path(name), rows, ndim=ndim, empty=empty))

    def integers(self, name: str) -> NDArray[np.int64]:
        """Take an array of integers."""
        values = self.array(name, empty=True)
        if not (np.abs(values) < 2.0**53).all() or (values != np.rint(values)).any():
            raise validation.fail(self.path(name), "an array of integers", values)
        return values.astype(np.int64)

    def toeplitz(self, name: str) -> Toeplitz:
        """Take a target over a horizon, by its coefficients."""
        inner = self.inner(name)
        coefficients = inner.array("coefficients")
        inner.end()
        with name_errors(self.path(name)):
            return Toeplitz(coefficients)

    def filter(self, name: str) -> Filter:
        """Take a filter, by its factors."""
        return self.inner(name).as_filter()

    def as_filter(self) -> Filter:
        """Take all fields as the factors of a filter."""
        factors = self.factors()
        with name_errors(f"field {self.name}"):
            return Filter.from_factors(*factors)

    def factors(self) -> Factors:
        """Take all fields as factors, of a filter that need not be stable."""
        taps, recursion = self.array("taps"), self.array("recursion")
        sections = self.array("sections", 2, empty=True)
        self.end()
        return Factors(taps, sections.reshape(-1, 6) if sections.size == 0 else sections, recursion)

    def has(self, name: str) -> bool:
        """Tell whether a field is there that was not taken."""
        return name in self._left


def _has_booleans(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_has_booleans, value)))


@contextmanager
def name_errors(field: str) -> Iterator[None]:
    """Let errors of what is made of a field name it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{field} cannot be used: {error}") from None
