"""Results of functions of objects are kept here, without keeping the objects."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


def keep_last(n: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Keep the last n results of a function of a tuple of objects, and of what else can be hashed.

    An object is told from others by what it is, and may go as if nothing were kept of it. A result should hold none of
    the objects, and little else: it stays until it is among the last no more.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.lru_cache(maxsize=n)
        def of_references(references: tuple[weakref.ref[Any], ...], rest: tuple[Hashable, ...]) -> T:
            return function(tuple(x() for x in references), *rest)

        @functools.wraps(function)
        def kept(objects: tuple[Any, ...], *rest: Hashable) -> T:
            return of_references(tuple(map(weakref.ref, objects)), rest)

        return kept

    return decorate
