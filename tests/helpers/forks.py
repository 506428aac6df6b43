"""Processes that are forks of this one, which has imported and compiled all."""

import multiprocessing
import warnings


def start(target, *args):
    """Start a call in a fork; it shares no lock with the threads that others may have started here."""
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


def run(target, *args):
    """The exit code of a call in a fork."""
    process = start(target, *args)
    process.join()
    return process.exitcode
