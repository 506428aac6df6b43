"""The settings of ``dpfast design``: a TOML file, and arguments that go before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.settings_file import check_text, made, read_words, underscored
from dpfast.design.arguments import check_filter, check_tolerance
from dpfast.design.comparison import ComparisonTask
from dpfast.design.descriptions import MODEL, parse_model, parse_target
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import FITTED, Provenance, check_source
from dpfast.signals.arma import ARMA
from dpfast.signals.events.historical import read_events
from dpfast.signals.model import Model
from dpfast.simulation.evaluation import has_levels

OF_PRIVACY = tuple(x.name for x in fields(Privacy))
OF_FIT = ("fit", "time", "by", "count", "time_format", "period", "order", "series", "fit_source")
OF_DESIGN = ("target", *OF_PRIVACY, "lag", "tolerance", "model", *OF_FIT, "sources", "choose", "out")
NEEDED = ("target", "epsilon", "delta")
DEFAULTS = {"lag": 0, "tolerance": 1e-3, "order": 12, "fit_source": FITTED}


@dataclass(frozen=True)
class Request:
    """A design that is asked for.

    Attributes
    ----------
    task : Task
        What is to be designed.
    sources : mapping
        Where inputs came from, as far as somebody said.
    choose : str or None
        The family whose mechanism is kept.
    out : str
        The folder for the files.
    """

    task: ComparisonTask
    sources: Mapping[str, Provenance]
    choose: str | None
    out: str


def request(path: str | None, arguments: Mapping[str, Any]) -> Request:
    """The design that a TOML file and arguments, which go before it, ask for.

    Parameters
    ----------
    path : str or None
        A file with the words of the command line: ``max-change`` or ``max_change``.
    arguments : mapping
        Words with an underscore; None for those that were not given.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    settings = _merged({} if path is None else read_words(Path(path), OF_DESIGN), given)
    for name in NEEDED:
        if name not in settings:
            raise ValueError(f"{name} must be given, as --{name} or in a file")
    sources = dict(settings["sources"])
    privacy = made("privacy", Privacy, {x: settings[x] for x in OF_PRIVACY if x in settings})
    task = ComparisonTask(
        target=parse_target(settings["target"]),
        privacy=privacy,
        model=_model(settings, sources.pop("model", "assumed")),
        lag=check_lag(settings.get("lag", DEFAULTS["lag"])),
        tolerance=check_tolerance(settings.get("tolerance", DEFAULTS["tolerance"])),
    )
    check_filter("target", task.target)
    choose = None if "choose" not in settings else check_text("choose", settings["choose"])
    return Request(task, sources, choose, check_text("out", settings.get("out", "dpfast-design")))


def _merged(file: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments over the file: a model there replaces a fit here, and the other way round."""
    kept = dict(file)
    if "model" in arguments:
        kept = {name: value for name, value in kept.items() if name not in OF_FIT}
    elif "fit" in arguments:
        kept.pop("model", None)
    of_file = _sources(_table(kept.pop("sources", {})).items())
    given = arguments.get("sources", ())
    of_arguments = _sources(given.items() if isinstance(given, Mapping) else given)
    # what the file says of a value holds for that value only; and what was fitted stays so
    still = {name: word for name, word in of_file.items() if name not in arguments}
    taken_back = [name for name, word in still.items() if word == FITTED and of_arguments.get(name, FITTED) != FITTED]
    if taken_back:
        raise ValueError(f"the source of {taken_back[0]} must stay {FITTED!r}, as the file says, got another word")
    return {**kept, **arguments, "sources": {**still, **of_arguments}}


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise validation.fail("sources", "a table of names and words", value)
    return value


def _sources(pairs: Iterable[tuple[str, Any]]) -> dict[str, Provenance]:
    words: dict[str, Provenance] = {}
    for name, word in pairs:
        if underscored(name) in words:
            raise ValueError(f"the source of {name} must be given once, got several")
        words[underscored(name)] = check_source(f"the source of {name}", word)
    return words


def _model(settings: Mapping[str, Any], source: Provenance) -> Model:
    """The model that is described, or the one that is fitted to a log."""
    if ("model" in settings) == ("fit" in settings):
        raise ValueError(f"either model or fit must be given: --model {MODEL}; or --fit EVENTS")
    if "fit" in settings:
        if source != "assumed":
            raise ValueError("the source of model must be left out with a fit: say --fit-source")
        return _fitted(settings)
    of_fit = [name for name in OF_FIT if name in settings]
    if of_fit:
        raise ValueError(f"{of_fit[0]} must come with fit, got a model: leave one of them out")
    return parse_model(settings["model"], source)


def _fitted(settings: Mapping[str, Any]) -> ARMA:
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
    order, source = settings.get("order", DEFAULTS["order"]), settings.get("fit_source", DEFAULTS["fit_source"])
    return ARMA.fit(u, order, levels=levels, source=check_source("fit_source", source))
