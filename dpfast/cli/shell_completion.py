"""``dpfast --completion SHELL``: what a shell needs to complete commands, options and files (shtab)."""

from __future__ import annotations

import argparse
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import MissingExtraError

OPTION = "--completion"
SHELLS = ("bash", "zsh", "tcsh")
_FILES = {"FILE", "FILE.toml", "EVENTS", "STORE"}  # as the help calls them
_FOLDERS = {"DIR"}


class PrintCompletion(argparse.Action):
    """Print the script for a shell, and exit."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Print what completes the whole program, whose option this is."""
        try:
            shtab = validation.optional("shtab", "completion")
        except MissingExtraError as error:
            parser.error(str(error))
        for action in _every_action(parser):
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # which shtab looks for
            elif action.metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        print(shtab.complete(parser, shell=str(values)), end="")
        parser.exit()


def _every_action(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """List the options and arguments of a parser and of its commands."""
    found: list[argparse.Action] = []
    for action in parser._actions:
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found += _every_action(command)
    return found
