"""Processes that end with a test, alone or as a Dask cluster."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from helpers.patience import PATIENCE


@contextlib.contextmanager
def processes():
    """Starts Python processes that end here."""
    with contextlib.ExitStack() as stack:

        def start(*words, **options):
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen([sys.executable, *words], env=environment, **options)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


@contextlib.contextmanager
def cluster(n_workers=3):
    """The address of a scheduler, and its workers, each a process, as on machines of their own."""
    address, quiet = f"tcp://127.0.0.1:{_free_port()}", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with processes() as start:

        def dask(part, *words):
            return start("-m", f"distributed.cli.dask_{part}", *words, "--no-dashboard", "--host", "127.0.0.1", **quiet)

        dask("scheduler", "--port", address.rpartition(":")[2])
        yield address, [dask("worker", address, "--no-nanny", "--nthreads", "1") for _ in range(n_workers)]


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def gone(pid):
    """Whether a process has ended, if not yet waited for by whoever has inherited it."""
    with contextlib.suppress(FileNotFoundError):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def eventually(condition, seconds=PATIENCE):
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
