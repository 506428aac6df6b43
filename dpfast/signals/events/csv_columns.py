"""Columns of CSV files, read whole or refused; messages say where, never what: it may be private."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError
from dpfast.signals.events.columns import Column, find_names

# Each digit fits one place alone: else a field of many digits and a letter takes minutes.
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)


def parse_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Read each text as a number, NaN for what is none."""
    # The pattern keeps out what float() takes beside numbers, such as "1_000".
    return np.array([float(text) if NUMBER.fullmatch(text) else np.nan for text in map(str.strip, texts)], np.float64)


def read_csv(file: Path, content: IO[bytes], names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of the content of a CSV file."""
    try:
        with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
            return _read_text(file, text, names)
    except UnicodeDecodeError:
        raise DataError(f"{file} must be a CSV file in UTF-8, got other bytes: export it as UTF-8") from None


def _read_text(file: Path, text: io.TextIOWrapper, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of an open CSV file."""
    rows = csv.reader(text, strict=True)
    try:
        header = next(rows, [])
        picks = find_columns(file, header, names)
        known: list[dict[str, int]] = [{} for _ in picks]
        codes = [array("q") for _ in picks]
        lines, columns = array("q"), list(zip(picks, known, codes, strict=True))
        for row in _check_widths(file, rows, len(header)):
            lines.append(rows.line_num)
            for pick, texts, column in columns:
                column.append(texts.setdefault(row[pick], len(texts)))
    except csv.Error as error:
        raise DataError(f"{file}: line {rows.line_num} must be valid CSV: {error}") from None
    return {
        name: Column(
            f"{file}: column {name!r}", list(texts), np.array(column), np.array(lines), "line", [True] * len(texts)
        )
        for name, texts, column in zip(names, known, codes, strict=True)
    }


def find_columns(file: object, header: list[str], names: Sequence[str]) -> list[int]:
    """Find the positions of the named columns of a CSV file, or of what else is named so in messages."""
    if not header:
        raise DataError(f"{file} must begin with a line of column names, got an empty file or line: add one")
    if any("\0" in name for name in header):
        raise DataError(f"{file} must be a CSV file, got a binary file: export the log as CSV or Parquet")
    return find_names(file, header, names)


def _check_widths(file: Path, rows: Any, width: int) -> Iterator[list[str]]:
    """Yield the rows, all as wide as the header. A blank line is no row, unless one empty field looks like it."""
    for row in rows:
        if not row:
            if width > 1:
                continue
            row = [""]
        if len(row) != width:
            raise DataError(
                f"{file}: line {rows.line_num} must have {width} fields as the header does, got {len(row)}: "
                "put quotes around fields that hold commas"
            )
        yield row
