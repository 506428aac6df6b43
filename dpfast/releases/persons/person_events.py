"""A table of events with the ids of persons: what a release takes where it bounds persons."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast.releases.store.push_limits import MAX_STEP
from dpfast.signals.events.declared_counts import Rows, check_counted_at_once, check_names_of_groups, read_rows
from dpfast.signals.events.declared_span import Span

_Integers = NDArray[np.int64]
_LARGEST_SUM = 2**62
_NOBODY = -1


class Events:
    """Give a table of events, each of which says whose it is, to a release with `persons`.

    The order of the rows is that in which events came, and decides between events of one person at one step.

    Parameters
    ----------
    step : array of integers, (events,)
        From 0 to ``n_steps - 1``, as the columns of an array; events at other steps are left out.
    person : array or list of str, bytes or integers, (events,)
        Ids, which are compared as bytes (of text in UTF-8, of a number as it is written): "7" and "7 " are two persons.
        Rows without an id (None, NaN, blank text) are left out. NumPy's own arrays of bytes and text drop zeros at the
        ends of their values: give ids that may end so, such as digests, as a list.
    stream : array of integers, (events,), or int
        From 0 to ``n_streams - 1``; events of others are left out.
    value : array of integers, (events,), or int
        What each event adds; more than the declared `max_change` counts as that, on either side of zero.
    n_steps, n_streams : int
        The shape of what is released, which must not be read off the events.

    Raises
    ------
    ValueError
        For arrays of another type or length. Nothing is refused for a value.

    Notes
    -----
    *Privacy.* Steps and streams without events count as 0 and are released too.

    Examples
    --------
    >>> Events(step=[0, 0, 2], person=["ada", "bob", "ada"], n_steps=3)
    <Events over 3 steps, 1 streams>
    """

    def __init__(
        self, *, step: Any, person: Any, stream: Any = 0, value: Any = 1, n_steps: int, n_streams: int = 1
    ) -> None:
        self.n_steps = validation.integer("n_steps", n_steps, 0, MAX_STEP)
        self.n_streams = validation.integer("n_streams", n_streams, 1)
        ids, codes = _encode_ids(person)
        steps, streams, self._values = (
            _integers(name, given, len(codes)) for name, given in (("step", step), ("stream", stream), ("value", value))
        )
        self._cells = streams, steps
        self._ids, self._codes = ids, codes

    @classmethod
    def read(
        cls,
        log: Any,
        span: Span,
        groups: Sequence[str] = ("all",),
        *,
        time: str,
        person: str,
        by: str | None = None,
        count: str | None = None,
        time_format: str | None = None,
        seen: Callable[[Rows], None] | None = None,
    ) -> Self:
        """Read a log of events with the ids of persons, in declared bins and groups, for release with `persons`.

        Parameters
        ----------
        log, span, groups, time, by, count, time_format, seen
            As for :func:`count_events`.
        person : str
            Column of ids: texts, bytes or whole numbers, compared as bytes. Floats are refused, as 7 would be 7.0 in a
            log where another id is missing: convert them.

        Returns
        -------
        Events
            In the order of their times, and of the log where these are equal.

        Raises
        ------
        DataError, ValueError
            As :func:`count_events` does.

        Examples
        --------
        >>> import dpfast as dp, pandas
        >>> trips = pandas.DataFrame({"start": ["2024-01-01T05:15", "2024-01-01T07:00"], "card": [17, 4]})
        >>> span = dp.Span.parse("2024-01-01", "2024-01-02", "6h")
        >>> dp.Events.read(trips, span, time="start", person="card")
        <Events over 4 steps, 1 streams>
        """
        names = check_names_of_groups(span, by, groups)
        check_counted_at_once(span, len(names))
        rows = read_rows(
            log, span, names, time=time, by=by, count=count, time_format=time_format, person=person, seen=seen
        )
        return cls(
            step=rows.bins,
            stream=rows.groups,
            value=rows.weights,
            person=rows.persons,
            n_steps=span.n_bins,
            n_streams=len(names),
        )

    def __repr__(self) -> str:
        """Show it without the events, whose number is private too."""
        return f"<Events over {self.n_steps} steps, {self.n_streams} streams>"

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of streams and of steps."""
        return self.n_streams, self.n_steps

    def behind(self, n: int) -> Self:
        """Return the events behind the first n steps, and so many steps less."""
        if n == 0:
            return self
        streams, steps = self._cells
        rest = copy.copy(self)
        rest.n_steps, rest._cells = self.n_steps - n, (streams, steps - n)  # before 0 they are at no step
        return rest

    def of_streams(self, first: int, end: int) -> Self:
        """Return the events of some streams, the first of which is number 0 there."""
        streams, steps = self._cells
        rest = copy.copy(self)
        rest.n_streams, rest._cells = end - first, (streams - first, steps)  # others are in no stream
        return rest

    def rows(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield step, stream, value and person of each event that counts, in the order in which they do."""
        rows, events = self.in_order()
        for row, (step, stream, person) in zip(rows.tolist(), events, strict=True):
            yield step, stream, int(self._values[row]), person

    def in_order(self) -> tuple[_Integers, list[tuple[int, int, bytes]]]:
        """Return the rows that have an id, a step and a stream, in the order of steps and then of rows.

        Returns
        -------
        rows : array of integers
            Their numbers.
        events : list of (step, stream, person)
        """
        streams, steps = self._cells
        inside = (0 <= steps) & (steps < self.n_steps) & (0 <= streams) & (streams < self.n_streams)
        rows = np.flatnonzero(inside & (self._codes != _NOBODY))
        rows = rows[np.argsort(steps[rows], kind="stable")]
        persons = map(self._ids.__getitem__, self._codes[rows].tolist())
        return rows, list(zip(steps[rows].tolist(), streams[rows].tolist(), persons, strict=True))

    def sum_rows(self, rows: _Integers, largest: int) -> _Integers:
        """Return the sums (streams, steps) of the values of some rows, each at most `largest` on either side of 0."""
        values = np.clip(self._values[rows], -largest, largest)
        streams, steps = (x[rows] for x in self._cells)
        fits = largest * max(1, len(rows)) < _LARGEST_SUM
        sums = np.zeros((self.n_streams, self.n_steps), np.int64 if fits else object)
        np.add.at(sums, (streams, steps), values if fits else values.astype(object))
        return np.clip(sums, -_LARGEST_SUM, _LARGEST_SUM).astype(np.int64)


def largest_value(max_change: float | tuple[float, ...]) -> int:
    """Return the largest whole number that an event may add: more would be a larger change than is protected.

    Of several streams it is the same in all of them, the least.

    Raises
    ------
    ValueError
        Where it is zero.
    """
    largest = min(math.floor(min(max_change) if isinstance(max_change, tuple) else max_change), 2**53)
    if largest == 0:
        must_be = "at least 1 to release counts of events, each of which is a change of 1: design with that"
        raise validation.fail("max_change", must_be, max_change)
    return largest


def _integers(name: str, given: Any, n: int) -> _Integers:
    """Return an integer of each row."""
    values = np.asarray(given)
    if values.size == 0 and values.ndim == 1:
        values = values.astype(np.int64)  # of an empty list
    if values.dtype.kind not in "iu" or values.shape not in ((), (n,)):
        must_be = f"one integer, or an array of integers as long as person ({n})"
        raise ValueError(f"{name} must be {must_be}, got dtype {values.dtype} and shape {values.shape}")
    if values.dtype.kind == "u":
        values = np.minimum(values, np.iinfo(np.int64).max)
    return np.broadcast_to(values.astype(np.int64), (n,))


def _encode_ids(person: Any) -> tuple[list[bytes], _Integers]:
    """Return the distinct ids as bytes, and which of them each row has."""
    given = person if isinstance(person, list) else np.asarray(person)
    if not isinstance(given, list):
        if given.ndim != 1 or given.dtype.kind not in "iuUSO":
            must_be = "a list or an array (events,) of str, bytes or integers"
            raise ValueError(f"person must be {must_be}, got dtype {given.dtype} and shape {given.shape}")
        given = given.tolist()
    return _number_ids(_encode_id(x) for x in given)


def _number_ids(ids: Iterable[bytes | None]) -> tuple[list[bytes], _Integers]:
    known: dict[bytes, int] = {}
    codes = [_NOBODY if x is None else known.setdefault(x, len(known)) for x in ids]
    return list(known), np.array(codes, np.int64)


def _encode_id(given: Any) -> bytes | None:
    """Return an id as bytes; None for a row without one."""
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass") if given.strip() else None
    if isinstance(given, bytes):
        return given if given.strip() else None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return str(int(given)).encode()
    if given is None or type(given).__name__ in ("NAType", "NaTType") or (isinstance(given, float) and given != given):
        return None
    raise ValueError(f"person must hold ids that are str, bytes or integers, got a {type(given).__name__}")
