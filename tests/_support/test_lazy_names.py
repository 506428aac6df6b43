"""The public names: found when first used, each where the stub says, and nothing loaded before."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import dpfast as dp
from dpfast._support.lazy_names import lazy_names, stub_imports

STUB = stub_imports(Path(dp.__file__).with_suffix(".pyi"))


@pytest.mark.parametrize("name", dp.__all__)
def test_every_public_name_is_what_its_module_has(name):
    assert getattr(dp, name) is getattr(importlib.import_module(STUB[name]), name)
    assert name in dir(dp)


def test_all_names_are_imported_by_a_star():
    found = {}
    exec("from dpfast import *", found)
    assert {*dp.__all__} <= {*found}


def test_other_names_are_refused_as_by_any_module():
    assert not hasattr(dp, "optimum")
    with pytest.raises(AttributeError, match="module 'dpfast' has no attribute 'optimum'"):
        _ = dp.optimum
    with pytest.raises(ImportError, match="optimum"):
        exec("from dpfast import optimum")


def test_a_name_is_found_once(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "home_of_names.py").write_text("x = object()\n", encoding="utf-8")
    (tmp_path / "lazy_house.pyi").write_text("from home_of_names import x as x\n", encoding="utf-8")
    (tmp_path / "lazy_house.py").write_text(
        "from dpfast._support.lazy_names import lazy_names\n"
        "__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)\n",
        encoding="utf-8",
    )
    house = importlib.import_module("lazy_house")
    assert "home_of_names" not in sys.modules
    assert house.x is house.x
    assert vars(house)["x"] is sys.modules["home_of_names"].x
    assert lazy_names("lazy_house", str(tmp_path / "lazy_house.py"))[0] == ["x"]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import dpfast", ["numpy"]),
        ("import dpfast as dp; dp.Filter([1, 0.5], [1, -0.5, 0.2])", ["numba", "scipy"]),
        ("import dpfast as dp; dp.Privacy(1, 1e-6)", ["numba", "scipy.signal", "scipy.linalg", "scipy.optimize"]),
        ("import dpfast as dp; dp.running_sum(8)", ["numba", "scipy"]),
    ],
    ids=["import", "filter", "privacy", "running sum"],
)
def test_what_is_not_needed_is_not_loaded(code, absent):
    beside = loaded_by("import scipy.special") if "privacy" in code.lower() else set()  # before 1.16 nearly all of it
    assert not {*absent} & (loaded_by(code) - beside)


def loaded_by(code):
    """The modules that a new Python has behind a line of code."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {*shown.stdout.split()}
