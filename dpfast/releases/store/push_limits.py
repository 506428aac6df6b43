"""Limits of what can be published at once, and of how far steps are counted."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation

MAX_STEP = 2**62
MAX_SAMPLES = 5 * 10**7  # a row of SQLite holds 10⁹ bytes: v and the estimate take 16 a sample
MAX_BATCH = 2 * 10**9  # in as many rows as it takes; a value takes 60 bytes of memory beside its input


def check_push(first: Any, n_streams: int, n_steps: int, at_most: int = MAX_SAMPLES) -> int:
    """Return the number of the first of some steps; refuse more than fit behind it and into one push."""
    if n_streams * n_steps > at_most:
        raise ValueError(
            f"at most {at_most:,} samples can be published at once, got {n_streams} × {n_steps}: cut them in chunks"
        )
    return validation.integer("first", first, 0, MAX_STEP - n_steps)


def cut_rows(n_streams: int, n_steps: int) -> list[slice]:
    """Return the steps of each row into which what is published at once is cut."""
    at_once = max(1, MAX_SAMPLES // n_streams)
    return [slice(a, min(a + at_once, n_steps)) for a in range(0, max(1, n_steps), at_once)]
