"""What the commands of dpfast take."""

from __future__ import annotations

import argparse
from typing import Any

from dpfast._support.version import __version__
from dpfast.cli.parser import Commands, at_least, fraction, lag, name_and_word, width, words
from dpfast.design import descriptions
from dpfast.privacy.provenance import SOURCES


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = Commands(
        prog="dpfast",
        description="Publishes filtered event streams under differential privacy, and tells you beforehand how "
        "accurate they will be.",
        epilog="Type 'dpfast COMMAND -h' for the options of a command.",
    )
    main_parser.set_defaults(status=0)  # of the process; a command may say 1
    main_parser.add_argument(
        "--version", action="version", version=f"dpfast {__version__}", help="show the version and exit"
    )
    for name, add, summary, description in (
        ("example", _add_example, *_EXAMPLE),
        ("evaluate", _add_evaluate, *_EVALUATE),
        ("design", _add_design, *_DESIGN),
        ("study", _add_study, *_STUDY),
        ("release", _add_release, *_RELEASE),
        ("audit", _add_audit, *_AUDIT),
        ("show", _add_show, *_SHOW),
    ):
        add(main_parser.add_command(name, summary, description))
    return main_parser


_EXAMPLE = (
    "reproduce the example of Le Ny 2013, Section VI",
    (
        "Designs and simulates every mechanism of the example in Section VI of Le Ny 2013, and writes the table, the "
        "pictures and the simulated paths. This takes about a minute."
    ),
)
_EVALUATE = (
    "try every mechanism on a historical event log that you may look at",
    (
        "Bins a log of events, designs every mechanism for each series, and reports their errors on the log itself. "
        "Use only data that you may look at: the output files contain the true values."
    ),
)
_DESIGN = (
    "design all mechanisms for a target, a privacy and a model; compare them and save one",
    (
        "Designs every family of mechanisms and compares their predicted errors, over lags and epsilons. A TOML file "
        "may hold the same settings; arguments override it."
    ),
)
_STUDY = (
    "simulate a grid of designs, each until its error is known well enough",
    (
        "Runs the sweep that a TOML file describes. It can be interrupted and resumed: what is finished is kept. "
        "Arguments override the file."
    ),
)
_RELEASE = (
    "publish a log of events, or events as they come, under an exact guarantee",
    (
        "Publishes estimates of filtered counts of events, with exact discrete noise. You declare the span, the "
        "period, the groups and the range; nothing of these is read off the events. Events outside are left out, and "
        "bins and groups without events are published too. docs/release-command.md explains this."
    ),
)
_AUDIT = (
    "attack a mechanism, simulated and released, and test its guarantee",
    (
        "Attacks what is published, as someone would who knows the code and nearly all of the data, and compares what "
        "that shows with what is claimed. Without a mechanism it attacks counts behind no filter. It needs no data. "
        "The exit status is 1 where a claim is violated."
    ),
)
_SHOW = (
    "tell what a saved mechanism is, where it came from and what it guarantees",
    "Tells what a saved mechanism is, where it came from, what it guarantees and how accurate it is.",
)
_LOG = "read the events from this CSV file, plain or gzip, with a header"
_TIME = "take the time of an event from this column"
_BY = "tell the {} apart by this column (default: all events are one)"
_COUNT = "take the number of events of a row from this column (default: every row is one event)"
_TIME_FORMAT = (
    "parse times with this format of strptime, such as '%%m/%%d/%%Y %%H:%%M' (default: ISO 8601, RFC 2822, Unix times)"
)
_PERIOD = "count events in bins of this length, such as 5min, 1h, 1d"
_TARGET = f"publish the output of this filter: {descriptions.TARGET}"
_EPSILON = "guarantee this epsilon, above 0"
_DELTA = "guarantee this delta, strictly between 0 and 1"
_MECHANISM = "take the mechanism from this file, which dpfast design or dpfast.save wrote"
_OUT = "write the files to this folder (default: {})"


def _add_example(example: argparse.ArgumentParser) -> None:
    example.add_argument("--out", default="dpfast-example", metavar="DIR", help=_OUT.format("%(default)s"))
    example.add_argument(
        "--streams", type=at_least(2), default=512, metavar="N", help="simulate so many streams (default: %(default)s)"
    )
    example.add_argument(
        "--samples",
        type=at_least(1),
        default=20_000,
        metavar="N",
        help="simulate so many samples of each stream (default: %(default)s)",
    )
    _add_seed(example, 1, "inputs and noise")


def _add_seed(command: Any, default: int, what: str) -> None:
    command.add_argument(
        "--seed",
        type=at_least(0),
        default=default,
        metavar="N",
        help=f"draw {what} from this seed (default: %(default)s)",
    )


def _add_evaluate(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument("events", metavar="EVENTS", help=_LOG)
    evaluate.add_argument("--time", required=True, metavar="COLUMN", help=_TIME)
    evaluate.add_argument("--by", metavar="COLUMN", help=_BY.format("series"))
    evaluate.add_argument("--count", metavar="COLUMN", help=_COUNT)
    evaluate.add_argument("--time-format", metavar="FORMAT", help=_TIME_FORMAT)
    evaluate.add_argument("--period", required=True, metavar="LENGTH", help=_PERIOD)
    evaluate.add_argument("--target", required=True, metavar="SPEC", help=_TARGET)
    evaluate.add_argument("--epsilon", type=float, required=True, metavar="X", help=_EPSILON)
    evaluate.add_argument("--delta", type=float, required=True, metavar="X", help=_DELTA)
    evaluate.add_argument(
        "--max-change",
        type=float,
        default=1.0,
        metavar="X",
        help="let one person change a count by at most this much, in events (default: %(default)s)",
    )
    evaluate.add_argument(
        "--order",
        type=at_least(0),
        default=12,
        metavar="N",
        help="fit an autoregression of this order, in bins, to each series (default: %(default)s)",
    )
    evaluate.add_argument(
        "--draws", type=at_least(2), default=20, metavar="N", help="draw the noise so often (default: %(default)s)"
    )
    evaluate.add_argument(
        "--mechanism",
        action="append",
        default=[],
        metavar="FILE",
        help="evaluate this saved mechanism too; may be repeated",
    )
    _add_seed(evaluate, 1, "the noise")
    evaluate.add_argument("--out", default="dpfast-evaluation", metavar="DIR", help=_OUT.format("%(default)s"))


def _add_design(design: argparse.ArgumentParser) -> None:
    """All options without a default: a file may give them."""
    design.add_argument(
        "file",
        nargs="?",
        metavar="FILE.toml",
        help="read settings, named as the options, from this file; see docs/design.md",
    )
    of_model = design.add_argument_group("what is to be published, and how privately")
    of_model.add_argument("--target", metavar="SPEC", help=_TARGET)
    of_model.add_argument("--epsilon", type=float, metavar="X", help=_EPSILON)
    of_model.add_argument("--delta", type=float, metavar="X", help=_DELTA)
    of_model.add_argument(
        "--max-change",
        type=float,
        metavar="X",
        help="let one event of a person change the signal by at most this much (default: 1)",
    )
    of_model.add_argument("--max-events", type=int, metavar="N", help="protect so many events of a person (default: 1)")
    of_model.add_argument(
        "--min-separation",
        type=int,
        metavar="N",
        help="assume that events of a person are at least so many samples apart (default: 1)",
    )
    of_model.add_argument(
        "--calibration",
        choices=("exact", "paper"),
        help="calibrate the noise exactly, or by the larger bound of the paper (default: exact)",
    )
    of_model.add_argument(
        "--lag",
        type=lag,
        metavar="N",
        help="let estimates be late by so many samples, or 'smoother' for estimates of a whole batch (default: 0)",
    )
    of_model.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="accept this relative increase of the MSE in exchange for a filter of lower order (default: 0.001)",
    )
    of_model.add_argument("--model", metavar="SPEC", help=f"assume this model of the signal: {descriptions.MODEL}")
    of_fit = design.add_argument_group("instead of a model: an autoregression fitted to a log of events")
    of_fit.add_argument("--fit", metavar="EVENTS", help="fit it to this CSV file, plain or gzip, with a header")
    of_fit.add_argument("--time", metavar="COLUMN", help=_TIME)
    of_fit.add_argument("--by", metavar="COLUMN", help=_BY.format("series"))
    of_fit.add_argument("--count", metavar="COLUMN", help=_COUNT)
    of_fit.add_argument("--time-format", metavar="FORMAT", help=_TIME_FORMAT)
    of_fit.add_argument("--period", metavar="LENGTH", help=_PERIOD)
    of_fit.add_argument(
        "--order", type=int, metavar="N", help="fit an autoregression of this order, in bins (default: 12)"
    )
    of_fit.add_argument("--series", metavar="NAME", help="fit it to this series, where --by finds several")
    of_fit.add_argument(
        "--fit-source", choices=SOURCES, help="say where the log came from (default: fitted-from-private)"
    )
    of_result = design.add_argument_group("the result")
    of_result.add_argument(
        "--source",
        dest="sources",
        type=name_and_word,
        action="append",
        metavar="NAME=WORD",
        help=f"say where an input came from: {', '.join(SOURCES)} (default: assumed); may be repeated",
    )
    of_result.add_argument(
        "--choose",
        metavar="NAME",
        help="save the mechanism of this family (default: the least error of those that run as a stream)",
    )
    of_result.add_argument("--out", metavar="DIR", help=_OUT.format("dpfast-design"))


def _add_study(study: argparse.ArgumentParser) -> None:
    """All options without a default: a file may give them."""
    study.add_argument("file", metavar="FILE", help="run the sweep that this TOML file describes; see docs/study.md")
    study.add_argument("--out", metavar="DIR", help=_OUT.format("dpfast-study"))
    study.add_argument(
        "--store",
        metavar="FILE",
        help="keep what is finished in this SQLite file, for this and other sweeps (default: OUT/study.sqlite)",
    )
    study.add_argument("--seed", type=at_least(0), metavar="N", help="draw inputs and noise from this seed")
    of_length = study.add_argument_group("how long")
    of_length.add_argument(
        "--width",
        type=width,
        metavar="W",
        help="stop when the interval of an RMSE is at most so wide, in units of the RMSE, or 'none' (default: 0.01)",
    )
    of_length.add_argument(
        "--budget", type=float, metavar="N", help="count at most so many samples of a case (default: 1e8)"
    )
    of_engine = study.add_argument_group("where")
    of_engine.add_argument(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="run in so many processes of one thread each (default: in this one)",
    )
    of_engine.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler, such as tcp://10.0.0.1:8786"
    )
    study.add_argument("--verbose", action="store_true", help="log what is done to standard error")


class _Read(argparse.Action):
    """Whoever reads a store declares nothing."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)
        for action in parser._actions:
            action.required = False


def _add_release(release: argparse.ArgumentParser) -> None:
    release.add_argument(
        "--read",
        action=_Read,
        metavar="STORE",
        help="show what this store has published, with its guarantee, and spend nothing; no other option is needed, "
        "and --out DIR writes the values to DIR/values.csv instead",
    )
    release.add_argument("events", metavar="EVENTS", help=f"{_LOG}; write - with --follow")
    release.add_argument("--mechanism", required=True, metavar="FILE", help=_MECHANISM)
    of_bins = release.add_argument_group("what is declared of the events")
    of_bins.add_argument("--time", required=True, metavar="COLUMN", help=_TIME)
    of_bins.add_argument("--time-format", metavar="FORMAT", help=_TIME_FORMAT)
    of_bins.add_argument(
        "--start",
        required=True,
        metavar="T",
        help="begin the first bin at this time, such as 2013-01-01, 2013-01-01T00:00Z",
    )
    of_bins.add_argument(
        "--end",
        required=True,
        metavar="T",
        help="end the last bin at this time, a whole number of periods after the start",
    )
    of_bins.add_argument("--period", required=True, metavar="LENGTH", help=_PERIOD)
    of_bins.add_argument("--by", metavar="COLUMN", help=_BY.format("groups"))
    of_bins.add_argument("--groups", type=words, metavar="A,B,C", help="publish these groups of --by, in this order")
    of_bins.add_argument("--count", metavar="COLUMN", help=_COUNT)
    _add_range(release, needed=True)
    of_files = release.add_argument_group("files")
    of_files.add_argument("--out", required=True, metavar="DIR", help="write what is public to this folder")
    of_files.add_argument(
        "--store",
        metavar="DIR",
        help="remember what was published in this folder, which is private (default: OUT-private)",
    )
    of_files.add_argument(
        "--format",
        choices=("csv", "parquet"),
        default="csv",
        help="write the estimates in this format (default: %(default)s)",
    )
    of_files.add_argument(
        "--compose",
        action="store_true",
        help="publish steps again that were published, under a new --name, and state the guarantee of both",
    )
    of_files.add_argument(
        "--name", metavar="NAME", help="publish this release under a name of its own, in the file estimates-NAME"
    )
    of_files.add_argument(
        "--adopt",
        action="store_true",
        help="go on with a copy of a store whose original is gone, or vouch that releases which nobody declared meant "
        "what is given now",
    )
    of_files.add_argument(
        "--new-store",
        action="store_true",
        help="begin another store, in OUT-2, OUT-3 and so on, where this one declares something else",
    )
    of_shown = release.add_argument_group("what is shown to you alone, on standard error")
    of_shown.add_argument(
        "--dry-run",
        action="store_true",
        help="read the file and show private counts of its rows; publish nothing, spend nothing and open no store",
    )
    of_shown.add_argument(
        "--quiet", action="store_true", help="show no private counts of a file, and not how far the command is"
    )
    of_shown.add_argument(
        "--private-counts", action="store_true", help="show private counts with --follow, where they are not shown else"
    )
    of_stream = release.add_argument_group("events as they come")
    of_stream.add_argument(
        "--follow", action="store_true", help="read events from standard input, and publish each bin as it ends"
    )
    of_stream.add_argument(
        "--grace",
        metavar="LENGTH",
        help="wait so long at the end of a bin for events on their way, such as 10s (default: publish at once)",
    )


def _add_audit(audit: argparse.ArgumentParser) -> None:
    audit.add_argument("--mechanism", metavar="FILE", help=f"{_MECHANISM} (default: counts behind no filter)")
    _add_range(audit, needed=False)
    of_audit = audit.add_argument_group("how hard to look")
    of_audit.add_argument(
        "--runs", type=int, metavar="N", help="run each attack on a release so often (default: for a few seconds)"
    )
    of_audit.add_argument(
        "--confidence",
        type=float,
        default=0.99,
        metavar="X",
        help="state all bounds together with this confidence (default: %(default)s)",
    )
    _add_seed(of_audit, 0, "the signals, but not the noise,")
    of_audit.add_argument(
        "--out", metavar="DIR", help="write audit.txt and audit.csv to this folder (default: print only)"
    )


def _add_show(show: argparse.ArgumentParser) -> None:
    show.add_argument("file", metavar="FILE", help=_MECHANISM)


def _add_range(command: argparse.ArgumentParser, *, needed: bool) -> None:
    of_range = command.add_argument_group("what is declared of a count")
    of_range.add_argument("--high", type=fraction, required=needed, metavar="N", help="count as N what is above it")
    of_range.add_argument(
        "--low", type=fraction, default="0", metavar="N", help="count as N what is below it (default: %(default)s)"
    )
    of_range.add_argument(
        "--unit",
        type=fraction,
        default="1",
        metavar="N",
        help="round counts to multiples of N, and draw the noise in such steps (default: %(default)s)",
    )
    of_range.add_argument(
        "--centre",
        type=fraction,
        default="0",
        metavar="N",
        help="expect a count of N; the filters run on the difference from it (default: %(default)s)",
    )
    of_range.add_argument(
        "--streams-per-person",
        type=at_least(1),
        default=1,
        metavar="N",
        help="protect a person who may be in so many groups (default: %(default)s)",
    )
    of_range.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        help="accept this relative increase of the MSE for rounding the prefilter to integers (default: %(default)s)",
    )
