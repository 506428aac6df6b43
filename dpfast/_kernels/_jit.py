"""Numba's options, and the decorators of compiled functions: the one place that has them."""

from __future__ import annotations

import functools
import gc
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

DISABLE_JIT = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
# _nrt: kernels allocate nothing, and counting references to arrays would cost more than a short pass
# no_cfunc_wrapper: C code that would call a kernel has its address alone
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": False,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


def _fingerprint() -> str:
    """Digest the source of everything that is compiled."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


_FINGERPRINT = _fingerprint()


def kernel(function: Function) -> Function:
    """Compile at the first call and keep the result on disk until any file of this folder changes.

    No fastmath: what is rounded, and in which order, must not depend on the processor.
    """
    return _keep(function, OPTIONS)


def stage(function: Function) -> Function:
    """Compile what is only called by its address, without what Python would call it by (see `kernel_calls`)."""
    return _keep(function, OPTIONS | {"no_cpython_wrapper": True})


def _keep(function: Function, options: dict[str, Any]) -> Function:
    """Compile with Numba's cache, which looks at the kernel's own file only, and fails on types that are gone.

    So the version of the cache, which is read first, gets the state of the whole folder.
    """
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
        if not DISABLE_JIT:
            compiled.compile = without_collections(compiled.compile)
            files = compiled._cache._cache_file
            files._version = f"{files._version} {_FINGERPRINT}"
    except (RuntimeError, AttributeError):  # no folder to write to; another Numba: rather no cache than a stale one
        compiled = numba.njit(**options)(function)
    return cast("Function", compiled)


def without_collections(compiler: Function) -> Function:
    """Look for no garbage meanwhile: among the many objects of a compiler, that takes a tenth of the time."""

    @functools.wraps(compiler)
    def compile_at_once(*args: Any, **kwargs: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return compiler(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return cast("Function", compile_at_once)


def part(function: Function) -> Function:
    """Put a part of kernels in its place before anything is compiled: a kernel in a kernel is compiled twice."""
    return cast("Function", numba.njit(inline="always", **OPTIONS)(function))
