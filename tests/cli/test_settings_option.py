"""Options from a TOML file: the same as those that are typed, which override them."""

import argparse
import tomllib

import pytest

import dpfast as dp
from dpfast.cli import release
from dpfast.cli.main import build_parser, main

FILE = """
events = "log.csv"
mechanism = "mechanism.json"
time = "when"
by = "place"
groups = ["a, b", "c"]
start = 2020-01-02
end = 2020-01-03T00:00:00
period = "1h"
high = 30
low = -0.5
unit = 0.25
tolerance = 1e-2
streams-per-person = 2
out = "out"
dry-run = true
quiet = false
"""
TYPED = [
    *("log.csv", "--mechanism", "mechanism.json", "--time", "when", "--by", "place", "--groups", '"a, b",c'),
    *(
        "--start",
        "2020-01-02",
        "--end",
        "2020-01-03T00:00:00",
        "--period",
        "1h",
        "--high",
        "30",
        "--low=-0.5",
        "--unit",
        "0.25",
    ),
    *("--tolerance", "1e-2", "--streams-per-person", "2", "--out", "out", "--dry-run"),
]


def parse(*words):
    options = vars(build_parser().parse_args(["release", *words]))
    return {name: x for name, x in options.items() if name != "settings"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text(FILE)
    return str(path)


def test_a_file_is_the_same_as_typing(file):
    assert parse("--settings", file) == parse(f"--settings={file}") == parse(*TYPED)


def test_what_is_typed_overrides_the_file_wherever_it_stands(file):
    typed = ["other.csv", "--high", "31", "--low", "0", "--groups", "z", "--streams-per-person", "1"]
    for words in (["--settings", file, *typed], [*typed, "--settings", file]):
        assert parse(*words) == parse(*TYPED[1:], *typed)


def option_values():
    """Of every option of the command a value that it takes."""
    command = argparse.ArgumentParser()
    release.add_options(command)
    values = {"high": "30", "low": "1/3", "unit": "2", "centre": "1", "tolerance": "0.1"}
    for action in command._actions:
        if action.dest not in ("help", "settings", "read"):
            numbers = action.type is not None and action.dest != "groups"
            one = list(action.choices)[-1] if action.choices else "3" if numbers else "text"
            yield action, True if action.nargs == 0 else values.get(action.dest, one)


def test_every_option_may_be_in_the_file(tmp_path):
    values = list(option_values())
    assert len(values) > 30
    lines = [f"{action.dest} = {'true' if x is True else repr(x)}" for action, x in values]
    (tmp_path / "release.toml").write_text("\n".join(lines))
    assert tomllib.loads("\n".join(lines))["follow"] is True
    typed = [
        word
        for action, x in values
        for word in ([x] if not action.option_strings else [action.option_strings[0]] + [x] * (x is not True))
    ]
    assert parse("--settings", str(tmp_path / "release.toml")) == parse(*typed)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hihg = 30", "has the unknown key 'hihg'"),
        ("hihg = 30", "did you mean high?"),
        ("help = true", "has the unknown key 'help'"),
        ("settings = 'x'", "has the unknown key 'settings'"),
        ("read = 'store'", "has the unknown key 'read'"),
        ("quiet = 1", "quiet must be true or false, got 1"),
        ("quiet = 'yes'", "quiet must be true or false, got 'yes'"),
        ("high = true", "high must be text, a number or a point in time, got True"),
        ("format = 'cvs'", "format must be one of 'csv', 'parquet', got 'cvs'; did you mean csv?"),
        ("high = [1]", "high must be text, a number or a point in time, got a list of length 1"),
        ("groups = [1]", "groups must be text, a number or a point in time, got a list of length 1"),
        ("high = 'many'", "argument --high: must be a number such as 20, 0.5 or 1/3, got 'many'"),
        ("max-events = 0", "argument --max-events: must be at least 1, got 0"),
        ("high = 1\nhigh = 2", "must be TOML: Cannot overwrite a value"),
        ("dry-run = true\ndry_run = true", "must have every key once, got one with - and with _"),
        ("high = 30", "the following arguments are required: EVENTS, --mechanism, --time"),
    ],
)
def test_what_is_no_option_is_refused(tmp_path, capsys, line, said):
    (tmp_path / "release.toml").write_text(line)
    with pytest.raises(SystemExit) as ended:
        main(["release", "--settings", str(tmp_path / "release.toml")])
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--settings", "none.toml"], "cannot read none.toml"), (["--settings"], "expected one argument")],
)
def test_a_file_must_be_there(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["release", *words])
    assert said in capsys.readouterr().err


def test_a_release_of_a_file_is_that_of_the_same_words(tmp_path, monkeypatch, capsys):
    """The second run finds the release of the first: the declarations are the same."""
    monkeypatch.chdir(tmp_path)
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(1, 1e-6)), "mechanism.json")
    (tmp_path / "log.csv").write_text('when,place\n2020-01-02T05:00,"a, b"\n')
    (tmp_path / "release.toml").write_text(FILE.replace("dry-run = true", ""))
    assert main(["release", "--settings", "release.toml", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["release", *TYPED[:-1], "--quiet"]) == 0
    assert "nothing more was published" in capsys.readouterr().out
    assert main(["release", "--settings", "release.toml", "--read", "out-private"]) == 2
    assert "read must come with --out, --adopt and --witness alone" in capsys.readouterr().err
