"""Columns of a log, whatever it comes as: every cell is a text, as in a CSV file; messages never show one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError
from dpfast.signals.events.cell_texts import EMPTY, CellText, read_cell


@dataclass(frozen=True, eq=False)
class Column:
    """Hold a column as its distinct texts, in order of appearance, and which of them each row holds.

    Attributes
    ----------
    label : str
        What it is called in messages: the log and the name.
    texts : list of str
        Empty for a missing value.
    codes : array of int64, (rows,)
    places : array of int64, (rows,)
        Where each row is, for messages.
    unit : str
        What places count: lines or rows.
    is_name : list of bool
        Whether each text can be a name or an id: False where it was a float or a time, whose text depends on the type
        of the whole column.
    """

    label: str
    texts: list[str]
    codes: NDArray[np.int64]
    places: NDArray[np.int64]
    unit: str
    is_name: list[bool]

    @classmethod
    def of_cells(cls, label: str, cells: Iterable[Any]) -> Self:
        """Make a column of the values of all rows.

        Raises
        ------
        DataError
            Where one is neither a text nor a number nor a time.
        """
        known: dict[CellText | None, int] = {}
        codes = np.array([known.setdefault(read_cell(cell), len(known)) for cell in cells], np.int64)
        return cls.of_known(label, list(known), codes)

    @classmethod
    def of_values(cls, label: str, values: Sequence[Any], codes: NDArray[Any]) -> Self:
        """Make a column of distinct values, some of which no row may hold, and which of them each has, -1 for none."""
        used, first = np.unique(codes, return_index=True)
        known: dict[CellText | None, int] = {}
        numbers = np.zeros(len(values) + 1, np.int64)
        for code in used[np.argsort(first)].tolist():
            cell = EMPTY if code < 0 else read_cell(values[code])
            numbers[code] = known.setdefault(cell, len(known))
        return cls.of_known(label, list(known), numbers[codes])

    @classmethod
    def of_known(cls, label: str, known: Sequence[CellText | None], codes: NDArray[np.int64]) -> Self:
        """Make a column of distinct cells, each of which some row holds; refuse those that are none."""
        cells = [cell or EMPTY for cell in known]
        texts, is_name = [cell.text for cell in cells], [cell.is_name for cell in cells]
        column = cls(label, texts, codes, np.arange(1, len(codes) + 1), "row", is_name)
        bad = np.array([cell is None for cell in known], bool)
        if bad.any():
            raise DataError(
                f"{label} must hold texts, numbers or times, got something else in {column.locate(bad)}: convert it"
            )
        return column

    def locate(self, bad: NDArray[np.bool_]) -> str:
        """Tell where the first row with a bad text is, and how many there are."""
        rows = np.flatnonzero(bad[self.codes])
        return f"{self.unit} {self.places[rows[0]]} ({rows.size} such row{'s' * (rows.size > 1)})"

    def time_error(self, bad: NDArray[np.bool_], must_hold: str) -> DataError:
        """Make the error for unusable timestamps; it says where the first one is, not what: it may be private."""
        text = self.texts[int(np.argmax(bad))].strip()
        got = f"another text of {len(text)} characters" if text else "nothing"
        return DataError(f"{self.label} must hold {must_hold}, got {got} in {self.locate(bad)}")

    def check_names(self) -> None:
        """Refuse floats and times where names or ids are compared: one log would have 7 where another has 7.0.

        Raises
        ------
        DataError
        """
        bad = ~np.array(self.is_name, bool)
        if bad.any():
            must_hold = "texts, bytes or whole numbers, as names are compared as texts"
            where = self.locate(bad)
            raise DataError(f"{self.label} must hold {must_hold}, got a float or a time in {where}: convert the column")


def find_names(log: object, header: Sequence[str], names: Sequence[str]) -> list[int]:
    """Find the positions of the named columns of a log."""
    for name in names:
        if name not in header:
            raise DataError(f"{log}: no column {name!r} in the header ({_describe_header(header)})")
        if header.count(name) > 1:
            raise DataError(f"{log} must have one column {name!r}, got {header.count(name)}: rename them")
    return [header.index(name) for name in names]


def _describe_header(header: Sequence[str]) -> str:
    """Tell how many columns there are, not which: without a header they are somebody's row."""
    if len(header) != 1:
        return f"{len(header)} columns found"
    separators = {";": "';'", "\t": "a tab", "|": "'|'"}
    guess = next((f": is the separator {name}?" for x, name in separators.items() if x in header[0]), "")
    return f"1 column found{guess}"


@contextlib.contextmanager
def without_data(log: object) -> Iterator[None]:
    """Replace errors of packages that read for us: what they say may quote a value."""
    try:
        yield
    except (DataError, ImportError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a driver or a reader raises
        kind = type(error).__name__
        raise DataError(
            f"{log} cannot be read, by an error of the kind {kind}, whose text is not shown, as it may quote data"
        ) from None
