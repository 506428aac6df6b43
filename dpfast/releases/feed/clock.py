"""Counts of events as they come, handed over on the clock: what they are depends on events, and when does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError
from dpfast.releases.feed.event_lines import ByteSource, Event, Lines, read_blocks
from dpfast.releases.persons.person_events import Events
from dpfast.signals.events.declared_counts import Rows
from dpfast.signals.events.historical_counts import MAX_COUNT

Integers = NDArray[np.int64]
_LOOK = 500_000  # microseconds between two looks at the header while the clock is waited for
_CATCH_UP = 4096  # bins handed over at once after a pause


class Clock(Protocol):
    """A clock that tells microseconds since 1970, UTC, and can be waited for."""

    def now(self) -> int:
        """Return the present time, in microseconds since 1970."""

    def sleep_until(self, moment: int) -> None:
        """Return at this moment, or a little earlier."""


class SystemClock:
    """The clock of the machine, which may be set while it is waited for."""

    def now(self) -> int:
        """Return the present time, in microseconds since 1970."""
        return time.time_ns() // 1000

    def sleep_until(self, moment: int) -> None:
        """Sleep as long as it is until then by the present setting of the clock."""
        time.sleep(max(0, moment - self.now()) / 1e6)


class Tally:
    """Counts of the bins that are not over, which several threads may add to.

    Parameters
    ----------
    n_groups : int
    first : int
        The first bin that is not over.
    """

    def __init__(self, n_groups: int, first: int) -> None:
        self._n_groups, self._next = n_groups, first
        self._counts: dict[int, Integers] = {}
        self._lock = threading.Lock()

    def add(self, event: Event) -> bool:
        """Count an event, unless its bin is over; return whether it was counted."""
        with self._lock:
            if event.bin < self._next:
                return False
            counts = self._counts.setdefault(event.bin, np.zeros(self._n_groups, np.int64))
            counts[event.group] = min(int(counts[event.group]) + event.weight, MAX_COUNT)
            return True

    def close(self, bin: int) -> Integers:
        """End a bin and those before it, and return its counts (groups, 1)."""
        with self._lock:
            self._next = max(self._next, bin + 1)
            counts = self._counts.pop(bin, np.zeros(self._n_groups, np.int64))
        return counts[:, np.newaxis]


class PersonTally:
    """Gather events of persons of the bins that are not over; several threads may add to them.

    Of a person's events in one bin and group the first one decides, by its time and then as it came: that one is kept
    or none is. So no others are remembered.

    Parameters
    ----------
    n_groups : int
    first : int
        The first bin that is not over.
    repeated : callable
        Is called with how many such others a bin had, when it ends; that is private.
    """

    def __init__(self, n_groups: int, first: int, repeated: Callable[[int], None]) -> None:
        self._n_groups, self._next, self._repeated = n_groups, first, repeated
        self._events: dict[int, dict[tuple[int, bytes], tuple[int, int, int]]] = {}
        self._arrivals = 0
        self._others: dict[int, int] = {}
        self._lock = threading.Lock()

    def add(self, event: Event) -> bool:
        """Take an event, unless its bin is over; return whether it was taken."""
        with self._lock:
            if event.bin < self._next:
                return False
            self._arrivals += 1
            events, key = self._events.setdefault(event.bin, {}), (event.group, event.person)
            new = event.time, self._arrivals, event.weight
            if key in events:
                self._others[event.bin] = self._others.get(event.bin, 0) + 1
            events[key] = min(events.get(key, new), new)
            return True

    def close(self, bin: int) -> Events:
        """End a bin and those before it, and return its events."""
        with self._lock:
            self._next = max(self._next, bin + 1)
            events = sorted((order, *key) for key, order in self._events.pop(bin, {}).items())
            self._repeated(self._others.pop(bin, 0))
        return Events(
            step=np.zeros(len(events), np.int64),
            stream=[group for _, group, _ in events],
            value=[weight for (_, _, weight), _, _ in events],
            person=[person for *_, person in events],
            n_steps=1,
            n_streams=self._n_groups,
        )


class Feed:
    """A feed that reads lines of events in a thread, and hands over the counts of every bin when it is over.

    Parameters
    ----------
    source : ByteSource
        Its end is not the end of the feed: bins go on, with zeros.
    lines : Lines
        How its lines become events.
    first : int
        The first bin to hand over; those before it were handed over by an earlier process.
    grace : int
        Microseconds behind the end of a bin in which its events may still come.
    clock : Clock
    seen : callable, optional
        Is called with where the lines fall, in the thread that reads; that is private.
    repeated : callable, optional
        Where lines are of persons: is called with how many events a person had beyond one in a bin and group; private.
    wait : callable, optional
        Is called now and then while the end of a bin is waited for.

    Attributes
    ----------
    missed : range
        Bins that were over when the feed began, and were not handed over before: they are zeros.

    Notes
    -----
    *Privacy.* A bin is handed over at its end and the grace, whether or not anything came. Those that were over before
    the feed began are handed over at once, as zeros, and events for them are late, also those that wait in the source:
    had they a chance, what is counted would depend on when the process was started, and on how fast it read. For the
    same reason the grace must be long enough for reading to keep up: a late event is left out.
    """

    def __init__(
        self,
        source: ByteSource,
        lines: Lines,
        *,
        first: int,
        grace: int,
        clock: Clock,
        seen: Callable[[Rows], None] | None = None,
        repeated: Callable[[int], None] = lambda n: None,
        wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._lines, self._grace, self._clock = source, lines, grace, clock
        self._seen, self._waits = seen, wait
        span = lines.span
        over = min((clock.now() - grace - span.start) // span.period, span.n_bins)
        self.missed = range(first, max(first, over))
        n_groups = len(lines.groups)
        self._tally: Tally | PersonTally = (
            Tally(n_groups, self.missed.stop)
            if lines.person is None
            else PersonTally(n_groups, self.missed.stop, repeated)
        )
        self._refusal: DataError | None = None

    def bins(self) -> Iterator[tuple[int, Integers | Events]]:
        """Yield pairs of a bin and the counts (groups, n) of it and those behind it, up to the end of the span.

        Where the lines are of persons they are the events of these bins in place of counts.

        Raises
        ------
        DataError
            When the header turns out not to have the columns, which says nothing of any event; or where reading fails
            by a fault of dpfast, of which nothing but its kind is said.
        """
        # A daemon: a source that is never closed must not keep the process alive.
        threading.Thread(target=self._read, name="events", daemon=True).start()
        over = self.missed.stop
        for first in self.missed[::_CATCH_UP]:
            self._check_header()
            yield first, self._nothing(min(_CATCH_UP, over - first))
        for bin in range(over, self._lines.span.n_bins):
            self._wait(self._lines.span.time(bin + 1) + self._grace)
            yield bin, self._tally.close(bin)

    def _nothing(self, n: int) -> Integers | Events:
        """Return so many bins without events."""
        n_groups = len(self._lines.groups)
        if self._lines.person is None:
            return np.zeros((n_groups, n), np.int64)
        return Events(step=[], person=[], n_steps=n, n_streams=n_groups)

    def _wait(self, moment: int) -> None:
        while (now := self._clock.now()) < moment:
            self._check_header()
            self._waits()
            self._clock.sleep_until(min(moment, now + _LOOK))
        self._check_header()

    def _check_header(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _read(self) -> None:
        try:
            self._count()
        except OSError:
            return  # a source that breaks off is one that ends
        except Exception as error:  # noqa: BLE001 - its text and its traceback may hold what came
            self._refusal = DataError(
                f"events cannot be read any further, by a fault of dpfast ({type(error).__name__}): report it; what "
                "was published stays, and the same command goes on behind it"
            )

    def _count(self) -> None:
        header: tuple[str, ...] | None = None
        for lines in read_blocks(self._source):
            if header is None and lines:
                try:
                    header = self._lines.header(lines.pop(0))
                except DataError as error:
                    self._refusal = error
                    return
            events = self._lines.events(header or (), lines, self._seen) if lines else []
            late = sum(not self._tally.add(event) for event in events)
            if late and self._seen is not None:
                self._seen(Rows(0, 0, 0, (0,) * len(self._lines.groups), late))
