"""Counts for the operator alone: marked, on standard error, and without any other effect."""

import re
import sys
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.dry_run import DRY, QUIET
from dpfast.cli.main import main
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.private_counts import PrivateCounts
from dpfast.signals.events.declared_counts import Rows, count_events
from dpfast.signals.events.declared_span import Span

LOG = """when,place,many
2020-01-02T00:30,a,1
2020-01-02T00:40,a,9
2020-01-02T01:30,b,2
2020-01-02T01:30,c,2
2020-01-03T00:00,a,1
9999-12-31T00:00,a,1
2020-01-01T23:59:59,b,1
2020-01-02T23:59,b,60
"""
DAY = {"--time": "when", "--start": "2020-01-02", "--end": "2020-01-03", "--period": "1h", "--high": "9"}
GROUPED = {"--by": "place", "--groups": "a,b,empty", "--count": "many"}


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6, max_change=60)), path)
    return str(path)


def arguments(saved, out, *flags, **change):
    words = DAY | GROUPED | {f"--{name.replace('_', '-')}": value for name, value in change.items()}
    pairs = [word for pair in words.items() for word in pair]
    return ["release", str(out.with_name("log.csv")), "--mechanism", saved, "--out", str(out), *pairs, *flags]


@pytest.fixture
def out(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path / "out"


def private(text):
    """{what is counted: how many} of the lines, all of which are marked."""
    lines = text.splitlines()
    assert all(line.startswith("PRIVATE ") and len(line) <= 100 for line in lines)
    return {name: n for name, _, n in (line.removeprefix("PRIVATE ").partition(": ") for line in lines[2:])}


COUNTS = {
    "rows": "8",
    "rows in the span": "5",
    "rows in the span of group 'a'": "2",
    "rows in the span of group 'b'": "2",
    "rows in the span of group 'empty'": "0",
    "rows dropped, of a time outside of the span": "3",
    "rows dropped, of a group that is not declared": "1",
    "rows unparsed, without a time or a count that can be read": "0",
    "counts clamped": "2 above --high 9, 0 below --low 0, of 72",
}


def test_a_dry_run_shows_private_counts_and_does_nothing(saved, out, capsys):
    assert main(arguments(saved, out, "--dry-run")) == 0
    printed, shown = capsys.readouterr()
    assert printed.startswith("What this release would promise and cost: ")
    assert printed.endswith(f"\n\n{DRY}\n")
    assert private(shown) == COUNTS
    assert "must not be changed after looking" in " ".join(x.removeprefix("PRIVATE ") for x in shown.splitlines()[:2])
    assert [path.name for path in out.parent.iterdir()] == ["log.csv"]


def test_a_quiet_dry_run_shows_what_is_public_and_opens_no_events(saved, out, capsys):
    assert main(arguments(saved, out, "--dry-run")) == 0
    public = capsys.readouterr().out.removesuffix(f"{DRY}\n")
    out.with_name("log.csv").unlink()
    assert main(arguments(saved, out, "--dry-run", "--quiet")) == 0
    printed, shown = capsys.readouterr()
    assert printed == f"{public}{QUIET}\n"
    assert shown == ""
    assert list(out.parent.iterdir()) == []


def test_a_dry_run_needs_no_place_to_write_to(saved, out, tmp_path, capsys):
    nowhere = tmp_path / "log.csv" / "out"
    assert main(arguments(saved, out, "--out", str(nowhere))) != 0
    assert f"cannot write to the folder {nowhere}" in capsys.readouterr().err
    assert main(arguments(saved, out, "--out", str(nowhere), "--dry-run")) == 0
    assert private(capsys.readouterr().err) == COUNTS


def test_a_dry_run_leaves_a_store_alone(saved, out, capsys):
    assert main(arguments(saved, out)) == 0
    folders = out, out.with_name("out-private")
    before = [(path, path.read_bytes(), path.stat()) for folder in folders for path in sorted(folder.iterdir())]
    assert main(arguments(saved, out, "--dry-run")) == 0
    after = [(path, path.read_bytes(), path.stat()) for folder in folders for path in sorted(folder.iterdir())]
    assert [x[:2] for x in after] == [x[:2] for x in before]
    assert [(x.st_mtime_ns, x.st_ino) for *_, x in after] == [(x.st_mtime_ns, x.st_ino) for *_, x in before]


def test_every_run_of_a_file_shows_them_unless_quiet(saved, out, capsys):
    assert main(arguments(saved, out)) == 0
    printed, shown = capsys.readouterr()
    assert private(shown) == COUNTS

    def sizes():
        """Of all but the page, whose axes depend on the noise."""
        return {path.name: path.suffix == ".html" or path.read_text().count("\n") for path in out.iterdir()}

    files = sizes()
    for path in out.parent.glob("out*/*"):
        path.unlink()
    assert main(arguments(saved, out, "--quiet")) == 0
    quiet, nothing = capsys.readouterr()
    assert nothing == ""
    assert quiet == printed
    assert sizes() == files


def test_standard_output_and_status_do_not_depend_on_the_data(saved, out, capsys):
    """But for rows that are unsound."""
    results = []
    for text in (LOG, "when,place,many\n", LOG.replace("2020", "2013"), LOG.replace(",a,", ",z,")):
        out.with_name("log.csv").write_text(text)
        for flags in ([], ["--quiet"], ["--dry-run"]):
            status = main(arguments(saved, out, *flags))
            files = sorted(path.name for path in out.parent.glob("out*/*"))
            results.append((status, re.sub("store .*", "", capsys.readouterr().out), files, *flags))
            for path in out.parent.glob("out*/*"):
                path.unlink()
    assert all(results[i] == results[i % 3] for i in range(len(results)))


def test_a_wrong_year_or_column_shows(saved, out, capsys):
    assert main(arguments(saved, out, "--dry-run", start="2013-01-02", end="2013-01-03")) == 0
    assert private(capsys.readouterr().err)["rows in the span"] == "0"
    assert main(arguments(saved, out, "--dry-run", by="many")) == 0
    assert private(capsys.readouterr().err)["rows dropped, of a group that is not declared"] == "5"


@pytest.mark.parametrize(
    ("change", "unparsed"),
    [
        ({"time": "place"}, "8"),
        ({"count": "place"}, "8"),
        ({"time_format": "%d/%m/%Y %H:%M"}, "8"),
        ({"start": "2020-01-02T00:00Z", "end": "2020-01-03T00:00Z"}, "8"),
    ],
)
def test_rows_that_cannot_be_read_are_counted_and_refused(saved, out, capsys, change, unparsed):
    for flag in ("--dry-run", "--quiet"):
        assert main(arguments(saved, out, flag, **change)) == 2
        printed, shown = capsys.readouterr()
        *lines, error = shown.splitlines()
        assert DRY not in printed
        assert error.startswith("dpfast: error: ")
        if flag == "--dry-run":
            found = private("\n".join(lines))
            assert found["rows unparsed, without a time or a count that can be read"] == unparsed
            assert "counts clamped" not in found
        else:
            assert lines == []
            assert printed == ""
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--private-counts"], "private_counts must come with --follow"),
        (["--dry-run", "--private-counts"], "private_counts must come with --follow"),
    ],
)
def test_flags_that_would_do_nothing_are_refused(saved, out, capsys, flags, message):
    assert main(arguments(saved, out, *flags)) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("text", ["", "a\n", "when,place,many\n2020-01-02T00:30\n"])
def test_a_file_that_is_none_has_no_counts(saved, out, capsys, text):
    out.with_name("log.csv").write_text(text)
    assert main(arguments(saved, out, "--dry-run")) == 2
    assert "PRIVATE" not in capsys.readouterr().err


def test_rows_add_up_to_all(out):
    rows = []
    span = Span.parse("2020-01-02", "2020-01-03", "1h")
    count_events(out.with_name("log.csv"), span, ("b",), time="when", by="place", seen=rows.append)
    assert rows == [Rows(0, 3, 3, (2,))]
    assert (rows[0].inside, rows[0].total) == (5, 8)
    assert rows[0] + Rows(1, 0, 0, (4,), 2) == Rows(1, 3, 3, (6,), 2)


def test_clamped_counts_are_those_outside_of_the_range(capsys):
    shown = PrivateCounts(("a",), Inputs(Fraction(1, 2), Fraction(5, 2), unit=Fraction(1, 2), centre=1))
    shown.see(Rows(0, 0, 0, (1,)))
    shown.count_clamped(np.array([[0, 1, 2, 3, 4]]))
    shown.show()
    assert "PRIVATE counts clamped: 2 above --high 5/2, 1 below --low 1/2, of 5\n" in capsys.readouterr().err


def test_nobody_who_reads_is_no_error(monkeypatch):
    class Broken:
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    shown = PrivateCounts(("a",), Inputs(0, 5))
    shown.see(Rows(0, 0, 0, (1,)))
    shown.show()
