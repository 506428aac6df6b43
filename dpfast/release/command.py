"""The command ``dpfast release``: a log of events, or events as they come, published in declared bins."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpfast import _validate
from dpfast.counts import Span, count_events, declared_groups
from dpfast.errors import DataError, ReleaseError
from dpfast.files import load
from dpfast.kinds import releasable
from dpfast.mechanism import Mechanism
from dpfast.release.batch import release
from dpfast.release.clock import Clock, Feed, SystemClock
from dpfast.release.exact import ExactMechanism, exact
from dpfast.release.inputs import Inputs
from dpfast.release.lines import Lines, Source
from dpfast.release.private import replace_file
from dpfast.release.publication import HEADER, Journal, Layout
from dpfast.release.stream import Stream, open_stream
from dpfast.report.folder import Folder
from dpfast.timestamps import parse_each, parse_period

FORMATS = ("csv", "parquet")
DECLARED = "declared.json"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for: all of it is declared, nothing read off the events.

    Attributes
    ----------
    events : str
        Path of a log; "-" with `follow`.
    mechanism, out, store : str
        Paths; the store is "store" in `out` where it is None.
    time, start, end, period, by, groups, count, time_format
        As for :func:`dpfast.counts.count_events`.
    low, high, unit, centre, streams_per_person
        As for :class:`Inputs`.
    tolerance, compose, adopt
        As for :func:`release`.
    format : str
        "csv" or "parquet".
    follow : bool
        Events come from standard input, and bins are published as they end.
    grace : str or None
        Length of time, as a period; with `follow`.
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
    compose: bool = False
    adopt: bool = False
    follow: bool = False
    grace: str | None = None


def run(request: Request, *, source: Source | None = None, clock: Clock | None = None) -> str:
    """Release, and say what is promised and where it is.

    Parameters
    ----------
    request : Request
    source : Source, optional
        In place of standard input.
    clock : Clock, optional
        In place of the machine's.
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
    folder = Folder(request.out)
    mechanism = releasable(load(request.mechanism))
    if request.follow and mechanism.lag is None:
        raise ValueError("mechanism must have a lag with --follow, got a smoother, which needs the whole signal")
    plan = exact(mechanism, inputs, tolerance=request.tolerance)
    layout = Layout(span, groups, plan.predicted_rmse_if_model_holds)
    if request.follow:
        return _follow(request, mechanism, inputs, layout, source or _StandardInput(), clock or SystemClock())
    return _release(request, plan, layout, folder)


def _check(request: Request, span: Span) -> None:
    """Refuse what does not go together, before any work."""
    _validate.choice("format", request.format, FORMATS)
    parse_each([""], request.time_format)  # pandas is there, the format is one
    if request.format == "parquet":
        _validate.optional("pyarrow.parquet", "parquet")
    if (request.events == "-") != request.follow:
        raise ValueError("events must be -, for standard input, with --follow, and the path of a file without it")
    if not request.follow:
        if request.grace is not None:
            raise ValueError("grace must come with --follow: the events of a file are all there")
        return
    if request.compose or request.format != "csv":
        raise ValueError("follow must come without --compose, and with --format csv: its file grows line by line")
    if not span.utc:
        raise ValueError("start must have a UTC offset with --follow, such as Z: a local clock jumps twice a year")


def _store(request: Request) -> Path:
    """Beside the published folder: who copies that one must not copy the store."""
    out = Path(request.out).absolute()
    return out.with_name(f"{out.name}-private") if request.store is None else Path(request.store)


def _written(guarantee: Any, file: Path, request: Request) -> str:
    return f"{guarantee}\n\nWritten: {file}\nPrivate store: {_store(request)}"


@contextlib.contextmanager
def _declared(request: Request, facts: dict[str, Any]) -> Iterator[None]:
    """Hold later runs to what the steps of the store mean: they are numbers there.

    With other periods two releases of the same data would have other steps, and would pass for releases of different
    data; with other groups a stream would go on as another.
    """
    path, text, store = Path(request.out, DECLARED), json.dumps(facts, indent=2) + "\n", _store(request)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.exists()
    if known and path.read_text(encoding="utf-8") != text:
        raise ReleaseError(f"what is declared must be as in {path}, of the first release, or in new folders")
    if not known and any(store.glob("*")):
        raise ReleaseError(f"{path} is missing, while there is a store {store}: give the folder that it always had")
    if not known:
        replace_file(path, text)
    try:
        yield
    except BaseException:
        if not known and not any(store.glob("*")):
            path.unlink()
        raise


# --- a file ---------------------------------------------------------------------------------------


def _release(request: Request, plan: ExactMechanism, layout: Layout, folder: Folder) -> str:
    name = f"estimates.{request.format}"
    if (there := Path(request.out, name)).exists():
        raise ReleaseError(
            f"{there} is there, from an earlier release, which this one would replace: move it away first"
        )
    first, facts = _step(layout.span), {"bins": "file", **_timeline(layout.span)}
    u = count_events(
        request.events,
        time=request.time,
        start=request.start,
        end=request.end,
        period=request.period,
        by=request.by,
        groups=request.groups,
        count=request.count,
        time_format=request.time_format,
    ).counts
    with _declared(request, facts):
        result = release(
            plan,
            u,
            _store(request),
            first=first,
            compose=request.compose,
            published=request.out,
            adopt=request.adopt,
        )
    estimate = result.estimate
    folder.add(name, layout.parquet(estimate) if request.format == "parquet" else HEADER + layout.csv(0, estimate))
    try:
        (file,) = folder.write()
    except DataError as error:
        kept = f"what was released is in the store {_store(request)}, and dpfast.release.store.Store.read gives it"
        raise DataError(f"{error}; {kept}") from None
    return _written(result.guarantee, file, request)


def _timeline(span: Span) -> dict[str, Any]:
    return {"period_us": span.period, "clock": "UTC" if span.utc else "local"}


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


def _follow(
    request: Request, mechanism: Mechanism, inputs: Inputs, layout: Layout, source: Source, clock: Clock
) -> str:
    span, path = layout.span, Path(request.out, "estimates.csv")
    lines = Lines(span, layout.groups, request.time, request.by, request.count, request.time_format)
    grace = 0 if request.grace is None else int(parse_period(request.grace).astype(np.int64))
    start = str(np.datetime64(span.start, "us"))
    facts = {"bins": "clock", **_timeline(span), "start": start, "groups": list(layout.groups)}
    with _declared(request, facts):
        stream = open_stream(
            mechanism,
            _store(request),
            inputs,
            published=request.out,
            tolerance=request.tolerance,
            adopt=request.adopt,
        )
    with stream, Journal(path, layout) as journal:
        print(stream.guarantee, flush=True)
        _catch_up(stream, journal, mechanism.lag or 0)
        for first, counts in Feed(source, lines, first=stream.position, grace=grace, clock=clock).bins():
            published = stream.push(counts, first=first)
            journal.append(published.first - published.lag, published.estimate)
            stream.prepare()
        published = stream.close()  # of a stream that is over: the same once more
        journal.append(published.first - published.lag, published.estimate)
    return f"Written: {path}\nPrivate store: {_store(request)}"


def _catch_up(stream: Stream, journal: Journal, lag: int) -> None:
    """Write what was published before the process ended, and not written."""
    missing = stream.position - lag - journal.position
    if missing > 0:
        published = stream.read(journal.position + lag, missing)
        journal.append(published.first - published.lag, published.estimate)
