"""Lines of designs that take long: on a terminal only, with the step they are at, and gone at the end."""

import io
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
import types

import pytest

from dpfast._support import progress


@pytest.fixture
def terminal(monkeypatch):
    """Standard error that takes itself for a terminal, and little patience."""
    written = io.StringIO()
    written.isatty = lambda: True
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=written))
    monkeypatch.setattr(progress, "_PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_PAUSE", 0.01)
    return written


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def threads():
    return {x for x in threading.enumerate() if type(x) is threading.Thread}


@progress.shows_progress
def slow(terminal, text="slow"):
    progress.report_step("step 3")
    wait_for(lambda: terminal.getvalue().count(text) > 2)  # it is written again and again
    return 7


def test_a_long_design_names_itself_and_its_step_and_the_line_goes(terminal):
    before = threads()
    assert slow(terminal, "slow, step 3 00:0") == 7
    assert terminal.getvalue().endswith("\r")
    assert terminal.getvalue().split("\r")[-2].strip() == ""
    assert threads() == before
    assert progress._running == []


def test_a_short_one_is_silent(terminal):
    assert progress.shows_progress(lambda: 1)() == 1
    progress.report_step("nowhere")
    time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_errors_end_the_line(terminal):
    @progress.shows_progress
    def failing():
        slow.__wrapped__(terminal, "failing")
        raise KeyboardInterrupt

    before = threads()
    with pytest.raises(KeyboardInterrupt):
        failing()
    assert threads() == before
    assert progress._running == []


def test_the_outer_design_alone_has_a_line(terminal):
    @progress.shows_progress
    def outer():
        return slow(terminal, "outer, step 3")

    assert outer() == 7
    assert "slow" not in terminal.getvalue()


def test_a_bar_hides_the_line(terminal):
    @progress.shows_progress
    def designing():
        with progress.progress_bar(True, 2, "bar") as advance:
            terminal.truncate(0)
            time.sleep(0.2)
            advance(1)
        return terminal.getvalue()

    assert "designing" not in designing()


@pytest.mark.parametrize("hidden", ["pipe", "no stream", "thread", "no tqdm"])
def test_nothing_is_written_where_nobody_sees_it(terminal, monkeypatch, hidden):
    if hidden == "pipe":
        terminal.isatty = lambda: False
    if hidden == "no stream":
        monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=None))
    if hidden == "no tqdm":
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    work = progress.shows_progress(lambda: time.sleep(0.2))
    if hidden == "thread":
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
    assert terminal.getvalue() == ""


def test_an_interrupt_at_a_terminal_ends_both():
    main, other = pty.openpty()
    termios.tcsetwinsize(main, (24, 80))
    code = (
        "from dpfast._support import progress\nimport time\nprogress._PATIENCE = 0.1\n"
        "progress.shows_progress(lambda: time.sleep(20))()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=other) as process:
        os.close(other)
        seen = b""
        while b"lambda" not in seen:
            seen += os.read(main, 1000)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT
    os.close(main)
