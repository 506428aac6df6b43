"""Processes of our own: started afresh, fed through a pipe, one thread each, gone with their parent.

Why not loky: there one worker that dies (of too little memory, for example) breaks the executor and fails all tasks
that are under way, and workers outlive a parent that is killed until their tasks are done. Starting takes as long.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from dpfast.simulation.sweep.sent_arrays import Inbox, Numbers, Outbox

_NAME = "dpfast worker"
STARTED_BY_IMPORT = 86  # exit code of a worker that a script would have start further ones
# A worker is one thread, also in linear algebra, which looks at these when it is loaded.
_ONE_THREAD = ("DPFAST_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Job:
    """An item on its way to a worker, in the form in which it travels."""

    def __init__(self, item: Any, function: Callable[[Any], Any], numbers: Numbers) -> None:
        self.item, self.n_deaths = item, 0
        self.packed = numbers.pack((function, item))


def end_if_imported() -> None:
    """End a worker that comes to start workers itself, as it imports a script which does so without being asked to.

    It says nothing, as its parent does. Without this Python would write what it thinks of it, for each worker.
    """
    if multiprocessing.current_process().name == _NAME:
        sys.exit(STARTED_BY_IMPORT)


class Worker:
    """A worker: its process, its connection, and its job if it has one."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), name=_NAME, daemon=True)
        self.ready, self.exit_code, self.is_unguarded = False, "", False
        self.job: Job | None = None
        self._outbox = Outbox()
        with theirs, _holding_interrupts(), _limiting_threads():
            self.process.start()

    def give(self, job: Job) -> None:
        """Send a job; the worker must be ready."""
        self.job = job
        with contextlib.suppress(OSError):  # if it is dead, that will be seen where answers are read
            self.connection.send_bytes(self._outbox.message(job.packed))

    def receive(self) -> bytes | None:
        """Receive what the worker has sent; None if it is dead."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Wait for a process that has been killed, and let it go."""
        self.process.join()
        self.is_unguarded = self.process.exitcode == STARTED_BY_IMPORT
        self.exit_code = f"exit code {self.process.exitcode}"
        self.process.close()
        self.connection.close()


def _serve(connection: multiprocessing.connection.Connection) -> None:
    """Work as a worker: say that it is ready, and answer one job after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection.send_bytes(pickle.dumps(None))
    inbox = Inbox()
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_run_job(inbox, connection.recv_bytes()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run_job(inbox: Inbox, message: bytes) -> bytes:
    """Do a job; return (whether it succeeded, result or error) as bytes."""
    try:
        function, item = inbox.read(message)
        return pickle.dumps((True, function(item)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001  the parent raises it
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
        return _pickle_error(error)


def _pickle_error(error: Exception) -> bytes:
    """Pickle an error; one that cannot travel is put in other words."""
    try:
        data = pickle.dumps((False, error))
        pickle.loads(data)
    except Exception:  # noqa: BLE001  an error may refuse in any way
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return data


@contextlib.contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back; a process that is started meanwhile never gets it, not even before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _limiting_threads() -> Iterator[None]:
    """Set the environment so that processes that are started meanwhile use one thread."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
