"""Names of groups in a file: as many as one likes."""

import argparse
import csv

import pytest

import dpfast as dp
from dpfast.cli.group_options import declared_groups
from dpfast.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6)), "mechanism.json")
    (tmp_path / "log.csv").write_text("t,g\n2020-01-01T05:00,b\n2020-01-01T05:00,b\n2020-01-01T05:00,é\n")
    return tmp_path


def run(*words, out="out"):
    declared = ["--time", "t", "--start", "2020-01-01", "--end", "2020-01-02", "--period", "1d", "--high", "9"]
    return main(["release", "log.csv", "--mechanism", "mechanism.json", "--by", "g", *declared, "--out", out, *words])


@pytest.mark.parametrize("content", ["c\nb\né\na,d\n", "\ufeffc\r\nb\r\né\r\na,d", "c\nb\né\na,d"])
def test_a_file_of_names_declares_what_the_option_does(folder, content, capsys):
    (folder / "groups.txt").write_bytes(content.encode())
    assert run("--groups-file", "groups.txt", "--quiet") == 0
    rows = csv.DictReader((folder / "out" / "estimates.csv").read_text().splitlines())
    assert [row["group"] for row in rows] == ["c", "b", "é", "a,d"]
    capsys.readouterr()
    assert run("--groups", 'c,b,é,"a,d"') == 0
    assert "nothing more was published" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (b"a\n\nb\n", [], "groups must be 1 to 1,000,000 distinct names, none empty, got 3"),
        (b"a\na\n", [], "groups must be 1 to 1,000,000 distinct names, none empty, got 2"),
        (b"", [], "groups must be 1 to 1,000,000 distinct names, none empty, got 1"),
        (b"a\x07\n", [], "groups must be a list of printable names"),
        (b"\xff\n", [], "groups.txt must have names of groups in UTF-8, a line each, got other bytes"),
        (b"a\n", ["--groups", "a"], "groups must be given by --groups or by --groups-file, not by both"),
        (b"a\n", ["--groups-file", "none.txt"], "cannot read none.txt: No such file or directory"),
    ],
)
def test_other_files_are_refused(folder, content, words, said, capsys):
    (folder / "groups.txt").write_bytes(content)
    assert run("--groups-file", "groups.txt", *words) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_many_groups_are_published_and_counted_in_few_lines(folder, capsys):
    names = [f"g{i}" for i in range(2000)]
    (folder / "groups.txt").write_text("\n".join(names))
    (folder / "log.csv").write_text("t,g\n" + "".join(f"2020-01-01T05:00,g{i * i}\n" for i in range(60)) * 3)
    assert run("--groups-file", "groups.txt") == 0
    private = [line for line in capsys.readouterr().err.splitlines() if "group" in line][1:]
    assert private == [
        "PRIVATE rows in the span of one of 2,000 groups: 0 to 3, in the median 0",
        "PRIVATE groups without rows in the span: 1,955, the first of them 'g2'",
        "PRIVATE rows dropped, of a group that is not declared: 45",
    ]
    assert len((folder / "out" / "estimates.csv").read_text().splitlines()) == 2001


def test_bins_of_a_file_are_counted_at_once_and_those_that_come_one_by_one_are_not():
    span = dp.Span.parse("2020-01-01", "2021-01-01", "1s")  # more than 10⁹ bins times groups
    given = argparse.Namespace(by="g", groups=tuple(map(str, range(100))), groups_file=None, follow=True)
    assert declared_groups(given, span) == given.groups
    given.follow = False
    with pytest.raises(ValueError, match=r"^bins times groups must be at most 1,000,000,000, got 31,622,400 for 100"):
        declared_groups(given, span)
