"""Options that several commands share, and how values of options are read."""

from __future__ import annotations

import argparse
import csv
from fractions import Fraction
from typing import Any

from dpfast._support.settings_file import replace_hyphens
from dpfast.design import target_and_model_specs
from dpfast.mechanisms.lags import SMOOTHER

LOG = "read the events from this CSV file with a header, plain or packed by gzip, bzip2 or zstd, or this Parquet file"
TIME = "take the time of an event from this column"
BY = "tell the {} apart by this column (default: all events are one)"
COUNT = "take the number of events of a row from this column (default: every row is one event)"
TIME_FORMAT = (
    "parse times with this format of strptime, such as '%%m/%%d/%%Y %%H:%%M' (default: ISO 8601, RFC 2822, Unix times)"
)
PERIOD = "count events in bins of this length, such as 5min, 1h, 1d"
TARGET = f"publish the output of this filter: {target_and_model_specs.TARGET}"
EPSILON = "guarantee this epsilon, above 0"
DELTA = "guarantee this delta, at least 0 and below 1; Gaussian noise needs one above 0 (default: 0)"
UNIT = (
    "round real inputs to multiples of X for noise on the integers, as of block sums (default: inputs are counts, or "
    "the levels of a model)"
)
MECHANISM = "take the mechanism from this file, which dpfast design or dpfast.save wrote"
OUT = "write the files to this folder (default: {})"


def add_columns(command: Any, *, required: bool) -> None:
    """Add the options that tell how the columns of a log become series of counts."""
    command.add_argument("--time", required=required, metavar="COLUMN", help=TIME)
    command.add_argument("--by", metavar="COLUMN", help=BY.format("series"))
    command.add_argument("--count", metavar="COLUMN", help=COUNT)
    command.add_argument("--time-format", metavar="FORMAT", help=TIME_FORMAT)
    command.add_argument("--period", required=required, metavar="LENGTH", help=PERIOD)


def add_seed(command: Any, default: int, drawn: str) -> None:
    """Add ``--seed``, whose help names what is drawn from it."""
    command.add_argument(
        "--seed",
        type=at_least(0),
        default=default,
        metavar="N",
        help=f"draw {drawn} from this seed (default: %(default)s)",
    )


def add_out(command: Any, default: str) -> None:
    """Add ``--out``, the folder for the files."""
    command.add_argument("--out", default=default, metavar="DIR", help=OUT.format("%(default)s"))


def add_range(command: argparse.ArgumentParser, *, required: bool) -> None:
    """Add what is declared of counts before an exact release, or an attack on one."""
    group = command.add_argument_group("what is declared of a count")
    group.add_argument("--high", type=fraction, required=required, metavar="N", help="clamp counts above N to N")
    group.add_argument(
        "--low", type=fraction, default="0", metavar="N", help="clamp counts below N to N (default: %(default)s)"
    )
    group.add_argument(
        "--unit",
        type=fraction,
        default="1",
        metavar="N",
        help="round counts to multiples of N, and draw the noise in such multiples (default: %(default)s)",
    )
    group.add_argument(
        "--centre",
        type=fraction,
        default="0",
        metavar="N",
        help="expect a count of N; the filters run on the difference from it (default: %(default)s)",
    )
    group.add_argument(
        "--streams-per-person",
        type=at_least(1),
        default=1,
        metavar="N",
        help="protect a person who may be in this many groups (default: %(default)s)",
    )
    group.add_argument(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        help="accept this relative increase of the MSE for rounding the prefilter to integers (default: %(default)s)",
    )


# --- values: argparse names these functions where a text cannot be read ---------------------------


def at_least(minimum: int) -> Any:
    """Return a type of options: whole numbers from a minimum up."""

    def whole_number(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    return whole_number


def width(text: str) -> float | str:
    """Read the width of an interval: a number, or the word none."""
    return text if text == "none" else float(text)


def lag(text: str) -> int | str:
    """Read a lag: a number of samples, or the word for a smoother."""
    return text if text == SMOOTHER else int(text)


def words(text: str) -> list[str]:
    """Read words between commas, which stand in quotes where they hold commas themselves."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"must be words between commas, got {text!r}: {error}") from None


def numbers(text: str) -> float | tuple[float, ...]:
    """Read a number, or several between commas."""
    values = tuple(float(x) for x in text.split(","))
    return values[0] if len(values) == 1 else values


def fraction(text: str) -> Fraction:
    """Read an exact number."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a number such as 20, 0.5 or 1/3, got {text!r}") from None


def fraction_as_float(text: str) -> float:
    """Read a number that may be written as a fraction."""
    try:
        return float(fraction(text))
    except OverflowError:
        raise argparse.ArgumentTypeError(f"must be less than 1.8e308, got {text!r}") from None


def name_and_word(text: str) -> tuple[str, str]:
    """Read the two sides of an equals sign."""
    name, equals, word = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=WORD, got {text!r}")
    return replace_hyphens(name), word
