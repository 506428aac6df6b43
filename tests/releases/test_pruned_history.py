"""Streams that forget what they published long ago: they go on as if they had not, and nothing else does."""

import hashlib
import json
import sqlite3
import struct
from contextlib import closing

import numpy as np
import pytest
from helpers import fakes

import dpfast as dp
from dpfast._support.errors import ReleaseError

COUNTS = dp.IndependentLevels([0, 1, 2], [0.25, 0.5, 0.25])
INPUTS = dp.Inputs(0, 2, n_streams=2)
MECHANISMS = {
    "taps": dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)),
    "blocks": dp.block_sums(dp.Filter([1], [1, -0.9]), dp.Privacy(1), COUNTS, length=3, lag=1),
}


def values(first, n):
    t = np.arange(first, first + n)
    return np.stack([t * t % 3, (t + 1) % 3])


def rows(folder):
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection:
        return connection.execute("SELECT id, first, count FROM pushes ORDER BY id").fetchall()


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_kept_is_what_would_have_been_kept(tmp_path, name):
    """The same pushes with and without, opened again in between: v and estimates of the last steps agree."""
    mechanism, published, plan = MECHANISMS[name], [], dp.exact(MECHANISMS[name], INPUTS)
    for first in range(0, 300, 30):
        with dp.open_stream(mechanism, tmp_path / "store", INPUTS, keep_steps=40) as stream:
            assert stream.position == first
            pushes = [stream.push(values(t, 5)) for t in range(first, first + 30, 5)]
            published.append(np.concatenate([x.privatized for x in pushes], axis=-1))
            again = stream.read(first, 30)
            assert (again.privatized == published[-1]).all()
            assert np.array_equal(again.estimate, np.concatenate([x.estimate for x in pushes], axis=-1))
            if first > 60:
                with pytest.raises(ReleaseError, match=r"first must be at least \d+, as what was published before"):
                    stream.read(0, first)
    v = np.concatenate(published, axis=-1)
    lag, estimate = plan.lag or 0, plan.estimate(v)
    kept = [first for _, first, _ in rows(tmp_path / "store")]
    assert 300 - 40 - lag - 5 <= kept[0] <= 300 - 40 - lag
    result = dp.read_release(tmp_path / "store")
    assert result.first == kept[0]
    assert (result.privatized == v[..., result.first :]).all()
    assert np.array_equal(result.estimate, estimate[:, result.first + lag :])


def test_the_chain_over_all_that_was_published_is_kept(tmp_path):
    with fakes.stream_in(tmp_path / "store") as stream:
        stream._keep_steps = 4
        v = [stream.push(fakes.signal(t, 1)).privatized for t in range(20)]
    with closing(sqlite3.connect(tmp_path / "store/store.sqlite")) as connection:
        ((id,),) = connection.execute("SELECT id FROM meta")
    chain = hashlib.sha256(id.encode()).digest()
    for t, x in enumerate(v):
        chain = hashlib.sha256(chain + struct.pack("<qqq2q", 1, t, 1, *x.ravel().tolist())).digest()
    said = json.loads((tmp_path / "store-published/witness.json").read_text())
    assert (said["position"], said["steps"], said["sha256"]) == (20, 20, chain.hex())
    assert len(rows(tmp_path / "store")) < 12


@pytest.mark.parametrize("change", ["chain = zeroblob(32)", "push = push + 1", "steps = 3", "next = next - 1"])
def test_a_changed_beginning_is_damage(tmp_path, change):
    with fakes.stream_in(tmp_path / "store") as stream:
        stream._keep_steps = 4
        for t in range(20):
            stream.push(fakes.signal(t, 1))
    with closing(sqlite3.connect(tmp_path / "store/store.sqlite")) as connection, connection:
        connection.execute(f"UPDATE pruned SET {change}")
    with pytest.raises(ReleaseError, match="damaged"):
        fakes.stream_in(tmp_path / "store")


def test_steps_that_may_be_pushed_again_are_kept(tmp_path):
    """With inputs that the filter still needs."""
    with fakes.stream_in(tmp_path / "store") as stream:
        stream._keep_steps = 1
        v = [stream.push(fakes.signal(t, 1)).privatized for t in range(20)]
        first = 20 - fakes.MEMORY
        again = stream.push(fakes.signal(first, fakes.MEMORY), first=first)
    assert (again.privatized == np.concatenate(v[first:], axis=1)).all()


def test_nothing_is_compared_with_the_model_any_more(tmp_path):
    with dp.open_stream(MECHANISMS["taps"], tmp_path / "store", INPUTS, keep_steps=1) as stream:
        for t in range(0, 300, 10):
            stream.push(values(t, 10))
        check = stream.model_check()
        with pytest.raises(ReleaseError, match="first must be at least"):
            stream.adapted()
    assert (check.agrees, check.estimated_mse) == (None, None)


@pytest.mark.parametrize("keep_steps", [0, -1, 1.5, "all"])
def test_other_numbers_are_refused(tmp_path, keep_steps):
    with pytest.raises(ValueError, match="keep_steps must be"):
        dp.open_stream(MECHANISMS["taps"], tmp_path / "store", INPUTS, keep_steps=keep_steps)
    assert not (tmp_path / "store").exists()
