import random
import threading
import time

import numpy as np
import pytest
from helpers.scripts import Script
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DataError
from dpfast.releases.feed.clock import Feed, SystemClock, Tally
from dpfast.releases.feed.event_lines import Event, Lines
from dpfast.signals.events.declared_span import Span

SECOND = 1_000_000
SPAN = Span(1_000_000_000 * SECOND, 10 * SECOND, 6, True)
LINES = Lines(SPAN, ("a", "b"), "t", "s", None, None)


def at(seconds):
    return SPAN.start + int(seconds * SECOND)


def line(seconds, group):
    return f"{at(seconds) // SECOND}.{at(seconds) % SECOND:06},{group}\n".encode()


def fed(script, *, first=0, grace=0, lines=LINES):
    """All that is handed over: (bin, counts, moment)."""
    feed = Feed(script, lines, first=first, grace=grace * SECOND, clock=script)
    try:
        return [(bin, counts.tolist(), script.now()) for bin, counts in feed.bins()]
    finally:
        script.end()


HEADER = (at(-5), b"t,s\n")


def test_bins_are_handed_over_at_their_end_whatever_comes():
    silent = fed(Script(at(-5), []))
    busy = fed(Script(at(-5), [HEADER, *((at(t / 3), line(t / 3, "ab"[t % 2])) for t in range(200))]))
    assert [(bin, moment) for bin, _, moment in silent] == [(i, at(10 * i + 10)) for i in range(6)]
    assert [x[::2] for x in busy] == [x[::2] for x in silent]
    assert all(counts == [[0], [0]] for _, counts, _ in silent)
    assert sum(np.sum(counts) for _, counts, _ in busy) > 150


def test_late_events_are_dropped_and_those_of_the_future_wait():
    arrivals = [HEADER, (at(1), line(55, "a")), (at(2), line(5, "b")), (at(11), line(9, "a")), (at(12), line(12, "b"))]
    counts = [counts for _, counts, _ in fed(Script(at(-5), arrivals))]
    assert counts == [[[0], [1]], [[0], [1]], [[0], [0]], [[0], [0]], [[0], [0]], [[1], [0]]]


def test_grace_waits_for_what_is_on_its_way():
    handed = fed(Script(at(-5), [HEADER, (at(12), line(9, "a")), (at(14), line(9, "b"))]), grace=3)
    assert [moment for *_, moment in handed] == [at(10 * i + 13) for i in range(6)]
    assert [counts for _, counts, _ in handed][:2] == [[[1], [0]], [[0], [0]]]


def test_missed_bins_are_zeros_at_once_though_their_events_wait():
    waiting = [(at(0), b"t,s\n"), *((at(1), line(t, "a")) for t in (1, 5, 12, 25, 31))]
    handed = fed(Script(at(26), waiting))
    assert handed[0] == (0, [[0, 0], [0, 0]], at(26))
    assert [x[0] for x in handed] == [0, 2, 3, 4, 5]
    assert handed[1] == (2, [[1], [0]], at(30))
    assert handed[2] == (3, [[1], [0]], at(40))


def test_a_bin_within_its_grace_is_not_missed():
    assert fed(Script(at(21), []), grace=2)[0] == (0, [[0], [0]], at(21))
    assert fed(Script(at(21), []), grace=2)[1] == (1, [[0], [0]], at(22))


def test_it_goes_on_where_an_earlier_process_ended():
    handed = fed(Script(at(47), [(at(46), b"t,s\n" + line(15, "a"))]), first=1)
    assert [(bin, np.shape(counts), moment) for bin, counts, moment in handed] == [
        (1, (2, 3), at(47)),
        (4, (2, 1), at(50)),
        (5, (2, 1), at(60)),
    ]
    assert fed(Script(at(47), []), first=6) == []
    assert [x[0] for x in fed(Script(at(5), []), first=3)] == [3, 4, 5]  # the clock was set back
    (all_at_once,) = fed(Script(at(1000), []))
    assert np.shape(all_at_once[1]) == (2, 6)


def test_long_pauses_come_in_pieces():
    span = Span(SPAN.start, SECOND, 10_000, True)
    lines = Lines(span, ("all",), "t", None, None, None)
    handed = fed(Script(at(9_999.5), []), lines=lines)
    assert [(bin, np.shape(counts)) for bin, counts, _ in handed] == [
        (0, (1, 4096)),
        (4096, (1, 4096)),
        (8192, (1, 1807)),
        (9999, (1, 1)),
    ]


def test_the_end_of_the_source_does_not_end_the_feed():
    handed = fed(Script(at(-5), [HEADER, (at(1), line(1, "a")), (at(2), line(2, "a").strip()), (at(3), b"")]))
    assert [counts for _, counts, _ in handed] == [[[2], [0]], *[[[0], [0]]] * 5]


class Broken(Script):
    def read(self, size):
        self._reader = threading.current_thread()
        raise OSError("the pipe broke")


def test_a_source_that_breaks_off_is_one_that_ends():
    assert len(fed(Broken(at(-5), []))) == 6


def test_a_header_without_the_columns_ends_the_feed():
    script = Script(at(-5), [(at(3), b"when,s\n")])
    with pytest.raises(DataError, match="standard input: no column 't' in the header"):
        fed(script)
    assert script.now() < at(10)


@pytest.mark.parametrize("kind", [RuntimeError, DataError])
def test_a_fault_of_reading_ends_the_feed_and_shows_nothing_that_came(monkeypatch, capsys, kind):
    def fault(*arguments):
        raise kind("secret")

    monkeypatch.setattr(Lines, "events", fault)
    script = Script(at(-5), [HEADER, (at(3), line(3, "a"))])
    with pytest.raises(DataError, match=rf"by a fault of dpfast \({kind.__name__}\)") as refused:
        fed(script)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is refused.value.__cause__ is None
    assert script.now() <= at(10)
    assert capsys.readouterr() == ("", "")


def test_malformed_lines_change_nothing(capsys):
    good = [HEADER, (at(1), line(1, "a")), (at(2), line(2, "b"))]
    bad = [(at(1.5), x + b"\n") for x in (b'"', b"\xff", b"x" * 70_000, b"now,a", b"1e999,a", b"", b"a,b,c,d", b",")]
    assert fed(Script(at(-5), good + bad)) == fed(Script(at(-5), good))
    assert capsys.readouterr() == ("", "")


events = st.lists(
    st.tuples(st.integers(-50, 650), st.integers(-20, 700), st.sampled_from("abc")), max_size=12
)  # tenths of a second: of the event, of its arrival


@given(events, st.integers(-30, 300), st.integers(0, 4), st.sampled_from([0, 3, 15]))
def test_same_as_the_naive_twin(events, start, first, grace):
    events = [(t, arrival + 0.5, group) for t, arrival, group in events]  # never at the very end of a bin
    script = Script(
        at(start / 10), [HEADER, *((at(arrival / 10), line(t / 10, group)) for t, arrival, group in events)]
    )
    handed = fed(script, first=first, grace=grace)
    deadlines = [100 * (i + 1) + 10 * grace for i in range(6)]
    expected = np.zeros((2, 6), int)
    for t, arrival, group in events:
        i = t // 100
        if group in "ab" and 0 <= i < 6 and arrival < deadlines[i] and start < deadlines[i]:
            expected["ab".index(group), i] += 1
    counts = np.concatenate([np.zeros((2, first)), *(x[1] for x in handed)], axis=1)
    expected[:, :first] = 0
    assert counts.tolist() == expected.tolist()
    for bin, x, moment in handed:
        assert moment == at(max(start, deadlines[bin + np.shape(x)[1] - 1]) / 10)


class Jumping(Script):
    """A clock that is set forward and back while it is waited for; what comes goes by the true time."""

    def __init__(self, start, arrivals, choice, n_jumps):
        super().__init__(start, arrivals)
        self._choice, self._jumps, self._offset, self.n_done = choice, n_jumps, 0, 0

    def now(self):
        return self._now + self._offset

    def true(self):
        return self._now

    def sleep_until(self, moment):
        super().sleep_until(moment - self._offset)
        if self.n_done < self._jumps and self._choice.random() < 0.2:
            self._offset += int(self._choice.uniform(-45, 30) * SECOND)
            self.n_done += 1


def jumping(seed, arrivals):
    """All that is handed over: (bin, counts, moment by a clock that jumps, true moment); and how often it jumped."""
    script = Jumping(at(-5), arrivals, random.Random(seed), 8)
    try:
        feed = Feed(script, LINES, first=0, grace=0, clock=script)
        return [(bin, x.tolist(), script.now(), script.true()) for bin, x in feed.bins()], script.n_done
    finally:
        script.end()


@pytest.mark.parametrize("n", [10, pytest.param(400, marks=pytest.mark.long)])
def test_whatever_the_clock_is_set_to_bins_are_handed_over_once_and_say_no_more(n):
    seed = n_jumps = 0
    while n_jumps < n:
        seed, choice = seed + 1, random.Random(-seed)
        events = [(choice.randrange(0, 60), choice.uniform(-4, 90)) for _ in range(30)]
        arrivals = [HEADER, *((at(arrival), line(t, "a")) for t, arrival in events)]
        handed, n_done = jumping(seed, arrivals)
        silent, _ = jumping(seed, [HEADER])
        assert [x[0] for x in handed] == list(range(6))
        assert [(bin, *moments) for bin, _, *moments in handed] == [(bin, *moments) for bin, _, *moments in silent]
        for bin, counts, moment, true in handed:
            assert moment >= at(10 * bin + 10)
            assert counts == [[sum(t // 10 == bin and at(arrival) <= true for t, arrival in events)], [0]]
        n_jumps += n_done


def test_a_tally_stays_at_the_largest():
    tally = Tally(1, 0)
    for _ in range(2000):
        tally.add(Event(3, 0, 2**53))
    assert tally.close(3).tolist() == [[2**53]]


def test_a_bin_that_is_over_stays_so():
    tally = Tally(2, 1)
    for bin in (0, 1, 2):
        tally.add(Event(bin, 1, 1))
    assert [tally.close(bin).tolist() for bin in (1, 2)] == [[[0], [1]]] * 2
    for bin in (0, 1, 2):
        tally.add(Event(bin, 1, 1))
        assert tally.close(bin).tolist() == [[0], [0]]


def test_interrupts_pass():
    with pytest.raises(KeyboardInterrupt):
        fed(Script(at(-5), [], interrupt=at(33)))


def test_the_clock_of_the_machine():
    clock = SystemClock()
    before, now, after = time.time() * 1e6, clock.now(), time.time() * 1e6
    assert before - SECOND < now < after + SECOND
    clock.sleep_until(now + 20_000)
    assert clock.now() >= now + 19_000
    clock.sleep_until(0)
