import contextlib
import csv
import dataclasses
import functools
import gzip
import io
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.scripts import Script
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases import released_file
from dpfast.releases.feed.estimates_file import HEADER, Layout
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream
from dpfast.signals.events.declared import Span, count_events

LOG = "when,place,many\n" + "".join(
    f"2020-01-0{d}T{h:02}:{m:02},{'abc'[(h + m) % 3]},{1 + m % 2}\n"
    for d in (1, 2, 3)
    for h in range(24)
    for m in range(0, 60, 7 + h % 5)
)
DAY = {"--time": "when", "--start": "2020-01-02", "--end": "2020-01-03", "--period": "1h", "--high": "50"}


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A mechanism of lag 2, saved."""
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    target = dp.Filter(np.ones(3) / 3)
    dp.save(dp.lmmse(target, dp.Privacy(5, 1e-6), model, lag=2, prefilter=dp.Filter([1, 0.5])), path)
    return str(path)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return str(path)


def arguments(events, saved, out, *flags, **change):
    words = DAY | {f"--{name.replace('_', '-')}": value for name, value in change.items()}
    pairs = [word for pair in words.items() for word in pair]
    return ["release", str(events), "--mechanism", str(saved), "--out", str(out), *pairs, *flags]


def beside(out):
    """The private store of a published folder."""
    return out.absolute().with_name(f"{out.name}-private")


def failing(given_arguments, capsys):
    assert main(given_arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    *private, error = captured.err.splitlines()
    assert all(line.startswith("PRIVATE ") for line in private)
    assert error.startswith("dpfast: error: ")
    return error


def rows(out):
    with (out / "estimates.csv").open() as file:
        return list(csv.reader(file))


# --- a file


def test_a_log_is_published(log, saved, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments(log, saved, out, by="place", groups="c,nobody,a")) == 0
    printed = capsys.readouterr().out
    assert "(ε, δ)" in printed
    assert printed.endswith(f"Written: {out / 'estimates.csv'}\nPrivate store: {beside(out)}\n")
    header, *body = rows(out)
    assert header == ["time", "group", "estimate", "predicted_rmse_if_model_holds"]
    assert [row[:2] for row in body] == [
        [f"2020-01-02T{h:02}:00:00", g] for h in range(24) for g in ("c", "nobody", "a")
    ]
    with ReleaseStore.open(beside(out), out) as store:
        (entry,) = store.releases()
        _, estimate = store.read(entry.id, entry.first, 24)
    assert np.abs([float(row[2]) for row in body] - estimate.T.ravel()).max() <= float(body[0][3]) / 199
    assert (entry.first, entry.count) == (24 * 18263, 24)  # hours from 1970 to 2020-01-02


def test_only_declared_counts_reach_the_release(log, saved, tmp_path, monkeypatch):
    seen = {}

    def spy(plan, u, first, *, compose, name):
        seen.update(u=u, inputs=plan.inputs, first=first, compose=compose)

    def opened(path, published, *, adopt):
        seen.update(path=path, published=published, adopt=adopt)
        raise ReleaseError("enough")

    monkeypatch.setattr(release, "Batch", spy)
    monkeypatch.setattr(release.ReleaseStore, "open", opened)
    out = tmp_path / "out"
    change = {"by": "place", "groups": 'a,"b"', "count": "many", "centre": "2", "unit": "2", "low": "0", "high": "20"}
    assert main(arguments(log, saved, out, "--compose", "--adopt", streams_per_person="2", **change)) == 2
    words = {"time": "when", "by": "place", "groups": ["a", "b"], "count": "many", "period": "1h"}
    log = count_events(log, start="2020-01-02", end="2020-01-03", **words)
    np.testing.assert_array_equal(seen["u"], log.counts)
    inputs = seen["inputs"]
    assert (inputs.low, inputs.high, inputs.unit, inputs.centre) == (0, 20, 2, 2)
    assert (inputs.n_streams, inputs.streams_per_person, inputs.multiples) == (2, 2, False)
    assert (seen["first"], seen["compose"], seen["adopt"]) == (24 * 18263, True, True)
    assert (seen["path"], seen["published"]) == (beside(out), out)


def test_counts_are_multiples_of_a_unit_that_divides_one(log, saved, tmp_path, monkeypatch):
    def spy(plan, u, first, *, compose, name):
        raise ReleaseError(f"multiples: {plan.inputs.multiples}")

    monkeypatch.setattr(release, "Batch", spy)
    for unit, expected in (("1", True), ("0.5", True), ("1/3", True), ("2", False), ("2/3", False), ("0.4", False)):
        request = {"unit": Fraction(unit), "high": Fraction(unit) * 60}
        words = {"events": log, "mechanism": saved, "time": "when", "start": "2020-01-02", "end": "2020-01-03"}
        with pytest.raises(ReleaseError, match=f"multiples: {expected}"):
            release.run(release.Request(**words, period="1h", out=str(tmp_path / "out"), **request))


def test_estimates_are_those_of_the_counts(log, tmp_path):
    """With little noise they are the target's output, but for 9 standard deviations: 1e-17 for all together."""
    path, out = tmp_path / "mechanism.json", tmp_path / "out"
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(50, 0.1)), path)
    assert main(arguments(log, path, out)) == 0
    u = count_events(log, time="when", start="2020-01-02", end="2020-01-03", period="1h").counts[0]
    y = np.convolve(u, [0.5, 0.5])[:24]
    body = rows(out)[1:]
    assert np.abs([float(row[2]) for row in body] - y).max() < 9 * float(body[0][3])
    assert 0 < float(body[0][3]) < 0.5


def test_parquet(log, saved, tmp_path):
    from pyarrow import parquet

    assert main(arguments(log, saved, tmp_path / "out", format="parquet")) == 0
    table = parquet.read_table(tmp_path / "out" / "estimates.parquet")
    assert table.num_rows == 24
    assert not (tmp_path / "out" / "estimates.csv").exists()


def test_a_missing_extra_is_told_before_anything_is_released(log, saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install" in failing(arguments(log, saved, tmp_path / "out", format="parquet"), capsys)
    assert not (tmp_path / "out").exists()


def test_a_store_may_be_elsewhere_and_goes_on(log, saved, tmp_path, capsys):
    out, store = tmp_path / "out", str(tmp_path / "private")
    assert main(arguments(log, saved, out, store=store)) == 0
    first = (out / "estimates.csv").read_bytes()
    again = arguments(log, saved, out, store=store)
    next_day = {"start": "2020-01-03", "end": "2020-01-04", "store": store}
    capsys.readouterr()
    assert "move it away" in failing(arguments(log, saved, out, **next_day), capsys)
    (out / "estimates.csv").rename(out / "first.csv")
    assert main(arguments(log, saved, out, **next_day)) == 0
    assert main(arguments(log, saved, tmp_path / "other", **next_day)) == 2
    (out / "estimates.csv").unlink()
    assert main(again) == 0
    assert (out / "estimates.csv").read_bytes() == first
    capsys.readouterr()
    assert main([*again, "--compose", "--name", "again"]) == 0
    assert "composed" in capsys.readouterr().out
    assert (out / "estimates-again.csv").read_bytes() != first


@pytest.mark.parametrize("out", ["..", "out/.."])
def test_the_store_lies_beside_what_is_published_however_that_is_called(log, saved, tmp_path, monkeypatch, out):
    """And not in it, with a name such as `..-private`."""
    here = tmp_path / "public" / "here"
    (here / "out").mkdir(parents=True)
    monkeypatch.chdir(here)
    folder = (here / out).resolve()
    assert main(arguments(log, saved, out)) == 0
    assert (beside(folder) / "store.sqlite").is_file()
    assert [*folder.rglob("*.sqlite")] == []
    assert main(arguments(log, saved, folder)) == 0
    assert main(["release", "--read", str(beside(folder))]) == 0


def test_beside_the_root_folder_there_is_no_place_for_a_store(log, saved, capsys, monkeypatch):
    monkeypatch.setattr(release, "Folder", lambda *_: None)  # not everybody may write there
    assert "store must be given where out is /" in failing(arguments(log, saved, "/"), capsys)


def test_what_could_not_be_written_is_in_the_store(log, saved, tmp_path, capsys, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(released_file, "replace_file", full)
        message = failing(arguments(log, saved, tmp_path / "out"), capsys)
    assert "No space left on device; what was released is in the store" in message
    assert "run the same command again, which publishes nothing more" in message
    assert main(arguments(log, saved, tmp_path / "out")) == 0
    assert len(rows(tmp_path / "out")) == 25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": "nowhen"}, "'nowhen'"),
        ({"by": "place"}, "groups must be declared"),
        ({"groups": "a"}, "groups must be declared"),
        ({"by": "place", "groups": "a,a"}, "distinct"),
        ({"by": "place", "groups": ""}, "distinct"),
        ({"start": "2020-01-02T00:30"}, "end must be a whole number of periods"),
        ({"start": "2020-01-02T00:30", "end": "2020-01-02T02:30"}, "such as 2020-01-02T00:00"),
        ({"start": "1969-01-02", "end": "1969-01-03"}, "start must be a whole number of periods after 1970"),
        ({"start": "2020-01-02T00:00Z"}, "end must be with a UTC offset"),
        ({"start": "2020-01-02T00:00Z", "end": "2020-01-03T00:00Z"}, "must hold timestamps with a UTC offset"),
        ({"period": "1month"}, "period must be"),
        ({"time_format": "when"}, "time_format must be"),
        ({"high": "0"}, "low must be below high"),
        ({"high": "1/3"}, "high must be a multiple of the unit"),
        ({"unit": "0"}, "unit must be from 1e-50"),
        ({"centre": "60"}, "centre must be in the range"),
        ({"streams_per_person": "2"}, "streams_per_person must be"),
        ({"tolerance": "0"}, "tolerance must be"),
        ({"grace": "1s"}, "grace must come with --follow"),
        ({"count": "place"}, "whole numbers"),
        ({"time": "caf\udce9"}, "time must be text"),
        ({"by": "caf\udce9", "groups": "a"}, "by must be text"),
    ],
)
def test_bad_declarations_are_one_line_and_nothing_is_written(log, saved, tmp_path, capsys, change, message):
    assert message in failing(arguments(log, saved, tmp_path / "out", **change), capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change", [{"high": "3/0"}, {"high": "many"}, {"streams_per_person": "0"}, {"format": "xls"}, {"groups": '"a'}]
)
def test_usage_errors_end_with_2(log, saved, tmp_path, change):
    with pytest.raises(SystemExit) as ended:
        main(arguments(log, saved, tmp_path / "out", **change))
    assert ended.value.code == 2


def test_designs_from_private_data_are_refused(log, tmp_path, capsys):
    model = dp.ARMA([1], [1, -0.5], source="fitted-from-private")
    dp.save(dp.lmmse(dp.Filter([1.0]), dp.Privacy(1, 1e-6), model, lag=0), tmp_path / "m.json")
    assert "private data" in failing(arguments(log, tmp_path / "m.json", tmp_path / "out"), capsys)
    assert not (tmp_path / "out").exists()


def test_other_files_and_folders_are_refused(log, saved, tmp_path, capsys):
    assert "cannot be used" in failing(arguments(log, log, tmp_path / "out"), capsys)
    assert "cannot write" in failing(arguments(log, saved, log), capsys)
    assert "none.csv" in failing(arguments(tmp_path / "none.csv", saved, tmp_path / "out"), capsys)
    assert "events must be -" in failing(arguments("-", saved, tmp_path / "out"), capsys)
    assert not (tmp_path / "out").exists()


# --- unsound files: refused as a whole, without a word of what they hold

SECRET = "Zq7Zq7"
WHOLE = LOG.encode()
PACKED = gzip.compress(WHOLE, mtime=0)
unsound = st.one_of(
    st.binary(max_size=200),
    st.binary(min_size=1, max_size=40).map(lambda x: WHOLE + b"\n\xff" + x),
    st.integers(1, len(PACKED) - 1).map(lambda n: PACKED[:n]),
    st.sampled_from(["-1", "1e30", "0.5", "nan", "", SECRET]).map(lambda n: f"{LOG}2020-01-02,{SECRET},{n}\n".encode()),
    st.sampled_from([f"{SECRET},a,1", f"2020-01-02,{SECRET}", f"2020-01-02,a,1,{SECRET}", f'2020-01-02,"{SECRET}'])
    .map(lambda row: f"{LOG}{row}\n".encode()),
    st.sampled_from([f"{SECRET},a,b\n", f"when,place,when\n{SECRET},1,1\n"]).map(str.encode),
    st.permutations(LOG.splitlines()[:9]).filter(lambda x: x[0][0] == "2").map(lambda x: "\n".join(x).encode()),
)  # fmt: skip


@given(unsound)
def test_unsound_files_are_one_line_and_nothing_is_released(tmp_path_factory, saved, content):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "log.csv").write_bytes(content)
    plan, change, printed = plan_of(saved), {"by": "place", "groups": "a,b", "count": "many"}, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
        patch.setattr(release, "exact", lambda *_, **__: plan)
        assert main(arguments(folder / "log.csv", saved, folder / "out", "--quiet", **change)) == 2
    text = printed.getvalue()
    assert text.startswith("dpfast: error: ")
    assert text.count("\n") == 1
    assert SECRET not in text
    assert not (folder / "out").exists()


@functools.cache
def plan_of(saved):
    return release.exact(dp.load(saved), Inputs(0, 50, n_streams=2))


# --- events as they come

SPAN = Span.declared("2020-01-01T00:00Z", "2020-01-01T00:01:20Z", "10s")


def at(seconds):
    return SPAN.start + int(seconds * 1e6)


def line(seconds, group):
    return f"{at(seconds) // 10**6},{group}\n".encode()


@pytest.fixture
def live(saved, tmp_path):
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:20Z", "period": "10s"}
    words = {"events": "-", "time": "t", "by": "s", "groups": ("a", "b"), "high": Fraction(50), "follow": True}
    return release.Request(mechanism=saved, out=str(tmp_path / "out"), **span, **words)


def followed(request, script):
    try:
        return release.run(request, source=script, clock=script)
    finally:
        script.end()


ARRIVALS = [(at(-1), b"t,s\n"), *((at(t + 0.5), line(t, "ab"[t % 3 > 1])) for t in range(80))]


@pytest.fixture
def pushed(monkeypatch):
    """All chunks that reach a stream."""
    chunks, push = [], Stream.push

    def spy(stream, chunk, *, first=None):
        chunks.append((first, chunk.tolist()))
        return push(stream, chunk, first=first)

    monkeypatch.setattr(Stream, "push", spy)
    return chunks


def published(request):
    """The file as the store knows it, of all bins."""
    mechanism = dp.load(request.mechanism)
    inputs = Inputs(0, 50, n_streams=2)
    plan = release.exact(mechanism, inputs)
    with dp.open_stream(mechanism, beside(Path(request.out)), inputs, published=request.out) as stream:
        estimate = stream.read(2, 8).estimate
        assert stream.position == 10
    return HEADER + Layout(SPAN, ("a", "b"), plan.predicted_rmse_if_model_holds).csv(0, estimate)


def test_bins_are_published_as_they_end(live, pushed, capsys):
    sizes = []

    class Watch(Script):
        def sleep_until(self, moment):
            sizes.append((self.now(), len(rows(Path(live.out)))))
            super().sleep_until(moment)

    script = Watch(at(-5), ARRIVALS)
    text = followed(live, script)
    assert [x[0] for x in pushed] == list(range(8))
    expected = np.zeros((2, 8), int)
    for t in range(80):
        expected[int(t % 3 > 1), t // 10] += (t + 0.5) < 10 * (t // 10 + 1)
    assert np.concatenate([x[1] for x in pushed], axis=1).tolist() == expected.tolist()
    file = Path(live.out) / "estimates.csv"
    assert text == f"Written: {file}\nPrivate store: {beside(file.parent)}"
    assert "(ε, δ)" in capsys.readouterr().out
    assert file.read_text() == published(live)
    # at any time the file holds the bins that ended, less the two of the lag
    assert all(n == 1 + 2 * max(0, (now - at(0)) // 10**7 - 2) for now, n in sizes)


def test_what_is_sent_is_public_alone(live, pushed):
    """The same clock, other events: the same steps at the same times, and files of the same lines."""
    followed(live, Script(at(-5), ARRIVALS))
    other = dataclasses.replace(live, out=live.out + "2")
    followed(other, Script(at(-5), [(at(3), b"t,s\n"), (at(5), b'"\xff\n')]))
    assert [x[0] for x in pushed] == list(range(8)) * 2
    assert all(np.sum(x[1]) == 0 for x in pushed[8:])
    labels = [[row[:2] for row in rows(Path(request.out))] for request in (live, other)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("interrupt", [3, 12, 15, 47, 79.9])
def test_an_interrupted_stream_goes_on_with_zeros_for_what_it_missed(live, pushed, interrupt):
    with pytest.raises(KeyboardInterrupt):
        followed(live, Script(at(-5), ARRIVALS, interrupt=at(interrupt)))
    before = (Path(live.out) / "estimates.csv").read_text()
    known = len(pushed)
    assert known == int(interrupt // 10)
    followed(live, Script(at(interrupt + 25), [(at(interrupt), b"t,s\n" + line(interrupt, "a"))]))
    assert np.concatenate([x[1] for x in pushed[known:]], axis=1).tolist() == [[0] * (8 - known)] * 2
    after = (Path(live.out) / "estimates.csv").read_text()
    assert after.startswith(before)
    assert after == published(live)


@pytest.mark.parametrize("length", [0, 10, 41, 60, 150, 10_000])
def test_what_was_published_and_not_written_is_read_back(live, pushed, length):
    with pytest.raises(KeyboardInterrupt):
        followed(live, Script(at(-5), ARRIVALS, interrupt=at(55)))
    file = Path(live.out) / "estimates.csv"
    whole = file.read_text()
    file.write_text(whole[:length])
    followed(live, Script(at(55), ARRIVALS))
    assert file.read_text().startswith(whole)
    assert file.read_text() == published(live)
    assert [x[0] for x in pushed] == list(range(8))


def test_noise_is_drawn_between_bins(live, monkeypatch):
    calls, prepare, push = [], Stream.prepare, Stream.push
    monkeypatch.setattr(Stream, "prepare", lambda *x: calls.append("prepare") or prepare(*x))
    monkeypatch.setattr(Stream, "push", lambda *x, **y: calls.append("push") or push(*x, **y))
    followed(live, Script(at(-5), ARRIVALS))
    assert calls == ["prepare"] + ["push", "prepare"] * 8


def test_a_crash_between_the_store_and_the_file_loses_nothing(live, monkeypatch):
    append = release.Journal.append

    def crash(journal, first, estimate):
        if journal.position == 2:
            raise OSError("no space left")
        append(journal, first, estimate)

    monkeypatch.setattr(release.Journal, "append", crash)
    with pytest.raises(OSError, match="no space left"):
        followed(live, Script(at(-5), ARRIVALS))
    monkeypatch.setattr(release.Journal, "append", append)
    followed(live, Script(at(60), ARRIVALS))
    assert (Path(live.out) / "estimates.csv").read_text() == published(live)


def test_a_stream_that_is_over_publishes_nothing_more(live, pushed):
    followed(live, Script(at(-5), ARRIVALS))
    text = (Path(live.out) / "estimates.csv").read_text()
    (Path(live.out) / "estimates.csv").unlink()
    followed(live, Script(at(500), ARRIVALS))
    assert (Path(live.out) / "estimates.csv").read_text() == text
    assert len(pushed) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": ("b", "a")}, r'groups must be \["a", "b"\], got \["b", "a"\]\.'),
        ({"period": "20s"}, r"period_us must be 10000000 \(10s\), got 20000000 \(20s\)"),
        ({"start": "2020-01-01T00:00:10Z"}, r'origin must be "2020-01-01T00:00:00.000000", got'),
        ({"end": "2020-01-01T00:01:30Z"}, "last_step must be 7, got 8"),
        ({"grace": "1s"}, r"grace_us must be 0, got 1000000 \(1s\)"),
        ({"high": Fraction(49)}, 'high must be "50", got "49"'),
    ],
)
def test_a_stream_goes_on_as_it_was_declared(live, change, message):
    with pytest.raises(KeyboardInterrupt):
        followed(live, Script(at(-5), ARRIVALS, interrupt=at(15)))
    with pytest.raises(ReleaseError, match=message):
        followed(dataclasses.replace(live, **change), Script(at(15), []))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"events": "log.csv"}, "events must be -"),
        ({"compose": True}, "follow must come without --compose"),
        ({"format": "parquet"}, "follow must come without --compose and --name, and with --format csv"),
        ({"start": "2020-01-01", "end": "2020-01-02"}, "start must have a UTC offset with --follow"),
        ({"grace": "soon"}, "period must be"),
        ({"time": "caf\udce9"}, "time must be text in the encoding of the terminal"),
        ({"count": "caf\udce9"}, "count must be text in the encoding of the terminal"),
        ({"dry_run": True}, "dry_run must come without --follow"),
        ({"private_counts": True, "quiet": True}, "quiet must come without"),
        ({"time_format": "%H %"}, "time_format must be"),
        (
            {"time_format": "%Y-%m-%d %H:%M"},
            r"time_format must be with %z \(the UTC offset, or Z\) where start is with",
        ),
        ({"time_format": "%Y-%m-%dT%H:%M:%SZ"}, "time_format must be with %z"),
        ({"time_format": "%d/%m %H:%M %z"}, "time_format must be one that tells the days from start to end"),
    ],
)
def test_bad_declarations_of_streams(live, change, message):
    with pytest.raises(ValueError, match=message):
        followed(dataclasses.replace(live, **change), Script(at(15), []))
    assert not Path(live.out).exists()


def test_a_smoother_runs_on_files_alone(live, tmp_path):
    path = tmp_path / "smoother.json"
    dp.save(dp.lmmse(dp.Filter([1.0]), dp.Privacy(1, 1e-6), dp.ARMA([1], [1, -0.5])), path)
    with pytest.raises(ValueError, match="smoother"):
        followed(dataclasses.replace(live, mechanism=str(path)), Script(at(15), []))
    assert not Path(live.out).exists()


def test_a_refusal_before_there_is_a_store_leaves_no_file(live, monkeypatch):
    def refuse(*_, **__):
        raise ReleaseError("not here")

    monkeypatch.setattr(release.ReleaseStore, "open", refuse)
    with pytest.raises(ReleaseError, match="not here"):
        followed(live, Script(at(15), []))
    assert not Path(live.out).exists()


def test_the_program_follows_standard_input(saved, tmp_path):
    """Of the clock of the machine: four bins of half a second, about when it has started."""
    for delay in (8, 60, 300):  # on a machine that is so busy
        out, start = tmp_path / f"out{delay}", int(time.time()) + delay
        span = {"start": str(start), "end": str(start + 2), "period": "0.5s", "time": "t", "grace": "0.1s"}
        program = [sys.executable, "-m", "dpfast.cli.main", *arguments("-", saved, out, "--follow", **span)]
        run = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        printed, errors = run.communicate(f"t\n{start}\n{start + 0.6}\nnonsense\n".encode())
        if b"end must be in the future" not in errors and b"while this was not running" not in errors:
            break
    assert (run.returncode, errors) == (0, b"")
    assert b"Written: " in printed
    assert time.time() > start + 2
    assert len(rows(out)) == 5


def test_a_closed_standard_input_is_refused(live, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input must be open"):
        release.run(live)
    assert not Path(live.out).exists()


def test_ctrl_c_suspends_the_program(saved, tmp_path):
    out, start = tmp_path / "out", int(time.time()) - 5
    span = {"start": str(start), "end": str(start + 1000), "period": "1s", "time": "t"}
    program = [sys.executable, "-m", "dpfast.cli.main", *arguments("-", saved, out, "--follow", **span)]
    # a pipe that stays open, as that of a producer that has nothing to say
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        while run.poll() is None and not ((out / "estimates.csv").exists() and len(rows(out)) > 2):
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGINT)
        assert run.wait() == 130
        missed, interrupted = run.stderr.read().decode().splitlines()
    assert missed.startswith("dpfast: steps 0 to ")
    assert "ended while this was not running; they count as zeros and are in missed.csv" in missed
    assert interrupted == "dpfast: interrupted"
    assert len(rows(out)) > 2
