"""What the commands of dpfast take."""

from __future__ import annotations

import argparse
import csv
from fractions import Fraction
from typing import Any

from dpfast import __version__, specs
from dpfast.sources import SOURCES


def _at_least(minimum: int) -> Any:
    def whole_number(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return whole_number


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(
        prog="dpfast", description="Filtered event streams under differential privacy: what accuracy do they cost?"
    )
    main_parser.set_defaults(status=0)  # of the process; a command may say 1
    main_parser.add_argument("--version", action="version", version=f"dpfast {__version__}")
    commands = main_parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    example = commands.add_parser("example", help="reproduce the example of Le Ny 2013, Section VI")
    example.add_argument("--out", default="dpfast-example", metavar="DIR", help="folder for the files (%(default)s)")
    example.add_argument("--streams", type=_at_least(2), default=512, help="simulated streams (%(default)s)")
    example.add_argument("--samples", type=_at_least(1), default=20_000, help="samples of each (%(default)s)")
    example.add_argument("--seed", type=_at_least(0), default=1, help="of inputs and noise (%(default)s)")

    evaluate = commands.add_parser(
        "evaluate",
        help="how well would each mechanism have served a historical event log?",
        description="Bins a log of events, designs every mechanism for each series, and reports their errors on the "
        "log itself. For data that one may look at: the outputs contain them.",
    )
    evaluate.add_argument("events", metavar="EVENTS", help="CSV file, plain or gzip, with a header")
    evaluate.add_argument("--time", required=True, metavar="COLUMN", help="column with the time of an event")
    evaluate.add_argument("--by", metavar="COLUMN", help="column that tells series apart")
    evaluate.add_argument("--count", metavar="COLUMN", help="column with counts, where rows are not single events")
    evaluate.add_argument("--time-format", metavar="FORMAT", help="such as '%%m/%%d/%%Y %%H:%%M'")
    evaluate.add_argument("--period", required=True, help="length of a bin, such as 5min, 1h, 1d")
    evaluate.add_argument("--target", required=True, metavar="SPEC", help=specs.TARGET)
    evaluate.add_argument("--epsilon", type=float, required=True, help="above 0")
    evaluate.add_argument("--delta", type=float, required=True, help="between 0 and 1")
    evaluate.add_argument("--max-change", type=float, default=1.0, help="change of a count by one person (%(default)s)")
    evaluate.add_argument("--order", type=_at_least(0), default=12, help="of the fitted autoregression (%(default)s)")
    evaluate.add_argument("--draws", type=_at_least(2), default=20, help="draws of the noise (%(default)s)")
    evaluate.add_argument(
        "--mechanism", action="append", default=[], metavar="FILE", help="a saved mechanism to add; may be repeated"
    )
    evaluate.add_argument("--seed", type=_at_least(0), default=1, help="of the noise (%(default)s)")
    evaluate.add_argument(
        "--out", default="dpfast-evaluation", metavar="DIR", help="folder for the files (%(default)s)"
    )
    design = commands.add_parser(
        "design",
        help="all mechanisms for a target, a privacy and a model, side by side; the chosen one is saved",
        description="Designs every family of mechanisms and compares their predicted errors, over lags and epsilons. "
        "All words may be in a TOML file too; arguments go before it.",
    )
    _add_design(design)

    study = commands.add_parser(
        "study",
        help="a table of simulations over a grid of designs, each until its error is known well enough",
        description="Runs the sweep that a TOML file describes. What is finished is kept: stopped and started "
        "again, it goes on. Arguments go before the file.",
    )
    _add_study(study)

    release = commands.add_parser(
        "release",
        help="publish a log of events, or events as they come, under an exact guarantee",
        description="Publishes estimates of filtered counts of events, with exact discrete noise. Span, period, groups "
        "and range are declared, never read off the events: events outside are left out, bins and groups without "
        "events are published too. See docs/release-command.md.",
    )
    _add_release(release)

    audit = commands.add_parser(
        "audit",
        help="attack a mechanism, simulated and released: does the guarantee hold?",
        description="Attacks what is published, as someone would who knows the code and nearly all of the data, and "
        "compares what that shows with what is claimed. Without a mechanism it attacks counts behind no filter. No "
        "data are needed. Exit status 1 where a claim is violated.",
    )
    audit.add_argument("--mechanism", metavar="FILE", help="mechanism.json, of dpfast design (counts behind no filter)")
    _add_range(audit, needed=False)
    of_audit = audit.add_argument_group("how hard to look")
    of_audit.add_argument("--runs", type=int, metavar="N", help="of each attack on a release (a few seconds' worth)")
    of_audit.add_argument("--confidence", type=float, default=0.99, help="of all bounds together (%(default)s)")
    of_audit.add_argument("--seed", type=_at_least(0), default=0, help="of the signals, not of the noise (%(default)s)")
    of_audit.add_argument("--out", metavar="DIR", help="folder for audit.txt and audit.csv (none)")

    show = commands.add_parser("show", help="a saved mechanism: what it is, where it came from, what it guarantees")
    show.add_argument("file", metavar="FILE", help="mechanism.json, of dpfast design or dpfast.save")
    return main_parser


def _add_design(design: argparse.ArgumentParser) -> None:
    """All options without a default: a file may give them."""
    design.add_argument("file", nargs="?", metavar="FILE.toml", help="the same words, without --; see docs/design.md")
    of_model = design.add_argument_group("what is to be published, and how privately")
    of_model.add_argument("--target", metavar="SPEC", help=specs.TARGET)
    of_model.add_argument("--epsilon", type=float, help="above 0")
    of_model.add_argument("--delta", type=float, help="between 0 and 1")
    of_model.add_argument("--max-change", type=float, help="size of one event of a person (1)")
    of_model.add_argument("--max-events", type=int, metavar="N", help="events of a person (1)")
    of_model.add_argument("--min-separation", type=int, metavar="N", help="samples between events of a person (1)")
    of_model.add_argument("--calibration", choices=("exact", "paper"), help="of the noise (exact)")
    of_model.add_argument("--lag", type=int, metavar="N", help="samples by which estimates may be late (0)")
    of_model.add_argument("--tolerance", type=float, help="relative excess of the MSE for small filters (0.001)")
    of_model.add_argument("--model", metavar="SPEC", help=specs.MODEL)
    of_fit = design.add_argument_group("instead of a model: an autoregression fitted to a log of events")
    of_fit.add_argument("--fit", metavar="EVENTS", help="CSV file, plain or gzip, with a header")
    of_fit.add_argument("--time", metavar="COLUMN", help="column with the time of an event")
    of_fit.add_argument("--by", metavar="COLUMN", help="column that tells series apart")
    of_fit.add_argument("--count", metavar="COLUMN", help="column with counts, where rows are not single events")
    of_fit.add_argument("--time-format", metavar="FORMAT", help="such as '%%m/%%d/%%Y %%H:%%M'")
    of_fit.add_argument("--period", help="length of a bin, such as 5min, 1h, 1d")
    of_fit.add_argument("--order", type=int, metavar="N", help="of the autoregression (12)")
    of_fit.add_argument("--series", metavar="NAME", help="which one, where there are several")
    of_fit.add_argument("--fit-source", choices=SOURCES, help="what the log is (fitted-from-private)")
    of_result = design.add_argument_group("the result")
    of_result.add_argument(
        "--source",
        dest="sources",
        type=_name_and_word,
        action="append",
        metavar="NAME=WORD",
        help=f"where an input came from: {', '.join(SOURCES)}; may be repeated",
    )
    of_result.add_argument("--choose", metavar="NAME", help="family to save (the least error that runs as a stream)")
    of_result.add_argument("--out", metavar="DIR", help="folder for the files (dpfast-design)")


def _add_study(study: argparse.ArgumentParser) -> None:
    """All options without a default: a file may give them."""
    study.add_argument("file", metavar="FILE", help="TOML; see docs/study.md")
    study.add_argument("--out", metavar="DIR", help="folder for the files (dpfast-study)")
    study.add_argument("--store", metavar="FILE", help="what is finished, for this and other sweeps (OUT/study.sqlite)")
    study.add_argument("--seed", type=_at_least(0), metavar="N", help="of inputs and noise")
    of_length = study.add_argument_group("how long")
    of_length.add_argument(
        "--width", type=_width, metavar="W", help="of intervals, in units of the RMSE (0.01); or none"
    )
    of_length.add_argument("--budget", type=float, metavar="N", help="counted samples of a case, at most (1e8)")
    of_engine = study.add_argument_group("where (in this process)")
    of_engine.add_argument("--workers", type=_at_least(1), metavar="N", help="processes, of one thread each")
    of_engine.add_argument("--dask", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://10.0.0.1:8786")
    study.add_argument("--verbose", action="store_true", help="log what is done to standard error")


def _add_release(release: argparse.ArgumentParser) -> None:
    release.add_argument("events", metavar="EVENTS", help="CSV file, plain or gzip, with a header; - with --follow")
    release.add_argument("--mechanism", required=True, metavar="FILE", help="mechanism.json, of dpfast design")
    of_bins = release.add_argument_group("what is declared of the events")
    of_bins.add_argument("--time", required=True, metavar="COLUMN", help="column with the time of an event")
    of_bins.add_argument("--time-format", metavar="FORMAT", help="such as '%%m/%%d/%%Y %%H:%%M'")
    of_bins.add_argument("--start", required=True, metavar="T", help="such as 2013-01-01, 2013-01-01T00:00Z")
    of_bins.add_argument(
        "--end", required=True, metavar="T", help="left out; a whole number of periods after the start"
    )
    of_bins.add_argument("--period", required=True, help="length of a bin, such as 5min, 1h, 1d")
    of_bins.add_argument("--by", metavar="COLUMN", help="column that tells groups apart")
    of_bins.add_argument("--groups", type=_words, metavar="A,B,C", help="groups to publish, with --by")
    of_bins.add_argument("--count", metavar="COLUMN", help="column with counts, where rows are not single events")
    _add_range(release, needed=True)
    of_files = release.add_argument_group("files")
    of_files.add_argument("--out", required=True, metavar="DIR", help="folder of what is public")
    of_files.add_argument(
        "--store", metavar="DIR", help="private folder that remembers what was published (OUT-private)"
    )
    of_files.add_argument("--format", choices=("csv", "parquet"), default="csv", help="of the estimates (%(default)s)")
    of_files.add_argument("--compose", action="store_true", help="publish steps again, and state the sum")
    of_files.add_argument("--adopt", action="store_true", help="go on with a copy of a store whose original is gone")
    of_stream = release.add_argument_group("events as they come")
    of_stream.add_argument(
        "--follow", action="store_true", help="from standard input; each bin is published as it ends"
    )
    of_stream.add_argument(
        "--grace", metavar="TIME", help="for events on their way at the end of a bin, such as 10s (none)"
    )


def _add_range(command: argparse.ArgumentParser, *, needed: bool) -> None:
    of_range = command.add_argument_group("what is declared of a count")
    of_range.add_argument("--high", type=_fraction, required=needed, metavar="N", help="counts above count as N")
    of_range.add_argument(
        "--low", type=_fraction, default="0", metavar="N", help="counts below count as N (%(default)s)"
    )
    of_range.add_argument("--unit", type=_fraction, default="1", metavar="N", help="of the noise (%(default)s)")
    of_range.add_argument("--centre", type=_fraction, default="0", metavar="N", help="the expected count (%(default)s)")
    of_range.add_argument(
        "--streams-per-person", type=_at_least(1), default=1, metavar="N", help="groups of one person (%(default)s)"
    )
    of_range.add_argument("--tolerance", type=float, default=1e-3, help="excess of the MSE for integers (%(default)s)")


def _width(text: str) -> float | str:
    return text if text == "none" else float(text)


def _words(text: str) -> list[str]:
    """Words between commas, in quotes where they hold some."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"must be words between commas, got {text!r}: {error}") from None


def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a number such as 20, 0.5 or 1/3, got {text!r}") from None


def _name_and_word(text: str) -> tuple[str, str]:
    name, equals, word = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=WORD, got {text!r}")
    return specs.underscored(name), word
