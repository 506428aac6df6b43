"""The command ``dpfast show``: what a saved mechanism is and what it guarantees."""

from __future__ import annotations

import argparse

from dpfast.cli.options import MECHANISM
from dpfast.mechanisms.guarantee_text import describe
from dpfast.mechanisms.serialization.mechanism_file import load

SUMMARY = "tell what a saved mechanism is, where it came from and what it guarantees"
DESCRIPTION = "Tells what a saved mechanism is, where it came from, what it guarantees and how accurate it is."


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the argument for the file of the mechanism."""
    command.add_argument("file", metavar="FILE", help=MECHANISM)


def run(options: argparse.Namespace) -> str:
    """Return the description of the mechanism in the file."""
    return describe(load(options.file))
