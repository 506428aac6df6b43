"""What a store declares: entered with its first steps, the same ever after, and named where a run differs."""

import contextlib
import functools
import json
import multiprocessing
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import fakes
from helpers.designs import designed
from helpers.patience import PATIENCE

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release, release_input
from dpfast.cli.main import main
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.release_rows import Records
from dpfast.releases.store.release_store import ReleaseStore


def hour(h, m):
    return f"2020-01-{1 + h // 24:02}T{h % 24:02}:{m:02}"


LOG = "scheduled,actual,place,many\n" + "".join(
    f"{hour(h, m)},{hour(h + 1, m)},{'ab'[m % 2]},2\n" for h in range(60) for m in (5, 20, 45)
)
FIRST = {
    "time": "scheduled",
    "start": "2020-01-01",
    "end": "2020-01-02",
    "period": "1h",
    "by": "place",
    "groups": "a,b",
    "high": "30",
    "centre": "5",
}
SECOND = FIRST | {"start": "2020-01-02", "end": "2020-01-03"}


@pytest.fixture(scope="module")
def mechanisms(tmp_path_factory):
    """Of one event of a person, and of others."""
    folder = tmp_path_factory.mktemp("mechanisms")
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    people = {"one": {}, "m": {"max_events": 2}, "b": {"min_separation": 2}, "d": {"max_change": 2}}
    for name, who in people.items():
        privacy = dp.Privacy(20, 1e-6, **who)  # nobody looks for advice on a good design
        dp.save(dp.lmmse(dp.Filter([0.5, 0.5]), privacy, model, lag=1, prefilter=dp.Filter([1])), folder / name)
    return {name: str(folder / name) for name in people}


@pytest.fixture(autouse=True)
def _equal_mechanisms_once(monkeypatch):
    """The search for integer taps takes longer than all else of a command."""
    monkeypatch.setattr(release, "exact", functools.partial(designed, dp.exact))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return str(path)


def arguments(log, mechanism, out, words, *flags):
    pairs = [word for name, value in words.items() for word in (f"--{name.replace('_', '-')}", value)]
    return ["release", log, "--mechanism", mechanism, "--out", str(out), *pairs, *flags]


def beside(out):
    return out.with_name(f"{out.name}-private")


def everything(*folders):
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def published(log, mechanism, out, words, *flags):
    """Publishes, and makes room for the next file."""
    assert main(arguments(log, mechanism, out, words, *flags)) == 0
    (out / "estimates.csv").unlink()


def test_a_field_that_is_not_there_is_one_that_is_not_declared():
    """So later versions may know further ones, and those before are refused where one is declared."""
    known = Declaration({"time_column": "t", "person_column": "who"})
    assert known.differences({"time_column": "t"}, whole=True) == ['person_column must be "who", got not declared']
    assert known.differences({"time_column": "t"}, whole=False) == []
    later = {"time_column": "t", "person_column": "who", "column_of_places": None, "priors": []}
    assert known.differences(later, whole=True) == ["priors must be not declared, got []"]
    half = Declaration({"time_column": "t"}, unknown=("person_column",), unchecked=("zone",))
    whole = half.complete_with({"time_column": "t", "person_column": "who"})
    assert (dict(whole.fields), whole.unknown) == (dict(known.fields), ())
    assert whole.unchecked == ("zone", "person_column")
    assert Declaration.from_json(half.to_json()) == half


def test_a_store_holds_what_its_first_run_declares(log, mechanisms, tmp_path):
    out = tmp_path / "out"
    published(log, mechanisms["one"], out, FIRST)
    assert not (out / "declared.json").exists()
    with ReleaseStore.open(beside(out), out) as store:
        declaration = store.declaration
    assert dict(declaration.fields) == {
        "time_column": "scheduled",
        "time_format": None,
        "zone": "local",
        "period_us": 3_600_000_000,
        "origin": "1970-01-01T00:00:00.000000",
        "count_column": None,
        "group_column": "place",
        "groups": ["a", "b"],
        "last_step": None,
        "grace_us": None,
        "low": "0",
        "high": "30",
        "unit": "1",
        "centre": "5",
        "n_streams": 2,
        "streams_per_person": 1,
        "multiples": True,
        "missing": None,
        "max_change": 1.0,
        "max_events": 1,
        "min_separation": 1,
    }
    assert declaration.unknown == declaration.unchecked == ()
    published(log, mechanisms["one"], out, SECOND)


CHANGES = {
    "times": ({"time": "actual"}, 'time_column must be "scheduled", got "actual"'),
    "format": ({"time_format": "%Y-%m-%dT%H:%M"}, 'time_format must be not declared, got "%Y-%m-%dT%H:%M"'),
    "zone": ({"start": "2020-01-02T00:00Z", "end": "2020-01-03T00:00Z"}, 'zone must be "local", got "UTC"'),
    "period": ({"period": "2h"}, "period_us must be 3600000000 (1h), got 7200000000 (2h)"),
    "counts": ({"count": "many"}, 'count_column must be not declared, got "many"'),
    "column of groups": ({"by": "many", "groups": "2,3"}, 'group_column must be "place", got "many"'),
    "groups": ({"groups": "b,a"}, 'groups must be ["a", "b"], got ["b", "a"]'),
    "more groups": ({"groups": "a,b,c"}, "n_streams must be 2, got 3"),
    "streams per person": ({"streams_per_person": "2"}, "streams_per_person must be 1, got 2"),
    "low": ({"low": "1"}, 'low must be "0", got "1"'),
    "high": ({"high": "31"}, 'high must be "30", got "31"'),
    "unit": ({"unit": "1/2"}, 'unit must be "1", got "1/2"'),
    "centre": ({"centre": "3"}, 'centre must be "5", got "3"'),
    "m": ("m", "max_events must be 1, got 2"),
    "b": ("b", "min_separation must be 1, got 2"),
    "d": ("d", "max_change must be 1.0, got 2.0"),
}


@pytest.fixture(scope="module")
def declared(mechanisms, tmp_path_factory):
    """A folder in which the first command has published, and a log for further ones."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "log.csv").write_text(LOG)
    published(str(folder / "log.csv"), mechanisms["one"], folder / "out", FIRST)
    return folder / "out"


def utc(log):
    """The same log, of times with an offset."""
    lines = LOG.replace(",2020", "Z,2020").replace(",a,", "Z,a,").replace(",b,", "Z,b,")
    Path(log).write_text(lines)


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_another_declaration_is_refused_by_its_fields(log, mechanisms, declared, capsys, change, message):
    out = declared
    before = everything(out, beside(out))
    capsys.readouterr()
    words, mechanism = (SECOND, change) if isinstance(change, str) else (SECOND | change, "one")
    if "Z" in words["start"]:
        utc(log)
    assert main(arguments(log, mechanisms[mechanism], out, words)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "--new-store" in error
    assert everything(out, beside(out)) == before
    # also where it is said that steps may be published again, or a copy be adopted
    assert main(arguments(log, mechanisms[mechanism], out, words, "--compose", "--adopt")) == 2
    assert everything(out) == {path: content for path, content in before.items() if path.parent == out}
    with ReleaseStore.open(beside(out), out) as store:
        assert [entry.first for entry in store.releases()] == [438288]
        assert store.declaration.unchecked == ()


def test_what_is_refused_declares_nothing(log, mechanisms, tmp_path):
    """The first run is refused behind the opening of its store; whoever publishes first declares."""
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release.Batch, "enter", lambda *_: (_ for _ in ()).throw(ReleaseError("not yet")))
        assert main(arguments(log, mechanisms["one"], out, FIRST | {"period": "2h"})) == 2
    with ReleaseStore.open(beside(out), out) as store:
        assert store.declaration is None
    published(log, mechanisms["one"], out, FIRST)


@pytest.mark.parametrize("name", ["begin", "push", "progress", "declare"])
def test_a_first_release_that_fails_declares_nothing(log, mechanisms, tmp_path, monkeypatch, name):
    """Before or behind what it writes: there is a release with a declaration, or neither."""
    original = getattr(Records, name)

    def failing(*args, **options):
        original(*args, **options)
        raise OSError("no space left")

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Records, name, failing)
        assert main(arguments(log, mechanisms["one"], out, FIRST | {"period": "2h"})) == 2
    with ReleaseStore.open(beside(out), out) as store:
        assert store.declaration is None
        assert store.releases() == []
    published(log, mechanisms["one"], out, FIRST)


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_in_python_bounds_are_held_to_what_is_declared(log, mechanisms, tmp_path):
    out, u = tmp_path / "out", np.ones((2, 5), int)
    published(log, mechanisms["one"], out, FIRST)
    one, other = (dp.Inputs(0, high, centre=5, n_streams=2) for high in (30, 40))
    with pytest.raises(ReleaseError, match='high must be "30", got "40"'):
        dp.release(dp.load(mechanisms["one"]), u, beside(out), other, published=out)
    with pytest.raises(ReleaseError, match="max_events must be 1, got 2"):
        dp.release(dp.load(mechanisms["m"]), u, beside(out), one, published=out)
    assert dp.release(dp.load(mechanisms["one"]), u, beside(out), one, published=out).first == 0


# --- first runs at once ---------------------------------------------------------------------------


def first_run(folder, period, barrier, results):
    """In a process of its own: a first run, which has read its events when the others have."""
    count_events = release_input.count_events

    def met(*args, **options):
        counts = count_events(*args, **options)
        with contextlib.suppress(Exception):
            barrier.wait(PATIENCE)
        return counts

    release_input.count_events = met
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        words = FIRST | {"period": period}
        results.put((period, main(arguments(str(folder / "log.csv"), str(folder / period), folder / "out", words))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
def test_first_runs_at_once_leave_the_declaration_of_the_one_that_published(log, mechanisms, tmp_path):
    periods, context = ["1h", "2h", "1h", "1h"], multiprocessing.get_context("fork")
    for period in {*periods}:
        (tmp_path / period).write_bytes(Path(mechanisms["one"]).read_bytes())
    barrier, results = context.Barrier(4), context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        runs = [context.Process(target=first_run, args=(tmp_path, x, barrier, results)) for x in periods]
        for run in runs:
            run.start()
    ends = [results.get() for _ in runs]
    for run in runs:
        run.join()
    out, (won,) = tmp_path / "out", {period for period, end in ends if end == 0}
    with ReleaseStore.open(beside(out), out) as store:
        (entry,) = store.releases()
        assert store.declaration.fields["period_us"] == {"1h": 1, "2h": 2}[won] * 3_600_000_000
        assert entry.count == {"1h": 24, "2h": 12}[won]
    (out / "estimates.csv").unlink()
    for period in ("1h", "2h"):
        assert main(arguments(log, mechanisms["one"], out, SECOND | {"period": period})) == (0 if period == won else 2)


def test_no_file_of_a_fixed_temporary_name_is_left_or_used(log, mechanisms, tmp_path, monkeypatch):
    out, made = tmp_path / "out", []
    opened = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *args, **options: made.append(path) or opened(path, *args, **options)
    )
    published(log, mechanisms["one"], out, FIRST)
    assert not [path for path in made if "declar" in path.name]
    there = ["guarantee.json", "guarantee.txt", "model-check.json", "report.html", "witness.json"]
    assert sorted(path.name for path in out.iterdir()) == there


# --- another store --------------------------------------------------------------------------------


def test_new_store_begins_another_one_and_finds_it_again(log, mechanisms, tmp_path, capsys):
    out, second, third = (tmp_path / name for name in ("out", "out-2", "out-3"))
    published(log, mechanisms["one"], out, FIRST, "--new-store")  # there was none
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out", "out-private"]
    before = everything(out, beside(out))
    other = SECOND | {"time": "actual"}
    capsys.readouterr()
    assert main(arguments(log, mechanisms["one"], out, other, "--new-store")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    files = ", ".join(str(second / name) for name in ("estimates.csv", "report.html", "model-check.json"))
    assert f"Written: {files} Private store: {beside(second)}" in printed
    assert f"This is another store than that of {out}: what both publish of the same events adds up." in printed
    assert everything(out, beside(out)) == before
    # the same command does not publish again, and further steps go to the same place
    once = everything(second, beside(second))
    assert main(arguments(log, mechanisms["one"], out, other, "--new-store")) == 0
    assert "nothing more was published" in capsys.readouterr().out
    assert everything(second, beside(second)) == once
    (second / "estimates.csv").unlink()
    assert main(arguments(log, mechanisms["one"], out, FIRST | {"time": "actual"}, "--new-store")) == 0
    third.mkdir()  # somebody's, who has nothing to do with it
    assert main(arguments(log, mechanisms["one"], out, SECOND | {"low": "1"}, "--new-store")) == 0
    assert (tmp_path / "out-4" / "estimates.csv").exists()
    assert list(third.iterdir()) == []


def test_a_new_store_that_was_interrupted_before_its_steps_is_used(log, mechanisms, tmp_path):
    out, second = tmp_path / "out", tmp_path / "out-2"
    published(log, mechanisms["one"], out, FIRST)
    ReleaseStore.open(beside(second), second).close()
    assert main(arguments(log, mechanisms["one"], out, SECOND | {"time": "actual"}, "--new-store")) == 0
    assert (second / "estimates.csv").exists()
    assert not (tmp_path / "out-3").exists()


def test_a_new_store_of_a_store_elsewhere(log, mechanisms, tmp_path):
    out, store = tmp_path / "out", tmp_path / "private" / "store"
    words = {"store": str(store)}
    published(log, mechanisms["one"], out, FIRST | words)
    assert main(arguments(log, mechanisms["m"], out, FIRST | words, "--new-store")) == 0
    assert (tmp_path / "out-2" / "witness.json").exists()
    assert (tmp_path / "private" / "store-2" / "store.sqlite").exists()


def test_new_folders_begin_another_one_too(log, mechanisms, tmp_path):
    published(log, mechanisms["one"], tmp_path / "out", FIRST)
    published(log, mechanisms["m"], tmp_path / "other", FIRST)
    assert [(tmp_path / name / "witness.json").exists() for name in ("out", "other")] == [True, True]


# --- guarantees -----------------------------------------------------------------------------------


def test_the_declaration_is_published_with_the_guarantee(log, mechanisms, tmp_path):
    published(log, mechanisms["one"], tmp_path / "out", FIRST)
    content = json.loads((tmp_path / "out" / "guarantee.json").read_text(encoding="utf-8"))
    assert content["declaration"]["fields"]["time_column"] == "scheduled"
    assert "Not checked" not in (tmp_path / "out" / "guarantee.txt").read_text(encoding="utf-8")


def test_in_python_nothing_is_declared(tmp_path):
    with fakes.stream_in(tmp_path / "store") as stream:
        stream.push(fakes.signal(0, 3))
        assert stream._store.declaration is None
    assert "declaration" not in (fakes.beside(tmp_path / "store") / "guarantee.json").read_text(encoding="utf-8")
