"""A server that goes away at every point, and in the middle of a commit: each step has one value, none is lost."""

import functools
import random
import time

import pytest
from helpers import arbiters, deliveries, forks, measured
from helpers.deliveries import Delivery

pytestmark = pytest.mark.engines
SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpfast'"


@pytest.fixture
def delivery(folder, postgres_server):
    yield Delivery(folder, arbiters.Database(postgres_server.address), 5)
    restart(postgres_server)


def restart(server):
    if not (server.data / "postmaster.pid").exists():
        server.start()


def lose_everywhere(delivery, server, lose, step):
    """Lose the server at one point of a life after the other, and begin again; how often."""
    times = 0
    while True:
        code = forks.run(deliveries.do_at, delivery, 1 + times * step, lose)
        if len(deliveries.points(delivery)) == times:
            return times
        assert code in (0, deliveries.REFUSED)
        restart(server)
        delivery.live()
        times += 1


@pytest.mark.parametrize(("way", "step"), [("session", 1), ("server", 9)])
def test_lost_at_every_point(delivery, postgres_server, way, step, record_property):
    end_sessions = functools.partial(postgres_server.execute, SESSIONS)
    lose = {"session": end_sessions, "server": postgres_server.kill}[way]
    times = lose_everywhere(delivery, postgres_server, lose, step)
    counts = delivery.check()
    assert times > 90 // step
    assert counts.faults == 0
    what = {"session": "session ended at every point", "server": "server killed at every 9th point"}[way]
    measured.note(record_property, delivery, counts, what=what, times=times)


def test_lost_at_random_times(delivery, postgres_server, record_property):
    """Also in the middle of a commit, where nobody knows whether it was."""
    choice, times = random.Random(1), 0
    process = forks.start(deliveries.live_until, delivery, 400)
    while process.is_alive():
        time.sleep(choice.random() * 0.1)
        times += len(postgres_server.execute(SESSIONS))
    assert process.exitcode == 0
    counts = delivery.check()
    assert times > 20
    assert counts.steps >= 400
    assert counts.faults == 0
    measured.note(record_property, delivery, counts, what="session ended at random times", times=times)
