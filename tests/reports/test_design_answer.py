"""The answer of a design before all details: what to take, with what error, and a command that can be given."""

import shlex
from pathlib import Path

import pytest

from dpfast.cli.main import build_parser
from dpfast.reports.declared_inputs import DeclaredInputs
from dpfast.reports.design_answer import DETAILS, DesignInShort, show_answer

FILE = Path("a folder/mechanism.json")
REAL = DeclaredInputs((), "dp.Inputs(LOW, HIGH, unit=0.5)", "It rounds.")
APART = DeclaredInputs((), "", "No release takes them.")
SUMS = DesignInShort("block sums", 2, 0.21640, 1.90071, True, False, FILE)


def test_the_answer_has_few_lines_and_what_matters():
    lines = SUMS.text().splitlines()
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 120
    assert lines[0] == f"Take block sums, whose estimates come 2 steps late: it is in {FILE}."
    said = " ".join(lines[1:3])
    assert "is 0.2164, in units of the target's output, if the data follow the model." in said
    assert "Publishing the mean alone, which costs no privacy, errs by 1.901." in said
    assert lines[-1] == DETAILS


@pytest.mark.parametrize("streams", [(), ("JFK", "LGA"), ("input 1", "input 2")])
def test_the_command_is_one_of_dpfast_release(streams):
    answer = SUMS._replace(streams=streams)
    words = shlex.split(answer.command.replace("\\\n", "").replace("LARGEST", "50"))
    assert words[0] == "dpfast"
    options = build_parser().parse_args(words[1:])
    assert (options.mechanism, options.high, options.dry_run) == (str(FILE), 50, True)
    assert (options.groups or []) == list(streams)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lag": 0}, "whose estimates come at once"),
        ({"lag": 1}, "whose estimates come one step late"),
        ({"lag": None}, "whose estimates wait for the whole input"),
        ({"rmse": None}, "No error is predicted of it: only simulation tells."),
        ({"constant": None}, "Its root mean square error is 0.2164, in units of the target's output."),
        (
            {"interval_text": " (95 % interval 0.2 to 0.3)"},
            "square error is 0.2164 (95 % interval 0.2 to 0.3), in units",
        ),
        ({"constant": 0.2}, "Take none: publishing the mean alone errs less. In"),
        ({"streams": ("a", "b")}, "Its root mean square error of all outputs together is 0.2164"),
        ({"releasable": False}, "cannot be released: there is no exact release of its kind so far. It is for studies."),
        ({"inputs": REAL}, "It rounds. To see what a release with it would promise and cost, before"),
        ({"inputs": REAL}, "is published, in Python (dp.release takes the same inputs, and missing is what a NaN"),
        ({"inputs": REAL}, "import dpfast as dp mechanism = dp.load('a folder/mechanism.json')"),
        ({"inputs": REAL}, "print(dp.exact(mechanism, dp.Inputs(LOW, HIGH, unit=0.5)).guarantee)"),
        ({"inputs": APART}, "No release takes them. The details follow"),
        ({"fitted": True, "inputs": REAL}, "cannot be released: its model was fitted to private data."),
        ({"fitted": True}, "cannot be released: its model was fitted to private data. It is for studies."),
    ],
)
def test_what_is_otherwise_is_said(change, said):
    assert said in " ".join(SUMS._replace(**change).text().split())


def test_what_cannot_be_released_has_no_command():
    for change in {"releasable": False}, {"fitted": True}, {"inputs": APART}, {"fitted": True, "inputs": REAL}:
        answer = SUMS._replace(**change)
        assert answer.command is None
        assert "dpfast release EVENTS" not in answer.text()
        assert len(show_answer(answer)) == 1
    assert len(show_answer(SUMS)) == len(show_answer(SUMS._replace(inputs=REAL))) == 2


def test_options_of_the_inputs_are_in_the_command():
    inputs = DeclaredInputs(("--low 1", "--high 2"), "dp.Inputs(1, 2)")
    command = " ".join(SUMS._replace(inputs=inputs).command.replace("\\\n", " ").split())
    assert command.endswith("--end DAY --low 1 --high 2 --out FOLDER --dry-run")
