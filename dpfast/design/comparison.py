"""Design all families of mechanisms side by side, for one target, privacy, model and lag: ``dpfast design``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.progress import progress_bar
from dpfast.design.catalogue import Family, can_design, explain_delta, filter_families, split_by_delta
from dpfast.design.low_accuracy_warning import warn_of_low_accuracy
from dpfast.filters.filter import Filter
from dpfast.mechanisms import lags
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.privacy import LARGEST_EPSILON, Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model

_SMALLEST_LAST_LAG = 20
_N_LAGS, _N_EPSILONS = 8, 9
Place = tuple[int | None, float]  # a lag and an epsilon


@dataclass(frozen=True)
class ComparisonTask:
    """A task that every family is to design for; a lag of None asks for smoothers, a unit of None for no rounding."""

    target: Filter
    privacy: Privacy
    model: Model
    lag: int | None
    tolerance: float
    unit: float | None = None

    @functools.cached_property
    def constant(self) -> Constant:
        """The constant estimate that every family has to beat."""
        return constant(self.target, self.model)


class Entry(NamedTuple):
    """A line of the comparison: a family of the catalogue, either at the lag of the task or as a smoother."""

    label: str
    design: Callable[[ComparisonTask], AnyMechanism]
    family: Family
    needs: frozenset[str]


def _entries() -> Iterator[Entry]:
    """List the families of filters that need no more than a task has, those that may be smoothers as such too."""
    for family in filter_families():
        yield Entry(family.label, functools.partial(_design, family, late=True), family, family.needs)
        if family.is_smoother_by_default:
            smoothed = functools.partial(_design, family, late=False)
            yield Entry(f"{family.label} smoother", smoothed, family, family.needs - {"lag"})


def _design(family: Family, task: ComparisonTask, *, late: bool) -> AnyMechanism:
    given = {"model": task.model, "tolerance": task.tolerance, "lag": task.lag, "unit": task.unit}
    made: AnyMechanism = family.make(task.target, task.privacy, **(given if late else given | {"lag": None}))
    return made


ENTRIES = tuple(_entries())


def lags_around(lag: int) -> list[int]:
    """Return about ten lags from 0 to four times the given one, which is among them, and to 20 at least."""
    last = min(max(_SMALLEST_LAST_LAG, 4 * lag), validation.MAX_LAG)
    return sorted({0, lag, *np.rint(np.geomspace(1, last, _N_LAGS)).astype(int).tolist()})


def epsilons_around(epsilon: float) -> list[float]:
    """Return values in two decades around the given epsilon, which is among them, as far as a Privacy allows."""
    factors = np.geomspace(0.1, 10, _N_EPSILONS)
    factors[_N_EPSILONS // 2] = 1.0
    return [x for x in (epsilon * factors).tolist() if x < LARGEST_EPSILON]


def with_epsilon(task: ComparisonTask, epsilon: float) -> ComparisonTask:
    """Return the task under another epsilon."""
    return replace(task, privacy=replace(task.privacy, epsilon=epsilon))


@dataclass
class ComparedDesigns:
    """Designs for tasks that differ in lag and epsilon, each made once, and why those that failed did."""

    advance: Callable[[int], object]
    _made: dict[tuple[Any, ...], AnyMechanism | None] = field(default_factory=dict)
    _failed: dict[tuple[str, str], list[Place]] = field(default_factory=dict)  # where, by label and reason

    def side_by_side(self, entries: list[Entry], task: ComparisonTask) -> dict[str, AnyMechanism]:
        """Design the mechanism of every family for a task; leave out the families that have none."""
        made = {x.label: self._design(x, task) for x in entries}
        return {label: mechanism for label, mechanism in made.items() if mechanism is not None}

    def _design(self, entry: Entry, task: ComparisonTask) -> AnyMechanism | None:
        epsilon, lag = task.privacy.epsilon, task.lag
        key = entry.label, lag if "lag" in entry.needs else None, epsilon if "model" in entry.needs else None
        if key not in self._made:
            try:
                self._made[key] = entry.design(task)
            except ValueError as error:  # a DesignError, or of an argument that the family does not take
                self._made[key] = None
                self._failed.setdefault((entry.label, str(error)), []).append((lag, epsilon))
        self.advance(1)
        mechanism = self._made[key]
        # the filters of a design without a model are the same for every epsilon: only the noise changes
        return None if mechanism is None else mechanism.under(task.privacy)

    def notes(self) -> list[str]:
        """Say why designs failed, each reason once; and where, of those that there are elsewhere."""
        made = {label for (label, *_), mechanism in self._made.items() if mechanism is not None}
        return [
            f"No {label}{_say_where(places) if label in made else ''}: {reason}."
            for (label, reason), places in self._failed.items()
        ]


def _say_where(places: Iterable[Place]) -> str:
    """Name lags and epsilons, those together that have the others in common."""
    by_epsilon: dict[str, list[str]] = {}
    for lag, epsilon in sorted(places, key=lambda x: (x[1], x[0] is None, x[0])):
        by_epsilon.setdefault(f"{epsilon:g}", []).append(lags.lag_text(lag))
    by_lags: dict[str, list[str]] = {}
    for word, several in by_epsilon.items():
        by_lags.setdefault(", ".join(several), []).append(word)
    return ";".join(f" at lag {some}, epsilon {', '.join(epsilons)}" for some, epsilons in by_lags.items())


# --- all of them ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideBySide:
    """The designs of a task, one of which is to be used.

    Attributes
    ----------
    mechanisms : dict
        The mechanism of each family that has one, by label.
    chosen : str
        The label of the one to be used.
    best : str
        The label of the one of the least predicted error of those that run as a stream, released exactly or not.
    over_lag, over_epsilon : dict
        Linear mechanisms likewise, at other lags and under other epsilons.
    notes : tuple of str
        Designs that failed, and why.
    """

    mechanisms: dict[str, AnyMechanism]
    chosen: str
    best: str
    over_lag: dict[int, dict[str, AnyMechanism]]
    over_epsilon: dict[float, dict[str, AnyMechanism]]
    notes: tuple[str, ...]


def compare_families(
    task: ComparisonTask, *, sources: Mapping[str, Provenance], choose: str | None, progress: bool
) -> SideBySide:
    """Design all families for a task, and choose one of them.

    Parameters
    ----------
    task : ComparisonTask
    sources : mapping
        Provenances of inputs, for the mechanisms that depend on them.
    choose : str or None
        The label of the family to be used; by default that of the least predicted error, among those that run as a
        stream where the task is one, and that can be released exactly, as far as there are such.
    progress : bool
        Show a bar (tqdm, extra ``progress``).
    """
    possible, left_out = _possible_entries(task)
    families = [x for x in possible if task.lag is not None or x.needs != {"model"}]  # LMMSE is its smoother then
    linear = [x for x in possible if "levels" not in x.needs]  # the error of others only simulation tells
    if choose is not None:
        _check_choice(choose, [x.label for x in families], explain_delta(left_out))
    delays, epsilons = lags_around(task.lag or 0), epsilons_around(task.privacy.epsilon)
    total = len(families) + len(linear) * (len(delays) + len(epsilons))
    with progress_bar(progress, total, "designing", unit="design") as advance:
        designs = ComparedDesigns(advance)
        found = {label: _with_sources(x, sources) for label, x in designs.side_by_side(families, task).items()}
        _check_sources(sources, found)
        best = _least_error(found, task)
        chosen = _choose(found, choose, task)
        over_lag = {x: designs.side_by_side(linear, replace(task, lag=x)) for x in delays}
        over_epsilon = {x: designs.side_by_side(linear, with_epsilon(task, x)) for x in epsilons}
    notes = explain_delta(left_out, [x.family for x in families if x.label in found])
    saved = found[chosen]
    warn_of_low_accuracy(saved.name, task.target, task.privacy, task.model, saved.lag, saved.predicted_mse)
    return SideBySide(found, chosen, best, over_lag, over_epsilon, (*notes, *designs.notes()))


def _possible_entries(task: ComparisonTask) -> tuple[list[Entry], list[Family]]:
    """List the entries that can be designed for model and privacy, and the families that need a δ."""
    possible = [x for x in ENTRIES if can_design(x.family, task.model.levels)]
    allowed, left_out = split_by_delta([x.family for x in possible], task.privacy)
    return [x for x in possible if x.family in allowed], left_out


def _check_choice(choose: str, possible: list[str], notes: Iterable[str]) -> None:
    """Refuse a family that is not designed here, and say why where that is known."""
    try:
        validation.choice("choose", choose, possible)
    except ValueError as error:
        known = any(choose == x.label for x in ENTRIES)
        raise ValueError(". ".join([str(error), *(notes if known else ())])) from None


def _with_sources(mechanism: AnyMechanism, sources: Mapping[str, Provenance]) -> AnyMechanism:
    known = mechanism.sources
    return mechanism.with_sources(**{name: word for name, word in sources.items() if name in known})


def _check_sources(sources: Mapping[str, Provenance], designs: Mapping[str, AnyMechanism]) -> None:
    known = dict.fromkeys(name for mechanism in designs.values() for name in mechanism.sources)
    for name in sources:
        if name not in known:
            meant = validation.did_you_mean(name, known)
            raise ValueError(f"a source must be that of one of {', '.join(known)}, got {name!r}{meant}")


def _choose(designs: Mapping[str, AnyMechanism], choose: str | None, task: ComparisonTask) -> str:
    if choose is not None:
        if choose not in designs:
            raise DesignError(
                f"choose must be one of {', '.join(designs)}, got {choose!r}, of which there is no design"
            )
        return choose
    exact = {label: x for label, x in designs.items() if not x.release_hindrance()}
    return _least_error(exact or designs, task)


def _least_error(designs: Mapping[str, AnyMechanism], task: ComparisonTask) -> str:
    """Return the label of the least predicted error, of those that run as a stream where the task is one."""
    live = {label: x for label, x in designs.items() if x.lag is not None or task.lag is None}
    return min((x.predicted_rmse, label) for label, x in live.items() if x.predicted_rmse)[1]


def lower_bound(m: AnyMechanism, designs: Mapping[str, AnyMechanism]) -> float | None:
    """Return the largest known lower bound of the RMSE for linear mechanisms of this lag with Gaussian noise.

    It is that of a design which is as late, or later; there is none for other noise, which may err less.
    """
    if not m.has_gaussian_bound:
        return None
    later = [x for x in designs.values() if x.lag is None or (m.lag is not None and x.lag >= m.lag)]
    bounds = [x.lower_bound_mse for x in later if x.model is not None]  # that of zero forcing is for its kind
    known = [math.sqrt(x) for x in bounds if x is not None]
    return max(known, default=None)


def lower_bound_at_lag(designs: Mapping[str, AnyMechanism]) -> float | None:
    """Return the lower bound at the lag of the task: for the latest design that is no smoother."""
    late = [x for x in designs.values() if x.lag is not None and x.has_gaussian_bound]
    return lower_bound(max(late, key=lambda x: x.lag or 0), designs) if late else None
