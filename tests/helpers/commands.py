"""Options of a command, as its command line gives them."""

import argparse
import contextlib

import pytest

from dpfast.cli.main import build_parser, main


@contextlib.contextmanager
def blank_pictures():
    """Files of pictures are made without drawing, which takes longer than everything else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.draw", lambda figure, renderer: None)
        yield


def parse(command, *words, **options):
    """Parse a command line: max_change=2 is --max-change 2, follow=True is --follow, and groups=("a", "b") is a,b."""
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words += (flag,)
        elif value is not False:
            words += (flag, ",".join(value) if isinstance(value, tuple) else str(value))
    return build_parser().parse_args([command, *words])


def modify(options, **values):
    """Return the options with some other values."""
    return argparse.Namespace(**vars(options) | values)


def refusal(words, capsys):
    """Run a command that must fail with one line and status 2; return the line."""
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("dpfast: error: ")
    return captured.err
