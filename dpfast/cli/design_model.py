"""The models of ``dpfast design``: described, or autoregressions fitted to a log, for one stream or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpfast._support.settings_file import check_text
from dpfast.cli.options import add_columns
from dpfast.design.channel_target_specs import parse_models
from dpfast.design.target_and_model_specs import MODEL, parse_model
from dpfast.privacy.provenance import FITTED, SOURCES, Provenance, check_source
from dpfast.signals.arma import ARMA
from dpfast.signals.events.historical_counts import EventCounts, read_events
from dpfast.signals.model import Model
from dpfast.simulation.evaluation import has_levels

OF_FIT = ("fit", "time", "by", "count", "time_format", "period", "order", "series", "fit_source")
FIT_DEFAULTS = {"order": 12, "fit_source": FITTED}


def add_fit(group: Any) -> None:
    """Add the options of a fit to a group."""
    group.add_argument("--fit", metavar="EVENTS", help="fit it to this CSV or Parquet file")
    add_columns(group, required=False)
    group.add_argument(
        "--order", type=int, metavar="N", help="fit an autoregression of this order, in bins (default: 12)"
    )
    group.add_argument("--series", metavar="NAME", help="fit it to this series, where --by finds several")
    group.add_argument(
        "--fit-source", choices=SOURCES, help="say where the log came from (default: fitted-from-private)"
    )


def make_model(settings: Mapping[str, Any]) -> Model | None:
    """Parse the model that is described, or fit one to a log; return None where there is neither."""
    _check_origin(settings)
    if "fit" in settings:
        return _fit_model(settings)
    if "model" not in settings:
        return None
    spec = settings["model"]
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        raise ValueError(f"model must be one for one stream, got {len(spec)}: name the streams by --groups")
    return parse_model(spec, settings["model_source"])


def make_models(settings: Mapping[str, Any], names: Sequence[str]) -> tuple[Model, ...] | None:
    """Do the same for several streams, which are the series of these names in a log."""
    _check_origin(settings)
    if "fit" in settings:
        return _fit_each(settings, names)
    return parse_models(settings["model"], settings["model_source"], len(names)) if "model" in settings else None


def _check_origin(settings: Mapping[str, Any]) -> None:
    """Refuse words about a model or a fit that do not go together."""
    source: Provenance = settings["model_source"]
    if "model" in settings and "fit" in settings:
        raise ValueError(f"either model or fit must be given, not both: --model {MODEL}; or --fit EVENTS")
    if "fit" in settings:
        if source != "assumed":
            raise ValueError("the source of model must be left out with a fit: say --fit-source")
        return
    of_fit = [name for name in OF_FIT if name in settings]
    if of_fit and "model" not in settings:
        raise ValueError(f"{of_fit[0]} must come with fit, the log that a model is fitted to: say --fit EVENTS")
    if of_fit:
        raise ValueError(f"{of_fit[0]} must come with fit, got a model: leave one of them out")
    if "model" not in settings and source != "assumed":
        raise ValueError("the source of model must come with a model, got none: leave one of them out")


def _read_log(settings: Mapping[str, Any]) -> EventCounts:
    words = {x: check_text(x, settings[x]) for x in ("time", "by", "count", "time_format", "period") if x in settings}
    for name in ("time", "period"):
        if name not in words:
            raise ValueError(f"{name} must be given with a fit, as --{name} or in the file")
    return read_events(check_text("fit", settings["fit"]), **words)


def _fit_model(settings: Mapping[str, Any]) -> ARMA:
    counts = _read_log(settings)
    if "series" not in settings and len(counts.series) > 1:
        raise ValueError(f"series must be given, one of the {len(counts.series)} in column {settings.get('by')!r}")
    return _fit_series(settings, counts, settings.get("series", counts.series[0]), "series")


def _fit_each(settings: Mapping[str, Any], names: Sequence[str]) -> tuple[Model, ...]:
    if "series" in settings:
        raise ValueError("series must be left out for several streams, which are the series of --groups")
    counts = _read_log(settings)
    return tuple(_fit_series(settings, counts, name, "groups") for name in names)


def _fit_series(settings: Mapping[str, Any], counts: EventCounts, series: str, word: str) -> ARMA:
    if series not in counts.series:  # whose names may be private
        must_be = f"{word} must be one of the" if word == "series" else f"{word} must be of the"
        raise ValueError(f"{must_be} {len(counts.series)} in column {settings.get('by')!r}, got another")
    u = counts.counts[counts.series.index(series)]
    levels = np.arange(u.max() + 1) if has_levels(u) else None
    chosen = {**FIT_DEFAULTS, **settings}
    return ARMA.fit(u, chosen["order"], levels=levels, source=check_source("fit_source", chosen["fit_source"]))
