"""Bounds say in a sentence for whom they hold, and refuse what is no bound."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpfast
from dpfast import Bound
from dpfast.mechanisms.bound import additive_bound_of


def test_it_says_for_whom_it_holds():
    bound = Bound("additive bound", 6.25, "linear receivers", "posterior means")
    assert bound.rmse == 2.5
    assert str(bound) == (
        "The additive bound is an RMSE of 2.5. It holds for linear receivers. Below it may go posterior means."
    )


def test_zero_is_a_bound_and_less_is_none():
    assert Bound("bound", 0.0, "all", "none").rmse == 0.0
    with pytest.raises(ValueError, match=r"mse must be a finite number above .*got -1"):
        Bound("bound", -1.0, "all", "none")
    with pytest.raises(ValueError, match="holds_for must be text"):
        Bound("bound", 1.0, None, "none")


def test_a_mechanism_knows_its_bound_before_any_other_bound_was_asked_for():
    design = "dp.zero_forcing(dp.Filter([1]), dp.Privacy(1, 1e-6))"
    command = f"import dpfast as dp; print({design}.additive_bound_mse > 0)"
    path = Path(dpfast.__file__).parents[1]
    found = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True, cwd=path)
    assert found.stdout.strip() == "True"


def test_what_is_no_mechanism_has_none():
    with pytest.raises(ValueError, match="mechanism must be a mechanism, got 3"):
        additive_bound_of(3)
