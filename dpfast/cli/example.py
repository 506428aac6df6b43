"""The command ``dpfast example``: the example of Le Ny 2013, Section VI, reproduced."""

from __future__ import annotations

import argparse
import sys

from dpfast._support.output_folder import OutputFolder
from dpfast.cli.options import add_out, add_seed, at_least
from dpfast.cli.output import require_matplotlib, write_files

SUMMARY = "reproduce the example of Le Ny 2013, Section VI"
DESCRIPTION = (
    "Designs and simulates every mechanism of the example in Section VI of Le Ny 2013, and writes the table, the "
    "pictures and the simulated paths. This takes less than a minute."
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the size of the simulation."""
    add_out(command, "dpfast-example")
    command.add_argument(
        "--streams",
        type=at_least(2),
        default=512,
        metavar="N",
        help="simulate this many streams (default: %(default)s)",
    )
    command.add_argument(
        "--samples",
        type=at_least(1),
        default=20_000,
        metavar="N",
        help="simulate this many samples of each stream (default: %(default)s)",
    )
    add_seed(command, 1, "inputs and noise")


def run(options: argparse.Namespace) -> str:
    """Design and simulate the example, write the files, and return the table and the errata."""
    from dpfast.reports.paper_example import report_example  # late: its filters load scipy.signal

    require_matplotlib()
    folder = OutputFolder(options.out)
    text = report_example(
        folder,
        n_streams=options.streams,
        n_samples=options.samples,
        seed=options.seed,
        command=options.line,
        progress=sys.stderr.isatty(),
    )
    return write_files(folder, text)
