"""The same kills of Bytewax, which goes on from its own recovery store and delivers two shards."""

import pytest
from helpers import arbiters, deliveries, measured

pytest.importorskip("bytewax")
from helpers.bytewax_lives import BytewaxDelivery

pytestmark = pytest.mark.engines
POINTS = {f"{where} {name}" for where in ("before", "behind") for name in ("push", "emit", "next_batch", "snapshot")}


def kill(folder, arbiter, depth, step, record_property):
    """Kill it, from another point on at each depth, and note what a reader has seen."""
    delivery, first = BytewaxDelivery(folder, arbiter, depth), 1 + deliveries.DEPTHS.index(depth) % step
    kills, counts = deliveries.kill_everywhere(delivery, step, first), delivery.check()
    assert (counts.lost, counts.disordered) == (0, 0)
    what = "killed at every point" if step == 1 else f"killed at every {step}th point"
    measured.note(record_property, delivery, counts, what=what, times=kills, engine="Bytewax")
    return delivery, counts


@pytest.mark.parametrize("depth", deliveries.DEPTHS)
def test_killed(folder, arbiter, depth, record_property):
    delivery, counts = kill(folder, arbiter, depth, 1, record_property)
    assert {*deliveries.points(delivery)} >= POINTS
    assert counts.twice == 0


@pytest.mark.parametrize("depth", deliveries.DEPTHS)
def test_noise_in_the_operator_is_drawn_again(folder, depth, record_property):
    _, counts = kill(folder, arbiters.Nobody(), depth, 1 if depth in (0, 10) else 9, record_property)
    assert counts.twice > (0.5 * counts.steps if depth >= 10 else 0)
