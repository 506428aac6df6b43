"""Columns of CSV files, plain or gzip, read whole or refused; messages say where, never what: it may be private."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError

# Each digit fits one place alone: else a field of many digits and a letter takes minutes.
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class Column:
    """A column as its distinct texts, in order of appearance, and which of them each row holds."""

    label: str
    texts: list[str]
    codes: NDArray[np.int64]
    lines: NDArray[np.int64]

    def locate(self, bad: NDArray[np.bool_]) -> str:
        """Tell where the first row with a bad text is, and how many there are."""
        rows = np.flatnonzero(bad[self.codes])
        return f"line {self.lines[rows[0]]} ({rows.size} such row{'s' * (rows.size > 1)})"

    def time_error(self, bad: NDArray[np.bool_], must_hold: str) -> DataError:
        """Make the error for unusable timestamps; it says where the first one is, not what: it may be private."""
        text = self.texts[int(np.argmax(bad))].strip()
        got = f"another text of {len(text)} characters" if text else "nothing"
        return DataError(f"{self.label} must hold {must_hold}, got {got} in {self.locate(bad)}")


def parse_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Read each text as a number, NaN for what is none."""
    # The pattern keeps out what float() takes beside numbers, such as "1_000".
    return np.array([float(text) if NUMBER.fullmatch(text) else np.nan for text in map(str.strip, texts)], np.float64)


def read_columns(file: Path, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of a CSV file, plain or gzip."""
    try:
        with file.open("rb") as raw:
            data = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP_MAGIC else raw
            with io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as text:
                return _read_text(file, text, names)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{file} must be a whole gzip file, got a damaged or truncated one") from None
    except OSError as error:
        raise DataError(f"{file} must be a readable file: {error.strerror}") from None
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
        name: Column(f"{file}: column {name!r}", list(texts), np.array(column), np.array(lines))
        for name, texts, column in zip(names, known, codes, strict=True)
    }


def find_columns(file: object, header: list[str], names: Sequence[str]) -> list[int]:
    """Find the positions of the named columns of a file, or of what else is named so in messages."""
    if not header:
        raise DataError(f"{file} must begin with a line of column names, got an empty file or line")
    if any("\0" in name for name in header):
        raise DataError(f"{file} must be a CSV file, got a binary file")
    for name in names:
        if name not in header:
            raise DataError(f"{file}: no column {name!r} in the header ({_describe_header(header)})")
        if header.count(name) > 1:
            raise DataError(f"{file} must have one column {name!r}, got {header.count(name)}: rename them")
    return [header.index(name) for name in names]


def _describe_header(header: list[str]) -> str:
    """Tell how many columns there are, not which: without a header they are somebody's row."""
    if len(header) > 1:
        return f"{len(header)} columns found"
    separators = {";": "';'", "\t": "a tab", "|": "'|'"}
    guess = next((f": is the separator {name}?" for x, name in separators.items() if x in header[0]), "")
    return f"1 column found{guess}"


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
