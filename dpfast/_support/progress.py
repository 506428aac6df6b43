"""Progress on standard error of what takes long: the one place that calls tqdm (extra ``progress``).

A bar is shown where a caller asks for one. A design that takes more than two seconds says so by itself, with the time
that it has taken and where it is, if standard error is a terminal and tqdm is there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from dpfast._support import validation

_Design = TypeVar("_Design", bound=Callable[..., Any])
_PATIENCE = 2.0  # seconds that a design may take in silence
_PAUSE = 0.25  # seconds between two looks at the clock


def bar_class() -> Any:
    """Return tqdm's class of bars; a MissingExtraError says how to install it where it is not there."""
    return validation.optional("tqdm", "progress").tqdm


@contextlib.contextmanager
def progress_bar(
    shown: bool, total: int, title: str, *, unit: str = "it", scaled: bool | None = None, delay: float = 0.0
) -> Iterator[Callable[[int], None]]:
    """Show a bar, if it is to be shown; by calling what this gives it moves on by so many.

    Numbers are shortened (12.3k) where `scaled` says so, by default from a total of 1000 on. With a delay
    in seconds there is none for what takes less.
    """
    validation.instance("progress", shown, bool, "True or False")
    if not shown:
        yield lambda n: None
        return
    scaled = total >= 1000 if scaled is None else scaled
    with _watching(None), bar_class()(total=total, desc=title, unit=unit, unit_scale=scaled, delay=delay) as shown_bar:
        yield shown_bar.update


class _Watch:
    """A line on standard error about a design, from its second second on, written by a thread of its own."""

    def __init__(self, name: str) -> None:
        self.name, self.step, self._done = name, "", threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        line, pause = None, _PATIENCE
        while not self._done.wait(pause):
            pause = _PAUSE
            if _running[-1:] == [self]:
                line = self._begin() if line is None else line
                line.set_description_str(f"{self.name}, {self.step}" if self.step else self.name)
            elif line is not None:
                line.clear()  # a bar is shown
        if line is not None:
            line.close()

    def _begin(self) -> Any:
        line = bar_class()(file=sys.stderr, bar_format="{desc} {elapsed}", leave=False, delay=_PAUSE)
        line.start_t -= _PATIENCE  # since the design began
        return line

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the line, and wait until it is gone."""
        self._done.set()
        self._thread.join()


_running: list[_Watch | None] = []  # the last is that of the design that runs; None where a bar is shown


@contextlib.contextmanager
def _watching(watch: _Watch | None) -> Iterator[None]:
    _running.append(watch)
    if watch is not None:
        watch.start()
    try:
        yield
    finally:
        if watch is not None:
            watch.stop()
        _running.pop()


def shows_progress(design: _Design) -> _Design:
    """Let a design say on a terminal that it takes long, and where it is; a design inside of another one is silent."""

    @functools.wraps(design)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if _running or not _is_seen():
            return design(*args, **kwargs)
        with _watching(_Watch(design.__name__)):
            return design(*args, **kwargs)

    return cast(_Design, watched)


def report_step(step: str) -> None:
    """Tell where a design is, for the line that is shown if it takes long."""
    if _running and _running[-1] is not None:
        _running[-1].step = step


def _is_seen() -> bool:
    """Tell whether lines are seen by someone, and come from one thread of one process alone."""
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and threading.current_thread() is threading.main_thread()
        and multiprocessing.parent_process() is None
        and importlib.util.find_spec("tqdm") is not None
    )
