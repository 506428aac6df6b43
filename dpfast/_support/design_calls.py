"""What every public design does beside designing: say that it takes long, and keep linear algebra on one thread.

Matrices of designs are small or solved in steps that wait for one another: threads of a BLAS gain nothing there, take
twice the time of the clock with two of them, more on a busy machine, and their number would decide the last bits.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dpfast._support.progress import shows_progress

_Design = TypeVar("_Design", bound=Callable[..., Any])
_LIMITING = threading.Lock()  # held by the design that has set the threads, and gives them back


@functools.cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  it brings a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def public_design(design: _Design) -> _Design:
    """Mark a function as a public design.

    The threads of a BLAS belong to the whole process: a design that is called inside of another one, or beside it in
    another thread, takes what that one has set.
    """
    watched = shows_progress(design)

    @functools.wraps(design)
    def limited(*args: Any, **kwargs: Any) -> Any:
        if not _LIMITING.acquire(blocking=False):
            return watched(*args, **kwargs)
        try:
            with _libraries().limit(limits=1, user_api="blas"):
                return watched(*args, **kwargs)
        finally:
            _LIMITING.release()

    return cast(_Design, limited)
