"""Bytewax carries pieces: in order, from its recovery store on, and once."""

import datetime
import shutil

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import DataError, ReleaseError
from dpfast.releases.engines.bytewax_flow import bytewax_sink, bytewax_source
from dpfast.releases.engines.pieces import Piece, delete_pieces, write_piece
from dpfast.releases.engines.shards import ColumnNames, Shards

pytestmark = pytest.mark.engines
SPAN = dp.Span.parse("2030-01-01T00:00Z", "2030-01-01T01:00Z", "5min")  # 12 steps
MECHANISM = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))


@pytest.fixture(params=["folder", "postgres"])
def shards(request, tmp_path):
    place = tmp_path / "stores"
    if request.param == "postgres":
        name = f"flow-{abs(hash(tmp_path)) % 10**9}"
        place = dp.Postgres(request.getfixturevalue("postgres_server").address, name)
    return Shards(
        MECHANISM,
        place,
        dp.Inputs(0, 9, n_streams=3),
        span=SPAN,
        groups=("a", "b", "c"),
        columns=ColumnNames("time", "key"),
        published=tmp_path / "published",
        n_shards=2,
        tolerance=0.1,
        replay_steps=4,
    )


def run(shards, folder, recovery=None):
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main

    flow = Dataflow("counts")
    op.output("table", op.input("pieces", flow, bytewax_source(shards, folder, wait=False)), bytewax_sink(shards))
    run_main(flow, epoch_interval=datetime.timedelta(0), recovery_config=recovery)


def close(shards, folder, first, n):
    for piece in shards.split(first, np.arange(3 * n).reshape(3, n) % 4):
        write_piece(folder, piece)


def tables(shards, tmp_path):
    return [(tmp_path / "published" / f"shard-000{i}" / "estimates.csv").read_text() for i in range(shards.n_shards)]


def test_pieces_go_through_bytewax_to_the_tables(shards, tmp_path):
    """Twice from the beginning, as without a recovery store: the second time nothing is published."""
    close(shards, tmp_path / "pieces", 0, 5)
    run(shards, tmp_path / "pieces")
    before = tables(shards, tmp_path)
    assert [len(text.splitlines()) for text in before] == [1 + 5 * 2, 1 + 5]
    close(shards, tmp_path / "pieces", 5, 7)
    run(shards, tmp_path / "pieces")
    run(shards, tmp_path / "pieces")
    after = tables(shards, tmp_path)
    assert [len(text.splitlines()) for text in after] == [1 + 12 * 2, 1 + 12]
    assert all(new.startswith(old) for new, old in zip(after, before, strict=True))


def test_several_workers_have_shards_of_their_own(shards, tmp_path):
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import cluster_main

    for end in (5, 12):
        for step in range(end):
            close(shards, tmp_path / "pieces", step, 1)
        flow = Dataflow("counts")
        pieces = op.input("pieces", flow, bytewax_source(shards, tmp_path / "pieces", wait=False))
        op.output("table", pieces, bytewax_sink(shards))
        cluster_main(flow, [], 0, worker_count_per_proc=3, epoch_interval=datetime.timedelta(0))
        assert [len(text.splitlines()) for text in tables(shards, tmp_path)] == [1 + end * 2, 1 + end]


def test_it_goes_on_from_the_recovery_store(shards, tmp_path):
    from bytewax.recovery import RecoveryConfig, init_db_dir

    (tmp_path / "recovery").mkdir()
    init_db_dir(tmp_path / "recovery", 1)
    for first, n in ((0, 3), (3, 4), (7, 5)):
        close(shards, tmp_path / "pieces", first, n)
        run(shards, tmp_path / "pieces", RecoveryConfig(tmp_path / "recovery"))
        assert len(tables(shards, tmp_path)[1].splitlines()) == 1 + first + n


def refusal(shards, folder, recovery=None):
    with pytest.raises((DataError, ReleaseError, RuntimeError)) as error:
        run(shards, folder, recovery)
    return f"{error.value} {error.value.__cause__}"


def test_a_missing_piece_is_named(shards, tmp_path):
    write_piece(tmp_path / "pieces", Piece(1, 4, np.zeros((1, 2), int)))
    assert "first must be at most the next step, 0, got 4" in refusal(shards, tmp_path / "pieces")
    write_piece(tmp_path / "pieces", Piece(1, 0, np.zeros((1, 2), int)))
    words = "must have a piece that begins at step 2, got steps-000000000004-000000000006.piece as the next one"
    assert words in refusal(shards, tmp_path / "pieces")


def test_pieces_that_were_cut_otherwise_are_named(shards, tmp_path):
    from bytewax.recovery import RecoveryConfig, init_db_dir

    (tmp_path / "recovery").mkdir()
    init_db_dir(tmp_path / "recovery", 1)
    close(shards, tmp_path / "pieces", 0, 3)
    run(shards, tmp_path / "pieces", RecoveryConfig(tmp_path / "recovery"))
    shutil.rmtree(tmp_path / "pieces")
    close(shards, tmp_path / "pieces", 0, 5)
    words = "must have a piece that begins at step 3, got steps-000000000000-000000000005.piece as the next one"
    assert words in refusal(shards, tmp_path / "pieces", RecoveryConfig(tmp_path / "recovery"))


def test_behind_deleted_pieces_it_goes_on(shards, tmp_path):
    """Also without what Bytewax remembers: the store knows that they are published."""
    close(shards, tmp_path / "pieces", 0, 3)
    close(shards, tmp_path / "pieces", 3, 2)
    run(shards, tmp_path / "pieces")
    for number in range(2):
        delete_pieces(tmp_path / "pieces", number, 5)
    close(shards, tmp_path / "pieces", 5, 4)
    run(shards, tmp_path / "pieces")
    assert [len(text.splitlines()) for text in tables(shards, tmp_path)] == [1 + 9 * 2, 1 + 9]
