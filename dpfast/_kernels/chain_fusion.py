"""Stages of a chain that run as one: in tiles that stay in registers, with the bits of one stage after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import chain_program as kinds

Array = NDArray[Any]
Stage = dict[str, Any]  # fields by name

_ALONE = (
    "lag",
    "late",
    "n_minus",
    "n_squares",
    "n_a",
    "n",
)  # of a filter, zero where it has sections and one term alone


def fuse_stages(stages: list[Stage], coefficients: Array) -> tuple[list[Stage], Array]:
    """Draw two levels as a stage behind would shift them, and in one pass with the sections and noise that read them.

    For chains that may run beyond the last sample, as nobody asks for their states.
    """
    stages, coefficients = _shift_levels(stages, coefficients)
    fused: list[Stage] = []
    for stage in stages:
        levels = _find_levels(fused, stage)
        if levels is not None and _are_first_pass(levels, stage):
            fused = [x for x in fused if x is not levels]
            drawn = {"drawn": levels["place"], "a": levels["a"], "levels": levels["levels"]}
            fused.append({**stage, **drawn, "kind": kinds.FIRST_PASS})
        else:
            fused.append(stage)
    return fused, coefficients


def _find_levels(stages: list[Stage], reader: Stage) -> Stage | None:
    """Return the stage that draws what a filter reads, where none has read it before; else None."""
    signal = reader.get("x")
    if signal is None or _readers(stages, signal):
        return None
    return next((x for x in stages if x["kind"] == kinds.TWO_LEVELS and x["out"] == signal), None)


def _is_plain_filter(stage: Stage) -> bool:
    return stage["kind"] == kinds.FILTER and not any(stage.get(name, 0) for name in _ALONE)


def _are_first_pass(levels: Stage, filter: Stage) -> bool:
    if levels["kind"] != kinds.TWO_LEVELS or not _is_plain_filter(filter) or filter["x"] != levels["out"]:
        return False
    return bool(filter["n_b"] > 0 and filter.get("n_noise", 0) and not filter.get("n_plus", 0))


def _shift_levels(stages: list[Stage], coefficients: Array) -> tuple[list[Stage], Array]:
    """Draw shifted levels where nobody reads the others, rounded as the sum would be."""
    for levels in stages:
        readers = _readers(stages, levels["out"])
        if levels["kind"] == kinds.TWO_LEVELS and len(readers) == 1 and _is_shift(readers[0], stages):
            (shift,) = readers
            two = coefficients[levels["levels"] : levels["levels"] + 2] + coefficients.dtype.type(shift["scale"])
            drawn = {**levels, "out": shift["out"], "levels": len(coefficients)}
            others = [drawn if x is levels else x for x in stages if x is not shift]
            if not _readers(others, shift["plus"]):
                others = [x for x in others if x["out"] != shift["plus"]]
            return _shift_levels(others, np.append(coefficients, two))  # of other channels
    return stages, coefficients


def _readers(stages: list[Stage], signal: int) -> list[Stage]:
    return [stage for stage in stages if signal in (stage.get("x"), stage.get("minus"), stage.get("plus"))]


def _is_shift(stage: Stage, stages: list[Stage]) -> bool:
    """Tell whether a stage adds a constant, and does nothing else."""
    if not _is_plain_filter(stage) or stage["n_b"] > 0 or not stage.get("n_plus", 0):
        return False
    added = next(x for x in stages if x["out"] == stage["plus"])
    return bool(added["kind"] == kinds.STEP and added["scale"] == 1.0 and added["start"] <= 0)
