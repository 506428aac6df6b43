"""What is said while bins are followed: by the clock and the declared span alone, but for what is marked PRIVATE."""

import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import commands
from helpers.scripts import Script

import dpfast as dp
from dpfast.cli import release
from dpfast.releases.stderr_messages import heartbeat
from dpfast.releases.stream import Stream
from dpfast.signals.events.declared_span import Span

SPAN = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:08Z", "1min")


def at(minutes):
    return SPAN.start + int(minutes * 60e6)


def clock(minutes):
    return f"2020-01-01T00:{minutes:02}:00Z"


def line(minutes, group):
    return f"{at(minutes) // 10**6},{group}\n".encode()


ARRIVALS = [(at(-1), b"t,s\n"), *((at(t / 6 + 0.05), line(t / 6, "abc"[t % 3])) for t in range(48))]


@pytest.fixture(scope="session")
def mechanism(tmp_path_factory):
    """Of lag 2."""
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    dp.save(dp.lmmse(dp.Filter(np.ones(3) / 3), dp.Privacy(5, 1e-6), model, lag=2, prefilter=dp.Filter([1])), path)
    return str(path)


@pytest.fixture
def live(mechanism, tmp_path):
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:08Z", "period": "1min"}
    words = {"time": "t", "by": "s", "groups": ("a", "b"), "high": 3, "follow": True}
    return commands.parse("release", "-", mechanism=mechanism, out=tmp_path / "out", **span, **words)


def follow(options, script):
    try:
        return release.run(options, source=script, clock=script)
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        script.end()


FORGOTTEN = "; of events that came before, those of bins that are not over count only where they are sent again"


def missed(options):
    return Path(options.out, "missed.csv").read_text()


def said(capsys):
    return [line.removeprefix("dpfast: ") for line in capsys.readouterr().err.splitlines()]


def test_a_stream_says_how_far_it_is(live, capsys):
    follow(live, Script(at(-1), ARRIVALS))
    assert said(capsys) == [f"{n} of 8 steps are published, those before {clock(n)}" for n in range(1, 9)]
    assert missed(live) == "from,until\n"


def test_where_it_resumed_and_which_bins_ended_meanwhile(live, capsys):
    follow(live, Script(at(-1), ARRIVALS, interrupt=at(2.5)))
    capsys.readouterr()
    follow(live, Script(at(4.5), [(at(4.5), b"t,s\n"), (at(4.5), line(3.5, "a"))], interrupt=at(6.5)))
    steps = f"steps 2 to 3, from {clock(2)} until {clock(4)}, ended while this was not running"
    assert said(capsys) == [
        f"resumed at step 2 of 8, which begins at {clock(2)}{FORGOTTEN}",
        f"{steps}; they count as zeros and are in missed.csv",
        f"6 of 8 steps are published, those before {clock(6)}",  # the first message after a minute
    ]
    assert missed(live) == f"from,until\n{clock(2)},{clock(4)}\n"
    follow(live, Script(at(6.7), ARRIVALS, interrupt=at(6.8)))  # no bin ended meanwhile
    assert said(capsys) == [f"resumed at step 6 of 8, which begins at {clock(6)}{FORGOTTEN}"]
    follow(live, Script(at(7.5), [], interrupt=at(7.6)))
    assert said(capsys)[1].startswith(f"step 6, from {clock(6)} until {clock(7)}, ended")
    follow(live, Script(at(20), []))
    assert said(capsys)[1].startswith(f"step 7, from {clock(7)} until {clock(8)}, ended")
    assert missed(live) == f"from,until\n{clock(2)},{clock(4)}\n{clock(6)},{clock(8)}\n"
    follow(live, Script(at(30), []))  # all is over
    assert said(capsys) == [f"resumed at step 8 of 8, which begins at {clock(8)}"]
    assert missed(live).count("\n") == 3


def test_bins_are_marked_before_they_are_published(live, monkeypatch):
    def crash(*_, **__):
        assert missed(live) == f"from,until\n{clock(0)},{clock(3)}\n"
        raise KeyboardInterrupt

    push = Stream.push
    monkeypatch.setattr(Stream, "push", crash)
    follow(live, Script(at(3.5), ARRIVALS))
    monkeypatch.setattr(Stream, "push", push)
    follow(live, Script(at(4.5), ARRIVALS))
    assert missed(live) == f"from,until\n{clock(0)},{clock(4)}\n"


def test_what_is_said_does_not_depend_on_the_events(live, capsys):
    results = []
    for i, arrivals in enumerate(([], ARRIVALS, [(at(-1), b"t,s\n"), (at(0.1), b"\xff\n")], ARRIVALS * 5)):
        options = commands.modify(live, out=f"{live.out}{i}")
        follow(options, Script(at(1.5), arrivals, interrupt=at(3.5)))
        follow(options, Script(at(5.5), arrivals))
        results.append((said(capsys), missed(options)))
    assert all(result == results[0] for result in results)
    assert len(results[0][0]) == 6


def test_quiet_says_nothing(live, capsys):
    quiet = commands.modify(live, quiet=True)
    follow(quiet, Script(at(1.5), ARRIVALS, interrupt=at(3.5)))
    follow(quiet, Script(at(5.5), ARRIVALS))
    assert said(capsys) == []
    assert missed(live).count("\n") == 3


def test_a_folder_of_before_goes_on(live):
    follow(live, Script(at(-1), ARRIVALS, interrupt=at(4.5)))
    Path(live.out, "missed.csv").unlink()
    follow(live, Script(at(6.5), ARRIVALS))
    assert missed(live) == f"from,until\n{clock(4)},{clock(6)}\n"


def test_long_bins_are_waited_for_aloud(live, capsys):
    hours = commands.modify(live, end="2020-01-01T05:00Z", period="150min")
    follow(hours, Script(at(-10), []))
    lines = said(capsys)
    assert [line[0] for line in lines] == ["0", "0", "1", "1", "1", "2"]  # once an hour, and at the ends
    assert lines[0] == "0 of 2 steps are published, those before 2020-01-01T00:00:00Z"
    assert lines[-1] == "2 of 2 steps are published, those before 2020-01-01T05:00:00Z"


def test_a_span_that_is_over_does_not_begin(live):
    with pytest.raises(ValueError, match=r"^end must be in the future with --follow: .* got '2020-01-01T00:08Z'$"):
        follow(live, Script(at(8), ARRIVALS))
    assert not Path(live.out).exists()
    follow(commands.modify(live, grace="10s"), Script(at(8), ARRIVALS))
    assert missed(live) == f"from,until\n{clock(0)},{clock(7)}\n"


# --- private counts


def test_private_counts_of_a_stream(live, capsys):
    arrivals = [*ARRIVALS, (at(0.06), b"nonsense\n\n"), (at(3), line(0.5, "a")), (at(4), b"x" * 70_000 + b"\n")]
    arrivals += [(at(6.5), line(6.4, "a"))] * 5
    options = commands.modify(live, private_counts=True)
    follow(options, Script(at(-1), arrivals))
    printed, shown = capsys.readouterr()
    assert "PRIVATE" not in printed
    lines = shown.splitlines()
    assert sum(line.startswith("dpfast: ") for line in lines) == 8
    assert all(line.startswith(("dpfast: ", "PRIVATE ")) for line in lines)
    assert lines[-9:] == [
        "PRIVATE rows: 56",
        "PRIVATE rows in the span: 54",
        "PRIVATE rows in the span of group 'a': 22",
        "PRIVATE rows in the span of group 'b': 16",
        "PRIVATE rows dropped, of a time outside of the span: 0",
        "PRIVATE rows dropped, of a group that is not declared: 16",
        "PRIVATE rows unparsed, without a time or a count that can be read: 2",
        "PRIVATE rows dropped, as they came after the end of their bin and the grace: 1",
        "PRIVATE counts clamped: 1 above --high 3, 0 below --low 0, of 16",
    ]
    other = commands.modify(live, out=f"{live.out}2")
    follow(other, Script(at(-1), arrivals))
    again, without = capsys.readouterr()
    assert again == printed
    assert without.splitlines() == [line for line in lines if line.startswith("dpfast: ")]
    names = [sorted(path.name for path in Path(x.out).iterdir()) for x in (options, other)]
    assert names[0] == names[1]
    times = [[row[:20] for row in Path(x.out, "estimates.csv").read_text().splitlines()] for x in (options, other)]
    assert times[0] == times[1]


def test_private_counts_are_shown_at_an_interrupt_too(live, capsys):
    follow(commands.modify(live, private_counts=True), Script(at(-1), ARRIVALS, interrupt=at(0.5)))
    assert "PRIVATE rows: 3" in capsys.readouterr().err


# --- a file


def test_a_file_is_released_under_one(live, tmp_path, monkeypatch, capsys):
    doing = []
    monkeypatch.setattr(release, "heartbeat", lambda shown, text: doing.append((shown, text)) or heartbeat(False, text))
    (tmp_path / "log.csv").write_text("t,s\n2020-01-01T00:00:30Z,a\n")
    options = commands.modify(live, events=str(tmp_path / "log.csv"), follow=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    release.run(options)
    for path in tmp_path.glob("out*/*"):
        path.unlink()
    release.run(commands.modify(options, quiet=True))
    assert doing == [(True, "releasing 8 steps of 2 groups"), (False, "releasing 8 steps of 2 groups")]
