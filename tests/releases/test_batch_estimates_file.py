"""The same command again: what was published is written, nothing of it twice, whatever the data say now."""

import contextlib
import csv
import io
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import faults

import dpfast as dp
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases import batch_estimates_file
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.noise import Noise

LOG = "when,place\n" + "".join(
    f"2020-01-0{d}T{h:02}:{7 * h % 60:02},{'ab'[h % 2]}\n" for d in (1, 2) for h in range(24)
)
OTHER = "when,place\n" + "2020-01-01T05:30,b\n" * 40
DAY = ["--time", "when", "--period", "1h", "--high", "50", "--by", "place", "--groups", "a,b"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6)), path)
    return path


@pytest.fixture(scope="module")
def plan(saved):
    return release.exact(dp.load(saved), Inputs(0, 50, n_streams=2))


@pytest.fixture(autouse=True)
def _quick(plan, monkeypatch):
    """The design of the exact mechanism takes longest."""
    monkeypatch.setattr(release, "exact", lambda *_, **__: plan)


@pytest.fixture
def folder():
    """In memory where the system can."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        (Path(name) / "log.csv").write_text(LOG)
        yield Path(name)


def words(folder, saved, *more, day=1):
    span = ["--start", f"2020-01-0{day}", "--end", f"2020-01-0{day + 1}"]
    paths = [str(folder / "log.csv"), "--mechanism", str(saved), "--out", str(folder / "out"), "--quiet"]
    return ["release", *paths, *DAY, *span, *more]


def run(capsys, *args, **options):
    assert main(words(*args, **options)) == 0
    return capsys.readouterr().out


def refused(capsys, *args, **options):
    assert main(words(*args, **options)) == 2
    return capsys.readouterr().err


def pushes(folder):
    return json.loads((folder / "out" / "witness.json").read_text())["position"]


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


# --- the same command again -----------------------------------------------------------------------


def test_the_same_command_again_is_complete(folder, saved, capsys, monkeypatch):
    text = run(capsys, folder, saved)
    assert "earlier run" not in text
    file = folder / "out" / "estimates.csv"
    before, inode = file.read_bytes(), file.stat().st_ino
    (folder / "log.csv").unlink()  # nobody looks at data again
    monkeypatch.setattr(Noise, "take", None)
    again = run(capsys, folder, saved)
    assert again.startswith("Release 1 was published by an earlier run, and its file holds it: nothing more was")
    end = text.index("\n\n", text.index("Versions: "))
    guarantee, rest = text[:end], text[end:]
    assert guarantee not in again  # it was told, and a line says where it is
    report, store = folder / "out" / "report.html", folder / "out-private"
    assert f"Its guarantee is in {report}, and dpfast release --read {store} prints it." in " ".join(again.split())
    assert again.endswith(rest)
    assert (file.read_bytes(), file.stat().st_ino, pushes(folder)) == (before, inode, 1)
    file.unlink()
    finished = run(capsys, folder, saved)
    assert finished.startswith("Release 1 was published by an earlier run, and it is written now: nothing more was")
    assert guarantee in finished  # the run before may not have come to tell it
    assert (file.read_bytes(), pushes(folder)) == (before, 1)


def test_what_was_published_does_not_change_with_the_data(folder, saved, capsys):
    run(capsys, folder, saved)
    file = folder / "out" / "estimates.csv"
    before = file.read_bytes()
    file.unlink()
    (folder / "log.csv").write_text(OTHER)
    run(capsys, folder, saved)
    assert (file.read_bytes(), pushes(folder)) == (before, 1)


def test_another_format_is_written_from_the_store(folder, saved, capsys):
    from pyarrow import parquet

    run(capsys, folder, saved)
    run(capsys, folder, saved, "--format", "parquet")
    table = parquet.read_table(folder / "out" / "estimates.parquet").to_pydict()
    expected = rows(folder / "out" / "estimates.csv")
    check_rounded(expected, table["estimate"])
    assert [x.isoformat() for x in table["time"]] == [x["time"] for x in expected]
    assert pushes(folder) == 1


def test_a_file_that_holds_something_else_stays(folder, saved, capsys):
    run(capsys, folder, saved)
    file = folder / "out" / "estimates.csv"
    for content in (b"mine", file.read_bytes() + b"\n", b""):
        file.write_bytes(content)
        error = refused(capsys, folder, saved)  # and no word of another name, under which it would be spent again
        assert "is not what this version of dpfast writes of Release 1, 24 steps from" in error
        assert "--name" not in error
        assert "holds something else than this release: move it away" in refused(capsys, folder, saved, day=2)
        assert (file.read_bytes(), pushes(folder)) == (content, 1)


def test_a_file_is_the_same_however_many_rows_are_written_at_once(folder, saved, capsys, monkeypatch):
    run(capsys, folder, saved)
    file = folder / "out" / "estimates.csv"
    whole = file.read_bytes()
    monkeypatch.setattr(batch_estimates_file, "_ROWS", 10)  # 5 bins of 2 groups: 24 are no whole number of pieces
    assert "its file holds it" in run(capsys, folder, saved)
    file.unlink()
    run(capsys, folder, saved)
    assert file.read_bytes() == whole
    for other in (whole[:-1], whole + b"\n", whole.replace(b"T23", b"T22")):
        file.write_bytes(other)
        assert "is not what this version of dpfast writes" in refused(capsys, folder, saved)
        assert file.read_bytes() == other


def test_further_steps_are_another_release(folder, saved, capsys):
    run(capsys, folder, saved)
    file = folder / "out" / "estimates.csv"
    before = file.read_bytes()
    run(capsys, folder, saved, "--name", "tuesday", day=2)
    assert pushes(folder) == 2
    run(capsys, folder, saved, "--name", "tuesday", day=2)
    run(capsys, folder, saved)
    assert (file.read_bytes(), pushes(folder)) == (before, 2)
    assert {x["time"][:10] for x in rows(folder / "out" / "estimates-tuesday.csv")} == {"2020-01-02"}
    two_days = words(folder, saved)
    two_days[two_days.index("--end") + 1] = "2020-01-03"
    file.unlink()
    assert main(two_days) == 2
    assert "are released already in the store" in capsys.readouterr().err
    assert pushes(folder) == 2


def test_another_mechanism_or_declaration_is_no_same_command(folder, saved, capsys, monkeypatch):
    run(capsys, folder, saved)
    (folder / "out" / "estimates.csv").unlink()
    other = ExactMechanism.from_configuration(release.exact().configuration)
    object.__setattr__(other, "tolerance", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(release, "exact", lambda *_, **__: other)
        assert "are released already in the store" in refused(capsys, folder, saved)
    assert "what is declared must be" in refused(capsys, folder, saved, "--count", "place")
    assert pushes(folder) == 1


# --- composing ------------------------------------------------------------------------------------


def test_composing_takes_a_new_name(folder, saved, capsys):
    alone = run(capsys, folder, saved)
    file, second = (folder / "out" / x for x in ("estimates.csv", "estimates-second.csv"))
    before = file.read_bytes()
    assert "nothing spent" in run(capsys, folder, saved, "--compose")  # of a finished one: no more
    assert (file.read_bytes(), pushes(folder)) == (before, 1)
    assert "--compose with a new --name" in refused(capsys, folder, saved, "--name", "second")
    both = run(capsys, folder, saved, "--compose", "--name", "second")
    assert "composed" in both
    assert "composed" not in alone
    assert (file.read_bytes(), pushes(folder)) == (before, 2)
    assert [x["estimate"] for x in rows(second)] != [x["estimate"] for x in rows(file)]
    kept = second.read_bytes()
    for more in (["--compose"], []):  # the same again
        second.unlink()
        assert "nothing spent" in run(capsys, folder, saved, "--name", "second", *more)
        assert (second.read_bytes(), pushes(folder)) == (kept, 2)
    assert "must be a new one, got 'second'" in refused(capsys, folder, saved, "--name", "second", day=2)
    assert "Release 2, 'second', 24 steps from" in (folder / "out" / "guarantee.txt").read_text()
    assert json.loads((folder / "out" / "guarantee.json").read_text())["releases"][1]["name"] == "second"
    read = dp.read_release(folder / "out-private", "second")
    assert (read.number, read.name) == (2, "second")


def test_composing_finishes_an_unfinished_release_first(folder, saved, capsys):
    run(capsys, folder, saved)
    file = folder / "out" / "estimates.csv"
    before = file.read_bytes()
    file.unlink()
    run(capsys, folder, saved, "--compose")
    assert (file.read_bytes(), pushes(folder)) == (before, 1)
    file.unlink()
    run(capsys, folder, saved, "--compose", "--name", "second")
    assert (file.read_bytes(), pushes(folder)) == (before, 2)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../x", "a b", "-x", "x" * 65, "ä"])
def test_a_name_is_part_of_a_file_name(folder, saved, capsys, name):
    assert "name must be 1 to 64 letters" in refused(capsys, folder, saved, f"--name={name}")
    assert not (folder / "out").exists()


def test_a_stream_has_one_file(folder, saved, capsys):
    follow = words(folder, saved, "--name", "x", "--follow")
    follow[1] = "-"
    follow.remove("--quiet")
    assert main(follow) == 2
    assert "follow must come without --compose and --name" in capsys.readouterr().err


# --- crashes --------------------------------------------------------------------------------------

CALLS = [
    *faults.CALLS[:8],
    (release.Batch, "enter"),
    (batch_estimates_file, "write_estimates"),
    (release, "write_estimates"),
    (release, "read_entry"),
]


def command_killed(arguments, k):
    """In a process of its own: the command, killed at its k-th point."""
    faults.instrument(setattr, faults.reaching(k, faults.die), CALLS)
    with contextlib.redirect_stdout(io.StringIO()):
        os._exit(main(arguments))


def killed(arguments, k):
    process = multiprocessing.get_context("fork").Process(target=command_killed, args=(arguments, k))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def check_rounded(written, estimate):
    """A CSV file has steps of at most a hundredth of the error."""
    found = np.array([float(x["estimate"]) for x in written])
    assert np.abs(found - estimate).max() <= float(written[0]["predicted_rmse_if_model_holds"]) / 199


def finished(folder, saved, *more, n_releases=1):
    """The same command with other data: the file is that of the store, which has released once."""
    in_store = None
    with contextlib.suppress(dp.ReleaseError):
        in_store = dp.read_release(folder / "out-private", published=folder / "out")
    if in_store is not None and in_store.number == n_releases:
        (folder / "log.csv").write_text(OTHER)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words(folder, saved, *more)) == 0
    result = dp.read_release(folder / "out-private")
    if in_store is not None and in_store.number == n_releases:
        np.testing.assert_array_equal(result.privatized, in_store.privatized)
    name = "estimates.csv" if result.name is None else f"estimates-{result.name}.csv"
    check_rounded(rows(folder / "out" / name), result.estimate.T.ravel())
    assert (result.number, pushes(folder)) == (n_releases, n_releases)
    before = (folder / "out" / name).read_bytes()
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(words(folder, saved, *more)) == 0
    assert (folder / "out" / name).read_bytes() == before
    assert pushes(folder) == n_releases
    return in_store is not None


def kills(folder, saved, first=1, step=1):
    """Killed at one point after the other; at how many the release was there already, and at how many not."""
    counts = {True: 0, False: 0}
    for k in itertools.count(first, step):
        (folder / "log.csv").write_text(LOG)
        died = killed(words(folder, saved), k)
        counts[finished(folder, saved)] += 1
        for name in ("out", "out-private"):
            shutil.rmtree(folder / name)
        if not died:
            return counts
    return None


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


@forks
def test_killed_at_some_points_and_run_again(folder, saved):
    counts = kills(folder, saved, 4, 21)
    assert min(counts.values()) > 3


@forks
@pytest.mark.crash
def test_killed_at_every_point_and_run_again(folder, saved):
    counts = kills(folder, saved)
    assert min(counts.values()) > 30


@forks
@pytest.mark.parametrize("at", [(90, 110), pytest.param((60, 100, 120, 10**6), marks=pytest.mark.crash)])
def test_a_composed_release_that_was_killed_is_finished_once(folder, saved, capsys, at):
    for k in at:
        run(capsys, folder, saved)
        killed(words(folder, saved, "--compose", "--name", "second"), k)
        finished(folder, saved, "--compose", "--name", "second", n_releases=2)
        for name in ("out", "out-private"):
            shutil.rmtree(folder / name)
        (folder / "log.csv").write_text(LOG)


# --- dpfast release --read ------------------------------------------------------------------------


def test_read_gives_values_estimates_and_the_guarantee(folder, saved, capsys):
    run(capsys, folder, saved)
    run(capsys, folder, saved, "--name", "tuesday", day=2)
    store = folder / "out-private"
    assert main(["release", "--read", str(store)]) == 0
    printed = capsys.readouterr().out
    for number, name in ((1, None), (2, "tuesday")):
        result = dp.read_release(store, number)
        assert str(result.guarantee) in printed
        title = f"Release {number}" + (f" ({name})" if name else "")
        assert f"{title}: the store has its steps {result.first} to {result.first + 23}" in printed
    assert main(["release", "--read", str(store), "--out", str(folder / "table")]) == 0
    assert "Written:" in capsys.readouterr().out
    text = (folder / "table" / "values.csv").read_text()
    assert printed.endswith(text)
    table = rows(folder / "table" / "values.csv")
    first = dp.read_release(store, 1)
    mine = [x for x in table if x["release"] == "1"]
    assert [int(x["privatized"]) for x in mine] == first.privatized.T.ravel().tolist()
    assert [float(x["estimate"]) for x in mine] == first.estimate.T.ravel().tolist()
    assert [x["group"] for x in mine] == ["a", "b"] * 24
    assert mine[2]["time"] == "2020-01-01T01:00:00"
    assert [x.item().hour for x in first.times] == list(range(24))
    assert first.groups == ("a", "b")
    assert pushes(folder) == 2


def test_read_needs_a_store_and_nothing_else(folder, saved, capsys):
    assert main(["release", "--read", str(folder / "none")]) == 2
    assert "there is no store in" in capsys.readouterr().err
    assert not (folder / "none").exists()
    run(capsys, folder, saved)
    for more in (["--compose"], ["--start", "2020-01-01"], [str(folder / "log.csv")], ["--format", "parquet"]):
        assert main(["release", "--read", str(folder / "out-private"), *more]) == 2
        assert "read must come with --out, --adopt and --witness alone" in capsys.readouterr().err


def test_read_without_a_declaration_counts_streams_and_steps(tmp_path, plan, capsys):
    dp.release(plan, np.ones((2, 5), int), tmp_path / "store", first=3)
    assert main(["release", "--read", str(tmp_path / "store"), "--out", str(tmp_path / "table")]) == 0
    table = rows(tmp_path / "table" / "values.csv")
    assert [(x["step"], x["group"], x["time"]) for x in table] == [(str(t), k, "") for t in range(3, 8) for k in "01"]


def test_read_asks_a_second_witness_that_is_given(tmp_path, plan, capsys):
    dp.release(plan, np.ones((2, 5), int), tmp_path / "store", witness=tmp_path / "elsewhere")
    command = ["release", "--read", str(tmp_path / "store"), "--witness"]
    assert main([*command, str(tmp_path / "elsewhere")]) == 0
    assert "Release 1" in capsys.readouterr().out
    assert main([*command, str(tmp_path / "another")]) == 2
    assert "(the second) is missing, and the store" in capsys.readouterr().err
