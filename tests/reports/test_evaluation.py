import csv
import dataclasses
import gzip
import itertools
import math
from functools import partial, wraps
from pathlib import Path

import numpy as np
import pytest
from helpers import pages
from helpers.designs import designed, to_a_wide_tolerance
from scipy import signal

import dpfast as dp
from dpfast._support.output_folder import OutputFolder
from dpfast.design.catalogue import FAMILIES, filter_families
from dpfast.reports import evaluation, html_page
from dpfast.signals.events.historical_counts import EventCounts, read_events
from dpfast.signals.events.periods import parse_period
from dpfast.simulation import evaluation as evaluation_module
from dpfast.simulation.evaluation import design_mechanisms

FLIGHTS = Path(__file__).parents[2] / "examples" / "nyc_departures_2013.csv.gz"
PRIVACY = dp.Privacy(1, 1e-6)
TARGET = dp.Filter(np.full(4, 0.25))


def counts(u, names=("all",)):
    return EventCounts(np.atleast_2d(u).astype(float), names, np.datetime64("2020-01-01T00:00"), np.timedelta64(5, "m"))


def poisson(n_series, n_bins):
    return np.random.default_rng(1).poisson(3.0, (n_series, n_bins))


def run(series, folder, order=2, **options):
    return evaluation.report_evaluation(
        series, TARGET, PRIVACY, folder, **({"order": order, "draws": 2, "seed": 1, "command": "dpfast"} | options)
    )


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """The mechanisms of the same counts are designed once for all tests, to a wide tolerance."""
    wide = [x._replace(design=to_a_wide_tolerance(x.design)) for x in filter_families()]
    monkeypatch.setattr("dpfast.simulation.evaluation.filter_families", lambda: wide)
    monkeypatch.setattr("dpfast.simulation.evaluation.design_mechanisms", design_once)


@pytest.fixture
def behind_one(monkeypatch, once):
    """Mechanisms of two steps behind one prefilter, where their errors are not compared with others."""
    given = wraps(dp.lmmse)(partial(designed, dp.lmmse, prefilter=dp.Filter([1, -0.5])))
    quick = [x._replace(design=given) if x.name == "lmmse" else x for x in evaluation_module.filter_families()]
    monkeypatch.setattr(evaluation_module, "filter_families", lambda: quick)


@pytest.fixture
def undrawn(monkeypatch):
    """No pictures, which take longer than everything else."""
    monkeypatch.setattr(evaluation, "render_png", lambda figure: b"")
    monkeypatch.setattr(html_page, "render_png", lambda figure: b"")


_DESIGNED = {}


def design_once(u, target, privacy, model, notes, unit):
    key = u.tobytes(), target, privacy, model.shaping, model.mean, unit
    if key not in _DESIGNED:
        _DESIGNED[key] = design_mechanisms(u, target, privacy, model, notes, unit)
    return list(_DESIGNED[key])


def test_every_series_and_mechanism_has_a_row_in_the_data_s_units(undrawn, behind_one, tmp_path):
    u = poisson(2, 300)
    folder = OutputFolder(tmp_path)
    run(counts(u, ("a,b", "c")), folder)
    folder.write()
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").read_text().split("\n")[2:-1]))
    assert [row["series"] for row in rows] == ["a,b"] * 13 + ["c"] * 13
    spread = signal.lfilter(TARGET.b, 1, u).std(axis=1)
    for row in rows:
        assert float(row["spread of true output"]) == pytest.approx(spread[int(row["series"] == "c")])
        assert float(row["low"]) <= float(row["RMSE"]) <= float(row["high"])
        wanted = 1 - (float(row["RMSE"]) / float(row["spread of true output"])) ** 2
        assert float(row["explained"]) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    constant = [row for row in rows if row["mechanism"] == "constant"]
    start = u.mean(axis=1)[:, None] * np.minimum(np.arange(300) + 1, 4) / 4  # its estimates
    errors = np.sqrt(((start - signal.lfilter(TARGET.b, 1, u)) ** 2).mean(axis=1))
    assert [float(row["RMSE"]) for row in constant] == pytest.approx(errors, rel=1e-9)
    outputs = list(csv.DictReader((tmp_path / "outputs.csv").read_text().split("\n")[2:-1]))
    assert len(outputs) == 600
    assert "private: constant" not in outputs[0]  # its mean was fitted
    assert outputs[301]["series"] == "c"
    assert outputs[301]["time"] == "2020-01-01T00:05:00"
    assert float(outputs[301]["true output"]) == pytest.approx(u[1, :2].sum() / 4, rel=1e-5)


def test_bars_tell_how_far_it_is_and_change_nothing(undrawn, tmp_path, capsys, monkeypatch):
    wide = designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1)
    monkeypatch.setattr("dpfast.simulation.evaluation.design_mechanisms", lambda *_: [wide])
    days = EventCounts(
        poisson(2, 60) * 1.0, ("a", "b"), np.datetime64("2013-01-01T00:00:00.000000"), parse_period("1D")
    )
    shown, silent = OutputFolder(tmp_path / "a"), OutputFolder(tmp_path / "b")
    text = run(days, shown, progress=True)
    assert text == run(days, silent)
    assert "60 bins of 1d from 2013-01-01;" in text
    out, err = capsys.readouterr()
    assert out == ""
    assert "designing: 100%" in err
    assert "evaluating: 100%" in err
    assert "2/2" in err
    shown.write()
    silent.write()
    for name in ("evaluation.csv", "outputs.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.filterwarnings("ignore::dpfast.ConvergenceWarning")  # weak privacy, and a target with zeros on the circle
@pytest.mark.parametrize("u", [poisson(1, 200) + 0.5, poisson(1, 200) + 2000], ids=["fractional", "large"])
def test_counts_without_few_levels_have_no_decision_feedback_and_the_text_says_so(undrawn, tmp_path, u, monkeypatch):
    linear = FAMILIES["lmmse"]._replace(design=partial(dp.lmmse, prefilter=dp.Filter([1])))
    monkeypatch.setattr("dpfast.simulation.evaluation.filter_families", lambda: [linear])
    monkeypatch.setattr(evaluation, "family_label", lambda name: "LMMSE lag 0")  # what is drawn beside the best
    text = " ".join(run(counts(u), OutputFolder(tmp_path), order=1).split())
    assert "DFE" not in text
    assert "No decision feedback, which needs whole counts below 1000, for all." in text


def test_every_series_has_noise_of_its_own(undrawn, behind_one, tmp_path):
    u = np.repeat(poisson(1, 300), 2, axis=0)
    folder = OutputFolder(tmp_path)
    run(counts(u, ("a", "b")), folder)
    folder.write()
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").read_text().split("\n")[2:-1]))
    assert rows[0]["mechanism"] == rows[13]["mechanism"] == "optimal lag 0"
    assert rows[0]["RMSE"] != rows[13]["RMSE"]


def test_a_saved_mechanism_is_evaluated_beside_the_others_under_a_name_of_its_own(undrawn, tmp_path):
    u = poisson(1, 300)
    saved = dp.input_perturbation(TARGET, PRIVACY)
    folder = OutputFolder(tmp_path)
    run(counts(u), folder, saved=[saved])
    folder.write()
    rows = {x["mechanism"]: x for x in csv.DictReader((tmp_path / "evaluation.csv").read_text().split("\n")[2:-1])}
    assert len(rows) == 14
    assert rows["saved: input perturbation"]["RMSE"] == rows["input perturbation"]["RMSE"]


def test_a_saved_mechanism_must_fit_the_evaluation(tmp_path):
    other = dp.zero_forcing(dp.Filter([1, 0.5]), PRIVACY)
    late = dp.lmmse(TARGET, PRIVACY, dp.ARMA([1]), lag=40, prefilter=dp.Filter([1]))
    for saved, said in ((other, "'LZF' must be for this target"), (late, "more than 40 periods, got 30")):
        with pytest.raises(dp.DataError, match=said):
            run(counts(poisson(1, 30)), OutputFolder(tmp_path), saved=[saved])


def test_a_constant_or_too_short_series_is_refused_by_name(tmp_path):
    both = np.stack([poisson(1, 100)[0], np.ones(100)])
    with pytest.raises(dp.DataError, match="'quiet'"):
        run(counts(both, ("loud", "quiet")), OutputFolder(tmp_path))
    with pytest.raises(dp.DataError, match="more than 12 periods, got 7"):
        run(counts(np.arange(7.0)), OutputFolder(tmp_path), order=12)


@pytest.mark.parametrize("render", pages.RENDERINGS)
def test_the_page_warns_first_escapes_names_and_shows_the_command(tmp_path, monkeypatch, render):
    pages.render_once(monkeypatch, evaluation, render=render)
    u, name, command = poisson(2, 300), "<script>alert('x')</script> & co", "dpfast evaluate 'a <b>.csv'"
    folder = OutputFolder(tmp_path)
    run(counts(u, (name, "b")), folder, command=command)
    folder.write()
    assert (tmp_path / "outputs.png").read_bytes().startswith(b"\x89PNG")
    page = pages.checked((tmp_path / "report.html").read_text(encoding="utf-8"))
    said = [x for x in page.text if x.strip()]
    assert said[1] == " ".join(evaluation.BANNER)  # after the title of the window
    assert said.count(name) == 14  # twelve mechanisms, the constant and the least
    assert command in said
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").read_text().split("\n")[2:-1]))
    best = min((row for row in rows if row["series"] == "b"), key=lambda row: float(row["RMSE"]))
    assert said[said.index("RMSE of that [95% interval]") + 6 :][:2] == ["b", best["mechanism"]]
    assert f"{float(best['RMSE']):#.5g} [{float(best['low']):#.5g}, {float(best['high']):#.5g}]" in said


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_lines", [30_000, pytest.param(None, marks=pytest.mark.long)], ids=["five weeks", "a year"])
def test_the_flights_are_evaluated_and_the_wiener_mechanisms_win(undrawn, tmp_path, n_lines):
    file = tmp_path / "departures.csv"
    with gzip.open(FLIGHTS, "rt") as whole:
        file.write_text("".join(itertools.islice(whole, n_lines)))
    log = read_events(file, time="scheduled_departure", by="origin", period="1h")
    assert log.series == ("EWR", "JFK", "LGA")
    log = dataclasses.replace(log, counts=log.counts[1:2], series=log.series[1:2])
    folder = OutputFolder(tmp_path)
    text = run(log, folder, order=6, draws=4)
    folder.write()
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").read_text().split("\n")[2:-1]))
    rmse = {(row["series"], row["mechanism"]): float(row["RMSE"]) for row in rows}
    assert "JFK" in text
    assert rmse["JFK", "LMMSE smoother"] < rmse["JFK", "LMMSE lag 0"] < rmse["JFK", "LZF"]
    assert rmse["JFK", "optimal lag 0"] < rmse["JFK", "LMMSE lag 0"]
    assert rmse["JFK", "LZF"] < rmse["JFK", "input perturbation"]


def test_outputs_have_the_digits_that_matter(undrawn, tmp_path, monkeypatch):
    wide = designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1)
    designs = [wide, dp.output_perturbation(TARGET, dp.Privacy(0.01, 1e-5))]
    monkeypatch.setattr("dpfast.simulation.evaluation.design_mechanisms", lambda *_: designs)
    folder = OutputFolder(tmp_path)
    run(counts(poisson(1, 400)), folder)
    folder.write()

    def read(name):
        return list(csv.DictReader((tmp_path / name).read_text().split("\n")[2:-1]))

    rmse = {row["mechanism"]: float(row["RMSE"]) for row in read("evaluation.csv") if row["mechanism"] != "constant"}
    for name, error in rmse.items():
        values = np.array([float(row[f"private: {name}"] or 0) for row in read("outputs.csv")])
        step = 10.0 ** (math.floor(math.log10(error)) - 2)  # above a thousandth of the error, at most a hundredth
        np.testing.assert_allclose(values / step, np.rint(values / step), rtol=0, atol=1e-6)
        assert (np.rint(values / step) % 10 != 0).any()
