"""Columns of what an SQL query gives, over any connection of Python's DB-API."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfast._support.errors import DataError
from dpfast.signals.events.cell_texts import CellText, read_cell
from dpfast.signals.events.columns import Column, find_names, without_data

_ROWS = 10_000  # fetched at once


@dataclass(frozen=True, eq=False)
class Query:
    """Take a log of events from a database: the rows that an SQL query gives.

    Parameters
    ----------
    connection : connection
        A connection of a driver that follows Python's DB-API 2.0 (PEP 249), such as `sqlite3`, `psycopg` or `duckdb`.
        It stays open, and so does the transaction in which drivers run a query.
    sql : str
        A SELECT, whose columns have the names that are asked for.
    parameters : sequence or mapping
        Values for the placeholders of the query, which the driver puts there.

    Notes
    -----
    *Privacy.* The query is a declaration, as the name of a file is: it must not be chosen by looking at the data. No
    error shows what the driver says, which may quote a value.

    Examples
    --------
    >>> import sqlite3, dpfast as dp
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE trips (start TEXT, district TEXT)")
    >>> _ = connection.execute("INSERT INTO trips VALUES ('2024-01-01T05:15', 'north')")
    >>> trips = dp.Query(connection, "SELECT start, district FROM trips WHERE start < ?", ("2025",))
    >>> span = dp.Span.parse("2024-01-01", "2024-01-02", "6h")
    >>> dp.count_events(trips, span, ["north", "south"], time="start", by="district").counts
    array([[1, 0, 0, 0],
           [0, 0, 0, 0]])
    """

    connection: Any = field(repr=False)
    sql: str = field(repr=False)
    parameters: Sequence[Any] | Mapping[str, Any] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.sql, str):
            raise ValueError(f"sql must be the text of a query, got a {type(self.sql).__name__}")
        if not callable(getattr(self.connection, "cursor", None)):
            kind = type(self.connection).__name__
            raise ValueError(f"connection must be one of Python's DB-API, with a method cursor, got a {kind}")


def read_query(query: Query, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of what a query gives."""
    with without_data("the query"):
        cursor = query.connection.cursor()
        try:
            cursor.execute(query.sql, *([query.parameters] if query.parameters else []))
            if cursor.description is None:
                raise DataError("the query must give rows, as a SELECT does, got none: give another query")
            picks = find_names("the query", [entry[0] for entry in cursor.description], names)
            labels = [f"the query: column {name!r}" for name in names]
            return dict(zip(names, _read_rows(cursor, picks, labels), strict=True))
        finally:
            cursor.close()


def _read_rows(cursor: Any, picks: Sequence[int], labels: Sequence[str]) -> list[Column]:
    known: list[dict[CellText | None, int]] = [{} for _ in picks]
    codes = [array("q") for _ in picks]
    columns = list(zip(picks, known, codes, strict=True))
    while rows := cursor.fetchmany(_ROWS):
        for row in rows:
            for pick, cells, column in columns:
                column.append(cells.setdefault(read_cell(row[pick]), len(cells)))
    return [
        Column.of_known(label, list(cells), np.array(column, np.int64))
        for label, cells, column in zip(labels, known, codes, strict=True)
    ]
