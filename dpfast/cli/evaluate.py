"""The command ``dpfast evaluate``: every mechanism on a historical log of events."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from dpfast._support.output_folder import OutputFolder
from dpfast.cli.channel_options import add_adjacency
from dpfast.cli.evaluate_channels import (
    check_one_stream,
    check_saved,
    choose_series,
    is_of_several,
    read_privacy,
    read_target,
)
from dpfast.cli.options import (
    DELTA,
    EPSILON,
    LOG,
    TARGET,
    UNIT,
    add_columns,
    add_out,
    add_seed,
    at_least,
    fraction_as_float,
    numbers,
    words,
)
from dpfast.cli.output import require_matplotlib, write_files
from dpfast.design.argument_checks import check_unit
from dpfast.design.catalogue import filter_families
from dpfast.design.channel_target_specs import MIXED
from dpfast.design.target_and_model_specs import parse_target
from dpfast.mechanisms.mechanism_kinds import refuse_channels
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.privacy.privacy import Privacy
from dpfast.reports.evaluation import report_evaluation
from dpfast.signals.events.historical_counts import read_events

ALONE = (
    "with this target each series of a log is evaluated alone; take a target of several streams, such as "
    f"{MIXED}, and say --adjacency"
)
REACHED = "protect a person whose event reaches these of several streams; it has no default"
SUMMARY = "try every mechanism on a historical event log that you may look at"
DESCRIPTION = (
    f"Bins a log of events, designs every mechanism ({', '.join(x.label for x in filter_families())}) for each series, "
    "as far as its counts allow, and reports their errors on the log itself. With a target of several streams the "
    "series are its inputs, and mechanisms of several streams are evaluated on all of them together. "
    "Use only data that you may look at: the output files contain the true values."
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the log, how it is counted, the target, the privacy and the fit."""
    command.add_argument("events", metavar="EVENTS", help=LOG)
    add_columns(command, required=True)
    command.add_argument(
        "--target", required=True, metavar="SPEC", help=f"{TARGET}; of several streams {MIXED}: FILE.toml"
    )
    command.add_argument(
        "--groups",
        type=words,
        metavar="A,B,C",
        help="evaluate these series of --by together, the inputs of the target in this order (default: all of the log, "
        "by name, with a target of several streams)",
    )
    add_adjacency(command, REACHED)
    command.add_argument("--epsilon", type=float, required=True, metavar="X", help=EPSILON)
    command.add_argument("--delta", type=float, default=0.0, metavar="X", help=DELTA)
    command.add_argument(
        "--max-change",
        type=numbers,
        default=1.0,
        metavar="X",
        help="let one person change a count by at most this much, in events; of several streams perhaps X,Y,Z, of "
        "each (default: %(default)s)",
    )
    command.add_argument("--unit", type=fraction_as_float, metavar="X", help=UNIT)
    command.add_argument(
        "--order",
        type=at_least(0),
        default=12,
        metavar="N",
        help="fit an autoregression of this order, in bins, to each series (default: %(default)s)",
    )
    command.add_argument(
        "--draws",
        type=at_least(2),
        default=20,
        metavar="N",
        help="draw the noise this many times (default: %(default)s)",
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


def run(options: argparse.Namespace) -> str:
    """Evaluate every mechanism on the log, write the files, and return the table."""
    require_matplotlib()
    several = is_of_several(options)
    privacy = read_privacy(options) if several else _read_privacy_of_one(options)
    target = None if several else parse_target(options.target)
    unit = check_unit(options.unit)
    saved = [_load(path, several=several) for path in options.mechanism]
    folder = OutputFolder(options.out)
    counts = read_events(
        options.events,
        time=options.time,
        by=options.by,
        period=options.period,
        count=options.count,
        time_format=options.time_format,
    )
    if target is None:
        counts = choose_series(counts, options.groups)
    text = report_evaluation(
        counts,
        read_target(options.target, len(counts.series)) if target is None else target,
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


def _read_privacy_of_one(options: argparse.Namespace) -> Privacy:
    check_one_stream(options)
    return Privacy(options.epsilon, options.delta, max_change=options.max_change)


def _load(path: str, *, several: bool) -> Any:
    """Load a mechanism of several streams, or of one."""
    mechanism: Any = load(path)
    if several:
        return check_saved(path, mechanism)
    refuse_channels(mechanism, ALONE, name=path)
    return mechanism
