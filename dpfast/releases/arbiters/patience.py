"""How long one waits for what another process is about to do."""

from __future__ import annotations

import time
from collections.abc import Iterator

SECONDS, PAUSE = 20.0, 0.02  # in all, and between two looks


def tries() -> Iterator[None]:
    """Yield at once, and again after each pause, until the time is over."""
    end = time.monotonic() + SECONDS
    yield
    while time.monotonic() <= end:
        time.sleep(PAUSE)
        yield
