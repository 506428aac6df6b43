"""The answer of a design before all details: what to take, with what error, and a command that can be given."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.main import build_parser
from dpfast.reports.design_answer import DETAILS, DesignInShort, show_answer

FILE = Path("a folder/mechanism.json")
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
        ({"constant": 0.2}, "Take none: publishing the mean alone errs less. In"),
        ({"streams": ("a", "b")}, "Its root mean square error of all outputs together is 0.2164"),
        ({"releasable": False}, "cannot be released: there is no exact release of its kind so far. It is for studies."),
        ({"unit": 0.5}, "with dp.Inputs(low, high, unit=0.5, multiples=False). For counts,"),
        ({"fitted": True, "unit": 0.5}, "cannot be released: its model was fitted to private data."),
        ({"fitted": True}, "cannot be released: its model was fitted to private data. It is for studies."),
    ],
)
def test_what_is_otherwise_is_said(change, said):
    assert said in " ".join(SUMS._replace(**change).text().split())


def test_what_cannot_be_released_has_no_command():
    for change in {"releasable": False}, {"fitted": True}, {"unit": 0.5}:
        answer = SUMS._replace(**change)
        assert answer.command is None
        assert "dpfast release EVENTS" not in answer.text()
        assert len(show_answer(answer)) == 1
    assert len(show_answer(SUMS)) == 2


AVERAGE = dp.Filter(np.ones(3) / 3)
COLOURED = dp.ARMA([1], [1, -0.5])
LEVELS = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])


def sums(model, **options):
    return dp.block_sums(AVERAGE, dp.Privacy(1), model, lag=1, length=2, noise="geometric", **options)


def sums_of_two(**options):
    privacy = dp.Privacy(1, adjacency="one_input")
    target, options = dp.FilterMatrix([[AVERAGE, AVERAGE]]), {"length": 2, "noise": "geometric", **options}
    return dp.block_sums(target, privacy, [COLOURED] * 2, lag=1, **options)


@pytest.mark.parametrize(
    ("made", "unit"),
    [
        (lambda: sums(COLOURED, unit=0.5), 0.5),
        (lambda: sums(COLOURED), None),
        (lambda: sums(LEVELS, unit=0.5), None),  # levels are multiples: nothing is rounded
        (lambda: dp.input_perturbation(AVERAGE, dp.Privacy(1), noise="geometric", unit=2.0), 2.0),
        (lambda: dp.input_perturbation(AVERAGE, dp.Privacy(1), noise="geometric"), None),
        (lambda: dp.input_perturbation(AVERAGE, dp.Privacy(1), noise="laplace"), None),
        (lambda: dp.input_perturbation(AVERAGE, dp.Privacy(1, 1e-6)), None),
        (lambda: sums_of_two(unit=0.5), 0.5),
        (lambda: sums_of_two(), None),
    ],
)
def test_a_command_that_takes_counts_is_given_where_nothing_is_rounded(made, unit):
    """And where it is not, the release that is named takes the design, and that of counts refuses it."""
    mechanism = made()
    assert mechanism.rounding_unit == unit
    if unit is not None:
        streams = {"n_streams": 2} if mechanism.target is not AVERAGE else {}
        assert dp.exact(mechanism, dp.Inputs(0, 20, unit=unit, multiples=False, **streams)).guarantee.epsilon <= 1
        with pytest.raises(ValueError, match="unit"):
            dp.exact(mechanism, dp.Inputs.of_counts(0, 20, **streams))
