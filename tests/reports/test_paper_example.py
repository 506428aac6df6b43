import csv
import re
from pathlib import Path

import pytest
from helpers import pages
from helpers.designs import designed

import dpfast as dp
from dpfast._support.output_folder import OutputFolder
from dpfast.reports import paper_example as report
from dpfast.reports.matplotlib_helpers import render_png
from dpfast.simulation import paper_example
from dpfast.simulation.paper_example import CHAIN, TARGET

pytestmark = pytest.mark.slow_nojit


LAGS = {"quick": (5,), "whole": (0, 5, 20)}  # at which a quick optimum is compared with two steps
SIMPLE = dp.Filter([0.4, 0.2], [1, -0.95])


def quicker(design):
    """The design function to a wide tolerance, or behind a given prefilter, where no realised error is looked up."""

    def quickly(target, privacy, model, lag):
        paper = privacy.calibration == "paper"
        if design is dp.optimal and model is CHAIN:
            return designed(design, target, privacy, model, lag=lag, tolerance=0.3 if lag in LAGS["quick"] else 0.9)
        if paper and ((model is CHAIN and lag in LAGS["quick"]) or lag is None):
            return designed(dp.lmmse, target, privacy, model, lag=lag, tolerance=1e-3)
        return dp.lmmse(target, privacy, model, lag=lag, prefilter=SIMPLE, name=f"{design.__name__} lag {lag}")

    return quickly


def quicker_zero_forcing(target, privacy):
    """Where no realised error is looked up, to a wide tolerance."""
    return designed(dp.zero_forcing, target, privacy, tolerance=1e-3 if privacy.calibration == "paper" else 0.3)


@pytest.fixture(scope="module", params=["quick", pytest.param("whole", marks=pytest.mark.long)])
def extent(request):
    """Whether designs that no assertion looks at are quick ones, or all are those of the command."""
    return request.param


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, extent):
    folder = OutputFolder(tmp_path_factory.mktemp("example"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("optimal", "lmmse") if extent == "quick" else ():
            patch.setattr(paper_example, name, quicker(getattr(dp, name)))
            patch.setattr(paper_example, "zero_forcing", quicker_zero_forcing)
        pages.render_once(patch, report, render=render_png if extent == "whole" else pages.render_coarsely)
        text = report.report_example(
            folder, n_streams=64, n_samples=2000, seed=1, command="dpfast example --seed 1", progress=False
        )
    folder.write()
    return folder.path, text


@pytest.fixture(scope="module")
def rows(outputs):
    with (outputs[0] / "example.csv").open() as file:
        return list(csv.DictReader(file))


def find(rows, **wanted):
    (row,) = (x for x in rows if all(x[key.replace("_", " ")] == value for key, value in wanted.items()))
    return row


def test_files(outputs):
    names = sorted(x.name for x in outputs[0].iterdir())
    assert names == ["example.csv", "example.md", "paths.csv", "paths.png", "prefilters.png", "report.html"]
    for name in ("paths.png", "prefilters.png"):
        assert (outputs[0] / name).read_bytes().startswith(b"\x89PNG")


def test_every_mechanism_spectrum_and_calibration_has_a_row(rows):
    assert len(rows) == len({tuple(list(x.values())[:6]) for x in rows}) == 51
    assert {x["decision"] for x in rows if x["mechanism"] == "DFE"} == {"sign", "soft"}


@pytest.mark.parametrize(
    ("calibration", "lzf", "printed", "chain"),
    [("paper", 7.471450807824, 5.6178415849929, 4.6703947), ("exact", 1.25592366548677 * 4.2539891749846, None, None)],
)
def test_ideal_errors(rows, calibration, lzf, printed, chain):
    ideal = {"κ": calibration}
    assert float(find(rows, **ideal, mechanism="LZF")["ideal RMSE"]) == pytest.approx(lzf, rel=1e-5)
    smoothers = {s: find(rows, **ideal, designed_for=s, lag="smoother") for s in ("printed", "chain")}
    if printed:
        assert float(smoothers["chain"]["ideal RMSE"]) == pytest.approx(chain, rel=1e-7)
        assert float(smoothers["printed"]["ideal RMSE"]) == pytest.approx(printed, rel=1e-9)


def test_the_page_has_the_ideal_and_predicted_errors(rows, extent):
    readme = (Path(__file__).parents[2] / "docs/measurements/example.md").read_text(encoding="utf-8")
    table = readme.split("<!-- example -->\n", 1)[1].split("\n\n", 1)[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    shown = [x for x in rows if x["κ"] == "paper" and x["designed for"] != "printed" and x["mechanism"] != "constant"]
    mean = lines.pop()
    assert (mean[0], figures(mean[4])) == (
        "constant",
        [pytest.approx(dp.constant(TARGET, CHAIN).predicted_rmse, rel=1e-4)],
    )
    assert len(lines) == len(shown) == 18
    for line, row in zip(lines, shown, strict=True):
        name = f"{row['mechanism']}, {row['decision']}" if row["decision"] else row["mechanism"]
        assert line[:3] == [name, row["prefilter"], row["lag"]]
        quick = extent == "quick" and row["lag"] in {"0", "20"}
        if not (quick and row["mechanism"] == "LMMSE"):
            assert figures(line[3]) == [pytest.approx(float(row["ideal RMSE"]), rel=1e-4)]
        if not (extent == "quick" and row["mechanism"] == "optimal") and not (quick and row["mechanism"] == "LMMSE"):
            assert figures(line[4]) == pytest.approx([float(x) for x in [row["predicted"]] if x], rel=1e-4)


def figures(text):
    return [float(x) for x in re.findall(r"(?<![\w.])\d+\.?\d*", text)]


@pytest.mark.parametrize(
    ("calibration", "optima"), [("paper", (5.6236, 5.0866, 4.7016)), ("exact", (4.3734, 3.8723, 3.6911))]
)
def test_the_optimum_and_its_bound(rows, extent, calibration, optima):
    for lag, optimum in zip((0, 5, 20), optima, strict=True):
        row = find(rows, κ=calibration, mechanism="optimal", designed_for="chain", lag=str(lag))
        assert float(row["ideal RMSE"]) == pytest.approx(optimum, abs=6e-5)
        assert float(row["lower bound"]) == pytest.approx(float(row["ideal RMSE"]), rel=1e-7)
        if lag in LAGS[extent]:
            two_step = find(rows, κ=calibration, mechanism="LMMSE", designed_for="chain", lag=str(lag))
            assert float(row["predicted"]) < float(two_step["predicted"])


def test_predictions_on_the_chain_are_within_wide_intervals_of_the_simulation(rows):
    # 35 rows; 3.3 half-widths are 6.6 standard errors, for Student's t of 63 degrees 1e-8 a row
    for row in rows:
        if row["on the chain"]:
            half = (float(row["high"]) - float(row["low"])) / 2
            assert abs(float(row["simulated"]) - float(row["on the chain"])) < 3.3 * half


def test_what_is_explained_is_the_simulated_error_over_the_variance_of_the_chain_s_output(rows):
    b, tail = 0.995, 4 * 0.995**2 / (1 - 0.995**2)  # taps 1, 2b, 2b², ...; the chain's covariance is 2^-|k| / 4
    variance = (1 + tail + 2 * (2 + tail) * (b / 2) / (1 - b / 2)) / 4
    mean = find(rows, mechanism="constant")
    assert float(mean["predicted"]) == float(mean["on the chain"]) == pytest.approx(variance**0.5, rel=1e-9)
    for row in rows:
        assert float(row["explained"]) == pytest.approx(1 - float(row["simulated"]) ** 2 / variance, rel=1e-9, abs=1e-9)


def test_the_printed_table_has_every_error_with_its_interval_in_lines_of_a_terminal(outputs, rows):
    """As a reader finds it: by headings, and the columns of the file but those that the headings and names say."""
    text = outputs[1]
    table = next(x for x in text.split("\n\nSimulated: ")[0].split("\n\n") if "lower" in x.split("\n")[0])
    table = table + text.split(table)[1].split("\n\nSimulated: ")[0]
    assert max(map(len, text.split("\n"))) <= 100
    assert "Left out" not in text
    lines = [x for x in table.split("\n")[3:] if x and not x.startswith("κ ")]
    assert len([x for x in table.split("\n") if x.startswith("κ ")]) == 8
    assert len(lines) == len(rows)
    for line, row in zip(lines, [rows[-1], *rows[:-1]], strict=True):
        low, high, rmse, part = (f"{float(row[x]):#.5g}" for x in ("low", "high", "simulated", "explained"))
        assert line.endswith(f" {rmse} [{low}, {high}]  {part:>9}")
        known = [row[x] for x in ("lower bound", "ideal RMSE", "predicted", "on the chain")]
        figures_of_line = line.split(" [")[0].split()[-5:-1]
        assert figures_of_line == [f"{float(x):#.5g}" if x else "–" for x in known]
        assert row["decision"] in line
        assert (f"lag {row['lag']} " in line) or row["lag"] == "0" or row["decision"] or "smoother" in line
        assert row["mechanism"] in line or row["decision"]


def test_who_errs_least_is_said_above_the_table_beside_the_constant(outputs, rows):
    said = [" ".join(x.split()) for x in outputs[1].split("\n\n")[:2]]
    for text, calibration, words in zip(said, ("paper", "exact"), ("κ of the paper: ", "κ exact: "), strict=True):
        best = min((x for x in rows if x["κ"] == calibration), key=lambda x: float(x["simulated"]))
        low, high = (f"{float(best[x]):.4g}" for x in ("low", "high"))
        lag = "smoother" if best["lag"] == "smoother" else f"lag {best['lag']}"
        spectrum = "the chain's" if best["designed for"] == "chain" else "the printed"
        assert text.startswith(
            f"{words}{best['mechanism']} {lag} (for {spectrum} spectrum) errs least, with an RMSE of "
        )
        assert f"interval {low} to {high})" in text
        assert "at no cost of privacy, errs by 17.23: " in text


def test_errata_stand_beside_the_printed_numbers(outputs):
    text = outputs[1]
    assert "7.471451   (κ <|F|>, printed 8.82)" in text
    assert "κ is the standard deviation of the noise for a sensitivity of 1" in " ".join(text.split())
    assert "5.617842   (printed 7.43)" in text
    assert "4.670395" in text
    for line in ("drops d²", "variance 1/4, hence numerator 3/16", "error-free decisions"):
        assert line in text
    assert text.split("\n\n")[-1] in (outputs[0] / "example.md").read_text()


def test_hard_decisions_are_shown_to_be_worse_than_every_linear_mechanism_with_a_receiver(rows):
    lzf = float(find(rows, κ="paper", mechanism="LZF")["high"])
    for row in rows:
        if row["κ"] == "paper" and row["decision"] == "sign":
            assert float(row["low"]) > lzf


def test_the_page_has_all_rows_pictures_errata_and_the_command(outputs):
    page = pages.checked((outputs[0] / "report.html").read_text(encoding="utf-8"))
    assert len(page.all("tr")) == 52
    assert len(page.all("img")) == 2
    text = " ".join(page.text)
    for part in ("7.471451   (κ <|F|>, printed 8.82)", "dpfast example --seed 1", "Lower bound", "numba"):
        assert part in text
