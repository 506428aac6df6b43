from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.study_file import OF_FILE, read
from dpfast.simulation.sweep.grid import ParameterGrid

GRID = """
[grid]
mechanism = ["zero-forcing", "lmmse"]
target = "exponential:0.9"
model = "arma:1/1,-0.5"
epsilon = 1
delta = 1e-6
"""


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return str(path)

    return write


def test_what_is_not_said_is_left_to_the_defaults_of_the_python_interface(toml):
    found = read(toml("seed = 1" + GRID), {"width": None})
    assert found.options == {"seed": 1, "store": str(Path("dpfast-study/study.sqlite"))}
    assert (found.out, found.title, found.description) == (Path("dpfast-study"), None, None)
    assert found.grid.axes == {"mechanism": ("zero_forcing", "lmmse")}


def test_a_file_has_all_words_and_arguments_go_before_it(toml):
    path = toml(
        """
        title = "A study"
        description = "Of nothing."
        seed = 1
        store = "kept.sqlite"
        out = "there"
        n-samples = 500
        burn_in = 10
        width = 0.05
        decide = "max-change"
        budget = 1e6
        confidence = 0.9
        dtype = "float32"
        workers = 2
        """
        + GRID
    )
    expected = {
        "store": "kept.sqlite",
        "seed": 1,
        "n_samples": 500,
        "burn_in": 10,
        "width": 0.05,
        "decide": ["max_change"],
        "budget": 1e6,
        "confidence": 0.9,
        "dtype": "float32",
        "workers": 2,
    }
    found = read(path, {})
    assert found.options == expected
    assert (found.out, found.title, found.description) == (Path("there"), "A study", "Of nothing.")
    found = read(path, {"seed": 2, "width": "none", "out": "here"})
    assert found.options == expected | {"seed": 2, "width": None}
    assert found.out == Path("here")


def test_grids_of_a_file_are_those_of_python(toml):
    text = """
        [[grid]]
        mechanism = "decision-feedback"
        target = { b = [1], a = [1, -0.9] }
        model = { kind = "levels", levels = [0, 1], probabilities = [0.5, 0.5] }
        prefilter = ["zero-forcing", "decision-feedback"]
        delta = 1e-6
        max-change = 2
        lag = [0, 5]
        [grid.epsilon]
        weak = 5
        strong-one = 0.1
        [[grid]]
        mechanism = ["lmmse", "optimal"]
        target = { b = [1], a = [1, -0.9] }
        model = { kind = "levels", levels = [0, 1], probabilities = [0.5, 0.5] }
        epsilon = { start = 0.1, stop = 10, number = 5, spacing = "log" }
        delta = 1e-6
        max_change = 2
        lag = [0, 5, "smoother"]
        """
    shared = {"target": dp.Filter([1], [1, -0.9]), "model": dp.IndependentLevels([0, 1], [0.5, 0.5]), "delta": 1e-6}
    parts = [
        {
            "mechanism": dp.decision_feedback,
            **shared,
            "prefilter": ["zero-forcing", "decision-feedback"],
            "max_change": 2,
            "lag": [0, 5],
            "epsilon": {"weak": 5, "strong-one": 0.1},
        },
        {
            "mechanism": [dp.lmmse, dp.optimal],
            **shared,
            "epsilon": np.geomspace(0.1, 9, 5),
            "max_change": 2,
            "lag": [0, 5, None],
        },
    ]
    with pytest.raises(ValueError, match="epsilon must have one label for each value"):
        read(toml("seed = 1\n" + text), {})  # 0.1 is a strong one
    found = read(toml("seed = 1\n" + text.replace("stop = 10", "stop = 9").replace("start = 0.1", "start = 0.2")), {})
    parts[1]["epsilon"] = np.geomspace(0.2, 9, 5)
    expected = ParameterGrid(parts)
    assert found.grid.content == expected.content
    assert found.grid.axes == expected.axes
    assert found.grid.points == expected.points


def test_the_file_in_the_documentation_is_one(toml):
    page = (Path(__file__).parents[2] / "docs" / "study.md").read_text(encoding="utf-8")
    found = read(toml(page.split("```toml\n")[1].split("```")[0]), {})
    assert len(found.grid.cases) > 10
    words = [word.replace("_", "-") for word in OF_FILE]
    assert [word for word in words if f"`{word}`" not in page] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "seed = 1\nseeds = 2" + GRID,
            r"must not have the word 'seeds': it knows title, .*, grid; did you mean seed\?$",
        ),
        ("seed = 1\nn-samples = 1\nn_samples = 2" + GRID, "every word once"),
        ("seed = 1" + GRID + "max-change = 1\nmax_change = 2", "every parameter of a grid once"),
        ("seed = 1", "grid must be given in .*study.toml$"),
        (GRID, "seed must be given in .*study.toml, or as --seed$"),
        ("seed = 1\ngrid = 3", r"must have a table \[grid\], or several \[\[grid\]\]"),
        ("seed = 1\ngrid = []", r"must have a table \[grid\]"),
        (
            "seed = 1" + GRID + "lagg = 1",
            r"a parameter of the grid must be one of 'mechanism', .* got 'lagg'; did you mean lag\?",
        ),
        ("seed = 1\nout = 3" + GRID, "out must be text, got 3"),
        ("seed = 1\ndtype = 32" + GRID, "dtype must be text"),
        ("seed", "must be TOML"),
    ],
)
def test_files_that_cannot_be_used_say_why(toml, text, message):
    with pytest.raises(ValueError, match=message):
        read(toml(text), {})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(dp.DataError, match=r"cannot read .*missing.toml"):
        read(str(tmp_path / "missing.toml"), {})
