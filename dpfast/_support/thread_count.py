"""How many threads a call may use: as asked, as the environment says, or one for each processor."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from dpfast._support.validation import integer


def n_threads(value: Any) -> int:
    """Return a number of threads; for None that of the environment, or else the processors that may be used."""
    if value is not None:
        return integer("n_threads", value, 1)
    text: Any = os.environ.get("DPFAST_NUM_THREADS")
    if text is None:
        return _processors()
    with contextlib.suppress(ValueError):
        text = int(text)
    return integer("the environment variable DPFAST_NUM_THREADS", text, 1)


def _processors() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
