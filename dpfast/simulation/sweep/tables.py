"""Tables of a sweep: tidy, short, and of winners; as a pandas DataFrame and as a Parquet file."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpfast._support import validation
from dpfast._support.text_table import Table
from dpfast.mechanisms.lags import SMOOTHER
from dpfast.simulation.study import rmse_ratio
from dpfast.simulation.sweep.grid import Point
from dpfast.simulation.sweep.parameters import Label
from dpfast.simulation.sweep.rows import FIGURES, OF_DECISIONS, OUTPUT, Cell, Row, constant_rows

_BESIDE = ("predicted_rmse", "lower_bound_rmse", "explained")
_SHORT = ("rmse", "low", "high", *_BESIDE, "n_streams", *OF_DECISIONS, "stopped")
_ASIDE = "interval_by", "error_events", "n_streams", "stopped", "lower_bound_rmse"  # where there is no room
IN_PARENTHESES = "In parentheses: what a mechanism does not take, so that its figures are the same for every value."
VERDICT = ("least error", "RMSE", "low", "high", "constant's RMSE", "nearest", "its RMSE, times", "state")


def tidy_table(rows: Iterable[Row], points: Iterable[Point], axes: Iterable[str]) -> Table:
    """Write a row for each point, labels of the axes, other parameters and figures; then the constant of each group."""
    by_number = {x.number: x for x in rows}
    settings = dict.fromkeys(name for row in by_number.values() for name in row.settings)
    columns = (*dict.fromkeys([*axes, *settings]), *output_column(by_number.values()), *FIGURES)
    figures = {number: output_figures(row) for number, row in by_number.items()}
    cells = [{**by_number[x.case].settings, **x.labels, **each} for x in points for each in figures[x.case]]
    cells += constant_rows(by_number.values())
    return Table(columns, tuple(tuple(cell.get(name) for name in columns) for cell in cells))


def output_figures(row: Row) -> list[dict[str, Any]]:
    """Return what tables show of a row and, where there are several outputs, of each of these behind it."""
    return [{**x.figures(), OUTPUT: output} for output, x in zip(row.output_labels, row.with_outputs, strict=True)]


def output_column(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the column that tells outputs apart, where there are several."""
    return (OUTPUT,) if any(x.is_of_several for x in rows) else ()


def short_table(rows: Iterable[Row], points: Sequence[Point], axes: Sequence[str], n_points: int | None) -> Table:
    """Write the columns that matter most, for the first points and their constants.

    What a mechanism does not take stands in parentheses, and "failed" in the place of the RMSE of a case without a
    design, since a terminal or a notebook may have no room for what stopped it.
    """
    by_number, found = {x.number: x for x in rows}, []
    columns, axes = drop_decision_columns(_SHORT, by_number.values()), add_mechanism_axis(axes)
    columns = [*output_column(by_number.values()), *columns]
    shown = [(by_number[x.case], x.labels) for x in points[:n_points]]
    for row, labels in shown:
        known = {**row.settings, **labels}
        told = [label_text(x, known[x], row) for x in axes]
        failed = {"rmse": "failed"} if row.failed else {}
        found += [(*told, *({**figures, **failed}[x] for x in columns)) for figures in output_figures(row)]
    found += [tuple(mean.get(x) for x in (*axes, *columns)) for mean in constant_rows(row for row, _ in shown)]
    return Table((*axes, *columns), tuple(found))


def print_short(table: Table, rest: str, confidence: float) -> str:
    """Render a short table, or one of winners, for a terminal; `rest` has the columns for which there is no room.

    Errors keep their intervals in the same cell, and parameters of the grid become headings before figures are left
    out.
    """
    error = next(x for x in ("rmse", VERDICT[1]) if x in table.columns)
    heads = [x for x in table.columns[: table.columns.index(error)] if x not in ("mechanism", OUTPUT, VERDICT[0])]
    return table.join_interval(error, confidence).text(aside=_ASIDE, heads=heads, rest=rest)


def add_mechanism_axis(axes: Iterable[str]) -> tuple[str, ...]:
    """Put the mechanism before the axes where it is none of them: it tells rows and constants apart."""
    known = tuple(axes)
    return known if "mechanism" in known else ("mechanism", *known)


def drop_decision_columns(columns: Iterable[str], rows: Iterable[Row]) -> list[str]:
    """Drop the columns that are for decisions where no receiver decides."""
    decide = any(x.sizes is not None for x in rows)
    return [x for x in columns if decide or x not in OF_DECISIONS]


def winners_table(cells: Sequence[Cell], name: Callable[[Cell, Row], str] = Cell.name) -> Table:
    """Write who errs least in every cell, its RMSE with an interval, that of the constant, and that of the nearest."""
    axes = tuple(cells[0].labels) if cells else ()
    rows = tuple((*cell.labels.values(), *_verdict(cell, name)) for cell in cells)
    return Table((*axes, *VERDICT), rows)


def label_text(name: str, label: Label, row: Row) -> Label:
    """Put a label in parentheses where the mechanism does not take that parameter: it is the same for all values."""
    if label is None or name in (*row.settings, "mechanism"):
        return label
    return f"({label:g})" if isinstance(label, float) else f"({label})"


def has_parentheses(points: Iterable[Point], rows: Iterable[Row]) -> bool:
    """Tell whether a table of points has labels in parentheses."""
    by_number = {x.number: x for x in rows}
    return any(label_text(name, x, by_number[point.case]) != x for point in points for name, x in point.labels.items())


def _verdict(cell: Cell, name: Callable[[Cell, Row], str]) -> tuple[Any, ...]:
    best, second = cell.best, cell.second
    behind = (None, None) if second is None else (name(cell, second), paired_ratio(second, best))
    constant = None if best.variance is None else math.sqrt(best.variance)
    return name(cell, best), best.rmse, *best.interval, constant, *behind, cell.state


def paired_ratio(second: Row, best: Row) -> float:
    """Return the ratio of the RMSE on the streams of both."""
    n = min(len(second.batch_means), len(best.batch_means))
    return rmse_ratio(second.batch_means[:n], best.batch_means[:n])


def type_columns(table: Table) -> dict[str, list[Any]]:
    """Make columns of one type each: integers, numbers, words or truth values, with None where there is nothing.

    Behind a column of lags comes one that tells whether it is the smoother, which has no number there.
    """
    found: dict[str, list[Any]] = {}
    for name, *values in zip(table.columns, *table.rows, strict=True):
        if name == "lag" and all(isinstance(x, int) for x in values if x not in (None, SMOOTHER)):
            found[name] = [None if x == SMOOTHER else x for x in values]
            found[SMOOTHER] = [None if x is None else x == SMOOTHER for x in values]
        else:
            found[name] = _unify_types(values)
    return found


def build_frame(table: Table) -> Any:
    """Build a pandas DataFrame; columns of integers and truth values that have gaps are of pandas' nullable types."""
    pandas = validation.optional("pandas", "pandas")
    columns = {
        name: pandas.Series(x, dtype=_NULLABLE.get(_column_type(name, x))) for name, x in type_columns(table).items()
    }
    return pandas.DataFrame(columns)


_NULLABLE: dict[type | None, str] = {int: "Int64", bool: "boolean"}


def _column_type(name: str, values: Sequence[Any]) -> type | None:
    """Tell integers or truth values with gaps; None where the values tell their type by themselves."""
    kinds = {type(x) for x in values} - {type(None)}
    if name in _ALWAYS:
        return _ALWAYS[name] if kinds <= {_ALWAYS[name]} else None
    return next((x for x in (int, bool) if kinds == {x} and None in values), None)


_ALWAYS: dict[str, type] = {"lag": int, SMOOTHER: bool}  # without gaps too, and with nothing else


def parquet_bytes(table: Table, about: Mapping[str, Any]) -> bytes:
    """Write a Parquet file: columns of numbers, or of words where there are any among them; `about` in its metadata."""
    arrow = validation.optional("pyarrow", "parquet")
    writer = validation.optional("pyarrow.parquet", "parquet")
    columns = type_columns(table)
    names: dict[type | None, Any] = {int: arrow.int64(), bool: arrow.bool_()}
    arrays = [arrow.array(x, names.get(_column_type(name, x))) for name, x in columns.items()]
    whole = arrow.Table.from_arrays(arrays, names=list(columns))
    metadata = {"dpfast": json.dumps(about), "pandas": json.dumps(_pandas_metadata(columns))}
    buffer = io.BytesIO()
    writer.write_table(whole.replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()


def _pandas_metadata(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Tell pandas to read columns with gaps as :func:`build_frame` has them, and not as floats."""
    kinds = {name: _NULLABLE[x] for name, values in columns.items() if (x := _column_type(name, values)) in _NULLABLE}
    told = [
        {"name": name, "field_name": name, "pandas_type": x.lower(), "numpy_type": x, "metadata": None}
        for name, x in kinds.items()
    ]
    return {"index_columns": [], "column_indexes": [], "columns": told}


def _unify_types(values: Sequence[Any]) -> list[Any]:
    """Give a column one type: numbers beside words are written as words."""
    if any(isinstance(x, str) for x in values):
        return [None if x is None else str(x) for x in values]
    if any(isinstance(x, float) for x in values):
        return [None if x is None else float(x) for x in values]
    return list(values)
