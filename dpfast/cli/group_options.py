"""Options of ``dpfast release`` about groups: their column and their names, in the command or in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dpfast._support.errors import DataError
from dpfast.cli.options import BY, words
from dpfast.signals.events.declared_counts import check_counted_at_once, check_groups
from dpfast.signals.events.declared_span import Span


def add_groups(group: Any) -> None:
    """Add the options to a group."""
    group.add_argument("--by", metavar="COLUMN", help=BY.format("groups"))
    group.add_argument("--groups", type=words, metavar="A,B,C", help="publish these groups of --by, in this order")
    group.add_argument(
        "--groups-file",
        metavar="FILE",
        help="publish the groups of --by whose names are the lines of this file, which is public, in this order",
    )


def declared_groups(options: argparse.Namespace, span: Span) -> tuple[str, ...]:
    """Return the names of the groups that are declared.

    Raises
    ------
    DataError
        For a file that cannot be read.
    ValueError
        For groups that are given twice, for names that cannot be those of groups, and for more of them in a file of
        events than can be counted at once.
    """
    groups = _declared_names(options, span)
    if not options.follow:
        check_counted_at_once(span, len(groups))
    return groups


def _declared_names(options: argparse.Namespace, span: Span) -> tuple[str, ...]:
    """Return the names that are given in the command, or in a file."""
    if options.groups_file is None:
        return check_groups(span, options.by, options.groups)
    if options.groups is not None:
        raise ValueError("groups must be given by --groups or by --groups-file, not by both")
    file = Path(options.groups_file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} must have names of groups in UTF-8, a line each, got other bytes") from None
    return check_groups(span, options.by, text.removesuffix("\n").split("\n"))
