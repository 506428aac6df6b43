"""Refuse options of ``dpfast release`` that no column has as its name, and that contradict one another."""

from __future__ import annotations

import argparse

from dpfast._support import validation


def check_text(name: str, text: str | None) -> None:
    """Refuse what was typed in another encoding: no column has such a name, and no guarantee could show it."""
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise validation.fail(name, "text in the encoding of the terminal", text) from None


def check_shown(options: argparse.Namespace) -> None:
    """Refuse options about what is shown that contradict one another."""
    if options.dry_run and options.follow:
        raise ValueError("dry_run must come without --follow, whose events come once: take --private-counts there")
    if options.private_counts and not options.follow:
        raise ValueError("private_counts must come with --follow: those of a file are shown unless there is --quiet")
    if options.quiet and (options.dry_run or options.private_counts):
        raise ValueError("quiet must come without --dry-run and --private-counts, which are there to show counts")
