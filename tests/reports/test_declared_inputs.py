"""What an answer says of how to release a design: the command, or the Python, that is printed runs and releases."""

import contextlib
import io
import shlex

import numpy as np
import pytest

import dpfast as dp
from dpfast.cli.main import main
from dpfast.reports.declared_inputs import declare_inputs
from dpfast.reports.design_answer import DesignInShort

AVERAGE = dp.Filter([0.5, 0.5])
GAUSSIAN, PURE = dp.Privacy(2, 1e-6), dp.Privacy(2)
COLOURED = dp.ARMA([1], [1, -0.5])
LOG = "when,place\n" + "".join(f"2020-01-02T{h:02}:{m:02},{'ab'[m % 2]}\n" for h in range(24) for m in range(h % 4))
PLACEHOLDERS = {
    "EVENTS.csv": "log.csv",
    "--time": "when",
    "--by": "place",
    "--period": "1h",
    "--start": "2020-01-02",
    "--end": "2020-01-03",
    "--high": "6",
    "--out": "out",
}


def chain(*levels):
    n = len(levels)
    return dp.MarkovChain(np.full((n, n), 0.5 / n) + np.eye(n) / 2, levels=list(levels))


def sums(model, **options):
    return dp.block_sums(AVERAGE, PURE, model, **{"lag": 1, "length": 2, "noise": "geometric"} | options)


def counted(unit=None):
    return dp.input_perturbation(AVERAGE, PURE, noise="geometric", unit=unit)


def filtered(model, privacy=GAUSSIAN, lag=1):
    return dp.lmmse(AVERAGE, privacy, model, lag=lag, prefilter=dp.Filter([1, 0.5]))


def answered(model, receiver="linear"):
    return dp.randomized_response(AVERAGE, PURE, model, lag=1, receiver=receiver)


def decided(model):
    return dp.decision_feedback(AVERAGE, GAUSSIAN, model, lag=1, prefilter=dp.Filter([1, 0.5]))


def of_two(design, *models, **options):
    privacy = dp.Privacy(2, 0 if design is dp.block_sums else 1e-6, adjacency="one_input")
    return design(dp.FilterMatrix([[AVERAGE, AVERAGE]]), privacy, list(models), lag=1, **options)


def sums_of_two(*models, **options):
    return of_two(dp.block_sums, *models, length=2, noise="geometric", **options)


TWO, SHIFTED, HALVES, SIGNS, EVEN = chain(0, 1), chain(1, 2), chain(-0.5, 0.5), chain(-1, 1), chain(0, 2)
FINE, THIRDS, ODD = chain(0, 0.5, 1), chain(0, 1 / 3, 2 / 3), chain(0, 1, 2**0.5)
SMALL = dp.Privacy(2, 1e-6, max_change=0.5)
COMMANDS = {  # the design, and models
    "zero forcing": (lambda: dp.zero_forcing(AVERAGE, GAUSSIAN, tolerance=0.3),),
    "LMMSE": (lambda: filtered(COLOURED), COLOURED),
    "smoother": (lambda: filtered(COLOURED, lag=None), COLOURED),
    "LMMSE, two counts": (lambda: filtered(TWO), TWO),
    "LMMSE, even counts": (lambda: filtered(EVEN), EVEN),
    "feedback, two counts": (lambda: decided(TWO), TWO),
    "Gaussian inputs": (lambda: dp.input_perturbation(AVERAGE, GAUSSIAN),),
    "outputs": (lambda: dp.output_perturbation(dp.Filter([1], [1, -0.5]), GAUSSIAN),),
    "counts": (counted,),
    "counts, unit 2": (lambda: counted(2),),
    "counts, unit 0.3": (lambda: counted(0.3),),
    "canonical": (lambda: dp.input_perturbation(AVERAGE, GAUSSIAN, noise="canonical"),),
    "sums": (lambda: sums(COLOURED), COLOURED),
    "sums, unit 2": (lambda: sums(COLOURED, unit=2), COLOURED),
    "sums, 0 and 1": (lambda: sums(TWO), TWO),
    "sums, 1 and 2": (lambda: sums(SHIFTED), SHIFTED),
    "posterior": (lambda: sums(TWO, receiver="bayes"), TWO),
    "answers, 0 and 1": (lambda: answered(TWO), TWO),
    "answers, 1 and 2": (lambda: answered(SHIFTED), SHIFTED),
    "answers, 0 and 2": (lambda: dp.randomized_response(AVERAGE, dp.Privacy(2, max_change=2), EVEN, lag=1), EVEN),
    "answers, Bayes": (lambda: answered(TWO, receiver="bayes"), TWO),
    "two": (lambda: of_two(dp.lmmse, COLOURED, COLOURED), COLOURED, COLOURED),
    "sums of two": (lambda: sums_of_two(COLOURED, COLOURED), COLOURED, COLOURED),
    "sums of two, unit 2": (lambda: sums_of_two(COLOURED, COLOURED, unit=2), COLOURED, COLOURED),
}
PYTHON = {
    "LMMSE, halves": (lambda: filtered(HALVES), HALVES),
    "LMMSE, signs": (lambda: filtered(SIGNS), SIGNS),
    "LMMSE, small changes": (lambda: filtered(COLOURED, SMALL), COLOURED),
    "LMMSE, levels without a unit": (lambda: filtered(ODD), ODD),
    "feedback, halves": (lambda: decided(HALVES), HALVES),
    "counts, unit 1": (lambda: counted(1),),
    "counts, unit 1/3": (lambda: counted(1 / 3),),
    "counts, unit 0.5": (lambda: counted(0.5),),
    "sums, unit 0.5": (lambda: sums(COLOURED, unit=0.5), COLOURED),
    "sums, halves": (lambda: sums(HALVES), HALVES),
    "sums, 0 and 2": (lambda: dp.block_sums(AVERAGE, dp.Privacy(2, max_change=2), EVEN, length=2), EVEN),
    "sums, -1 and 0": (lambda: sums(chain(-1, 0)), chain(-1, 0)),
    "sums, steps of a half": (lambda: sums(FINE), FINE),
    "sums, thirds": (lambda: sums(THIRDS), THIRDS),
    "posterior, halves": (lambda: sums(HALVES, receiver="bayes"), HALVES),
    "answers, halves": (lambda: answered(HALVES), HALVES),
    "sums of two, unit 0.5": (lambda: sums_of_two(COLOURED, COLOURED, unit=0.5), COLOURED, COLOURED),
    "sums of two, halves": (lambda: sums_of_two(HALVES, HALVES), HALVES, HALVES),
}


def answer_of(folder, design, *models):
    """Save a design, and return what is said of it with the inputs that it declares."""
    mechanism, file = design(), folder / "mechanism.json"
    dp.save(mechanism, file)
    streams = ("a", "b") if isinstance(mechanism.target, dp.FilterMatrix) else ()
    return DesignInShort("it", 1, 0.1, 0.2, True, False, file, streams, declare_inputs(mechanism, models))


@pytest.mark.filterwarnings("ignore::dpfast.ModelWarning", "ignore::dpfast.AccuracyWarning")
@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_is_printed_runs_and_publishes(case, tmp_path, capsys):
    """With names in the place of its capitals, and not dry."""
    (tmp_path / "log.csv").write_text(LOG)
    words = shlex.split(answer_of(tmp_path, *COMMANDS[case]).command.replace("\\\n", ""))
    assert (words[:2], words[-1]) == (["dpfast", "release"], "--dry-run")
    for i, word in enumerate(words):
        if word.isupper() or word == "EVENTS.csv":
            words[i] = PLACEHOLDERS[words[i - 1] if word.isupper() else word]
    with contextlib.chdir(tmp_path):
        assert main(words[1:]) == 0
        assert main(words[1:-1]) == 0
    assert len((tmp_path / "out" / "estimates.csv").read_text().splitlines()) > 20
    assert "Written:" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::dpfast.ModelWarning", "ignore::dpfast.AccuracyWarning")
@pytest.mark.parametrize("case", PYTHON)
def test_python_that_is_printed_runs_and_its_inputs_are_released(case, tmp_path):
    """With numbers in the place of its capitals."""
    answer = answer_of(tmp_path, *PYTHON[case])
    assert "dpfast release EVENTS" not in answer.text()
    code, python = (x.replace("LOW", "0").replace("HIGH", "3") for x in (answer.command, answer.inputs.python))
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(code, names)  # our own
        inputs = eval(python, names)
    assert "epsilon" in printed.getvalue() or "ε" in printed.getvalue()
    u = np.resize([float(inputs.low), float(inputs.high)], (max(1, len(answer.streams)), 24))
    assert 0 < dp.release(names["mechanism"], u, tmp_path / "store", inputs).guarantee.epsilon <= 2


def test_a_unit_that_is_no_decimal_is_written_as_a_fraction(tmp_path):
    answer = answer_of(tmp_path, lambda: counted(1 / 3))
    assert "It rounds real numbers to multiples of 1/3;" in answer.text()
    assert "0.333" not in answer.text()
    assert "unit=Fraction(1, 3)" in answer.command
    levels = answer_of(tmp_path, lambda: sums(THIRDS), THIRDS)
    assert "plus multiples of 1/3" in " ".join(levels.text().split())
    assert "dp.Inputs(0, Fraction(2, 3), unit=Fraction(1, 3), centre=0, missing=0)" in levels.command


def test_streams_in_different_units_are_said_not_to_be_released(tmp_path):
    answer = answer_of(tmp_path, lambda: sums_of_two(COLOURED, HALVES), COLOURED, HALVES)
    assert answer.command is None
    assert "in different units, in which no release can declare them together." in " ".join(answer.text().split())
