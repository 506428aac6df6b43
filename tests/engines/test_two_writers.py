"""Engines that deliver the same shard at once, and one that was cut off, replaced, and comes back."""

import json
import os

import pytest
from helpers import arbiters, deliveries, forks, measured
from helpers.deliveries import Delivery

from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import patience, postgres_session

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


def witnessed(folder):
    """How far the witness says that the store has come."""
    file = folder / "published" / "witness.json"
    return json.loads(file.read_text())["position"] if file.exists() else 0


def take_over(delivery):
    """Whether another engine may write, while the one before stands still.

    It may not where that one has the folder of the store, or is just writing what is public.
    """
    try:
        delivery.live()
    except ReleaseError as error:
        refused = str(error)
    else:
        return True
    assert ("in use" if delivery.arbiter == arbiters.Folder() else "another process writes into") in refused
    return False


def stop(delivery, k):
    """As deliveries.stop; of the life that stands still a transaction is in the way for 100 ms alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_session, "_IDLE", "100ms")
        return deliveries.stop(delivery, k)


def stop_everywhere(delivery, step=1):
    """A writer stands still at each point; another one takes its place, where it can; then the first goes on.

    How often, how many were replaced, and how many were refused when they went on.
    """
    stops = taken = fenced = 0
    k = 1
    while (process := stop(delivery, k)) is not None:
        took = take_over(delivery)
        before = witnessed(delivery.folder)
        code = deliveries.go_on(process)
        assert witnessed(delivery.folder) >= before
        assert code in (0, deliveries.REFUSED)
        assert took or delivery.arbiter != arbiters.Folder() or code == 0
        stops, taken, fenced, k = stops + 1, taken + took, fenced + (code != 0), k + step
        delivery.live()
    return stops, taken, fenced


@pytest.mark.engines
@pytest.mark.parametrize("depth", [0, 10])
def test_a_writer_that_stood_still_publishes_nothing_else(folder, arbiter, depth, record_property, monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.1)  # for which one that has a folder is
    delivery = Delivery(folder, arbiter, depth)
    stops, taken, fenced = stop_everywhere(delivery)
    counts = delivery.check()
    assert stops > 100
    if arbiter == arbiters.Folder():
        assert 0 < taken < stops
    else:
        assert fenced > stops / 2
        assert taken > stops / 2
    assert counts.faults == 0
    what = "stopped at every point, replaced where that is allowed, woken"
    measured.note(record_property, delivery, counts, what=what, times=stops)


def test_a_writer_that_stands_still_somewhere(folder):
    delivery = Delivery(folder, arbiters.Folder(), 2)
    stops, taken, _ = stop_everywhere(delivery, 23)
    assert 0 < taken < stops
    assert delivery.check().faults == 0


@pytest.mark.parametrize(("engines", "end"), [(2, 60), pytest.param(3, 150, marks=pytest.mark.engines)])
def test_engines_that_deliver_the_same_at_once(folder, arbiter, engines, end, record_property):
    """Each gets all of it, in order, whoever published it."""
    delivery, *others = [Delivery(folder, arbiter, 5, f"engine {i}") for i in range(engines)]
    processes = [forks.start(deliveries.live_until, each, end) for each in (delivery, *others)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    counts = delivery.check()
    assert counts.steps >= end
    assert counts.seen >= engines * end
    assert counts.faults == 0
    measured.note(record_property, delivery, counts, what=f"{engines} engines at once", times=0)
