import csv
import dataclasses
import functools
import io
import math
import re
import warnings

import numpy as np
import pytest
from helpers import pages
from helpers.designs import designed

import dpfast as dp
from dpfast._support.html_fragments import Html
from dpfast._support.output_folder import OutputFolder
from dpfast.design import best_candidates, best_conclusion
from dpfast.design import comparison as families
from dpfast.design.best_demand import Demand
from dpfast.reports import comparison, html_page

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
TASK = Demand(dp.Filter([1], [1, -0.8]), dp.Privacy(1, 1e-3), CHAIN, 2, 0.3)
LABELS = ["optimal", "LZF", "LMMSE", "LMMSE smoother", "input perturbation", "output perturbation", "DFE"]
OTHER_NOISE = ["block sums", "randomised response"]
LAPLACE = "input perturbation (Laplace noise)"
REACTING = "block sums adaptive"
BAYES = ["block sums (Bayes)", REACTING, "randomised response (Bayes)"]
SHARED = "block sums (shared noise)"  # which is none where noise of their own errs less
UNPREDICTED = ["DFE", *BAYES]
PREDICTED = [*(x for x in LABELS if x not in ("DFE", "LMMSE smoother")), LAPLACE, *OTHER_NOISE]
ALL = [*PREDICTED, *UNPREDICTED, "LMMSE smoother"]
FILES = ["curves.csv", "curves.png", "design.csv", "design.md", "magnitudes.png", "mechanism.json", "report.html"]


def joined(text):
    return " ".join(text.split())


def described(folder):
    """What the file says that has all reasons."""
    return joined((folder / "design.md").read_text(encoding="utf-8"))


def shortened(patch):
    """Curves of few points."""
    patch.setattr("dpfast.design.comparison.lags_around", lambda lag: [0, lag])
    patch.setattr("dpfast.design.comparison.epsilons_around", lambda epsilon: [epsilon, 10 * epsilon])


G = dp.Filter([1], [1, -0.5])
QUICK = {
    "LZF": lambda x: designed(dp.zero_forcing, x.target, x.privacy, tolerance=0.3),
    "optimal": lambda x: dp.lmmse(x.target, x.privacy, x.model, lag=x.lag, prefilter=G, name=f"optimal lag {x.lag}"),
    "LMMSE": lambda x: dp.lmmse(x.target, x.privacy, x.model, lag=x.lag, prefilter=G),
    "LMMSE smoother": lambda x: dp.lmmse(x.target, x.privacy, x.model, prefilter=G),
    "block sums adaptive": lambda x: dp.adaptive_blocks(
        x.target, x.privacy, x.model, lag=x.lag, threshold=0.3, longest=4
    ),
    "DFE": lambda x: dp.decision_feedback(x.target, x.privacy, x.model, lag=x.lag, prefilter=G),
}


def shared(family):
    """The candidate, of which equal designs are made once for all tests of this module."""

    def design(task):
        return family.design(task)

    design.__name__ = f"candidate {family.label}"
    return family._replace(design=functools.partial(designed, design))


def replace_designs(monkeypatch, designs):
    """Put other designs in the place of those of some candidates."""
    quick = tuple(x._replace(design=designs.get(x.label, x.design)) for x in best_candidates.filter_candidates())
    monkeypatch.setattr(best_candidates, "filter_candidates", lambda: quick)
    monkeypatch.setattr(families, "filter_candidates", lambda: quick)


@pytest.fixture
def few(monkeypatch):
    """Curves of few points, designs that take no time, and pictures that are not drawn."""
    shortened(monkeypatch)
    monkeypatch.setattr(comparison, "_draw_curves", lambda *_: None)
    monkeypatch.setattr(comparison, "_draw_magnitudes", lambda *_: None)
    monkeypatch.setattr(comparison, "render_png", lambda figure: b"")
    monkeypatch.setattr(html_page, "picture", lambda *_: Html(""))
    monkeypatch.setattr(best_conclusion, "bounds_of", lambda mechanism: ())
    replace_designs(monkeypatch, QUICK)
    replace_designs(monkeypatch, {x.label: shared(x).design for x in best_candidates.filter_candidates()})


def report(folder, task=TASK, *, sources=None, choose=None):
    files = OutputFolder(folder)
    text = comparison.report_comparison(
        task, files, sources=sources or {}, choose=choose, command="dpfast", progress=False
    )
    files.write()
    return text


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def numbers(row):
    return {name: float(value) if value else None for name, value in row.items() if "RMSE" in name or "%" in name}


@pytest.fixture(scope="module", params=pages.RENDERINGS)
def written(tmp_path_factory, request):
    """One report, read by several tests."""
    folder = tmp_path_factory.mktemp("design")
    with pytest.MonkeyPatch.context() as patch:
        shortened(patch)
        pages.render_once(patch, comparison, render=request.param)
        text = report(folder, sources={"target": "public", "tolerance": "public"})
    return folder, text


def test_the_table_has_the_figures_of_the_designs(written):
    table = {row["mechanism"]: row for row in rows(written[0] / "design.csv")}
    assert sorted(list(table)[: len(PREDICTED)]) == sorted(PREDICTED)
    assert list(table)[len(PREDICTED) :] == [*UNPREDICTED, "LMMSE smoother", "constant"]
    errors = [float(table[x]["predicted RMSE"]) for x in list(table)[: len(PREDICTED)]]
    assert errors == sorted(errors)
    spread = dp.constant(TASK.target, CHAIN).predicted_mse
    expected = {
        "optimal": designed(dp.optimal, TASK.target, TASK.privacy, CHAIN, lag=2, tolerance=TASK.tolerance),
        "LZF": designed(dp.zero_forcing, TASK.target, TASK.privacy, tolerance=TASK.tolerance),
        "LMMSE": designed(dp.lmmse, TASK.target, TASK.privacy, CHAIN, lag=2, tolerance=TASK.tolerance),
        "LMMSE smoother": designed(dp.lmmse, TASK.target, TASK.privacy, CHAIN, tolerance=TASK.tolerance),
        "output perturbation": dp.output_perturbation(TASK.target, TASK.privacy),
        "randomised response": dp.randomized_response(TASK.target, TASK.privacy, CHAIN, lag=2),
    }
    for label, mechanism in expected.items():
        found = numbers(table[label])
        assert found["predicted RMSE"] == pytest.approx(mechanism.predicted_rmse, rel=1e-9)
        if mechanism.ideal_rmse is not None:
            assert found["ideal RMSE"] == pytest.approx(mechanism.ideal_rmse, rel=1e-9)
        noise = 100 * mechanism.predicted_noise_mse / mechanism.predicted_mse
        assert found["noise %"] == pytest.approx(noise, rel=1e-9)
        assert found["noise %"] + found["distortion %"] == pytest.approx(100)
        assert float(table[label]["explained"]) == pytest.approx(1 - mechanism.predicted_mse / spread, rel=1e-9)
        assert table[label]["lag"] == ("smoother" if mechanism.lag is None else str(mechanism.lag))
    assert table["input perturbation"]["prefilter"] == "FIR of 1 tap"
    assert table["input perturbation"]["receiver"] == "1 state"
    assert table["DFE"]["receiver"] == "64 + 16 taps"
    feedback = numbers(table["DFE"])
    assert [feedback[x] for x in ("predicted RMSE", "noise %", "distortion %")] == [None] * 3
    assert table["DFE"]["lower bound"] == table["DFE"]["explained"] == ""
    blocks = designed(dp.block_sums, TASK.target, TASK.privacy, CHAIN, lag=2)
    assert float(table["block sums"]["predicted RMSE"]) == pytest.approx(blocks.predicted_rmse, rel=1e-9)
    assert table["block sums"]["prefilter"] == f"sums of {blocks.lengths[0]} steps"
    assert [table["block sums"][x] for x in ("lag", "noise %", "distortion %")] == ["2", "", ""]
    exact, not_yet = ({x for x, row in table.items() if row["exact release"] == how} for how in ("yes", "not yet"))
    assert exact == {*LABELS, *OTHER_NOISE, *BAYES} - {REACTING}
    assert not_yet == {LAPLACE, REACTING}
    assert {label for label, row in table.items() if row["guarantee"] == "pure ε"} == {LAPLACE}
    assert {label for label, row in table.items() if row["inputs may react"] == "no"} == {"LMMSE smoother"}
    assert float(table["block sums"]["worst step"]) == pytest.approx(blocks.worst_step_mse**0.5, rel=1e-9)
    mean = table["constant"]
    assert (float(mean["predicted RMSE"]), mean["explained"]) == (pytest.approx(math.sqrt(spread)), "0.0")


def test_the_lower_bound_is_that_of_the_lag_and_below_all_that_is_linear(written):
    smoother = designed(dp.lmmse, TASK.target, TASK.privacy, CHAIN, tolerance=TASK.tolerance).lower_bound_mse
    optimal = designed(dp.optimal, TASK.target, TASK.privacy, CHAIN, lag=2, tolerance=TASK.tolerance).lower_bound_mse
    table = {row["mechanism"]: row for row in rows(written[0] / "design.csv")}
    assert [table[x]["lower bound"] for x in OTHER_NOISE] == ["", ""]  # it does not hold for other noise
    for row in map(table.__getitem__, LABELS[:-1]):
        bound = smoother if row["lag"] == "smoother" else optimal
        assert float(row["lower bound"]) == pytest.approx(math.sqrt(bound), rel=1e-12)
        assert float(row["lower bound"]) <= float(row["predicted RMSE"])


def test_curves_are_those_of_designs_at_each_point(written):
    found = {
        (x["over"], float(x["value"]), x["mechanism"]): numbers(x)["predicted RMSE"]
        for x in rows(written[0] / "curves.csv")
    }
    linear = [*LABELS[:4], "input perturbation", LAPLACE, "output perturbation", *OTHER_NOISE, "constant"]
    linear += [comparison.BOUND]
    sharing = [*linear[:8], SHARED, *linear[8:]]  # at lag 0
    assert list(found) == [
        *[("lag", x, label) for label in sorted(sharing, key=lambda x: x != comparison.BOUND) for x in (0, 2)],
        *[("epsilon", x, label) for label in sorted(linear, key=lambda x: x != comparison.BOUND) for x in (1, 10)],
    ]
    strong, weak = TASK.privacy, dp.Privacy(10, 1e-3)
    lzf = designed(dp.zero_forcing, TASK.target, strong, tolerance=TASK.tolerance).predicted_rmse
    ratio = weak.noise_multiplier / strong.noise_multiplier
    assert found["epsilon", 10, "LZF"] == pytest.approx(ratio * lzf, rel=1e-9)
    assert found["lag", 0, "LZF"] == found["lag", 2, "LZF"] == pytest.approx(lzf, rel=1e-9)
    for key, privacy, lag in ((("lag", 0), strong, 0), (("lag", 2), strong, 2), (("epsilon", 10), weak, 2)):
        expected = designed(dp.lmmse, TASK.target, privacy, CHAIN, lag=lag, tolerance=TASK.tolerance).predicted_rmse
        assert found[*key, "LMMSE"] == pytest.approx(expected, rel=1e-9)
    optimal = designed(dp.optimal, TASK.target, weak, CHAIN, lag=2, tolerance=TASK.tolerance)
    assert found["epsilon", 10, comparison.BOUND] == pytest.approx(math.sqrt(optimal.lower_bound_mse), rel=1e-9)


def test_all_files_are_written_and_pictures_are_pictures(written):
    folder, text = written
    assert sorted(x.name for x in folder.iterdir()) == FILES
    for name in ("curves.png", "magnitudes.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    page = (folder / "design.md").read_text(encoding="utf-8")
    assert all(f"| {label} |" in page for label in LABELS)
    assert "error-free decisions" in text


def test_the_page_has_the_table_the_pictures_and_the_saved_mechanism(written):
    page = pages.checked((written[0] / "report.html").read_text(encoding="utf-8"))
    assert len(page.all("tr")) == 1 + len(ALL) + 1
    assert page.headings[:2] == ["In short", "Results"] or "In short" in page.headings
    assert [x["alt"] for x in page.all("img")] == list(comparison.SHOWN.values())
    assert dp.load(written[0] / "mechanism.json").summary().splitlines()[0] in " ".join(page.text)
    assert "banner" not in [x.get("class") for x in page.all("div")]


def test_the_saved_mechanism_is_the_best_that_runs_as_a_stream_with_its_sources(written):
    folder, text = written
    saved = dp.load(folder / "mechanism.json")
    assert saved.name == "block sums lag 2"
    assert saved.lengths == designed(dp.block_sums, TASK.target, TASK.privacy, CHAIN, lag=2).lengths
    assert [name for name, word in saved.sources.items() if word == "public"] == ["target"]
    assert saved.summary() in text


def test_what_is_saved_is_the_best_that_can_be_released_and_how_much_worse_it_is_than_the_best(few, tmp_path):
    task = dataclasses.replace(TASK, privacy=dp.Privacy(1, 1e-6))
    text = " ".join(report(tmp_path, task).split())
    table = {row["mechanism"]: numbers(row)["predicted RMSE"] for row in rows(tmp_path / "design.csv")}
    live = {label: x for label, x in table.items() if x and label not in ("LMMSE smoother", "constant")}
    assert min(live, key=live.get) == "block sums"
    assert dp.load(tmp_path / "mechanism.json").name == "block sums lag 2"
    assert "Saved is block sums, which can be released exactly" in text
    text = " ".join(report(tmp_path / "asked", task, choose=LAPLACE).split())
    assert f"Saved is {LAPLACE}, of which there is no exact release so far: it is for studies." in text


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(1.25, "25.0% above"), (1.996, "99.6% above"), (2, "2.0 times"), (9.94, "9.9 times"), (138.83, "139 times")],
)
def test_what_errs_much_more_is_said_to_do_so_many_times(ratio, words):
    made = {"LZF": dp.zero_forcing(TASK.target, TASK.privacy, tolerance=0.3)}
    told = {x.name: None for x in dataclasses.fields(dp.ChoiceRow) if x.name != "status"}
    best = dp.ChoiceRow(**told | {"name": "block sums", "rmse": 1.0, "releasable": False})
    rows = best, dp.ChoiceRow(**told | {"name": "LZF", "rmse": ratio, "releasable": True})
    choice = dp.Choice("", rows, (), (), "mean")
    text = comparison._explain_choice(families.SideBySide(made, choice, "LZF", {}, {}, {}, (), ()))
    assert f"; its predicted RMSE is {words} that of the best of all, block sums, of which there is no exact" in text


@pytest.mark.filterwarnings("ignore::dpfast.AccuracyWarning")
def test_without_delta_there_are_the_families_that_need_none_and_a_note_names_the_others(few, tmp_path):
    text = report(tmp_path, dataclasses.replace(TASK, privacy=dp.Privacy(1)))
    found = [row["mechanism"] for row in rows(tmp_path / "design.csv")]
    assert found == ["block sums", "randomised response", LAPLACE, *BAYES, "constant"]
    assert (
        "No optimal, LZF, LMMSE, input perturbation, output perturbation, DFE, robust: Gaussian noise needs a delta "
        "above 0."
    ) in described(tmp_path)
    assert re.search(r"table are \d+ mechanisms. \d+ need something else: .*a delta above 0 \(7\)", joined(text))
    assert dp.load(tmp_path / "mechanism.json").name == "block sums lag 2"
    assert "epsilon 1, delta 0 (geometric noise)" in text
    curves = {row["mechanism"] for row in rows(tmp_path / "curves.csv") if row["predicted RMSE"]}
    assert curves == {LAPLACE, *OTHER_NOISE, SHARED, "constant"}


def test_what_needs_a_delta_is_not_chosen_without_one_and_the_reason_is_said(few, tmp_path):
    with pytest.raises(
        ValueError, match=r"^choose must be .*, got 'LZF'\. No LZF: Gaussian noise needs a delta above 0"
    ):
        report(tmp_path, dataclasses.replace(TASK, privacy=dp.Privacy(1)), choose="LZF")
    with pytest.raises(ValueError, match=r"^choose must be .*, got 'LZ'[^.]*$"):
        report(tmp_path, dataclasses.replace(TASK, privacy=dp.Privacy(1)), choose="LZ")


def test_a_curve_without_a_point_is_not_in_the_legend():
    row = {"a": dp.input_perturbation(TASK.target, dp.Privacy(1), noise="laplace")}
    values, curves = comparison._known_curves(comparison._collect_lines({0: row, 1: {}}, TASK))
    assert (values, list(curves)) == ([0, 1], ["a", "constant"])


def test_a_change_off_the_lattice_leaves_block_sums_out_with_the_reason(few, tmp_path):
    counts = dp.ARMA([1], [1, -0.5], mean=5)
    text = report(tmp_path, dataclasses.replace(TASK, model=counts, privacy=dp.Privacy(1, 1e-3, max_change=1.5)))
    reason = "max_change must be a multiple of 1, the step of counts, which are integers"
    assert reason not in joined(text)  # in short
    assert re.search(r" not serve here: [^.]*\bblock sums\b[^.]*\. design.md says why\.", joined(text))
    page = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8"))
    written = described(tmp_path)
    assert re.search(rf"No [^.:]*\bblock sums\b[^.:]*: {reason}, got 1.5: round it up; real inputs take", written)
    # once, and not for each lag and epsilon, nor for all kinds of block sums
    assert "".join(page.text).count(reason) == written.count(reason) == 1


def test_with_a_unit_real_inputs_have_block_sums(few, tmp_path):
    task = dataclasses.replace(TASK, model=dp.ARMA([1], [1, -0.5]), privacy=dp.Privacy(1, 1e-3, max_change=1.5))
    text = report(tmp_path, dataclasses.replace(task, unit=0.25), choose="block sums")
    assert "block sums:" not in text
    saved = dp.load(tmp_path / "mechanism.json")
    assert (saved.unit, saved.lattice.steps) == (0.25, 7)
    assert "input perturbation" in [row["mechanism"] for row in rows(tmp_path / "design.csv")]  # Gaussian, of no unit
    definition = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert definition[definition.index("unit") + 1] == "0.25"


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([("0", "1")], " at lag 0, epsilon 1"),
        ([("0", "1"), ("2", "1"), ("9", "1")], " at lag 0, 2, 9, epsilon 1"),
        ([("0", "1"), ("2", "1"), ("2", "0.1"), ("2", "10")], " at lag 2, epsilon 0.1, 10; at lag 0, 2, epsilon 1"),
    ],
)
def test_where_designs_fail_is_said_in_few_words(few, tmp_path, monkeypatch, places, words):
    def refused(task):
        if (f"{task.lag}", f"{task.privacy.epsilon:g}") in places:
            raise dp.DesignError("there is none")
        return QUICK["optimal"](task)

    lags, epsilons = ([float(x) for x in dict.fromkeys(y)] for y in zip(*places, strict=True))
    monkeypatch.setattr("dpfast.design.comparison.lags_around", lambda lag: [*map(int, lags), 20])
    monkeypatch.setattr("dpfast.design.comparison.epsilons_around", lambda epsilon: [*epsilons, 20.0])
    replace_designs(monkeypatch, {"optimal": refused})
    report(tmp_path)
    assert f" No optimal{words}: there is none. " in f"{described(tmp_path)} "


@pytest.mark.parametrize("label", ["DFE", "LMMSE smoother", "input perturbation", *OTHER_NOISE])
def test_another_family_is_saved_on_demand(few, tmp_path, label):
    report(tmp_path, choose=label)
    saved = dp.load(tmp_path / "mechanism.json")
    assert saved.name.startswith(label)


def test_without_levels_there_is_no_decision_feedback(few, tmp_path):
    task = dataclasses.replace(TASK, model=dp.ARMA([1], [1, -0.5]))
    report(tmp_path, task)
    found = [row["mechanism"] for row in rows(tmp_path / "design.csv")]
    integers = "input perturbation (integer noise)"
    assert sorted(found) == sorted([*LABELS[:-1], LAPLACE, integers, "block sums", SHARED, "constant"])
    with pytest.raises(
        ValueError, match=r"^choose must be one of 'optimal', .*, got 'DFE'\. No DFE: a model of levels"
    ):
        report(tmp_path, task, choose="DFE")


def test_a_fit_to_private_data_is_said(few, tmp_path):
    model = dp.ARMA.fit(np.random.default_rng(1).normal(size=200), 1)
    text = report(tmp_path, dataclasses.replace(TASK, model=model))
    assert "It does depend on private data (model, mean)" in " ".join(text.split())
    page = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert " ".join(comparison.PRIVATE.split()) in "".join(page.text)


def test_a_choice_that_explains_little_warns_once(few, tmp_path):
    well = dataclasses.replace(TASK, privacy=dp.Privacy(5, 1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report(tmp_path / "well", well)
    with pytest.warns(dp.AccuracyWarning, match=r"^'optimal lag 2' explains .* half of it takes an epsilon") as caught:
        report(tmp_path / "poor", choose="optimal")
    assert len(caught) == 1


def test_progress_counts_every_point(few, tmp_path, capsys):
    comparison.report_comparison(TASK, OutputFolder(tmp_path), sources={}, choose=None, command="dpfast", progress=True)
    shown = capsys.readouterr().err
    assert "drawing curves: 100%" in shown
    assert "40/40" in shown  # ten designs at two lags and two epsilons


def test_an_unknown_input_is_refused_before_the_curves(few, monkeypatch, tmp_path):
    monkeypatch.setattr("dpfast.design.comparison.with_epsilon", lambda *_: pytest.fail("too late"))
    with pytest.raises(ValueError, match=r"a source must be that of one of target, .*got 'wind'"):
        report(tmp_path, sources={"wind": "public"})
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_designed_is_noted_and_left_out(few, monkeypatch, tmp_path):
    def refused(task):
        raise dp.DesignError("there is none")

    replace_designs(monkeypatch, {"optimal": refused})
    text = report(tmp_path)
    assert re.search(r" not serve here: [^.]*\boptimal\b[^.]*\. design.md says why\.", joined(text))
    assert "No optimal: there is none." in described(tmp_path)
    page = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "No optimal: there is none." in page.text
    assert "optimal" not in [row["mechanism"] for row in rows(tmp_path / "design.csv")]
    assert dp.load(tmp_path / "mechanism.json").name == "block sums lag 2"
    with pytest.raises(dp.DesignError, match=r"choose must be one of .*got 'optimal', of which there is no design"):
        report(tmp_path, choose="optimal")


def test_a_gap_in_a_curve_is_an_empty_cell():
    row = {"a": dp.input_perturbation(TASK.target, TASK.privacy)}
    lines = comparison._collect_lines({0: row, 1: {}}, TASK)
    assert math.isnan(lines[1]["a"][1])
    spread = dp.constant(TASK.target, CHAIN).predicted_rmse
    found = [x[3] for x in comparison._long_table({"lag": lines}).rows]
    assert found == [None, None, row["a"].predicted_rmse, None, spread, spread]


def test_each_design_is_made_once(few, monkeypatch, tmp_path):
    made = []

    def counting(family):
        def design(task):
            made.append((family.label, task.lag, task.privacy.epsilon))
            return family.design(task)

        return family._replace(design=design)

    counted = [counting(x) for x in best_candidates.filter_candidates()]
    replace_designs(monkeypatch, {x.label: x.design for x in counted})
    report(tmp_path)
    at_other_points = [*("optimal", "LMMSE", *OTHER_NOISE, SHARED)]
    assert sorted(made) == sorted(
        [
            *[(label, 2, 1) for label in (*ALL, SHARED)],
            *[(x, lag, epsilon) for x in at_other_points for lag, epsilon in ((0, 1), (2, 10))],
            ("LMMSE smoother", 2, 10),
        ]
    )


def test_the_smoother_is_designed_once_and_chosen(few, tmp_path):
    report(tmp_path, dataclasses.replace(TASK, lag=None))
    lags = {x["mechanism"]: x["lag"] for x in rows(tmp_path / "design.csv")}
    assert (lags["optimal"], lags["LMMSE"], lags["LZF"]) == ("smoother", "smoother", "0")
    assert "LMMSE smoother" not in lags
    assert "No DFE: lag must be a number of samples, got None: decisions are fed back" in described(tmp_path)
    assert dp.load(tmp_path / "mechanism.json").name == "block sums smoother"
    over = {(x["over"], x["mechanism"]) for x in rows(tmp_path / "curves.csv")}
    assert ("lag", "LMMSE smoother") in over


def test_without_a_model_there_is_no_constant_and_nothing_is_explained(few, tmp_path):
    report(tmp_path, dataclasses.replace(TASK, model=None))
    table = {row["mechanism"]: row for row in rows(tmp_path / "design.csv")}
    assert set(table) == {"LZF", "input perturbation", LAPLACE, "input perturbation (integer noise)", LABELS[5]}
    assert {row["explained"] for row in table.values()} == {""}
    assert "No optimal, LMMSE, " in described(tmp_path)
    assert dp.load(tmp_path / "mechanism.json").model is None
    page = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.text[page.text.index("model") + 1] == "none"


def test_what_is_simulated_has_an_interval(few, monkeypatch, tmp_path):
    monkeypatch.setattr("dpfast.simulation.best_simulated.STAGES", (16,))
    files = OutputFolder(tmp_path)
    text = comparison.report_comparison(
        TASK, files, sources={}, choose=None, command="dpfast", progress=False, simulate=True
    )
    files.write()
    table = {row["mechanism"]: row for row in rows(tmp_path / "design.csv")}
    assert {label for label, row in table.items() if row["interval"]} == set(UNPREDICTED)
    low, high = map(float, table["DFE"]["interval"].split(" … "))
    assert low < float(table["DFE"]["predicted RMSE"]) < high
    assert "Simulated: 16 streams" in text
