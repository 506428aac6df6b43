"""Shards: who is in which, what closes a piece, what is published of it, and for whom the guarantee is."""

import io
import json

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.engines.closed_pieces import close_bins, cut_pieces
from dpfast.releases.engines.pieces import Piece, list_pieces, parse_path, read_piece, write_piece
from dpfast.releases.engines.shards import ColumnNames, Shards

GROUPS = ("ATL", "JFK", "LGA", "ORD", "SFO")
SPAN = dp.Span.parse("2030-01-01T00:00Z", "2030-01-01T02:00Z", "5min")  # 24 steps
MECHANISM = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
COLUMNS = ColumnNames("time", "airport")


def declared(folder, *, n_shards=2, mechanism=MECHANISM, columns=COLUMNS, groups=GROUPS, k=1, **options):
    inputs = dp.Inputs(0, 9, n_streams=len(groups), streams_per_person=k)
    return Shards(
        mechanism,
        folder / "stores",
        inputs,
        span=SPAN,
        groups=groups,
        columns=columns,
        published=folder / "published",
        n_shards=n_shards,
        tolerance=0.1,
        **options,
    )


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


def test_a_shard_with_another_declaration_is_refused(tmp_path):
    with declared(tmp_path).open(0) as shard:
        shard.publish(Piece(0, 0, np.zeros((3, 2), int)))
    for other, words in (
        (declared(tmp_path, n_shards=3), "what is declared must be what the store"),
        (declared(tmp_path, groups=("ATL", "JFK", "BOS", "ORD", "SFO")), "groups must be"),
        (declared(tmp_path, columns=ColumnNames("when", "airport")), "time_column must be"),
    ):
        with pytest.raises(ReleaseError, match=words):
            other.open(0)
    with pytest.raises(ReleaseError, match="epoch must be higher than"):
        declared(tmp_path).open(0, epoch=1)


def test_a_table_that_a_crash_left_behind_is_completed(tmp_path):
    shards = declared(tmp_path)
    with shards.open(0) as shard:
        shard.publish(Piece(0, 0, np.ones((3, 6), int)))
    table = tmp_path / "published" / "shard-0000" / "estimates.csv"
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    with shards.open(0):
        assert table.read_bytes() == whole


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


def test_an_event_is_in_one_shard_and_all_promise_what_each_does(tmp_path):
    with declared(tmp_path).open(1) as shard:
        text = (tmp_path / "published" / "shard-0001" / "guarantee-of-all-shards.txt").read_text(encoding="utf-8")
        assert text.startswith("2 shards of the same declaration. An event is in one stream, and so in one shard")
        assert str(shard.stream.guarantee) in text
