"""One writer a store: each takes a higher epoch, and one that was replaced is refused in its transaction."""

import sqlite3
import zlib
from contextlib import closing

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.store.release_store import ReleaseStore

PLAN = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 9), tolerance=0.1)
U = np.arange(8) % 3


def written(folder):
    """The epoch in a store that nobody has open."""
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        return [epoch for (epoch,) in connection.execute("SELECT epoch FROM writers")]


def take_over(stream, epoch):
    """As another writer would that has the database too: where locks do not hold, as on some network disks."""
    row = 1, epoch
    seal = zlib.crc32(b"\0".join(repr(x).encode() for x in row))
    stream._store._arbiter.execute("INSERT OR REPLACE INTO writers VALUES (?, ?, ?)", (*row, seal))


def test_every_writer_takes_the_next_epoch_and_readers_take_none(tmp_path):
    for epoch in range(1, 4):
        with dp.open_stream(PLAN, tmp_path / "store") as stream:
            stream.push(U)
        assert written(tmp_path / "store") == [epoch]
        dp.read_release(tmp_path / "store")
        with ReleaseStore.open(tmp_path / "store", reading=True):
            pass
        assert written(tmp_path / "store") == [epoch]


def test_a_writer_that_was_replaced_publishes_nothing(tmp_path):
    with dp.open_stream(PLAN, tmp_path / "store") as stream:
        stream.push(U)
        take_over(stream, 5)
        with pytest.raises(ReleaseError, match=r"writer \(epoch 5\) has taken over .* this one \(epoch 1\)"):
            stream.push(U)
        with pytest.raises(ReleaseError, match="was interrupted while it published"):
            stream.push(U)
    assert dp.read_release(tmp_path / "store").privatized.shape == (1, 8)
    assert written(tmp_path / "store") == [5]
    with dp.open_stream(PLAN, tmp_path / "store") as stream:
        stream.push(U)
    assert written(tmp_path / "store") == [6]


def test_a_writer_with_an_epoch_that_is_over_is_refused_at_the_door(tmp_path):
    with dp.open_stream(PLAN, tmp_path / "store", epoch=7) as stream:
        stream.push(U)
    for epoch in (1, 6, 7):
        with pytest.raises(ReleaseError, match=rf"epoch must be higher than .*, 7, got {epoch}: this writer"):
            dp.open_stream(PLAN, tmp_path / "store", epoch=epoch)
    with dp.open_stream(PLAN, tmp_path / "store", epoch=8) as stream:
        assert stream.position == 8
        stream.push(U)
    assert written(tmp_path / "store") == [8]


@pytest.mark.parametrize("epoch", [0, -1, 1.5, "2", True, 2**63])
def test_an_epoch_is_a_whole_number(tmp_path, epoch):
    with pytest.raises(ValueError, match="epoch must be"):
        dp.open_stream(PLAN, tmp_path / "store", epoch=epoch)


def test_an_epoch_that_is_not_as_it_was_written_is_damage(tmp_path):
    with fakes.stream_in(tmp_path / "store") as stream:
        stream.push(fakes.signal(0, 3))
    with closing(sqlite3.connect(tmp_path / "store" / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE writers SET epoch = 0")
    with pytest.raises(ReleaseError, match="is damaged"):
        fakes.stream_in(tmp_path / "store")
    assert dp.releases.reading.open_existing(tmp_path / "store").close() is None
