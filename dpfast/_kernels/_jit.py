"""Numba's options, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile at the first call, cache on disk, release the GIL; no fastmath, so that bits do not depend on the CPU."""
    compiled: Any = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    return cast("Function", compiled)
