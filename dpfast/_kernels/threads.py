"""Ranges of items run on several threads here; the kernels release the GIL.

The caller's thread works too, and the others end with the call: there is nothing that a fork could lose or the
interpreter's end would have to wait for.
"""

from __future__ import annotations

import _thread
import contextlib
import contextvars
import queue
from collections.abc import Callable

Check = Callable[[], None]
Task = Callable[[int, int, Check], None]


class CancelledError(Exception):
    """Another range failed or the user interrupted; raised inside a task to leave it."""


def for_ranges(task: Task, n_items: int, size: int, n_threads: int) -> None:
    """Call ``task(first, count, check)`` for ranges of at most `size` items; an error, or Ctrl-C, stops them all.

    Whoever is free takes the next range. A long task calls ``check()`` now and then: it raises
    :class:`CancelledError` when the task should end.
    """
    if 0 < n_items <= size:
        task(0, n_items, _go_on)
        return
    ranges = _Ranges(task, n_items, size)
    while True:
        try:
            if not ranges.errors:
                ranges.start(min(n_threads, -(-n_items // size)) - 1)
                ranges.work()
            ranges.wait()
            break
        except BaseException as error:  # noqa: BLE001  Ctrl-C comes anywhere, and again during the wait
            ranges.errors.append(error)
    if ranges.errors:
        try:
            raise next((x for x in ranges.errors if not isinstance(x, Exception)), ranges.errors[0])
        finally:
            ranges.errors = [CancelledError()]  # their tracebacks hold this list, and so all that the task holds


def _go_on() -> None:
    """Do nothing: where there is one range, nothing else can fail."""


class _Ranges:
    """Ranges that several threads take, one at a time, until none is left or one has failed."""

    def __init__(self, task: Task, n_items: int, size: int) -> None:
        self.task, self.n_items, self.size = task, n_items, size
        self.starts, self.lock = iter(range(0, n_items, size)), _thread.allocate_lock()
        self.errors: list[BaseException] = []  # the first stops all; what other threads then raise comes behind it
        self.n_started = 0
        self.busy: list[None] = []  # one entry for each started thread at work
        self.left: list[None] = []  # one for each that has left
        self.bell: queue.SimpleQueue[None] = queue.SimpleQueue()  # wakes the caller

    def check(self) -> None:
        if self.errors:
            raise CancelledError

    def work(self) -> None:
        while True:
            self.check()
            with self.lock:
                first = next(self.starts, None)
            if first is None:
                return
            self.task(first, min(self.size, self.n_items - first), self.check)

    def start(self, n: int) -> None:
        """Start threads, in the caller's context (of `numpy.errstate`, say).

        Not by `threading.Thread`: it takes twice as long, and up to Python 3.12 cannot be joined after an interrupted
        join. If the system gives no more threads, or the interpreter is shutting down, those that are there do all.
        """
        with contextlib.suppress(RuntimeError):
            for _ in range(n):
                _thread.start_new_thread(contextvars.copy_context().run, (self.join_in,))
                self.n_started += 1

    def join_in(self) -> None:
        self.busy.append(None)  # before the first check, so that none works unseen if Ctrl-C came before it was counted
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001  the caller raises it
            self.errors.append(error)
        finally:
            self.busy.pop()
            self.left.append(None)
            self.bell.put(None)

    def wait(self) -> None:
        """Wait until all started threads have left."""
        while self.busy or len(self.left) < self.n_started:
            with contextlib.suppress(queue.Empty):
                self.bell.get(timeout=0.1)  # without a limit Ctrl-C would have to wait on Windows


def range_size(n_items: int, n_threads: int, largest: int) -> int:
    """Count the items of a range: all threads get equally many, in as few rounds as `largest` allows."""
    rounds = max(1, -(-n_items // (n_threads * largest)))
    return max(1, -(-n_items // (n_threads * rounds)))


def share_work(task: Callable[[int, int], None], n_items: int, n_threads: int) -> None:
    """Call ``task(first, count)`` for as many ranges as there are threads, about equally long.

    It serves short tasks, which do not ask whether they should end.
    """
    for_ranges(lambda first, count, _: task(first, count), n_items, range_size(n_items, n_threads, n_items), n_threads)
