"""Stores that an earlier version made: what they declared is taken over, and what nobody knows is asked for."""

import gc
import itertools
import json
import multiprocessing
import os
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from helpers import commands, fakes, faults
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases.store import release_rows, release_schema
from dpfast.releases.store.release_store import ReleaseStore

# Made by the version that wrote stores of format 1: two files (of hours, by the column t; of m = 1 and then m = 2), a
# stream on the clock (interrupted at its fourth bin), and a batch in Python.
MADE = json.loads((Path(__file__).parents[2] / "data" / "stores_of_format_1.json").read_text(encoding="utf-8"))
HOURS = ("--period", "1h", "--by", "place", "--groups", "a,b", "--high", "30", "--centre", "2")
NEXT = ("--start", "2020-01-01T03:00", "--end", "2020-01-01T06:00")
BOUNDS = {
    "low": "0",
    "high": "30",
    "unit": "1",
    "centre": "2",
    "n_streams": 2,
    "streams_per_person": 1,
    "multiples": True,
    "missing": None,
    "max_change": 1.0,
    "max_events": 1,
    "min_separation": 1,
}
UNKNOWN = ("time_column", "time_format", "count_column", "group_column")


@pytest.fixture
def make(tmp_path):
    """Puts one of these stores into its place: the published folder."""

    def make(name, folder=tmp_path):
        made, out, private = MADE["stores"][name], folder / name, folder / f"{name}-private"
        private.mkdir(mode=0o700, parents=True)
        out.mkdir()
        file = private / "store.sqlite"
        file.touch(mode=0o600)
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript("\n".join(made["sql"]))
            with connection:
                connection.execute("UPDATE meta SET inode = ?, path = ?", (str(file.stat().st_ino), str(file)))
        for file, text in made["published"].items():
            (out / file).write_text(text, encoding="utf-8")
        (folder / "log.csv").write_text(MADE["log"])
        (folder / "mechanism.json").write_text(json.dumps(MADE["mechanism"]))
        return out

    return make


def beside(out):
    return out.with_name(f"{out.name}-private")


def opened(out):
    return ReleaseStore.open(beside(out), out)


def run(out, *words, time="t", log="log.csv"):
    where = [str(out.parent / name) for name in (log, "mechanism.json")]
    return main(["release", where[0], "--mechanism", where[1], "--out", str(out), "--time", time, *HOURS, *words])


def rows(out):
    """All rows of all tables, and the format."""
    with closing(sqlite3.connect(beside(out) / "store.sqlite")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def everything(out):
    return {path: path.read_bytes() for folder in (out, beside(out)) for path in folder.rglob("*") if path.is_file()}


def test_the_file_and_the_configurations_make_the_declaration(make):
    out = make("file")
    before = rows(out)
    with opened(out) as store:
        declaration = store.declaration
        v, _ = store.read(1, 438288, 3)
        assert v.shape == (2, 3)
    timeline = {"zone": "local", "period_us": 3_600_000_000, "origin": "1970-01-01T00:00:00.000000"}
    assert dict(declaration.fields) == timeline | {"last_step": None, "grace_us": None} | BOUNDS
    assert set(declaration.unknown) == {*UNKNOWN, "groups"}
    after = rows(out)
    ((_, content, _),) = after.pop("declaration")
    assert json.loads(content)["fields"] == dict(declaration.fields)
    assert after.pop("meta")[0][0] == 4
    assert after["persons"] == after["kept"] == []  # it protects events
    assert after["releases"] == before["releases"]
    for old, new in zip(before["pushes"], after["pushes"], strict=True):
        assert fakes.unpacked(new[4]) == np.frombuffer(old[4], "<i8").tolist()
        assert (*new[:4], *new[5:7]) == (*old[:4], *old[5:7])
    assert [row[:4] for row in after["progress"]] == [row[:4] for row in before["progress"]]
    (out / "declared.json").write_text("{}")  # it is not looked at again
    with opened(out) as store:
        assert store.declaration == declaration


def test_a_stream_is_taken_over_with_its_groups(make):
    with opened(make("clock")) as store:
        declaration = store.declaration
    fields = {"zone": "UTC", "period_us": 10_000_000, "origin": "2020-01-01T00:00:00.000000", "groups": ["a", "b"]}
    assert dict(declaration.fields) == fields | BOUNDS | {"centre": "0"}
    assert set(declaration.unknown) == {*UNKNOWN, "last_step", "grace_us"}


def test_what_neither_holds_is_the_operators_word_and_named(make, capsys):
    out = make("file")
    before = everything(out)
    assert run(out, *NEXT) == 2
    error = capsys.readouterr().err
    assert "do not say what they meant by time_column, time_format, count_column, group_column, groups" in error
    assert "--adopt" in error
    kept = everything(out)
    assert {path for path in before if before[path] != kept[path]} <= {
        beside(out) / "store.sqlite",  # it was opened: the format is the new one
        out / "guarantee.txt",
    }
    assert "Not checked: time_column, " in (out / "guarantee.txt").read_text(encoding="utf-8")
    with opened(out) as store:
        assert [entry.count for entry in store.releases()] == [3]
    read = dp.read_release(beside(out), published=out)  # its groups are not known, its bins are
    assert (read.estimate.shape, read.groups, str(read.times[0])[:19]) == ((2, 3), None, "2020-01-01T00:00:00")
    assert run(out, *NEXT, "--adopt") == 0
    printed = capsys.readouterr().out
    assert (
        "not checked time_column, time_format, count_column, group_column, groups: earlier releases did not"
        in " ".join(printed.split())
    )
    with opened(out) as store:
        declaration = store.declaration
        assert [entry.first for entry in store.releases()] == [438288, 438291]
    assert declaration.unknown == ()
    assert set(declaration.unchecked) == {*UNKNOWN, "groups"}
    content = json.loads((out / "guarantee.json").read_text(encoding="utf-8"))
    assert content["releases"][1]["guarantee"]["not_checked"] == list(declaration.unchecked)
    assert content["declaration"]["unchecked"] == list(declaration.unchecked)
    # from now on it is as any declaration
    (out / "estimates.csv").unlink()
    later = ("--start", "2020-01-01T06:00", "--end", "2020-01-01T08:00")
    assert run(out, *later, "--adopt", time="other") == 2
    assert 'time_column must be "t", got "other"' in capsys.readouterr().err
    assert run(out, *later) == 0
    assert "not checked" in capsys.readouterr().out


def test_a_word_that_leads_to_no_steps_is_not_kept(make, capsys):
    """Of a release that is there the file is written, and nothing is published."""
    out = make("file")
    for end, status in (("2020-01-01T02:00", 2), ("2020-01-01T03:00", 0)):  # other steps; those that were published
        assert run(out, "--start", "2020-01-01T00:00", "--end", end, "--adopt", time="other") == status
    assert "nothing more was published" in capsys.readouterr().out
    with opened(out) as store:
        assert set(store.declaration.unknown) == {*UNKNOWN, "groups"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--period", "30min"), "period_us must be 3600000000 (1h), got 1800000000 (30min)"),
        (("--high", "31"), 'high must be "30", got "31"'),
        (("--groups", "a,b,c"), "n_streams must be 2, got 3"),
        (("--start", "2020-01-01T03:00Z", "--end", "2020-01-01T06:00Z"), 'zone must be "local", got "UTC"'),
    ],
)
def test_what_is_known_is_not_for_the_operator_to_say(make, capsys, words, message):
    out = make("file")
    if "Z" in words[1]:
        log = out.parent / "log.csv"
        log.write_text(MADE["log"].replace(",", "Z,").replace("tZ,otherZ,", "t,other,"))
    assert run(out, *NEXT, *words, "--adopt") == 2
    assert message in capsys.readouterr().err


# --- files that contradict the store ---------------------------------------------------------------

CONTRADICTIONS = {
    "a stream's": ("file", MADE["stores"]["clock"]["published"]["declared.json"]),
    "a file's": ("clock", MADE["stores"]["file"]["published"]["declared.json"]),
    "other groups": ("clock", MADE["stores"]["clock"]["published"]["declared.json"].replace('"b"', '"b", "c"')),
    "no period": ("file", '{"bins": "file", "clock": "UTC"}'),
    "a period of another kind": ("file", '{"bins": "file", "period_us": "1h", "clock": "UTC"}'),
    "a period of none": ("file", '{"bins": "file", "period_us": 0, "clock": "UTC"}'),
    "another start": ("clock", MADE["stores"]["clock"]["published"]["declared.json"].replace("2020-01-01T", "then ")),
    "numbers of groups": ("clock", MADE["stores"]["clock"]["published"]["declared.json"].replace('"b"', "2")),
    "another clock": ("file", '{"bins": "file", "period_us": 3600000000, "clock": "CET"}'),
    "no JSON": ("file", "{"),
    "empty": ("file", ""),
    "another document": ("file", "[]"),
}


@pytest.mark.parametrize(("name", "text"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_file_that_contradicts_the_store_is_refused(make, name, text):
    out = make(name)
    file = out / "declared.json"
    whole, before = file.read_text(), rows(out)
    file.write_text(text)
    with pytest.raises(ReleaseError, match=r"declared\.json contradicts the releases of the store, or is damaged"):
        opened(out)
    assert rows(out) == before
    file.write_text(whole)
    opened(out).close()


def test_without_its_file_nobody_knows_the_steps_either(make, capsys):
    out = make("file")
    (out / "declared.json").unlink()
    with opened(out) as store:
        assert store.declaration is None
    assert run(out, *NEXT) == 2
    assert "do not say what they meant by time_column, time_format, zone, period_us" in capsys.readouterr().err
    assert run(out, *NEXT, "--adopt") == 0
    with opened(out) as store:
        assert "period_us" in store.declaration.unchecked


def test_a_file_of_a_run_that_published_nothing_says_nothing(tmp_path, make):
    """The last of several first runs left its own."""
    out = make("file")
    with closing(sqlite3.connect(beside(out) / "store.sqlite")) as connection, connection:
        for table in ("releases", "progress", "pushes", "inputs"):
            connection.execute(f"DELETE FROM {table}")
    (out / "witness.json").unlink()
    (out / "declared.json").write_text('{"bins": "file", "period_us": 1, "clock": "UTC"}')
    with opened(out) as store:
        assert store.declaration is None
    assert run(out, *NEXT) == 0


# --- batches and streams ---------------------------------------------------------------------------


def test_batches_of_python_take_steps_in_python_and_by_the_command_when_adopted(make, capsys):
    out = make("python")
    plan = dp.exact(dp.load(out.parent / "mechanism.json"), dp.Inputs(0, 30, centre=2, n_streams=2))
    dp.release(plan, np.zeros((2, 3), int), beside(out), published=out, first=3)
    assert run(out, *NEXT) == 2
    assert "do not say what they meant" in capsys.readouterr().err
    assert run(out, *NEXT, "--adopt", "--low", "1") == 2
    assert 'low must be "0", got "1"' in capsys.readouterr().err
    assert run(out, *NEXT, "--adopt") == 0


def test_releases_for_different_persons_are_stated_together_and_end_there(make, capsys):
    out = make("mixed")
    before = (out / "guarantee.txt").read_text(encoding="utf-8")
    assert before.count("(0.99999") == 2  # each said to cost 1
    with opened(out) as store:
        *_, two = store.releases()
    assert two.whole
    text = (out / "guarantee.txt").read_text(encoding="utf-8")
    assert text.startswith(
        "Release 1, 3 steps from 438288 on:\nRelease 2, 3 steps from 438291 on:\n\n"
        "This guarantee is per event: it is about whether the at"
    )
    assert "the at most 2 events of one person" in text
    assert json.loads(two.guarantee_json)["epsilon"] > 1.1
    again = run(out, "--start", "2020-01-01T06:00", "--end", "2020-01-01T08:00", "--adopt")
    assert again == 2
    assert "max_events must be 2, got 1" in capsys.readouterr().err
    with opened(out) as store:
        assert len(store.releases()) == 2
        assert store.read(1, 438288, 3)[0].shape == (2, 3)


START = 1_577_836_800 * 10**6


def followed(out, *, adopt, **change):
    words = {"time": "t", "by": "s", "groups": ("a", "b"), "high": 30, "follow": True}
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:20Z", "period": "10s", "adopt": adopt}
    options = commands.parse("release", "-", **words, **span, mechanism=out.parent / "mechanism.json", out=out)
    script = Script(START + 40 * 10**6, [(START, b"t,s\n")])
    try:
        return release.run(commands.modify(options, **change), source=script, clock=script)
    finally:
        script.end()


def test_a_stream_of_before_goes_on_when_it_is_adopted(make):
    out = make("clock")
    with pytest.raises(ReleaseError, match="do not say what they meant by time_column, time_format, count_column, "):
        followed(out, adopt=False)
    with pytest.raises(ReleaseError, match='groups must be \\["a", "b"\\], got \\["b", "a"\\]'):
        followed(out, adopt=True, groups=("b", "a"))
    followed(out, adopt=True)
    with opened(out) as store:
        assert store.declaration.fields["grace_us"] == 0
        assert set(store.declaration.unchecked) == {*UNKNOWN, "last_step", "grace_us"}
        assert store.releases()[0].closed
    assert "Not checked: time_column" in (out / "guarantee.txt").read_text(encoding="utf-8")


# --- crashes ---------------------------------------------------------------------------------------


def taken(out):
    """What a store declares and promises."""
    with opened(out) as store:
        return store.declaration, [(entry.guarantee, entry.guarantee_json) for entry in store.releases()]


def interrupt(name):
    raise KeyboardInterrupt(name)


def interrupted(out):
    """Where the opening of a store was; None where it came to its end."""
    try:
        opened(out).close()
    except KeyboardInterrupt as error:
        return str(error)
    return None


def interruptions(make, tmp_path, monkeypatch, name, step=1):
    """Opens a store of before, interrupted at one point after the other, and then again; how many points there are."""
    whole = taken(make(name))
    for k in itertools.count(1, step):
        out = make(name, tmp_path / str(k))
        with monkeypatch.context() as patch:
            faults.instrument(patch.setattr, faults.reaching(k, interrupt))
            point = interrupted(out)
        if point == "before close":
            gc.collect()  # what nobody closed
        assert taken(out) == whole
        if point is None:
            return k - 1
    return None


def test_an_interrupted_takeover_is_done_again_whole(make, tmp_path, monkeypatch):
    assert interruptions(make, tmp_path, monkeypatch, "mixed", 9) > 30


@pytest.mark.crash
@pytest.mark.parametrize("name", MADE["stores"])
def test_a_takeover_interrupted_at_every_point_is_done_again_whole(make, tmp_path, monkeypatch, name):
    assert interruptions(make, tmp_path, monkeypatch, name) > 30


def halfway(set_attribute):
    """The format is in a transaction of its own."""
    upgrade = release_rows.Records.upgrade

    def mutant(self, declaration, restated):
        if self.version != 1:
            upgrade(self, declaration, restated)
            return
        release_schema.add_format_2(self._arbiter)
        self._arbiter.execute("UPDATE meta SET format = 2")
        self._arbiter.execute("COMMIT")
        self._arbiter.execute("BEGIN")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(release_schema, "add_format_2", lambda connection: None)
            upgrade(self, declaration, restated)

    set_attribute(release_rows.Records, "upgrade", mutant)


def test_a_takeover_in_two_transactions_is_found(make, tmp_path, monkeypatch):
    halfway(monkeypatch.setattr)
    with pytest.raises(AssertionError):
        interruptions(make, tmp_path, monkeypatch, "file", 9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
def test_a_takeover_that_was_killed_is_done_again_whole(make, tmp_path):
    whole = taken(make("mixed"))
    for k in range(20, 60, 9):
        out = make("mixed", tmp_path / str(k))
        process = multiprocessing.get_context("fork").Process(target=killed, args=(out, k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        process.join()
        assert taken(out) == whole


def killed(out, k):
    """In a process of its own: opens a store, and dies at its k-th point."""
    faults.instrument(setattr, faults.reaching(k, faults.die))
    opened(out).close()
