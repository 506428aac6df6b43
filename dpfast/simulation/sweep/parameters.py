"""Parameters of grids: what families of mechanisms take, and values with their labels, contents and digests."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from dpfast._support import validation
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.settings_file import replace_hyphens
from dpfast.design.argument_checks import check_filter, check_tolerance, filter_or_none, toeplitz_or_none
from dpfast.design.catalogue import FAMILIES, GIVEN
from dpfast.design.decision_feedback import PREFILTERS
from dpfast.design.target_and_model_specs import parse_any_target, parse_model
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.lags import SMOOTHER
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.mechanisms.serialization.parts import rational_content
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import check_model
from dpfast.simulation.sweep import several_streams as several
from dpfast.simulation.sweep.block_levels import BEST, fit_together, label_levels, read_length, read_shares

Label = float | int | str | None
OF_PRIVACY = (*ONE_STREAM_FIELDS, "adjacency")
# Parameters that families have had since stores were first made
_ADDED = {
    "input_perturbation": frozenset({"unit"}),
    "optimal_factorization": frozenset({"noise", "strategy", "strategy_unit", "progress"}),
}
_OF_SEVERAL = {"zero_forcing": {"prefilter"}, "optimal": {"prefilter"}}  # what is for several streams alone
_SIMULATED = (MarkovChain, IndependentLevels, ARMA)  # which a file holds as they are
_CHECKS: dict[str, Callable[[Any], Any]] = {"lag": validation.lag, "tolerance": check_tolerance}


class Value(NamedTuple):
    """A value of a parameter, as tables, design functions and files have it.

    label : how tables call the value.
    given : what a design function gets.
    content : what files and stores have in its place: a mapping, a number, a word or None.
    digest : the SHA-256 of the content as JSON; of numbers and words that JSON itself.
    """

    label: Label
    given: Any
    content: Any
    digest: str

    @property
    def is_simple(self) -> bool:
        """Tell whether the value is a number, a word or None."""
        return not isinstance(self.content, dict)

    @property
    def for_workers(self) -> Any:
        """The content with all that a design may need: of a target over a horizon its recursion too.

        Digests leave that out, as stores of before do.
        """
        series = None if isinstance(self.given, FilterMatrix) else toeplitz_or_none(self.given)
        return self.content if series is None else rational_content(series)

    @classmethod
    def from_content(cls, label: Label, given: Any, content: Any) -> Value:
        """Make a value with the digest of its content."""
        text = canonical(content)
        return cls(label, given, content, digest(text) if isinstance(content, dict) else text)


_NAMED = {  # None of parameters, where it has a name of its own
    "lag": Value.from_content(SMOOTHER, None, None),
    "length": Value.from_content(BEST, None, None),
}


class FamilyParameters(NamedTuple):
    """The parameters of a family: annotations of those that it takes, and the values of those it need not be given."""

    name: str
    takes: Mapping[str, Any]
    defaults: Mapping[str, Value]

    def arguments(self, has: Mapping[str, Value]) -> dict[str, Value]:
        """Return the arguments of a design, without defaults that stores of before do not know."""
        added = _ADDED.get(self.name, frozenset())
        same = {name for name in added if name in has and has[name].digest == self.defaults[name].digest}
        return {name: x for name, x in has.items() if name in self.takes and name not in same}


READY = FamilyParameters(GIVEN, {}, {})


@functools.cache
def family_parameters(name: str, of_several: bool = False) -> FamilyParameters:
    """Read a family's parameters off the signature of its design function; the fields of a privacy are some too.

    Of several streams the signature is that for a FilterMatrix; a family that has none is refused.
    """
    if of_several:
        return _parameters_of_several(name)
    takes, defaults = _signature(FAMILIES[name].design)
    if "privacy" in takes:
        takes, defaults = _add_privacy(takes, defaults, ONE_STREAM_FIELDS)
        takes |= {"max_change": float}
    takes = {x: hint for x, hint in takes.items() if x not in _OF_SEVERAL.get(name, ())}
    return FamilyParameters(name, takes, {x: value for x, value in defaults.items() if x in takes})


def _parameters_of_several(name: str) -> FamilyParameters:
    design = FAMILIES[name].design
    overload = several.overload_of_several(design)
    if overload is None:
        known = ", ".join(families_of_several())
        raise ValueError(f"mechanism must be one of {known} for a FilterMatrix, got {name!r}, which is for one stream")
    hints = {x: hint for x, hint in typing.get_type_hints(overload).items() if x not in ("name", "return")}
    takes, defaults = _add_privacy(several.narrow_hints(hints), _signature(design)[1], OF_PRIVACY)
    takes |= {"max_change": float | Sequence[float]}
    return FamilyParameters(
        name, takes, {x: value for x, value in defaults.items() if x in takes and is_possible(takes[x], value.given)}
    )


def families_of_several() -> list[str]:
    """List the families that design for several streams."""
    return [x for x in FAMILIES if several.overload_of_several(FAMILIES[x].design) is not None]


def _add_privacy(
    takes: dict[str, Any], defaults: dict[str, Value], names: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Value]]:
    """Add the fields of a privacy to what a design takes."""
    hints, given = _signature(Privacy)
    return takes | {x: hints[x] for x in names}, defaults | {x: given[x] for x in names if x in given}


def _signature(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Value]]:
    parameters = {x.name: x for x in inspect.signature(function).parameters.values() if x.name != "name"}
    hints = typing.get_type_hints(function)
    given = {name: x.default for name, x in parameters.items() if x.default is not inspect.Parameter.empty}
    defaults = {
        name: _NAMED[name] if name in _NAMED and x is None else Value.from_content(x, x, x) for name, x in given.items()
    }
    return {name: hints[name] for name in parameters}, defaults


@functools.cache
def _all_families() -> tuple[FamilyParameters, ...]:
    """List the parameters of all families, of one stream and of several."""
    return (*map(family_parameters, FAMILIES), *(family_parameters(x, True) for x in families_of_several()))


@functools.cache
def known_parameters() -> tuple[str, ...]:
    """List all parameters that a grid may have."""
    return tuple(dict.fromkeys(["mechanism", "stream", *(name for x in _all_families() for name in x.takes)]))


@functools.cache
def _parameter_types(name: str) -> frozenset[Any]:
    """Collect the types, and words, that a parameter may have in any family."""
    return frozenset(x for each in _all_families() if name in each.takes for x in alternatives(each.takes[name]))


@functools.cache
def alternatives(hint: Any) -> tuple[Any, ...]:
    """List the types, and words, of an annotation."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return tuple(x for part in typing.get_args(hint) for x in alternatives(part))
    return typing.get_args(hint) if origin is Literal else (hint,)


def is_possible(hint: Any, given: Any) -> bool:
    """Tell whether a parameter with this annotation can have a value: None, a word, a number, a target, a model."""
    options = alternatives(hint)
    if given is None:
        return type(None) in options
    if isinstance(given, str):
        return given in options or str in options
    if isinstance(given, (int, float)):
        return float in options or int in options
    if isinstance(given, tuple):
        return any(typing.get_origin(x) is Sequence for x in options)
    return any(isinstance(x, type) and isinstance(given, x) for x in options)


# --- from what somebody gives to values -----------------------------------------------------------


def read_value(name: str, given: Any) -> Value:
    """Read a value, with the label that it has by itself; None for the label of one that has none."""
    if name in _OBJECTS:
        return _OBJECTS[name](name, given)
    plain = given.item() if isinstance(given, np.generic) else given
    if name in _NAMED and (plain is None or isinstance(plain, str)) and plain in (None, _NAMED[name].label):
        return _NAMED[name]
    if plain is None or isinstance(plain, str):
        if not any(is_possible(x, plain) for x in _parameter_types(name)):
            raise _unknown_error(
                name, plain, _wanted_text(name), [x for x in _parameter_types(name) if isinstance(x, str)]
            )
    elif name in _CHECKS:
        plain = _CHECKS[name](plain)
    elif float in _parameter_types(name):
        plain = validation.number(name, plain)
    elif int in _parameter_types(name):
        plain = validation.integer(name, plain, 0)
    else:
        raise validation.fail(name, _wanted_text(name), plain)
    return Value.from_content(plain, plain, plain)


def _wanted_text(name: str) -> str:
    """Say in words what a parameter may be."""
    words = [repr(x) for x in _parameter_types(name) if isinstance(x, str)]
    kinds = {float: "a number", int: "an integer", type(None): "None", Filter: "a Filter"}
    return " or ".join(sorted([*words, *(kinds[x] for x in _parameter_types(name) if x in kinds)]))


def _read_mechanism(name: str, given: Any) -> Value:
    if isinstance(given, AnyChannels):
        return Value.from_content(given.name, given, several.content_of_mechanism(given))
    if isinstance(given, AnyMechanism):
        if given.horizon is None and given.target.as_filter() is None:
            raise ValueError(
                f"mechanism must have a filter or a horizon in a sweep, got {given.full_name}: give "
                "mechanism.over_first(n), n the samples of a stream"
            )
        return Value.from_content(given.name, given, several.content_of_mechanism(given))
    word = replace_hyphens(given) if isinstance(given, str) else None
    for each, known_family in FAMILIES.items():
        if given is known_family.design or word == each:
            return Value.from_content(each, each, each)
    raise _unknown_error(name, given, f"a mechanism or one of {', '.join(FAMILIES)}", FAMILIES)


def _unknown_error(name: str, given: Any, must_be: str, words: Iterable[str]) -> ValueError:
    return ValueError(f"{validation.fail(name, must_be, given)}{validation.did_you_mean(given, words)}")


def _read_target(name: str, given: Any) -> Value:
    if isinstance(given, FilterMatrix):
        return Value.from_content(None, given, several.content_of_target(given))
    target = filter_or_none(given) or toeplitz_or_none(given) or parse_any_target(given)
    if target.horizon is None:
        check_filter(name, target)
    return Value.from_content(given if isinstance(given, str) else None, target, several.content_of_target(target))


def target_value(mechanism: Value) -> Value:
    """Return the target of a mechanism that is there already."""
    target = mechanism.given.target
    return Value.from_content(None, target, several.content_of_target(target))


def is_possible_point(family: FamilyParameters, taken: Mapping[str, Value]) -> bool:
    """Tell whether a family can have all of these values, each and together."""
    alone = all(is_possible(family.takes[name], x.given) for name, x in taken.items())
    if "target" in taken and isinstance(taken["target"].given, FilterMatrix):  # shares are those of inputs
        return alone
    return alone and fit_together({name: x.given for name, x in taken.items()})


def check_horizon(family: str, has: Mapping[str, Value]) -> None:
    """Refuse a matrix mechanism for a filter that nothing is said of how many steps it is made for."""
    if "horizon" in has and has["horizon"].given is None and has["target"].given.horizon is None:
        raise ValueError(f"horizon must be given in the grid: {family} needs it for a target that is a filter")


def design_horizon(arguments: Mapping[str, Value]) -> int | None:
    """Return the steps that a mechanism is made for; None where they have no end."""
    if "mechanism" in arguments:
        found: int | None = getattr(arguments["mechanism"].given, "horizon", None)
        return found
    horizon = arguments.get("horizon")
    if horizon is not None and horizon.given is not None:
        return int(horizon.given)
    of_target: int | None = getattr(arguments["target"].given, "horizon", None)
    return of_target


def _read_prefilter(name: str, given: Any) -> Value:
    words = sorted({*PREFILTERS, *(x for x in _parameter_types(name) if isinstance(x, str))})
    if given is None or (isinstance(given, str) and given in words):
        return Value.from_content(given, given, given)
    if validation.did_you_mean(given, words):
        raise _unknown_error(name, given, f"a filter or one of {', '.join(words)}", words)
    found = _read_target(name, given)
    if not isinstance(found.given, FilterMatrix):
        validation.instance(name, found.given, Filter, "a filter, without a horizon")
    return found


def _read_model(name: str, given: Any) -> Value:
    every = several.read_channel_models(name, given)
    if every is not None:
        return Value.from_content(None, every, several.content_of_models(every))
    model = parse_model(given) if isinstance(given, (str, Mapping)) else given
    check_model(model)
    return Value.from_content(given if isinstance(given, str) else None, model, several.content_of_models(model))


def _read_stream(name: str, given: Any) -> Value:
    found = _read_model(name, given)
    check_stream(found)
    return found


def check_stream(model: Value) -> None:
    """Refuse a model of somebody's own class: what is kept of it is what a design uses, not how it is sampled."""
    other = [type(x).__name__ for x in several.models_of(model.given) if type(x) not in _SIMULATED]
    if other:
        raise ValueError(
            "stream must be a MarkovChain, IndependentLevels or ARMA, which workers can sample, got a "
            f"{other[0]}: give stream="
        )


def _read_privacy(name: str, given: Any) -> Value:
    validation.instance(name, given, Privacy, "a Privacy")
    return privacy_value(given)


def privacy_value(privacy: Privacy) -> Value:
    """Make the value of a privacy, without a label of its own."""
    content = {x: getattr(privacy, x) for x in ONE_STREAM_FIELDS}
    return Value.from_content(
        None, privacy, content if privacy.adjacency is None else {**content, "adjacency": privacy.adjacency}
    )


def _read_change(name: str, given: Any) -> Value:
    """Read the largest change of an input, or one for each of several as one value."""
    if isinstance(given, (list, tuple)):
        every = tuple(validation.number(name, x, above=0) for x in given)
        return Value.from_content(label_levels(every), every, every)
    plain = validation.number(name, given.item() if isinstance(given, np.generic) else given)
    return Value.from_content(plain, plain, plain)


def _read_length(name: str, given: Any) -> Value:
    lengths = read_length(given)
    return _NAMED[name] if lengths is None else Value.from_content(label_levels(lengths), lengths, lengths)


def _read_shares(name: str, given: Any) -> Value:
    shares = read_shares(given)
    return Value.from_content(label_levels(shares), shares, shares)


_OBJECTS: dict[str, Callable[[str, Any], Value]] = {
    "mechanism": _read_mechanism,
    "target": _read_target,
    "prefilter": _read_prefilter,
    "model": _read_model,
    "stream": _read_stream,
    "privacy": _read_privacy,
    "max_change": _read_change,
    "length": _read_length,
    "shares": _read_shares,
}
