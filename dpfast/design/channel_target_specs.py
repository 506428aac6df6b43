"""Read targets of several streams, and a model of each, from the descriptions that ``dpfast design`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpfast._support import validation
from dpfast.design.target_and_model_specs import parse_model, parse_target
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix, differences, total
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model

MIXED = "total:moving-average:12, differences:exponential:0.9, each:ba:1/1,-0.5, or rows of filters in a file"


def _each(m: int) -> FilterMatrix:
    return FilterMatrix.diagonal([1.0] * m)


_FEWEST_OF_DIFFERENCES = 2
_MIXES: dict[str, Callable[[int], FilterMatrix]] = {"total": total, "differences": differences, "each": _each}


def mixes_streams(spec: Any) -> bool:
    """Tell whether a description is that of a target of several streams."""
    if isinstance(spec, str):
        return spec.partition(":")[0] in _MIXES
    return isinstance(spec, Sequence)


def parse_matrix(spec: Any, m: int) -> FilterMatrix:
    """Return the target of m streams that a description names.

    Parameters
    ----------
    spec : str or sequence
        ``total``, ``differences`` (of each stream and the one before it) or ``each``, and behind a colon the filter
        that smooths them, as :func:`parse_target` reads it; or a row for each output, with an entry for each stream: a
        number, which is a gain, or what :func:`parse_target` reads.
    m : int

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_matrix("differences:exponential:0.75", 2)[0, 1]
    Filter([0.25], [1.0, -0.75])
    >>> parse_matrix([[1, "moving-average:2"]], 2)[0, 1]
    Filter([0.5, 0.5], [1.0])
    """
    if isinstance(spec, str) and mixes_streams(spec):
        kind, colon, filter = spec.partition(":")
        if kind == "differences" and m < _FEWEST_OF_DIFFERENCES:
            raise ValueError(f"groups must be at least {_FEWEST_OF_DIFFERENCES} for the target {kind!r}, got {m}")
        mixed = _MIXES[kind](m)
        return mixed * parse_target(filter) if colon else mixed
    if not mixes_streams(spec):
        raise ValueError(
            f"target must say what becomes of several streams, {MIXED}; got {spec!r}: say each:{spec} for each of them "
            "alone"
        )
    for row in spec:
        if isinstance(row, str | Mapping) or not isinstance(row, Sequence) or len(row) != m:
            raise validation.fail("target", f"rows of {m} entries, one for each stream", row)
    return FilterMatrix([[_parse_entry(x) for x in row] for row in spec])


def _parse_entry(x: Any) -> Filter | float:
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) else parse_target(x)


def parse_models(spec: Any, source: Provenance, m: int) -> tuple[Model, ...]:
    """Return a model for each of m streams: one description for all, or a sequence of m of them.

    Examples
    --------
    >>> [x.mean for x in parse_models(["arma:1@3", "arma:1/1,-0.5@2"], "assumed", 2)]
    [3.0, 2.0]
    """
    several = [spec] * m if isinstance(spec, str | Mapping) or not isinstance(spec, Sequence) else list(spec)
    if len(several) == 1:
        several *= m
    if len(several) != m:
        raise ValueError(f"model must be one for all streams, or one for each of the {m}, got {len(several)}")
    return tuple(parse_model(x, source) for x in several)
