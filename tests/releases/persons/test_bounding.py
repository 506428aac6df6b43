"""The bounding of persons, against a naive twin, and what it is for: without a person little differs."""

import random

import pytest
from helpers import person_bounds_twin as twin
from hypothesis import given
from hypothesis import strategies as st

from dpfast.releases.feed.clock import PersonTally
from dpfast.releases.feed.event_lines import Event
from dpfast.releases.persons.bounding import Bounding, Kept
from dpfast.releases.persons.person_bounds import PersonBounds

NAMES = [b"a", b"b", b"c", b"d"]


def bounds(m=1, b=1, k=1, n_streams=3, span=None):
    return PersonBounds(m, b, k, n_streams, span)


def undecided(step):
    return False


def choose(log, given, state=()):
    """The kept events of a log in one span, decided step by step, each settled before the next."""
    bounding, kept = Bounding(given, state), []
    for step in sorted({event[0] for event in log}):
        events = [event for event in log if event[0] == step]
        choice = bounding.choose(events, undecided)
        kept += [event for event, taken in zip(events, choice.taken, strict=True) if taken]
        assert [tuple(x) for x in choice.kept] == [
            (person, stream, step) for (step, stream, person), taken in zip(events, choice.taken, strict=True) if taken
        ]
        bounding.settle(choice)
    return kept


logs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 2), st.sampled_from(NAMES)), max_size=40)
small = st.integers(1, 4)


@given(logs, small, small, small)
def test_what_is_kept_is_what_a_naive_twin_keeps(log, m, b, k):
    log = sorted(log, key=lambda event: event[0])
    assert choose(log, bounds(m, b, k)) == twin.bound(log, m, b, k)


@given(logs, small, small, small)
def test_steps_decided_one_by_one_are_those_decided_at_once(log, m, b, k):
    log = sorted(log, key=lambda event: event[0])
    choice = Bounding(bounds(m, b, k)).choose(log, undecided)
    kept = [event for event, taken in zip(log, choice.taken, strict=True) if taken]
    assert kept == choose(log, bounds(m, b, k))


@given(logs, small, small, small)
def test_a_state_that_was_kept_goes_on_as_if_nothing_had_been_in_between(log, m, b, k):
    log = sorted(log, key=lambda event: event[0])
    early, late = [x for x in log if x[0] < 6], [x for x in log if x[0] >= 6]
    kept = choose(early, bounds(m, b, k))
    state = [Kept(person, stream, step) for step, stream, person in kept]
    assert kept + choose(late, bounds(m, b, k), state) == choose(log, bounds(m, b, k))


@given(logs, logs, small, small, small)
def test_a_decided_step_takes_one_event_where_one_was_kept_and_keeps_nothing_new(log, other, m, b, k):
    log = sorted(log, key=lambda event: event[0])
    kept = choose(log, bounds(m, b, k))
    state = [Kept(person, stream, step) for step, stream, person in kept]
    again = Bounding(bounds(m, b, k), state).choose(other, lambda step: True)
    taken = [event for event, take in zip(other, again.taken, strict=True) if take]
    assert len(set(taken)) == len(taken)
    assert set(taken) == set(kept) & set(other)
    assert again.kept == []
    assert again.records == {}


def test_a_choice_changes_nothing_before_it_is_settled():
    bounding = Bounding(bounds())
    first = bounding.choose([(0, 0, b"a")], undecided)
    assert bounding.choose([(0, 0, b"a")], undecided).taken == [True]
    bounding.settle(first)
    assert bounding.choose([(1, 0, b"a")], undecided).taken == [False]


def test_a_choice_that_is_not_settled_leaves_what_was_kept_before_it():
    bounding = Bounding(bounds(m=3), [Kept(b"a", 0, 0)])
    bounding.choose([(1, 0, b"a"), (2, 0, b"a")], undecided)  # given up
    assert bounding.choose([(1, 0, b"a"), (2, 0, b"a"), (3, 0, b"a")], undecided).taken == [True, True, False]


def test_earlier_steps_that_come_later_keep_their_distance_to_both_sides():
    """As where a batch of an earlier month follows: the separation goes both ways."""
    given = bounds(m=4, b=3)
    state = [Kept(b"a", 0, 2), Kept(b"a", 0, 9)]
    choice = Bounding(given, state).choose([(t, 0, b"a") for t in range(12)], undecided)
    assert [t for t, taken in enumerate(choice.taken) if taken] == [5]
    assert [
        t
        for t, taken in enumerate(
            Bounding(bounds(m=9, b=3), state).choose([(t, 0, b"a") for t in range(14)], undecided).taken
        )
        if taken
    ] == [5, 12]


def test_a_person_is_in_the_first_streams_in_which_an_event_is_kept():
    log = [(0, 2, b"a"), (0, 2, b"a"), (1, 0, b"a"), (2, 1, b"a"), (3, 0, b"a"), (4, 2, b"a")]
    assert choose(log, bounds(m=2, k=2)) == [(0, 2, b"a"), (1, 0, b"a"), (3, 0, b"a"), (4, 2, b"a")]


def check_logs(n, seed):
    """Random logs: without one person, the kept events differ by as much as is declared, and no more."""
    rng = random.Random(seed)
    most = 0
    for _ in range(n):
        m, b, k = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)
        names = NAMES[: rng.randint(1, 4)]
        log = sorted(
            ((rng.randrange(12), rng.randrange(3), rng.choice(names)) for _ in range(rng.randrange(60))),
            key=lambda event: event[0],
        )
        who = rng.choice(names)
        given = bounds(m, b, k)
        with_all = twin.inputs(choose(log, given), 3, 12)
        without = twin.inputs(choose([event for event in log if event[2] != who], given), 3, 12)
        twin.check_difference(with_all, without, m, b, k)
        most = max(most, sum(map(sum, with_all)) - sum(map(sum, without)))
    assert most >= 9  # the logs are rich enough that bounds are reached in several streams


def test_without_a_person_the_kept_events_differ_by_what_is_declared():
    check_logs(300, 1)


@pytest.mark.long
def test_without_a_person_the_kept_events_differ_by_what_is_declared_in_ten_thousand_logs():
    check_logs(10_000, 2)


# --- live: late events, rows without an id, spans and replays --------------------------------------


def bound_live(arrivals, given, n_steps):
    """What is kept of events (arrival, step, stream, person), as a stream keeps it: step by step, on the clock.

    Behind every step it is opened again, with what the store would have, and the step is pushed again.
    """
    tally, kept, total = PersonTally(given.n_streams, 0, lambda n: None), [], []
    waiting = sorted(arrivals, key=lambda event: event[0])
    for now in range(n_steps):
        while waiting and waiting[0][0] <= now:
            arrival, step, stream, person = waiting.pop(0)
            if person is not None:  # lines without an id do not get so far
                assert tally.add(Event(step, stream, 1, arrival, person)) == (step >= now)
        if given.span_steps is not None and now % given.span_steps == 0:
            kept = []
        table = tally.close(now)
        _, events = table.in_order()
        moved = [(now, stream, person) for _, stream, person in events]
        choice = Bounding(given, kept).choose(moved, undecided)
        kept = kept + choice.kept
        again = Bounding(given, kept).choose(moved * 2, lambda step: True)
        assert again.taken == choice.taken + [False] * len(moved)
        assert again.kept == []
        total += [(step, stream, person) for person, stream, step in choice.kept]
    return total


def check_live_logs(n, seed):
    rng = random.Random(seed)
    most = 0
    for _ in range(n):
        m, b, k, span = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3), rng.choice([None, 3, 4, 5])
        given, names = bounds(m, b, k, span=span), [*NAMES[: rng.randint(1, 4)], None]
        steps = [rng.randrange(12) for _ in range(rng.randrange(60))]
        arrivals = [(step + rng.choice([-2, 0, 0, 0, 1]), step, rng.randrange(3), rng.choice(names)) for step in steps]
        who = rng.choice(names[:-1])
        with_all = twin.inputs(bound_live(arrivals, given, 12), 3, 12)
        without = twin.inputs(bound_live([x for x in arrivals if x[3] != who], given, 12), 3, 12)
        twin.check_difference(with_all, without, m, b, k, span)
        most = max(most, sum(map(sum, with_all)) - sum(map(sum, without)))
    assert most >= 6


def test_live_logs_differ_without_a_person_by_what_is_declared():
    check_live_logs(60, 3)


@pytest.mark.long
def test_ten_thousand_live_logs_differ_without_a_person_by_what_is_declared():
    check_live_logs(10_000, 4)


def test_a_bounding_that_is_wrong_is_found(monkeypatch):
    """Streams counted by events of all persons, as a bound on the whole would be."""
    may_keep = Bounding._may_keep

    def mutant(self, record, stream, step):
        return sum(map(len, self._records.values())) < 5 and may_keep(self, record, stream, step)

    monkeypatch.setattr(Bounding, "_may_keep", mutant)
    with pytest.raises(AssertionError):
        check_live_logs(60, 3)
