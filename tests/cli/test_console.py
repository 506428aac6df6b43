"""What a shell does to standard streams: ``| head``, ``>&-``; and the program by its names."""

import os
import runpy
import subprocess
import sys

import pytest

import dpfast as dp
from dpfast.cli import main, show

DPFAST = [sys.executable, "-m", "dpfast"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.zero_forcing(dp.Filter([1 / 3] * 3), dp.Privacy(2, 1e-5)), path)
    return str(path)


def unread_pipe():
    """The writing end of a pipe of which the reading end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def run(command, **streams):
    """Exit status, and what came to the streams that are pipes."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, **streams)
    return done.returncode, (done.stdout or b"") + (done.stderr or b"")


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [("show", ""), *(pytest.param(*x, marks=pytest.mark.long) for x in [("show", "1"), ("help", "")])],
)
def test_a_reader_that_has_read_enough_ends_the_command_without_a_word(saved, arguments, unbuffered):
    command = [*DPFAST, *{"show": ["show", saved], "help": ["release", "--help"]}[arguments]]
    writing = unread_pipe()
    status, said = run(
        command, stdout=writing, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
    )
    os.close(writing)
    assert (status, said) == (141, b"")


@pytest.mark.long  # an output that nobody reads is quick, and so are streams that are closed
def test_an_error_that_nobody_reads_ends_as_quietly():
    writing = unread_pipe()
    status, said = run([*DPFAST, "show", "missing.json"], stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    assert (status, said) == (141, b"")


def test_a_command_runs_without_standard_streams(saved):
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *DPFAST]
    assert run([*closed, "show", saved]) == (0, b"")


def test_other_pipes_that_break_are_errors_that_are_told(monkeypatch, capfd):
    def broken(_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(show, "run", broken)
    assert main.main(["show", "mechanism.json"]) == 2
    assert capfd.readouterr().err == "dpfast: error: [Errno 32] Broken pipe\n"


def test_the_package_runs_as_the_command(monkeypatch, capsys):
    """As all others here do, in processes of their own."""
    monkeypatch.setattr(sys, "argv", ["dpfast", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("dpfast", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out.strip()) == (0, f"dpfast {dp.__version__}")
