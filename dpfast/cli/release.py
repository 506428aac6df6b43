"""The command ``dpfast release``: a log of events, or events as they come, published in declared bins."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.cli import follow_release, read_release
from dpfast.cli.channel_options import RELEASED, add_adjacency, check_channels
from dpfast.cli.declared_store import declare_store, find_places
from dpfast.cli.dry_run import run_dry
from dpfast.cli.group_options import add_groups, declared_groups
from dpfast.cli.options import COUNT, LOG, MECHANISM, PERIOD, TIME, TIME_FORMAT, add_range
from dpfast.cli.person_options import (
    add_persons,
    check_persons_options,
    declared_persons,
    guarantee_alone,
    tell_spans,
    under_bounds,
)
from dpfast.cli.release_checks import check_follow, check_shown, check_text
from dpfast.cli.release_input import declared_end, first_step, read_file, shown_counts
from dpfast.cli.settings_option import add_settings
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.releases.batch import Batch
from dpfast.releases.batch_estimates_file import check_free, estimates_path, finish_others, write_estimates
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.clock import Clock, SystemClock
from dpfast.releases.feed.event_lines import ByteSource
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.exact_forms import exact
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.last_block import LAST_BLOCKS
from dpfast.releases.integer.releasable import check_releasable
from dpfast.releases.ledger.account import Account, catch_up, check_new_store
from dpfast.releases.ledger.ledger import Ledger, as_ledger
from dpfast.releases.model_check.adapted_estimates import check_adaptable
from dpfast.releases.model_check_files import Checked, write_model_check
from dpfast.releases.persons.person_events import Events, largest_value
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.reading import choose_release, open_existing, read_entry
from dpfast.releases.requested_release import Wanted, check_name
from dpfast.releases.stderr_messages import heartbeat
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.store_folders import Places
from dpfast.reports.release.report_file import check_report_free, renew_reports, report_path, write_store_report
from dpfast.signals.events.declared_span import Span, check_time_format

SUMMARY = "publish a log of events, or events as they come, under an exact guarantee"
DESCRIPTION = (
    "Publishes estimates of filtered counts of events, with exact discrete noise. You declare the span, the "
    "period, the groups and the range; nothing of these is read off the events. Events outside are left out, and "
    "bins and groups without events are published too. docs/guides/release-command.md explains this."
)
FORMATS = ("csv", "parquet")
LAST_BLOCK = "publish a block of sums that the last bin leaves unfinished, or drop it (default: drop)"
KEEP = "keep in the store what was published in the last N bins, and no longer (default: in all); files keep all"
_GOES_ON = (
    "what was published stays, and the same command goes on behind it; the bin that was not over counts only those of "
    "its events that come again or later"
)
ADAPT = "fit the receiver to what was published too, at no cost of privacy, and write its estimates beside"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add what is declared of the events, and what becomes of them."""
    command.add_argument(
        "--read",
        action=_Read,
        metavar="STORE",
        help="show what this store has published, with its guarantee, and spend nothing; no other option is needed, "
        "and --out DIR writes the values to DIR/values.csv instead; --witness DIR is asked too, where it is given",
    )
    command.add_argument("events", metavar="EVENTS", help=f"{LOG}; write - with --follow")
    add_settings(command)
    command.add_argument("--mechanism", required=True, metavar="FILE", help=MECHANISM)
    _add_bins(command.add_argument_group("what is declared of the events"))
    add_range(command, required=True)
    add_persons(command.add_argument_group("what is declared of persons"))
    _add_files(command.add_argument_group("files"))
    command.add_argument("--last-block", choices=LAST_BLOCKS, help=LAST_BLOCK)
    command.add_argument("--adapt", action="store_true", help=ADAPT)
    _add_shown(command.add_argument_group("what is shown to you alone, on standard error"))
    stream = command.add_argument_group("events as they come")
    stream.add_argument(
        "--follow", action="store_true", help="read events from standard input, and publish each bin as it ends"
    )
    stream.add_argument(
        "--grace",
        metavar="LENGTH",
        help="wait this long at the end of a bin for events on their way, such as 10s (default: publish at once)",
    )
    stream.add_argument("--keep-steps", type=int, metavar="N", help=KEEP)


class _Read(argparse.Action):
    """The option ``--read``, with which no other one is required: who reads a store declares nothing."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)
        for action in parser._actions:
            action.required = False


def _add_bins(group: Any) -> None:
    group.add_argument("--time", required=True, metavar="COLUMN", help=TIME)
    group.add_argument("--time-format", metavar="FORMAT", help=TIME_FORMAT)
    group.add_argument(
        "--start",
        required=True,
        metavar="T",
        help="begin the first bin at this time, such as 2013-01-01, 2013-01-01T00:00Z",
    )
    group.add_argument(
        "--end",
        required=True,
        metavar="T",
        help="end the last bin at this time, a whole number of periods after the start",
    )
    group.add_argument("--period", required=True, metavar="LENGTH", help=PERIOD)
    add_groups(group)
    add_adjacency(group, RELEASED)
    group.add_argument("--count", metavar="COLUMN", help=COUNT)


def _add_files(group: Any) -> None:
    group.add_argument("--out", required=True, metavar="DIR", help="write what is public to this folder")
    group.add_argument(
        "--store",
        metavar="DIR",
        help="remember what was published in this folder, which is private (default: OUT-private)",
    )
    group.add_argument(
        "--witness",
        metavar="DIR",
        help="keep a second witness in this folder, which lies elsewhere, such as on another disk",
    )
    group.add_argument(
        "--ledger",
        metavar="FILE",
        help="count what this costs in a ledger, which dpfast ledger makes, and publish nothing beyond its cap",
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        default="csv",
        help="write the estimates in this format (default: %(default)s)",
    )
    group.add_argument(
        "--compose",
        action="store_true",
        help="publish steps once more that were published, under a new --name, and state the guarantee of all together",
    )
    group.add_argument(
        "--name", metavar="NAME", help="publish this release under a name of its own, in the file estimates-NAME"
    )
    group.add_argument(
        "--adopt",
        action="store_true",
        help="go on with a copy of a store whose original is gone, or vouch that releases which nobody declared meant "
        "what is given now",
    )
    group.add_argument(
        "--new-store",
        action="store_true",
        help="begin another store, in OUT-2, OUT-3 and so on, where this one declares something else",
    )


def _add_shown(group: Any) -> None:
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be promised, and private counts of the rows of the file (with --quiet not even read it); "
        "publish nothing, spend nothing and open no store",
    )
    group.add_argument(
        "--quiet", action="store_true", help="show neither private counts of a file nor how far the command is"
    )
    group.add_argument(
        "--private-counts",
        action="store_true",
        help="show private counts with --follow too, which shows none otherwise",
    )


def run(options: argparse.Namespace, *, source: ByteSource | None = None, clock: Clock | None = None) -> str:
    """Release, and return what is guaranteed and where it is; private counts go to standard error alone.

    Parameters
    ----------
    options : Namespace
        All of it is declared: nothing is read off the events.
    source : ByteSource, optional
        In place of standard input.
    clock : Clock, optional
        In place of the machine's.
    """
    if options.read is not None:
        _check_read(options)
        return read_release.show_store(options.read, options.out, witness=options.witness, adopt=options.adopt)
    plan, layout = _plan(options)
    if options.follow:
        tell_spans(options, layout.span, 0)
        return _follow(options, plan, layout, source or follow_release.StandardInput(), clock or SystemClock())
    doing = f"releasing {layout.span.n_bins:,} steps of {len(layout.groups):,} groups"
    with heartbeat(sys.stderr.isatty() and not options.quiet, doing):
        first = first_step(layout.span)
        if options.dry_run:
            return run_dry(options, plan, layout, first)
        tell_spans(options, layout.span, first)
        return _release_file(options, plan, layout, first)


def _plan(options: argparse.Namespace) -> tuple[ExactBase, Layout]:
    """Check all that is declared, and make of it the mechanism in integers and the layout of the estimates."""
    span = Span.parse(options.start, options.end, options.period)
    groups = declared_groups(options, span)
    _check_options(options, span)
    inputs = Inputs.of_counts(
        options.low,
        options.high,
        unit=options.unit,
        centre=options.centre,
        n_streams=len(groups),
        streams_per_person=options.streams_per_person,
    )
    if not options.dry_run:
        OutputFolder(options.out)  # refuses a place that cannot be written to
    mechanism = check_channels(options, check_releasable(load(options.mechanism)), groups)
    mechanism = under_bounds(mechanism, options)
    largest_value(mechanism.privacy.max_change)  # refuses counts of less than one event
    if options.follow and mechanism.lag is None:
        raise ValueError(
            "mechanism must have a lag with --follow, got a smoother, which needs the whole signal: design it with a "
            "lag"
        )
    end = declared_end(options, span)
    plan = exact(mechanism, inputs, tolerance=options.tolerance, last_block=end.last_block, n_steps=end.n_steps)
    if options.adapt:
        check_adaptable(plan, span.n_bins)
    return plan, Layout.of(plan, span, groups)


def _follow(options: argparse.Namespace, plan: ExactBase, layout: Layout, source: ByteSource, clock: Clock) -> str:
    """Publish events as they come, and return where they are."""
    declared = declare_store(options, plan, layout)
    places = find_places(options, declared)
    check_report_free(report_path(places.out, None))
    try:
        file = follow_release.publish_bins(options, plan, layout, places, declared, source, clock)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_GOES_ON) from None
    with open_existing(places.store, places.out) as store:
        entry = choose_release(store, None)
        report, check = write_store_report(store, entry), _write_check(options, store, entry, declared)
    return _describe_files(check.text, (file, report, *check.files), options, places)


def _check_read(options: argparse.Namespace) -> None:
    """Refuse options beside ``--read`` that would have no effect."""
    command = argparse.ArgumentParser()
    add_options(command)
    defaults = vars(command.parse_args(["--read", options.read]))
    given = {name for name, default in defaults.items() if getattr(options, name) != default}
    if given := given - {"out", "adopt", "witness"}:
        words = "read must come with --out, --adopt and --witness alone"
        raise ValueError(f"{words}, got --{min(given).replace('_', '-')} too")


def _check_options(options: argparse.Namespace, span: Span) -> None:
    """Refuse what does not go together, before any work."""
    validation.choice("format", options.format, FORMATS)
    check_persons_options(options, span)
    for name in ("time", "by", "count", "person", "time_format"):
        check_text(name, getattr(options, name))
    check_time_format(span, options.time_format)
    if options.format == "parquet":
        validation.optional("pyarrow.parquet", "parquet")
    if (options.events == "-") != options.follow:
        raise ValueError("events must be -, for standard input, with --follow, and the path of a file without it")
    check_shown(options)
    check_name(options.name)
    check_follow(options, span)


def _describe_files(text: str, files: tuple[Path, ...], options: argparse.Namespace, places: Places) -> str:
    """Append to a text where the files and the store are."""
    lines = [text] if text else []
    written = wrap_paragraph(f"Written: {', '.join(map(str, files))}")
    lines += [f"{written}\nPrivate store: {places.store}"]
    if places.out != Path(options.out).absolute():
        other = f"This is another store than that of {options.out}: what both publish of the same events adds up."
        lines += [wrap_paragraph(other)]
    return "\n\n".join(lines)


# --- a file ---------------------------------------------------------------------------------------


def _release_file(options: argparse.Namespace, plan: ExactBase, layout: Layout, first: int) -> str:
    """Publish, unless an earlier run of the same command has; then write what the store has."""
    declared = declare_store(options, plan, layout)
    places = find_places(options, declared)
    wanted = Wanted(plan, first, layout.span.n_bins, options.name, options.compose)
    ledger, alone = as_ledger(options.ledger), guarantee_alone(options, plan, layout.span, first)
    if places.used:
        with _open_store(options, places, declared) as store:
            if (entry := wanted.find_published(store)) is not None:
                return _write_earlier(options, places, store, entry, declared, ledger)
            Account(store, ledger).check(alone, first, wanted.count, name=options.name)
    else:
        check_new_store(ledger, places.store, declared, alone, first=first, count=wanted.count)
    OutputFolder(places.out)
    check_free(estimates_path(places.out, options.name, options.format))
    check_report_free(report_path(places.out, options.name))
    persons = declared_persons(options, layout.span)
    with shown_counts(options, plan, layout) as shown:
        u = read_file(options, plan, layout, shown)
        if not isinstance(u, Events):
            shown.count_clamped(u)
        batch = Batch(plan, u, first, compose=options.compose, name=options.name, persons=persons)
        return _enter_file(options, places, declared, wanted, batch, ledger, shown)


def _enter_file(
    options: argparse.Namespace,
    places: Places,
    declared: dict[str, Any],
    wanted: Wanted,
    batch: Batch,
    ledger: Ledger | None,
    shown: PrivateCounts,
) -> str:
    """Publish what was read of a file."""
    with _open_store(options, places, declared) as store:
        if (entry := wanted.find_published(store)) is not None:  # by another run meanwhile
            return _write_earlier(options, places, store, entry, declared, ledger)
        finish_others(store, wanted, declared, options.format)
        result = batch.enter(store, ledger, shown)
        entry = choose_release(store, result.number)
        file, _ = write_estimates(store, entry, declared, options.format)
        report, check = write_store_report(store, entry), _write_check(options, store, entry, declared)
        renew_reports(store, entry)
    return _describe_files(f"{result.guarantee}\n\n{check.text}", (file, report, *check.files), options, places)


def _write_check(options: argparse.Namespace, store: ReleaseStore, entry: Earlier, declared: dict[str, Any]) -> Checked:
    return write_model_check(store, entry, declared, options.format, adapt=options.adapt)


def _open_store(options: argparse.Namespace, places: Places, declared: dict[str, Any]) -> ReleaseStore:
    store = ReleaseStore.open(places.store, places.out, adopt=options.adopt, witness=options.witness)
    try:
        store.declare(declared, adopt=options.adopt)
    except BaseException:
        store.close()
        raise
    return store


def _write_earlier(
    options: argparse.Namespace,
    places: Places,
    store: ReleaseStore,
    entry: Earlier,
    declared: dict[str, Any],
    ledger: Ledger | None,
) -> str:
    """Write what an earlier run has published, and no more; tell its guarantee where that run did not come to it."""
    if ledger is not None:
        catch_up(store, ledger)
    file, now = write_estimates(store, entry, declared, options.format)
    done = "it is written now" if now else "its file holds it"
    report, check = write_store_report(store, entry), _write_check(options, store, entry, declared)
    before = f"{entry.title} was published by an earlier run, and {done}: nothing more was published, nothing spent."
    where = f"Its guarantee is in {report}, and dpfast release --read {places.store} prints it."
    guarantee = str(read_entry(store, entry).guarantee) if now else wrap_paragraph(where)
    text = f"{wrap_paragraph(before)}\n\n{guarantee}\n\n{check.text}"
    return _describe_files(text, (file, report, *check.files), options, places)
