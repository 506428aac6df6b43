"""Checks of public arguments, in one wording: the argument's name, what it must be, what it was."""

from __future__ import annotations

import difflib
import importlib
import math
import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support.errors import MissingExtraError

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
LARGEST = 1e50  # products of squares of such numbers do not overflow
LARGEST_SINGLE = 1e9  # likewise in float32
SMALLEST = 1 / LARGEST
MAX_LAG = 10_000


_LONGEST_PATH = 4096
_LONGEST_SHOWN = 1000  # characters of a text: a longer one may be data


def fail(name: str, must_be: str, got: object) -> ValueError:
    """Make the error for an argument that is not what it must be."""
    return ValueError(f"{name} must be {must_be}, got {_describe(got)}")


def _describe(got: object) -> str:
    """Describe a scalar as it is; arrays and tables by kind and size, as they may be somebody's data."""
    if isinstance(got, (list, tuple, dict)):
        return f"a {type(got).__name__} of length {len(got)}"
    if hasattr(got, "__array__") and not isinstance(got, type) and np.ndim(got) > 0:
        return f"a {type(got).__name__} of shape {np.shape(got)}"
    if isinstance(got, (bytes, bytearray, memoryview)):
        return f"{type(got).__name__} of length {len(got)}"
    if isinstance(got, str) and ("\n" in got or len(got) > _LONGEST_SHOWN):
        return f"text of length {len(got)}"
    text = " ".join(repr(got).split())  # systems of scipy and python-control take several lines
    return text if len(text) <= 80 else text[:77] + "..."


def number(name: str, value: Any, *, above: float = -math.inf, below: float = math.inf) -> float:
    """Return a finite real number strictly between two bounds; refuse anything else."""
    must_be = "a finite number"
    if math.isfinite(above) and math.isfinite(below):
        must_be = f"a number strictly between {above:g} and {below:g}"
    elif math.isfinite(above):
        must_be += f" above {above:g}"
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise fail(name, must_be, value) from None
    wrong_kind = isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) > 0
    if wrong_kind or not math.isfinite(result) or not above < result < below:
        raise fail(name, must_be, value)
    return result


def fraction(name: str, value: Any) -> float:
    """Return a number that is at least 0 and below 1; refuse anything else."""
    try:
        is_zero = float(value) == 0 and not isinstance(value, (bool, np.bool_, str, bytes)) and np.ndim(value) == 0
        return 0.0 if is_zero else number(name, value, above=0, below=1)
    except (TypeError, ValueError, OverflowError):
        raise fail(name, "a number, at least 0 and below 1", value) from None


def is_several(value: object) -> bool:
    """Tell whether an argument is of several numbers; an array without dimensions is one, and text is none."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return an integer that is not below `minimum` and not above `maximum`; refuse anything else."""
    must_be = f"an integer, at least {minimum}" + ("" if maximum is None else f" and at most {maximum}")
    try:
        result = operator.index(value)
    except TypeError:
        raise fail(name, must_be, value) from None
    if isinstance(value, (bool, np.bool_)) or result < minimum or (maximum is not None and result > maximum):
        raise fail(name, must_be, value)
    return result


def lag(value: Any) -> int:
    """Return a lag in samples; refuse anything else."""
    return integer("lag", value, 0, MAX_LAG)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return one of a few words; refuse any other."""
    words = tuple(options)
    if not isinstance(value, str) or value not in words:
        error = fail(name, "one of " + (", ".join(map(repr, words)) or "(none)"), value)
        raise ValueError(f"{error}{did_you_mean(value, words)}")
    return value


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Make the end of an error about a word that is not known: which one was probably meant, if any is near.

    Not for names that somebody's data hold: the answer would show them.
    """
    words = {x.lower(): x for x in known}
    said = str(word).lower()
    begun = [x for x in words if len(said) > 2 and x.startswith(said)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(said, words, n=1) or begun
    return f"; did you mean {words[near[0]]}?" if near else ""


def array(name: str, value: ArrayLike, *, ndim: int | None = None, empty: bool = True) -> Array:
    """Return a float64 copy of real, finite numbers. The message shows the shape or the dtype, never the data."""
    given = _real(name, value)
    if ndim is not None and given.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension{'s' * (ndim != 1)}, got shape {given.shape}")
    if not empty and given.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {given.shape}")
    result = np.array(given, dtype=np.float64, order="C")
    check_size(name, result)
    return result


def samples(
    name: str, value: ArrayLike, dtype: Any = np.float64, *, finite: bool = True, axis: str = "time"
) -> NDArray[Any]:
    """Return real numbers (..., axis) of a dtype, `finite` if asked for.

    They are a view where they are that already, in any memory order.
    """
    given = _real(name, value)
    if given.ndim == 0:
        raise ValueError(f"{name} must be an array (..., {axis}), got a number")
    if given.dtype != dtype:
        with np.errstate(over="ignore"):  # infinite then, and refused
            given = given.astype(dtype)
    if finite:
        check_size(name, given)
    return given


def precision(value: Any) -> np.dtype[Any]:
    """Return the dtype float64 or float32; refuse any other."""
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        if value is not None and _is_dtype(value, dtype):
            return dtype
    raise fail("dtype", "numpy.float64 or numpy.float32", value)


def _is_dtype(value: Any, dtype: np.dtype[Any]) -> bool:
    try:
        return bool(np.dtype(value) == dtype)
    except TypeError:
        return False


def _real(name: str, value: ArrayLike) -> NDArray[Any]:
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must not have masked values: fill or remove them")
    try:
        given = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array of numbers, got rows of unequal length") from None
    if given.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {given.dtype}: convert it")
    return given


def largest(dtype: Any) -> float:
    """Return the largest magnitude of samples of a dtype."""
    return LARGEST if dtype == np.float64 else LARGEST_SINGLE


def check_size(name: str, x: NDArray[Any]) -> None:
    """Refuse what is not finite or too large."""
    # the extremes of an array with a NaN are NaN
    bound = largest(x.dtype)
    if x.size == 0 or (x.max() <= bound and x.min() >= -bound):
        return
    count = np.count_nonzero(~np.isfinite(x))
    if count:
        raise ValueError(f"{name} must be finite, got {count} NaN or infinite values: remove or replace them")
    count = np.count_nonzero(np.abs(x) > bound)
    raise ValueError(f"{name} must be at most {bound:g} in magnitude, got {count} larger values: scale it")


def freeze(x: NDArray[Any]) -> NDArray[Any]:
    """Make the array read-only, and return it."""
    x.setflags(write=False)
    return x


class Frozen:
    """A class whose arrays are read-only, in copies and pickles too: what was computed from them stays true."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        # of an object that is made anew; arrays out of a pickle can be written to
        self.__dict__.update({x: freeze(y) if isinstance(y, np.ndarray) else y for x, y in state.items()})


def instance(name: str, value: Any, kind: type, must_be: str) -> None:
    """Refuse what is not of a class."""
    if not isinstance(value, kind):
        raise fail(name, must_be, value)


def path(name: str, value: Any) -> Path:
    """Return a file or a folder as a path; refuse anything else."""
    if not (isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)):
        raise fail(name, "a path", value)
    if "\n" in os.fspath(value) or len(os.fspath(value)) > _LONGEST_PATH:
        raise fail(name, "a path, not the content of a file", os.fspath(value))
    return Path(value)


def seed(value: Any) -> int:
    """Return a seed as an integer; from a NumPy Generator one is drawn."""
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**63))
    try:
        return integer("seed", value, 0)
    except ValueError:
        raise fail("seed", "an integer, at least 0, or a generator of numpy.random.default_rng", value) from None


def optional(module: str, extra: str) -> ModuleType:
    """Import a module that an extra brings."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingExtraError(f"this needs {package}: pip install 'dpfast[{extra}]'") from None
