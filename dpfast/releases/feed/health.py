"""A public file that tells whether a stream is alive: by the clock, the span and what is published, by no event."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType

import numpy as np

from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import DataError
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.clock import Clock

NAME = "health.json"
_SECOND = 1_000_000
_BEAT = 10 * _SECOND  # while nothing is published
_BEGINNING = b'{\n  "state": '


class Health:
    """A file of figures for whoever watches over a stream; it is replaced as a whole, at most once a second.

    Parameters
    ----------
    path : Path
    layout : Layout
    grace : int
        Microseconds behind the end of a bin, in which its events may still come.
    clock : Clock

    Raises
    ------
    DataError
        Where another file is there.

    Notes
    -----
    *Privacy.* Every figure is computed from the clock, the declared span and the number of published steps. How late a
    step was published is timing, which guarantees exclude; it is given in whole seconds.
    """

    def __init__(self, path: Path, layout: Layout, grace: int, clock: Clock) -> None:
        self._path, self._layout, self._grace, self._clock = path, layout, grace, clock
        self._position, self._written, self._begun = 0, clock.now(), False
        self._delay: int | None = None  # in seconds, of the last step
        try:
            if os.path.lexists(path) and not path.read_bytes().startswith(_BEGINNING):
                raise DataError(f"{path} must hold the health of this release, got something else: move it away")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; choose another folder") from None

    def begin(self, position: int) -> None:
        """Note that all bins before this one were published by earlier processes."""
        self._position, self._begun = position, True
        self._write("running")

    def note_published(self, position: int) -> None:
        """Note that all bins before this one are published, the last of them now."""
        self._position, self._delay = position, self._overdue(position - 1)
        self._beat(_SECOND)

    def wait(self) -> None:
        """Note that the end of a bin is waited for."""
        self._beat(_BEAT)

    def _beat(self, least: int) -> None:
        if not 0 <= self._clock.now() - self._written < least:  # also where the clock was set back
            self._write("running")

    def _overdue(self, bin: int) -> int:
        """Return whole seconds since a bin and its grace have ended; 0 where they have not, and behind the span."""
        span = self._layout.span
        due = span.time(bin + 1) + self._grace
        return max(0, self._clock.now() - due) // _SECOND if bin < span.n_bins else 0

    def _write(self, state: str) -> None:
        last = self._position - 1
        self._written = self._clock.now()
        content = {
            "state": state,
            "written_at": _format_second(self._written),
            "steps": self._layout.span.n_bins,
            "published_steps": self._position,
            "last_published_step": last if last >= 0 else None,
            "last_published_bin": self._layout.edges(last, 1)[0] if last >= 0 else None,
            "delay_of_last_published_step_seconds": self._delay,
            "lag_of_clock_seconds": self._overdue(self._position),
        }
        # a disk that is full stops what is published; this file is then old, which tells as much
        with contextlib.suppress(OSError):
            replace_file(self._path, f"{json.dumps(content, indent=2)}\n")

    def __enter__(self) -> Health:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._begun:
            self._write("ended" if self._position == self._layout.span.n_bins else "stopped")


def _format_second(moment: int) -> str:
    return f"{np.datetime64(moment // _SECOND, 's')}Z"
