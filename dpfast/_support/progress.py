"""Bars on standard error for what takes long: the one place that calls tqdm (extra ``progress``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dpfast._support import validation


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
    with bar_class()(total=total, desc=title, unit=unit, unit_scale=scaled, delay=delay) as shown_bar:
        yield shown_bar.update
