"""A disk that fills up at any moment: what was published is published, what was not can be delivered again."""

import os
import resource

import pytest
from helpers import arbiters, forks, measured
from helpers.deliveries import Delivery

from dpfast._support.errors import ReleaseError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
FULL = 3  # an exit code


def live_with(delivery, room):
    """In a process of its own: a life in which no file can grow beyond some bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    try:
        delivery.live()
    except (ReleaseError, OSError):
        os._exit(FULL)


def fill(delivery, step):
    """Lives with ever more room, until there is enough; how many had too little."""
    for times, room in enumerate(range(0, 1 << 20, step)):
        code = forks.run(live_with, delivery, room)
        if code == 0:
            delivery.live()
            return times
        assert code == FULL
        if times % 16 == 0:
            delivery.live()  # with all the room that there is
    raise AssertionError("it never had enough")


@pytest.mark.parametrize("step", [8192, pytest.param(512, marks=pytest.mark.engines)])
def test_full_at_any_size(folder, step, record_property):
    delivery = Delivery(folder, arbiters.Folder(), 5)
    times = fill(delivery, step)
    counts = delivery.check()
    assert times > 5
    assert counts.faults == 0
    measured.note(record_property, delivery, counts, what="no room on the disk", times=times)
