"""A log of events as a source of named columns: a file, a data frame or a query; what reads them knows no more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpfast._support.dataframes import is_of_class
from dpfast.signals.events.arrow_columns import read_arrow_stream, read_parquet
from dpfast.signals.events.columns import Column
from dpfast.signals.events.csv_columns import read_csv
from dpfast.signals.events.packed_files import PARQUET, open_content
from dpfast.signals.events.pandas_columns import read_pandas
from dpfast.signals.events.query_columns import Query, read_query


def read_columns(log: Any, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of a log.

    Parameters
    ----------
    log : path-like, DataFrame or Query
        A CSV file in UTF-8, plain or packed by gzip, bzip2 or zstd, or a Parquet file, which are told by their content;
        a data frame of pandas, or what has Arrow's interface of streams, as one of polars.
    names : sequence of str
        Of columns, each of which is there once; others are not read.

    Raises
    ------
    DataError
        Where it cannot be read whole; the message says where, never what.
    ValueError
        For another kind of log.
    """
    names = list(dict.fromkeys(names))
    if isinstance(log, Query):
        return read_query(log, names)
    if is_of_class(log, "pandas", "DataFrame"):
        return read_pandas(log, names)
    if hasattr(log, "__arrow_c_stream__"):
        return read_arrow_stream(log, names)
    if isinstance(log, str | os.PathLike):
        return _read_file(Path(log), names)
    kind = type(log).__name__
    hint = ": collect it" if kind == "LazyFrame" else ""
    raise ValueError(f"log must be the path of a file, a DataFrame of pandas or polars, or a Query, got a {kind}{hint}")


def _read_file(file: Path, names: Sequence[str]) -> dict[str, Column]:
    with open_content(file) as (kind, content):
        return read_parquet(file, content, names) if kind == PARQUET else read_csv(file, content, names)
