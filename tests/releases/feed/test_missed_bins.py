import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DataError
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.missed_bins import count_missed, write_missed
from dpfast.signals.events.declared_span import Span

LAYOUT = Layout(Span.parse("2013-01-01T00:00Z", "2013-01-01T12:00Z", "1h"), ("a", "b"), 0.5)


def hour(n):
    return f"2013-01-01T{n:02}:00:00Z"


def text(*intervals):
    return "from,until\n" + "".join(f"{hour(first)},{hour(end)}\n" for first, end in intervals)


def test_intervals_of_several_runs(tmp_path):
    path = tmp_path / "missed.csv"
    for missed, expected in [
        (range(0), text()),
        (range(2, 4), text((2, 4))),
        (range(4, 4), text((2, 4))),
        (range(4, 6), text((2, 6))),  # one interval, though of two runs
        (range(7, 9), text((2, 6), (7, 9))),
        (range(7, 7), text((2, 6))),  # the bins from 7 on were not published, and the clock was set back
        (range(5, 8), text((2, 8))),
        (range(9, 12), text((2, 8), (9, 12))),
    ]:
        write_missed(path, LAYOUT, missed)
        assert path.read_text() == expected


def test_bins_of_a_file_are_counted(tmp_path):
    hour_us = 3_600_000_000
    assert count_missed(tmp_path, hour_us) == 0
    for missed, n in [(range(0), 0), (range(2, 3), 1), (range(5, 9), 5)]:
        write_missed(tmp_path / "missed.csv", LAYOUT, missed)
        assert count_missed(tmp_path, hour_us) == n
    for other in ("", "from,until\nhere,there\n", "a,b\n2013-01-01,2013-01-02\n", "from,until\n2013-01-01\n"):
        (tmp_path / "missed.csv").write_text(other)
        assert count_missed(tmp_path, hour_us) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=6))
def test_marked_are_the_bins_of_all_runs(tmp_path_factory, runs):
    """Each misses some bins and publishes them, and then publishes some more."""
    path, position, expected = tmp_path_factory.mktemp("missed") / "missed.csv", 0, set()
    for missed, more in runs:
        end = min(position + missed, 12)
        write_missed(path, LAYOUT, range(position, end))
        expected |= set(range(position, end))
        position = min(end + more, 12)
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
        hours = [(int(first[11:13]), int(end[11:13])) for first, end in rows]
        assert {n for first, end in hours for n in range(first, end)} == expected
        assert len({x for pair in hours for x in pair}) == 2 * len(hours)  # none touch


@pytest.mark.parametrize(
    "content",
    [
        "",
        "from\n",
        "until,from\n",
        text((4, 2)),
        text((2, 2)),
        text((4, 5), (2, 3)),
        text((2, 3)).replace("02:00", "02:30"),
        text((2, 3)) + "x\n",
        "from,until\n2013-01-01T02:00:00,2013-01-01T03:00:00\n",
        "\ufffd\0",
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "missed.csv"
    path.write_text(content)
    with pytest.raises(DataError, match="must hold intervals of bins of this release"):
        write_missed(path, LAYOUT, range(5, 6))
    assert path.read_text() == content
