"""The same kills of Spark, which delivers its last batch again; a restart takes seconds, so at some points alone."""

import itertools

import pytest
from helpers import arbiters, deliveries, measured

pytest.importorskip("pyspark")
from helpers.spark_lives import SparkDelivery

pytestmark = pytest.mark.engines


SIZES = deliveries.DEPTHS[1:]  # steps of a batch, all of which come again: there is no Spark that delivers none again
STRIDE = len(SIZES)


def kill(folder, arbiter, size, at, record_property, what):
    """Kill lives at these points as far as they come, each behind the kill before; note what a reader has seen."""
    delivery = SparkDelivery(folder, arbiter, size)
    kills = sum(itertools.takewhile(bool, (deliveries.kill(delivery, k) for k in at)))
    assert deliveries.run(delivery) == 0
    counts = delivery.check()
    assert (counts.lost, counts.disordered) == (0, 0)
    measured.note(record_property, delivery, counts, what=what, times=kills, engine="Spark")
    return kills, counts


@pytest.mark.parametrize("size", SIZES)
def test_killed(folder, arbiter, size, record_property):
    """At all points of an opening and of some steps behind it, each with one of the sizes."""
    at, what = range(1 + SIZES.index(size), 300, STRIDE), f"killed at every {STRIDE}th point"
    kills, counts = kill(folder, arbiter, size, at, record_property, what)
    assert kills > 120 // STRIDE
    assert counts.twice == 0


def test_noise_in_the_operator_is_drawn_again(folder, record_property):
    """Of each batch that was in flight, which has twenty points in the operator."""
    _, counts = kill(folder, arbiters.Nobody(), 5, range(10, 50, 5), record_property, "killed at every 5th point")
    assert counts.twice > 5
