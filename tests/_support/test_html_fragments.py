"""HTML of small parts, and what notebooks show of every object that people look at."""

import math
import re
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers import pages, sweeps

import dpfast as dp
from dpfast._support import html_fragments as markup
from dpfast._support import table_layout
from dpfast.mechanisms.operators.dense import Dense
from dpfast.releases.audit.findings import Finding

NASTY = """<script>alert("1")</script> & '"><img src=x onerror=alert(1)> &lt;"""
TARGET, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Privacy(2, 1e-6, max_events=2, min_separation=3)
MODEL = dp.ARMA([1], [1, -0.5], mean=2.0)
SECRET = 8675309


def shown(html):
    """The parsed piece, if it is balanced, runs nothing and asks for nothing."""
    found = pages.Page(html)
    assert found.open == []
    tags = {"div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "ul", "li"}
    assert {tag for tag, _ in found.tags} <= tags | {"svg", "line", "circle", "img"}
    assert not any(name.startswith("on") or name == "href" for _, x in found.tags for name in x)
    assert all(x["alt"] and x["src"].startswith("data:image/png;base64,") for x in found.all("img"))
    return found


def figures(text):
    """All numbers, as they are written."""
    return sorted(re.findall(r"\d+\.?\d*(?:e[-+]?\d+)?", text))


def words(found):
    return " ".join(" ".join(found.text).split())


# --- parts ----------------------------------------------------------------------------------------


def test_all_text_is_escaped():
    parts = [
        markup.paragraphs(NASTY),
        markup.items([NASTY]),
        markup.facts({NASTY: NASTY}, caption=NASTY),
        markup.table([NASTY], [[NASTY]], [True]),
    ]
    assert shown(markup.notebook(*parts)).text.count(NASTY) == 1 + 1 + 3 + 2


def test_a_table_has_heads_of_columns_and_rows():
    text = markup.table(["a", "b"], [["x", "1"], ["y", "2"]], [False, True])
    assert re.findall(r"<th( [^>]*)>([^<]*)", text) == [
        (' scope="col"', "a"),
        (' class="number" scope="col"', "b"),
        (' scope="row"', "x"),
        (' scope="row"', "y"),
    ]
    assert re.findall(r'<td class="number">([^<]*)', text) == ["1", "2"]
    assert "<thead>" not in markup.facts({"a": "b"})
    with pytest.raises(ValueError, match="zip"):
        markup.table(["a"], [["x", "1"]], [False])


def test_every_row_may_have_a_picture():
    drawn = markup.intervals([markup.Interval(1, 2, 3), markup.Interval(2, 3, 4, 3.5)])
    text = markup.table(["a", "b"], [["x", "1"], ["y", "2"]], [False, True], drawn=drawn)
    rows = re.findall(r"<tr>(.*)</tr>", text)
    assert [len(re.findall(r"<t[hd]", row)) for row in rows] == [3, 3, 3]


def positions(html):
    """(low, high, middle, ring or None) in pixels."""
    (low, high), *rest = (
        map(float, re.search(r'x1="(.*?)" x2="(.*?)"', html).groups()),
        *map(float, re.findall(r'cx="(.*?)"', html)),
    )
    return low, high, *rest


def test_intervals_are_drawn_on_one_axis():
    first, second = map(positions, markup.intervals([markup.Interval(10, 11, 12), markup.Interval(12, 13, 14, 10)]))
    assert first == (8, 80, 44)
    assert second == (80, 152, 116, 8)


def test_intervals_far_apart_are_drawn_on_a_logarithmic_axis():
    first, second = map(positions, markup.intervals([markup.Interval(1, 10, 100), markup.Interval(1, 1, 10_000)]))
    assert first == (8, 80, 44)
    assert second == (8, 152, 8)


@pytest.mark.parametrize(
    "interval",
    [markup.Interval(0, 0, 0), markup.Interval(0, 0, 9), markup.Interval(3, 3, 3), markup.Interval(0, 1, 50)],
)
def test_any_interval_stays_inside_its_picture(interval):
    assert all(0 <= x <= 160 for x in positions(markup.intervals([interval])[0]))


def test_what_is_not_known_is_not_drawn():
    assert markup.intervals([markup.Interval(math.nan, math.nan, math.nan)]) == [""]
    first, second = markup.intervals([markup.Interval(math.nan, 1, 2), markup.Interval(1, 2, 3)])
    assert first == ""
    assert positions(second) == (8, 152, 80)


# --- objects --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mechanism():
    return dp.lmmse(TARGET, PRIVACY, MODEL, lag=2, name=NASTY, prefilter=dp.Filter([1], [1, -0.5]))


@pytest.fixture(scope="module")
def plan(mechanism):
    return dp.exact(mechanism, dp.Inputs(0, 9, centre=2, n_streams=2))


@pytest.fixture(scope="module")
def study(mechanism):
    mechanisms = [mechanism, dp.zero_forcing(TARGET, PRIVACY)]
    return dp.monte_carlo(mechanisms, MODEL, n_streams=8, n_samples=500, seed=1)


def test_a_mechanism_is_shown_as_it_is_summarised(mechanism):
    found = shown(mechanism._repr_html_())
    assert found.text.count(NASTY) == 1
    for line in mechanism.summary().splitlines()[1:]:
        name, value = re.split(r"\s{2,}", line.strip(), maxsplit=1) if "  " in line.strip() else line.split(None, 1)
        assert {name.strip(), value.strip()} <= set(found.text)


def test_a_matrix_mechanism_is_shown_as_it_is_summarised():
    counter = dp.MatrixMechanism(NASTY, dp.running_sum(9), PRIVACY, Dense(np.tri(9)), Dense(np.eye(9)))
    found = shown(counter._repr_html_())
    assert found.text.count(NASTY) == 1
    assert figures(words(found).replace(NASTY, "")) == figures(counter.summary().replace(NASTY, ""))


@pytest.mark.parametrize("x", [TARGET, dp.running_sum(9), dp.total(2), MODEL], ids=lambda x: type(x).__name__)
def test_filters_and_models_are_shown_as_they_are_printed_with_a_picture(x):
    found = shown(x._repr_html_())
    assert words(found).strip() == repr(x)
    assert len(found.all("img")) == 1


def test_a_name_of_several_lines_is_shown_in_one(mechanism):
    assert "a\\nb" in shown(replace(mechanism, name="a\nb")._repr_html_()).text


def test_a_privacy_is_shown_with_what_follows_from_it():
    text = words(shown(PRIVACY._repr_html_()))
    for name, value in {"epsilon": 2.0, "delta": 1e-06, "max events": 2, "min separation": 3}.items():
        assert f"{name} {value} " in text
    assert f"noise multiplier {PRIVACY.noise_multiplier:.6g} zCDP ρ {PRIVACY.zcdp_rho:.6g}" in text


def test_a_study_is_shown_with_the_figures_that_are_printed(study):
    found = shown(study._repr_html_())
    assert found.text.count(NASTY) == 1
    assert figures(words(found)) == figures(str(study))
    assert len(found.all("svg")) == 2
    assert len(found.all("circle")) == 4  # simulated and predicted
    one = shown(study["LZF"]._repr_html_())
    assert set(figures(words(one))) <= set(figures(str(study)))
    assert f"{study['LZF'].rmse:.5g}" in one.text


def test_a_comparison_is_shown(study):
    compared = study.compare("LZF", NASTY)
    low, high = compared.interval
    text = words(shown(compared._repr_html_()))
    assert f"{compared.mse_difference:.5g} interval {low:.5g} … {high:.5g} " in text
    assert text.endswith(f"{compared.rmse_ratio:.5g} decided {'yes' if compared.decided else 'no'}")


@pytest.fixture
def wide(monkeypatch):
    """Give a terminal room for all columns, which a page has too."""
    monkeypatch.setattr(table_layout, "WIDTH", 1000)


@pytest.mark.usefixtures("wide")
def test_a_sweep_is_shown_with_the_figures_that_are_printed():
    found = sweeps.run(sweeps.GRID | {"target": {NASTY: TARGET, "other": dp.Filter([1])}}, budget=1)
    page = shown(found._repr_html_())
    only_printed = Counter(figures(str(found)))
    only_printed.subtract(figures(words(page)))
    assert +only_printed == Counter({"128": 8, "0": 2, "95": 1})  # streams and level: no column of a page
    assert min(only_printed.values()) == 0
    assert page.text.count(NASTY) == 5
    assert len(page.all("svg")) == len(found.points) == 8
    failed = replace(found.rows[0], batch_means=np.zeros(0), error=NASTY)
    page = shown(replace(found, rows=(failed, *found.rows[1:]))._repr_html_())
    assert len(page.all("svg")) == 7


def test_the_first_rows_of_a_long_sweep_are_shown():
    found = sweeps.run(sweeps.GRID | {"epsilon": list(np.linspace(1, 2, 30))}, budget=1)
    page = shown(found._repr_html_())
    assert len(page.all("tr")) == 1 + 40 + 1
    assert "… and 20 more rows: to_pandas() has all, winners() those of least error" in page.text


@pytest.mark.usefixtures("wide")
def test_an_audit_is_shown_with_the_figures_that_are_printed():
    findings = (
        Finding(target="release", attack=NASTY, trials=100, quantity="ε at least", found=1.7, hits=60, claim=1.0),
        Finding(target="release", attack="zeros", trials=99, quantity="σ at most", found=3.5, reachable=4.0, claim=3.0),
        Finding(target="simulate", attack="bits", trials=50, quantity="δ at least", found=0.9, hits=50, false_alarms=0),
    )
    audit = dp.Audit(NASTY, 1e-6, 0.95, findings)
    found = shown(audit._repr_html_())
    assert figures(words(found)) == figures(" ".join(str(audit).split()))
    assert sum(NASTY in x for x in found.text) >= 1


def test_a_guarantee_is_shown_in_full(plan):
    guarantee = plan.guarantee
    found = shown(guarantee._repr_html_())
    assert {guarantee.sentence, *guarantee.items().values()} <= set(found.text)
    assert figures(words(found)) == figures(str(guarantee))


def test_an_exact_mechanism_is_shown_with_its_guarantee(plan):
    found = shown(plan._repr_html_())
    assert found.text.count(NASTY) == 1
    error = f"{plan.predicted_rmse_if_model_holds:.6g}"
    assert {plan.guarantee.sentence, str(len(plan.taps)), error} <= set(found.text)


def test_a_release_is_shown_without_any_data(plan, tmp_path):
    u = np.full((2, 40), SECRET)
    with pytest.warns(dp.ModelWarning):  # of v
        result = dp.release(plan, u, tmp_path / "store")
    found = shown(result._repr_html_())
    text = words(found)
    assert len(found.all("img")) == 1
    assert "Release of 40 steps from 0, 2 streams" in text
    assert {plan.guarantee.sentence, f"{plan.predicted_rmse_if_model_holds:.6g}"} <= set(found.text)
    given = figures(words(shown(plan.guarantee._repr_html_())))
    assert figures(text) == sorted(
        [
            *given,
            *figures("Release of 40 from 0, 2"),
            *figures(f"{plan.predicted_rmse_if_model_holds:.6g}"),
            *figures(str(result.model_check)),
        ]
    )


def test_an_adaptation_is_shown_as_it_is_printed(mechanism):
    u = MODEL.sample(2, 3000, seed=1)
    found = dp.adapt(mechanism, mechanism.simulate(u, seed=2).privatized)
    page = shown(found._repr_html_())
    assert figures(words(page)) == figures(" ".join(str(found).split()))
    assert found.reason in page.text


@pytest.mark.parametrize("thing", [TARGET, dp.running_sum(9), MODEL, dp.zero_forcing(TARGET, PRIVACY)])
def test_what_has_a_picture_shows_it(thing, monkeypatch):
    assert len(shown(thing._repr_html_()).all("img")) == 1
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = shown(thing._repr_html_())
    assert found.all("img") == []
    assert "No picture: this needs matplotlib: pip install 'dpfast[plot]'" in found.text


@pytest.mark.parametrize(
    "kind",
    [
        *(dp.Adaptation, dp.Audit, dp.Comparison, dp.ExactMechanism, dp.Guarantee, dp.MatrixMechanism),
        *(dp.Filter, dp.Toeplitz, dp.ARMA, dp.MarkovChain, dp.IndependentLevels, dp.Constant),
        *(dp.Mechanism, dp.Privacy, dp.Release, dp.Result, dp.Study, dp.Sweep),
    ],
)
def test_there_is_a_test_for_each(kind):
    assert callable(kind._repr_html_)
