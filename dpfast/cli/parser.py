"""Command lines that name the word they do not know, and the one that was probably meant."""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpfast._support.settings_file import underscored
from dpfast._support.validation import did_you_mean
from dpfast.mechanisms.lags import SMOOTHER


class Options(argparse.ArgumentParser):
    """The options of one command, which are written out in full.

    An unknown option is the first thing to be told, before options that are missing because it was misspelt.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, behind this check."""
        given = _given(args)
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for word in itertools.takewhile(lambda x: x != "--", given):
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and name not in known:
                self.error(f"unknown option {name}{did_you_mean(name, known)}")
        return super().parse_known_args(given, namespace)


class Commands(argparse.ArgumentParser):
    """What stands before the command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._commands = self.add_subparsers(
            required=True, metavar="COMMAND", dest="command", title="commands", parser_class=Options
        )

    def add_command(self, name: str, summary: str, description: str) -> argparse.ArgumentParser:
        """A command with its own options; the summary is for the list of commands."""
        return self._commands.add_parser(name, help=summary, description=description)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, behind a check of the command."""
        given, known = _given(args), list(self._commands.choices)
        word = next((x for x in given if not x.startswith("-")), None)
        if word is not None and word not in known:
            meant = did_you_mean(word, known) or "."
            self.error(f"unknown command {word!r}{meant} The commands are {', '.join(known)}")
        return super().parse_known_args(given, namespace)


def _given(args: Sequence[str] | None) -> list[str]:
    return list(sys.argv[1:] if args is None else args)


# --- values ---------------------------------------------------------------------------------------


def at_least(minimum: int) -> Any:
    """A whole number from a minimum up."""

    def whole_number(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return whole_number


def width(text: str) -> float | str:
    """A number, or none."""
    return text if text == "none" else float(text)


def lag(text: str) -> int | str:
    """A number of samples, or the smoother."""
    return text if text == SMOOTHER else int(text)


def words(text: str) -> list[str]:
    """Words between commas, in quotes where they hold some."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"must be words between commas, got {text!r}: {error}") from None


def fraction(text: str) -> Fraction:
    """An exact number."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a number such as 20, 0.5 or 1/3, got {text!r}") from None


def name_and_word(text: str) -> tuple[str, str]:
    """The two sides of an equals sign."""
    name, equals, word = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=WORD, got {text!r}")
    return underscored(name), word
