"""Numbers in options of the command: fractions, and what floats cannot hold."""

import argparse

import pytest

from dpfast.cli.options import fraction_as_float


def test_a_fraction_beyond_floats_is_refused_in_words():
    assert fraction_as_float("1/3") == 1 / 3
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be less than 1\.8e308, got '1e400'"):
        fraction_as_float("1e400")
