import dataclasses
import html
import json
import math
import re

import pytest
from helpers import pages

import dpfast as dp
from dpfast.reports import html_page
from dpfast.reports.sweep.sweep_page import sweep_page

GRID = {
    "mechanism": ["zero_forcing", "input_perturbation"],
    "target": "exponential:0.9",
    "stream": {"<i>quiet</i>": dp.IndependentLevels([0, 1], [0.9, 0.1]), "loud & clear": dp.ARMA([1])},
    "epsilon": [0.5, 1],
    "delta": 1e-6,
}


def leave_out_pictures(patch):
    """They take longer than everything else."""
    patch.setattr("dpfast.reports.sweep.sweep_page.sweep_pictures.draw_all", lambda found: {})


@pytest.fixture
def undrawn(monkeypatch):
    leave_out_pictures(monkeypatch)


@pytest.fixture(scope="module")
def sweep():
    return dp.sweep(GRID, seed=1, n_samples=50, width=0.2, decide="mechanism")


@pytest.fixture(scope="module", params=pages.RENDERINGS)
def page(sweep, request):
    with pytest.MonkeyPatch.context() as patch:
        pages.render_once(patch, render=request.param)
        text = sweep_page(sweep, command="dpfast study 'a <b>.toml'", title="1 < 2", description="<script>")
    return pages.checked(text)


def test_the_page_is_whole_and_escapes_labels_and_titles(sweep, page):
    said = [x.strip() for x in page.text if x.strip()]
    assert said.count("1 < 2") == 2  # of the window, and above all
    for text in ("<script>", "<i>quiet</i>", "loud & clear", "dpfast study 'a <b>.toml'", sweep.rule):
        assert text in said
    assert page.headings[:4] == ["In short", "Definition", "Results", "Who errs least"]
    assert len(page.all("tr")) >= 1 + len(sweep.points)


def test_every_picture_is_said_in_words(page):
    alts = [x["alt"] for x in page.all("img")]
    assert alts[0].startswith("RMSE against ε for each mechanism")
    assert len(alts) == len(set(alts)) >= 3
    assert not any("rmse-over" in x or "{" in x for x in alts)


def test_a_model_fitted_to_private_data_is_said_first(undrawn):
    fitted = dp.ARMA.fit([0.0, 1, 0, 2, 1, 0, 1, 3, 1, 0], 1)
    grid = {**GRID, "stream": fitted, "epsilon": 1}
    page = pages.checked(sweep_page(dp.sweep(grid, seed=1, n_samples=50, width=0.5)))
    assert "fitted to private data" in [x for x in page.text if x.strip()][1]


def test_the_page_is_written_as_a_file(sweep, undrawn, tmp_path):
    dp.report(sweep, tmp_path / "new" / "page.html", title="title")
    pages.checked((tmp_path / "new" / "page.html").read_text(encoding="utf-8"))


def table(text, name):
    """Rows of the table of this name, cells as they are read, under its columns."""
    (box,) = re.findall(rf'aria-label="{name}">(.*?)</table>', text, re.DOTALL)
    rows = [[html.unescape(x) for x in re.findall(r"<t[hd][^>]*>([^<]*)<", row)] for row in box.split("<tr>")[1:]]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


@pytest.fixture(scope="module")
def mixed():
    """A design that fails, a smoother, a mechanism without a lag, and a parameter of one value."""
    grid = {
        "mechanism": ["lmmse", "zero_forcing", "decision_feedback"],
        "target": ["exponential:0.9"],
        "model": {"coin": dp.IndependentLevels([0, 1], [0.5, 0.5]), "Gaussian": dp.ARMA([1])},
        "tolerance": 0.03,
        "epsilon": 0.5,
        "delta": 1e-6,
        "lag": [None, 1],
    }
    return dp.sweep(grid, seed=1, n_samples=50, width=0.2, decide="mechanism")


@pytest.fixture(scope="module")
def mixed_page(mixed):
    with pytest.MonkeyPatch.context() as patch:
        leave_out_pictures(patch)
        return sweep_page(mixed)


def test_every_point_is_a_row_with_its_figures(mixed, mixed_page):
    found = table(mixed_page, "results")
    found, constants = found[: len(mixed.points)], found[len(mixed.points) :]
    assert [x["mechanism"] for x in constants] == ["constant"] * 2
    variances = {x.settings["model"]: x.variance for x in mixed}
    assert [float(x["predicted"]) for x in constants] == pytest.approx(
        [math.sqrt(variances[x["model"]]) for x in constants], rel=1e-4
    )
    titles = {"lmmse": "LMMSE", "zero_forcing": "LZF", "decision_feedback": "DFE"}
    columns = {"RMSE": "rmse", "predicted": "predicted_rmse", "ideal": "ideal_rmse", "lower bound": "lower_bound_rmse"}
    columns["explained"] = "explained"
    for line, point in zip(found, mixed.points, strict=True):
        row = mixed.rows[point.case]
        assert (line["mechanism"], line["model"]) == (titles[row.family], point.labels["model"])
        for column, name in columns.items():
            value = getattr(row, name)
            known = value is not None and not math.isnan(value)
            assert line[column] == "–" if not known else float(line[column]) == pytest.approx(value, rel=1e-4)
        ends = ["–", "–"] if row.failed else [f"{x:#.5g}" for x in row.interval]
        assert [line["low"], line["high"]] == ends
        assert (line["streams"], line["stopped by"]) == (str(row.n_streams), row.stopped)
        lag = point.labels["lag"]
        shown = "–" if lag is None else str(lag)
        assert line["lag"] == (f"({shown})" if row.family == "zero_forcing" and shown != "–" else shown)


def test_the_winner_of_each_cell(mixed, mixed_page, undrawn):
    found = table(mixed_page, "who errs least")
    assert [(x["model"], x["lag"]) for x in found] == [
        (x.labels["model"], str(x.labels["lag"])) for x in mixed.winners()
    ]
    for line, cell in zip(found, mixed.winners(), strict=True):
        assert cell.best.family == "lmmse"
        assert (line["least error"], line["state"]) == ("LMMSE", cell.state)
        assert line["RMSE"] == f"{cell.best.rmse:#.5g}"
    apart = dataclasses.replace(mixed, contest=())
    assert "Who errs least" not in pages.checked(sweep_page(apart)).headings


def test_the_definition_has_all_parameters_and_what_labels_stand_for(mixed, mixed_page):
    text = mixed_page
    told = dict(re.findall("<dt>(.*)</dt><dd>(.*)</dd>", text))
    assert told["mechanism"] == "LMMSE (lmmse), LZF (zero_forcing), DFE (decision_feedback)"
    assert (told["lag"], told["epsilon"], told["model"]) == ("smoother, 1", "0.5", "coin, Gaussian")
    assert told["digest"].startswith(mixed.digest)
    assert (told["seed"], told["rule"]) == ("1", mixed.rule)
    contents = {x["label"]: x["content"] for x in table(text, "filters, models and mechanisms")}
    assert list(contents) == ["exponential:0.9", "coin", "Gaussian"]
    assert json.loads(contents["coin"])["probabilities"] == [0.5, 0.5]


def test_designs_that_failed_and_warnings_are_told_once(mixed, undrawn):
    noted = dataclasses.replace(mixed.rows[0], notes=("not <quite>",))
    page = pages.checked(sweep_page(dataclasses.replace(mixed, rows=(noted, *mixed.rows[1:]))))
    first, second = (x for x in page.text if "(mechanism" in x)
    assert first == "not <quite> (mechanism LMMSE (lmmse), target exponential:0.9, model coin, lag smoother)"
    (failed,) = (x for x in mixed if x.failed)
    assert second.startswith(f"No design: {failed.error} (mechanism DFE (decision_feedback), ")


def test_long_tables_point_to_where_all_rows_are(mixed, undrawn, monkeypatch):
    monkeypatch.setattr(html_page, "MOST_ROWS", 2)
    assert "The first 2 of 12 rows: all are in study.csv." in sweep_page(mixed, command="dpfast study x.toml")
    assert "The first 2 of 12 rows: all are in sweep.to_pandas()." in sweep_page(mixed)


def test_what_makes_it_again_is_the_command_or_the_call(mixed, mixed_page, undrawn):
    assert "<code>dpfast study x.toml</code>" in sweep_page(mixed, command="dpfast study x.toml")
    assert "dpfast.sweep(grid, seed=1, n_samples=50, burn_in=None, dtype=" in mixed_page


def test_a_sweep_of_one_case_has_a_page():
    one = dp.sweep({**GRID, "mechanism": "zero_forcing", "stream": "levels:0,1@0.5,0.5", "epsilon": 1}, seed=1, width=1)
    text = sweep_page(one)
    pages.checked(text)
    assert [x["RMSE"] for x in table(text, "results")] == [f"{one.rows[0].rmse:#.5g}", "–"]


def test_a_part_in_which_all_designs_failed_has_a_page(mixed):
    page = pages.checked(sweep_page(mixed.where(mechanism="decision_feedback", model="Gaussian")))
    assert "Designs that failed, and notes" in page.headings


def test_a_file_that_cannot_be_written_is_refused_and_left_alone(sweep, undrawn, tmp_path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(dp.DataError, match=r"cannot write to the folder .*page\.html is there"):
        dp.report(sweep, tmp_path / "page.html")
    assert [x.name for x in tmp_path.iterdir()] == ["page.html"]
