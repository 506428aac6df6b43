"""When sums are released and what is in them, by enumeration."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfast.releases.integer.block_schedule import BlockSchedule

EMPTY = np.empty((1, 0), np.int64)


@st.composite
def schedules(draw):
    if draw(st.booleans()):
        first = draw(st.integers(1, 4))
        lengths = (first, *(first * x for x in draw(st.lists(st.integers(2, 3), max_size=1))))
        return BlockSchedule(lengths, (0,) * len(lengths), draw(st.integers(0, first - 1)), ((),) * len(lengths))
    length, n_sums = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    rows = [draw(st.sampled_from([None, *range(n_sums)])) for _ in range(length)]
    signs = np.zeros((length, n_sums), np.int64)
    for i, k in enumerate(rows):
        if k is not None:
            signs[i, k] = draw(st.sampled_from([-1, 1]))
    lates = (0, *(draw(st.integers(0, length - 1)) for _ in range(n_sums - 1)))
    weights = tuple(tuple(np.roll(w, -late).tolist()) for w, late in zip(signs.T, lates, strict=True))
    return BlockSchedule((length,) * n_sums, lates, draw(st.integers(0, length - 1)), weights)


def naive(schedule, x, end=None):
    """The sums (levels, n) of a stream from step 0, input by input."""
    found = np.zeros((len(schedule.lengths), len(x)), np.int64)
    for k, (n, late) in enumerate(zip(schedule.lengths, schedule.lates, strict=True)):
        total = 0
        for t, value in enumerate(x):
            place = (t + schedule.phase - late) % n
            total += value * (schedule.weights[k][place] if schedule.weights[k] else 1)
            if place == n - 1:
                found[k, t] = total if end is None or t < end else 0
                total = 0
    return found


@given(schedules(), st.lists(st.integers(-9, 9), min_size=1, max_size=17), st.data())
def test_sums_of_pieces_are_those_of_the_whole(schedule, x, data):
    x = np.array(x)
    expected = naive(schedule, x)
    position, history, pieces = 0, EMPTY, []
    while position < len(x):
        n = data.draw(st.integers(1, len(x) - position))
        piece = x[None, position : position + n]
        assert history.shape[1] == schedule.needed(position)
        pieces.append(schedule.sums(history, piece, position))
        position += n
        seen = np.concatenate([history, piece], axis=1)
        history = seen[:, seen.shape[1] - schedule.needed(position) :]
    assert (np.concatenate(pieces, axis=2)[0] == expected).all()


@given(schedules(), st.integers(0, 9))
def test_no_input_is_needed_longer_than_until_its_sums_are_released(schedule, position):
    """By enumeration: the oldest input that a block holds which ends later."""
    ends = [
        next(t for t in itertools.count(step) if (t + 1 + schedule.phase - late) % n == 0)
        for step in range(position)
        for n, late in zip(schedule.lengths, schedule.lates, strict=True)
    ]
    held = [i // len(schedule.lengths) for i, end in enumerate(ends) if end >= position]
    assert schedule.needed(position) == (position - min(held) if held else 0)


@given(schedules(), st.integers(0, 9))
def test_nothing_is_released_from_the_end_on(schedule, end):
    x = np.arange(1, 12)
    assert (schedule.sums(EMPTY, x[None], 0, end)[0] == naive(schedule, x, end)).all()
    assert not schedule.due(0, 11, end)[:, end:].any()


@given(schedules(), st.integers(1, 13))
def test_ones_are_weighed(schedule, n):
    ones = naive(schedule, np.ones(n, np.int64))
    due = schedule.due(0, n)
    assert (schedule.weighed(0, n)[due] == ones[due]).all()


@given(schedules(), st.integers(1, 3), st.integers(1, 3))
def test_events_move_sums_by_no_more_than_their_own_size_on_each_level(schedule, n_events, size):
    """The largest l1 change over all places and signs of a person's events, by enumeration."""
    n, signed = 8, bool(schedule.weights[0])
    levels = 1 if signed else len(schedule.lengths)
    largest = 0
    for places in itertools.combinations(range(n), n_events):
        for signs in itertools.product([-size, size], repeat=n_events):
            change = np.zeros(n, np.int64)
            change[list(places)] = signs
            largest = max(largest, np.abs(naive(schedule, change)).sum())
    assert largest <= levels * n_events * size


def test_sums_of_long_streams_do_not_overflow():
    schedule = BlockSchedule((4,), (0,), 0, ((),))
    x = np.full((1, 64), 2**59)
    assert set(schedule.sums(EMPTY, x, 0)[0, 0].tolist()) == {0, 2**61}
