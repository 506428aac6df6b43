"""The same kills of Spark, which delivers its last batch again; a restart takes seconds, so each point once."""

import itertools

import pytest
from helpers import arbiters, deliveries, measured

pytest.importorskip("pyspark")
from helpers.spark_lives import SparkDelivery

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("spark_classes")]


SIZES = deliveries.DEPTHS[1:]  # steps of a batch, all of which come again: there is no Spark that delivers none again


def end(delivery, record_property, what, times):
    """A life that is not killed; what a reader has seen then."""
    assert deliveries.run(delivery) == 0
    counts = delivery.check()
    assert (counts.lost, counts.disordered) == (0, 0)
    measured.note(record_property, delivery, counts, what=what, times=times, engine="Spark")
    return counts


@pytest.mark.parametrize("size", SIZES)
def test_killed(folder, arbiter, size, record_property):
    """Where a whole batch comes again: opening, reading a step of it back, and publishing its last step."""
    delivery = SparkDelivery(folder, arbiter, size)
    assert deliveries.kill(delivery, "behind append", since="before publish_last")
    opening = deliveries.kill_between(delivery, None, "before publish")
    reading = deliveries.kill_between(delivery, "before publish_step", "behind publish_step")
    assert deliveries.run(delivery) == 0
    last = deliveries.kill_between(delivery, "before publish_last", "behind publish")
    kills = 1 + opening + reading + last
    assert end(delivery, record_property, "killed at every point, a batch of steps comes again", kills).twice == 0
    assert opening > 40
    assert reading > 4
    assert last > 20


def test_killed_in_the_first_opening(folder, arbiter, record_property):
    delivery = SparkDelivery(folder, arbiter, 1)
    kills = deliveries.kill_between(delivery, None, "before publish")
    assert end(delivery, record_property, "killed at every point of the first opening", kills).twice == 0
    assert kills > 40


def test_noise_in_the_operator_is_drawn_again(folder, record_property):
    """Of each batch that was in flight, which has twenty points in the operator."""
    delivery = SparkDelivery(folder, arbiters.Nobody(), 5)
    kills = sum(itertools.takewhile(bool, (deliveries.kill(delivery, k) for k in range(10, 50, 5))))
    assert end(delivery, record_property, "killed at every 5th point", kills).twice > 5
