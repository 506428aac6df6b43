"""A ledger in PostgreSQL: what copies, servers that forget and other programs may do to it."""

import itertools
import threading

import numpy as np
import pytest
from helpers.ledgers import entry

import dpfast as dp
from dpfast._support.errors import ReleaseError

pytestmark = pytest.mark.engines
NAMES = (f"schema-{n}" for n in itertools.count())
PLAN = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 9), tolerance=0.1)


@pytest.fixture
def place(postgres_server):
    return dp.Postgres(postgres_server.address, next(NAMES))


def test_programs_that_enter_at_once_stay_within_the_cap(place):
    ledger, done = dp.Ledger.create(place, "guests", cap_epsilon=6), []

    def enter(n):
        try:
            done.append(dp.Ledger.open(place).enter([entry(store=f"s{n}", max_events=2, epsilon=1)])[0])
        except ReleaseError as error:
            done.append(str(error))

    threads = [threading.Thread(target=enter, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(x[0] for x in done if not isinstance(x, str)) == [1, 2, 3, 4, 5, 6]
    assert all("beyond the cap" in x for x in done if isinstance(x, str))
    assert len(ledger.lines) == 6


def test_stores_anywhere_enter_before_they_publish(postgres_server, place, tmp_path):
    """One in a folder, one in the same database; the third would go beyond the cap."""
    dp.Ledger.create(place, "guests", cap_epsilon=2, cap_delta=1e-5)
    counts = np.array([3, 1, 2])
    dp.release(PLAN, counts, tmp_path / "a", ledger=place)
    with dp.open_stream(PLAN, place.beside("-b"), published=tmp_path / "b", ledger=place) as stream:
        stream.push(counts)
    with pytest.raises(ReleaseError, match="beyond the cap of the ledger"):
        dp.release(PLAN, counts, place.beside("-c"), published=tmp_path / "c", ledger=place)
    assert [line.published for line in dp.Ledger.open(place).lines] == [True, True]
    with pytest.raises(ReleaseError, match="ledger must be given"):
        dp.open_stream(PLAN, place.beside("-b"), published=tmp_path / "b")
    postgres_server.execute(f'DELETE FROM "{place.schema}".entries WHERE number = 2')
    with pytest.raises(ReleaseError, match="was set back"):
        dp.open_stream(PLAN, place.beside("-b"), published=tmp_path / "b", ledger=place)


def test_a_restored_dump_is_a_copy_until_it_is_adopted(postgres_server, place):
    dp.Ledger.create(place, "guests").enter([entry(store="s0")])
    text = postgres_server.dump(place.schema)
    postgres_server.execute(f'ALTER SCHEMA "{place.schema}" RENAME TO "away_{place.name}"')
    postgres_server.restore(text)
    with pytest.raises(ReleaseError, match="was copied or moved"):
        dp.Ledger.open(place)
    assert len(dp.Ledger.open(place, adopt=True).lines) == 1
    assert len(dp.Ledger.open(place).lines) == 1


def test_what_is_not_there_is_not_begun_and_what_is_there_not_made_again(place):
    with pytest.raises(ReleaseError, match=r"is not there\. A new one is made by dp\.Ledger\.create"):
        dp.Ledger.open(place)
    dp.Ledger.create(place, "guests")
    with pytest.raises(ReleaseError, match="is there already"):
        dp.Ledger.create(place, "others")
    assert dp.Ledger.open(place).population == "guests"


def test_a_ledger_is_no_store_and_a_store_no_ledger(place, tmp_path):
    dp.Ledger.create(place, "guests")
    with pytest.raises(ReleaseError, match="damaged"):
        dp.open_stream(PLAN, place, published=tmp_path / "a")
    other = place.beside("-store")
    dp.open_stream(PLAN, other, published=tmp_path / "b").suspend()
    with pytest.raises(ReleaseError, match="is not there"):
        dp.Ledger.open(other)
    with pytest.raises(ReleaseError, match="is there already"):
        dp.Ledger.create(other, "guests")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {}.entries SET content = replace(content, 's0', 's1')",
        "UPDATE {}.meta SET cap = ''",
        "UPDATE {}.published SET seal = seal + 1",
        "DELETE FROM {}.meta",
        "DELETE FROM {}.place",
        "DELETE FROM {}.entries WHERE number = 1",
    ],
)
def test_what_was_changed_is_damage(postgres_server, place, change):
    ledger = dp.Ledger.create(place, "guests", cap_epsilon=9)
    ledger.enter([entry(store="s0"), entry(store="s2")])
    ledger.confirm([1])
    postgres_server.execute(change.format(f'"{place.schema}"'))
    with pytest.raises(ReleaseError, match="is damaged"):
        dp.Ledger.open(place)


def test_a_server_that_may_forget_takes_no_entries(postgres_server, place):
    ledger = dp.Ledger.create(place, "guests")
    postgres_server.execute("ALTER SYSTEM SET synchronous_commit = off")
    postgres_server.execute("SELECT pg_reload_conf()")
    try:
        with pytest.raises(ReleaseError, match=r"the server of the ledger .* must have fsync on"):
            ledger.enter([entry(store="s0")])
    finally:
        postgres_server.execute("ALTER SYSTEM RESET ALL")
        postgres_server.execute("SELECT pg_reload_conf()")
    assert ledger.enter([entry(store="s0")])[0] == [1]
