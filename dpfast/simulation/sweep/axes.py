"""Axes of a grid: lists of values, values by their labels, and ranges of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.settings_file import check_known
from dpfast.simulation.sweep.parameters import Label

OF_NUMBERS = ("start", "stop", "number", "spacing")
_OF_RANGE = {"start", "stop"}  # which no labels are, together


def read_axis(name: str, given: Any) -> dict[Any, Any] | list[Any] | None:
    """Read the values of an axis, by their labels where there are some; None for a parameter with one value."""
    if isinstance(given, Mapping):
        if _is_description(name, given):
            return None
        if _OF_RANGE <= set(given) or (given and set(given) <= set(OF_NUMBERS)):
            return _spread_numbers(name, given)
        return {_check_label(name, label): value for label, value in given.items()}
    if isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise validation.fail(name, "an axis of one dimension", given)
        return list(given.tolist())
    return list(given) if isinstance(given, (list, tuple, range)) else None


def _is_description(name: str, table: Mapping[str, Any]) -> bool:
    """Tell whether a table is a value, and not an axis with labels, which may be "a" and "b" too."""
    if name in ("model", "stream"):
        return "kind" in table
    numbers = table.get("b", table.get("coefficients"))
    return name in ("target", "prefilter") and isinstance(numbers, (list, tuple, np.ndarray))


def _check_label(name: str, label: Any) -> Label:
    if isinstance(label, bool) or not isinstance(label, (str, int, float)):
        raise validation.fail(f"a label of {name}", "a word or a number", label)
    return label


def _spread_numbers(name: str, table: Mapping[str, Any]) -> list[Any]:
    """Spread numbers from start to stop, in equal steps or equal ratios."""
    check_known(f"the table of numbers of {name}", table, OF_NUMBERS)
    missing = [x for x in OF_NUMBERS[:3] if x not in table]
    if missing:
        raise ValueError(
            f"{name} must have the words start, stop and number, as a table of numbers; {missing[0]} is not there"
        )
    spacing = validation.choice(f"{name}.spacing", table.get("spacing", "linear"), ("linear", "log"))
    n = validation.integer(f"{name}.number", table["number"], 2, 10**6)
    above = 0.0 if spacing == "log" else -np.inf
    start, stop = (validation.number(f"{name}.{x}", table[x], above=above) for x in ("start", "stop"))
    values = (np.geomspace if spacing == "log" else np.linspace)(start, stop, n)
    whole = np.rint(values)
    if all(isinstance(table[x], int) for x in ("start", "stop")) and np.allclose(values, whole, rtol=1e-9, atol=0):
        return [int(x) for x in whole]
    return list(values.tolist())
