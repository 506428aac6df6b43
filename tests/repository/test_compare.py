"""The comparison with peers, with rows that are made up; nothing of the peers is needed."""

import ast
import json
import sys

import numpy as np
import pytest
from scipy import signal

from benchmarks.harness import measured_tables
from benchmarks.peers import behind, cases, comparison_table, oracles, pictures, targets, turns

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
        row("dpfast", "constant", 4.0, needs="model"),
        row("dpfast", "plain", 2.0),
        row("dpfast", "informed", 1.5, needs="model"),
        row("dpfast", "late", 1.0, needs="model, lag 5"),
        row("dpfast", "smoother", 0.5, needs="model, the whole horizon"),
        row("literature, in dpfast", "old", 3.0),
        row("dpfast", "plain", 2.0, "other"),
        row("dpfast", "plain", 2.0, "third"),
        row("dpfast", "constant", 1.0, "third", needs="model"),
        row("dpfast", "optimal factorization", 1.0, comparison_table.CURVES_OF),
    ],
    "jax-privacy": [
        row("jax-privacy", "BLT", 2.5),
        row("jax-privacy", "dense", 0.1, steps=256),
        row("jax-privacy", "BLT", 1.995, "other"),
        row("jax-privacy", "BLT", 9.0, "third"),
        row("jax-privacy", "BLT, mean", 1.0, comparison_table.CURVES_OF),
    ],
    "behind": [
        row("jax-privacy, behind our receiver", "BLT", 1.75, needs="model"),
        row("jax-privacy, behind our receiver", "BLT, lag 5", 1.25, needs="model, lag 5"),
        missing("opendp, behind our receiver", "tree", "the covariance of its noise is not told"),
    ],
    "opendp": [
        row("opendp", "tree", 4.0, needs="the whole horizon"),
        missing("opendp", "tree", "only prefix sums", "other"),
        row("opendp", "noise", 1.6, "third", steps=None),
    ],
}


def facts(name):
    """Who accounts for noise says how."""
    return {} if name == "behind" else {"noise_multiplier": {"little": 1.25, "more": 4.5}}


@pytest.fixture
def data():
    parts = [{"rows": rows, "facts": facts(name)} for name, rows in ROWS.items()]
    return comparison_table.data(parts, SPEED, "Some CPU; dpfast 0.1.0")


def lines(text):
    return [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]


def test_the_lesser_error_wins_whoever_has_it(data):
    found = {line[0]: line[1:] for line in lines(comparison_table.summary(data))}
    assert found["sum"] == [
        "4.000",
        "2.500 (0.61), jax-privacy: BLT",
        "2.000 (0.75), plain: **dpfast** by 20 %",
        "1.750 (0.81), jax-privacy: BLT",
        "1.500 (0.86), informed: **dpfast** by 14 %",
        "1.250 (0.90), jax-privacy: BLT, lag 5",
        "1.000 (0.94), late: **dpfast** by 20 %",
    ]
    assert found["other"][:3] == ["–", "1.995, jax-privacy: BLT", "2.000, plain: level"]
    assert found["third"][1:3] == ["~1.760 (-2.10), opendp: noise", "2.000 (-3.00), plain: **opendp** by 12 %"]
    assert found["third"][3] == "–"  # nobody's noise stands behind a receiver there


def test_the_constant_is_shown_and_is_nobody_s_best(data):
    rows = lines(comparison_table.target_table(comparison_table.by_target(data["rows"])["third"]))
    assert rows[0][1] == "constant"
    assert {x[1]: x[7] for x in rows} == {"constant": "0.00", "noise": "-2.10", "plain": "-3.00", "BLT": "-80"}
    assert "constant:" not in comparison_table.summary(data)


def test_whether_the_dense_optimiser_ran_is_said(data):
    assert "1024 steps: it is left out;" in comparison_table.dense(data)
    ran = dict(data, rows=[*data["rows"], comparison_table.figures(row("jax-privacy", comparison_table.DENSE, 2.0))])
    assert "it had ten on the sum, and is left out on the others" in comparison_table.dense(ran)
    assert comparison_table.dense(ran) in comparison_table.page(ran)


def test_every_level_of_privacy_has_its_winners():
    rows = [row("dpfast", "ours", 2.0), row("opendp", "theirs", 4.0)]
    rows += [row("dpfast", "ours", 3.0, level="more"), row("opendp", "theirs", 1.5, level="more")]
    data = {"rows": [comparison_table.figures(x) for x in rows]}
    little, more = comparison_table.summary(data).split("\n\n")
    assert little.startswith("| little |")
    assert lines(little)[0][3] == "2.000, ours: **dpfast** by 50 %"
    assert more.startswith("| more |")
    assert lines(more)[0][3] == "3.000, ours: **opendp** by 50 %"


def test_levels_are_listed_as_in_a_sentence(data):
    assert comparison_table.listed(["a"]) == "a"
    assert comparison_table.listed(["a, b", "c, d", "e, f"], "; ") == "a, b; c, d and e, f"
    assert "a unit of sensitivity needs: dpfast 1.250 and 4.500, jax-privacy 1.250 and 4.500" in comparison_table.page(
        data
    )


def test_every_row_is_shown_and_a_peer_that_cannot_says_why(data):
    rows = lines(comparison_table.target_table(comparison_table.by_target(data["rows"])["other"]))
    assert [x[:2] for x in rows] == [["jax-privacy", "BLT"], ["dpfast", "plain"], ["opendp", "tree"]]
    assert rows[-1][-1] == "only prefix sums"
    shown = comparison_table.target_table(comparison_table.by_target(data["rows"])["sum"])
    for x in (x for part in ROWS.values() for x in part if x["target"] == "sum"):
        assert f"| {x['by']} | {x['mechanism']} | {x['needs']} |" in shown


def test_what_ran_over_another_horizon_is_shown_and_wins_nothing(data):
    rows = lines(comparison_table.target_table(comparison_table.by_target(data["rows"])["sum"]))
    (dense,) = (x for x in rows if x[1] == "dense")
    assert dense[3] == "0.1000"
    assert dense[6] == "–"
    assert "dense" not in comparison_table.summary(data)


def test_the_fastest_is_marked_whoever_it_is(data):
    text = comparison_table.race_tables(data, spread=False)
    assert "| batch | **2** | 6 | dpfast 3 × as fast |" in text
    assert "| steps | 9 | **3** | scipy 3 × as fast |" in text
    assert "| exact | **100** | 1e+04 | dpfast 100 × as fast |" in text
    assert "| banded | 2.5 | – | dpfast has none |" in text
    assert "| batch | **2** (1 … 3) | 6 (5 … 7) |" in comparison_table.race_tables(data, spread=True)


def test_designs_are_told_apart_by_their_errors_too(data):
    assert lines(comparison_table.design_errors(data["races"]["designs"])) == [
        ["banded", "3.000 / 4.000", "–"],
        ["root", "–", "1.000 / 2.000"],
    ]


@pytest.fixture
def short(monkeypatch):
    """What the README shows of the rows and races of these tests."""
    shown = {"SHOWN_LEVEL": "little", "SHOWN_TARGETS": ("sum",), "SHOWN_RACES": {"batch": ("ns", 1e9)}}
    for name, value in shown.items():
        monkeypatch.setattr(comparison_table, name, value)


def test_the_readme_shows_what_is_known_row_by_row(data, short):
    text = comparison_table.short_errors(data)
    assert text.startswith("| little | sum | explained |")
    assert lines(text) == [
        ["*constant*: publish the mean", "4.000", "0.00"],
        ["best of the peers", "2.500", "0.61"],
        ["dpfast, nothing known of u", "2.000, **dpfast** by 20 %", "0.75"],
        ["peers' noise, our receiver, model known", "1.750", "0.81"],
        ["dpfast, model known", "1.500, **dpfast** by 14 %", "0.86"],
        ["dpfast, model known, 5 steps later", "1.000, **dpfast** by 20 %", "0.94"],
    ]
    assert lines(comparison_table.short_speed(data)) == [["batch, ns", "2", "6, scipy", "dpfast 3 × as fast"]]


@pytest.fixture
def written(tmp_path, monkeypatch, short):
    (tmp_path / "docs/measurements").mkdir(parents=True)
    markers = "".join(f"<!-- {x} -->\nold\n<!-- end {x} -->\n" for x in ("errors", "speed"))
    (tmp_path / "README.md").write_text(f"Before\n{markers}After\n", encoding="utf-8")
    parts = {"speed": SPEED | {"versions": {"Python": "3.11.7", "jax": "0.1"}}}
    for name, rows in ROWS.items():
        parts[name] = {
            "versions": {name: "1.2.3"},
            "facts": facts(name),
            "rows": rows,
        }
    paths = []
    for name, part in parts.items():
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(part), encoding="utf-8")
    comparison_table.main(*paths, root=tmp_path)
    return tmp_path


def test_all_of_it_is_written(written):
    found = json.loads((written / "docs/measurements/compare/compare.json").read_text(encoding="utf-8"))
    text, page = ((written / x).read_text(encoding="utf-8") for x in ("README.md", "docs/measurements/compare.md"))
    assert "old" not in text
    assert text.startswith("Before\n<!-- errors -->\n| ")
    assert text.endswith("<!-- end speed -->\nAfter\n")
    for block in comparison_table.blocks(found).values():
        assert block in text
    assert page == comparison_table.page(found)
    assert "opendp 1.2.3" in page
    assert "`nox -s compare`" in page


def test_pictures_have_a_place_for_every_mechanism(written, data):
    path = written / "docs/measurements/compare/compare.json"
    pictures.main(path, written)
    for name in ("steps", "dots"):
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    for x in data["rows"]:
        assert sum(belongs(x) for belongs, _ in pictures.KINDS.values()) == 1


def test_the_readme_and_the_page_show_the_last_run():
    folder = comparison_table.ROOT / "docs/measurements"
    found = json.loads((folder / "compare/compare.json").read_text(encoding="utf-8"))
    text = (comparison_table.ROOT / "README.md").read_text(encoding="utf-8")
    for name, block in comparison_table.blocks(found).items():
        assert f"<!-- {name} -->\n{block}\n<!-- end {name} -->" in text
    assert (folder / "compare.md").read_text(encoding="utf-8") == comparison_table.page(found)
    everybody = {*comparison_table.OURS, *comparison_table.PEERS}
    assert everybody <= {x["by"] for x in found["rows"]} <= everybody | {*comparison_table.BEHIND}
    assert list(comparison_table.by_target(found["rows"])) == [x.name for x in targets.TARGETS]
    assert list(comparison_table.by_level(found)) == [x.name for x in targets.LEVELS_OF_PRIVACY]


# --- what must agree ------------------------------------------------------------------------------


def agreeing():
    """Rows of all that the oracles look at, a part for each package."""
    names = {pair for both in oracles.EQUAL for pair in both} | {("dpfast", oracles.LEAST), ("jax-privacy", "dense")}
    names |= {*oracles.BEHIND, *oracles.NOT_ABOVE}
    rows = [row(by, mechanism, 2.0, oracles.SUM) for by, mechanism in sorted(names)]
    for x in rows:
        x["stream_mse"] = [3.9, 4.1, 4.05]
    kinds = {"dpfast": {"dpfast", oracles.LITERATURE}, "jax-privacy": {"jax-privacy"}, "opendp": {"opendp"}}
    kinds["behind"] = {oracles.BEHIND[1][0]}
    parts = {name: {"rows": [x for x in rows if x["by"] in by]} for name, by in kinds.items()}
    for part in parts.values():
        part["rows"].sort(key=lambda x: x["by"])
        part["facts"] = {"noise_multiplier": {"little": 1.25}}
    parts["behind"]["facts"] = {}
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
        ("behind", "Laplace noise on u", 1.0001, "behind our receiver, Laplace noise on u"),
        ("dpfast", "integer noise on u", 1.0001, "geometric noise on u"),
    ],
)
def test_oracles_say_who_disagrees(name, mechanism, factor, words):
    (text,) = changed(name, mechanism, factor)
    assert words in text
    assert "must be" in text


def test_integer_noise_may_be_less_than_that_of_a_peer():
    assert not changed("dpfast", "integer noise on u", 0.9)


def test_oracles_want_an_error_of_both_or_of_none():
    parts = agreeing()
    pair = [
        x
        for name, mechanism in (("dpfast", oracles.LEAST), ("jax-privacy", "dense"))
        for x in parts[name]["rows"]
        if x["mechanism"] == mechanism
    ]
    for x in pair:
        x.update(step_mse=None, stream_mse=None, missing="Gaussian noise gives no pure ε")
    assert not oracles.failures(list(parts.values()))
    pair[0].update(step_mse=[4.0] * N, missing="")
    (text,) = oracles.failures(list(parts.values()))
    assert "jax-privacy, dense: must have an error" in text
    assert text.endswith("got none: Gaussian noise gives no pure ε")


def test_oracles_compare_simulations_and_noise():
    parts = agreeing()
    parts["opendp"]["rows"][0]["stream_mse"] = [4.5, 4.6, 4.55]
    parts["jax-privacy"]["facts"] = {"noise_multiplier": {"little": 1.2501}}
    noise, simulated = oracles.failures(list(parts.values()))
    assert "noise multiplier must be that of dp-accounting, 1.2501, got 1.25" in noise
    assert "standard errors off" in simulated


# --- peers' noise behind our receiver -------------------------------------------------------------

FEW = 12
SMOOTHED = targets.Target("smoothed", [0.3], [1.0, -0.7])
SMALL_TASK = targets.Task(FEW, 4000, 1, (SMOOTHED,), (targets.Level("little", 1.0, 0.1),))


def by_normal_equations(c, std, lag):
    """Of every step: the variance of y given v up to t + lag, by solving for each step alone."""
    n = len(c)
    covariance = 0.25 * 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    a = np.tril(0.3 * 0.7 ** np.subtract.outer(np.arange(n), np.arange(n)).clip(0))
    of_v = c @ covariance @ c.T + std**2 * np.eye(n)
    found = []
    for t in range(n):
        seen = slice(0, min(t + lag + 1, n))
        cross = (a @ covariance @ c.T)[t, seen]
        found.append((a @ covariance @ a.T)[t, t] - cross @ np.linalg.solve(of_v[seen, seen], cross))
    return found


STRATEGIES = {
    "input": (np.eye(FEW), None),
    "output": (np.tril(0.3 * 0.7 ** np.subtract.outer(np.arange(FEW), np.arange(FEW)).clip(0)), None),
    "toeplitz": (np.eye(FEW) + 0.6 * np.eye(FEW, k=-1), (-0.6) ** np.arange(FEW)),
    "matrix": (
        (dense := np.eye(FEW) + np.tril(np.random.default_rng(1).normal(size=(FEW, FEW)), -1) / 4),
        np.linalg.inv(dense),
    ),
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_the_receiver_behind_a_peer_is_the_best_linear_one(kind, tmp_path):
    c, inverse = STRATEGIES[kind]
    released = targets.Released("peer", "theirs", "smoothed", kind, {"little": 0.4})
    told = [targets.Row("peer", "theirs", "smoothed", step_mse=[1.0] * FEW, stream_mse=[1.0, 1.0], level="little")]
    told.append(told[0]._replace(mechanism="tree"))
    peer, task, out = (str(tmp_path / f"{x}.json") for x in ("peer", "task", "out"))
    targets.write(peer, iter(told), ("numpy",), released=[released], arrays={} if inverse is None else {kind: inverse})
    (tmp_path / "task.json").write_text(json.dumps(SMALL_TASK._asdict()), encoding="utf-8")
    behind.main(task, out, peer)
    now, later, tree = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["rows"]
    assert (now["by"], now["needs"], now["level"]) == ("peer, behind our receiver", "model", "little")
    assert (later["mechanism"], later["needs"]) == ("theirs, lag 5", "model, lag 5")
    assert (tree["mechanism"], tree["missing"]) == ("tree", behind.UNKNOWN)
    np.testing.assert_allclose(now["step_mse"], by_normal_equations(c, 0.4, 0), rtol=1e-9)
    np.testing.assert_allclose(later["step_mse"], by_normal_equations(c, 0.4, 5), rtol=1e-9)
    for x in (now, later):
        streams = np.array(x["stream_mse"])
        error = streams.mean() - np.mean(x["step_mse"])
        assert abs(error) < 5 * streams.std() / np.sqrt(len(streams))  # 6e-7


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
    path = comparison_table.ROOT / f"benchmarks/peers/{module}.py"
    allowed = {*sys.stdlib_module_names, "numpy", "benchmarks"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {x.name.split(".")[0] for x in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in allowed
            assert not node.module.startswith("benchmarks") or node.module == "benchmarks.peers.targets"


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
from benchmarks.peers import turns
def prepare(x):
    print("not an answer")
    return turns.Job(lambda: None, 10, [2 * x])
turns.serve(prepare, "numpy")
"""
    (tmp_path / "doubling.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{comparison_table.ROOT}")
    other = turns.Elsewhere(sys.executable, "doubling")
    assert other.versions["numpy"] == np.__version__
    assert other.begin({"x": 21}) == [42]
    assert 0 <= other.seconds() < 1
    other.close()
    with pytest.raises(RuntimeError, match=r"no\.such\.module ended"):
        turns.Elsewhere(sys.executable, "no.such.module")


# --- the tables of docs/measurements ---------------------------------------------------------------


def test_the_example_stands_with_both_calibrations_side_by_side():
    common = {"designed for": "chain", "mechanism": "DFE", "prefilter": "LZF", "decision": "soft", "lag": "5"}
    figures = {"ideal RMSE": "0.4111512", "predicted": "", "simulated": "6.65114", "low": "6.6258", "high": "6.67644"}
    figures["explained"] = "0.8510"
    rows = [
        {"κ": "paper", **common, **figures},
        {"κ": "paper", **common, **figures, "designed for": "printed"},
        {"κ": "exact", **common, **figures, "simulated": "5.27341", "explained": "0.90637"},
        {
            "κ": "any",
            **common,
            **figures,
            "mechanism": "constant",
            "decision": "",
            "ideal RMSE": "",
            "explained": "-1e-4",
        },
    ]
    line, constant = lines(measured_tables.example_block(rows).split("\n\n")[0])
    simulated = "6.6511 (6.6258 … 6.6764)", "5.2734 (6.6258 … 6.6764)"
    assert line == ["DFE, soft", "LZF", "5", "0.41115 ᵃ", "–", *simulated, "0.851, 0.906"]
    assert constant == ["constant", "LZF", "5", "–", "–", simulated[0], simulated[0], "0.000, 0.000"]


def test_the_log_stands_with_a_column_a_series():
    rows = [
        {"series": s, "mechanism": m, "RMSE": x, "spread of true output": y, "explained": "0.69136"}
        for s, m, x, y in [("A", "LZF", "0.5", "0.9"), ("B", "LZF", "0.25", "0.8")]
    ]
    assert lines(measured_tables.evaluate_block(rows)) == [
        ["LZF", "0.50000 (0.691)", "0.25000 (0.691)"],
        ["*spread of the true output*", "*0.90000*", "*0.80000*"],
    ]
