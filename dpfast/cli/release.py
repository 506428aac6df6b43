"""The command ``dpfast release``: a log of events, or events as they come, published in declared bins."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.output_folder import Folder
from dpfast.mechanisms.checks import releasable
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.releases.batch import Batch
from dpfast.releases.composition import bounds
from dpfast.releases.feed.clock import Clock, Feed, SystemClock
from dpfast.releases.feed.estimates_file import Journal, Layout
from dpfast.releases.feed.event_lines import ByteSource, Lines
from dpfast.releases.feed.missed_bins import NAME, mark
from dpfast.releases.feed.status import Watch, heartbeat
from dpfast.releases.integer.exact_mechanism import ExactMechanism, exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.reading import chosen, read
from dpfast.releases.released_file import Wanted, check_free, check_name, file_of, finish_others, write
from dpfast.releases.store.places import Places, for_new_store
from dpfast.releases.store.records import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream
from dpfast.releases.stream_opening import stream_in
from dpfast.signals.events.declared import Span, check_time_format, count_events, declared_groups
from dpfast.signals.events.timestamps import parse_period

FORMATS = ("csv", "parquet")
DRY = "A dry run: nothing was published and nothing was spent. What lines marked PRIVATE say is for you alone."


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for: all of it is declared, nothing read off the events.

    Attributes
    ----------
    events : str
        Path of a log; "-" with `follow`.
    mechanism, out, store : str
        Paths; where the store is None it lies beside `out`, its name with "-private".
    time, start, end, period, by, groups, count, time_format
        As for :func:`dpfast.signals.events.declared.count_events`.
    low, high, unit, centre, streams_per_person
        As for :class:`Inputs`.
    tolerance, compose, adopt
        As for :func:`release`; `adopt` is also the operator's word for what nobody declared of earlier releases.
    new_store : bool
        Where the store has another declaration, go to the next places, whose numbers are behind `out` and `store`.
    format : str
        "csv" or "parquet".
    name : str or None
        Of the release and its file.
    follow : bool
        Events come from standard input, and bins are published as they end.
    grace : str or None
        Length of time, as a period; with `follow`.
    dry_run : bool
        Read a file, and publish nothing.
    quiet : bool
        Show no private counts, and not how far it is.
    private_counts : bool
        Show private counts with `follow`; those of a file are shown without.
    """

    events: str
    mechanism: str
    time: str
    start: str
    end: str
    period: str
    high: Fraction
    out: str
    time_format: str | None = None
    by: str | None = None
    groups: Sequence[str] | None = None
    count: str | None = None
    low: Fraction = Fraction(0)
    unit: Fraction = Fraction(1)
    centre: Fraction = Fraction(0)
    streams_per_person: int = 1
    tolerance: float = 1e-3
    store: str | None = None
    format: str = "csv"
    name: str | None = None
    compose: bool = False
    adopt: bool = False
    new_store: bool = False
    follow: bool = False
    grace: str | None = None
    dry_run: bool = False
    quiet: bool = False
    private_counts: bool = False


def run(
    request: Request, *, source: ByteSource | None = None, clock: Clock | None = None, progress: bool = False
) -> str:
    """Release, and say what is promised and where it is; private counts go to standard error alone.

    Parameters
    ----------
    request : Request
    source : ByteSource, optional
        In place of standard input.
    clock : Clock, optional
        In place of the machine's.
    progress : bool
        Say on standard error, every few seconds, that a file is being released.
    """
    span = Span.declared(request.start, request.end, request.period)
    groups = declared_groups(span, request.by, request.groups)
    _check(request, span)
    inputs = Inputs.of_counts(
        request.low,
        request.high,
        unit=request.unit,
        centre=request.centre,
        n_streams=len(groups),
        streams_per_person=request.streams_per_person,
    )
    if not request.dry_run:
        Folder(request.out)  # refuses a place that cannot be written to
    mechanism = releasable(load(request.mechanism))
    if request.follow and mechanism.lag is None:
        raise ValueError("mechanism must have a lag with --follow, got a smoother, which needs the whole signal")
    plan = exact(mechanism, inputs, tolerance=request.tolerance)
    layout = Layout(span, groups, plan.predicted_rmse_if_model_holds)
    if request.follow:
        return _follow(request, plan, layout, source or _StandardInput(), clock or SystemClock())
    doing = f"releasing {span.n_bins:,} steps of {len(groups):,} groups"
    with heartbeat(progress and not request.quiet, doing):
        if request.dry_run:
            _step(span)
            _counted(request, plan, layout)
            return DRY
        return _release(request, plan, layout)


def _check(request: Request, span: Span) -> None:
    """Refuse what does not go together, before any work."""
    validation.choice("format", request.format, FORMATS)
    for name in ("time", "by", "count", "time_format"):
        _check_text(name, getattr(request, name))
    check_time_format(span, request.time_format)
    if request.format == "parquet":
        validation.optional("pyarrow.parquet", "parquet")
    if (request.events == "-") != request.follow:
        raise ValueError("events must be -, for standard input, with --follow, and the path of a file without it")
    _check_shown(request)
    check_name(request.name)
    if not request.follow:
        if request.grace is not None:
            raise ValueError("grace must come with --follow: the events of a file are all there")
        return
    if request.compose or request.name is not None or request.format != "csv":
        raise ValueError("follow must come without --compose and --name, and with --format csv: its one file grows")
    if not span.utc:
        raise ValueError("start must have a UTC offset with --follow, such as Z: a local clock jumps twice a year")


def _check_text(name: str, text: str | None) -> None:
    """Refuse what was typed in another encoding: no column has such a name, and no guarantee could show it."""
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise validation.fail(name, "text in the encoding of the terminal", text) from None


def _check_shown(request: Request) -> None:
    if request.dry_run and request.follow:
        raise ValueError("dry_run must come without --follow, whose events come once: take --private-counts there")
    if request.private_counts and not request.follow:
        raise ValueError("private_counts must come with --follow: those of a file are shown unless there is --quiet")
    if request.quiet and (request.dry_run or request.private_counts):
        raise ValueError("quiet must come without --dry-run and --private-counts, which are there to show counts")


def _placed(request: Request, declared: dict[str, Any]) -> Places:
    """Where to publish from; a new store has places of its own."""
    out, store = Path(request.out), None if request.store is None else Path(request.store)
    return for_new_store(out, store, declared) if request.new_store else Places.of(out, store)


def _written(text: str, file: Path, request: Request, places: Places) -> str:
    lines = [text] if text else []
    lines += [f"Written: {file}\nPrivate store: {places.store}"]
    if places.out != Path(request.out).absolute():
        lines += [f"This is another store than that of {request.out}: what both publish of the same events adds up."]
    return "\n\n".join(lines)


def _declared(request: Request, plan: ExactMechanism, layout: Layout) -> dict[str, Any]:
    """What the steps of the store mean, which are numbers there, and the bounds: the same in all its releases.

    With another period or another column of times two releases of the same data would have other steps, and would pass
    for releases of different data; with other groups a stream would go on as another.
    """
    span = layout.span
    return {
        "time_column": request.time,
        "time_format": request.time_format,
        "zone": "UTC" if span.utc else "local",
        "period_us": span.period,
        "origin": str(np.datetime64(span.start if request.follow else 0, "us")),
        "count_column": request.count,
        "group_column": request.by,
        "groups": list(layout.groups),
        "last_step": span.n_bins - 1 if request.follow else None,
        "grace_us": _grace(request) if request.follow else None,
        **bounds(plan),
    }


def _grace(request: Request) -> int:
    return 0 if request.grace is None else int(parse_period(request.grace).astype(np.int64))


# --- a file ---------------------------------------------------------------------------------------


def _counted(request: Request, plan: ExactMechanism, layout: Layout) -> NDArray[np.int64]:
    """The counts of a file; how its rows fall is shown to the operator, also where one of them is refused."""
    shown = PrivateCounts(layout.groups, plan.inputs)
    try:
        counted = count_events(
            request.events,
            time=request.time,
            start=request.start,
            end=request.end,
            period=request.period,
            by=request.by,
            groups=request.groups,
            count=request.count,
            time_format=request.time_format,
            seen=shown.see,
        )
        u = np.asarray(counted.counts, np.int64)
        shown.clamp(u)
    finally:
        if not request.quiet:
            shown.show()
    return u


def _release(request: Request, plan: ExactMechanism, layout: Layout) -> str:
    """Publish, unless an earlier run of the same command has; then write what the store has."""
    first, declared = _step(layout.span), _declared(request, plan, layout)
    places = _placed(request, declared)
    wanted = Wanted(plan, first, layout.span.n_bins, request.name, request.compose)
    if places.used:
        with _opened(request, places, declared) as store:
            if (entry := wanted.found(store)) is not None:
                return _finished(request, places, store, entry, declared)
    Folder(places.out)
    check_free(file_of(places.out, request.name, request.format))
    batch = Batch(plan, _counted(request, plan, layout), first, compose=request.compose, name=request.name)
    with _opened(request, places, declared) as store:
        if (entry := wanted.found(store)) is not None:  # by another run meanwhile
            return _finished(request, places, store, entry, declared)
        finish_others(store, wanted, declared, request.format)
        result = batch.enter(store)
        file, _ = write(store, chosen(store, result.number), declared, request.format)
    return _written(str(result.guarantee), file, request, places)


def _opened(request: Request, places: Places, declared: dict[str, Any]) -> ReleaseStore:
    store = ReleaseStore.open(places.store, places.out, adopt=request.adopt)
    try:
        store.declare(declared, adopt=request.adopt)
    except BaseException:
        store.close()
        raise
    return store


def _finished(request: Request, places: Places, store: ReleaseStore, entry: Earlier, declared: dict[str, Any]) -> str:
    """Write what an earlier run has published, and no more."""
    file, now = write(store, entry, declared, request.format)
    done = "it is written now" if now else "its file holds it"
    text = f"{read(store, entry).guarantee}\n\n{entry.title} was published by an earlier run, and {done}"
    return _written(f"{text}: nothing more was published, nothing spent.", file, request, places)


def _step(span: Span) -> int:
    """The number of the first step: periods since 1970, so that all releases of a store number them alike."""
    number, rest = divmod(span.start, span.period)
    if rest or number < 0:
        before = np.datetime64(span.start - rest, "us")
        must_be = f"start must be a whole number of periods after 1970-01-01T00:00, such as {before}"
        raise ValueError(f"{must_be}: all releases of a store have the same bins")
    return number


# --- events as they come --------------------------------------------------------------------------


class _StandardInput:
    """Without the buffer of `sys.stdin`, whose lock a thread would hold when the process ends."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise ValueError("standard input must be open with --follow, got a closed one: give it a pipe or a file")

    def read(self, size: int, /) -> bytes:
        return os.read(sys.stdin.fileno(), size)


def _follow(request: Request, plan: ExactMechanism, layout: Layout, source: ByteSource, clock: Clock) -> str:
    declared, mechanism = _declared(request, plan, layout), plan.mechanism
    places = _placed(request, declared)
    path = places.out / "estimates.csv"
    lines = Lines(layout.span, layout.groups, request.time, request.by, request.count, request.time_format)
    _check_begun(request, layout.span, places, clock)
    private = PrivateCounts(layout.groups, plan.inputs, follow=True) if request.private_counts else None
    store = ReleaseStore.open(places.store, places.out, adopt=request.adopt)
    stream = stream_in(store, mechanism, plan.inputs, request.tolerance, declared, adopt=request.adopt)
    watch = Watch(layout, clock, private=private, quiet=request.quiet)
    with stream, Journal(path, layout) as journal, watch:
        print(stream.guarantee, flush=True)
        _catch_up(stream, journal, mechanism.lag or 0)
        position, seen = min(stream.position, layout.span.n_bins), None if private is None else private.see
        feed = Feed(source, lines, first=position, grace=_grace(request), clock=clock, seen=seen, wait=watch.wait)
        mark(places.out / NAME, layout, feed.missed)
        watch.begin(position, feed.missed)
        for first, counts in feed.bins():
            published = stream.push(counts, first=first)
            journal.append(published.first - published.lag, published.estimate)
            if private is not None:
                private.clamp(counts)
            watch.published(first + counts.shape[1])
            stream.prepare()
        published = stream.close()  # of a stream that is over: the same once more
        journal.append(published.first - published.lag, published.estimate)
    return _written("", path, request, places)


def _check_begun(request: Request, span: Span, places: Places, clock: Clock) -> None:
    """Refuse to begin with a span of which no event could be counted any more."""
    if not places.used and span.time(span.n_bins) + _grace(request) <= clock.now():
        must_be = "in the future with --follow: the bins of the past would hold zeros alone; publish events of the past"
        raise validation.fail("end", f"{must_be} from a file", request.end)


def _catch_up(stream: Stream, journal: Journal, lag: int) -> None:
    """Write what was published before the process ended, and not written."""
    missing = stream.position - lag - journal.position
    if missing > 0:
        published = stream.read(journal.position + lag, missing)
        journal.append(published.first - published.lag, published.estimate)
