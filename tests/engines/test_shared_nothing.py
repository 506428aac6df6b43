"""Two machines that share nothing but PostgreSQL: each has folders, pieces, tables and an engine of its own."""

import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from helpers import deliveries, measured, readers

import dpfast as dp
from dpfast.releases.arbiters import postgres_session

pytest.importorskip("bytewax")
from helpers.arbiters import Database
from helpers.shard_lives import GROUPS, BytewaxShards

pytestmark = pytest.mark.engines


@dataclass(frozen=True)
class OnePlace:
    """The same place in a database, whoever asks from which folder."""

    database: Any
    at: Any
    name = "PostgreSQL"

    @property
    def calls(self):
        return self.database.calls

    def place(self, folder):
        return self.at


@pytest.fixture
def machines(postgres_server, folder):
    """Deliveries of two machines."""
    database = Database(postgres_server.address)
    place = database.place(folder)
    for name in "ab":
        (folder / name).mkdir()
    common = OnePlace(database, place), 20, dp.Postgres(postgres_server.address, f"{place.name[:30]}-w")
    return [BytewaxShards(folder / name, *common) for name in "ab"]


def check_tables(machines):
    """What readers of both machines saw, taken together; the counts of the one that has seen more."""
    seen = [readers.Reader.of(machine.shown).values for machine in machines]
    for number in range(len(GROUPS)):
        for step in seen[0].get(number, {}).keys() & seen[1].get(number, {}).keys():
            assert seen[0][number][step] == seen[1][number][step]
    counts = [machine.check() for machine in machines]
    assert all((found.twice, found.disordered) == (0, 0) for found in counts)
    return min(counts, key=lambda found: found.lost)


def test_one_goes_on_where_the_other_was_killed(machines, record_property):
    """In turns, each killed at another point; a folder of what is public that is empty is filled from the store."""
    kills = 0
    for machine, k in zip(itertools.cycle(machines), range(3, 400, 13), strict=False):
        kills += deliveries.kill(machine, k)
        machine.look()
    for machine in machines:
        assert deliveries.run(machine) == 0
        machine.look()
    counts = check_tables(machines)
    assert kills > 20
    assert counts.faults == 0
    what = "killed, and gone on with by another machine"
    measured.note(record_property, machines[0], counts, what=what, times=kills, engine="Bytewax, the package's sink")


def test_one_that_was_cut_off_and_comes_back_publishes_nothing(machines, record_property, monkeypatch):
    """It stands still anywhere, with whatever it holds; the other takes over; then it wakes up."""
    stopped, woken, k = 0, 0, 5
    with monkeypatch.context() as patch:
        patch.setattr(postgres_session, "_IDLE", "100ms")  # for which a stopped transaction is in the way
        for first, second in itertools.islice(itertools.cycle([machines, machines[::-1]]), 24):
            process = deliveries.stop(first, k)
            k += 17
            if process is None:
                continue
            stopped += 1
            assert deliveries.run(second) in (0, deliveries.REFUSED, 1)
            woken += deliveries.go_on(process) != 0
            for machine in machines:
                machine.look()
    for machine in machines:
        assert deliveries.run(machine) == 0
        machine.look()
    counts = check_tables(machines)
    assert (stopped, counts.faults) == (24, 0)
    assert woken > 5
    what = "cut off, replaced by another machine, and back"
    measured.note(record_property, machines[0], counts, what=what, times=stopped, engine="Bytewax, the package's sink")
