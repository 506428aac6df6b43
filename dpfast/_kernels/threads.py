"""Ranges of streams on several threads; the kernels release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed


class CancelledError(Exception):
    """Another range failed or the user interrupted; raised inside a task to leave it."""


def for_ranges(
    task: Callable[[int, int, Callable[[], None]], None], n_items: int, size: int, n_threads: int | None
) -> None:
    """Call ``task(first, count, check)`` for ranges of at most `size` items; an error, or Ctrl-C, stops them all.

    A long task calls ``check()`` now and then: it raises :class:`CancelledError` when the task should end.
    """
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise CancelledError

    starts, lock = iter(range(0, n_items, size)), threading.Lock()

    def work() -> None:
        while True:
            check()
            with lock:
                first = next(starts, None)
            if first is None:
                return
            task(first, min(size, n_items - first), check)

    workers = min(n_threads or default_threads(), -(-n_items // size))
    if workers <= 1:
        work()
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="dpfast") as pool:
        try:
            for future in as_completed([pool.submit(work) for _ in range(workers)]):
                future.result()
        except BaseException:
            stop.set()
            raise


def block_size(n_items: int, n_threads: int | None, largest: int) -> int:
    """Items of a range: every thread gets some, and all threads together hold a bounded number."""
    workers = n_threads or default_threads()
    return max(1, min(largest, -(-n_items // workers), max(4, 2 * largest // workers)))


def share(n_items: int, n_threads: int | None) -> int:
    """Items of a thread, if every one gets as many."""
    return -(-n_items // (n_threads or default_threads()))


def default_threads() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
