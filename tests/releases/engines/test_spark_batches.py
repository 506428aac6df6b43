"""Spark carries pieces: batches put in order, and published once, whatever is delivered again."""

import os
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.engines.closed_pieces import cut_pieces
from dpfast.releases.engines.pieces import write_piece
from dpfast.releases.engines.shards import ColumnNames, Shards
from dpfast.releases.engines.spark_batches import _check_master, spark_publisher, spark_source

pytestmark = pytest.mark.engines
SPAN = dp.Span.parse("2030-01-01T00:00Z", "2030-01-01T01:00Z", "5min")  # 12 steps
MECHANISM = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Where Spark keeps what its workers send each other."""
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def spark(local):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    settings |= {"spark.local.dir": str(local), "spark.shuffle.compress": "false"}
    builder = SparkSession.builder.master("local[2]").appName("batches")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def declared(place, tmp_path, *, k=1, **options):
    given = {"columns": ColumnNames("time", "key"), "replay_steps": 4, "n_shards": 2, "tolerance": 0.1} | options
    inputs, published = dp.Inputs(0, 9, n_streams=3, streams_per_person=k), tmp_path / "published"
    return Shards(MECHANISM, place, inputs, span=SPAN, groups=("a", "b", "c"), published=published, **given)


def run(spark, shards, folder, **options):
    writer = spark_source(spark, folder / "pieces", **options).writeStream.foreachBatch(spark_publisher(shards))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()


@pytest.mark.parametrize("arbiter", ["folder", "postgres"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_batches_are_published_once_also_where_spark_has_forgotten_them(spark, request, tmp_path, arbiter):
    place = tmp_path / "stores"
    if arbiter == "postgres":
        place = dp.Postgres(request.getfixturevalue("postgres_server").address, f"spark-{abs(hash(tmp_path)) % 10**9}")
    shards, tables = declared(place, tmp_path), []
    for first, n in ((0, 3), (3, 1), (4, 8)):
        for step in range(first, first + n):
            for piece in shards.split(step, np.array([[step % 3], [1], [0]])):
                write_piece(tmp_path / "pieces", piece)
        run(spark, shards, tmp_path)
        tables.append((tmp_path / "published" / "shard-0000" / "estimates.csv").read_text())
        assert len(tables[-1].splitlines()) == 1 + 2 * (first + n)
    shutil.rmtree(tmp_path / "checkpoint")
    run(spark, shards, tmp_path)
    assert (tmp_path / "published" / "shard-0000" / "estimates.csv").read_text() == tables[-1]
    assert tables[-1].startswith(tables[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_persons_are_bounded_and_entered_in_a_ledger_in_sparks_workers(spark, postgres_server, tmp_path):
    """Ada is everywhere at every step; of each shard she is in one stream at one step, also where all comes again."""
    name = f"persons-{abs(hash(tmp_path)) % 10**9}"
    place, account = (dp.Postgres(postgres_server.address, f"{name}{x}") for x in ("", "-ledger"))
    dp.Ledger.create(account, "guests")
    columns, persons = ColumnNames("time", "key", person="card"), dp.Persons(key=tmp_path / "key")
    shards = declared(place, tmp_path, k=1, columns=columns, persons=persons, ledger=account, delete_pieces=True)
    for first in (0, 3, 6):
        rows = [f"2030-01-01T00:{5 * t:02}Z,{key},ada" for t in range(first, first + 3) for key in "abc"]
        log = tmp_path / f"{first}.csv"
        log.write_text("\n".join(["time,key,card", *rows]) + "\n")
        cut_pieces(shards, log, tmp_path / "pieces", first=first, n_steps=3)
        for _ in range(2):
            run(spark, shards, tmp_path)
            shutil.rmtree(tmp_path / "checkpoint")
    for number, streams in ((0, 2), (1, 1)):
        with shards.open(number) as shard:
            assert len(shard.stream._store.persons().kept) == 1
            assert shard.stream.guarantee.persons is not None
        rows = (tmp_path / "published" / f"shard-000{number}" / "estimates.csv").read_text().splitlines()
        assert len(rows) == 1 + 9 * streams
    assert len(dp.Ledger.open(account).lines) == 2


def write(shards, folder, steps):
    """Write pieces, and return their files."""
    inputs = np.array([[2], [1], [0]])
    return [write_piece(folder / "pieces", piece) for step in steps for piece in shards.split(step, inputs)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("age", [0, 1], ids=["equal", "reversed"])
def test_the_times_of_files_do_not_decide_the_order(spark, local, tmp_path, age):
    folder = tmp_path / "a b%20c"  # Spark gives paths as they are
    shards = declared(folder / "stores", folder)
    for k, path in enumerate(write(shards, folder, range(5))):
        os.utime(path, (10**9 - age * k,) * 2)
    run(spark, shards, folder, at_once=1)
    late = write(shards, folder, [5])
    for path in late:
        os.utime(path, (10**8,) * 2)  # weeks older than others: Spark never delivers it
    run(spark, shards, folder)
    write(shards, folder, [6])
    run(spark, shards, folder)
    for shard, streams in enumerate((2, 1)):
        rows = (folder / "published" / f"shard-{shard:04}" / "estimates.csv").read_text().splitlines()
        assert len(rows) == 1 + streams * 7
    sent = [path.read_bytes() for path in local.rglob("*.data")]
    assert any(b".piece" in content for content in sent)
    assert not any(b"dpfast piece" in content for content in sent)  # as the content of one begins


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_piece_that_is_nowhere_is_refused(spark, tmp_path):
    shards = declared(tmp_path / "stores", tmp_path)
    write(shards, tmp_path, [0])
    for path in write(shards, tmp_path, [1]):
        path.unlink()
    write(shards, tmp_path, [2])
    with pytest.raises(Exception, match="first must be at most the next step, 1, got 2"):
        run(spark, shards, tmp_path)


def test_a_folder_is_for_one_machine(tmp_path):
    shards = declared(tmp_path / "stores", tmp_path)
    _check_master(shards, "local[4]")
    with pytest.raises(ReleaseError, match=r"place must be in PostgreSQL .* \(master spark://far:7077\), got "):
        _check_master(shards, "spark://far:7077")
    _check_master(SimpleNamespace(place=dp.Postgres("", "a")), "spark://far:7077")
