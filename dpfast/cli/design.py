"""The command ``dpfast design``: all families of mechanisms side by side.

Its settings come from a TOML file and from arguments, which override the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.settings_file import check_text, construct, read_words, replace_hyphens
from dpfast.cli import design_channels
from dpfast.cli.channel_options import add_adjacency
from dpfast.cli.design_model import OF_FIT, add_fit, make_model
from dpfast.cli.options import DELTA, EPSILON, OUT, TARGET, UNIT, fraction_as_float, lag, name_and_word, words
from dpfast.cli.output import require_matplotlib, write_files
from dpfast.design.argument_checks import check_filter
from dpfast.design.best_demand import Demand, check_demand
from dpfast.design.channel_target_specs import MIXED
from dpfast.design.comparison import LABELS, searches_times
from dpfast.design.target_and_model_specs import MODEL, parse_target
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.privacy.provenance import FITTED, SOURCES, Provenance, check_source
from dpfast.reports.comparison import report_comparison
from dpfast.simulation.best_mechanism import check_simulate

SUMMARY = "design all mechanisms for a target, a privacy demand and a model; compare them and save one"
DESCRIPTION = (
    "Designs every family of mechanisms and compares their predicted errors, over lags and epsilons. A TOML file "
    "may hold the same settings; arguments override it."
)
OF_PRIVACY = ONE_STREAM_FIELDS
OF_CHOICE = ("choose", "minimize", "batch", "simulate")
OF_CHANNELS = ("groups", "adjacency")
SETTINGS = (
    *("target", *OF_PRIVACY, *OF_CHANNELS, "unit", "lag", "tolerance", "model"),
    *(*OF_FIT, "sources", *OF_CHOICE, "out"),
)
NEEDED = ("target", "epsilon")
DEFAULTS = {"delta": 0.0, "lag": 0, "tolerance": 1e-3, "minimize": "mean", "batch": False, "simulate": False}
DEFAULTS |= {"out": "dpfast-design"}
DESIGNED = "protect a person whose event reaches these of several streams; it has no default"
WORDS = {"mean": "mean", "worst-step": "worst_step"}  # of what is to be the least
SEARCHING = (
    "dpfast: designing for {} events of a person, whose least favourable times each design searches for: that takes "
    "longer than for one event, and the longer the larger the lag is"
)
FLAGS = {
    "batch": "let mechanisms wait for the whole input before they publish, such as smoothers",
    "simulate": "simulate what has no predicted error, such as posterior means, and choose it where it is shown to err "
    "less",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add all settings, without defaults, as a file may give them."""
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE.toml",
        help="read settings, named as the options, from this file; see docs/guides/design.md",
    )
    _add_task(command.add_argument_group("what is to be published, and how privately"))
    add_fit(command.add_argument_group("instead of a model: an autoregression fitted to a log of events"))
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
    group.add_argument("--target", metavar="SPEC", help=f"{TARGET}; of several streams {MIXED}")
    group.add_argument(
        "--groups", type=words, metavar="A,B,C", help="design for these streams together, the inputs of the target"
    )
    add_adjacency(group, DESIGNED)
    group.add_argument("--epsilon", type=float, metavar="X", help=EPSILON)
    group.add_argument("--delta", type=float, metavar="X", help=DELTA)
    group.add_argument(
        "--max-change",
        type=float,
        metavar="X",
        help="let one event of a person change the signal by at most this much (default: 1)",
    )
    group.add_argument("--max-events", type=int, metavar="N", help="protect this many events of a person (default: 1)")
    group.add_argument(
        "--min-separation",
        type=int,
        metavar="N",
        help="assume that events of a person are at least this many samples apart (default: 1)",
    )
    group.add_argument(
        "--calibration",
        choices=("exact", "paper"),
        help="calibrate the noise exactly, or by the larger bound of the paper (default: exact)",
    )
    group.add_argument("--unit", type=fraction_as_float, metavar="X", help=UNIT)
    group.add_argument(
        "--lag",
        type=lag,
        metavar="N",
        help="let estimates be late by this many samples, or 'smoother' for estimates of a whole batch (default: 0)",
    )
    group.add_argument(
        "--tolerance",
        type=float,
        metavar="X",
        help="accept this relative increase of the MSE in exchange for a filter of lower order (default: 0.001)",
    )
    group.add_argument(
        "--model",
        action="append",
        metavar="SPEC",
        help=f"assume this model of the signal: {MODEL}; of several streams of all, or given once for each",
    )


def run(options: argparse.Namespace) -> str:
    """Design and compare all families, write the files, and return the table."""
    require_matplotlib()
    given = {name: x for name, x in vars(options).items() if name in SETTINGS}
    if given["model"] is not None and len(given["model"]) == 1:
        given["model"] = given["model"][0]
    settings = read_settings(options.file, given)
    if design_channels.is_for_several(settings):
        return design_channels.run_for_several(_check_flags(settings), options.line)
    task = make_task(settings)
    folder = OutputFolder(settings["out"])
    if searches_times(task):
        print(SEARCHING.format(task.privacy.max_events), file=sys.stderr, flush=True)
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
    _check_flags(settings)
    if "adjacency" in settings:
        raise ValueError(
            f"adjacency must come with several streams, got one: name them by --groups, with a target such as {MIXED}"
        )
    task = check_demand(
        parse_target(settings["target"]),
        privacy,
        make_model(settings),
        lag=delay,
        minimize=WORDS[validation.choice("minimize", settings["minimize"], WORDS)],
        online=delay is not None and not settings["batch"],
        unit=settings.get("unit"),
        tolerance=settings["tolerance"],
    )
    check_filter("target", task.target)
    check_simulate(settings["simulate"], task)
    return replace(task, drawn=True)  # as what is saved is to be released


def _check_flags(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in FLAGS:
        validation.instance(name, settings[name], bool, "true or false")
    return settings


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
