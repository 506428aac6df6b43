"""Counts for the operator alone, which tell whether column, year, format and groups are the right ones."""

from __future__ import annotations

import contextlib
import math
import sys
import threading

import numpy as np
from numpy.typing import NDArray

from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.releases.integer.inputs import Inputs
from dpfast.signals.events.declared_counts import Rows

_FOR_WHAT = (
    "for you alone: they show a wrong column, year, format or group; bounds, range, span and target must not be "
    "changed after looking at them"
)
_MARK = "PRIVATE "
_MOST_GROUPS = 100  # of which each has a line


class PrivateCounts:
    """Counts of rows and of clamped values, which are private, and shown on standard error alone.

    Parameters
    ----------
    groups : tuple of str
    inputs : Inputs
    follow : bool
        Whether rows may come too late.
    """

    def __init__(self, groups: tuple[str, ...], inputs: Inputs, *, follow: bool = False) -> None:
        self._groups, self._inputs, self._follow = groups, inputs, follow
        self._rows: Rows | None = None
        self._values = self._above = self._below = 0
        self._beyond: int | None = None
        self._lock = threading.Lock()

    def see(self, rows: Rows) -> None:
        """Add rows; safe for several threads."""
        with self._lock:
            self._rows = rows if self._rows is None else self._rows + rows

    def count_clamped(self, counts: NDArray[np.int64]) -> None:
        """Add counts of bins, and how many of them lie outside of the range."""
        self._values += counts.size
        self._above += int(np.count_nonzero(counts > math.floor(self._inputs.high)))
        self._below += int(np.count_nonzero(counts < math.ceil(self._inputs.low)))

    def count_beyond(self, n: int) -> None:
        """Add events that were left out as their persons had others: the bounds are reached."""
        self._beyond = n + (self._beyond or 0)

    def show(self) -> None:
        """Print the counts, each line marked; print nothing where no rows were seen, as in a file without any."""
        with self._lock:
            rows = self._rows
        if rows is None:
            return
        shown = [
            *(x.strip() for x in wrap_paragraph(f"counts, {_FOR_WHAT}", len(_MARK)).split("\n")),
            f"rows: {rows.total:,}",
            f"rows in the span: {rows.inside:,}",
            *self._describe_groups(rows.groups),
            f"rows dropped, of a time outside of the span: {rows.outside:,}",
            f"rows dropped, of a group that is not declared: {rows.undeclared:,}",
            f"rows unparsed, without a time or a count that can be read: {rows.unreadable:,}",
        ]
        if self._follow:
            shown.append(f"rows dropped, as they came after the end of their bin and the grace: {rows.late:,}")
        if self._beyond is not None:
            shown.append(f"rows dropped, without the id of a person: {rows.unnamed:,}")
            shown.append(f"rows dropped, beyond the bounds of a person: {self._beyond:,}")
        if self._values:
            high, low = f"--high {self._inputs.high}", f"--low {self._inputs.low}"
            shown.append(
                f"counts clamped: {self._above:,} above {high}, {self._below:,} below {low}, of {self._values:,}"
            )
        with contextlib.suppress(OSError):  # of a pipe that nobody reads: what is published does not depend on it
            print("".join(f"{_MARK}{line}\n" for line in shown), end="", file=sys.stderr, flush=True)

    def _describe_groups(self, rows: tuple[int, ...]) -> list[str]:
        """Tell the rows of each group, or, of many groups, how they are spread and which has none."""
        names = self._groups
        if len(names) <= _MOST_GROUPS:
            return [f"rows in the span of group {name!r}: {n:,}" for name, n in zip(names, rows, strict=True)]
        least, median, most = np.percentile(rows, [0, 50, 100], method="lower")
        empty = [name for name, n in zip(names, rows, strict=True) if n == 0]
        shown = [f"rows in the span of one of {len(names):,} groups: {least:,} to {most:,}, in the median {median:,}"]
        return [*shown, f"groups without rows in the span: {len(empty):,}{_first_of(empty)}"]


def _first_of(names: list[str]) -> str:
    return f", the first of them {names[0]!r}" if names else ""
