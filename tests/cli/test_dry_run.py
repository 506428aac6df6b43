"""``dpfast release --dry-run`` shows what is public first, and it is what the release then says."""

import functools
import json
import math
import re

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.cli import release
from dpfast.cli.main import main

LOG = "t,g,who\n2024-03-05T10:00,a,ada\n2024-03-22T10:00,b,bob\n"
THREE_WEEKS = {"start": "2024-03-04", "end": "2024-03-25", "period": "1h"}  # Mondays


@pytest.fixture(autouse=True)
def designs(monkeypatch):
    """Designs are made once."""
    monkeypatch.setattr(release, "exact", functools.partial(designed, dp.exact))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    model = dp.ARMA([1], [1, -0.9], mean=8)
    dp.save(dp.lmmse(dp.Filter(np.ones(4) / 4), dp.Privacy(1, 1e-6), model, lag=2, tolerance=0.2), path)
    return str(path)


@pytest.fixture
def command(saved, tmp_path):
    """Return the words of a release with these options."""
    (tmp_path / "log.csv").write_text(LOG)

    def words(*flags, **change):
        options = {"time": "t", "by": "g", "groups": "a,b", "high": "60", "centre": "8", "person": "who"} | THREE_WEEKS
        options |= {"mechanism": saved, "out": str(tmp_path / "out")} | change
        pairs = [x for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
        return ["release", str(tmp_path / "log.csv"), *pairs, *flags]

    return words


def facts(printed):
    """{name: value} of the lines of a dry run."""
    lines = [x for x in re.sub(r"\n {4,}", " ", printed).splitlines() if x.startswith("  ")]
    return {x[2:22].rstrip(): x[23:] for x in lines}


def dry(command, capsys, **options):
    assert main(command("--dry-run", "--quiet", **options)) == 0
    return facts(capsys.readouterr().out)


def test_it_promises_what_the_release_then_states(command, tmp_path, capsys):
    options = {"max_events": "4", "min_separation": "4", "streams_per_person": "2", "person_span": "1w"}
    assert main(command("--dry-run", **options)) == 0
    printed, shown = capsys.readouterr()
    found = facts(printed)
    assert main(command("--quiet", **options)) == 0
    stated = (tmp_path / "out" / "guarantee.txt").read_text()
    content = json.loads((tmp_path / "out" / "guarantee.json").read_text())["releases"][0]["guarantee"]
    assert content["sentence"] in printed.replace("\n", " ")
    stated = re.sub(r"\n {4,}", " ", stated)
    for name in ("protected", "in odds", "events", "streams per person", "(ε, δ)", "zCDP", "spans", "groups"):
        assert f"{name:<20} {found[name]}\n" in stated
    together = content["persons"]["all_spans"]["epsilon"]
    assert content["persons"]["spans"] == 4
    assert f"in all 4 spans of this release together ε = {math.ceil(1000 * together) / 1000:.4g} " in found["spans"]
    assert printed.index("error ") < printed.index("A dry run")
    assert "PRIVATE rows: 2\n" in shown


def test_its_error_is_that_of_the_release(command, saved, tmp_path, capsys):
    found = dry(command, capsys)
    assert main(command("--quiet")) == 0
    result = dp.read_release(tmp_path / "out-private", published=tmp_path / "out")
    designed = dp.load(saved)
    of_mean = dp.constant(designed.target, designed.model).predicted_mse
    share = math.floor(1000 * result.explained_if_model_holds) / 10
    assert found["error"] == (
        f"RMSE {result.predicted_rmse_if_model_holds:.4g}; explains {share:.1f}\u00a0% of the variance of the true "
        f"output, and publishing the mean alone errs by {math.sqrt(of_mean):.4g}, if the model holds"
    )
    assert found["steps"] == "504 of 1h in 2 groups"
    assert "cut" not in found


def test_it_says_why_the_design_predicted_less(command, saved, capsys):
    """A design knows one stream; a person in two of them takes √2 of the noise, and so the error is larger."""
    one, two = (dry(command, capsys, streams_per_person=n)["error"] for n in "12")
    assert "the design predicted" not in one
    designed = dp.load(saved).predicted_rmse
    assert (
        f"; the design predicted {designed:.4g}, for persons in one stream: here the noise is for persons in 2" in two
    )
    assert float(one.split()[1].rstrip(";")) == pytest.approx(designed, rel=1e-2)
    assert float(two.split()[1].rstrip(";")) > 1.05 * designed


def test_it_asks_the_ledger_and_enters_nothing(command, tmp_path, capsys):
    path = tmp_path / "books" / "ledger.sqlite"
    ledger = dp.Ledger.create(path, "cards", cap_epsilon=2.5, cap_delta=1e-5)
    before = path.read_bytes(), path.stat()
    one = dry(command, capsys, ledger=str(path))["ledger"]
    assert one == (
        "the sum of epsilon may be 2.5, is 0 and would be 1; the sum of delta may be 1e-05, is 0 and would be 1e-06: "
        "within the cap"
    )
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    assert main(command("--quiet", ledger=str(path))) == 0
    spent = [float(x.entry.epsilon) for x in ledger.lines]
    assert spent == [pytest.approx(1, rel=1e-6)]
    capsys.readouterr()
    assert dry(command, capsys, ledger=str(path))["ledger"].startswith("it has this release already")
    later = {"start": "2024-03-25", "end": "2024-04-01", "name": "later"}
    assert dry(command, capsys, ledger=str(path), **later)["ledger"].endswith("would be 2e-06: within the cap")
    four = {"start": "2024-03-25", "end": "2024-04-15", "person_span": "1w"}
    refused = dry(command, capsys, ledger=str(path), out=str(tmp_path / "other"), **four)["ledger"]
    assert refused.endswith(": refused, beyond the cap")
    assert main(command("--quiet", ledger=str(path), out=str(tmp_path / "other"), **four)) == 2
    line = capsys.readouterr().err
    assert "beyond the cap of the ledger" in line
    would = float(refused.split("would be ")[1].split(";")[0])
    assert f"would be {would:.6g}"[:13] in line
    assert len(ledger.lines) == 1


def test_a_ledger_without_a_cap_adds_up(command, tmp_path, capsys):
    path = tmp_path / "books" / "ledger.sqlite"
    dp.Ledger.create(path, "cards")
    said = dry(command, capsys, ledger=str(path))["ledger"]
    assert said == ("the sum of epsilon is 0 and would be 1; the sum of delta is 0 and would be 1e-06; it has no cap")


# --- spans of persons, and bounds that differ -----------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"person_span": "3w"}, "the bins are in 2 spans of persons, cut at 2024-03-21: spans of 3w are counted from"),
        ({"person_span": "3w", "start": "2024-02-29", "end": "2024-03-21"}, "all bins are in one span of persons: "),
        ({"person_span": "12h"}, "cut at 2024-03-04T12:00, 2024-03-05, 2024-03-05T12:00, 2024-03-06, 2024-03-06T12:00"),
        ({"person_span": "12h"}, " and 36 more times: spans of 12h"),
    ],
)
def test_spans_are_told_before_anything_is_published(command, tmp_path, capsys, options, said):
    assert said in dry(command, capsys, **options)["cut"]
    assert main(command(**options)) == 0
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.index(said) < shown.index("PRIVATE")
    spans = json.loads((tmp_path / "out" / "guarantee.json").read_text())["releases"][0]["guarantee"]["persons"]
    expected = {"3w": 2, "12h": 42}[options["person_span"]]
    assert spans["spans"] == (1 if "start" in options else expected)


def test_without_a_span_of_persons_nothing_is_told(command, capsys):
    assert main(command()) == 0
    assert "span of persons" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_events": "20"}, "design it by dpfast design --max-events 20 --min-separation 1\n"),
        ({"max_events": "4", "min_separation": "6"}, "4 events at least 6 bins apart: the guarantee holds"),
    ],
)
def test_bounds_that_are_not_those_of_the_design_are_warned_of(command, capsys, options, said):
    assert main(command("--dry-run", "--quiet", **options)) == 0
    shown = capsys.readouterr().err
    assert "dpfast: warning: the mechanism was designed for one event of one person, and gets the noise for" in shown
    assert said in shown


def test_bounds_of_the_design_are_not_warned_of(command, capsys):
    """Of one event it does not matter how far it is from another."""
    for options in ({}, {"max_events": "1"}, {"min_separation": "9"}):
        assert main(command("--dry-run", "--quiet", **options)) == 0
        assert "was designed for" not in capsys.readouterr().err
