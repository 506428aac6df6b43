"""Kills at every point of the protocol, under an engine that delivers again: each step has one value, none is lost."""

import os

import pytest
from helpers import arbiters, deliveries, measured, readers
from helpers.deliveries import Delivery

from dpfast._support.errors import ReleaseError
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


POINTS = {f"{where} {name}" for where in ("before", "behind") for name in ("append", "write", "emit", "acknowledge")}


@pytest.mark.engines
@pytest.mark.parametrize("depth", deliveries.DEPTHS)
def test_killed_at_every_point(folder, arbiter, depth, record_property):
    delivery = Delivery(folder, arbiter, depth)
    kills, counts = deliveries.kill_everywhere(delivery), delivery.check()
    assert kills > 200
    assert {*deliveries.points(delivery)} >= POINTS
    assert counts.seen >= counts.steps + depth * kills / 2
    assert counts.faults == 0
    measured.note(record_property, delivery, counts, what="killed at every point", times=kills)


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.engines)])
def test_killed_while_a_store_begins(folder, arbiter, step, record_property):
    killed = list(deliveries.kill_beginnings(folder, arbiter, 5, step))
    counts = readers.Counts.sum([delivery.check() for delivery in killed])
    assert len(killed) > 100 // step
    assert counts.faults == 0
    measured.note(
        record_property, killed[0], counts, what="killed at every point of the first life of a store", times=len(killed)
    )


@pytest.mark.parametrize("depth", [0, 20])
def test_killed_at_some_points(folder, depth):
    delivery = Delivery(folder, arbiters.Folder(), depth)
    kills, counts = deliveries.kill_everywhere(delivery, 13), delivery.check()
    assert kills > 25
    assert counts.steps > 60
    assert counts.faults == 0


# --- the same finds what is wrong -----------------------------------------------------------------


@pytest.mark.engines
@pytest.mark.parametrize("depth", deliveries.DEPTHS)
def test_noise_in_the_operator_is_drawn_again(folder, depth, record_property):
    """All steps that are delivered again have another value, but for one in ten thousand where both draws agree."""
    delivery = Delivery(folder, arbiters.Nobody(), depth)
    kills, counts = deliveries.kill_everywhere(delivery), delivery.check()
    assert (counts.lost, counts.disordered) == (0, 0)
    assert counts.twice > 0
    if depth >= 10:
        assert counts.twice > 0.8 * counts.steps
    measured.note(record_property, delivery, counts, what="killed at every point", times=kills)


def noise_drawn_again(set_attribute):
    push = Stream.push

    def mutant(self, chunk, *, first=None):
        known = self.position - first
        result = push(self, chunk, first=first)
        result.privatized[:, :known] += 1
        return result

    set_attribute(Stream, "push", mutant)


def shown_before_the_commit(set_attribute):
    append = ReleaseStore.append

    def mutant(self, release, first, v, *args, **options):
        readers.emit(self.path.parent / "shown.jsonl", deliveries.SHARD, first, v)
        append(self, release, first, v, *args, **options)

    set_attribute(ReleaseStore, "append", mutant)


def acknowledged_before_it_is_shown(set_attribute):
    emit = Delivery.emit

    def mutant(self, first, v):
        self.acknowledge(first + v.shape[1])
        emit(self, first, v)

    set_attribute(Delivery, "emit", mutant)


def acknowledged_by_the_stream(set_attribute):
    """An engine that takes its place from where the stream is: what was committed and not shown stays unseen."""
    set_attribute(Delivery, "acknowledged", lambda self: position(self))


def position(delivery):
    with delivery.open() as stream:
        return stream.position


@pytest.mark.parametrize(
    "mutate",
    [noise_drawn_again, shown_before_the_commit, acknowledged_before_it_is_shown, acknowledged_by_the_stream],
    ids=lambda x: x.__name__,
)
def test_a_wrong_protocol_is_found(mutate, folder, monkeypatch):
    mutate(monkeypatch.setattr)
    delivery = Delivery(folder, arbiters.Folder(), 0)
    for name in ("emit", "acknowledge", "push", "append"):  # few kills are enough where they hit
        assert deliveries.kill(delivery, f"behind {name}")
        delivery.live()
    assert deliveries.kill(delivery, "before execute", since="before append")  # in the transaction of a step
    delivery.live()
    assert delivery.check().faults > 0


def test_other_inputs_are_refused_as_long_as_they_may_be_delivered_again(folder, arbiter):
    """And told in no value: nothing is shown of them."""
    delivery = Delivery(folder, arbiter, 10)
    for _ in range(4):
        delivery.live()
    before = delivery.check()
    with delivery.open() as stream:
        end = stream.position
        for first in range(end - 10, end):
            other = 9 - deliveries.delivered.inputs(first, end - first + 3)
            with pytest.raises(ReleaseError, match="published, with other inputs"):
                stream.push(other, first=first)
        assert stream.position == end
    assert delivery.check() == before
