"""The option ``--settings``: a TOML file whose words stand for options that are not given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast._support.settings_file import read_words

OPTION = "--settings"
_NO_WORDS = ("help", "settings", "read")


def add_settings(command: argparse.ArgumentParser) -> None:
    """Add the option ``--settings`` to a command."""
    command.add_argument(
        OPTION,
        metavar="FILE",
        help="take options from this TOML file, as release.toml: a word for each, such as high = 30 for --high 30, and "
        "events for EVENTS; options that are given beside it override those of the file",
    )


def take_settings(command: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Make what a file says the defaults of a command, where the arguments name one.

    Raises
    ------
    ValueError
        For a file that cannot be read, a word that is no option, and a value that is none of its kind.
    """
    path = _find_path(given)
    if path is None:
        return
    known = {action.dest: action for action in command._actions if action.dest not in _NO_WORDS}
    for name, value in read_words(Path(path), known).items():
        action = known[name]
        action.default = _read_value(f"{path}: {name}", action, value)
        action.required = False
        if not action.option_strings:
            action.nargs = "?"


def _find_path(given: Sequence[str]) -> str | None:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(OPTION)
    try:
        path: str | None = finder.parse_known_args(list(given))[0].settings
    except argparse.ArgumentError:  # without a file: the command says so
        return None
    return path


def _read_value(name: str, action: argparse.Action, value: Any) -> Any:
    """Return what stands for an option: true or false, a list of texts, or the text that would be typed."""
    if action.nargs == 0:
        validation.instance(name, value, bool, "true or false")
        return value
    if isinstance(value, list) and action.dest == "groups" and all(isinstance(x, str) for x in value):
        return value
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise validation.fail(name, "text, a number or a point in time", value)
    return str(value) if action.choices is None else validation.choice(name, value, action.choices)
