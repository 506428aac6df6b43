"""Messages of how far a release is, on standard error: they depend on the clock and declarations, on no event."""

from __future__ import annotations

from types import TracebackType

from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.clock import Clock
from dpfast.releases.feed.missed_bins import NAME
from dpfast.releases.model_check.verdict import ModelCheck
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.stderr_messages import say

_MINUTE = 60_000_000  # between two messages at ends of bins, at least
_HOUR = 60 * _MINUTE  # while the end of a bin is waited for
_FORGOTTEN = "; of events that came before, those of bins that are not over count only where they are sent again"
_STATED = (
    "The error that is stated if the model holds does not hold: rows of the file of estimates that follow state none, "
    "and those before keep what they state."
)


class Watch:
    """Messages while bins are followed: they say where it resumed, then how far it is, by the clock.

    Parameters
    ----------
    layout : Layout
    clock : Clock
    private : PrivateCounts or None
        Are shown with every message, and at the end.
    quiet : bool
        Say nothing.
    """

    def __init__(self, layout: Layout, clock: Clock, *, private: PrivateCounts | None, quiet: bool) -> None:
        self._layout, self._clock, self._private, self._quiet = layout, clock, private, quiet
        self._published, self._said, self._contradicted = 0, clock.now(), False

    def begin(self, position: int, missed: range) -> None:
        """Say where it goes on: at the first bin that is not published, and behind those that are over."""
        n, self._published = self._layout.span.n_bins, position
        if position and not self._quiet:
            resumed = f"resumed at step {position:,} of {n:,}, which begins at {self._edge(position)}"
            say(resumed + _FORGOTTEN if missed.stop < n else resumed)
        if missed and not self._quiet:
            steps = f"step {missed.start:,}" if len(missed) == 1 else f"steps {missed.start:,} to {missed.stop - 1:,}"
            times = f"{self._edge(missed.start)} until {self._edge(missed.stop)}"
            say(f"{steps}, from {times}, ended while this was not running; they count as zeros and are in {NAME}")

    def note_published(self, position: int) -> None:
        """Note that all bins before this one are published."""
        self._published = position
        self._beat(_MINUTE)

    def note_contradiction(self, check: ModelCheck) -> None:
        """Say once that what is published contradicts the model of the design, which the public can see as well."""
        if check.agrees is False and not self._contradicted and not self._quiet:
            self._contradicted = True
            say(f"{check} {_STATED}")

    def wait(self) -> None:
        """Note that the end of a bin is waited for."""
        self._beat(_HOUR)

    def _beat(self, least: int) -> None:
        now = self._clock.now()
        if self._quiet or now - self._said < least:
            return
        self._said = now
        n, position = self._layout.span.n_bins, self._published
        say(f"{position:,} of {n:,} steps are published, those before {self._edge(position)}")
        if self._private is not None:
            self._private.show()

    def _edge(self, bin: int) -> str:
        return self._layout.edges(bin, 1)[0]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._private is not None:
            self._private.show()
