"""The dpfast command."""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpfast import __version__, _validate
from dpfast.errors import DataError, MissingExtraError
from dpfast.filters import Filter
from dpfast.privacy import Privacy

MAX_SAMPLES = 100_000
SPEC = "moving-average:12, exponential:0.9, ba:1,0.995/1,-0.995, or a JSON file with b and a"


def parse_target(spec: str) -> Filter:
    """A target filter from its description on the command line.

    Parameters
    ----------
    spec : str
        ``moving-average:N``; ``exponential:A`` for y = A y⁻ + (1 - A) u; ``ba:B0,B1,…/A0,A1,…`` as in
        :func:`scipy.signal.lfilter`; or a JSON file ``{"b": […], "a": […]}``.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_target("exponential:0.75")
    Filter([0.25], [1.0, -0.75])
    """
    kind, colon, rest = spec.partition(":")
    try:
        if colon and kind == "moving-average":
            n = int(rest)
            if not 1 <= n <= MAX_SAMPLES:
                raise ValueError(f"a moving average must be of 1 to {MAX_SAMPLES} samples, got {n}")
            return Filter(np.full(n, 1 / n))
        if colon and kind == "exponential":
            return Filter([1 - float(rest)], [1, -float(rest)])
        if colon and kind == "ba":
            b, _, a = rest.partition("/")
            return Filter([float(x) for x in b.split(",")], [float(x) for x in (a or "1").split(",")])
    except ValueError as error:
        raise ValueError(f"target {spec!r} does not describe a filter: {error}") from None
    return _target_file(Path(spec))


def _target_file(path: Path) -> Filter:
    if not path.is_file():
        raise ValueError(f"target must be {SPEC}, got {str(path)!r}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Filter(content["b"], content.get("a", [1.0]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f'target file {path} must be JSON like {{"b": [1], "a": [1, -0.9]}}: {error}') from None


def _example(options: argparse.Namespace) -> str:
    from dpfast import example
    from dpfast.report import Folder

    _validate.optional("matplotlib.figure", "cli")  # now, not when all is computed
    folder = Folder(options.out)
    text = example.run(
        folder,
        n_streams=options.streams,
        n_samples=options.samples,
        seed=options.seed,
        progress=sys.stderr.isatty(),
    )
    return _finished(text, folder)


def _evaluate(options: argparse.Namespace) -> str:
    from dpfast import evaluate
    from dpfast.events import read_events
    from dpfast.report import Folder

    _validate.optional("matplotlib.figure", "cli")
    target = parse_target(options.target)
    privacy = Privacy(options.epsilon, options.delta, max_change=options.max_change)
    folder = Folder(options.out)
    counts = read_events(
        options.events,
        time=options.time,
        by=options.by,
        period=options.period,
        count=options.count,
        time_format=options.time_format,
    )
    text = evaluate.run(counts, target, privacy, folder, order=options.order, draws=options.draws, seed=options.seed)
    return _finished(text, folder)


def _finished(text: str, folder: Any) -> str:
    return f"{text}\n\nWritten: " + ", ".join(str(path) for path in folder.write())


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
    main_parser.add_argument("--version", action="version", version=f"dpfast {__version__}")
    commands = main_parser.add_subparsers(required=True, metavar="COMMAND")

    example = commands.add_parser("example", help="reproduce the example of Le Ny 2013, Section VI")
    example.set_defaults(run=_example)
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
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("events", metavar="EVENTS", help="CSV file, plain or gzip, with a header")
    evaluate.add_argument("--time", required=True, metavar="COLUMN", help="column with the time of an event")
    evaluate.add_argument("--by", metavar="COLUMN", help="column that tells series apart")
    evaluate.add_argument("--count", metavar="COLUMN", help="column with counts, where rows are not single events")
    evaluate.add_argument("--time-format", metavar="FORMAT", help="such as '%%m/%%d/%%Y %%H:%%M'")
    evaluate.add_argument("--period", required=True, help="length of a bin, such as 5min, 1h, 1d")
    evaluate.add_argument("--target", required=True, metavar="SPEC", help=SPEC)
    evaluate.add_argument("--epsilon", type=float, required=True, help="above 0")
    evaluate.add_argument("--delta", type=float, required=True, help="between 0 and 1")
    evaluate.add_argument("--max-change", type=float, default=1.0, help="change of a count by one person (%(default)s)")
    evaluate.add_argument("--order", type=_at_least(0), default=12, help="of the fitted autoregression (%(default)s)")
    evaluate.add_argument("--draws", type=_at_least(2), default=20, help="draws of the noise (%(default)s)")
    evaluate.add_argument("--seed", type=_at_least(0), default=1, help="of the noise (%(default)s)")
    evaluate.add_argument(
        "--out", default="dpfast-evaluation", metavar="DIR", help="folder for the files (%(default)s)"
    )
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, or a one-line error and 2."""
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a console that has no κ shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: print(f"dpfast: warning: {message}", file=sys.stderr)
        try:
            print(options.run(options))
        except (ValueError, OSError, MissingExtraError) as error:
            print(f"dpfast: error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("dpfast: interrupted", file=sys.stderr)
            return 130
        except MemoryError:
            print("dpfast: error: not enough memory: take a longer period or fewer streams", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
