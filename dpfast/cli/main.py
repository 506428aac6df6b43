"""The dpfast command."""

from __future__ import annotations

import argparse
import io
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import EngineError, MissingExtraError
from dpfast.cli import console, design
from dpfast.cli import options as arguments
from dpfast.design import descriptions
from dpfast.privacy.privacy import Privacy


def _example(options: argparse.Namespace) -> str:
    from dpfast._support.output_folder import Folder
    from dpfast.cli import example

    validation.optional("matplotlib.figure", "cli")  # now, not when all is computed
    folder = Folder(options.out)
    text = example.run(
        folder,
        n_streams=options.streams,
        n_samples=options.samples,
        seed=options.seed,
        command=options.line,
        progress=sys.stderr.isatty(),
    )
    return _finished(text, folder)


def _evaluate(options: argparse.Namespace) -> str:
    from dpfast._support.output_folder import Folder
    from dpfast.mechanisms.serialization.mechanism_file import load
    from dpfast.reports import evaluation
    from dpfast.signals.events.historical import read_events

    validation.optional("matplotlib.figure", "cli")
    target = descriptions.parse_target(options.target)
    privacy = Privacy(options.epsilon, options.delta, max_change=options.max_change)
    saved = [load(path) for path in options.mechanism]
    folder = Folder(options.out)
    counts = read_events(
        options.events,
        time=options.time,
        by=options.by,
        period=options.period,
        count=options.count,
        time_format=options.time_format,
    )
    fit = {"order": options.order, "draws": options.draws, "seed": options.seed}
    progress = sys.stderr.isatty()
    text = evaluation.run(counts, target, privacy, folder, **fit, command=options.line, saved=saved, progress=progress)
    return _finished(text, folder)


def _design(options: argparse.Namespace) -> str:
    from dpfast._support.output_folder import Folder
    from dpfast.reports import comparison

    validation.optional("matplotlib.figure", "cli")
    words = {name: value for name, value in vars(options).items() if name in design.OF_DESIGN}
    request = design.request(options.file, words)
    folder = Folder(request.out)
    text = comparison.run(
        request.task,
        folder,
        sources=request.sources,
        choose=request.choose,
        command=options.line,
        progress=sys.stderr.isatty(),
    )
    return _finished(text, folder)


def _study(options: argparse.Namespace) -> str:
    from dpfast.cli import study

    validation.optional("matplotlib.figure", "cli")
    request = study.Request(**{x.name: getattr(options, x.name) for x in fields(study.Request)})
    return _finished(*study.run(request, command=options.line, progress=sys.stderr.isatty()))


def _show(options: argparse.Namespace) -> str:
    from dpfast.mechanisms.describe import describe
    from dpfast.mechanisms.serialization.mechanism_file import load

    return describe(load(options.file))


def _release(options: argparse.Namespace) -> str:
    from dpfast.cli import read_release, release

    if options.read is not None:
        shared, unset = {"out", "adopt"}, (None, False)
        defaults = {x.name: x.default for x in fields(release.Request)}
        given = [x for x, default in defaults.items() if getattr(options, x) not in (*unset, default)]
        return read_release.run(options.read, options.out, adopt=options.adopt, given=sorted({*given} - shared))
    request = release.Request(**{x.name: getattr(options, x.name) for x in fields(release.Request)})
    return release.run(request, progress=sys.stderr.isatty())


def _audit(options: argparse.Namespace) -> str:
    from dpfast._support.output_folder import Folder
    from dpfast.cli import audit

    folder = None if options.out is None else Folder(options.out)
    request = audit.Request(**{x.name: getattr(options, x.name) for x in fields(audit.Request)})
    result = audit.run(request, progress=sys.stderr.isatty())
    options.status = int(result.violated)
    if folder is None:
        return str(result)
    folder.add("audit.txt", f"{result}\n")
    folder.add("audit.csv", result.table.csv())
    return _finished(str(result), folder)


def _finished(text: str, folder: Any) -> str:
    return f"{text}\n\nWritten: " + ", ".join(str(path) for path in folder.write())


_COMMANDS: dict[str, Callable[[argparse.Namespace], str]] = {
    "example": _example,
    "evaluate": _evaluate,
    "design": _design,
    "study": _study,
    "release": _release,
    "audit": _audit,
    "show": _show,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; 0, 1 where an audit found a violation, or a one-line error and 2.

    141, as after SIGPIPE, and no message where nobody reads what it prints.
    """
    console.open_missing()
    try:
        try:
            return _run(sys.argv[1:] if words is None else words)
        finally:
            sys.stdout.flush()  # here, where an error can be caught
    except BrokenPipeError:
        if not console.unread():
            raise
        return console.UNREAD


def _run(given: Sequence[str]) -> int:
    options = arguments.parser().parse_args(given)
    options.line = shlex.join(["dpfast", *given])  # which says it again
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a console that has no κ shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: print(f"dpfast: warning: {message}", file=sys.stderr)
        try:
            print(_COMMANDS[options.command](options), flush=True)
        except (ValueError, OSError, MissingExtraError, EngineError) as error:
            if isinstance(error, BrokenPipeError) and console.unread():
                return console.UNREAD
            print(f"dpfast: error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as stop:
            print(": ".join(["dpfast: interrupted", *map(str, stop.args)]), file=sys.stderr)
            return 130
        except RecursionError:
            print("dpfast: error: a file must not be nested so deeply: write it anew", file=sys.stderr)
            return 2
        except MemoryError:
            print("dpfast: error: not enough memory: take a longer period or fewer streams", file=sys.stderr)
            return 2
    return int(options.status)


if __name__ == "__main__":
    sys.exit(main())
