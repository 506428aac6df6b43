"""The command writes the page of a release beside its estimates, from the store alone."""

from pathlib import Path

import numpy as np
import pytest
from helpers import pages
from helpers.releases import plan_of

import dpfast as dp
from dpfast._support.csv_cells import unescape
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.reports.release.release_page import release_page

GROUPS = ("a", "<b>")
LOG = "when,place\n" + "".join(f"2020-01-01T{h:02}:{7 * h % 60:02},{GROUPS[h % 2]}\n" for h in range(24))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The design of the exact mechanism takes longest."""
    monkeypatch.setattr(release, "exact", lambda *_, **__: plan_of(dp.Privacy(5, 1e-6), 2))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(plan_of(dp.Privacy(5, 1e-6), 2).mechanism, path)
    return path


@pytest.fixture
def run(tmp_path, saved, capsys):
    (tmp_path / "log.csv").write_text(LOG)
    words = ["release", tmp_path / "log.csv", "--mechanism", saved, "--time", "when", "--period", "1h", "--high", "20"]
    words += ["--by", "place", "--groups", ",".join(GROUPS), "--start", "2020-01-01", "--end", "2020-01-02", "--quiet"]

    def call(*more, status=0):
        assert main([*map(str, words), "--out", str(tmp_path / "out"), *more]) == status
        captured = capsys.readouterr()
        return captured.out if status == 0 else captured.err

    return call


def text(file):
    return file.read_text(encoding="utf-8")


def test_a_release_has_a_page_which_is_made_again(run, tmp_path):
    file = tmp_path / "out" / "report.html"
    assert f"estimates.csv, {file}, " in " ".join(run().split())
    page = pages.checked(text(file))
    assert "<b>" in page.text
    before = text(file)
    assert before == release_page(dp.read_release(tmp_path / "out-private"))
    file.unlink()
    assert "nothing spent" in run()
    assert text(file) == before
    (tmp_path / "log.csv").unlink()  # no events are read for it
    file.unlink()
    assert main(["release", "--read", str(tmp_path / "out-private"), "--out", str(tmp_path / "out")]) == 0
    assert text(file) == before
    assert sorted(x.name for x in file.parent.iterdir() if x.suffix == ".html") == ["report.html"]


def test_pages_of_the_same_steps_say_what_they_promise_together(run, tmp_path):
    run()
    before = text(tmp_path / "out" / "report.html")
    run("--compose", "--name", "again")
    store, out = tmp_path / "out-private", tmp_path / "out"
    assert text(out / "report.html") == release_page(dp.read_release(store, 1)) != before
    assert "with 1 other release of the same data" in text(out / "report.html")
    assert text(out / "report-again.html") == release_page(dp.read_release(store, "again"))


def test_where_another_page_is_nothing_is_published(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("<!doctype html> of a study")
    assert "is no report of a release: move it away" in run(status=2)
    assert not (tmp_path / "out-private").exists()
    assert text(tmp_path / "out" / "report.html") == "<!doctype html> of a study"
    run("--name", "january")
    assert (tmp_path / "out" / "report-january.html").is_file()


def test_read_writes_a_page_for_every_release_and_shows_digests(tmp_path, capsys):
    plan = plan_of(dp.Privacy(5, 1e-6), 2)
    results = [dp.release(plan, np.ones((2, 5), np.int64), tmp_path / "store", first=k) for k in (0, 5)]
    assert main(["release", "--read", str(tmp_path / "store"), "--out", str(tmp_path / "table")]) == 0
    out = capsys.readouterr().out
    assert all(x.digest in out for x in results)
    names = ["report-release-1.html", "report.html", "values.csv"]
    written = ", ".join(str(tmp_path / "table" / x) for x in [names[2], *names[:2]])
    assert " ".join(out.split()).endswith(f"Written: {written}")
    assert sorted(x.name for x in Path(tmp_path / "table").iterdir()) == names


def test_steps_of_a_stream_that_have_no_estimate_so_far_are_counted(tmp_path, capsys):
    mechanism = dp.block_sums(dp.Filter([0.5, 0.5]), dp.Privacy(3), dp.ARMA([1], [1, -0.5], mean=2.0), lag=2)
    with dp.open_stream(mechanism, tmp_path / "store", dp.Inputs(0, 20)) as stream:
        stream.push(np.full((1, 9), 2))
    assert main(["release", "--read", str(tmp_path / "store")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "the store has its steps 0 to 8 (9), the last 2 without an estimate so far;" in printed


def test_several_integers_of_a_step_are_read(tmp_path, capsys):
    signs = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    mechanism = dp.block_sums(dp.Filter([0.5, 0, -0.5]), dp.Privacy(3), model, lag=2, weights=signs)
    result = dp.release(mechanism, np.full(9, 2), tmp_path / "store", dp.Inputs(0, 20))
    assert result.privatized.shape == (1, 2, 11)
    again = dp.read_release(tmp_path / "store")
    assert again.digest == result.digest
    assert again.model_check.content() == result.model_check.content()
    assert main(["release", "--read", str(tmp_path / "store"), "--out", str(tmp_path / "table")]) == 0
    said = "the store has its steps 0 to 8 (9), and 2 more of declared zeros behind them, for which the last "
    assert f"{said}estimates wait;" in " ".join(capsys.readouterr().out.split())
    _, *lines = text(tmp_path / "table" / "values.csv").splitlines()
    pairs = zip(result.privatized[0].T, result.released.T, strict=True)
    assert [unescape(line.split(",")[4]) for line in lines] == [";".join(map(str, v[due])) for v, due in pairs]
    assert text(tmp_path / "table" / "report.html") == release_page(result)
