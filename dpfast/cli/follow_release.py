"""``dpfast release --follow``: events from standard input, published bin by bin."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast.cli.person_options import declared_persons
from dpfast.cli.release_input import declared_end
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.clock import Clock, Feed
from dpfast.releases.feed.event_lines import ByteSource, Lines
from dpfast.releases.feed.health import NAME as HEALTH
from dpfast.releases.feed.health import Health
from dpfast.releases.feed.live_estimates_file import Journal
from dpfast.releases.feed.missed_bins import NAME, write_missed
from dpfast.releases.feed.status import Watch
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.ledger.ledger import as_ledger
from dpfast.releases.model_check.verdict import look_steps
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.store_folders import Places
from dpfast.releases.stream import Stream
from dpfast.releases.stream_opening import open_in_store


class StandardInput:
    """A source that reads standard input without the buffer of `sys.stdin`.

    A thread would hold the lock of that buffer when the process ends.
    """

    def __init__(self) -> None:
        if sys.stdin is None:
            raise ValueError("standard input must be open with --follow, got a closed one: give it a pipe or a file")

    def read(self, size: int, /) -> bytes:
        """Read what is there, as soon as there is something; nothing at the end."""
        return os.read(sys.stdin.fileno(), size)


def publish_bins(
    options: argparse.Namespace,
    plan: ExactBase,
    layout: Layout,
    places: Places,
    declared: dict[str, Any],
    source: ByteSource,
    clock: Clock,
) -> Path:
    """Publish each bin of the source as it ends, and return the path of the estimates."""
    mechanism, grace = plan.mechanism, declared["grace_us"]
    path = places.out / "estimates.csv"
    columns = options.time, options.by, options.count, options.time_format
    largest = largest_value(mechanism.privacy.max_change)
    lines = Lines(layout.span, layout.groups, *columns, largest, options.person)
    _check_future(options.end, layout.span.time(layout.span.n_bins) + grace, places, clock)
    private = PrivateCounts(layout.groups, plan.inputs, follow=True) if options.private_counts else None
    ledger = as_ledger(options.ledger)
    store = ReleaseStore.open(places.store, places.out, adopt=options.adopt, witness=options.witness)
    persons = declared_persons(options, layout.span)
    stream = open_in_store(
        store,
        mechanism,
        plan.inputs,
        options.tolerance,
        declared,
        adopt=options.adopt,
        persons=persons,
        ledger=ledger,
        seen=private,
        end=declared_end(options, layout.span),
        keep_steps=options.keep_steps,
    )
    watch = Watch(layout, clock, private=private, quiet=options.quiet)
    with stream, Journal(path, layout) as journal, watch, Health(places.out / HEALTH, layout, grace, clock) as health:
        print(stream.guarantee, flush=True)
        position, seen = min(stream.position, layout.span.n_bins), None if private is None else private.see
        repeated = (lambda n: None) if private is None else private.count_beyond
        feed = Feed(
            source,
            lines,
            first=position,
            grace=grace,
            clock=clock,
            seen=seen,
            repeated=repeated,
            wait=lambda: _wait(watch, health),
        )
        write_missed(places.out / NAME, layout, feed.missed)
        watch.begin(position, feed.missed)
        health.begin(position)
        _look(stream, journal, watch, 0)
        _catch_up(stream, journal, mechanism.lag or 0)
        for first, chunk in feed.bins():
            published = stream.push(chunk, first=first)
            _look(stream, journal, watch, first)
            journal.append(published.first - published.lag, published.estimate)
            if private is not None and not isinstance(chunk, Events):
                private.count_clamped(chunk)
            watch.note_published(first + chunk.shape[1])
            health.note_published(first + chunk.shape[1])
            stream.prepare()
        published = stream.close()  # of a stream that is over: the same once more
        journal.append(published.first - published.lag, published.estimate)
    return path


def _wait(watch: Watch, health: Health) -> None:
    """Say, now and then, that the end of a bin is waited for."""
    watch.wait()
    health.wait()


def _look(stream: Stream, journal: Journal, watch: Watch, before: int) -> None:
    """Compare a stream with its model where it came to the next look behind a step, before its rows are written."""
    if look_steps(stream.position) != look_steps(before):
        check = stream.model_check()
        watch.note_contradiction(check)
        if check.contradicted_after is not None:
            journal.leave_out_errors(check.contradicted_after - 1 - stream.lag)


def _check_future(end: str, last: int, places: Places, clock: Clock) -> None:
    """Refuse to begin with a span of which no event could be counted any more."""
    if not places.used and last <= clock.now():
        must_be = "in the future with --follow: the bins of the past would hold zeros alone; publish events of the past"
        raise validation.fail("end", f"{must_be} from a file", end)


def _catch_up(stream: Stream, journal: Journal, lag: int) -> None:
    """Write the estimates that an earlier process published and did not write."""
    missing = stream.position - lag - journal.position
    if missing > 0:
        published = stream.read(journal.position + lag, missing)
        journal.append(published.first - published.lag, published.estimate)
