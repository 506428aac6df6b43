import argparse
import io
import sys

import pytest
from helpers.commands import refusal

import dpfast as dp
from dpfast.cli.main import build_parser, main

LOG = "when,place\n" + "".join(
    f"2020-01-01T{h:02}:{m:02},{'ab'[m % 2]}\n" for h in range(24) for m in range(0, 60, 7 + h % 5)
)
EVALUATE = [
    *("--time", "when", "--period", "5min", "--target", "moving-average:3"),
    *("--epsilon", "1", "--delta", "1e-5", "--order", "2", "--draws", "2"),
]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return str(path)


def test_a_console_without_greek_letters_gets_question_marks(monkeypatch, tmp_path):
    path, console = tmp_path / "greek.json", io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    dp.save(dp.zero_forcing(dp.Filter([1]), dp.Privacy(2, 1e-5), name="least κ"), path)
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["show", str(path)]) == 0
    assert console.buffer.getvalue().startswith(b"least ?\n")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.json"
    dp.save(dp.zero_forcing(dp.Filter([1 / 3] * 3), dp.Privacy(2, 1e-5)), path)
    return str(path)


def test_a_deeply_nested_file_is_one_line(tmp_path, capsys):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    arguments = ["design", "--target", str(path), "--epsilon", "1", "--delta", "1e-6", "--model", "arma:1"]
    assert "nested" in refusal([*arguments, "--out", str(tmp_path)], capsys)


def test_usage_errors_end_with_2():
    for arguments in (
        [],
        ["evaluate"],
        ["show"],
        ["design", "--source", "target"],
        ["nonsense"],
        ["example", "--streams", "1"],
        ["example", "--samples", "x"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_interrupt_is_a_line_and_130(monkeypatch, tmp_path, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.cli.example.run", interrupted)
    assert main(["example", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "dpfast: interrupted\n"


def test_warnings_are_shown_in_a_line(monkeypatch, tmp_path, capsys):
    import warnings

    def warned(*_, **__):
        warnings.warn("the tolerance was not reached", dp.ToleranceWarning, stacklevel=2)
        return "done"

    monkeypatch.setattr("dpfast.cli.example.run", warned)
    assert main(["example", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "dpfast: warning: the tolerance was not reached\n"


# --- what the help says ---------------------------------------------

VERBS = {
    *(
        "accept",
        "assume",
        "attack",
        "begin",
        "calibrate",
        "clamp",
        "count",
        "design",
        "draw",
        "end",
        "evaluate",
        "expect",
        "fit",
    ),
    *("go", "guarantee", "keep", "let", "log", "parse", "protect", "publish", "read", "remember", "reproduce", "round"),
    *("run", "save", "say", "show", "simulate", "state", "stop", "take", "tell", "try", "wait", "write"),
}


def parsers():
    main_parser = build_parser()
    (commands,) = (x for x in main_parser._actions if isinstance(x, argparse._SubParsersAction))
    return main_parser, commands


@pytest.mark.parametrize("command", ["", *parsers()[1].choices])
def test_every_option_is_explained_by_a_sentence_with_its_default(command):
    main_parser, commands = parsers()
    shown = commands.choices[command] if command else main_parser
    assert shown.description.endswith(".")
    summaries = [x.help for x in commands._choices_actions] if not command else []
    for action in shown._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        summaries.append(action.help)
        if action.default not in (None, argparse.SUPPRESS, [], False, True) and action.option_strings:
            assert "default: %(default)s" in action.help, action.option_strings
    for text in summaries:
        assert text.split()[0] in VERBS, text
        assert len(text.split()) >= 4, text


def test_values_that_look_like_options_are_values(saved, capsys):
    assert main(["show", "--", saved]) == 0
    capsys.readouterr()
    assert "cannot read" in refusal(["design", "--choose", "--no such family", "missing.toml"], capsys)


def test_an_interrupt_while_options_are_read_ends_it_too(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.cli.main.build_parser", interrupted)
    assert main(["example"]) == 130
    assert capsys.readouterr().err == "dpfast: interrupted\n"
