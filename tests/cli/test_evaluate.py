import contextlib
import io

import pytest
from helpers.commands import blank_pictures, refusal
from helpers.designs import to_a_wide_tolerance

import dpfast as dp
from dpfast.cli.main import main
from dpfast.design.catalogue import filter_families

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


def test_names_that_look_like_formulas_are_names(evaluated):
    assert "$x_$ ^" in evaluated[1]


def test_saved_mechanisms_take_part_in_an_evaluation(evaluated):
    assert "saved 1: LZF (epsilon 2, delta 1e-05)" in evaluated[1]
    assert "saved 2: LZF (epsilon 2, delta 1e-05)" in evaluated[1]


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


def test_several_streams_are_told_where_they_are_tried(log, tmp_path, capsys):
    words = ["evaluate", log, *EVALUATE, "--by", "place", "--out", str(tmp_path / "out")]
    saved = tmp_path / "saved.json"
    dp.save(dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-5, adjacency="one_input")), saved)
    of_target = refusal([*words, "--target", "total:exponential:0.9"], capsys)
    assert "target must be of one stream, got 'total:exponential:0.9': each series of a log is evaluated" in of_target
    of_file = refusal([*words, "--mechanism", str(saved)], capsys)
    for said in of_target, of_file:
        assert "in Python, by dpfast.evaluate(mechanism, counts, seed=1)" in said
