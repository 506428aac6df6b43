import csv
import itertools
import random
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DataError
from dpfast.releases.feed.event_lines import Event, Lines, read_blocks
from dpfast.signals.events.declared_counts import count_events
from dpfast.signals.events.declared_span import Span

SPAN = Span.parse("2013-01-01T00:00Z", "2013-01-01T02:00Z", "1h")
LINES = Lines(SPAN, ("a", "b"), "t", "s", "n", None)
HEADER = ("t", "s", "n")


class Pieces:
    """A source that gives bytes in pieces."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)

    def read(self, size):
        return next(self._pieces, b"")


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_lines_do_not_depend_on_the_pieces_in_which_they_come(content, cuts):
    edges = [0, *sorted(cuts), len(content)]
    pieces = [piece for i, j in itertools.pairwise(edges) if (piece := content[i:j])]
    lines = [line for block in read_blocks(Pieces(pieces)) for line in block]
    expected = content.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])


def test_a_line_that_never_ends_takes_no_memory_and_spoils_no_other():
    pieces = [
        b"first\nxx",
        *[b"x" * 60_000] * 5,
        b"\nnext\n",
        b"y" * 65_537 + b"\n",
        b"z" * 65_536 + b"\n" + b"x" * 70_000,
    ]
    lines = [line for block in read_blocks(Pieces(pieces)) for line in block]
    assert [line for line in lines if len(line) <= 65_536] == [b"first", b"next", b"z" * 65_536]
    assert len(lines) == 6
    tracemalloc.start()
    assert (
        sum(len(line) for block in read_blocks(Pieces(itertools.repeat(bytes(60_000), 200))) for line in block)
        == 65_537
    )
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_lines_become_events():
    lines = [b"2013-01-01T00:30Z,b,2", b'"2013-01-01T02:30+01:00","a",7\r', b"1356998400,a,0", b"1357002000000,b,1"]
    assert LINES.events(HEADER, lines) == [Event(0, 1, 2), Event(1, 0, 7), Event(0, 0, 0), Event(1, 1, 1)]
    alone = Lines(SPAN, ("all",), "t", None, None, "%d/%m/%Y %H:%M %z")
    assert alone.events(("x", "t"), [b",01/01/2013 01:59 +0000"]) == [Event(1, 0, 1)]
    assert LINES.events(HEADER, []) == []


BAD = [
    *[b"", b",", b"\0", b"\xff\xfe", b"t,s,n", b"2013-01-01T00:30Z,a", b"2013-01-01T00:30Z,a,1,", b'"', b'2013,"a"b,1'],
    *[b"2013-01-01T00:30,a,1", b"2013-01-01,a,1", b"now,a,1", b"5,a,1", b"2013-01-01T00:30Z,c,1"],
    *[b"2012-12-31T23:59Z,a,1", b"2013-01-01T02:00Z,a,1", b"9999-12-31T23:59Z,a,1", b"0001-01-01T00:00Z,a,1"],
    *[b"2013-01-01T00:30Z,a,-1", b"2013-01-01T00:30Z,a,0.5", b"2013-01-01T00:30Z,a,1e99", b"2013-01-01T00:30Z,a,nan"],
    *[b"2013-01-01T00:30Z,a,", b"1e9999,a,1", b"2013-01-01T00:30Z,,1", b"2013-01-01T00:30Z,a\r,1"],
]


@pytest.mark.parametrize("bad", BAD)
def test_other_lines_are_left_out_alone(bad, capsys):
    good = b"2013-01-01T00:30Z,a,1"
    assert LINES.events(HEADER, [good, bad, good]) == [Event(0, 0, 1)] * 2
    assert capsys.readouterr() == ("", "")


pieces = st.sampled_from(
    [b"2013-01-01T00:30Z", b"1356998400", b"a", b"1", b",", b'"', b"\r", b"\xc3", b"\0", b"2013-01-01"]
)
any_line = st.one_of(st.binary(max_size=40), st.lists(pieces, max_size=7).map(b"".join)).map(
    lambda x: x.replace(b"\n", b"")
)


@given(st.lists(any_line, max_size=5), st.sampled_from([None, "%Y-%m-%d", "%H%z", "%Y-%m-%dT%H:%M%z"]))
def test_an_event_does_not_depend_on_the_lines_around_it(lines, time_format):
    form = Lines(SPAN, ("a", "b"), "t", "s", "n", time_format)
    assert form.events(HEADER, lines) == [event for line in lines for event in form.events(HEADER, [line])]


def odd_lines(n, seed):
    """Sound lines with bytes changed, cut, doubled and put in, each with a word that nobody may see."""
    choice = random.Random(seed)
    bits = [b"", b",", b'"', b'""', b"\r", b"\0", b"\xff", b"\xc3", "\u2028".encode(), "\uff11".encode()]
    bits += [b"nan", b"1e999", b"-1", b"=1+1", b"9" * 400, b"0x1", b"T24:00", b"+99:99", b"Z", b" ", b"\t", b";", b"a"]
    for _ in range(n):
        line = choice.choice([b"2013-01-01T00:30Z,a,1", b'"2013-01-01T01:30+01:00","b",2', b"1356998400,a,0"])
        line = line.replace(b"a", b"SECRET") if choice.random() < 0.5 else line + b"SECRET"
        for _ in range(choice.randrange(1, 5)):
            at, end = sorted(choice.randrange(len(line) + 1) for _ in range(2))
            line = choice.choice(
                [
                    line[:at] + choice.choice(bits) + line[at:],
                    line[:at] + choice.choice(bits) + line[end:],
                    line[:at] + bytes([choice.randrange(256)]) + line[at + 1 :],
                    line[:end] + line[at:],
                ]
            )
        yield line.replace(b"\n", b"")


@pytest.mark.parametrize("n", [100, pytest.param(20_000, marks=pytest.mark.long)])
def test_odd_lines_spoil_no_others_and_are_not_shown(n, capsys):
    good, expected = b"2013-01-01T00:30Z,a,1", []
    lines = list(odd_lines(n, seed=n))
    for line in lines:
        alone = LINES.events(HEADER, [line])
        assert len(alone) <= 1
        expected += [Event(0, 0, 1), *alone]
    assert LINES.events(HEADER, [x for line in lines for x in (good, line)]) == expected
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("n", [100, pytest.param(20_000, marks=pytest.mark.long)])
def test_odd_lines_of_a_file_are_counted_or_refused_without_being_shown(n, tmp_path, capsys):
    path, refused = tmp_path / "log.csv", 0
    for line in odd_lines(n, seed=n + 1):
        path.write_bytes(b"t,s,n\n2013-01-01T00:30Z,a,1\n" + line + b"\n2013-01-01T00:40Z,a,1\n")
        said = None
        try:
            counted = count_events(path, SPAN, ("a", "b"), time="t", by="s", count="n")
        except DataError as error:
            said = str(error)
        assert counted.counts[0, 0] >= 1 if said is None else "log.csv" in said and "SECRET" not in said
        refused += said is not None
    assert n // 10 < refused < n
    assert capsys.readouterr() == ("", "")


times = st.integers(-70, 140).map(lambda m: f"2013-01-0{1 + (m >= 0)}T{m % 1440 // 60:02}:{m % 60:02}")


@given(st.lists(st.tuples(times, st.sampled_from(["Z", "+01:00"]), st.sampled_from("abc"), st.integers(0, 5))))
def test_sound_lines_count_as_those_of_a_file_do(tmp_path_factory, rows):
    span = Span.parse("2013-01-01T23:00Z", "2013-01-02T02:00Z", "30min")
    path = tmp_path_factory.mktemp("lines") / "log.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *((time + zone, group, n) for time, zone, group, n in rows)])
    log = count_events(path, span, ("a", "b"), time="t", by="s", count="n")
    counts = [[0] * span.n_bins for _ in "ab"]
    header, *lines = path.read_bytes().split(b"\n")
    form = Lines(span, ("a", "b"), "t", "s", "n", None)
    for event in form.events(form.header(header), lines):
        counts[event.group][event.bin] += event.weight
    assert log.counts.tolist() == counts


MAIL = [b'"Tue, 1 Jan 2013 00:30:00 GMT",a,1', b'"31 Dec 2012 20:30 -0500",b,2']


def test_dates_of_mail_become_events():
    assert LINES.events(HEADER, MAIL) == [Event(0, 0, 1), Event(1, 1, 2)]


@pytest.mark.parametrize("time_format", [None, "%Y-%m-%d %H:%M:%S.%f%z", "%Y-%m-%d %H:%M:%S.%f %Z"])
@pytest.mark.parametrize("fraction", [b"5", b"123456789"])
def test_a_far_date_spoils_no_other_line(time_format, fraction):
    """Nor a time that its zone skips: pandas refused both for all texts that it got together."""
    form = Lines(SPAN, ("a", "b"), "t", "s", "n", time_format)
    zone = b" UTC" if time_format and "%Z" in time_format else b"Z"
    far = [b"9999-12-31 23:59:59." + fraction + zone + b",a,1", b"0001-01-01 00:00:00.5" + zone + b",a,1"]
    skipped = [b"2013-03-10 02:30:00.5 America/New_York,a,1", b"9999-12-31 23:59:00.5 America/New_York,a,1"]
    good = b"2013-01-01 00:30:00." + fraction + zone + b",b,1"
    assert form.events(HEADER, [good, *far, good, *skipped, good]) == [Event(0, 1, 1)] * 3


def test_headers():
    assert LINES.header(b't,"s",n,\xc3\xa9\r') == ("t", "s", "n", "é")
    assert LINES.header(b"\xef\xbb\xbfn,s,t") == ("n", "s", "t")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"time,s,n", "standard input: no column 't' in the header \\(3 columns found\\)"),
        (b"t,s,n,s", "standard input must have one column 's'"),
        (b"2013-01-01T00:30Z,a,1", "no column 't' in the header"),
        (b"", "standard input must begin with a line of column names"),
        (b"\xff", "standard input must begin with a line of column names"),
        (b't,s,"n', "standard input must begin with a line of column names"),
    ],
)
def test_other_headers_are_refused(line, message):
    with pytest.raises(DataError, match=message):
        LINES.header(line)


@pytest.mark.parametrize("line", [b"1" * 60_000 + b"x,a,1", b"1577836801,a," + b"1" * 60_000 + b"x"])
def test_no_line_takes_long(line):
    """It would hold up the events of others, and the publication: these took a minute."""
    start = time.process_time()
    assert LINES.events(HEADER, [line]) == []
    assert time.process_time() - start < 6
