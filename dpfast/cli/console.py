"""Standard output and error: closed ones, and pipes that nobody reads any more, as behind ``| head``."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from typing import TextIO

UNREAD = 141  # the exit status that a shell gives a process which SIGPIPE has ended


def open_missing() -> None:
    """Put the null device in the place of standard streams that are closed, as after ``>&-`` in a shell.

    Python has None for them, and the next file that is opened would get their number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for as long as we run


def silence_unread() -> bool:
    """Tell whether standard output or error is a pipe that nobody reads; such streams lead nowhere from now on.

    Otherwise the interpreter would complain once more when it flushes them at its end.
    """
    numbers = [_file_number(stream) for stream in (sys.stdout, sys.stderr)]
    broken = [number for number in numbers if number is not None and _is_broken(number)]
    for number in broken:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    return bool(broken)


def _file_number(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except OSError:  # of a notebook, which is no file
        return None


def _is_broken(number: int) -> bool:
    """Tell whether nobody reads it; where the system cannot tell, a pipe that broke is taken for this one."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(number, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
