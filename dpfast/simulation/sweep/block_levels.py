"""Lengths of block sums and shares of ε as values of a grid: a number, or several as one value, for nested blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast.design.block_arguments import check_lengths, check_shares
from dpfast.simulation.sweep.labels import number_text

BEST = "best"  # the length that the design finds
_LENGTHS = 'an integer; several nested ones as one value, [21, 252] or "21, 252"; or "best"'
_SHARES = 'several numbers as one value, [0.55, 0.45] or "0.55, 0.45", in the list that is an axis'


def read_length(given: Any) -> int | tuple[int, ...] | None:
    """Read a length, or those of nested blocks; None for the one that the design finds.

    Examples
    --------
    >>> read_length(21), read_length("21, 252"), read_length([21]), read_length("best")
    (21, (21, 252), 21, None)
    """
    if given is None or (isinstance(given, str) and given == BEST):
        return None
    several = _numbers("length", given, _LENGTHS)
    whole = [int(x) if isinstance(x, float) and x.is_integer() and isinstance(given, str) else x for x in several]
    lengths = check_lengths(whole, None)
    return lengths if len(lengths) > 1 else lengths[0]


def read_shares(given: Any) -> tuple[float, ...] | None:
    """Read the shares of several levels; None for equal ones.

    Examples
    --------
    >>> read_shares("0.55, 0.45"), read_shares(None)
    ((0.55, 0.45), None)
    """
    if given is None:
        return None
    if isinstance(given, (int, float, np.number)):  # of one level, which has all: somebody forgot a pair of brackets
        raise validation.fail("shares", _SHARES, given)
    several = _numbers("shares", given, _SHARES)
    if not several:
        raise validation.fail("shares", _SHARES, given)
    return check_shares(several, len(several))


def _numbers(name: str, given: Any, must_be: str) -> list[Any]:
    """List the numbers of one value: of a number, a sequence, or text with commas."""
    if isinstance(given, str):
        try:
            return [float(x) for x in given.split(",")]
        except ValueError:
            raise validation.fail(name, must_be, given) from None
    if isinstance(given, np.ndarray):
        given = given.tolist()
    return list(given) if isinstance(given, (list, tuple)) else [given]


def label_levels(given: int | tuple[float, ...] | None) -> int | str | None:
    """Label a length by itself, and several numbers by a text that can be read again.

    Examples
    --------
    >>> label_levels((21, 252)), label_levels((0.55, 0.45)), label_levels(21)
    ('21, 252', '0.55, 0.45', 21)
    """
    return ", ".join(number_text(x) for x in given) if isinstance(given, tuple) else given


def fit_together(given: Mapping[str, Any]) -> bool:
    """Tell whether shares, if there are any, are as many as lengths."""
    shares, length = given.get("shares"), given.get("length")
    return shares is None or (length is not None and len(shares) == (len(length) if isinstance(length, tuple) else 1))
