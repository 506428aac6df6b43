"""Settings in TOML files."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dpfast._support import validation
from dpfast._support.errors import DataError

_T = TypeVar("_T")


def check_text(name: str, value: Any) -> str:
    """Refuse what is no text, and return the text."""
    if not isinstance(value, str):
        raise validation.fail(name, "text", value)
    return value


def construct(name: str, make: Callable[..., _T], arguments: Mapping[str, Any]) -> _T:
    """Call a constructor with the words of a table."""
    check_known(name, arguments, inspect.signature(make).parameters)
    try:
        return make(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be used: {error}") from None


def check_known(name: str, words: Iterable[str], known: Iterable[str]) -> None:
    """Refuse words that nobody knows."""
    for word in words:
        if word not in known:
            meant = validation.did_you_mean(word, known)
            raise ValueError(f"{name} has the unknown key {word!r}: the valid keys are {', '.join(known)}{meant}")


# --- files of words -------------------------------------------------------------------------------


def read_words(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Read the words of a TOML file: each of the known ones at most once, with - or with _."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} must be TOML: {error}") from None
    settings = {replace_hyphens(name): value for name, value in content.items()}
    if len(settings) < len(content):
        raise DataError(f"{path} must have every key once, got one with - and with _: leave one of them out")
    check_known(str(path), settings, known)
    return settings


def replace_hyphens(word: str) -> str:
    """Replace hyphens by underscores: ``max-change`` and ``max_change`` are the same word."""
    return word.replace("-", "_")
