"""Ctrl-C, for tests of several modules."""

import _thread
import contextlib
import gc
import signal
import threading
import time


def press_ctrl_c():
    """From another thread; it wakes the main one."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


@contextlib.contextmanager
def unswallowed():
    """Garbage is not collected: Hypothesis looks on when it is, and what is raised there is swallowed."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def ctrl_c(seconds, condition=lambda: True):
    """Pressed so long after the beginning, and not before a condition holds."""

    def press():
        while not condition():
            time.sleep(0.001)
        press_ctrl_c()

    timer = threading.Timer(seconds, press)
    with unswallowed():
        timer.start()
        try:
            yield
        finally:
            timer.join()
