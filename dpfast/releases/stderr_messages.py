"""Messages on standard error while a release runs: they depend on the clock alone, on no event."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

_BEAT = 10.0  # seconds between two messages of a file


def say(text: str) -> None:
    """Write a line to standard error, if it can be written: what is published does not depend on it."""
    with contextlib.suppress(OSError):
        print(f"dpfast: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def heartbeat(shown: bool, doing: str, *, seconds: float = _BEAT) -> Iterator[None]:
    """Say every few seconds what is being done, and for how long, and nothing that tells how much of it there is."""
    if not shown:
        yield
        return
    over, began = threading.Event(), time.monotonic()

    def beat() -> None:
        while not over.wait(seconds):
            say(f"{doing}, for {time.monotonic() - began:.0f} s now")

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
