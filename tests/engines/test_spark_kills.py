"""The same kills of Spark, which delivers its last batch again; a restart takes seconds, so at some points alone."""

import pytest
from helpers import arbiters, deliveries, measured

pytest.importorskip("pyspark")
from helpers.spark_lives import SparkDelivery

pytestmark = pytest.mark.engines


def kill(folder, arbiter, depth, at, record_property):
    """Kill lives at these points, each behind the kill before; note what a reader has seen."""
    delivery = SparkDelivery(folder, arbiter, depth)
    kills = sum(deliveries.kill(delivery, k) for k in at)
    assert kills == len(at)
    assert deliveries.run(delivery) == 0
    counts = delivery.check()
    assert (counts.lost, counts.disordered) == (0, 0)
    measured.note(record_property, delivery, counts, what=f"killed at {kills} points", times=kills, engine="Spark")
    return counts


@pytest.mark.parametrize("depth", [5, 20])
def test_killed(folder, arbiter, depth, record_property):
    """From behind the opening on, which is that of the stream alone."""
    counts = kill(folder, arbiter, depth, range(120, 120 + 12 * 17, 17), record_property)
    assert counts.twice == 0


def test_noise_in_the_operator_is_drawn_again(folder, record_property):
    """Of each batch that was in flight, which has twenty points in the operator."""
    counts = kill(folder, arbiters.Nobody(), 5, range(10, 50, 5), record_property)
    assert counts.twice > 5
