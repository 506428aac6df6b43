import csv
import functools
import os
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import modify, parse
from helpers.designs import designed
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases.estimates_layout import HEADER, Layout
from dpfast.releases.feed.live_estimates_file import Journal
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream
from dpfast.signals.events.declared_span import Span


@pytest.fixture(autouse=True)
def _equal_mechanisms_once(monkeypatch):
    """The search for integer taps takes longer than all else of a command."""
    monkeypatch.setattr(release, "exact", functools.partial(designed, dp.exact))


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A mechanism of lag 2, saved."""
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    target = dp.Filter(np.ones(3) / 3)
    dp.save(dp.lmmse(target, dp.Privacy(5, 1e-6), model, lag=2, prefilter=dp.Filter([1, 0.5])), path)
    return str(path)


def arguments(saved, out, **words):
    given = [f"--{name.replace('_', '-')}={value}" for name, value in words.items()]
    return ["release", "-", "--follow", "--mechanism", saved, "--out", str(out), "--high", "50", *given]


def rows(out):
    with (out / "estimates.csv").open() as file:
        return list(csv.reader(file))


def beside(out):
    """The private store of a published folder."""
    return out.absolute().with_name(f"{out.name}-private")


SPAN = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:01:20Z", "10s")


def at(seconds):
    return SPAN.start + int(seconds * 1e6)


def line(seconds, group):
    return f"{at(seconds) // 10**6},{group}\n".encode()


@pytest.fixture
def live(saved, tmp_path):
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:20Z", "period": "10s"}
    words = {"time": "t", "by": "s", "groups": ("a", "b"), "high": 50, "follow": True}
    return parse("release", "-", mechanism=saved, out=tmp_path / "out", **span, **words)


def follow(options, script):
    try:
        return release.run(options, source=script, clock=script)
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


def published(options):
    """The file as the store knows it, of all bins."""
    mechanism = dp.load(options.mechanism)
    inputs = Inputs(0, 50, n_streams=2)
    plan = designed(dp.exact, mechanism, inputs)
    with dp.open_stream(plan, beside(Path(options.out)), published=options.out) as stream:
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
    text = follow(live, script)
    assert [x[0] for x in pushed] == list(range(8))
    expected = np.zeros((2, 8), int)
    for t in range(80):
        expected[int(t % 3 > 1), t // 10] += (t + 0.5) < 10 * (t // 10 + 1)
    assert np.concatenate([x[1] for x in pushed], axis=1).tolist() == expected.tolist()
    file = Path(live.out) / "estimates.csv"
    report = file.with_name("report.html")
    check = file.with_name("model-check.json")
    assert text.startswith("A stream is compared with its model after 64 steps")
    written = " ".join(text.split("\n\n")[-1].split())
    assert written == f"Written: {file}, {report}, {check} Private store: {beside(file.parent)}"
    assert re.search(r"estimates of 8 steps \(.+?\) for 2 groups", report.read_text(encoding="utf-8"))
    assert "(ε, δ)" in capsys.readouterr().out
    assert file.read_text() == published(live)
    # at any time the file holds the bins that ended, less the two of the lag
    assert all(n == 1 + 2 * max(0, (now - at(0)) // 10**7 - 2) for now, n in sizes)


def test_what_is_sent_is_public_alone(live, pushed):
    """The same clock, other events: the same steps at the same times, and files of the same lines."""
    follow(live, Script(at(-5), ARRIVALS))
    other = modify(live, out=live.out + "2")
    follow(other, Script(at(-5), [(at(3), b"t,s\n"), (at(5), b'"\xff\n')]))
    assert [x[0] for x in pushed] == list(range(8)) * 2
    assert all(np.sum(x[1]) == 0 for x in pushed[8:])
    labels = [[row[:2] for row in rows(Path(options.out))] for options in (live, other)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("interrupt", [3, 15, 79.9, *(pytest.param(x, marks=pytest.mark.long) for x in (12, 47))])
def test_an_interrupted_stream_goes_on_with_zeros_for_what_it_missed(live, pushed, interrupt):
    with pytest.raises(KeyboardInterrupt):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(interrupt)))
    before = (Path(live.out) / "estimates.csv").read_text()
    known = len(pushed)
    assert known == int(interrupt // 10)
    follow(live, Script(at(interrupt + 25), [(at(interrupt), b"t,s\n" + line(interrupt, "a"))]))
    assert np.concatenate([x[1] for x in pushed[known:]], axis=1).tolist() == [[0] * (8 - known)] * 2
    after = (Path(live.out) / "estimates.csv").read_text()
    assert after.startswith(before)
    assert after == published(live)
    _, (begun, until) = csv.reader((Path(live.out) / "missed.csv").read_text().splitlines())
    n = (np.datetime64(until[:-1]) - np.datetime64(begun[:-1])) // np.timedelta64(10, "s")
    assert n == min(int((interrupt + 25) // 10), 8) - known
    assert dp.read_release(beside(Path(live.out)), published=live.out).missed == n
    page = " ".join((Path(live.out) / "report.html").read_text().split())
    assert f"{n} bin{'s were' if n > 1 else ' was'} missed, see missed.csv" in page


@pytest.mark.parametrize("again", [True, False])
def test_events_of_the_bin_that_was_not_over_count_again_if_they_are_sent_again(live, pushed, again):
    """They were in memory alone: what came before is lost, or counted once where the producer repeats it."""
    with pytest.raises(KeyboardInterrupt, match="the same command goes on behind it; the bin that was not over counts"):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(15)))
    repeated = [(at(16), b"".join(x for t, x in ARRIVALS[11:] if at(5) < t < at(16)))] if again else []
    follow(live, Script(at(15.7), [(at(15.8), b"t,s\n"), *repeated, *((t, x) for t, x in ARRIVALS if t > at(16))]))
    counts = np.concatenate([x[1] for x in pushed], axis=1)
    whole = np.add.reduceat([[t % 3 <= 1 for t in range(80)], [t % 3 > 1 for t in range(80)]], range(0, 80, 10), axis=1)
    lost = np.array([[4], [2]]) if not again else 0  # of the seconds 10 to 15
    assert counts[:, :1].tolist() == whole[:, :1].tolist()
    assert counts[:, 1:2].tolist() == (whole[:, 1:2] - lost).tolist()
    assert counts[:, 2:].tolist() == whole[:, 2:].tolist()


@pytest.mark.parametrize("length", [0, 41, 150, *(pytest.param(x, marks=pytest.mark.long) for x in (10, 60, 10_000))])
def test_what_was_published_and_not_written_is_read_back(live, pushed, length):
    with pytest.raises(KeyboardInterrupt):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(55)))
    file = Path(live.out) / "estimates.csv"
    whole = file.read_text()
    file.write_text(whole[:length])
    follow(live, Script(at(55), ARRIVALS))
    assert file.read_text().startswith(whole)
    assert file.read_text() == published(live)
    assert [x[0] for x in pushed] == list(range(8))


def test_a_store_that_keeps_few_bins_leaves_the_file_whole(live, pushed):
    """Also where the process was interrupted, and the file is behind the store by what it wrote last."""
    live.keep_steps = 1
    with pytest.raises(KeyboardInterrupt):
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(55)))
    file = Path(live.out) / "estimates.csv"
    whole = file.read_text()
    file.write_text("".join(whole.splitlines(keepends=True)[:-2]))
    follow(live, Script(at(55), ARRIVALS))
    assert file.read_text().startswith(whole)
    assert len(rows(Path(live.out))) == 1 + 2 * 8
    assert dp.read_release(beside(Path(live.out)), published=live.out).first > 0


def test_noise_is_drawn_between_bins(live, monkeypatch):
    calls, prepare, push = [], Stream.prepare, Stream.push
    monkeypatch.setattr(Stream, "prepare", lambda *x: calls.append("prepare") or prepare(*x))
    monkeypatch.setattr(Stream, "push", lambda *x, **y: calls.append("push") or push(*x, **y))
    follow(live, Script(at(-5), ARRIVALS))
    assert calls == ["prepare"] + ["push", "prepare"] * 8


def test_a_crash_between_the_store_and_the_file_loses_nothing(live, monkeypatch):
    append = Journal.append

    def crash(journal, first, estimate):
        if journal.position == 2:
            raise OSError("no space left")
        append(journal, first, estimate)

    monkeypatch.setattr(Journal, "append", crash)
    with pytest.raises(OSError, match="no space left"):
        follow(live, Script(at(-5), ARRIVALS))
    monkeypatch.setattr(Journal, "append", append)
    follow(live, Script(at(60), ARRIVALS))
    assert (Path(live.out) / "estimates.csv").read_text() == published(live)


def test_a_stream_that_is_over_publishes_nothing_more(live, pushed):
    follow(live, Script(at(-5), ARRIVALS))
    text = (Path(live.out) / "estimates.csv").read_text()
    (Path(live.out) / "estimates.csv").unlink()
    follow(live, Script(at(500), ARRIVALS))
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
        follow(live, Script(at(-5), ARRIVALS, interrupt=at(15)))
    with pytest.raises(ReleaseError, match=message):
        follow(modify(live, **change), Script(at(15), []))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"events": "log.csv"}, "events must be -"),
        ({"compose": True}, "follow must come without --compose"),
        ({"format": "parquet"}, "follow must come without --compose and --name, and with --format csv"),
        ({"start": "2020-01-01", "end": "2020-01-02"}, "start must have a UTC offset with --follow"),
        ({"grace": "soon"}, "period must be"),
        ({"keep_steps": 0}, "keep_steps must be"),
        ({"keep_steps": 9, "adapt": True}, "adapt must come without --keep-steps"),
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
        follow(modify(live, **change), Script(at(15), []))
    assert not Path(live.out).exists()


def test_a_smoother_runs_on_files_alone(live, tmp_path):
    path = tmp_path / "smoother.json"
    dp.save(dp.lmmse(dp.Filter([1.0]), dp.Privacy(1, 1e-6), dp.ARMA([1], [1, -0.5])), path)
    with pytest.raises(ValueError, match="smoother"):
        follow(modify(live, mechanism=str(path)), Script(at(15), []))
    assert not Path(live.out).exists()


def test_a_refusal_before_there_is_a_store_leaves_no_file(live, monkeypatch):
    def refuse(*_, **__):
        raise ReleaseError("not here")

    monkeypatch.setattr(ReleaseStore, "open", refuse)
    with pytest.raises(ReleaseError, match="not here"):
        follow(live, Script(at(15), []))
    assert not Path(live.out).exists()


@pytest.mark.long
def test_the_program_follows_standard_input(saved, tmp_path):
    """Of the clock of the machine: four bins of half a second, about when it has started."""
    for delay in (8, 60, 300):  # on a machine that is so busy
        out, start = tmp_path / f"out{delay}", int(time.time()) + delay
        program = [sys.executable, "-m", "dpfast.cli.main", *arguments(saved, out, **short(start))]
        run = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        printed, errors = run.communicate(f"t\n{start}\n{start + 0.6}\nnonsense\n".encode())
        if b"end must be in the future" not in errors and b"while this was not running" not in errors:
            break
    assert (run.returncode, errors) == (0, b"")
    assert b"Written:" in printed
    assert time.time() > start + 2
    assert len(rows(out)) == 5


def short(start):
    return {"start": str(start), "end": str(start + 2), "period": "0.5s", "time": "t", "grace": "0.1s"}


def test_the_command_follows_standard_input(saved, tmp_path, monkeypatch, capsys):
    """The same in this process, whose standard input is a pipe."""
    for delay in (2, 20, 300):  # on a machine that is so busy
        out, start = tmp_path / f"out{delay}", int(time.time()) + delay
        reading, writing = os.pipe()
        os.write(writing, f"t\n{start}\n{start + 0.6}\nnonsense\n".encode())
        os.close(writing)
        with os.fdopen(reading) as stdin, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            status = main(arguments(saved, out, **short(start)))
        printed = capsys.readouterr()
        if "end must be in the future" not in printed.err and "while this was not running" not in printed.err:
            break
    assert (status, printed.err) == (0, "")
    assert "Written:" in printed.out
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
    program = [sys.executable, "-m", "dpfast.cli.main", *arguments(saved, out, **span)]
    # a pipe that stays open, as that of a producer that has nothing to say
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        while run.poll() is None and not ((out / "estimates.csv").exists() and len(rows(out)) > 2):
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGINT)
        assert run.wait() == 130
        missed, interrupted = run.stderr.read().decode().splitlines()
    assert missed.startswith("dpfast: steps 0 to ")
    assert "ended while this was not running; they count as zeros and are in missed.csv" in missed
    assert interrupted.startswith("dpfast: interrupted: what was published stays, and the same command goes on")
    assert len(rows(out)) > 2
