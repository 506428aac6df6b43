"""The dpfast command: it calls what its first word names, and turns errors into a line and an exit status."""

from __future__ import annotations

import io
import shlex
import sys
import warnings
from collections.abc import Sequence

from dpfast._support.errors import EngineError, MissingExtraError
from dpfast._support.version import __version__
from dpfast.cli import audit, console, design, evaluate, example, ledger, release, shell_completion, show, study
from dpfast.cli.parser import ProgramParser

_COMMANDS = {
    "example": example,
    "evaluate": evaluate,
    "design": design,
    "study": study,
    "release": release,
    "ledger": ledger,
    "audit": audit,
    "show": show,
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: 0, 1 where an audit found a violation, or 2 after a one-line error.

    It is 141, as after SIGPIPE, and there is no message, where nobody reads what the command prints.
    """
    console.open_missing()
    try:
        try:
            return _run(sys.argv[1:] if words is None else words)
        finally:
            sys.stdout.flush()  # here, where an error can be caught
    except BrokenPipeError:
        if not console.silence_unread():
            raise
        return console.UNREAD
    except KeyboardInterrupt as stop:  # also while options are read and results are shown
        print(": ".join(["dpfast: interrupted", *map(str, stop.args)]), file=sys.stderr)
        return 130


def build_parser() -> ProgramParser:
    """Build the parser of the command line, with the options of every command."""
    parser = ProgramParser(
        prog="dpfast",
        description="Publishes filtered event streams under differential privacy, and tells you beforehand how "
        "accurate they will be.",
        epilog="Type 'dpfast COMMAND -h' for the options of a command.",
    )
    parser.set_defaults(status=0)  # of the process; a command may set 1
    parser.add_argument(
        "--version", action="version", version=f"dpfast {__version__}", help="show the version and exit"
    )
    parser.add_argument(
        shell_completion.OPTION,
        action=shell_completion.PrintCompletion,
        choices=shell_completion.SHELLS,
        help="show what a shell needs to complete commands and options: save it where the shell looks for completions",
    )
    for name, command in _COMMANDS.items():
        command.add_options(parser.add_command(name, command.SUMMARY, command.DESCRIPTION))
    return parser


def _run(given: Sequence[str]) -> int:
    options = build_parser().parse_args(given)
    options.line = shlex.join(["dpfast", *given])  # the command, for those who repeat it
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a console that has no κ shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: print(f"dpfast: warning: {message}", file=sys.stderr)
        try:
            print(_COMMANDS[options.command].run(options), flush=True)
        except (ValueError, OSError, MissingExtraError, EngineError) as error:
            if isinstance(error, BrokenPipeError) and console.silence_unread():
                return console.UNREAD
            print(f"dpfast: error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except RecursionError:
            print("dpfast: error: a file must not be nested so deeply: write it anew", file=sys.stderr)
            return 2
        except MemoryError:
            print("dpfast: error: not enough memory: take a longer period or fewer streams", file=sys.stderr)
            return 2
    return int(options.status)


if __name__ == "__main__":
    sys.exit(main())
