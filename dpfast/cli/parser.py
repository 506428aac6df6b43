"""Command lines that name the word they do not know, and the one that was probably meant."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from typing import Any

from dpfast._support.validation import did_you_mean
from dpfast.cli.settings_option import OPTION, take_settings


class CommandParser(argparse.ArgumentParser):
    """A command with its options, which have to be written out in full.

    An unknown option is the first error, before options that are missing because it was misspelt. A command that has
    the option ``--settings`` takes what is not given from the file that it names.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, once all options are known ones."""
        given = _list_arguments(args)
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for word in itertools.takewhile(lambda x: x != "--", given):
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and name not in known:
                self.error(f"unknown option {name}{did_you_mean(name, known)}")
        if OPTION in known:
            try:
                take_settings(self, given)
            except ValueError as error:
                self.error(str(error))
        return super().parse_known_args(given, namespace)


class ProgramParser(argparse.ArgumentParser):
    """The program ``dpfast``, whose first word is a command.

    An unknown command is an error that names them all, and the one that was probably meant.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._commands = self.add_subparsers(
            required=True, metavar="COMMAND", dest="command", title="commands", parser_class=CommandParser
        )

    def add_command(self, name: str, summary: str, description: str) -> argparse.ArgumentParser:
        """Return the parser of a new command, for its options; the summary is for the list of commands."""
        return self._commands.add_parser(name, help=summary, description=description)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, once the command is a known one."""
        given, known = _list_arguments(args), list(self._commands.choices)
        with_value = {name for x in self._actions if x.nargs is None for name in x.option_strings}
        words = (x for before, x in zip(["", *given], given, strict=False) if before not in with_value)
        word = next((x for x in words if not x.startswith("-")), None)
        if word is not None and word not in known:
            meant = did_you_mean(word, known) or "."
            self.error(f"unknown command {word!r}{meant} The commands are {', '.join(known)}")
        return super().parse_known_args(given, namespace)


def _list_arguments(args: Sequence[str] | None) -> list[str]:
    return list(sys.argv[1:] if args is None else args)
