"""Grids: from lists of values to points, and to the cases that are designed and simulated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpfast._support import validation, version
from dpfast._support.canonical_json import canonical, digest
from dpfast.design.catalogue import GIVEN
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.mechanism_kinds import AnyChannels
from dpfast.privacy.privacy import Privacy
from dpfast.simulation.sweep import parameters as values
from dpfast.simulation.sweep import several_streams
from dpfast.simulation.sweep.labelled_values import LabelledValues
from dpfast.simulation.sweep.parameters import OF_PRIVACY, FamilyParameters, Label, Value

MAX_POINTS = 10**6


class Point(NamedTuple):
    """A point of a grid: one value for every parameter.

    Attributes
    ----------
    labels : mapping
        For every axis what was given, the default of a parameter that only another part of the grid gives, and None
        for one that the mechanism does not take there. The smoother is the lag "smoother".
    case : int
        The index of the point's case.
    """

    labels: dict[str, Label]
    case: int


@dataclass(frozen=True, eq=False)
class Case:
    """A case of a grid: a mechanism on a stream, which is designed and simulated once.

    Attributes
    ----------
    number : int
    settings : mapping
        The labels of all parameters of the grid that it depends on.
    family : str
        The name of the design function; "given" for a mechanism that is there already.
    key : str
        The SHA-256 of the arguments of the design, and of the version of dpfast.
    stream, target : str
        The digests of their contents.
    group : int
        Cases of one group have the same stream and the same target.
    horizon : int or None
        The steps that a matrix mechanism is made for; None for a mechanism of filters.
    """

    number: int
    settings: dict[str, Label]
    family: str
    key: str
    stream: str
    target: str
    group: int
    horizon: int | None
    _given: tuple[tuple[str, Value], ...] = field(repr=False)

    @property
    def arguments(self) -> dict[str, Any]:
        """The content of each argument of the design: filters and models as in the file of a mechanism."""
        return {name: x.for_workers for name, x in self._given}

    def content(self) -> list[Any]:
        """Return what is computed, for the configuration of a sweep: family, arguments or their digests, stream."""
        return [self.family, {name: x.given if x.is_simple else x.digest for name, x in self._given}, self.stream]


class ParameterGrid:
    """A grid of parameters, expanded: points, and cases, one for points that differ in what a mechanism does not take.

    Parameters
    ----------
    definition : mapping, or sequence of mappings
        Parameters and their values; several are put together. A list, tuple, range or 1-D array is an axis; so is a
        mapping from labels to values, and one with start, stop, number and spacing ("linear" or "log"), which is an
        axis of numbers. All else is one value. Lengths of nested blocks, and shares, are several numbers as one value:
        a list in the list of an axis, or text ("21, 252"); a length "best", or None, is the one that the design finds.

        mechanism : names of families ("optimal", "lmmse", "zero_forcing", "decision_feedback", "input_perturbation",
        "output_perturbation", "robust", "block_sums", "randomized_response"; of those over a horizon "block_sums",
        "optimal_factorization", "square_root", "buffered_toeplitz", "binary_tree", "tree", "decayed_sum",
        "fourier_perturbation", "compressive"), their design functions, or mechanisms that are there already, to which
        of all others only `stream` applies (and `model` in its place).

        target, prefilter : Filter, or its description: text, or a table with b and a. A target may be a Toeplitz too,
        or text such as "running-sum:1024", or a table with coefficients and a horizon; of several streams it is a
        FilterMatrix, in all of a mapping.

        privacy : Privacy; or its fields epsilon, delta, max_change, max_events, min_separation, calibration, and of
        several streams adjacency.

        model : of the design; stream : what is simulated, by default the model. A Model, or its description: text, or a
        table with a kind. Of several streams a VectorARMA, or a list of a model for each input, which is one value.

        lag, and whatever else the design functions take. A lag "smoother", or None, is the smoother.

    Attributes
    ----------
    parameters : tuple of str
    axes : mapping
        The parameters that were given as axes, or have several values for some mechanism, and their labels in order.
    points : tuple of Point
    cases : tuple of Case
    groups : tuple of tuple of int
        The numbers of the cases with the same stream and the same target.
    models, targets : mapping
        Their contents by digest, as in the file of a mechanism.

    Raises
    ------
    ValueError
        For a parameter that no mechanism of its part takes, a value that none can have, one that is given twice or is
        out of range, an empty axis, two values with one label, a needed parameter that is missing.

    Notes
    -----
    Points that a family cannot have (a lag None for decision feedback, which is no smoother; a target over a horizon
    for a design of filters; shares for another number of lengths) are left out.

    *Privacy.* Models are kept as numbers: those fitted to private data are as private as they.

    Examples
    --------
    >>> grid = ParameterGrid(
    ...     {
    ...         "mechanism": ["zero_forcing", "optimal"],
    ...         "target": "exponential:0.9",
    ...         "model": "arma:1/1,-0.5",
    ...         "epsilon": [0.5, 1, 2],
    ...         "delta": 1e-6,
    ...         "lag": [0, 5],
    ...     }
    ... )
    >>> len(grid.points), len(grid.cases), len(grid.groups)
    (12, 9, 1)
    >>> grid.cases[0].settings == {
    ...     "mechanism": "zero_forcing",
    ...     "target": "exponential:0.9",
    ...     "epsilon": 0.5,
    ...     "delta": 1e-6,
    ...     "model": "arma:1/1,-0.5",
    ... }
    True
    """

    def __init__(self, definition: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        told = LabelledValues()
        parts = [told.read_part(x) for x in _check_parts(definition)]
        total = sum(math.prod(map(len, x.values())) for x in parts)
        if total > MAX_POINTS:
            raise ValueError(f"a grid must have at most {MAX_POINTS:,} points, got {total:,}: give fewer values")
        self.parameters = tuple(dict.fromkeys(name for part in parts for name in part))
        expansion = _Expansion(self.parameters)
        pairs = [pair for part in parts for pair in expansion.expand(part)]
        self.cases = tuple(expansion.cases.values())
        self._contents = expansion.contents
        self.models = {x: self._contents[x] for x in expansion.models}
        self.targets = {x: self._contents[x] for x in expansion.targets}
        self.groups = _group_cases(self.cases)
        varied = {name for name in self.parameters if _varies(name, self.cases)}
        self.axes = {
            name: x
            for name, x in _labels_by_parameter(self.parameters, pairs).items()
            if name in told.axes or name in varied
        }
        points = (Point({name: all_labels[name] for name in self.axes}, case) for all_labels, case in pairs)
        self.points = tuple({tuple(x.labels.items()): x for x in points}.values())

    @property
    def content(self) -> dict[str, Any]:
        """The content that tells what is computed, without labels: it can be JSON, and has everything once."""
        return {"cases": [x.content() for x in self.cases], "contents": self._contents}


def _check_parts(definition: Any) -> list[Mapping[str, Any]]:
    parts = [definition] if isinstance(definition, Mapping) else definition
    if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(x, Mapping) for x in parts):
        raise validation.fail("grid", "a mapping of parameters, or several", definition)
    return list(parts)


def _labels_by_parameter(
    parameters: Sequence[str], pairs: Sequence[tuple[dict[str, Label], int]]
) -> dict[str, tuple[Label, ...]]:
    """Collect the labels of all parameters, in order."""
    return {name: tuple(dict.fromkeys(labels[name] for labels, _ in pairs)) for name in parameters}


def _varies(name: str, cases: Sequence[Case]) -> bool:
    """Tell whether there are several mechanisms, or one of them has several values of a parameter."""
    if name == "mechanism":
        return len({x.settings[name] for x in cases}) > 1
    pairs = {(x.settings["mechanism"], x.settings[name]) for x in cases if name in x.settings}
    return len(pairs) > len({mechanism for mechanism, _ in pairs})


def _group_cases(cases: Sequence[Case]) -> tuple[tuple[int, ...], ...]:
    groups: dict[int, list[int]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case.number)
    return tuple(map(tuple, groups.values()))


class _Expansion:
    """The expansion of points into cases: everything that several of them share is made once."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self.cases: dict[tuple[str, ...], Case] = {}
        self.contents: dict[str, Any] = {}
        self.models: dict[str, None] = {}
        self.targets: dict[str, None] = {}
        self._version, self._parameters = version.__version__, parameters
        self._groups: dict[tuple[str, str], int] = {}
        self._privacies: dict[tuple[str, ...], Value] = {}
        self._used: set[tuple[str, str]] = set()
        self._of_several = False

    def expand(self, part: Mapping[str, Sequence[Value]]) -> list[tuple[dict[str, Label], int]]:
        """List the labels of all parameters, and the case, for all points of a part that there can be."""
        self._of_several = _is_of_several(part)
        for mechanism in part["mechanism"]:
            _check_needed(self._family(mechanism), part)
        self._used.clear()
        points = (dict(zip(part, combination, strict=True)) for combination in itertools.product(*part.values()))
        found = [x for point in points if (x := self._read_point(point)) is not None]
        self._check_used(part)
        return found

    def _read_point(self, point: dict[str, Value]) -> tuple[dict[str, Label], int] | None:
        family = self._family(point["mechanism"])
        taken = {name: x for name, x in point.items() if name in family.takes}
        self._check_streams(point, taken)
        if not values.is_possible_point(family, taken):
            return None
        simulated = "stream" if "stream" in point else "model"
        values.check_stream(point[simulated])
        has = {**family.defaults, **taken, **{name: point[name] for name in ("mechanism", simulated)}}
        if "privacy" in taken:
            has = {name: x for name, x in has.items() if name not in OF_PRIVACY}
        values.check_horizon(family.name, has)
        self._used.update((name, x.digest) for name, x in has.items() if name in point)
        case = self._find_case(point["mechanism"], family, has, point[simulated])
        return {name: (point.get(name) or has.get(name, _NOTHING)).label for name in self._parameters}, case.number

    def _family(self, mechanism: Value) -> FamilyParameters:
        if not isinstance(mechanism.given, str):
            return values.READY
        return values.family_parameters(mechanism.given, self._of_several)

    def _check_streams(self, point: Mapping[str, Value], taken: Mapping[str, Value]) -> None:
        """Refuse what is of several streams where the target is of one, and of other streams than it."""
        has = {name: x.given for name, x in {**taken, **point}.items()}
        ready = not isinstance(has["mechanism"], str)
        if not self._of_several:
            several_streams.check_one_stream({} if ready and "target" in has else has)
        elif ready:
            several_streams.check_models(has["mechanism"].target, has)
        else:
            several_streams.check_inputs(has["target"], has)

    def _find_case(self, mechanism: Value, family: FamilyParameters, has: dict[str, Value], stream: Value) -> Case:
        if family is values.READY:
            given: tuple[tuple[str, Value], ...] = (("mechanism", mechanism),)
        else:
            given = self._design_arguments(family.arguments(has))
        identity = (family.name, stream.digest, *(x.digest for _, x in given))
        if identity not in self.cases:
            settings = {name: has[name].label for name in self._parameters if name in has}
            self.cases[identity] = self._build_case(settings, family.name, given, stream)
        return self.cases[identity]

    def _design_arguments(self, has: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
        """Collect the arguments of a design function, in order of their names."""
        whole = {name: x for name, x in has.items() if name not in OF_PRIVACY}
        if "privacy" not in whole:
            fields = {name: has[name] for name in OF_PRIVACY if name in has}
            told = tuple(x.digest for x in fields.values())
            if told not in self._privacies:
                self._privacies[told] = values.privacy_value(Privacy(**{name: x.given for name, x in fields.items()}))
            whole["privacy"] = self._privacies[told]
        return tuple(sorted(whole.items()))

    def _build_case(
        self, settings: dict[str, Label], family: str, given: tuple[tuple[str, Value], ...], stream: Value
    ) -> Case:
        arguments = dict(given)
        target = arguments["target"] if family != GIVEN else values.target_value(arguments["mechanism"])
        models = (stream, arguments.get("model", stream))
        self.models |= dict.fromkeys(x.digest for x in models if x.given is not None)
        self.targets[target.digest] = None
        for x in (stream, target, *arguments.values()):
            if not x.is_simple and x.digest not in self.contents:
                self.contents[x.digest] = x.content
        key = digest(canonical([self._version, family, {name: x.digest for name, x in given}]))
        group = self._groups.setdefault((stream.digest, target.digest), len(self._groups))
        horizon = values.design_horizon(arguments)
        return Case(len(self.cases), settings, family, key, stream.digest, target.digest, group, horizon, given)

    def _check_used(self, part: Mapping[str, Sequence[Value]]) -> None:
        """Refuse a mechanism, a parameter or a value that no point has."""
        mechanisms = ", ".join(str(x.label) for x in part["mechanism"])
        for mechanism in part["mechanism"]:
            if ("mechanism", mechanism.digest) not in self._used:
                names = _impossible_parameters(self._family(mechanism), part)
                raise ValueError(
                    f"mechanism {mechanism.label} must have a point, got no {names} that it can have: give another, or "
                    "leave it out"
                )
        for name, several in part.items():
            left = [x.label for x in several if (name, x.digest) not in self._used]
            if len(left) == len(several):
                raise ValueError(f"{name} must be left out: it is nothing that {mechanisms} would depend on")
            if left:
                raise ValueError(f"{name} must have values that one of {mechanisms} can have, got {left[0]!r}")


_NOTHING = Value.from_content(None, None, None)


def _is_of_several(part: Mapping[str, Sequence[Value]]) -> bool:
    """Tell whether a part is of several streams, which all of its targets then are."""
    return any(isinstance(x.given, FilterMatrix | AnyChannels) for x in (*part.get("target", ()), *part["mechanism"]))


def _impossible_parameters(family: FamilyParameters, part: Mapping[str, Sequence[Value]]) -> str:
    """Name the parameters of which a family can have no value that is given; shares, where each could be had."""
    taken = {name: x for name, x in part.items() if name in family.takes}
    alone = [n for n, x in taken.items() if not any(values.is_possible(family.takes[n], v.given) for v in x)]
    return " and no ".join(alone) or "shares for as many lengths as there are"


def _check_needed(family: FamilyParameters, part: Mapping[str, Any]) -> None:
    other_way = set(OF_PRIVACY) if "privacy" in part else {"privacy"}
    for name in family.takes:
        if name not in part and name not in family.defaults and name not in other_way:
            raise ValueError(f"{name} must be given in the grid: {family.name} needs it")
    if "model" not in part and "stream" not in part:
        raise ValueError("a model or a stream must be given in the grid: what is simulated")
