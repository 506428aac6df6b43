"""The command ``dpfast design``: all families of mechanisms side by side.

Its settings come from a TOML file and from arguments, which override the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.settings_file import check_text, construct, read_words, replace_hyphens
from dpfast.cli.options import DELTA, EPSILON, OUT, TARGET, UNIT, add_columns, lag, name_and_word
from dpfast.cli.output import require_matplotlib, write_files
from dpfast.design.argument_checks import check_filter
from dpfast.design.best_demand import Demand, check_demand
from dpfast.design.comparison import LABELS
from dpfast.design.target_and_model_specs import MODEL, parse_model, parse_target
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.privacy.provenance import FITTED, SOURCES, Provenance, check_source
from dpfast.reports.comparison import report_comparison
from dpfast.signals.arma import ARMA
from dpfast.signals.events.historical_counts import read_events
from dpfast.signals.model import Model
from dpfast.simulation.best_mechanism import check_simulate
from dpfast.simulation.evaluation import has_levels

SUMMARY = "design all mechanisms for a target, a privacy and a model; compare them and save one"
DESCRIPTION = (
    "Designs every family of mechanisms and compares their predicted errors, over lags and epsilons. A TOML file "
    "may hold the same settings; arguments override it."
)
OF_PRIVACY = ONE_STREAM_FIELDS
OF_CHOICE = ("choose", "minimize", "batch", "simulate")
OF_FIT = ("fit", "time", "by", "count", "time_format", "period", "order", "series", "fit_source")
SETTINGS = ("target", *OF_PRIVACY, "unit", "lag", "tolerance", "model", *OF_FIT, "sources", *OF_CHOICE, "out")
NEEDED = ("target", "epsilon")
DEFAULTS = {"delta": 0.0, "lag": 0, "tolerance": 1e-3, "minimize": "mean", "batch": False, "simulate": False}
DEFAULTS |= {"out": "dpfast-design"}
WORDS = {"mean": "mean", "worst-step": "worst_step"}  # of what is to be the least
FLAGS = {
    "batch": "let mechanisms wait for the whole input before they publish, such as smoothers",
    "simulate": "simulate what has no predicted error, such as posterior means, and choose it where it is shown to err "
    "less",
}
FIT_DEFAULTS = {"order": 12, "fit_source": FITTED}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add all settings, without defaults, as a file may give them."""
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE.toml",
        help="read settings, named as the options, from this file; see docs/guides/design.md",
    )
    _add_task(command.add_argument_group("what is to be published, and how privately"))
    _add_fit(command.add_argument_group("instead of a model: an autoregression fitted to a log of events"))
    result = command.add_argument_group("the result")
    result.add_argument(
        "--source",
        dest="sources",
        type=name_and_word,
        action="append",
        metavar="NAME=WORD",
        help=f"say where an input came from: {', '.join(SOURCES)} (default: assumed); may be repeated",
    )
    result.add_argument(
        "--choose",
        metavar="NAME",
        help=f"save the mechanism of this family: {', '.join(LABELS)} (default: the least error of "
        "those that run as a stream and can be released exactly)",
    )
    result.add_argument(
        "--minimize",
        choices=tuple(WORDS),
        help="take the least mean square error, or the least error in the worst step (default: mean)",
    )
    for word, text in FLAGS.items():
        result.add_argument(f"--{word}", action="store_const", const=True, help=text)
    result.add_argument("--out", metavar="DIR", help=OUT.format(DEFAULTS["out"]))


def _add_task(group: Any) -> None:
    group.add_argument("--target", metavar="SPEC", help=TARGET)
    group.add_argument("--epsilon", type=float, metavar="X", help=EPSILON)
    group.add_argument("--delta", type=float, metavar="X", help=DELTA)
    group.add_argument(
        "--max-change",
        type=float,
        metavar="X",
        help="let one event of a person change the signal by at most this much (default: 1)",
    )
    group.add_argument("--max-events", type=int, metavar="N", help="protect so many events of a person (default: 1)")
    group.add_argument(
        "--min-separation",
        type=int,
        metavar="N",
        help="assume that events of a person are at least so many samples apart (default: 1)",
    )
    group.add_argument(
        "--calibration",
        choices=("exact", "paper"),
        help="calibrate the noise exactly, or by the larger bound of the paper (default: exact)",
    )
    group.add_argument("--unit", type=float, metavar="X", help=UNIT)
    group.add_argument(
        "--lag",
        type=lag,
        metavar="N",
        help="let estimates be late by so many samples, or 'smoother' for estimates of a whole batch (default: 0)",
    )
    group.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="accept this relative increase of the MSE in exchange for a filter of lower order (default: 0.001)",
    )
    group.add_argument("--model", metavar="SPEC", help=f"assume this model of the signal: {MODEL}")


def _add_fit(group: Any) -> None:
    group.add_argument("--fit", metavar="EVENTS", help="fit it to this CSV or Parquet file")
    add_columns(group, required=False)
    group.add_argument(
        "--order", type=int, metavar="N", help="fit an autoregression of this order, in bins (default: 12)"
    )
    group.add_argument("--series", metavar="NAME", help="fit it to this series, where --by finds several")
    group.add_argument(
        "--fit-source", choices=SOURCES, help="say where the log came from (default: fitted-from-private)"
    )


def run(options: argparse.Namespace) -> str:
    """Design and compare all families, write the files, and return the table."""
    require_matplotlib()
    settings = read_settings(options.file, {name: x for name, x in vars(options).items() if name in SETTINGS})
    task = make_task(settings)
    folder = OutputFolder(settings["out"])
    text = report_comparison(
        task,
        folder,
        sources=settings["sources"],
        choose=settings.get("choose"),
        command=options.line,
        progress=sys.stderr.isatty(),
        simulate=settings["simulate"],
    )
    return write_files(folder, text)


# --- settings -------------------------------------------------------------------------------------


def read_settings(path: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read a TOML file, let arguments override it, and fill in the defaults.

    Parameters
    ----------
    path : str or None
        A file with the words of the command line: ``max-change`` or ``max_change``.
    arguments : mapping
        Words with an underscore; None for those that were not given.

    Returns
    -------
    dict
        Settings by name. "sources" holds the inputs whose source is known, and "model_source" that of the model.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    settings = _override({} if path is None else read_words(Path(path), SETTINGS), given)
    for name in NEEDED:
        if name not in settings:
            raise ValueError(f"{name} must be given, as --{name} or in a file")
    for name in ("choose", "out"):
        if name in settings:
            check_text(name, settings[name])
    return DEFAULTS | settings | {"model_source": settings["sources"].pop("model", "assumed")}


def make_task(settings: Mapping[str, Any]) -> Demand:
    """Make the task of the settings; a model may be fitted to a log for it."""
    privacy = construct("privacy", Privacy, {x: settings[x] for x in OF_PRIVACY if x in settings})
    delay = check_lag(settings["lag"])
    for name in FLAGS:
        validation.instance(name, settings[name], bool, "true or false")
    task = check_demand(
        parse_target(settings["target"]),
        privacy,
        _make_model(settings, settings["model_source"]),
        lag=delay,
        minimize=WORDS[validation.choice("minimize", settings["minimize"], WORDS)],
        online=delay is not None and not settings["batch"],
        unit=settings.get("unit"),
        tolerance=settings["tolerance"],
    )
    check_filter("target", task.target)
    check_simulate(settings["simulate"], task)
    return task


def _override(file: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Override the file by the arguments: a model there replaces a fit here, and the other way round."""
    kept = dict(file)
    if "model" in arguments:
        kept = {name: value for name, value in kept.items() if name not in OF_FIT}
    elif "fit" in arguments:
        kept.pop("model", None)
    of_file = _check_sources(_check_table(kept.pop("sources", {})).items())
    given = arguments.get("sources", ())
    of_arguments = _check_sources(given.items() if isinstance(given, Mapping) else given)
    # What the file says of a value holds for that value only; and what was fitted stays so.
    still = {name: word for name, word in of_file.items() if name not in arguments}
    taken_back = [name for name, word in still.items() if word == FITTED and of_arguments.get(name, FITTED) != FITTED]
    if taken_back:
        raise ValueError(f"the source of {taken_back[0]} must stay {FITTED!r}, as the file says, got another word")
    return {**kept, **arguments, "sources": {**still, **of_arguments}}


def _check_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise validation.fail("sources", "a table of names and words", value)
    return value


def _check_sources(pairs: Iterable[tuple[str, Any]]) -> dict[str, Provenance]:
    words: dict[str, Provenance] = {}
    for name, word in pairs:
        if replace_hyphens(name) in words:
            raise ValueError(f"the source of {name} must be given once, got several")
        words[replace_hyphens(name)] = check_source(f"the source of {name}", word)
    return words


def _make_model(settings: Mapping[str, Any], source: Provenance) -> Model | None:
    """Parse the model that is described, or fit one to a log; return None where there is neither."""
    if "model" in settings and "fit" in settings:
        raise ValueError(f"either model or fit must be given, not both: --model {MODEL}; or --fit EVENTS")
    if "fit" in settings:
        if source != "assumed":
            raise ValueError("the source of model must be left out with a fit: say --fit-source")
        return _fit_model(settings)
    of_fit = [name for name in OF_FIT if name in settings]
    if of_fit and "model" not in settings:
        raise ValueError(f"{of_fit[0]} must come with fit, the log that a model is fitted to: say --fit EVENTS")
    if of_fit:
        raise ValueError(f"{of_fit[0]} must come with fit, got a model: leave one of them out")
    if "model" not in settings:
        if source != "assumed":
            raise ValueError("the source of model must come with a model, got none: leave one of them out")
        return None
    return parse_model(settings["model"], source)


def _fit_model(settings: Mapping[str, Any]) -> ARMA:
    words = {x: check_text(x, settings[x]) for x in ("time", "by", "count", "time_format", "period") if x in settings}
    for name in ("time", "period"):
        if name not in words:
            raise ValueError(f"{name} must be given with a fit, as --{name} or in the file")
    counts = read_events(check_text("fit", settings["fit"]), **words)
    if "series" not in settings and len(counts.series) > 1:
        raise ValueError(f"series must be given, one of the {len(counts.series)} in column {words.get('by')!r}")
    series = settings.get("series", counts.series[0])
    if series not in counts.series:  # whose names may be private
        raise ValueError(f"series must be one of the {len(counts.series)} in column {words.get('by')!r}, got another")
    u = counts.counts[counts.series.index(series)]
    levels = np.arange(u.max() + 1) if has_levels(u) else None
    chosen = {**FIT_DEFAULTS, **settings}
    return ARMA.fit(u, chosen["order"], levels=levels, source=check_source("fit_source", chosen["fit_source"]))
