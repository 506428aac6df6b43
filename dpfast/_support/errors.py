"""Exceptions and warnings; each message says what to do about it."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

Warned = tuple[str, type[Warning]]


class DesignError(ValueError):
    """Tell that no mechanism with these arguments exists, or that none was found."""


class UnstableFilterError(DesignError):
    """Refuse a filter with a pole outside of, or too near to, the unit circle."""


class PaleyWienerError(DesignError):
    """Tell that a spectrum vanishes on a whole band, so that it has no causal factor."""


class DataError(ValueError):
    """Refuse a file or an array of observations that cannot be used."""


class ReleaseError(ValueError):
    """Refuse a release: nothing was published by the call."""


class EngineError(RuntimeError):
    """Workers of a sweep are lost, or not fit for it; what is finished is kept."""


class MissingExtraError(ImportError):
    """Tell that an optional dependency is not installed; the message names the extra that brings it."""


class ToleranceWarning(UserWarning):
    """Warn that a filter of the largest allowed order loses more than ``tolerance``; the message says how much."""


class ConvergenceWarning(UserWarning):
    """Warn that an optimum is not certified as closely as usual; the message says how closely."""


class AccuracyWarning(UserWarning):
    """Warn that a mechanism explains less than half of the variance of the true output, or that its error is doubtful.

    It is also that of a mechanism that gets other noise than it was designed for. The message says what would help.
    """


class ModelWarning(UserWarning):
    """Warn that what was published contradicts the model of the design: how, and what the error may be."""


_NOTED: ContextVar[list[Warned] | None] = ContextVar("noted", default=None)


@contextlib.contextmanager
def note_warnings() -> Iterator[list[Warned]]:
    """Collect the warnings of this package that come inside, and do not give them: who keeps a result has to."""
    noted: list[Warned] = []
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, at the line of the caller's that called the package."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append((message, category))
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "dpfast":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
