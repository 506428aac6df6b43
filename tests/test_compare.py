"""The comparison with peers, with rows that are made up; nothing of the peers is needed."""

import ast
import json
import sys

import numpy as np
import pytest
from scipy import signal

from benchmarks import readme
from benchmarks.compare import cases, oracles, pictures, table, targets, turns

N = targets.HORIZON
LEVEL = {"level": "little"}
SPEED = {
    "filters": [
        {"what": "batch", "seconds": {"dpfast": [1e-9, 2e-9, 3e-9], "scipy": [5e-9, 6e-9, 7e-9]}},
        {"what": "steps", "seconds": {"dpfast": [8e-9, 9e-9, 9e-9], "scipy": [3e-9, 3e-9, 3e-9]}},
    ],
    "noise": [{"what": "exact", "seconds": {"dpfast": [1e-7] * 3, "opendp": [1e-5] * 3}}],
    "designs": [
        {"what": "banded", "seconds": {"jax-privacy": [2.0, 2.5, 3.0]}, "checks": {"jax-privacy": [3.0, 4.0]}},
        {"what": "root", "seconds": {"dpfast": [1.0] * 3, "jax-privacy": [1.5] * 3}, "checks": {"dpfast": [1.0, 2.0]}},
    ],
}


def row(by, mechanism, rmse, target="sum", steps=N, **fields):
    """Its simulation is a tenth above what is predicted."""
    predicted = None if steps is None else [rmse**2] * steps
    streams = [(1.1 * rmse) ** 2 * x for x in (0.9, 1.1)]
    return targets.Row(by, mechanism, target, step_mse=predicted, stream_mse=streams, **LEVEL | fields)._asdict()


def missing(by, mechanism, reason, target="sum"):
    return targets.Row(by, mechanism, target, missing=reason, **LEVEL)._asdict()


ROWS = {
    "dpfast": [
        row("dpfast", "plain", 2.0),
        row("dpfast", "informed", 1.5, needs="model"),
        row("dpfast", "late", 1.0, needs="model, lag 5"),
        row("dpfast", "smoother", 0.5, needs="model, the whole horizon"),
        row("literature, in dpfast", "old", 3.0),
        row("dpfast", "plain", 2.0, "other"),
        row("dpfast", "plain", 2.0, "third"),
        row("dpfast", "optimal factorization", 1.0, table.CURVES_OF),
    ],
    "jax-privacy": [
        row("jax-privacy", "BLT", 2.5),
        row("jax-privacy", "dense", 0.1, steps=256),
        row("jax-privacy", "BLT", 1.995, "other"),
        row("jax-privacy", "BLT", 9.0, "third"),
        row("jax-privacy", "BLT, mean", 1.0, table.CURVES_OF),
    ],
    "opendp": [
        row("opendp", "tree", 4.0, needs="the whole horizon"),
        missing("opendp", "tree", "only prefix sums", "other"),
        row("opendp", "noise", 1.6, "third", steps=None),
    ],
}


@pytest.fixture
def data():
    parts = [{"rows": rows, "facts": {"noise_multiplier": {"little": 1.25, "more": 4.5}}} for rows in ROWS.values()]
    return table.data(parts, SPEED, "Some CPU; dpfast 0.1.0")


def lines(text):
    return [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]


def test_the_lesser_error_wins_whoever_has_it(data):
    found = {line[0]: line[1:] for line in lines(table.summary(data))}
    assert found["sum"] == [
        "2.500, jax-privacy: BLT",
        "2.000, plain: **dpfast** by 20 %",
        "1.500, informed: **dpfast** by 40 %",
        "1.000, late: **dpfast** by 60 %",
    ]
    assert found["other"][1] == "2.000, plain: level"
    assert found["third"][:2] == ["~1.760, opendp: noise", "2.000, plain: **opendp** by 12 %"]


def test_every_level_of_privacy_has_its_winners():
    rows = [row("dpfast", "ours", 2.0), row("opendp", "theirs", 4.0)]
    rows += [row("dpfast", "ours", 3.0, level="more"), row("opendp", "theirs", 1.5, level="more")]
    data = {"rows": [table.figures(x) for x in rows]}
    little, more = table.summary(data).split("\n\n")
    assert little.startswith("| little |")
    assert lines(little)[0][2] == "2.000, ours: **dpfast** by 50 %"
    assert more.startswith("| more |")
    assert lines(more)[0][2] == "3.000, ours: **opendp** by 50 %"


def test_every_row_is_shown_and_a_peer_that_cannot_says_why(data):
    rows = lines(table.target_table(table.by_target(data["rows"])["other"]))
    assert [x[:2] for x in rows] == [["jax-privacy", "BLT"], ["dpfast", "plain"], ["opendp", "tree"]]
    assert rows[-1][-1] == "only prefix sums"
    shown = table.target_table(table.by_target(data["rows"])["sum"])
    for x in (x for part in ROWS.values() for x in part if x["target"] == "sum"):
        assert f"| {x['by']} | {x['mechanism']} | {x['needs']} |" in shown


def test_what_ran_over_another_horizon_is_shown_and_wins_nothing(data):
    rows = lines(table.target_table(table.by_target(data["rows"])["sum"]))
    (dense,) = (x for x in rows if x[1] == "dense")
    assert dense[3] == "0.1000"
    assert dense[6] == "–"
    assert "dense" not in table.summary(data)


def test_the_fastest_is_marked_whoever_it_is(data):
    text = table.race_tables(data, spread=False)
    assert "| batch | **2** | 6 | dpfast 3 × as fast |" in text
    assert "| steps | 9 | **3** | scipy 3 × as fast |" in text
    assert "| exact | **100** | 1e+04 | dpfast 100 × as fast |" in text
    assert "| banded | 2.5 | – | dpfast has none |" in text
    assert "| batch | **2** (1 … 3) | 6 (5 … 7) |" in table.race_tables(data, spread=True)


def test_designs_are_told_apart_by_their_errors_too(data):
    assert lines(table.design_errors(data["races"]["designs"])) == [
        ["banded", "3.000 / 4.000", "–"],
        ["root", "–", "1.000 / 2.000"],
    ]


@pytest.fixture
def written(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    markers = "".join(f"<!-- {x} -->\nold\n<!-- end {x} -->\n" for x in ("compare", "compare-speed"))
    (tmp_path / "README.md").write_text(f"Before\n{markers}After\n", encoding="utf-8")
    parts = {"speed": SPEED | {"versions": {"Python": "3.11.7", "jax": "0.1"}}}
    for name, rows in ROWS.items():
        parts[name] = {
            "versions": {name: "1.2.3"},
            "facts": {"noise_multiplier": {"little": 1.25, "more": 4.5}},
            "rows": rows,
        }
    paths = []
    for name, part in parts.items():
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(part), encoding="utf-8")
    table.main(*paths, root=tmp_path)
    return tmp_path


def test_all_of_it_is_written(written):
    found = json.loads((written / "docs/compare/compare.json").read_text(encoding="utf-8"))
    text, page = ((written / x).read_text(encoding="utf-8") for x in ("README.md", "docs/compare.md"))
    assert "old" not in text
    assert text.startswith("Before\n<!-- compare -->\n| ")
    assert text.endswith("<!-- end compare-speed -->\nAfter\n")
    for block in table.blocks(found).values():
        assert block in text
    assert page == table.page(found)
    assert "opendp 1.2.3" in page
    assert "`nox -s compare`" in page


def test_pictures_have_a_place_for_every_mechanism(written, data):
    path = written / "docs/compare/compare.json"
    pictures.main(path, written)
    for name in ("steps", "dots"):
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for x in data["rows"]:
        assert sum(belongs(x) for belongs, _ in pictures.KINDS.values()) == 1


def test_the_readme_and_the_page_show_the_last_run():
    path = table.ROOT / "docs/compare/compare.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    text = (table.ROOT / "README.md").read_text(encoding="utf-8")
    for name, block in table.blocks(found).items():
        assert f"<!-- {name} -->\n{block}\n<!-- end {name} -->" in text
    assert (table.ROOT / "docs/compare.md").read_text(encoding="utf-8") == table.page(found)
    assert {x["by"] for x in found["rows"]} == {*table.OURS, "jax-privacy", "opendp"}
    assert list(table.by_target(found["rows"])) == [x.name for x in targets.TARGETS]
    assert list(table.by_level(found)) == [x.name for x in targets.LEVELS_OF_PRIVACY]


# --- what must agree ------------------------------------------------------------------------------


def agreeing():
    """Rows of all that the oracles look at, a part for each package."""
    names = {pair for both in oracles.EQUAL for pair in both} | {("dpfast", oracles.LEAST), ("jax-privacy", "dense")}
    rows = [row(by, mechanism, 2.0, oracles.SUM) for by, mechanism in sorted(names)]
    for x in rows:
        x["stream_mse"] = [3.9, 4.1, 4.05]
    kinds = {"dpfast": {"dpfast", oracles.LITERATURE}, "jax-privacy": {"jax-privacy"}, "opendp": {"opendp"}}
    parts = {name: {"rows": [x for x in rows if x["by"] in by]} for name, by in kinds.items()}
    for part in parts.values():
        part["rows"].sort(key=lambda x: x["by"])
        part["facts"] = {"noise_multiplier": {"little": 1.25}}
    return parts


def changed(name, mechanism, factor):
    parts = agreeing()
    (one,) = (x for x in parts[name]["rows"] if x["mechanism"] == mechanism)
    one["step_mse"] = [factor * x for x in one["step_mse"]]
    one["stream_mse"] = [factor * x for x in one["stream_mse"]]
    return oracles.failures(list(parts.values()))


def test_oracles_are_content_where_all_agree(tmp_path, capsys):
    parts = agreeing()
    paths = [tmp_path / f"{name}.json" for name in parts]
    for path, part in zip(paths, parts.values(), strict=True):
        path.write_text(json.dumps(part), encoding="utf-8")
    assert oracles.main(*paths) == 0
    assert "agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "mechanism", "factor", "words"),
    [
        ("jax-privacy", "square root", 1.0001, "square root"),
        ("jax-privacy", "BLT, mean", 1.01, "BLT, mean"),
        ("opendp", "Laplace noise on u", 0.99, "Laplace noise on u"),
        ("jax-privacy", "dense", 0.999, "dense"),  # below what is certified to be the least
        ("jax-privacy", "dense", 1.02, "dense"),
    ],
)
def test_oracles_say_who_disagrees(name, mechanism, factor, words):
    (text,) = changed(name, mechanism, factor)
    assert words in text
    assert "must be" in text


def test_oracles_compare_simulations_and_noise():
    parts = agreeing()
    parts["opendp"]["rows"][0]["stream_mse"] = [4.5, 4.6, 4.55]
    parts["jax-privacy"]["facts"] = {"noise_multiplier": {"little": 1.2501}}
    noise, simulated = oracles.failures(list(parts.values()))
    assert "noise multiplier must be that of dp-accounting, 1.2501, got 1.25" in noise
    assert "standard errors off" in simulated


# --- the task, the cases and the turns ------------------------------------------------------------


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda x: x.name)
def test_impulse_responses_are_scipys(target):
    impulse = np.eye(1, 200)[0]
    np.testing.assert_allclose(target.coefficients(200), signal.lfilter(target.b, target.a, impulse), atol=1e-12)
    assert target.is_stable == (target.name != "running sum")


def test_the_task_is_read_as_it_was_written(tmp_path):
    targets.main(tmp_path / "task.json")
    assert targets.Task.read(tmp_path / "task.json") == targets.TASK


def test_the_noise_is_shaped_by_the_inverse_of_the_strategy():
    strategy, noising = cases.strategy(), cases.noising()
    c = signal.lfilter(*strategy, np.eye(1, 50)[0])
    powers = np.array(cases.BUF_DECAY) ** np.arange(49)[:, None]
    np.testing.assert_allclose(c, [1, *(powers @ cases.OUTPUT_SCALE)], rtol=1e-11)  # of a pole at .999
    np.testing.assert_allclose(signal.lfilter(*noising, c), np.eye(1, 50)[0], atol=1e-12)


@pytest.mark.parametrize("module", ["targets", "cases", "turns"])
def test_what_peers_import_is_the_standard_library_and_numpy(module):
    path = table.ROOT / f"benchmarks/compare/{module}.py"
    allowed = {*sys.stdlib_module_names, "numpy", "benchmarks"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {x.name.split(".")[0] for x in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in allowed
            assert not node.module.startswith("benchmarks") or node.module == "benchmarks.compare.targets"


def job(check):
    return lambda: turns.Job(lambda: None, 1, check)


def test_nobody_races_who_computes_something_else():
    contestants = {"a": (turns.Here(job([1.0])), {}), "b": (turns.Here(job([1.0 + 1e-6])), {})}
    with pytest.raises(ValueError, match="what b computes must be what all do"):
        turns.race("sums", contestants, tolerance=1e-9)
    found = turns.race("sums", contestants, tolerance=1e-5, rounds=3)
    assert set(found["seconds"]) == {"a", "b"}
    assert found["checks"] == {"a": [1.0], "b": [1.0 + 1e-6]}


def test_contestants_elsewhere_answer_until_they_are_dismissed(tmp_path, monkeypatch):
    text = """
from benchmarks.compare import turns
def prepare(x):
    print("not an answer")
    return turns.Job(lambda: None, 10, [2 * x])
turns.serve(prepare, "numpy")
"""
    (tmp_path / "doubling.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{table.ROOT}")
    other = turns.Elsewhere(sys.executable, "doubling")
    assert other.versions["numpy"] == np.__version__
    assert other.begin({"x": 21}) == [42]
    assert 0 <= other.seconds() < 1
    other.close()
    with pytest.raises(RuntimeError, match=r"no\.such\.module ended"):
        turns.Elsewhere(sys.executable, "no.such.module")


# --- the other tables of the README ---------------------------------------------------------------


def test_the_example_stands_with_both_calibrations_side_by_side():
    common = {"designed for": "chain", "mechanism": "DFE", "prefilter": "LZF", "decision": "soft", "lag": "5"}
    figures = {"ideal RMSE": "0.4111512", "predicted": "", "simulated": "6.65114", "low": "6.6258", "high": "6.67644"}
    rows = [
        {"κ": "paper", **common, **figures},
        {"κ": "paper", **common, **figures, "designed for": "printed"},
        {"κ": "exact", **common, **figures, "simulated": "5.27341"},
    ]
    (line,) = lines(readme.example_block(rows).split("\n\n")[0])
    simulated = "6.6511 (6.6258 … 6.6764)", "5.2734 (6.6258 … 6.6764)"
    assert line == ["DFE, soft", "LZF", "5", "0.41115 ᵃ", "–", *simulated]


def test_the_log_stands_with_a_column_a_series():
    rows = [
        {"series": s, "mechanism": m, "RMSE": x, "spread of true output": y}
        for s, m, x, y in [("A", "LZF", "0.5", "0.9"), ("B", "LZF", "0.25", "0.8")]
    ]
    assert lines(readme.evaluate_block(rows)) == [
        ["LZF", "0.50000", "0.25000"],
        ["*spread of the true output*", "*0.90000*", "*0.80000*"],
    ]
