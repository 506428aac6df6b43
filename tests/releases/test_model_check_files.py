"""Files of what v tells, by the command; streams that are compared as they go on."""

import csv
import json

import numpy as np
import pytest
from helpers import wrong_models
from helpers.commands import parse
from helpers.scripts import Script
from helpers.seeded_noise import seed_noise

import dpfast as dp
from dpfast._support.errors import DataError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases import stream as streams
from dpfast.releases.feed.status import Watch
from dpfast.signals.events.declared_span import Span


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch):
    seed_noise(monkeypatch, 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.optimal(wrong_models.TARGET, dp.Privacy(1, 1e-6), wrong_models.MODEL, lag=5, tolerance=0.05), path)
    return str(path)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """600 hours with six events each on the average, where the model says two."""
    path = tmp_path_factory.mktemp("log") / "log.csv"
    counts = np.random.default_rng(1).poisson(6, 600)
    times = np.repeat(np.datetime64("2026-01-01T00", "s") + 3600 * np.arange(600), counts)
    path.write_text("t\n" + "\n".join(map(str, times)) + "\n")
    return str(path)


def command(log, saved, out, *more):
    span = ["--start", "2026-01-01", "--end", "2026-01-26", "--period", "1h"]
    return ["release", log, "--mechanism", saved, "--out", str(out), "--time", "t", "--high", "40", *span, *more]


def test_the_command_says_what_v_tells_and_leaves_files_of_it(saved, log, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(command(log, saved, out, "--adapt", "--quiet")) == 0
    said = capsys.readouterr().out
    assert "contradicts the model (test of level 0.001): the mean of the true values is about" in said
    assert "The adapted receiver is taken." in said
    content = json.loads((out / "model-check.json").read_text())
    assert content["agrees"] is False
    assert 0.9 < content["estimated_rmse"] < 1.6
    assert content["adapted"]["taken"] is True
    with (out / "adapted-estimates.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["time", "group", "estimate", "predicted_rmse_if_model_holds"]
    again = dp.read_release(tmp_path / "out-private", adapt=True)
    found = np.array([float(row[2]) for row in rows[1:]])
    np.testing.assert_allclose(found, again.adapted.estimate[0], atol=0.01)
    assert again.model_check.content()["findings"] == content["findings"]
    before = (out / "estimates.csv").read_bytes()
    (out / "model-check.json").unlink()
    assert main(command(log, saved, out, "--quiet")) == 0  # once more: it is written again, and nothing is published
    assert json.loads((out / "model-check.json").read_text())["adapted"] is None
    assert (out / "estimates.csv").read_bytes() == before


def test_what_is_no_file_of_this_command_is_not_written_over(saved, log, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(command(log, saved, out, "--quiet")) == 0
    (out / "model-check.json").write_text("mine")
    assert main(command(log, saved, out, "--quiet")) == 2
    assert "is none that this command writes" in capsys.readouterr().err
    assert (out / "model-check.json").read_text() == "mine"


def test_too_few_bins_for_a_fit_are_refused_before_anything_is_published(saved, log, tmp_path, capsys):
    out = tmp_path / "out"
    given = command(log, saved, out, "--adapt")
    given[given.index("2026-01-26")] = "2026-01-03"
    assert main(given) == 2
    assert "adapt must be False for fewer than" in capsys.readouterr().err
    assert not (tmp_path / "out-private").exists()


def test_a_stream_tells_what_a_reader_of_its_store_is_told(tmp_path):
    plan, u = wrong_models.recipe(), np.random.default_rng(2).poisson(5.9, (1, 400))
    with dp.open_stream(plan, tmp_path / "store") as stream:
        stream.push(u[:, :300])
        early = stream.model_check()
        with pytest.raises(ValueError, match="adapt must be False for fewer"):
            dp.open_stream(plan, tmp_path / "other").adapted()
    with dp.open_stream(plan, tmp_path / "store") as stream:
        assert stream.model_check().content() == early.content()  # all of it comes from the stored v
        stream.push(u[:, 300:])
        before = stream.adapted()
        stream.close()
        found, adapted = stream.model_check(), stream.adapted()
    assert (found.agrees, found.steps) == (False, 400)
    assert (before.estimate.shape, adapted.estimate.shape) == ((1, 395), (1, 400))
    read = dp.read_release(tmp_path / "store", adapt=True)
    assert read.model_check.content() == found.content()
    np.testing.assert_array_equal(read.adapted.estimate, adapted.estimate)


SECONDS = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:01:40Z", "1s")


def live(saved, out, interrupt=None):
    """A hundred seconds with twelve events each, where the model says two; interrupted at a second of them."""
    words = {"time": "t", "start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:40Z", "period": "1s", "high": 40}
    options = parse("release", "-", mechanism=saved, out=out, follow=True, quiet=True, **words)
    start = SECONDS.start // 10**6
    came = [(SECONDS.start - 1, b"t\n")]
    came += [(SECONDS.start + int(1e6 * (t + 0.5)), f"{start + t}\n".encode() * 12) for t in range(100)]
    script = Script(SECONDS.start - 1, came, interrupt)
    try:
        return release.run(options, source=script, clock=script)
    finally:
        script.end()


def stated(out):
    with (out / "estimates.csv").open() as file:
        return [row["predicted_rmse_if_model_holds"] for row in csv.DictReader(file)]


def test_rows_state_no_error_from_the_bin_on_at_which_v_contradicts_the_model(saved, tmp_path, monkeypatch):
    live(saved, tmp_path / "out")
    content = json.loads((tmp_path / "out" / "model-check.json").read_text())
    assert (content["agrees"], content["contradicted_after"]) == (False, 64)
    written = stated(tmp_path / "out")
    assert len(written) == 100
    assert all(written[: 63 - 5])  # published at step 63 or before, as the lag is 5
    assert not any(written[63 - 5 :])
    assert "written before state a predicted error, which does not hold either." in content["verdict"]
    page = " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert "found after 64 of 100 steps: rows of a file of estimates that were written before state" in page
    whole = (tmp_path / "out" / "estimates.csv").read_bytes()
    (tmp_path / "out" / "estimates.csv").unlink()
    live(saved, tmp_path / "out")  # made of the store alone
    assert (tmp_path / "out" / "estimates.csv").read_bytes() == whole


def test_a_stream_that_goes_on_after_a_contradiction_states_no_error(saved, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        live(saved, tmp_path / "out", SECONDS.start + 80 * 10**6)
    before = stated(tmp_path / "out")
    assert before[-1] == ""
    live(saved, tmp_path / "out")
    after = stated(tmp_path / "out")
    assert after[: len(before)] == before
    assert not any(after[len(before) :])


def test_a_table_of_values_states_no_error_that_v_contradicts(saved, log, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(command(log, saved, out, "--adapt", "--quiet")) == 0
    assert set(stated(out)) == {""}
    estimates = csv.DictReader((out / "adapted-estimates.csv").read_text().splitlines())
    assert all(row["predicted_rmse_if_model_holds"] for row in estimates)  # of the fitted model
    assert main(["release", "--read", str(tmp_path / "out-private"), "--out", str(tmp_path / "read")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "What was published contradicts the model" in said
    assert "So the column of the predicted error is empty here." in said
    values = csv.DictReader((tmp_path / "read" / "values.csv").read_text().splitlines())
    assert {row["predicted_rmse_if_model_holds"] for row in values} == {""}


def test_a_contradiction_is_said_once(monkeypatch):
    said = []
    monkeypatch.setattr("dpfast.releases.feed.status.say", said.append)
    plan, rng = wrong_models.recipe(), np.random.default_rng(3)
    v = wrong_models.published(plan, rng.poisson(5.9, (1, 200)), rng)
    check = streams.check_growing(plan.evidence(v, 200))

    class Still:
        def now(self):
            return 0

    watch = Watch(None, Still(), private=None, quiet=False)
    watch.note_contradiction(check)
    watch.note_contradiction(check)
    assert len(said) == 1
    assert "contradicts the model" in said[0]
    assert said[0].endswith("that follow state none, and those before keep what they state.")
    silent = Watch(None, Still(), private=None, quiet=True)
    silent.note_contradiction(check)
    assert len(said) == 1


def test_block_sums_are_compared_and_have_an_error_from_v(tmp_path):
    mechanism = dp.block_sums(
        dp.Filter([1], [1, -0.9]), dp.Privacy(1), dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
    )
    u = np.random.default_rng(4).integers(0, 2, (1, 600))
    result = dp.release(mechanism, u, tmp_path / "store", dp.Inputs(0, 1))
    assert result.model_check.agrees is not None
    assert "RMSE estimated from what was published: " in str(result.model_check)
    assert "adapted" in str(dp.read_release(tmp_path / "store", adapt=True).adapted)
    assert issubclass(DataError, ValueError)
