"""Which entries add up, against every event and every person there can be."""

import itertools
import time
from fractions import Fraction

import pytest
from helpers.ledgers import DAY, dated, entry
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.releases.ledger.cap import Cap
from dpfast.releases.ledger.entry import Entry, in_force
from dpfast.releases.ledger.statement import Total
from dpfast.releases.ledger.together import alternatives, loss_of, windows

EPSILON = Cap(epsilon=Fraction(1))
GROUPS = {"town": ("x", "y"), "kind": ("p", "q")}


def sum_of(entries):
    return EPSILON.spent(entries)[0]


def covers(item, day, values):
    """Whether an event of that day, with those values of the columns, is in a release."""
    begin, end = item.start // DAY, item.end and item.end // DAY
    return begin <= day and (end is None or day < end) and (item.groups is None or values[item.column] in item.groups)


@st.composite
def event_entries(draw):
    first = draw(st.integers(0, 4))
    column = draw(st.sampled_from([None, *GROUPS]))
    groups = column and tuple(sorted(draw(st.sets(st.sampled_from(GROUPS[column]), min_size=1))))
    last = draw(st.one_of(st.none(), st.integers(first + 1, 6)))
    epsilon = draw(st.sampled_from([1, 2, Fraction(1, 2)]))
    return dated(first, last, column=column, groups=groups, epsilon=epsilon)


@settings(max_examples=200)
@given(st.lists(event_entries(), max_size=6))
def test_of_one_clock_all_events_there_can_be(entries):
    values = [dict(zip(GROUPS, x, strict=True)) for x in itertools.product(*([*g, "other"] for g in GROUPS.values()))]
    worst = max(
        sum((x.epsilon for x in entries if covers(x, day, value)), Fraction(0)) for day in range(7) for value in values
    )
    assert sum_of(entries) == worst


CLOCKS = [("when", "null", "UTC"), ("when", '"%d"', "UTC"), ("when", "null", "local"), ("end", "null", "UTC")]
DAYS = 3


@st.composite
def any_entries(draw):
    """Over days of some clock, or over steps of a store that declares none; of one event or of several."""
    column = draw(st.sampled_from([None, *GROUPS]))
    first, last = sorted(draw(st.lists(st.integers(0, DAYS), min_size=2, max_size=2, unique=True)))
    given = {
        "column": column,
        "groups": column and tuple(sorted(draw(st.sets(st.sampled_from(GROUPS[column]), min_size=1)))),
        "epsilon": draw(st.sampled_from([1, 2, Fraction(1, 2)])),
        "store": draw(st.sampled_from(["a", "b"])),
        "max_events": draw(st.sampled_from([1, 1, 1, 2])),
    }
    if (clock := draw(st.sampled_from([None, *CLOCKS]))) is None:
        return entry(first=first, count=last - first, **given)
    return dated(first, last, clock=clock, **given)


def key_of(item):
    """By what an event has one day: a clock, or the steps of a store without one."""
    return item.clock or item.store


def has(item, days, values):
    """Whether an event of these days by all clocks, and of these groups, is in a release; several events always are."""
    if not item.is_single:
        return True
    begin, end = (item.first, item.first + item.count) if item.clock is None else (item.start // DAY, item.end // DAY)
    return begin <= days[key_of(item)] < end and (item.groups is None or values[item.column] in item.groups)


@settings(max_examples=150)
@given(st.lists(any_entries(), min_size=1, max_size=5))
def test_of_several_clocks_and_stores_no_event_loses_more_than_is_stated(entries):
    """All placements one by one; it is exact where no column of groups is shared between clocks."""
    keys = sorted({key_of(x) for x in entries}, key=str)
    columns = sorted({x.column for x in entries if x.column})
    worst, sets = Fraction(0), set()
    for days in itertools.product(range(DAYS), repeat=len(keys)):
        for values in itertools.product(*([*GROUPS[x], "other"] for x in columns)):
            placed = dict(zip(keys, days, strict=True)), dict(zip(columns, values, strict=True))
            there = [i for i, x in enumerate(entries) if has(x, *placed)]
            sets.add(tuple(there))
            worst = max(worst, sum((entries[i].epsilon for i in there), Fraction(0)))
    assert sum_of(entries) >= worst
    if all(len({key_of(x) for x in entries if x.column == column and x.is_single}) < 2 for column in columns):
        assert sum_of(entries) == worst
    total = Total.of(entries, 1e-3)
    assert total.epsilon >= max(loss_of([entries[i] for i in x]).epsilon(1e-3) for x in sets)
    assert total.rho >= max(loss_of([entries[i] for i in x]).zcdp()[0] for x in sets)


@pytest.mark.parametrize(
    ("entries", "total"),
    [
        ([dated(0, 1), dated(1, 2)], 1),
        ([dated(0, 2), dated(1, 2)], 2),
        ([dated(0, None), dated(5, 6)], 2),
        ([dated(0, 1), dated(1, 2, clock=("other", "null", "UTC"))], 2),
        ([dated(0, 1), dated(1, 2, clock=("when", '"%d"', "UTC"))], 2),
        ([dated(0, 1), dated(1, 2, clock=("when", "null", "local"))], 2),
        ([dated(0, 1), dated(1, 2, max_events=2)], 2),
        ([dated(0, 1), dated(1, 2, streams_per_person=2)], 2),
        ([dated(0, 1, column="town", groups=("x",)), dated(0, 1, column="town", groups=("y",))], 1),
        ([dated(0, 1, column="town", groups=("x",)), dated(0, 1, column="kind", groups=("y",))], 2),
        ([dated(0, 1, column="town", groups=("x",)), dated(0, 1)], 2),
        ([entry(first=0), entry(first=10)], 1),
        ([entry(first=0), entry(first=9)], 2),
        ([entry(first=0, count=None), entry(first=10)], 2),
        ([entry(first=0), entry(first=10, store="b")], 2),
        ([entry(first=0), dated(20, 21)], 2),
        ([entry(first=0, max_events=3), entry(first=10, max_events=3)], 2),
    ],
)
def test_events(entries, total):
    assert sum_of(entries) == sum_of(entries[::-1]) == total


TOWN = {"unit": "person", "column": "town", "bounding": "state/0"}


@pytest.mark.parametrize(
    ("entries", "total"),
    [
        ([dated(0, 1, unit="person"), dated(1, 2, unit="person")], 2),  # spans of persons always add up
        ([dated(0, 1, groups=("x",), **TOWN), dated(0, 1, groups=("y",), **TOWN)], 1),
        ([dated(0, 1, groups=("x",), **TOWN), dated(0, 1, groups=("x", "y"), **TOWN)], 2),
        ([dated(0, 1, groups=("x",), **TOWN), dated(1, 2, groups=("y",), **TOWN | {"bounding": "state/1"})], 2),
        ([dated(0, 1, groups=("x",), **TOWN), dated(0, 1, groups=("y",), **TOWN | {"bounding": None})], 2),
        ([dated(0, 1, groups=(x,), streams_per_person=2, **TOWN) for x in "xy"], 2),
        ([dated(0, 1, groups=("x",), **TOWN), dated(0, 1, groups=("y",), **TOWN | {"column": "kind"})], 2),
    ],
)
def test_persons(entries, total):
    assert sum_of(entries) == sum_of(entries[::-1]) == total


def test_events_and_persons_are_never_added():
    assert sum_of([entry(), entry(unit="person", epsilon=3)]) == 3


def test_of_a_series_the_last_counts():
    spans = [dated(0, n, unit="person", series="s", size=n, epsilon=n) for n in (1, 2, 3)]
    assert in_force(spans) == spans[-1:]
    assert sum_of([*spans, dated(0, 1, unit="person", series="t")]) == 4


def test_many_alternatives_are_bounded_by_adding_all():
    entries = [
        dated(day, day + 1, clock=(str(column), "null", "UTC"), epsilon=Fraction(day + 1))
        for column in range(9)
        for day in range(3)
    ]
    exact = 9 * 3
    assert exact <= sum_of(entries) <= 9 * 6
    assert len(alternatives(entries)) <= 256
    equal = [dated(day, day + 1, clock=(str(column), "null", "UTC")) for column in range(9) for day in range(3)]
    assert sum_of(equal) == 9  # what costs the same is one alternative


def test_many_groups_are_gone_through_once():
    """Two releases share a group of 50,000 each; each group against each would take minutes."""
    names = tuple(f"g{i}" for i in range(99_999))
    entries = [dated(0, 1, column="town", groups=names[:50_000]), dated(0, 1, column="town", groups=names[49_999:])]
    began = time.process_time()
    assert sum_of(entries) == 2
    assert sum_of([entries[0], dated(0, 1, column="town", groups=names[50_000:])]) == 1
    assert sum_of([dated(0, 1, column="town", groups=()), dated(0, 1)]) == 1
    assert time.process_time() - began < 20  # of this process alone; it takes a tenth of a second


@settings(max_examples=100)
@given(st.lists(event_entries(), min_size=1, max_size=6), st.integers(1, 4), st.booleans())
def test_windows_have_what_any_window_has(entries, days, timeless):
    entries = entries + [entry(epsilon=5)] * timeless
    found = {frozenset(map(id, inside)) for _, inside in windows(entries, days * DAY)}
    for half_days in range(-10, 20):  # all windows that begin at noon or at midnight
        begin = half_days * DAY // 2
        inside = {
            id(x)
            for x in entries
            if x.start is None or (x.start < begin + days * DAY and (x.end is None or begin < x.end))
        }
        assert any(inside <= other for other in found)
    for begin, inside in windows(entries, days * DAY):
        for x in inside:
            assert x.start is None or (x.start < begin + days * DAY and (x.end is None or begin < x.end))


HOUR = DAY // 24


def hourly(first, n, zone):
    """An entry over so many hours of a clock; None is no end."""
    end = None if n is None else (first + n) * HOUR
    return entry(start=first * HOUR, end=end, clock=("when", "null", zone))


zoned = st.builds(
    hourly, st.integers(0, 72), st.one_of(st.none(), st.integers(1, 24)), st.sampled_from(["UTC", "local"])
)


@settings(max_examples=200)
@given(st.lists(zoned, min_size=1, max_size=5), st.integers(1, 30), st.integers(-12, 14), st.integers(-30, 90))
@example([hourly(0, 24, "UTC"), hourly(38, 24, "local")], 2, 14, 23)  # the one begins when the other ends
@example([hourly(24, 24, "UTC"), hourly(0, 12, "local")], 2, -12, 23)
def test_windows_have_what_any_window_has_whatever_the_offset_of_the_local_clock(entries, hours, offset, begin):
    """By UTC, in which spans by the local clock begin and end so many hours earlier."""
    if any(x.clock[2] == "UTC" for x in entries):
        moved = {id(x): 0 if x.clock[2] == "UTC" else -offset * HOUR for x in entries}
    else:
        moved = {id(x): 0 for x in entries}  # by the local clock
    inside = {
        id(x)
        for x in entries
        if x.start + moved[id(x)] < (begin + hours) * HOUR and (x.end is None or begin * HOUR < x.end + moved[id(x)])
    }
    assert any(inside <= set(map(id, there)) for _, there in windows(entries, hours * HOUR))


@given(event_entries())
def test_entries_go_through_text(item):
    assert Entry.from_json(item.to_json()) == item
    assert Entry.from_json(item.to_json()).is_same_release(item)
