"""Names of axes and labels of a sweep, as pictures and pages write them."""

from __future__ import annotations

from dpfast.mechanisms.lags import SMOOTHER
from dpfast.simulation.sweep.block_levels import BEST
from dpfast.simulation.sweep.parameters import Label

_SIGNS = {"epsilon": "ε", "delta": "δ"}
_NAMED = {"lag", "length", "shares"}  # whose words say nothing without the name
_WHOLE: dict[tuple[str, Label], str] = {
    ("model", None): "no model",
    ("shares", None): "equal shares",
    ("unit", None): "no unit",
    ("length", BEST): "best length",
}


def label_text(axis: str, label: Label) -> str:
    """Write a label in words."""
    if axis == "lag" and label == SMOOTHER:
        return SMOOTHER
    if (axis, label) in _WHOLE:
        return _WHOLE[axis, label]
    text = f"{label:.4g}" if isinstance(label, float) else str(label)
    named = axis in _NAMED or axis in _SIGNS or isinstance(label, (int, float)) or label is None
    return f"{axis_name(axis)} {text}" if named else text


def axis_name(axis: str) -> str:
    """Name an axis."""
    return _SIGNS.get(axis, axis.replace("_", " "))


def axis_title(axis: str, *, has_smoother: bool = False) -> str:
    """Return what is written along an axis."""
    if axis == "lag":
        return "lag (∞: smoother)" if has_smoother else "lag (samples)"
    return axis_name(axis)
