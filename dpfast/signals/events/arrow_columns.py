"""Columns of Parquet files, and of whatever gives itself as Arrow does: data frames of polars, results of DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast.signals.events.cell_texts import read_times
from dpfast.signals.events.columns import Column, find_names, without_data


def read_parquet(file: Path, content: IO[bytes], names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of a Parquet file, and no others."""
    parquet = validation.optional("pyarrow.parquet", "parquet")
    with without_data(file), parquet.ParquetFile(content) as source:
        find_names(file, source.schema_arrow.names, names)
        return _read_table(file, source.read(columns=list(names)), names)


def read_arrow_stream(log: Any, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of an object with Arrow's interface of streams."""
    arrow = validation.optional("pyarrow", "parquet")
    said = f"the {type(log).__name__}"
    with without_data(said):
        return _read_table(said, arrow.table(log), names)


def _read_table(log: object, table: Any, names: Sequence[str]) -> dict[str, Column]:
    picks = find_names(log, table.column_names, names)
    found = {}
    for name, pick in zip(names, picks, strict=True):
        label = f"{log}: column {name!r}"
        with without_data(label):
            found[name] = Column.of_values(label, *_number_values(table.column(pick)))
    return found


def _number_values(column: Any) -> tuple[Sequence[Any], NDArray[Any]]:
    """Return distinct values of a column, and which of them each row has, -1 for none."""
    types = validation.optional("pyarrow.types", "parquet")
    if types.is_dictionary(column.type):
        array = column.unify_dictionaries().combine_chunks()
    else:
        array = column.dictionary_encode().combine_chunks()
    if hasattr(array, "chunks"):  # of no rows, in some versions
        return [], np.empty(0, np.int64)
    codes = array.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return _read_values(types, array.dictionary), codes


def _read_values(types: Any, values: Any) -> Sequence[Any]:
    if types.is_timestamp(values.type) or types.is_date(values.type):
        return read_times(values.to_numpy(zero_copy_only=False), utc=getattr(values.type, "tz", None) is not None)
    listed: list[Any] = values.to_pylist()
    return listed
