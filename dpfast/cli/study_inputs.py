"""Grids of a study's file that are of several streams: how many inputs there are, and targets that mix them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpfast._support import validation
from dpfast.design.channel_target_specs import mixes_streams, parse_matrix
from dpfast.simulation.sweep.several_streams import MODELS

_ONE_TARGET = {"b", "coefficients"}  # of which a table is a target, and no axis with labels


def read_inputs(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a grid as a sweep takes it: without the word "inputs", which says that it is of several streams.

    Then its targets are described as for ``dpfast design --groups``, and a model that is one is that of each input.

    Parameters
    ----------
    part : mapping
        The parameters of a table ``[grid]``.

    Raises
    ------
    ValueError
        For a target that mixes streams of which nothing says how many there are, and for one that cannot be read.
    """
    given = dict(part)
    if "inputs" not in given:
        mixing = next((x for x in _targets(given.get("target")) if isinstance(x, list) or mixes_streams(x)), None)
        if mixing is not None:
            raise ValueError(
                f"inputs must be given in the grid for a target that mixes streams, got {mixing!r}: say inputs = 3 for "
                "three of them"
            )
        return given
    m = validation.integer("inputs", given.pop("inputs"), 1)
    if "target" in given:
        given["target"] = _read_targets(given["target"], m)
    return given | {name: _read_models(given[name], m) for name in MODELS if name in given}


def _targets(spec: Any) -> Iterator[Any]:
    """Give the targets that are one value or an axis."""
    if isinstance(spec, list):
        yield from spec
    elif isinstance(spec, Mapping) and not _ONE_TARGET & set(spec):
        yield from spec.values()
    elif isinstance(spec, str):
        yield spec


def _read_targets(spec: Any, m: int) -> Any:
    if isinstance(spec, Mapping) and not _ONE_TARGET & set(spec):
        return {label: parse_matrix(x, m) for label, x in spec.items()}
    if isinstance(spec, list) and spec and all(isinstance(x, str) for x in spec):
        if len(set(spec)) < len(spec):
            raise ValueError(f"target must have every value once, got {spec!r}")
        return {x: parse_matrix(x, m) for x in spec}
    return parse_matrix(spec, m)


def _read_models(spec: Any, m: int) -> Any:
    """Return a model for each input where there is one for all, also behind labels."""
    if isinstance(spec, Mapping) and "kind" not in spec:
        return {label: _read_models(x, m) for label, x in spec.items()}
    return [spec] * m if isinstance(spec, str | Mapping) else spec
