import csv
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.errors import DataError
from dpfast.releases.estimates_layout import HEADER, Layout
from dpfast.releases.feed.live_estimates_file import Journal
from dpfast.signals.events.declared_span import Span

HOURS = Span.parse("2013-01-01", "2013-01-01T03:00", "1h")
LAYOUT = Layout(HOURS, ("b", "a, c"), 0.5)
ESTIMATE = np.array([[0.1, -2.0, 1e-17], [3.0, np.pi, 1e300]])
TEXT = HEADER + LAYOUT.csv(0, ESTIMATE)


FORMULAS = Layout(HOURS, ("=1+1", "'=1+1", "-x", "+x", "@x", " =x", "-1", "'-1", "'s"), 0.5)


def test_groups_that_a_spreadsheet_would_compute_have_an_apostrophe(tmp_path):
    estimate = -np.arange(27.0).reshape(9, 3)
    rows = list(csv.reader((HEADER + FORMULAS.csv(0, estimate)).splitlines()))
    written = ["'=1+1", "''=1+1", "'-x", "'+x", "'@x", "' =x", "-1", "''-1", "'s"]
    assert [row[1] for row in rows[1:]] == written * 3
    assert [float(row[2]) for row in rows[1:]] == estimate.T.ravel().tolist()
    with Journal(tmp_path / "x.csv", FORMULAS) as journal:
        journal.append(0, estimate[:, :2])
    with Journal(tmp_path / "x.csv", FORMULAS) as journal:
        assert journal.position == 2
        journal.append(2, estimate[:, 2:])
    assert (tmp_path / "x.csv").read_text() == HEADER + FORMULAS.csv(0, estimate)


def test_a_file_that_began_without_apostrophes_goes_on(tmp_path):
    layout = Layout(HOURS, ("=x", "b"), 0.5)
    begun = HEADER + "2013-01-01T00:00:00,=x,0.1,0.5\n2013-01-01T00:00:00,b,3.0,0.5\n"
    (tmp_path / "x.csv").write_text(begun)
    with Journal(tmp_path / "x.csv", layout) as journal:
        assert journal.position == 1
        journal.append(1, ESTIMATE[:, 1:])
    assert (tmp_path / "x.csv").read_text() == begun + layout.csv(1, ESTIMATE[:, 1:])


def test_a_journal_is_the_file_of_a_batch(tmp_path):
    path = tmp_path / "estimates.csv"
    with Journal(path, LAYOUT) as journal:
        assert (journal.position, path.read_text()) == (0, HEADER)
        for first, last in ((-2, 0), (-1, 1), (0, 2), (2, 2), (2, 5)):
            columns = np.arange(first, last) % 3
            journal.append(first, ESTIMATE[:, columns])
            assert journal.position == max(0, min(last, 3))
            assert path.read_text() == HEADER + LAYOUT.csv(0, ESTIMATE[:, : journal.position])
    assert path.read_text() == TEXT


def test_every_bin_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    with Journal(tmp_path / "x.csv", LAYOUT) as journal:
        journal.append(0, ESTIMATE[:, :1])
        journal.append(1, ESTIMATE[:, 1:])
    assert synced == [len(HEADER), len(HEADER + LAYOUT.csv(0, ESTIMATE[:, :1])), len(TEXT)]


@given(st.integers(0, len(TEXT)))
def test_wherever_a_file_was_cut_off_it_goes_on(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("journal") / "estimates.csv"
    path.write_text(TEXT[:length])
    with Journal(path, LAYOUT) as journal:
        whole = HEADER + LAYOUT.csv(0, ESTIMATE[:, : journal.position])
        assert path.read_text() == whole
        following = LAYOUT.csv(journal.position, ESTIMATE[:, journal.position : journal.position + 1])
        assert length < len(whole + following) or journal.position == 3
        journal.append(0, ESTIMATE)
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    "content",
    [
        "a\n",
        "time,group,estimate\n",
        TEXT.replace("a, c", "d"),
        TEXT.replace("T01", "T05"),
        HEADER + LAYOUT.csv(1, ESTIMATE[:, 1:]),
        "\0\n\xff\n\n",
        "\n\n",
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "estimates.csv"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match="must hold the first bins of this release"):
        Journal(path, LAYOUT)
    assert path.read_bytes() == content.encode("latin-1")


def test_a_file_that_an_earlier_version_began_goes_on_under_its_header(tmp_path):
    path, earlier = tmp_path / "estimates.csv", TEXT.replace("predicted_rmse_if_model_holds", "standard_error")
    path.write_text("".join(earlier.splitlines(keepends=True)[:4]))  # a bin, and half of another
    with Journal(path, LAYOUT) as journal:
        assert journal.position == 1
        journal.append(1, ESTIMATE[:, 1:])
    assert path.read_text() == earlier


def test_a_gap_is_refused(tmp_path):
    with Journal(tmp_path / "x.csv", LAYOUT) as journal, pytest.raises(DataError, match="must hold the 1 bins before"):
        journal.append(1, ESTIMATE[:, 1:])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 3)), max_size=12))
def test_writers_that_do_not_know_of_each_other_destroy_nothing(tmp_path_factory, appended):
    """Each adds what is missing to what the others have written, whatever it knew of the file."""
    path, there = tmp_path_factory.mktemp("journal") / "estimates.csv", 0
    with Journal(path, LAYOUT) as a, Journal(path, LAYOUT) as b, Journal(path, LAYOUT) as c:
        for who, first, n in appended:
            if first <= there:
                journal = (a, b, c)[who]
                journal.append(first, ESTIMATE[:, first : first + n])
                there = max(there, min(first + n, 3))
                assert journal.position == there
            assert path.read_text() == HEADER + LAYOUT.csv(0, ESTIMATE[:, :there])


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: os.truncate(path, len(HEADER))])
def test_a_file_that_somebody_takes_away_is_noticed(tmp_path, change):
    with Journal(tmp_path / "x.csv", LAYOUT) as journal:
        journal.append(0, ESTIMATE[:, :1])
        change(tmp_path / "x.csv")
        with pytest.raises(DataError, match="must hold the 1 bins before these, got 0: somebody has cut it off"):
            journal.append(1, ESTIMATE[:, 1:])
        assert journal.refresh() == 0
        journal.append(0, ESTIMATE)
    assert (tmp_path / "x.csv").read_text() == TEXT


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot write to .*: No such file or directory"):
        Journal(tmp_path / "none" / "x.csv", LAYOUT)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (None, [repr(1 / 3), ""]),
        (1 / 3, ["0.333", "0.333333"]),
        (4e-9, ["0.33333333333", "4e-09"]),
        (2e3, ["0.0", "2000"]),
    ],
)
def test_estimates_have_the_digits_that_matter_beside_their_error(error, shown):
    row = Layout(HOURS, ("a",), error).csv(0, np.array([[1 / 3]])).rstrip("\n")
    assert row.split(",")[2:] == shown
