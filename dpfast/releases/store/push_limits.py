"""Limits of what can be published at once, and of how far steps are counted."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation

MAX_STEP = 2**62
MAX_SAMPLES = 5 * 10**7  # a row of SQLite holds 10⁹ bytes: v and the estimate take 16 a sample


def check_push(first: Any, n_streams: int, n_steps: int) -> int:
    """Return the number of the first of some steps; refuse more than fit behind it and into one push."""
    if n_streams * n_steps > MAX_SAMPLES:
        raise ValueError(
            f"at most {MAX_SAMPLES:,} samples can be published at once, got {n_streams} × {n_steps}: cut them in chunks"
        )
    return validation.integer("first", first, 0, MAX_STEP - n_steps)
