import contextlib
import csv
import io

import numpy as np
import pytest
from helpers.commands import blank_pictures, refusal
from helpers.designs import to_a_wide_tolerance

import dpfast as dp
from dpfast._support.table_layout import display_width
from dpfast.cli.main import main
from dpfast.design.catalogue import filter_families
from dpfast.design.mimo.best_channels import CANDIDATES
from dpfast.signals.events.historical_counts import read_events
from dpfast.simulation import channels_evaluation

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


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["blank", "drawn"])
def evaluated(tmp_path_factory, request):
    """The folder that one evaluation has written, and what it has printed; a place looks like a formula.

    Pictures are blank, as they take longer than all else, and designs wide, or all is as it is for a user.
    """
    folder = tmp_path_factory.mktemp("evaluated")
    log, saved, out, printed = folder / "log.csv", folder / "saved.json", folder / "out", io.StringIO()
    text, target, simpler = LOG.replace(",a\n", ",$x_$ ^\n"), dp.Filter([1 / 3] * 3), []
    if not request.param:  # one place, and the designs of a target with a pole are short
        text = text.replace(",b\n", ",$x_$ ^\n")
        target, simpler = dp.Filter([1], [1, -0.5]), ["--target", "ba:1/1,-0.5", "--order", "1"]
    log.write_text(text)
    dp.save(dp.zero_forcing(target, dp.Privacy(2, 1e-5), tolerance=0.1), saved)
    blank = contextlib.nullcontext() if request.param else blank_pictures()
    with contextlib.redirect_stdout(printed), blank, pytest.MonkeyPatch.context() as patch:
        if not request.param:
            families = [x._replace(design=to_a_wide_tolerance(x.design)) for x in filter_families()]
            patch.setattr("dpfast.simulation.evaluation.filter_families", lambda: families)
        given = ["--by", "place", *["--mechanism", str(saved)] * 2, "--out", str(out)]
        assert main(["evaluate", str(log), *EVALUATE, *given, *simpler]) == 0
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
    assert max(map(display_width, printed.splitlines())) <= 100


def test_names_that_look_like_formulas_are_names(evaluated):
    assert "$x_$ ^" in evaluated[1]


def test_saved_mechanisms_take_part_in_an_evaluation(evaluated):
    rows = (evaluated[0] / "evaluation.csv").read_text()
    assert "saved 1: LZF (epsilon 2, delta 1e-05)" in rows
    assert "saved 2: LZF (epsilon 2, delta 1e-05)" in rows


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
        ({"--unit": "0"}, "unit must be"),
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
    error = refusal(["evaluate", log, *[x for pair in arguments.items() for x in pair], "--out", str(out)], capsys)
    assert message in error
    assert not out.exists()


def test_an_unreadable_file_is_one_line(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "missing.csv"):
        assert str(path) in refusal(["evaluate", str(path), *EVALUATE, "--out", str(tmp_path / "out")], capsys)


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(log, capsys):
    assert "cannot write" in refusal(["evaluate", log, *EVALUATE, "--out", log], capsys)


TOGETHER = [
    *("evaluate", "LOG", *EVALUATE, "--by", "place", "--target", "total:moving-average:3"),
    "--adjacency",
    "one-input",
]


@pytest.fixture
def few(monkeypatch):
    """Two of the mechanisms of several streams, and no pictures."""
    kept = [x for x in CANDIDATES if x.label in ("LZF", "input perturbation")]
    monkeypatch.setattr(channels_evaluation, "CANDIDATES", kept)
    with blank_pictures():
        yield


def rows_of(out):
    return list(csv.DictReader((out / "evaluation.csv").read_text().split("\n")[2:-1]))


def evaluate_together(log, out, *words):
    """Run the command; words override those that stand before."""
    return ["evaluate", log, *TOGETHER[2:], "--out", str(out), *words]


def test_series_are_the_inputs_of_a_target_of_several_streams(log, few, tmp_path, capsys):
    out = tmp_path / "out"
    saved = tmp_path / "saved.json"
    target = dp.differences(2) * dp.Filter([1 / 3] * 3)
    dp.save(dp.zero_forcing(target, dp.Privacy(1, 1e-5, adjacency="each_input")), saved)
    words = ["--target", "differences:moving-average:3", "--groups", "b,a", "--mechanism", str(saved)]
    assert main(evaluate_together(log, out, *words)) == 0
    printed = capsys.readouterr().out
    assert "NOT A RELEASE" in printed.split("\n")[0]
    assert "-b + a: as a stream" in printed
    assert "fitted to each series, or to all together (correlated)" in printed
    rows = rows_of(out)
    assert {x["output"] for x in rows} == {"'-b + a"}  # as a spreadsheet would compute it
    assert [x["mechanism"] for x in rows] == [
        "LZF",
        "input perturbation",
        "saved: LZF (epsilon 1, delta 1e-05, each_input)",
        "constant",
    ]
    outputs = list(csv.DictReader((out / "outputs.csv").read_text().split("\n")[2:-1]))
    counts = read_events(log, time="when", by="place", period="5min").counts
    expected = np.convolve(counts[0] - counts[1], np.full(3, 1 / 3))[: counts.shape[1]]
    np.testing.assert_allclose([float(x["true output"]) for x in outputs], expected, atol=1e-5)
    page = (out / "report.html").read_text()
    for said in "one input", "b, a", "a vector autoregression fitted to all;":
        assert said in page


def test_rows_of_filters_come_from_a_file(log, few, tmp_path):
    file = tmp_path / "matrix.toml"
    file.write_text('target = [["moving-average:3", "moving-average:3"], [1, 0]]\n')
    assert main(evaluate_together(log, tmp_path / "out", "--target", str(file))) == 0
    assert list(dict.fromkeys(x["output"] for x in rows_of(tmp_path / "out"))) == ["all outputs together", "a + b", "a"]


@pytest.mark.parametrize(
    ("adjacency", "changes", "expected"),
    [("one-input", "1", 2**0.5), ("each-input", "1", 2), ("each-input", "1,3", 4), ("one-input", "1,3", 10**0.5)],
)
def test_noise_hides_what_a_person_may_change(log, few, tmp_path, adjacency, changes, expected):
    """Of noise on inputs κ² ‖F‖² Σ k_i² for somebody in one series, and κ² ‖F‖² (Σ k_i)² for one who is in each."""
    words = ["--adjacency", adjacency, "--max-change", changes]
    assert main(evaluate_together(log, tmp_path / "out", *words)) == 0
    row = next(x for x in rows_of(tmp_path / "out") if x["mechanism"] == "input perturbation")
    unit = dp.Privacy(1, 1e-5).noise_multiplier / 3**0.5
    assert float(row["predicted"]) == pytest.approx(unit * expected, rel=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "moving-average:3"], "adjacency must come with a target of several streams"),
        (["--groups", "a,c"], "groups must be of the log, which has a, b, got c"),
        (["--groups", "a,a"], "groups must be different names, got a, a"),
        (["--target", "moving-average:3", "--groups", "a,b"], "say each:moving-average:3"),
        (["--max-change", "1,2,3"], "max_change must have a value for each of the 2 inputs"),
        (["--target", "missing.toml"], "cannot read missing.toml"),
        (["--target", "total:nonsense"], "target"),
    ],
)
def test_what_does_not_fit_several_streams_is_refused(log, tmp_path, capsys, words, said):
    assert said in refusal(evaluate_together(log, tmp_path / "out", *words), capsys)
    assert not (tmp_path / "out").exists()


def test_mechanisms_and_targets_of_one_stream_and_of_several_are_told_apart(log, tmp_path, capsys):
    several, one, empty = tmp_path / "several.json", tmp_path / "one.json", tmp_path / "empty.toml"
    dp.save(dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-5, adjacency="one_input")), several)
    dp.save(dp.input_perturbation(dp.Filter([1 / 3] * 3), dp.Privacy(1, 1e-5)), one)
    empty.write_text("")
    alone = ["evaluate", log, *EVALUATE, "--by", "place", "--out", str(tmp_path / "out")]
    assert "each series of a log is evaluated alone" in refusal([*alone, "--mechanism", str(several)], capsys)
    assert "must be given for several streams" in refusal([*alone, "--target", "total"], capsys)
    assert "max_change must be one number for a target of one stream" in refusal(
        [*alone, "--max-change", "1,2"], capsys
    )
    words = evaluate_together(log, tmp_path / "out")
    assert "must be of several streams, as the target is" in refusal([*words, "--mechanism", str(one)], capsys)
    assert "must have the word target" in refusal([*words, "--target", str(empty)], capsys)
