"""Read targets and models from the descriptions that the command line and its files give."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast._support.settings_file import check_text, construct
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz, polynomial_decay, running_sum
from dpfast.privacy.provenance import Provenance
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model

MAX_SAMPLES = 100_000
TARGET = "moving-average:12, exponential:0.9, ba:1,0.995/1,-0.995, or a JSON file with b and a"
TOEPLITZ = "running-sum:1024, polynomial-decay:1:1024, or a table with coefficients and perhaps a horizon"
MODEL = "markov:0.75,0.25;0.25,0.75@-0.5,0.5, levels:0,1@0.9,0.1, or arma:0.4/1,-0.5@3"


def parse_target(spec: Any) -> Filter:
    """Return the target filter that a description names.

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
        return construct("target", Filter, spec)
    kind, colon, rest = check_text("target", spec).partition(":")
    try:
        if colon and kind == "moving-average":
            n = int(rest)
            if not 1 <= n <= MAX_SAMPLES:
                raise ValueError(f"a moving average must be of 1 to {MAX_SAMPLES} samples, got {n}")
            return Filter(np.full(n, 1 / n))
        if colon and kind == "exponential":
            return Filter([1 - float(rest)], [1, -float(rest)])
        if colon and kind == "ba":
            return Filter(*_parse_ratio(rest))
    except ValueError as error:
        raise ValueError(f"target {spec!r} does not describe a filter: {error}") from None
    return _read_target_file(Path(spec))


def parse_toeplitz(spec: Any) -> Toeplitz:
    """Return the target over a horizon that a description names.

    Parameters
    ----------
    spec : str or mapping
        ``running-sum:N``; ``polynomial-decay:POWER:N`` for weights (k + 1)^-POWER; N the horizon; or a table with
        coefficients and, where it is not their number, a horizon.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_toeplitz("polynomial-decay:1:3").coefficients.round(3)
    array([1.   , 0.5  , 0.333])
    """
    if isinstance(spec, Mapping):
        return construct("target", Toeplitz, spec)
    kind, *numbers = check_text("target", spec).split(":")
    try:
        if kind == "running-sum" and len(numbers) == 1:
            return running_sum(int(numbers[0]))
        if kind == "polynomial-decay" and len(numbers) == 2:
            return polynomial_decay(float(numbers[0]), int(numbers[1]))
    except ValueError as error:
        raise ValueError(f"target {spec!r} does not describe one over a horizon: {error}") from None
    raise ValueError(f"target must be {TOEPLITZ}, got {spec!r}{_suggest_kind(spec, _OVER_HORIZON)}")


def parse_any_target(spec: Any) -> Filter | Toeplitz:
    """Return a target of either kind: by :func:`parse_toeplitz` or by :func:`parse_target`."""
    if isinstance(spec, Mapping):
        return parse_toeplitz(spec) if "coefficients" in spec else parse_target(spec)
    return parse_toeplitz(spec) if str(spec).partition(":")[0] in _OVER_HORIZON else parse_target(spec)


_FILTERS = ("moving-average", "exponential", "ba")
_OVER_HORIZON = ("running-sum", "polynomial-decay")


def _suggest_kind(spec: str, kinds: Iterable[str]) -> str:
    return validation.did_you_mean(spec.partition(":")[0], kinds)


def _read_target_file(path: Path) -> Filter:
    if not path.is_file():
        if str(path).partition(":")[0] in _OVER_HORIZON:
            raise ValueError(f"target must be a filter here, without a horizon: {TARGET}; got {str(path)!r}")
        meant = _suggest_kind(str(path), (*_FILTERS, *_OVER_HORIZON))
        raise ValueError(f"target must be {TARGET}, got {str(path)!r}{meant}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Filter(content["b"], content.get("a", [1.0]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f'target file {path} must be JSON like {{"b": [1], "a": [1, -0.9]}}: {error}') from None


def parse_model(spec: Any, source: Provenance = "assumed") -> Model:
    """Return the model of the stream that a description names.

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
        kind = validation.choice("model.kind", rest.pop("kind", None), _KINDS)
        if source != "assumed" and "source" in rest:
            raise ValueError("the source of model must be said once: in its table, or among the sources")
        return construct("model", _KINDS[kind], {"source": source, **rest})
    kind, _, rest_of_text = check_text("model", spec).partition(":")
    if kind not in _PARSERS:
        raise ValueError(f"model must be {MODEL}, got {spec!r}{_suggest_kind(spec, _PARSERS)}")
    try:
        return _PARSERS[kind](rest_of_text, source)
    except ValueError as error:
        raise ValueError(f"model {spec!r} does not describe a {kind} model: {error}") from None


def _parse_markov(text: str, source: Provenance) -> MarkovChain:
    rows, _, levels = text.partition("@")
    return MarkovChain([_parse_numbers(row) for row in rows.split(";")], _parse_numbers(levels), source=source)


def _parse_levels(text: str, source: Provenance) -> IndependentLevels:
    levels, _, probabilities = text.partition("@")
    return IndependentLevels(_parse_numbers(levels), _parse_numbers(probabilities), source=source)


def _parse_arma(text: str, source: Provenance) -> ARMA:
    polynomials, _, mean = text.partition("@")
    return ARMA(*_parse_ratio(polynomials), mean=float(mean or 0), source=source)


_KINDS: dict[str, Callable[..., Model]] = {"markov": MarkovChain, "levels": IndependentLevels, "arma": ARMA}
_PARSERS: dict[str, Callable[[str, Provenance], Model]] = {
    "markov": _parse_markov,
    "levels": _parse_levels,
    "arma": _parse_arma,
}


def _parse_numbers(text: str) -> list[float]:
    return [float(x) for x in text.split(",")]


def _parse_ratio(text: str) -> tuple[list[float], list[float]]:
    b, _, a = text.partition("/")
    return _parse_numbers(b), _parse_numbers(a or "1")
