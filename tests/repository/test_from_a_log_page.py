"""Commands of the page on a log in the shell run in their order, and the table of bounds is what this version gives."""

import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from helpers import person_bounds_twin as twin

import dpfast as dp
from dpfast.cli.main import build_parser, main
from dpfast.design.target_and_model_specs import parse_model

GUIDES = Path(__file__).parents[2] / "docs/guides"
PAGE = (GUIDES / "from-a-log.md").read_text(encoding="utf-8")
BOUNDS = (GUIDES / "release-command.md").read_text(encoding="utf-8").split("<!-- bounds -->\n")[1].split("<!-- end")[0]
DESIGN = (GUIDES / "design.md").read_text(encoding="utf-8")
AVERAGE, MODEL = dp.Filter(np.ones(4) / 4), parse_model("arma:6.7/1,-0.7@8")
TRIPS = [(24 * day + hour, at, "commuter") for day in range(21) for hour, at in ((7, 0), (8, 1), (17, 1), (18, 0))]


def one_peak(hour):
    return 8 - 8 * np.cos(2 * np.pi * hour / 24)


def two_peaks(hour):
    return 25.6 * sum(np.exp(-(((hour - peak) / 1.5) ** 2) / 2) for peak in (8, 17))


MODELS = {one_peak: "arma:4.5/1,-0.7@8", two_peaks: "arma:6.7/1,-0.7@8"}  # as the page has them, by the days


def commands():
    """The words of every command of dpfast on the page."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.split("| ")[-1]) for line in blocks.splitlines() if line]


def test_the_commands_of_the_page_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = (f"2024-03-{4 + step // 24:02}T{step % 24:02}:10,{('south', 'north')[at]},{who}" for step, at, who in TRIPS)
    Path("trips.csv").write_text("\n".join(["time,station,card", *rows, ""]))
    printed = []
    for _, *words in commands():
        options = build_parser().parse_args(words)
        if words[0] == "design":  # which takes minutes: the demand of the page, with a prefilter that is there
            privacy = dp.Privacy(options.epsilon, options.delta, max_events=options.max_events, min_separation=4)
            Path("designs").mkdir()
            mechanism = dp.lmmse(AVERAGE, privacy, MODEL, lag=options.lag, prefilter=dp.Filter([1]))
            dp.save(mechanism, "designs/mechanism.json")
        elif "--follow" not in words:  # nobody waits for three weeks
            assert main(words) == 0, words
        printed.append(capsys.readouterr())
    _, _, public, dry, released, ledger, follow, read = printed
    assert "within the cap" in public.out
    assert "PRIVATE" not in public.err
    assert public.out.splitlines()[:-1] == dry.out.splitlines()[:-1]
    assert "PRIVATE rows: 84\n" in dry.err
    assert "PRIVATE rows dropped, beyond the bounds of a person: 76\n" in dry.err
    assert released.err.count("PRIVATE") == 0
    assert "1 entry" in ledger.out
    assert (follow.out, follow.err) == ("", "")
    assert "pages" in read.out
    assert Path("published/report.html").read_bytes() == Path("pages/report.html").read_bytes()
    assert Path("published-private.key").exists()


@pytest.mark.parametrize("row", [x for x in BOUNDS.splitlines() if re.match(r"\| (none|\d+d) ", x)])
def test_the_table_of_bounds_is_what_releases_state(row, tmp_path):
    span, events, epsilon, noise, rmse, explained, counted = (x.strip() for x in row.strip("| ").split("|"))
    steps = None if span == "none" else 24 * int(span[:-1])
    privacy = dp.Privacy(1, 1e-6, max_events=int(events), min_separation=4)
    mechanism = dp.lmmse(AVERAGE, privacy, MODEL, lag=2, prefilter=dp.Filter([1]))
    inputs = dp.Inputs(0, 60, centre=8, n_streams=3, streams_per_person=2)
    step, stream, person = zip(*TRIPS, strict=True)
    trips = dp.Events(step=step, stream=stream, person=person, n_steps=504, n_streams=3)
    result = dp.release(mechanism, trips, tmp_path / "store", inputs, persons=dp.Persons(steps))
    whole = result.guarantee.all_spans.epsilon(1e-6)
    assert (epsilon, rmse) == (f"{whole:.2f}", f"{result.predicted_rmse_if_model_holds:.2f}")
    assert explained == f"{100 * result.explained_if_model_holds:.0f} %"
    assert noise == f"{mechanism.noise_std * math.sqrt(2):.1f}"  # two streams of one person
    assert int(counted) == len(twin.bound(TRIPS, int(events), 4, 2, steps))


def test_the_table_has_six_rows():
    assert len(re.findall(r"^\| (none|\d+d) ", BOUNDS, re.MULTILINE)) == 6


def test_the_model_for_laymen_has_the_deviation_that_is_said():
    assert f"1/√(1 − 0.81) = {math.sqrt(dp.ARMA([1], [1, -0.9]).variance):.2f}" in DESIGN
    for days, said in MODELS.items():
        assert f"`{said}`" in DESIGN
        rate = days(np.arange(24))
        assert rate.mean() == pytest.approx(8, abs=0.03)
        assert parse_model(said).variance == pytest.approx(rate.var() + 8, rel=0.02)


@pytest.mark.parametrize("b", ["0.95", "0.8", "0.7"])
def test_days_with_one_peak_and_with_two_err_as_the_page_says(b):
    """The table is made of days that are no draws of the model."""
    (row,) = (x for x in DESIGN.split("<!-- rhythm -->")[1].splitlines() if x.startswith(f"| {b} |"))
    cells = [x.strip() for x in row.strip("|").split("|")][1:]
    for days, said in zip(MODELS, (cells[:2], cells[2:]), strict=True):
        rate = days(np.arange(24 * 120) % 24)
        counts = np.random.default_rng(1).poisson(rate, (4, len(rate)))
        deviation, pole = math.sqrt(rate.var() + rate.mean()), float(b)
        model = dp.ARMA([deviation * math.sqrt(1 - pole**2)], [1, -pole], mean=8)
        mechanism = dp.block_sums(AVERAGE, dp.Privacy(1, 1e-6), model, lag=2)
        error = mechanism.simulate(counts, seed=1).estimate[:, 2:] - AVERAGE.filter(counts).y[:, :-2]
        rmse = math.sqrt(np.mean(error[:, 48:] ** 2))
        assert said == [
            f"{mechanism.predicted_rmse:.2f}",
            f"{rmse:.2f}, {rmse / mechanism.predicted_rmse:.2f} times",
        ]
