import os
import subprocess
import sys

import pytest

import dpfast as dp
from dpfast.cli import main

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


def test_evaluate_writes_its_files_with_the_banner_on_top(log, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["evaluate", log, *EVALUATE, "--by", "place", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert sorted(x.name for x in out.iterdir()) == ["evaluation.csv", "evaluation.md", "outputs.csv", "outputs.png"]
    for text in (printed, *((out / name).read_text() for name in ("evaluation.csv", "evaluation.md", "outputs.csv"))):
        assert "NOT A RELEASE" in text.split("\n")[0]
        assert "nothing fitted here may be used to release" in text.split("\n")[1]


def test_names_that_look_like_formulas_are_names(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text(LOG.replace(",a\n", ",$x_$ ^\n"))
    assert main(["evaluate", str(log), *EVALUATE, "--by", "place", "--out", str(tmp_path / "out")]) == 0
    assert "$x_$ ^" in capsys.readouterr().out


def test_a_console_without_greek_letters_gets_question_marks(log, tmp_path):
    command = [sys.executable, "-m", "dpfast.cli", "evaluate", log, *EVALUATE, "--out", str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert b"Written:" in run.stdout


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
    for arguments in ([], ["evaluate"], ["nonsense"], ["example", "--streams", "1"], ["example", "--samples", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_interrupt_is_a_line_and_130(monkeypatch, tmp_path, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpfast.example.run", interrupted)
    assert main(["example", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "dpfast: interrupted\n"


def test_the_command_runs_as_a_program():
    run = subprocess.run(
        [sys.executable, "-m", "dpfast.cli", "--version"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert run.stdout.strip() == f"dpfast {dp.__version__}"


def test_warnings_are_shown_in_a_line(monkeypatch, tmp_path, capsys):
    import warnings

    def warned(*_, **__):
        warnings.warn("the tolerance was not reached", dp.ToleranceWarning, stacklevel=2)
        return "done"

    monkeypatch.setattr("dpfast.example.run", warned)
    assert main(["example", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == "dpfast: warning: the tolerance was not reached\n"
