"""A table of a database with the estimates of stores: made of a store alone, and the same once more changes nothing."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.arbiters.place import PlaceLike
from dpfast.releases.batch import Release
from dpfast.releases.reading import read_release

_Key = tuple[int, str]  # step and series
_Content = tuple[str | None, float, float | None]  # start of the bin, estimate, error

_KEY = ("shard", "release_number", "step", "series")
_COLUMNS = (*_KEY, "bin_start", "estimate", "predicted_rmse_if_model_holds")
_TYPES = ("VARCHAR(255)", "INTEGER", "BIGINT", "VARCHAR(255)", "VARCHAR(32)", "DOUBLE PRECISION", "DOUBLE PRECISION")
_LONGEST = 255  # characters of a part of the key
_ROWS = 10_000  # inserted or fetched at once
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_STYLES = {"qmark": "?", "format": "%s", "pyformat": "%s", "numeric": ":{}", "named": ":c{}"}


def write_table(
    store: PlaceLike,
    connection: Any,
    *,
    shard: str,
    table: str = "estimates",
    release: int | str | None = None,
    published: str | os.PathLike[str] | None = None,
    paramstyle: str | None = None,
) -> int:
    """Write the estimates of a release into a table of a database, from its store; call it again to add new ones.

    Each estimate is a row: `shard`, `release_number` (in the store, from 1), `step`, `series` (the group, or the number
    of the stream), which are the primary key; `bin_start` (left edge of the bin in ISO 8601, where the store declares
    bins), `estimate`, and `predicted_rmse_if_model_holds`, which is NULL in rows that are added when v contradicts the
    model. Rows that are there already are compared, and those that are missing are added, in one transaction (but for
    a connection in autocommit). So call it again after a crash, at any time, and for a stream as often as it has gone
    on.

    Parameters
    ----------
    store : path-like or Postgres
        The private store, as for :func:`read_release`.
    connection : connection
        A connection of a driver that follows Python's DB-API 2.0 (PEP 249), without an open transaction; it stays open.
    shard : str
        The name of this store in the table; every store must have another name.
    table : str
        Name of the table, or schema and table with a dot; it is made where there is none.
    release : int or str, optional
        Number or name of the release; the last one by default.
    published : path-like, optional
        As for :func:`read_release`.
    paramstyle : str, optional
        How the driver writes placeholders: "qmark", "format", "pyformat", "numeric" or "named", where its module does
        not say so.

    Returns
    -------
    int
        How many rows were added.

    Raises
    ------
    ReleaseError
        Where the table has other content for these steps of the shard and release; nothing is written then.
    DataError
        Where the database refuses. The error shows nothing that the driver says.
    ValueError
        For names that cannot be used, and a driver that is none of the DB-API.

    Notes
    -----
    *Privacy.* All that is written was published; it costs nothing.

    Examples
    --------
    >>> import dpfast as dp, sqlite3, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> connection = sqlite3.connect(":memory:")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = dp.release(mechanism, np.array([0, 2, 1]), folder + "/store", dp.Inputs(0, 20))
    ...     dp.write_table(folder + "/store", connection, shard="north")
    ...     dp.write_table(folder + "/store", connection, shard="north")
    3
    0
    """
    _check_text("shard", shard)
    _check_table(table)
    mark = _STYLES[_find_style(connection, paramstyle)]
    result = read_release(store, release, published=published)
    rows = dict(_rows(result))
    try:
        with _transaction(connection) as cursor:
            _execute(cursor, mark, _create(table), ())
            found = dict(_find_rows(cursor, mark, table, (shard, result.number), rows))
            _check_found(found, rows, table, shard, result.number)
            missing = [(shard, result.number, *key, *rows[key]) for key in rows if key not in found]
            _insert(cursor, mark, table, missing)
    except ReleaseError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a driver raises; its text may quote what is in the database
        raise DataError(
            f"the table {table} cannot be written, by an error of the kind {type(error).__name__} of its driver, whose "
            f"text is not shown, as it may quote what it holds; what was released is in the store {store}: put that "
            "right and call the same again, which adds what is missing and nothing else"
        ) from None
    return len(missing)


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST:
        raise validation.fail(name, f"a printable name of at most {_LONGEST} characters", value)


def _check_table(table: Any) -> None:
    if not isinstance(table, str) or not _TABLE.fullmatch(table):
        raise validation.fail("table", "a name of letters, digits and underscores, or two with a dot between", table)


def _find_style(connection: Any, style: str | None) -> str:
    """Return how the driver of a connection writes placeholders."""
    if not all(callable(getattr(connection, name, None)) for name in ("cursor", "commit", "rollback")):
        must_be = "connection must be one of Python's DB-API, with cursor, commit and rollback"
        raise ValueError(f"{must_be}, got a {type(connection).__name__}")
    if style is None:
        modules = (sys.modules.get(kind.__module__.partition(".")[0]) for kind in type(connection).__mro__)
        style = next((found for module in modules if (found := getattr(module, "paramstyle", None))), None)
    if style is None:
        raise ValueError(f"paramstyle must be given for a {type(connection).__name__}, one of {', '.join(_STYLES)}")
    return validation.choice("paramstyle", style, _STYLES)


# --- rows -----------------------------------------------------------------------------------------


def _rows(result: Release) -> Iterator[tuple[_Key, _Content]]:
    """Yield the content of each row under its key within a release, step by step."""
    of_each = result.output_rmse_if_model_holds
    series = result.outputs or tuple(map(str, range(len(of_each or result.privatized))))
    for name in series:
        _check_text("groups", name)
    error = result.predicted_rmse_if_model_holds
    errors = of_each or (error,) * len(series)
    contradicted = result.model_check.agrees is False
    shown = [None if x is None or contradicted else float(f"{x:.6g}") for x in errors]
    values = result.estimate.T.tolist()
    starts = [None] * len(values) if result.times is None else _edges(result, result.times)
    for step, (start, row) in enumerate(zip(starts, values, strict=True), result.first):
        for name, value, of_series in zip(series, row, shown, strict=True):
            yield (step, name), (start, value, of_series)


def _edges(result: Release, times: NDArray[np.datetime64]) -> list[str]:
    zone: Any = "UTC" if (result.declared or {}).get("zone") == "UTC" else "naive"
    texts: list[str] = np.datetime_as_string(times, unit="us", timezone=zone).tolist()
    return texts


def _check_found(
    found: Mapping[_Key, _Content], rows: Mapping[_Key, _Content], table: str, shard: str, number: int
) -> None:
    """Refuse rows that are there and are not of this release."""
    for (step, name), content in found.items():
        if not _is_same(content, rows.get((step, name))):
            raise ReleaseError(
                f"the table {table} has other content than this store for shard {shard!r}, release {number}, step "
                f"{step}, series {name!r}: give the store a shard of its own; nothing was written"
            )


def _is_same(content: _Content, wanted: _Content | None) -> bool:
    if wanted is None or content[:2] != wanted[:2]:
        return False
    if wanted[2] is None:
        return True  # a row of a stream that was added before v contradicted the model states an error
    if content[2] is None:
        return False
    return math.isclose(content[2], wanted[2], rel_tol=2e-5)  # another machine may round it otherwise


# --- the database ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _transaction(connection: Any) -> Iterator[Any]:
    """Give a cursor, and commit what it did, or nothing of it."""
    try:
        cursor = connection.cursor()
        yield cursor
        cursor.close()
        connection.commit()
    except BaseException:
        with contextlib.suppress(Exception):
            connection.rollback()
        raise


def _create(table: str) -> str:
    columns = [f"{name} {kind}" for name, kind in zip(_COLUMNS, _TYPES, strict=True)]
    needed = [f"{x} NOT NULL" if x.split()[0] in (*_KEY, "estimate") else x for x in columns]
    return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(needed)}, PRIMARY KEY ({', '.join(_KEY)}))"


def _find_rows(
    cursor: Any, mark: str, table: str, shard: tuple[str, int], rows: Mapping[_Key, _Content]
) -> Iterator[tuple[_Key, _Content]]:
    """Yield what the table has of a shard and release at the steps of some rows."""
    steps = [step for step, _ in rows] or [0]
    where = "shard = ? AND release_number = ? AND step >= ? AND step <= ?"
    query = f"SELECT {', '.join(_COLUMNS[2:])} FROM {table} WHERE {where}"
    _execute(cursor, mark, query, (*shard, steps[0], steps[-1]))
    while some := cursor.fetchmany(_ROWS):
        for row in some:
            step, name, start, estimate, error = row.values() if isinstance(row, Mapping) else row
            yield (int(step), name), (start, float(estimate), None if error is None else float(error))


def _insert(cursor: Any, mark: str, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    statement = f"INSERT INTO {table} ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    for first in range(0, len(rows), _ROWS):
        some = [_name_values(mark, row) for row in rows[first : first + _ROWS]]
        cursor.executemany(_mark_places(mark, statement), some)


def _execute(cursor: Any, mark: str, statement: str, values: tuple[Any, ...]) -> None:
    cursor.execute(_mark_places(mark, statement), *([_name_values(mark, values)] if values else []))


def _mark_places(mark: str, statement: str) -> str:
    """Write the placeholders of a driver for the question marks of a statement."""
    parts = statement.split("?")
    return "".join(itertools.chain(*zip(parts, (*(mark.format(i) for i in range(1, len(parts))), ""), strict=True)))


def _name_values(mark: str, values: tuple[Any, ...]) -> Any:
    return {f"c{i}": x for i, x in enumerate(values, 1)} if mark == _STYLES["named"] else values
