"""What the command line and its files say: targets, models, sources, and the settings of a design."""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dpfast import _validate
from dpfast.design.inputs import check_filter, check_tolerance
from dpfast.errors import DataError
from dpfast.evaluate import has_levels
from dpfast.events import read_events
from dpfast.families import Task
from dpfast.filters import Filter
from dpfast.models import ARMA, IndependentLevels, MarkovChain, Model
from dpfast.privacy import Privacy
from dpfast.sources import FITTED, Source, check_source

_T = TypeVar("_T")
MAX_SAMPLES = 100_000
TARGET = "moving-average:12, exponential:0.9, ba:1,0.995/1,-0.995, or a JSON file with b and a"
MODEL = "markov:0.75,0.25;0.25,0.75@-0.5,0.5, levels:0,1@0.9,0.1, or arma:0.4/1,-0.5@3"
OF_PRIVACY = tuple(x.name for x in fields(Privacy))
OF_FIT = ("fit", "time", "by", "count", "time_format", "period", "order", "series", "fit_source")
OF_DESIGN = ("target", *OF_PRIVACY, "lag", "tolerance", "model", *OF_FIT, "sources", "choose", "out")
NEEDED = ("target", "epsilon", "delta")
DEFAULTS = {"lag": 0, "tolerance": 1e-3, "order": 12, "fit_source": FITTED}


# --- targets and models ---------------------------------------------------------------------------


def parse_target(spec: Any) -> Filter:
    """A target filter from its description.

    Parameters
    ----------
    spec : str or mapping
        ``moving-average:N``; ``exponential:A`` for y = A y⁻ + (1 - A) u; ``ba:B0,B1,…/A0,A1,…`` as in
        :func:`scipy.signal.lfilter`; a JSON file ``{"b": […], "a": […]}``; or a table with b and a.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_target("exponential:0.75")
    Filter([0.25], [1.0, -0.75])
    """
    if isinstance(spec, Mapping):
        return _made("target", Filter, spec)
    kind, colon, rest = _text("target", spec).partition(":")
    try:
        if colon and kind == "moving-average":
            n = int(rest)
            if not 1 <= n <= MAX_SAMPLES:
                raise ValueError(f"a moving average must be of 1 to {MAX_SAMPLES} samples, got {n}")
            return Filter(np.full(n, 1 / n))
        if colon and kind == "exponential":
            return Filter([1 - float(rest)], [1, -float(rest)])
        if colon and kind == "ba":
            return Filter(*_ratio(rest))
    except ValueError as error:
        raise ValueError(f"target {spec!r} does not describe a filter: {error}") from None
    return _target_file(Path(spec))


def _target_file(path: Path) -> Filter:
    if not path.is_file():
        raise ValueError(f"target must be {TARGET}, got {str(path)!r}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Filter(content["b"], content.get("a", [1.0]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f'target file {path} must be JSON like {{"b": [1], "a": [1, -0.9]}}: {error}') from None


def parse_model(spec: Any, source: Source = "assumed") -> Model:
    """A model of the stream from its description.

    Parameters
    ----------
    spec : str or mapping
        ``markov:ROW;ROW;…@LEVELS``, rows of the transition matrix; ``levels:LEVELS@PROBABILITIES``;
        ``arma:B0,B1,…/A0,A1,…@MEAN`` for u = mean + (b/a) w with w of standard deviation one, denominator and mean
        optional; or a table with one of the kinds and the arguments of its constructor.
    source : {"assumed", "public", "fitted-from-private"}

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_model("levels:0,1@0.75,0.25").mean
    0.25
    >>> parse_model("arma:1/1,-0.5@3").mean
    3.0
    """
    if isinstance(spec, Mapping):
        rest = dict(spec)
        kind = _validate.choice("model.kind", rest.pop("kind", None), _KINDS)
        if source != "assumed" and "source" in rest:
            raise ValueError("the source of model must be said once: in its table, or among the sources")
        return _made("model", _KINDS[kind], {"source": source, **rest})
    kind, _, rest_of_text = _text("model", spec).partition(":")
    if kind not in _PARSERS:
        raise ValueError(f"model must be {MODEL}, got {spec!r}")
    try:
        return _PARSERS[kind](rest_of_text, source)
    except ValueError as error:
        raise ValueError(f"model {spec!r} does not describe a {kind} model: {error}") from None


def _markov(text: str, source: Source) -> MarkovChain:
    rows, _, levels = text.partition("@")
    return MarkovChain([_numbers(row) for row in rows.split(";")], _numbers(levels), source=source)


def _levels(text: str, source: Source) -> IndependentLevels:
    levels, _, probabilities = text.partition("@")
    return IndependentLevels(_numbers(levels), _numbers(probabilities), source=source)


def _arma(text: str, source: Source) -> ARMA:
    polynomials, _, mean = text.partition("@")
    return ARMA(*_ratio(polynomials), mean=float(mean or 0), source=source)


_KINDS: dict[str, Callable[..., Model]] = {"markov": MarkovChain, "levels": IndependentLevels, "arma": ARMA}
_PARSERS: dict[str, Callable[[str, Source], Model]] = {"markov": _markov, "levels": _levels, "arma": _arma}


def _numbers(text: str) -> list[float]:
    return [float(x) for x in text.split(",")]


def _ratio(text: str) -> tuple[list[float], list[float]]:
    b, _, a = text.partition("/")
    return _numbers(b), _numbers(a or "1")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _validate.fail(name, "text", value)
    return value


def _made(name: str, make: Callable[..., _T], arguments: Mapping[str, Any]) -> _T:
    """What a constructor makes of the words of a table."""
    _check_known(name, arguments, inspect.signature(make).parameters)
    try:
        return make(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be used: {error}") from None


def _check_known(name: str, words: Iterable[str], known: Iterable[str]) -> None:
    for word in words:
        if word not in known:
            raise ValueError(f"{name} must not have the word {word!r}: it knows {', '.join(known)}")


# --- the settings of a design ---------------------------------------------------------------------


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

    task: Task
    sources: Mapping[str, Source]
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
    settings = _merged({} if path is None else _read(Path(path)), given)
    for name in NEEDED:
        if name not in settings:
            raise ValueError(f"{name} must be given, as --{name} or in a file")
    sources = dict(settings["sources"])
    privacy = _made("privacy", Privacy, {x: settings[x] for x in OF_PRIVACY if x in settings})
    task = Task(
        target=parse_target(settings["target"]),
        privacy=privacy,
        model=_model(settings, sources.pop("model", "assumed")),
        lag=_validate.lag(settings.get("lag", DEFAULTS["lag"])),
        tolerance=check_tolerance(settings.get("tolerance", DEFAULTS["tolerance"])),
    )
    check_filter("target", task.target)
    choose = None if "choose" not in settings else _text("choose", settings["choose"])
    return Request(task, sources, choose, _text("out", settings.get("out", "dpfast-design")))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise DataError(f"{path} must be TOML: {error}") from None
    settings = {underscored(name): value for name, value in content.items()}
    if len(settings) < len(content):
        raise DataError(f"{path} must have every word once, with - or with _")
    _check_known(str(path), settings, OF_DESIGN)
    return settings


def underscored(word: str) -> str:
    """``max-change`` and ``max_change`` are the same word."""
    return word.replace("-", "_")


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
        raise _validate.fail("sources", "a table of names and words", value)
    return value


def _sources(pairs: Iterable[tuple[str, Any]]) -> dict[str, Source]:
    words: dict[str, Source] = {}
    for name, word in pairs:
        if underscored(name) in words:
            raise ValueError(f"the source of {name} must be given once, got several")
        words[underscored(name)] = check_source(f"the source of {name}", word)
    return words


def _model(settings: Mapping[str, Any], source: Source) -> Model:
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
    words = {x: _text(x, settings[x]) for x in ("time", "by", "count", "time_format", "period") if x in settings}
    for name in ("time", "period"):
        if name not in words:
            raise ValueError(f"{name} must be given with a fit, as --{name} or in the file")
    counts = read_events(_text("fit", settings["fit"]), **words)
    if "series" not in settings and len(counts.series) > 1:
        raise ValueError(f"series must be given, one of the {len(counts.series)} in column {words.get('by')!r}")
    series = settings.get("series", counts.series[0])
    if series not in counts.series:  # whose names may be private
        raise ValueError(f"series must be one of the {len(counts.series)} in column {words.get('by')!r}, got another")
    u = counts.counts[counts.series.index(series)]
    levels = np.arange(u.max() + 1) if has_levels(u) else None
    order, source = settings.get("order", DEFAULTS["order"]), settings.get("fit_source", DEFAULTS["fit_source"])
    return ARMA.fit(u, order, levels=levels, source=check_source("fit_source", source))
