"""Numbers for each level of groups of blocks: an integer for one level, several in a tuple for groups of groups."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation
from dpfast.mechanisms.serialization.json_fields import Fields

Levels = int | tuple[int, ...]


def check_levels(name: str, value: object, least: int, most: int | None = None) -> tuple[int, ...]:
    """Return an integer, or several ones, as a tuple; refuse what is neither.

    Examples
    --------
    >>> check_levels("slack", 6, 0), check_levels("slack", [4, 6], 0)
    ((6,), (4, 6))
    """
    given: Any = value if validation.is_several(value) else (value,)
    if len(given) == 0:
        raise validation.fail(name, "an integer, or one for each level of groups", value)
    return tuple(validation.integer(name, x, least, most) for x in given)


def given_levels(numbers: tuple[int, ...]) -> Levels:
    """Return what was given for several levels of groups: for one of them the integer itself.

    Examples
    --------
    >>> given_levels((6,)), given_levels((4, 6))
    (6, (4, 6))
    """
    return numbers[0] if len(numbers) == 1 else numbers


def take_levels(fields: Fields, name: str, least: int) -> tuple[int, ...]:
    """Take integers of each level of groups out of a field."""
    return check_levels(fields.path(name), fields.take(name), least)
