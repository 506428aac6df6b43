"""Refuse options of ``dpfast release`` that no column has as its name, and that contradict one another."""

from __future__ import annotations

import argparse

from dpfast._support import validation
from dpfast.signals.events.declared_span import Span


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
    if options.quiet and options.private_counts:
        raise ValueError("quiet must come without --private-counts, which is there to show counts")


def check_follow(options: argparse.Namespace, span: Span) -> None:
    """Refuse options of streams for files, and what a stream cannot be asked for."""
    if not options.follow:
        if options.grace is not None:
            raise ValueError("grace must come with --follow: the events of a file are all there")
        if options.keep_steps is not None:
            raise ValueError("keep_steps must come with --follow: a release of a file is kept as a whole")
        return
    if options.compose or options.name is not None or options.format != "csv":
        raise ValueError("follow must come without --compose and --name, and with --format csv: its one file grows")
    if options.keep_steps is not None:
        validation.integer("keep_steps", options.keep_steps, 1)
        if options.adapt:
            raise ValueError("adapt must come without --keep-steps: the receiver is fitted to all that was published")
    if not span.utc:
        raise ValueError("start must have a UTC offset with --follow, such as Z: a local clock jumps twice a year")
