"""Bars on standard error for what takes long."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from dpfast._support import validation


@contextlib.contextmanager
def bar(shown: bool, total: int, title: str, *, unit: str = "it") -> Iterator[Callable[[int], object]]:
    """A bar (tqdm, extra ``progress``), if it is to be shown; by calling what this gives it moves on by so many."""
    if not shown:
        yield lambda n: None
        return
    tqdm = validation.optional("tqdm", "progress").tqdm
    with tqdm(total=total, desc=title, unit=unit, unit_scale=total >= 1000) as shown_bar:
        yield shown_bar.update
