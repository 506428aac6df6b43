"""What workers do in tests: they find this module by its name, and it is soon imported."""

import os
import signal
import time
from pathlib import Path


def double(x):
    return 2 * x


def where(seconds):
    """This worker, a while later."""
    time.sleep(seconds)
    return os.getpid()


def environment(name):
    return os.environ.get(name)


def fail(x):
    raise ValueError(f"no {x}")


def fail_strangely(x):
    class UnknownError(Exception):
        pass

    raise UnknownError(f"no {x}")


def die(x):
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def die_once(path):
    """Die, but not when called again with the same path."""
    if not Path(path).exists():
        Path(path).touch()
        die(path)
    return path


def interrupted(path):
    """Send Ctrl-C to itself, and say that it made no difference."""
    os.kill(os.getpid(), signal.SIGINT)
    return path
