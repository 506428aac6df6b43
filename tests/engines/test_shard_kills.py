"""Kills of shards through the sources and sinks of the package: a table that everybody reads never changes a row."""

import os
import random
import signal
import sys
from pathlib import Path

import pytest
from helpers import deliveries, forks, measured

pytest.importorskip("bytewax")
pytest.importorskip("pyspark")
from helpers.shard_lives import BytewaxShards, SparkShards

pytestmark = pytest.mark.engines
CALLS = {f"{where} {name}" for where in ("before", "behind") for name in ("publish", "append", "push")}


def points(step):
    """Each kind of call, then one in so many points: a stride of one length may meet the same point of every piece."""
    yield from sorted(CALLS)
    strides, k = random.Random(step), 1
    while True:
        yield k
        k += strides.randrange(1, 2 * step)


def kill_everywhere(delivery, step):
    """As deliveries.kill_everywhere; behind every life the reader looks."""
    kills = 0
    for k in points(step):
        was_killed = deliveries.kill(delivery, k)
        delivery.look()
        kills += was_killed + deliveries.kill(delivery, k)
        delivery.look()
        assert deliveries.run(delivery) == 0
        delivery.look()
        if not was_killed:
            break
    return kills


@pytest.mark.parametrize(("depth", "step"), [(0, 7), (50, 7), (5, 23), (20, 23)])
def test_killed_in_bytewax(folder, arbiter, depth, step, record_property):
    delivery = BytewaxShards(folder, arbiter, depth)
    kills, counts = kill_everywhere(delivery, step), delivery.check()
    assert counts.faults == 0
    assert kills > 400 // step
    assert {*deliveries.points(delivery)} >= CALLS
    what = f"killed at one in {step} points, pieces deleted"
    measured.note(record_property, delivery, counts, what=what, times=kills, engine="Bytewax, the package's sink")


@pytest.mark.usefixtures("spark_classes")
@pytest.mark.parametrize("depth", [0, 50])
def test_killed_in_spark(folder, arbiter, depth, record_property, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.getenv("PYTHONPATH"))))
    )
    delivery, kills = SparkShards(folder, arbiter, depth), 0
    for k in (*sorted(CALLS), *range(20, 20 + 10 * 23, 23)):
        kills += forks.run(delivery.live_until, k) == -signal.SIGKILL
        delivery.look()
    assert forks.run(delivery.live) == 0
    delivery.look()
    counts = delivery.check()
    assert kills >= 6 + len(CALLS)
    assert counts.faults == 0
    what = "killed at points of its workers, pieces deleted"
    measured.note(record_property, delivery, counts, what=what, times=kills, engine="Spark, the package's publisher")


def test_a_row_that_changes_or_is_missing_is_seen(folder, arbiter):
    delivery = BytewaxShards(folder, arbiter, 0)
    assert deliveries.run(delivery) == 0
    table = folder / "published" / "shard-0000" / "estimates.csv"
    whole = table.read_text().splitlines(keepends=True)
    table.write_text("".join(whole[:-1]))
    delivery.look()
    assert (delivery.check().twice, delivery.check().lost) == (0, 1)
    table.write_text("".join([*whole[:2], whole[2].replace(whole[2].split(",")[2], "99"), *whole[3:]]))
    delivery.look()
    assert (delivery.check().twice, delivery.check().lost) == (1, 0)
