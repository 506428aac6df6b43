"""The command ``dpfast evaluate``: every mechanism on a historical log of events."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dpfast._support.output_folder import OutputFolder
from dpfast.cli.options import DELTA, EPSILON, LOG, TARGET, UNIT, add_columns, add_out, add_seed, at_least
from dpfast.cli.output import require_matplotlib, write_files
from dpfast.design.argument_checks import check_unit
from dpfast.design.catalogue import filter_families
from dpfast.design.channel_target_specs import mixes_streams
from dpfast.design.target_and_model_specs import parse_target
from dpfast.mechanisms.mechanism_kinds import AnyMechanism, refuse_channels
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.privacy.privacy import Privacy
from dpfast.reports.evaluation import report_evaluation
from dpfast.signals.events.historical_counts import read_events

NOT_ON_A_LOG = (
    "each series of a log is evaluated alone; try several together, of which dpfast design --groups designs "
    "mechanisms, on recorded counts (streams, time) in Python, by dpfast.evaluate(mechanism, counts, seed=1)"
)
SUMMARY = "try every mechanism on a historical event log that you may look at"
DESCRIPTION = (
    f"Bins a log of events, designs every mechanism ({', '.join(x.label for x in filter_families())}) for each series, "
    "as far as its counts allow, and reports their errors on the log itself. "
    "Use only data that you may look at: the output files contain the true values."
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the log, how it is counted, the target, the privacy and the fit."""
    command.add_argument("events", metavar="EVENTS", help=LOG)
    add_columns(command, required=True)
    command.add_argument("--target", required=True, metavar="SPEC", help=TARGET)
    command.add_argument("--epsilon", type=float, required=True, metavar="X", help=EPSILON)
    command.add_argument("--delta", type=float, default=0.0, metavar="X", help=DELTA)
    command.add_argument(
        "--max-change",
        type=float,
        default=1.0,
        metavar="X",
        help="let one person change a count by at most this much, in events (default: %(default)s)",
    )
    command.add_argument("--unit", type=float, metavar="X", help=UNIT)
    command.add_argument(
        "--order",
        type=at_least(0),
        default=12,
        metavar="N",
        help="fit an autoregression of this order, in bins, to each series (default: %(default)s)",
    )
    command.add_argument(
        "--draws", type=at_least(2), default=20, metavar="N", help="draw the noise so often (default: %(default)s)"
    )
    command.add_argument(
        "--mechanism",
        action="append",
        default=[],
        metavar="FILE",
        help="evaluate this saved mechanism too; may be repeated",
    )
    add_seed(command, 1, "the noise")
    add_out(command, "dpfast-evaluation")


def _load_of_one_stream(path: str) -> AnyMechanism:
    mechanism: Any = load(path)
    refuse_channels(mechanism, NOT_ON_A_LOG, name=path)
    one: AnyMechanism = mechanism
    return one


def run(options: argparse.Namespace) -> str:
    """Evaluate every mechanism on the log, write the files, and return the table."""
    require_matplotlib()
    if mixes_streams(options.target):
        raise ValueError(f"target must be of one stream, got {options.target!r}: {NOT_ON_A_LOG}")
    target = parse_target(options.target)
    privacy = Privacy(options.epsilon, options.delta, max_change=options.max_change)
    unit = check_unit(options.unit)
    saved = [_load_of_one_stream(path) for path in options.mechanism]
    folder = OutputFolder(options.out)
    counts = read_events(
        options.events,
        time=options.time,
        by=options.by,
        period=options.period,
        count=options.count,
        time_format=options.time_format,
    )
    text = report_evaluation(
        counts,
        target,
        privacy,
        folder,
        order=options.order,
        draws=options.draws,
        seed=options.seed,
        command=options.line,
        saved=saved,
        unit=unit,
        progress=sys.stderr.isatty(),
    )
    return write_files(folder, text)
