import argparse
import contextlib
import io
import sys

import pytest

import dpfast as dp
from dpfast.cli.main import main
from dpfast.cli.options import parser

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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "saved.json"
    dp.save(dp.zero_forcing(dp.Filter([1 / 3] * 3), dp.Privacy(2, 1e-5)), path)
    return str(path)


@pytest.fixture(scope="module")
def evaluated(saved, tmp_path_factory):
    """The folder that one evaluation has written, and what it has printed; a place looks like a formula."""
    folder = tmp_path_factory.mktemp("evaluated")
    log, out, printed = folder / "log.csv", folder / "out", io.StringIO()
    log.write_text(LOG.replace(",a\n", ",$x_$ ^\n"))
    with contextlib.redirect_stdout(printed):
        given = ["--by", "place", *["--mechanism", saved] * 2, "--out", str(out)]
        assert main(["evaluate", str(log), *EVALUATE, *given]) == 0
    return out, printed.getvalue()


def test_evaluate_writes_its_files_with_the_banner_on_top(evaluated):
    out, printed = evaluated
    assert sorted(x.name for x in out.iterdir()) == [
        "evaluation.csv",
        "evaluation.md",
        "outputs.csv",
        "outputs.png",
        "report.html",
    ]
    for text in (printed, *((out / name).read_text() for name in ("evaluation.csv", "evaluation.md", "outputs.csv"))):
        assert "NOT A RELEASE" in text.split("\n")[0]
        assert "nothing fitted here may be used to release" in text.split("\n")[1]


def test_names_that_look_like_formulas_are_names(evaluated):
    assert "$x_$ ^" in evaluated[1]


def test_saved_mechanisms_take_part_in_an_evaluation(evaluated):
    assert "saved 1: LZF (epsilon 2, delta 1e-05)" in evaluated[1]
    assert "saved 2: LZF (epsilon 2, delta 1e-05)" in evaluated[1]


def test_a_console_without_greek_letters_gets_question_marks(monkeypatch, tmp_path):
    path, console = tmp_path / "greek.json", io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    dp.save(dp.zero_forcing(dp.Filter([1]), dp.Privacy(2, 1e-5), name="least κ"), path)
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["show", str(path)]) == 0
    assert console.buffer.getvalue().startswith(b"least ?\n")


def test_show_says_what_a_file_guarantees(saved, capsys):
    assert main(["show", saved]) == 0
    assert "(2, 1e-05)-differential privacy" in " ".join(capsys.readouterr().out.split())


def test_show_refuses_another_file(log, capsys):
    assert "log.csv cannot be used: it must be JSON" in failing(["show", log], capsys)


DESIGN = ["--target", "ba:1/1,-0.5", "--epsilon", "1", "--delta", "1e-5", "--tolerance", "0.05"]


def test_design_writes_its_files_and_show_reads_the_mechanism(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("dpfast.reports.comparison.lags_around", lambda lag: [lag])
    monkeypatch.setattr("dpfast.reports.comparison.epsilons_around", lambda epsilon: [epsilon])
    settings, out = tmp_path / "settings.toml", tmp_path / "out"
    settings.write_text('model = "levels:0,1@0.5,0.5"\nepsilon = 9\nmax-change = 2\nchoose = "DFE"\n')
    told = ["--source", "max-change=public", "--source", "epsilon=public", "--choose", "LZF"]
    assert main(["design", str(settings), *DESIGN, *told, "--out", str(out)]) == 0
    assert "Written: " in capsys.readouterr().out
    assert main(["show", str(out / "mechanism.json")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("LZF\n")
    assert "epsilon 1, " in shown
    assert "public              epsilon, max_change\n" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either model or fit must be given"),
        (["--model", "nonsense"], "model must be markov:"),
        (["--model", "arma:1", "--lag", "-1"], "lag must be"),
        (["--model", "arma:1", "--choose", "best"], "choose must be one of 'optimal'"),
        (["--model", "arma:1", "--source", "target=secret"], "the source of target must be one of"),
        (["--model", "arma:1", "--time", "when"], "time must come with fit"),
        (["missing.toml", "--model", "arma:1"], "cannot read missing.toml"),
        (["--fit", "missing.csv", "--time", "when", "--period", "1h"], "missing.csv"),
    ],
)
def test_a_bad_design_gives_one_line_and_writes_nothing(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert message in failing(["design", *arguments, *DESIGN, "--out", str(out)], capsys)
    assert not out.exists()


def test_an_interrupted_design_writes_nothing(monkeypatch, tmp_path, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.design.comparison.ComparedDesigns._design", interrupted)
    assert main(["design", *DESIGN, "--model", "arma:1", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "dpfast: interrupted\n"
    assert not (tmp_path / "out").exists()


def test_a_deeply_nested_file_is_one_line(tmp_path, capsys):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    arguments = ["design", "--target", str(path), "--epsilon", "1", "--delta", "1e-6", "--model", "arma:1"]
    assert "nested" in failing([*arguments, "--out", str(tmp_path)], capsys)


def failing(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("dpfast: error: ")
    return captured.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--time": "nowhen"}, "nowhen"),
        ({"--by": "noplace"}, "noplace"),
        ({"--period": "5 parsecs"}, "period"),
        ({"--target": "nonsense"}, "target"),
        ({"--target": "ba:1/1,-1"}, "pole"),
        ({"--epsilon": "0"}, "epsilon"),
        ({"--epsilon": "nan"}, "epsilon"),
        ({"--delta": "1"}, "delta"),
        ({"--max-change": "-1"}, "max_change"),
        ({"--max-change": "1e200"}, "max_change"),
        ({"--max-change": "1e-200"}, "max_change"),
        ({"--target": "ba:1e300"}, "b must be at most 1e+50"),
        ({"--target": "ba:1e-300"}, "target must not be zero"),
        ({"--target": "ba:0"}, "target must not be zero"),
        ({"--draws": "1000000"}, "fewer draws"),
        ({"--period": "1d"}, "period"),
        ({"--count": "place"}, "place"),
    ],
)
def test_bad_arguments_give_one_line_and_write_nothing(log, tmp_path, capsys, change, message):
    arguments = dict(zip(EVALUATE[::2], EVALUATE[1::2], strict=True)) | change
    out = tmp_path / "out"
    error = failing(["evaluate", log, *[x for pair in arguments.items() for x in pair], "--out", str(out)], capsys)
    assert message in error
    assert not out.exists()


def test_an_unreadable_file_is_one_line(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "missing.csv"):
        assert str(path) in failing(["evaluate", str(path), *EVALUATE, "--out", str(tmp_path / "out")], capsys)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(log, capsys):
    assert "cannot write" in failing(["evaluate", log, *EVALUATE, "--out", log], capsys)


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


# --- what the help says, and words that are not known ---------------------------------------------

VERBS = {
    *(
        "accept",
        "assume",
        "attack",
        "begin",
        "calibrate",
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
    main_parser = parser()
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["desing"], "unknown command 'desing'; did you mean design? The commands are example,"),
        (["design", "--epsilom", "1"], "unknown option --epsilom; did you mean --epsilon?"),
        (["design", "--max_change=2"], "unknown option --max_change; did you mean --max-change?"),
        (["design", "--tol", "1"], "unknown option --tol; did you mean --tolerance?"),
        (["show", "--nothing-like-it"], "unknown option --nothing-like-it\n"),
        (["release", "-", "--streams", "3"], "unknown option --streams; did you mean --streams-per-person?"),
    ],
)
def test_an_unknown_option_is_named_with_the_one_that_was_meant(capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_values_that_look_like_options_are_values(saved, capsys):
    assert main(["show", "--", saved]) == 0
    capsys.readouterr()
    assert "cannot read" in failing(["design", "--choose", "--no such family", "missing.toml"], capsys)
