"""Columns of data frames of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpfast.signals.events.cell_texts import read_times
from dpfast.signals.events.columns import Column, find_names, without_data

_FRAME = "the DataFrame"


def read_pandas(frame: Any, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of a data frame; its index is none of them."""
    header = [name if isinstance(name, str) else "" for name in frame.columns]
    found = {}
    for name, pick in zip(names, find_names(_FRAME, header, names), strict=True):
        label = f"{_FRAME}: column {name!r}"
        with without_data(label):
            found[name] = _read_series(label, frame.iloc[:, pick])
    return found


def _read_series(label: str, series: Any) -> Column:
    if series.dtype == object:
        return Column.of_cells(label, series.tolist())
    codes, values = series.factorize()
    if getattr(values.dtype, "kind", "") == "M" and hasattr(values, "tz"):
        aware = values.tz is not None
        times = values.tz_convert("UTC").tz_localize(None) if aware else values
        return Column.of_values(label, read_times(times.to_numpy(), utc=aware), codes)
    return Column.of_values(label, values.tolist(), codes)
