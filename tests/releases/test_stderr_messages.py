"""What is said while a file is released: by the clock alone, and to whoever reads it."""

import sys
import threading

from dpfast.releases import stderr_messages
from dpfast.releases.stderr_messages import heartbeat


def test_a_heartbeat_goes_on_until_the_end(monkeypatch):
    beats, twice = [], threading.Event()

    def say(text):
        beats.append(text)
        if len(beats) == 2:
            twice.set()

    monkeypatch.setattr(stderr_messages, "say", say)
    with heartbeat(True, "releasing 24 steps of 2 groups", seconds=0.001):
        twice.wait()
    known = len(beats)
    assert all(text.startswith("releasing 24 steps of 2 groups, for ") for text in beats)
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}
    with heartbeat(False, "nothing", seconds=0.001):
        assert "heartbeat" not in {thread.name for thread in threading.enumerate()}
    assert len(beats) == known


def test_nobody_who_reads_is_no_error(monkeypatch):
    class Broken:
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    stderr_messages.say("something")
