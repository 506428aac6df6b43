"""The tidy table of a sweep as a Parquet file."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dpfast import _validate
from dpfast.report.table import Table


def parquet(table: Table, about: Mapping[str, Any]) -> bytes:
    """A Parquet file: a column of numbers, or of words where there are any among them; `about` in its metadata."""
    arrow = _validate.optional("pyarrow", "parquet")
    writer = _validate.optional("pyarrow.parquet", "parquet")
    columns = [arrow.array(_alike([row[i] for row in table.rows])) for i in range(len(table.columns))]
    whole = arrow.Table.from_arrays(columns, names=list(table.columns))
    buffer = io.BytesIO()
    writer.write_table(whole.replace_schema_metadata({"dpfast": json.dumps(about)}), buffer)
    return buffer.getvalue()


def _alike(values: Sequence[Any]) -> list[Any]:
    """A column has one type: numbers beside words are written as words."""
    if any(isinstance(x, str) for x in values):
        return [None if x is None else str(x) for x in values]
    if any(isinstance(x, float) for x in values):
        return [None if x is None else float(x) for x in values]
    return list(values)
