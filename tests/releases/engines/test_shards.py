"""Shards: who is in which, what closes a piece, what is published of it, and for whom the guarantee is."""

import functools
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import forks

import dpfast as dp
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.engines.closed_pieces import close_bins, cut_pieces
from dpfast.releases.engines.pieces import Piece, delete_pieces, list_pieces, parse_path, read_piece, write_piece
from dpfast.releases.engines.shards import ColumnNames, Shards
from dpfast.releases.stream import Stream

GROUPS = ("ATL", "JFK", "LGA", "ORD", "SFO")
SPAN = dp.Span.parse("2030-01-01T00:00Z", "2030-01-01T02:00Z", "5min")  # 24 steps
MECHANISM = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
COLUMNS = ColumnNames("time", "airport")


def declared(folder, *, place=None, mechanism=MECHANISM, groups=GROUPS, k=1, **options):
    inputs = dp.Inputs(0, 9, n_streams=len(groups), streams_per_person=k)
    given = {"span": SPAN, "columns": COLUMNS, "n_shards": 2, "tolerance": 0.1} | options
    at = folder / "stores" if place is None else place
    return Shards(mechanism, at, inputs, groups=groups, published=folder / "published", **given)


def line(step, group, second=0, person=None):
    time = np.datetime64("2030-01-01T00:00:00") + np.timedelta64(300 * step + second, "s")
    return f"{time}Z,{group}" + ("" if person is None else f",{person}")


def log(folder, lines, header="time,airport", name="log.csv"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return folder / name


def counts_of(shards, paths):
    """All groups together."""
    pieces = [read_piece(path) for path in paths]
    assert [piece.shard for piece in pieces] == list(range(shards.n_shards))
    return np.concatenate([piece.inputs for piece in pieces])


# --- who is where ---------------------------------------------------------------------------------


def test_steps_times_streams_are_not_limited(tmp_path):
    span = dp.Span.parse("2030-01-01T00:00Z", "2040-01-01T00:00Z", "1s")
    shards = declared(tmp_path, span=span)
    assert shards.span.n_bins * len(shards.groups) > 10**9
    events = log(tmp_path, [line(0, "LGA"), line(0, "JFK"), line(0, "JFK")])
    assert counts_of(shards, cut_pieces(shards, events, tmp_path / "pieces", first=0, n_steps=1)).sum() == 3


@pytest.mark.parametrize("n_shards", [1, 2, 3, 5])
def test_every_group_is_in_one_shard_and_shards_are_as_equal_as_can_be(tmp_path, n_shards):
    shards = declared(tmp_path, n_shards=n_shards)
    found = [shards.groups_of(i) for i in range(n_shards)]
    assert sum(found, ()) == GROUPS
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert [shards.shard_of(group) for group in GROUPS] == [i for i, groups in enumerate(found) for _ in groups]
    with pytest.raises(ValueError, match="group must be a declared one"):
        shards.shard_of("LHR")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_shards": 0}, "n_shards must be"),
        ({"n_shards": 6}, "n_shards must be"),
        ({"columns": "time"}, "columns must be a ColumnNames"),
        ({"persons": dp.Persons()}, r"persons must be given with columns\.person"),
        ({"columns": ColumnNames("time", "airport", person="card")}, r"persons must be given with columns\.person"),
        ({"groups": ("ATL", "ATL")}, "groups"),
        ({"mechanism": "zero forcing"}, "mechanism must be"),
        (
            {
                "mechanism": dp.lmmse(
                    dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6), dp.ARMA([1], [1, -0.5]), tolerance=0.1
                )
            },
            "got the smoother",
        ),
        ({"tolerance": -1}, "tolerance must be"),
        ({"replay_steps": -1}, "replay_steps must be"),
        ({"replay_steps": 5, "keep_steps": 3}, r"keep_steps must be at least replay_steps \(5\)"),
        ({"witness": 3}, "witness must be a path"),
        ({"ledger": 3}, "ledger must be a path"),
        ({"delete_pieces": 1}, "delete_pieces must be True or False"),
        ({"last_block": "publish"}, "last_block must"),
        ({"persons": 3, "columns": ColumnNames("time", "airport", person="card")}, "persons must be a Persons"),
    ],
)
def test_declarations_are_checked(tmp_path, options, words):
    with pytest.raises((ValueError, DataError), match=words):
        declared(tmp_path, **options)


def test_local_clocks_and_other_numbers_of_streams_are_refused(tmp_path):
    options = {"groups": GROUPS, "columns": COLUMNS, "published": tmp_path / "out"}
    with pytest.raises(ValueError, match="span must be in UTC"):
        Shards(
            MECHANISM,
            tmp_path,
            dp.Inputs(0, 9, n_streams=5),
            span=dp.Span.parse("2030-01-01", "2030-01-02", "1d"),
            **options,
        )
    with pytest.raises(ValueError, match="inputs must have n_streams=5, one for each group, got 4"):
        Shards(MECHANISM, tmp_path, dp.Inputs(0, 9, n_streams=4), span=SPAN, **options)


# --- pieces ---------------------------------------------------------------------------------------


def test_the_end_of_a_file_closes_the_declared_steps_and_nothing_that_came_does(tmp_path):
    """Unknown keys make no stream; events of other steps, of the far future too, and unreadable rows change nothing."""
    shards = declared(tmp_path)
    plain = [line(0, "ATL"), line(1, "SFO"), line(1, "SFO", 30), line(3, "JFK")]
    noise = [line(0, "LHR"), line(9, "ATL"), line(10**6, "ATL"), "2031,ATL", "nonsense", 'a,"b', line(2, "")]
    expected = np.zeros((5, 4), int)
    expected[0, 0], expected[4, 1], expected[1, 3] = 1, 2, 1
    for name, lines in (("a", plain), ("b", [*noise, *plain, *noise])):
        paths = cut_pieces(shards, log(tmp_path / name, lines), tmp_path / name / "pieces", first=0, n_steps=4)
        assert counts_of(shards, paths).tolist() == expected.tolist()
        assert [parse_path(path)[1:] for path in paths] == [(0, 4)] * 2
    contents = [[path.read_bytes() for path in sorted((tmp_path / x / "pieces").rglob("*.piece"))] for x in "ab"]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("person", [None, "card"])
def test_parquet_is_cut_into_the_pieces_of_csv(tmp_path, person):
    """Rows in any order, of other keys and steps, without a person, and heavier than an event may be."""
    polars, options = pytest.importorskip("polars"), {}
    if person:
        options = {"persons": dp.Persons()}
    shards = declared(tmp_path, columns=ColumnNames("time", "airport", "n", person), **options)
    rng = np.random.default_rng(5)
    names = [*GROUPS, "LHR"]
    rows = [
        (
            line(rng.integers(-2, 9), names[rng.integers(6)], int(rng.integers(300))),
            int(rng.integers(4)),
            f"p{rng.integers(3)}",
        )
        for _ in range(200)
    ]
    table = [(*x.split(","), n, None if rng.random() < 0.1 else card) for x, n, card in rows]
    frame = polars.DataFrame(table, schema=["time", "airport", "n", "card"], orient="row")
    timed = frame.with_columns(polars.col("time").str.to_datetime(time_zone="UTC"))
    frame.write_csv(tmp_path / "log.csv")
    timed.write_parquet(tmp_path / "log.parquet")
    contents = []
    for name in ("log.csv", "log.parquet"):
        paths = cut_pieces(shards, tmp_path / name, tmp_path / name.replace(".", "-"), first=1, n_steps=7)
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]
    assert sum(content.count(b"\n") for content in contents[0]) > 30


def test_rows_of_parquet_that_cannot_be_read_are_left_out(tmp_path):
    """One of them changes nothing for anybody else, and no message tells of it."""
    polars = pytest.importorskip("polars")
    shards = declared(tmp_path, columns=ColumnNames("time", "airport", "n"))
    rows = [(*line(t, "ATL").split(","), 1.0) for t in range(3)]
    odd = [
        ("yesterday", "ATL", 1.0),
        (line(1, "JFK").split(",")[0], "JFK", -1.0),
        (line(1, "JFK").split(",")[0], "JFK", 2.5),
    ]
    contents = []
    for name, table in (("plain", rows), ("odd", [odd[0], *rows, *odd[1:]])):
        frame = polars.DataFrame(table, schema=["time", "airport", "n"], orient="row")
        frame.write_parquet(tmp_path / f"{name}.parquet")
        paths = cut_pieces(shards, tmp_path / f"{name}.parquet", tmp_path / name, first=0, n_steps=4)
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_what_a_crash_leaves_of_a_piece_goes(tmp_path):
    """It has inputs in it."""
    path = write_piece(tmp_path / "pieces", Piece(0, 0, np.ones((3, 2), int)))
    for write in (
        lambda: write_piece(tmp_path / "pieces", Piece(0, 2, np.ones((3, 2), int))),
        lambda: delete_pieces(tmp_path / "pieces", 0, 0),
    ):
        left = path.with_name(f".{path.name}.0123456789abcdef")
        left.write_bytes(path.read_bytes())
        write()
        assert not left.exists()
    assert len(list_pieces(tmp_path / "pieces", 0)) == 2


def test_bins_are_closed_by_one_process_and_behind_no_gap(tmp_path):
    shards = declared(tmp_path)
    first = close_bins(shards, io.BytesIO(), tmp_path / "pieces", clock=Ticking(SPAN.start))
    second = close_bins(shards, io.BytesIO(), tmp_path / "pieces", clock=Ticking(SPAN.start))
    assert next(first) == 0
    with pytest.raises(DataError, match="must have one closer of bins at a time"):
        next(second)
    first.close()
    assert next(close_bins(shards, io.BytesIO(), tmp_path / "pieces", clock=Ticking(SPAN.start))) == 1
    write_piece(tmp_path / "pieces", Piece(1, 4, np.ones((2, 2), int)))
    with pytest.raises(DataError, match="must have pieces one behind the other, got none from step 2 to 3"):
        close_bins(shards, io.BytesIO(), tmp_path / "pieces")


def test_no_content_is_shown_where_it_is_given_in_the_place_of_a_file(tmp_path):
    shards, secret = declared(tmp_path), "time,airport\n2030-01-01T00:00Z,s3cr3t\n"
    for act in (
        lambda: cut_pieces(shards, secret, tmp_path / "pieces", first=0, n_steps=1),
        lambda: cut_pieces(shards, secret.encode(), tmp_path / "pieces", first=0, n_steps=1),
        lambda: close_bins(shards, secret, tmp_path / "pieces"),
        lambda: close_bins(shards, secret.encode(), tmp_path / "pieces"),
    ):
        with pytest.raises(ValueError, match=r"must be .* got (text|bytes) of length 38") as error:
            act()
        assert "s3cr3t" not in str(error.value)


def test_a_file_without_a_row_closes_its_steps_too(tmp_path):
    shards = declared(tmp_path)
    paths = cut_pieces(shards, log(tmp_path, []), tmp_path / "pieces", first=4, n_steps=3)
    assert counts_of(shards, paths).tolist() == np.zeros((5, 3)).tolist()
    with shards.open(0) as shard, pytest.raises(ReleaseError, match="first must be at most the next step, 0, got 4"):
        shard.publish(paths[0])
    (tmp_path / "empty.csv").touch()
    with pytest.raises(DataError, match="must begin with a line of column names"):
        cut_pieces(shards, tmp_path / "empty.csv", tmp_path / "pieces", first=0, n_steps=1)


def test_a_piece_is_never_changed(tmp_path):
    shards = declared(tmp_path)
    first = cut_pieces(shards, log(tmp_path, [line(0, "ATL")]), tmp_path / "pieces", first=0, n_steps=2)
    assert cut_pieces(shards, log(tmp_path, [line(0, "ATL")]), tmp_path / "pieces", first=0, n_steps=2) == first
    with pytest.raises(DataError, match="is closed, with other inputs than these") as error:
        cut_pieces(shards, log(tmp_path, [line(0, "ATL"), line(1, "ATL")]), tmp_path / "pieces", first=0, n_steps=2)
    assert "ATL" not in str(error.value)
    assert (first[0].stat().st_mode & 0o777, first[0].parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sorted(x.name for x in first[0].parent.iterdir()) == [first[0].name]


@pytest.mark.parametrize("cut", [0, 5, 30, -1])
def test_a_damaged_piece_is_refused_without_a_word_about_it(tmp_path, cut):
    path = write_piece(tmp_path / "pieces", Piece(1, 3, np.array([[0, 7], [2, 0]])))
    assert read_piece(path).inputs.tolist() == [[0, 7], [2, 0]]
    content = path.read_bytes()
    for damaged in (content[:cut], content.replace(b"0,1,2", b"0,1,3"), b"\xff" + content):
        with pytest.raises(DataError, match="is damaged, or no piece"):
            read_piece(path, damaged)
    with pytest.raises(DataError, match="must be a piece"):
        read_piece(tmp_path / "other.csv")


def test_no_step_is_in_two_pieces(tmp_path):
    shards = declared(tmp_path)
    for first, n in ((4, 4), (0, 2), (10, 2)):
        cut_pieces(shards, log(tmp_path, []), tmp_path / "pieces", first=first, n_steps=n)
    for first, n in ((3, 2), (7, 9), (5, 1), (0, 12), (4, 3)):
        with pytest.raises(DataError, match=f"steps {first} to {first + n - 1} of shard 0 must be in one piece, got"):
            cut_pieces(shards, log(tmp_path, []), tmp_path / "pieces", first=first, n_steps=n)
    cut_pieces(shards, log(tmp_path, []), tmp_path / "pieces", first=2, n_steps=2)
    assert len(list_pieces(tmp_path / "pieces", 1)) == 4


@pytest.mark.parametrize("name", ["n_shards", "groups", "columns.time", "span.n_bins"])
def test_pieces_of_other_shards_are_refused(tmp_path, name):
    """Their inputs would be published as those of these; to cut into their folder would mix both."""
    other, file = another(tmp_path, name), log(tmp_path, [], header="time,when,airport")
    paths = cut_pieces(declared(tmp_path), file, tmp_path / "pieces", first=0, n_steps=3)
    for act in (
        lambda: cut_pieces(other, file, tmp_path / "pieces", first=3, n_steps=1),
        lambda: close_bins(other, io.BytesIO(), tmp_path / "pieces"),
        lambda: publish_one(other, paths[0]),
    ):
        with pytest.raises(DataError, match=rf"pieces must have pieces of these shards, got others, of other .*{name}"):
            act()
    (tmp_path / "pieces" / "pieces.json").write_text("{}")
    with pytest.raises(ReleaseError, match=r"is damaged: put back pieces\.json"):
        publish_one(declared(tmp_path / "new"), paths[0])


def publish_one(shards, piece):
    with shards.open(0) as shard:
        shard.publish(piece)


def test_wrong_arguments_are_named_when_pieces_are_cut(tmp_path):
    shards, file = declared(tmp_path), log(tmp_path, [], header="time,plane")
    with pytest.raises(DataError, match=r"log\.csv.*airport"):
        cut_pieces(shards, file, tmp_path / "pieces", first=0, n_steps=1)
    with pytest.raises(ValueError, match="shards must be a Shards"):
        cut_pieces("x", file, tmp_path / "pieces", first=0, n_steps=1)
    for wrong, words in (
        ((shards, io.BytesIO(), tmp_path, "x"), "grace must be"),
        ((shards, "log.csv", tmp_path, "1s"), "source must be a binary file"),
        ((shards, io.BytesIO(), 3, "1s"), "folder must be a path"),
        (("x", io.BytesIO(), tmp_path, "1s"), "shards must be a Shards"),
    ):
        with pytest.raises(ValueError, match=words):
            close_bins(*wrong[:3], grace=wrong[3])  # at the call, before a bin is waited for


def test_persons_come_through_a_piece_as_they_are(tmp_path):
    given = [(0, 1, 2, b"ada"), (0, 1, 1, b"\x00\xff,\n"), (2, 0, 1, b"ada")]
    steps, streams, values, persons = ([x[i] for x in given] for i in range(4))
    events = dp.Events(step=steps, stream=streams, value=values, person=persons, n_steps=3, n_streams=2)
    found = read_piece(write_piece(tmp_path / "pieces", Piece(0, 5, events))).inputs
    assert list(found.rows()) == given
    assert found.shape == (2, 3)


class Ticking:
    """A clock that tests set."""

    def __init__(self, now):
        self.time = now

    def now(self):
        return self.time

    def sleep_until(self, moment):
        self.time = max(self.time, moment)


def test_a_public_clock_closes_bins_whatever_came(tmp_path):
    """An event far in the future closes nothing, and begun again it goes on behind what was closed."""
    shards, clock = declared(tmp_path), Ticking(SPAN.start)
    lines = [line(0, "ATL"), line(20, "SFO"), line(10**6, "ATL"), line(1, "JFK")]
    source = io.BytesIO(("time,airport\n" + "\n".join(lines) + "\n").encode())
    closing = close_bins(shards, source, tmp_path / "pieces", grace="1min", clock=clock)
    assert [next(closing) for _ in range(3)] == [0, 1, 2]
    assert clock.time >= SPAN.time(3) + 60_000_000
    closing.close()
    rest = close_bins(shards, io.BytesIO(b"time,airport\n"), tmp_path / "pieces", grace="1min", clock=clock)
    assert list(rest) == list(range(3, 24))
    assert [[parse_path(x)[1] for x in list_pieces(tmp_path / "pieces", i)] for i in range(2)] == [list(range(24))] * 2


def test_behind_a_crash_each_shard_goes_on_where_it_was(tmp_path):
    """Of bins that ended while nothing ran, those that some shards had are cut off for them."""
    shards, clock = declared(tmp_path), Ticking(SPAN.time(9))
    for piece in (Piece(0, 0, np.ones((3, 5), int)), Piece(1, 0, np.ones((2, 3), int))):
        write_piece(tmp_path / "pieces", piece)
    closing = close_bins(shards, io.BytesIO(b"time,airport\n"), tmp_path / "pieces", grace="1us", clock=clock)
    assert next(closing) == 3
    found = [[parse_path(x)[1:] for x in list_pieces(tmp_path / "pieces", i)] for i in range(2)]
    assert found == [[(0, 5), (5, 8)], [(0, 3), (3, 8)]]
    assert len(list(closing)) == 24 - 8
    assert read_piece(list_pieces(tmp_path / "pieces", 0)[1]).inputs.tolist() == np.zeros((3, 3)).tolist()


def test_of_a_piece_what_is_behind_a_step_is_left():
    counts, events = np.arange(8).reshape(2, 4), dp.Events(step=[0, 2, 3], person=[1, 2, 3], n_steps=4, n_streams=2)
    for step in range(9):
        n = min(max(0, step - 3), 4)
        piece = Piece(1, 3, counts).behind(step)
        assert (piece.shard, piece.first, piece.inputs.tolist()) == (1, 3 + n, counts[:, n:].tolist())
        rest = Piece(1, 3, events).behind(step)
        rows = [(t - n, 0, 1, person) for t, person in ((0, b"1"), (2, b"2"), (3, b"3")) if t >= n]
        assert (rest.first, rest.end, list(rest.inputs.rows())) == (3 + n, 7, rows)


# --- publishing -----------------------------------------------------------------------------------


def delivered(shards, folder, lengths=(5, 1, 7, 11)):
    """Pieces of all steps."""
    first, paths = 0, []
    for n in lengths:
        lines = [line(t, GROUPS[(t + i) % 5], i) for t in range(first, first + n) for i in range(t % 4)]
        paths.append(
            cut_pieces(shards, log(folder, lines, name=f"{first}.csv"), folder / "pieces", first=first, n_steps=n)
        )
        first += n
    return paths


def test_pieces_are_published_once_however_often_they_are_delivered(tmp_path):
    shards = declared(tmp_path, replay_steps=9)
    paths = delivered(shards, tmp_path)
    for number in range(2):
        for upto in range(1, 5):  # each time all from the first on
            with shards.open(number) as shard:
                ends = [shard.publish(pieces[number]) for pieces in paths[:upto]]
                assert ends[-1] == shard.position == parse_path(paths[upto - 1][number])[2]
        result = dp.read_release(
            tmp_path / "stores" / f"shard-000{number}", published=tmp_path / "published" / f"shard-000{number}"
        )
        assert result.groups == shards.groups_of(number)
        table = (
            (tmp_path / "published" / f"shard-000{number}" / "estimates.csv").read_text(encoding="utf-8").splitlines()
        )
        assert len(table) == 1 + 24 * len(shards.groups_of(number))
        estimates = np.array([float(row.split(",")[2]) for row in table[1:]]).reshape(24, -1).T
        assert np.abs(estimates - result.estimate[:, :24]).max() < 0.1


def test_other_inputs_are_refused_while_stored_and_read_back_later(tmp_path):
    shards = declared(tmp_path, replay_steps=9, n_shards=1)
    paths = delivered(shards, tmp_path, (5, 4, 3, 2))
    with shards.open(0) as shard:
        for (path,) in paths:
            shard.publish(path)
        v = shard.stream.read(0, 14).privatized
        piece = read_piece(paths[2][0])
        with pytest.raises(ReleaseError, match="steps 9 to 11 are published, with other inputs"):
            shard.publish(Piece(0, 9, piece.inputs + 1))
        assert shard.publish(Piece(0, 0, read_piece(paths[0][0]).inputs + 1)) == 14  # not stored any more
        assert (shard.stream.read(0, 14).privatized == v).all()


def test_pieces_out_of_order_and_of_another_shard_are_refused(tmp_path):
    shards = declared(tmp_path)
    paths = delivered(shards, tmp_path, (5, 4))
    with shards.open(0) as shard:
        with pytest.raises(ReleaseError, match="first must be at most the next step, 0, got 5: a gap"):
            shard.publish(paths[1][0])
        with pytest.raises(DataError, match="piece must be of shard 0, got one of shard 1"):
            shard.publish(paths[0][1])
        with pytest.raises(DataError, match="piece must end at step 24 at most, got 25"):
            shard.publish(Piece(0, 0, np.zeros((3, 25), int)))
        assert shard.position == 0


def test_a_table_that_a_crash_left_behind_is_completed(tmp_path):
    shards = declared(tmp_path)
    with shards.open(0) as shard:
        shard.publish(Piece(0, 0, np.ones((3, 6), int)))
    table = tmp_path / "published" / "shard-0000" / "estimates.csv"
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    with shards.open(0):
        assert table.read_bytes() == whole


def count_open_files():
    folder = Path("/proc/self/fd")  # of Linux
    return len(list(folder.iterdir())) if folder.is_dir() else None


def test_a_foreign_table_leaves_nothing_open(tmp_path):
    """It is refused, and the shard can be opened as soon as it is gone."""
    shards, table = declared(tmp_path), tmp_path / "published" / "shard-0000" / "estimates.csv"
    with shards.open(0) as shard:
        shard.publish(Piece(0, 0, np.ones((3, 6), int)))
    table.write_text("something else\n")
    before = count_open_files()
    for _ in range(2):
        with pytest.raises(DataError, match="must hold the first bins of this release"):
            shards.open(0)
    assert count_open_files() == before
    table.unlink()
    with shards.open(0):
        assert len(table.read_text().splitlines()) == 1 + 6 * 3


def test_a_table_that_cannot_be_completed_leaves_nothing_open(tmp_path, monkeypatch):
    shards, table = declared(tmp_path), tmp_path / "published" / "shard-0000" / "estimates.csv"
    with shards.open(0) as shard:
        shard.publish(Piece(0, 0, np.ones((3, 6), int)))
    whole = table.read_text()
    table.unlink()
    before = count_open_files()
    with monkeypatch.context() as patched:
        patched.setattr(Stream, "read", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError) as error:
            shards.open(0)
    assert count_open_files() == before, error  # whose traceback has all that was open
    with shards.open(0):
        assert table.read_text() == whole


@pytest.mark.parametrize("replay", [0, 5])
def test_pieces_are_deleted_once_they_cannot_come_again(tmp_path, replay):
    shards = declared(tmp_path, replay_steps=replay, delete_pieces=True)
    paths = delivered(shards, tmp_path)  # 5, 1, 7 and 11 steps
    with shards.open(0) as shard:
        for pieces in paths:
            shard.publish(pieces[0])
            left = [parse_path(x)[1] for x in list_pieces(tmp_path / "pieces", 0)]
            there = [first for first, end in ((0, 5), (5, 6), (6, 13)) if end > shard.position - replay]
            assert left == [*there, 13]
            assert shard.publish(paths[0][0]) == shard.position  # deleted or not, it is published
            with pytest.raises(DataError, match="cannot read the piece"):
                shard.publish(paths[0][0].with_name("steps-000000000500-000000000501.piece"))
    assert len(list_pieces(tmp_path / "pieces", 1)) == 4
    rest = close_bins(shards, io.BytesIO(b""), tmp_path / "pieces", clock=Ticking(SPAN.time(30)))
    assert list(rest) == []
    with declared(tmp_path, replay_steps=20).open(0) as shard:  # under other settings too
        assert shard.publish(paths[0][0]) == 24


# --- one declaration ------------------------------------------------------------------------------


def another(folder, name):
    """Shards that differ in one respect."""
    columns = ColumnNames("time", "airport", person="card")
    one_event = dp.input_perturbation(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6))
    return {
        "n_shards": lambda: declared(folder, n_shards=3),
        "groups": lambda: declared(folder, groups=("ATL", "JFK", "BOS", "ORD", "SFO")),
        "columns.time": lambda: declared(folder, columns=ColumnNames("when", "airport")),
        "inputs.streams_per_person": lambda: declared(folder, k=2),
        "tolerance": lambda: declared(folder, tolerance=0.2),
        "span.n_bins": lambda: declared(folder, span=dp.Span.parse("2030-01-01T00:00Z", "2030-01-02T00:00Z", "5min")),
        "mechanism": lambda: declared(folder, mechanism=one_event),
        "persons": lambda: declared(folder, columns=columns, persons=dp.Persons(span=3)),
    }[name]()


NAMES = ("n_shards", "groups", "columns.time", "inputs.streams_per_person", "tolerance", "span.n_bins", "mechanism")


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.engines)])
def place(request, tmp_path):
    """Where shards are; None for the folder that tests have by default."""
    if request.param == "folder":
        return {}
    name = f"set-{abs(hash(tmp_path)) % 10**9}"
    return {"place": dp.Postgres(request.getfixturevalue("postgres_server").address, name)}


@pytest.mark.parametrize("name", [*NAMES, "persons"])
def test_shards_of_another_declaration_are_refused_also_where_they_have_no_store(tmp_path, name):
    """A stream would be in two stores: published twice."""
    with declared(tmp_path).open(0) as shard:
        shard.publish(Piece(0, 0, np.zeros((3, 2), int)))
    other = another(tmp_path, name)
    for number in range(other.n_shards):
        with pytest.raises(ReleaseError, match=rf"must be declared as they were begun, got other .*{name}"):
            other.open(number)
    assert not (tmp_path / "stores" / "shard-0001").exists()
    with pytest.raises(ReleaseError, match="epoch must be higher than"):
        declared(tmp_path).open(0, epoch=1)


def test_so_are_they_in_both_arbiters(tmp_path, place):
    with declared(tmp_path, **place).open(0):
        pass
    with declared(tmp_path, **place).open(1):
        pass
    with pytest.raises(ReleaseError, match="must be declared as they were begun, got other n_shards: declare them so"):
        declared(tmp_path, n_shards=3, **place).open(2)
    if place:
        with postgres_session(place["place"]) as session:
            session.execute("DROP TABLE shards")
    else:
        (tmp_path / "stores" / "shards.json").unlink()
    with pytest.raises(ReleaseError, match=r"the declaration of the shards at .* is missing"):
        declared(tmp_path, **place).open(0)


def postgres_session(place):
    from dpfast.releases.arbiters.postgres_session import PostgresSession

    return PostgresSession(place, "the test")


def test_a_declaration_on_the_disk_is_whole_and_in_one_place_alone(tmp_path):
    with declared(tmp_path).open(0):
        pass
    file, shown = tmp_path / "stores" / "shards.json", tmp_path / "published" / "shards.json"
    assert file.stat().st_mode & 0o777 == 0o600
    found, public = (json.loads(x.read_text()) for x in (file, shown))
    assert (found["id"], found["declared"]) == (public["id"], public["declared"])
    assert found["declared"]["groups"] == list(GROUPS)
    assert str(tmp_path) not in shown.read_text()
    whole, whole_shown = file.read_text(), shown.read_text()
    for damaged in (whole.replace("JFK", "EWR"), whole[:50], "", "[]"):
        file.write_text(damaged)
        with pytest.raises(ReleaseError, match=r"is damaged: put back shards\.json"):
            declared(tmp_path).open(1)
    file.write_text(whole)
    shown.write_text(whole_shown.replace("JFK", "EWR"))
    with pytest.raises(
        ReleaseError, match=r"published must be the folder of the shards at .* which has the shards\.json"
    ):
        declared(tmp_path).open(1)
    shown.unlink()
    with declared(tmp_path).open(1):
        assert shown.read_text() == whole_shown
    with pytest.raises(ReleaseError, match="published must be the folder of the shards at"):
        declared(tmp_path, place=tmp_path / "elsewhere").open(0)


def test_the_public_copy_of_a_declaration_can_be_put_back(tmp_path):
    """It does not say where the place was, so it is to be adopted, like one that was moved."""
    open_one(declared(tmp_path), 0)
    file = tmp_path / "stores" / "shards.json"
    file.unlink()
    shutil.copy(tmp_path / "published" / "shards.json", file)
    file.chmod(0o600)
    with pytest.raises(ReleaseError, match=r"were copied or moved.*adopt=True"):
        declared(tmp_path).open(1)
    with declared(tmp_path).open(1, adopt=True):
        assert json.loads(file.read_text())["at"][1] == str(tmp_path / "stores")
    assert not list((tmp_path / "stores").glob(".shards*"))
    open_one(declared(tmp_path), 0)


def test_a_copy_does_not_begin_the_shards_that_have_not_begun(tmp_path):
    """They would be published by it and by the original; a move is told like a copy, and may be adopted."""
    open_one(declared(tmp_path, n_shards=3), 0)
    shutil.copytree(tmp_path / "stores", tmp_path / "copy" / "stores", copy_function=shutil.copy2)
    for path in (tmp_path / "copy").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    copy = Shards(
        MECHANISM,
        tmp_path / "copy" / "stores",
        dp.Inputs(0, 9, n_streams=5),
        span=SPAN,
        groups=GROUPS,
        columns=COLUMNS,
        published=tmp_path / "copy" / "published",
        n_shards=3,
        tolerance=0.1,
    )
    for number in range(3):
        with pytest.raises(ReleaseError, match=r"were copied or moved.*adopt=True"):
            copy.open(number)
    (tmp_path / "stores").rename(tmp_path / "moved")
    moved = declared(tmp_path, n_shards=3, place=tmp_path / "moved")
    with pytest.raises(ReleaseError, match="were copied or moved"):
        moved.open(1)
    with moved.open(0, adopt=True) as shard:
        shard.publish(Piece(0, 0, np.zeros((2, 3), int)))
    open_one(moved, 1)


def test_a_shard_that_has_begun_is_not_begun_again(tmp_path, place):
    """Where its store and its folder of what is public are both gone."""
    publish_one(declared(tmp_path, **place), Piece(0, 0, np.zeros((3, 2), int)))
    shutil.rmtree(tmp_path / "published" / "shard-0000")
    if place:
        with postgres_session(place["place"]) as session:
            session.execute(f'DROP SCHEMA "{place["place"].beside("-0000").schema}" CASCADE')
    else:
        shutil.rmtree(tmp_path / "stores" / "shard-0000")
    with pytest.raises(ReleaseError, match="of shard 0 is missing, and the shard has begun"):
        declared(tmp_path, **place).open(0)
    open_one(declared(tmp_path, **place), 1)


def test_nothing_else_is_released_into_a_shard(tmp_path):
    """What all shards together promise would be understated."""
    open_one(declared(tmp_path), 0)
    store, out = tmp_path / "stores" / "shard-0000", tmp_path / "published" / "shard-0000"
    with pytest.raises(ReleaseError, match="is that of a shard, which has its stream alone"):
        dp.release(
            MECHANISM,
            np.zeros((3, 4), int),
            store,
            dp.Inputs(0, 9, n_streams=3),
            published=out,
            compose=True,
            tolerance=0.1,
        )
    assert len(dp.read_release(store, published=out).privatized) == 3


def test_all_shards_have_one_ledger_or_none(tmp_path):
    for name in ("one", "two"):
        dp.Ledger.create(tmp_path / name, "guests")
    open_one(declared(tmp_path, ledger=tmp_path / "one"), 0)
    for other in ({}, {"ledger": tmp_path / "two"}):
        with pytest.raises(ReleaseError, match="must be declared as they were begun, got other ledger"):
            declared(tmp_path, **other).open(1)
    open_one(declared(tmp_path, ledger=dp.Ledger.open(tmp_path / "one")), 1)
    with pytest.raises(ReleaseError, match="ledger must not lie in the folder of what is public"):
        declared(tmp_path, ledger=tmp_path / "published" / "ledger")


def open_one(shards, number):
    with shards.open(number):
        pass


def test_of_two_first_runs_at_once_one_declares(tmp_path, place):
    """Whoever comes second finds the declaration, and is refused where it differs."""
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        here = {"place": place["place"].beside(f"-{attempt}")} if place else {}
        alike = [(declared(folder, **here), i) for i in range(2)]
        other = [(declared(folder, n_shards=3, **here), i) for i in range(2)]
        running = [forks.start(refused_or_done, *x) for x in (*alike, *other)]
        codes = [process.exitcode for process in running if process.join() is None]
        assert codes in ([0, 0, 3, 3], [3, 3, 0, 0])


def refused_or_done(shards, number):
    try:
        open_one(shards, number)
    except ReleaseError as error:
        sys.exit(3 if "must be declared as they were begun" in str(error) else 4)


def test_private_places_are_not_in_the_folder_of_what_is_public(tmp_path):
    out = tmp_path / "published"
    with pytest.raises(ReleaseError, match="place must not lie in the folder of what is public"):
        declared(tmp_path, place=out / "stores")
    columns = ColumnNames("time", "airport", person="card")
    with pytest.raises(ReleaseError, match="key of persons must not lie in the folder of what is public"):
        declared(tmp_path, columns=columns, persons=dp.Persons(key=out / "key"))
    with pytest.raises(ValueError, match="key of persons must be given for the store"):
        declared(tmp_path, columns=columns, persons=dp.Persons(), place=dp.Postgres("", "a"))
    shards = declared(tmp_path)
    for inside in ("", "pieces"):
        with pytest.raises(ValueError, match="folder must be another one than that of the stores, and not in it"):
            cut_pieces(shards, log(tmp_path, []), tmp_path / "stores" / inside, first=0, n_steps=1)
    for act in (
        lambda: cut_pieces(shards, log(tmp_path, []), out / "pieces", first=0, n_steps=1),
        lambda: close_bins(shards, io.BytesIO(), out),
    ):
        with pytest.raises(ReleaseError, match="folder must not lie in the folder of what is public"):
            act()
    with pytest.raises(ValueError, match="name must be"):
        declared(tmp_path, place=dp.Postgres("", "a" * 45))


# --- persons --------------------------------------------------------------------------------------


def test_a_person_in_every_shard_is_within_k_streams_of_each_and_the_guarantee_says_how_many(tmp_path):
    mechanism = dp.input_perturbation(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6, max_events=1))
    columns = ColumnNames("time", "airport", person="card")
    shards = declared(tmp_path, mechanism=mechanism, columns=columns, persons=dp.Persons(), k=2)
    rows = [line(t, group, person="ada") for t in range(4) for group in GROUPS] + [line(2, "SFO", person="bob")]
    paths = cut_pieces(shards, log(tmp_path, rows, "time,airport,card"), tmp_path / "pieces", first=0, n_steps=4)
    kept = 0
    for number, path in enumerate(paths):
        with shards.open(number) as shard:
            shard.publish(path)
            kept += len({(stream, step) for _, stream, step in shard.stream._store.persons().kept})
            alone = shard.stream.guarantee
        text = (tmp_path / "published" / f"shard-000{number}" / "guarantee-of-all-shards.txt").read_text(
            encoding="utf-8"
        )
        assert "may be in 4 streams of all shards together: epsilon" in text
        together = float(text.split("epsilon ")[1].split()[0])
        loss = alone.loss + alone.loss
        assert loss.epsilon(loss.stated_delta(alone.delta)) <= together < 1.001 * loss.epsilon(1e-6)
        assert together > alone.epsilon
        declared_there = json.loads((tmp_path / "published" / f"shard-000{number}" / "guarantee.json").read_text())
        assert declared_there["declaration"]["fields"]["n_shards"] == 2
    assert kept == 5  # ada twice in each shard, bob once


def test_a_ledger_adds_up_shards_once_and_its_cap_holds(tmp_path):
    """Each shard is entered before its first step, and not again; what goes beyond the cap publishes nothing."""
    dp.Ledger.create(tmp_path / "ledger", "guests", cap_epsilon=2.5, cap_delta=1e-4)
    columns = ColumnNames("time", "airport", person="card")
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    options = {"columns": columns, "persons": dp.Persons(), "ledger": tmp_path / "ledger", "mechanism": mechanism}
    shards = declared(tmp_path, n_shards=5, **options)
    for number in (0, 1, 0, 1):
        open_one(shards, number)
    assert len(dp.Ledger.open(tmp_path / "ledger").lines) == 2
    with pytest.raises(ReleaseError, match="cap"):
        list(map(functools.partial(open_one, shards), range(5)))
    opened = len(dp.Ledger.open(tmp_path / "ledger").lines)
    assert 2 <= opened < 5
    tables = sorted((tmp_path / "published").glob("shard-*/estimates.csv"))
    assert [path.parent.name for path in tables] == [f"shard-000{number}" for number in range(opened)]


@pytest.mark.parametrize("persons", [True, False])
def test_shards_of_other_sizes_say_the_same_of_all_of_them(tmp_path, persons):
    """The second one, with a stream less, has less noise: whoever is in all of them is in one of each kind."""
    mechanism = dp.input_perturbation(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6))
    options = {"columns": ColumnNames("time", "airport", person="card"), "persons": dp.Persons()} if persons else {}
    shards = declared(tmp_path, mechanism=mechanism, groups=GROUPS[:3], k=2, **options)
    found = set()
    for number in range(2):
        with shards.open(number) as shard:
            found.add(shard.stream.guarantee.inputs.streams_per_person)
        text = (tmp_path / "published" / f"shard-000{number}" / "guarantee-of-all-shards.txt").read_text()
        found.add(text.split("For somebody in one")[0])
    assert found >= {1, 2}
    assert len(found) == 3
    assert any("may be in 3 streams of all shards together" in str(words) for words in found)


def test_an_event_is_in_one_shard_and_all_promise_what_each_does(tmp_path):
    with declared(tmp_path).open(1) as shard:
        text = (tmp_path / "published" / "shard-0001" / "guarantee-of-all-shards.txt").read_text(encoding="utf-8")
        assert text.startswith("2 shards of the same declaration. An event is in one stream, and so in one shard")
        assert str(shard.stream.guarantee) in text


# --- several streams together ---------------------------------------------------------------------


def together(adjacency="one_input"):
    models = [dp.ARMA([1], [1, -0.5], mean=1)] * 2
    target = dp.FilterMatrix([[0.5, 0.5], [1, -1]])
    return dp.block_sums(target, dp.Privacy(8, adjacency=adjacency), models, length=2, lag=1)


def test_groups_that_are_inputs_of_one_mechanism_are_in_one_shard(tmp_path, monkeypatch):
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))
    shards = declared(tmp_path, mechanism=together("each_input"), groups=("JFK", "LGA"), n_shards=1)
    events = log(tmp_path, [line(0, "JFK"), line(1, "JFK"), line(2, "LGA"), line(3, "LGA"), line(3, "LGA")])
    with shards.open(0) as shard:
        for piece in cut_pieces(shards, events, tmp_path / "pieces", first=0, n_steps=24):
            assert shard.publish(piece) == shard.publish(piece) == 24
        known = shard.stream.read(0, 4)
    np.testing.assert_array_equal(known.privatized, [[0, 2, 0, 0], [0, 0, 0, 3]])
    folder = next(x for x in (tmp_path / "published").iterdir() if x.is_dir())
    rows = [x.split(",") for x in (folder / "estimates.csv").read_text().splitlines()]
    assert [x[1] for x in rows[1:]] == ["JFK + LGA", "JFK - LGA"] * 24
    assert rows[1][3] != rows[2][3]
    said = (folder / "guarantee-of-all-shards.txt").read_text()
    assert said.startswith("This guarantee is per event in every stream")
    with pytest.raises(ValueError, match=r"n_shards must be 1 for a mechanism of several streams, .*, got 2"):
        declared(tmp_path / "other", mechanism=together(), groups=("JFK", "LGA"))
