"""``dpfast release --person``: a file and events as they come, per person; counts of what is dropped are private."""

import functools
import json

import numpy as np
import pytest
from helpers import person_bounds_twin as twin
from helpers.commands import parse, refusal
from helpers.designs import designed
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.signals.events.declared_span import Span

HOUR = {"--time": "t", "--by": "g", "--groups": "a,b", "--high": "30", "--period": "1h", "--person": "who"}
DAY = {**HOUR, "--start": "2020-01-02", "--end": "2020-01-03"}
ROWS = [  # hour, minute, group, who: not in order
    (3, 20, "a", "ada"),
    (3, 10, "b", "ada"),
    (3, 40, "a", "ada"),
    (4, 0, "a", "bob"),
    (4, 0, "a", ""),
    (4, 1, "a", " "),
    (5, 0, "a", "bob"),
    (9, 0, "a", "bob"),
    (9, 30, "c", "bob"),
    (20, 0, "b", "ada"),
    (22, 0, "b", "ada"),
]


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """Designs are made once, and there is no noise: v is what is kept, times the only tap."""
    monkeypatch.setattr(release, "exact", functools.partial(designed, dp.exact))
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    dp.save(dp.input_perturbation(dp.Filter([1]), dp.Privacy(2, 1e-6)), path)
    return str(path)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    rows = "".join(f"2020-01-02T{h:02}:{m:02},{g},{who}\n" for h, m, g, who in ROWS)
    path.write_text(f"t,g,who\n{rows}2020-01-05T00:00,a,ada\n")
    return str(path)


def arguments(log, saved, out, *flags, **change):
    words = DAY | {f"--{name.replace('_', '-')}": value for name, value in change.items()}
    pairs = [word for pair in words.items() for word in pair]
    return ["release", str(log), "--mechanism", saved, "--out", str(out), *pairs, *flags]


def beside(out):
    return out.with_name(f"{out.name}-private")


def published(out):
    """What was kept, as (hour, group)."""
    result = dp.read_release(beside(out), published=out)
    tap = result.privatized.max() or 1
    return sorted((int(step), "ab"[stream]) for stream, step in np.argwhere(result.privatized // tap))


def test_the_kept_events_are_published_and_nothing_else(log, saved, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments(log, saved, out)) == 0
    printed, shown = capsys.readouterr()
    assert " ".join(printed.split()).startswith(
        "This guarantee is per person: it is about whether the events of one person were in the data or not. Of a "
        "person's events, at most one in one stream is kept, each of size at most 1; all others are left out before "
        "anything is computed. Anyone"
    )
    assert published(out) == [(3, "b"), (4, "a")]  # ada at 3:10 comes before 3:20
    assert "PRIVATE rows dropped, without the id of a person: 2\n" in shown
    assert "PRIVATE rows dropped, beyond the bounds of a person: 6\n" in shown
    assert "dropped" not in printed
    content = json.loads((out / "guarantee.json").read_text())
    fields = content["declaration"]["fields"]
    assert (fields["person_column"], fields["person_span_us"], fields["max_events"]) == ("who", None, 1)
    assert content["releases"][0]["guarantee"]["protects"] == "person"
    assert (tmp_path / "out-private.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("m", "b", "k", "span"), [(2, 1, 1, None), (3, 2, 2, None), (1, 1, 1, 5), (2, 3, 2, 12)])
def test_the_bounds_are_those_of_the_options(log, saved, tmp_path, m, b, k, span):
    out, change = tmp_path / "out", {"max_events": str(m), "min_separation": str(b), "streams_per_person": str(k)}
    if span is not None:
        change["person_span"] = f"{span}h"
    assert main(arguments(log, saved, out, **change)) == 0
    first = 24 * 18263
    lines = sorted((h, minute, i) for i, (h, minute, _, _) in enumerate(ROWS))
    named = [(first + h, "ab".index(ROWS[i][2]), ROWS[i][3].strip() or None) for h, _, i in lines if ROWS[i][2] in "ab"]
    expected = sorted((step - first, "ab"[stream]) for step, stream, _ in twin.bound(named, m, b, k, span))
    assert published(out) == expected
    guarantee = dp.read_release(beside(out), published=out).guarantee
    assert (guarantee.privacy.max_events, guarantee.privacy.min_separation) == (m, b)
    assert guarantee.epsilon <= 2


def test_a_dry_run_counts_as_a_new_store_would_and_makes_nothing(log, saved, tmp_path, capsys):
    assert main(arguments(log, saved, tmp_path / "out", "--dry-run")) == 0
    shown = capsys.readouterr().err
    assert "PRIVATE rows dropped, without the id of a person: 2\n" in shown
    assert "PRIVATE rows dropped, beyond the bounds of a person: 6\n" in shown
    assert [x.name for x in tmp_path.iterdir()] == ["log.csv"]


def test_a_later_run_knows_the_first_one_and_declares_the_same(log, saved, tmp_path, capsys):
    out, half = tmp_path / "out", {"end": "2020-01-02T05:00"}
    assert main(arguments(log, saved, out, "--name", "one", **half)) == 0
    assert main(arguments(log, saved, out, "--name", "two", start="2020-01-02T05:00")) == 0
    assert published(out) == []  # ada and bob have had theirs
    later = {"start": "2020-01-03", "end": "2020-01-04"}
    capsys.readouterr()
    for change, named in [
        ({"person": "g"}, 'person_column must be "who", got "g"'),
        ({"person_span": "1d"}, "person_span_us must be not declared, got 86400000000 (1d)"),
        ({"streams_per_person": "2"}, "streams_per_person must be 1, got 2"),
    ]:
        assert named in refusal(arguments(log, saved, out, "--quiet", "--name", "x", **later, **change), capsys)
    assert main(arguments(log, saved, out, "--quiet", "--name", "x", max_events="2", **later)) == 2
    assert "max_events must be 1, got 2" in capsys.readouterr().err
    words = arguments(log, saved, out, "--quiet", "--name", "x", **later)
    at = words.index("--person")
    assert "person_column must be" in refusal(words[:at] + words[at + 2 :], capsys)


def test_a_store_of_events_stays_one(log, saved, tmp_path, capsys):
    out, words = tmp_path / "out", arguments(log, saved, tmp_path / "out", "--quiet", "--name", "x")
    at = words.index("--person")
    assert main([*words[:at], *words[at + 2 :]]) == 0
    capsys.readouterr()
    line = refusal(arguments(log, saved, out, "--quiet", start="2020-01-03", end="2020-01-04"), capsys)
    assert 'person_column must be not declared, got "who"' in line


def test_the_key_may_lie_elsewhere_and_is_asked_for(log, saved, tmp_path, capsys):
    out, key = tmp_path / "out", tmp_path / "elsewhere.key"
    half = {"end": "2020-01-02T05:00"}
    assert main(arguments(log, saved, out, "--quiet", "--name", "one", person_key=str(key), **half)) == 0
    assert key.exists()
    capsys.readouterr()
    rest = {"start": "2020-01-02T05:00"}
    assert "is missing (person_key" in refusal(arguments(log, saved, out, "--quiet", "--name", "two", **rest), capsys)
    assert main(arguments(log, saved, out, "--quiet", "--name", "two", person_key=str(key), **rest)) == 0


@pytest.mark.parametrize("name", ["max_events", "min_separation", "person_span", "person_key"])
def test_options_about_persons_come_with_persons(log, saved, tmp_path, capsys, name):
    words = arguments(log, saved, tmp_path / "out", "--quiet", **{name: "1h" if name == "person_span" else "2"})
    at = words.index("--person")
    assert f"{name} must come with --person" in refusal(words[:at] + words[at + 2 :], capsys)


def test_a_span_of_persons_is_whole_bins(log, saved, tmp_path, capsys):
    line = refusal(arguments(log, saved, tmp_path / "out", person_span="90min"), capsys)
    assert "person_span must be a whole number of periods of 1h" in line
    assert "person_span must be a positive number" in refusal(
        arguments(log, saved, tmp_path / "out", person_span="1 month"), capsys
    )


def test_a_column_of_ids_that_is_not_there_is_refused(log, saved, tmp_path, capsys):
    assert "no column 'id'" in refusal(arguments(log, saved, tmp_path / "out", person="id"), capsys)


# --- counts are clipped ---------------------------------------------------------------------------


@pytest.mark.parametrize("persons", [True, False])
def test_a_row_counts_as_no_more_than_the_largest_change(tmp_path, persons):
    saved, log, out = tmp_path / "mechanism.json", tmp_path / "log.csv", tmp_path / "out"
    dp.save(dp.input_perturbation(dp.Filter([1]), dp.Privacy(2, 1e-6, max_change=3.5)), saved)
    log.write_text("t,g,who,n\n2020-01-02T01:00,a,ada,20\n2020-01-02T01:00,a,bob,2\n2020-01-02T02:00,a,eve,1\n")
    words = arguments(log, str(saved), out, "--quiet", count="n")
    if not persons:
        at = words.index("--person")
        words = words[:at] + words[at + 2 :]
    assert main(words) == 0
    v = dp.read_release(beside(out), published=out).privatized
    tap = int(v[0, 2])
    assert v[0, 1] == 5 * tap


# --- on the clock ---------------------------------------------------------------------------------

SPAN = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:01:20Z", "10s")


def at(seconds):
    return SPAN.start + int(seconds * 1e6)


def line(seconds, group, who):
    return f"{at(seconds) // 10**6},{group},{who}\n".encode()


@pytest.fixture
def live(saved, tmp_path):
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:20Z", "period": "10s"}
    words = {"time": "t", "by": "s", "groups": ("a", "b"), "high": 50, "person": "who", "follow": True}
    return parse("release", "-", mechanism=saved, out=tmp_path / "out", private_counts=True, **span, **words)


def follow(options, script):
    try:
        return release.run(options, source=script, clock=script)
    finally:
        script.end()


ARRIVALS = [
    (at(-1), b"t,s,who\n"),
    (at(3), line(3, "a", "ada")),
    (at(4), line(2, "b", "ada")),  # earlier, and came later: it is the first
    (at(5), line(2, "b", "ada")),
    (at(12), line(5, "b", "bob")),  # too late: it changes nothing
    (at(15), line(15, "a", "")),
    (at(25), line(25, "a", "bob")),
    (at(35), line(35, "b", "ada")),
    (at(45), line(45, "a", "eve")),
    (at(55), line(55, "a", "eve")),
]


def live_steps(out):
    with ReleaseStore.open(beside(out), out) as store:
        v, _ = store.read(1, 0, 8)
    return sorted((int(step), "ab"[stream]) for stream, step in np.argwhere(v))


def test_live_events_are_bounded_when_their_bin_closes(live, tmp_path, capsys):
    follow(live, Script(at(-5), ARRIVALS))
    assert live_steps(tmp_path / "out") == [(0, "b"), (2, "a"), (4, "a")]
    shown = capsys.readouterr().err.split("PRIVATE counts, ")[-1]
    assert "rows dropped, without the id of a person: 1\n" in shown
    assert "rows dropped, beyond the bounds of a person: 4\n" in shown
    assert "came after the end of their bin and the grace: 1\n" in shown


def test_a_process_that_was_interrupted_goes_on_with_its_persons(live, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(40)))
    follow(live, Script(at(40), [ARRIVALS[0], (at(41), line(41, "a", "bob")), *ARRIVALS[-2:]]))
    assert live_steps(tmp_path / "out") == [(0, "b"), (2, "a"), (4, "a")]


def test_live_spans_begin_anew(live, tmp_path):
    live.person_span = "40s"
    follow(live, Script(at(-5), [*ARRIVALS, (at(65), line(65, "b", "ada"))]))
    assert live_steps(tmp_path / "out") == [(0, "b"), (2, "a"), (4, "a"), (6, "b")]
    guarantee = json.loads((tmp_path / "out" / "guarantee.json").read_text())["releases"][0]["guarantee"]
    assert guarantee["persons"]["spans"] == 2
    assert guarantee["persons"]["span_steps"] == 4


def test_a_lost_key_is_refused_before_anything_is_published(live, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(40)))
    (tmp_path / "out-private.key").unlink()
    with pytest.raises(ReleaseError, match="is missing"):
        follow(live, Script(at(40), ARRIVALS[:1]))
    with ReleaseStore.open(beside(tmp_path / "out"), tmp_path / "out") as store:
        assert store.length(1) == 3
