"""The bar on a terminal and nothing elsewhere; the log."""

import io
import logging
import sys

import pytest

from dpfast._support.errors import MissingExtraError
from dpfast.simulation.sweep.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when they are told to."""
    now = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


def watched(monkeypatch):
    """A terminal as wide as it needs to be, in place of what pytest has there during a test."""
    for size in ("COLUMNS", "LINES"):
        monkeypatch.delenv(size, raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def last(screen):
    return screen.getvalue().rpartition("\r")[2].strip()


def test_a_bar_has_cases_rate_time_left_and_the_widest_interval(monkeypatch, clock):
    screen = watched(monkeypatch)
    with Progress(True, 1000) as progress:
        progress.report_samples(3_000_000, 9_000_000, 5, None)
        for k in range(1, 11):
            clock[0] += 1
            progress.report_samples(3_000_000 + 100_000 * k, 9_000_000, 450, 0.016)
        text = last(screen)
        assert text.startswith("simulating:  44%")
        assert "4.00M/9.00M" in text
        assert "cases 450/1000 · widest ±0.8 %" in text
        assert "00:50" in text  # 5 million at 100 thousand a second: what was there before does not count
        assert "100ksample/s" in text


def test_the_time_left_follows_what_is_expected(monkeypatch, clock):
    screen = watched(monkeypatch)
    with Progress(True, 10) as progress:
        for k in range(21):
            clock[0] += 1
            progress.report_samples(100 * k, 2100 if k < 20 else 12_000, k, 0.1)
        assert "01:40" in last(screen)


def test_more_than_was_expected_is_all(monkeypatch, clock):
    screen = watched(monkeypatch)
    with Progress(True, 10) as progress:
        for k in range(3):
            clock[0] += 1
            progress.report_samples(100 * k, 150, k, None)
    assert "100%" in last(screen)


def test_designs_have_a_bar_of_their_own(monkeypatch, clock):
    screen = watched(monkeypatch)
    with Progress(True, 10) as progress:
        for k in range(4):
            clock[0] += 1
            progress.report_designs(k, 3)
        assert "3/3" in screen.getvalue()
        progress.report_samples(0, 100, 0, None)
    assert screen.getvalue().index("designing") < screen.getvalue().index("simulating")


def go(shown):
    with Progress(shown, 10) as progress:
        progress.report_designs(1, 2)
        progress.report_samples(50, 100, 1, 0.5)
        progress.report_samples(100, 100, 1, 0.5)


def test_there_is_nothing_on_a_terminal_unless_it_is_asked_for(monkeypatch):
    screen = watched(monkeypatch)
    go(False)
    assert screen.getvalue() == ""


def test_there_is_nothing_where_nobody_looks(capsys):
    go(True)
    assert capsys.readouterr() == ("", "")


def test_no_tqdm_is_said_when_a_bar_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtraError, match="progress"):
        Progress(True, 1)
    Progress(False, 1)


def test_the_log(caplog):
    with caplog.at_level(logging.INFO, "dpfast.studies"), Progress(False, 12) as progress:
        progress.report_designs(0, 2)
        progress.report_failure("case 3", "no such mechanism")
        progress.report_designs(2, 2)
        progress.report_stage(1, 12, 1_000_000)
        progress.report_samples(500, 2000, 1, None)
        progress.report_samples(1500, 2000, 12, 0.1)
    found = [(x.name, x.levelname, x.getMessage().partition(" in ")[0]) for x in caplog.records]
    assert {x[0] for x in found} == {"dpfast.studies"}
    assert [x[1:] for x in found] == [
        ("INFO", "sweep of 12 cases"),
        ("INFO", "designing 2 mechanisms"),
        ("WARNING", "no design for case 3: no such mechanism"),
        ("INFO", "designed 2 mechanisms"),
        ("INFO", "stage 1: 12 cases, 1000000 samples"),
        ("INFO", "finished: 1000 samples"),
    ]


def test_the_log_says_how_a_sweep_ended(caplog):
    with (
        caplog.at_level(logging.INFO, "dpfast.studies"),
        pytest.raises(KeyboardInterrupt),
        Progress(False, 12),
    ):
        raise KeyboardInterrupt
    assert caplog.records[-1].getMessage().startswith("ended by KeyboardInterrupt, what is finished is kept: 0 samples")


def test_the_library_adds_no_handler():
    assert logging.getLogger("dpfast.studies").handlers == []
