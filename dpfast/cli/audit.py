"""The command ``dpfast audit``: an attack on a saved mechanism, or on counts behind no filter."""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction

from dpfast._support.output_folder import OutputFolder
from dpfast.cli.options import MECHANISM, add_range, add_seed
from dpfast.cli.output import write_files
from dpfast.design.perturbation import input_perturbation
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.privacy.privacy import Privacy
from dpfast.releases.audit.all_attacks import audit
from dpfast.releases.audit.findings import Audit
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.releasable import check_releasable

SUMMARY = "attack a mechanism, simulated and released, and test its guarantee"
DESCRIPTION = (
    "Attacks what is published, as someone would who knows the code and nearly all of the data, and compares what "
    "that shows with what is claimed. Without a mechanism it attacks counts behind no filter. It needs no data. "
    "The exit status is 1 where a claim is violated."
)
_HIGHEST_COUNT = Fraction(20)  # of the counts behind no filter


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the mechanism, what is declared of a count, and how hard to look."""
    command.add_argument("--mechanism", metavar="FILE", help=f"{MECHANISM} (default: counts behind no filter)")
    add_range(command, required=False)
    effort = command.add_argument_group("how hard to look")
    effort.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help="run each attack on a release this many times (default: for a few seconds)",
    )
    effort.add_argument(
        "--confidence",
        type=float,
        default=0.99,
        metavar="X",
        help="state all bounds together with this confidence (default: %(default)s)",
    )
    add_seed(effort, 0, "the signals, but not the noise,")
    effort.add_argument(
        "--out", metavar="DIR", help="write audit.txt and audit.csv to this folder (default: print only)"
    )


def run(options: argparse.Namespace) -> str:
    """Attack, and return the findings, in files too where a folder is given; a violation is exit status 1."""
    folder = None if options.out is None else OutputFolder(options.out)
    found = _attack(options)
    options.status = int(found.violated)
    if folder is None:
        return str(found)
    folder.add("audit.txt", f"{found}\n")
    folder.add("audit.csv", found.table.csv())
    return write_files(folder, str(found))


def _attack(options: argparse.Namespace) -> Audit:
    if options.mechanism is not None and options.high is None:
        raise ValueError("high must be given with --mechanism: the largest count, as declared for a release")
    inputs = Inputs.of_counts(
        options.low,
        _HIGHEST_COUNT if options.high is None else options.high,
        unit=options.unit,
        centre=options.centre,
        n_streams=options.streams_per_person,
        streams_per_person=options.streams_per_person,
    )
    mechanism = _unfiltered_counts() if options.mechanism is None else check_releasable(load(options.mechanism))
    return audit(
        mechanism,
        inputs,
        n_runs=options.runs,
        confidence=options.confidence,
        seed=options.seed,
        tolerance=options.tolerance,
        progress=sys.stderr.isatty(),
    )


def _unfiltered_counts() -> Mechanism:
    return input_perturbation(Filter([1]), Privacy(1, 1e-6), name="counts with G = 1")
