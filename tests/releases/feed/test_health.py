"""The public file that tells whether a stream is alive: by the clock, the span and what is published alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import commands
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import DataError
from dpfast.cli import release
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.health import Health
from dpfast.signals.events.declared_span import Span

SPAN = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:08Z", "1min")
LAYOUT = Layout(SPAN, ("a", "b"), None)
GRACE = 5_000_000


def at(minutes):
    return SPAN.start + int(minutes * 60e6)


class SetClock:
    """A clock that is set by hand."""

    def __init__(self, minutes):
        self.minutes = minutes

    def now(self):
        return at(self.minutes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "health.json"


def figures(path):
    return json.loads(path.read_text())


def test_the_figures(path):
    clock = SetClock(0.5)
    with Health(path, LAYOUT, GRACE, clock) as health:
        health.begin(0)
        assert figures(path) == {
            "state": "running",
            "written_at": "2020-01-01T00:00:30Z",
            "steps": 8,
            "published_steps": 0,
            "last_published_step": None,
            "last_published_bin": None,
            "delay_of_last_published_step_seconds": None,
            "lag_of_clock_seconds": 0,
        }
        clock.minutes = 5.0999  # bins 0 to 3 are due since 04:05, bin 4 since 05:05
        health.note_published(4)
        assert figures(path) == {
            "state": "running",
            "written_at": "2020-01-01T00:05:05Z",
            "steps": 8,
            "published_steps": 4,
            "last_published_step": 3,
            "last_published_bin": "2020-01-01T00:03:00Z",
            "delay_of_last_published_step_seconds": 60,
            "lag_of_clock_seconds": 0,
        }
        clock.minutes = 6.5  # it should have been published for 85 seconds
        health.wait()
        assert [figures(path)[x] for x in ("lag_of_clock_seconds", "published_steps")] == [85, 4]
    assert figures(path)["state"] == "stopped"


def test_it_is_written_at_most_once_a_second_and_at_least_every_ten_while_it_waits(path):
    clock = SetClock(0)
    with Health(path, LAYOUT, 0, clock) as health:
        health.begin(0)

        def written_after(seconds, act):
            path.unlink(missing_ok=True)
            clock.minutes += seconds / 60
            act()
            return path.exists()

        found = [written_after(x, lambda: health.note_published(1)) for x in (0.5, 0.4, 0.2, 0.9, 1.0)]
        assert found == [False, False, True, False, True]
        assert [written_after(x, health.wait) for x in (9, 0.9, 0.2, 9.9, 0.1)] == [False, False, True, False, True]
        assert written_after(-3, health.wait)  # the clock was set back


def test_the_end_of_the_span_is_told_from_a_stop(path):
    clock = SetClock(9)
    with Health(path, LAYOUT, GRACE, clock) as health:
        health.begin(7)
        health.note_published(8)
    assert [figures(path)[x] for x in ("state", "last_published_step", "lag_of_clock_seconds")] == ["ended", 7, 0]
    with Health(path, LAYOUT, GRACE, clock) as health:
        health.begin(6)
    assert [figures(path)[x] for x in ("state", "last_published_step", "lag_of_clock_seconds")] == ["stopped", 5, 115]


def test_what_did_not_begin_leaves_the_figures_of_before(path):
    with Health(path, LAYOUT, GRACE, SetClock(1)) as health:
        health.begin(3)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), Health(path, LAYOUT, GRACE, SetClock(2)):
        raise ZeroDivisionError
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["", "mine", '{"state": 1}'])
def test_another_file_is_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(DataError, match=r"must hold the health of this release, got something else: move it away$"):
        Health(path, LAYOUT, GRACE, SetClock(0))
    assert path.read_text() == content
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory; choose another folder$"):
        Health(path, LAYOUT, GRACE, SetClock(0))


def test_what_cannot_be_written_does_not_stop_what_is_published(path):
    with Health(path, LAYOUT, GRACE, SetClock(0)) as health:
        path.mkdir()
        health.begin(0)
    assert list(path.iterdir()) == []


# --- the command


@pytest.fixture
def live(tmp_path):
    mechanism = tmp_path / "mechanism.json"
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    dp.save(dp.lmmse(dp.Filter(np.ones(3) / 3), dp.Privacy(5, 1e-6), model, lag=2, prefilter=dp.Filter([1])), mechanism)
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:08Z", "period": "1min", "grace": "5s"}
    words = {"time": "t", "by": "s", "groups": ("a", "b"), "high": 3, "follow": True, "quiet": True}
    return commands.parse("release", "-", mechanism=str(mechanism), out=tmp_path / "out", **span, **words)


def follow(options, script):
    try:
        release.run(options, source=script, clock=script)
    except KeyboardInterrupt:
        pass
    finally:
        script.end()
    return figures(Path(options.out, "health.json"))


def line(minutes, group):
    return f"{at(minutes) // 10**6},{group}\n".encode()


ARRIVALS = [(at(-1), b"t,s\n"), *((at(t / 6 + 0.05), line(t / 6, "abc"[t % 3])) for t in range(48))]
FLOOD = [(at(-1), b"t,s\n"), *((at(0.1 + i / 999), line(0.1, "a") * 40) for i in range(99)), (at(2), b"\xff,\n")]


def test_the_command_keeps_the_figures_whatever_the_events_are(live):
    seen = []
    for i, arrivals in enumerate(([], [(at(-1), b"t,s\n")], ARRIVALS, FLOOD)):
        options = commands.modify(live, out=f"{live.out}{i}")
        stopped = follow(options, Script(at(0.5), arrivals, interrupt=at(3.5)))
        resumed = follow(options, Script(at(5.5), arrivals, interrupt=at(6.5)))
        seen.append((stopped, resumed, follow(options, Script(at(7.9), arrivals))))
    assert all(x == seen[0] for x in seen)
    assert [x["state"] for x in seen[0]] == ["stopped", "stopped", "ended"]
    assert [x["published_steps"] for x in seen[0]] == [3, 6, 8]
    assert [x["last_published_bin"] for x in seen[0]] == [f"2020-01-01T00:0{i}:00Z" for i in (2, 5, 7)]
