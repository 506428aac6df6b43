"""A naive twin of the bounding of persons, which imports nothing of the package: lists, searched from the start."""

import itertools


def bound(log, m, b, k, span=None):
    """The events that are kept of a log of (step, stream, person), which is in the order of time and of arrival.

    A person who is None has no events.
    """
    kept = []
    for step, stream, person in sorted((event for event in log), key=lambda event: event[0]):
        if person is None:
            continue
        now = 0 if span is None else step // span
        mine = [(t, s) for t, s, who in kept if who == person and (0 if span is None else t // span) == now]
        here = [t for t, s in mine if s == stream]
        streams = {s for _, s in mine}
        if stream not in streams and len(streams) >= k:
            continue
        if len(here) >= m or any(abs(step - t) < b for t in here):
            continue
        kept.append((step, stream, person))
    return kept


def inputs(log, n_streams, n_steps):
    """How many events of a log are at each stream and step."""
    counts = [[0] * n_steps for _ in range(n_streams)]
    for step, stream, _ in log:
        counts[stream][step] += 1
    return counts


def check_difference(u, v, m, b, k, span=None):
    """Two inputs differ, in every span, by at most m events of size 1, b apart, in each of at most k streams."""
    n_steps = len(u[0])
    width = span or n_steps
    for start in range(0, n_steps, width):
        changed = []
        for x, y in zip(u, v, strict=True):
            steps = [t for t in range(start, min(start + width, n_steps)) if x[t] != y[t]]
            assert all(abs(x[t] - y[t]) == 1 for t in steps)
            assert len(steps) <= m
            assert all(later - earlier >= b for earlier, later in itertools.pairwise(steps))
            changed.append(bool(steps))
        assert sum(changed) <= k
