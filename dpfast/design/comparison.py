"""All families of mechanisms of filters side by side, over lags and epsilons too: ``dpfast design``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError, note_warnings
from dpfast.design.best_candidates import Candidate, filter_candidates
from dpfast.design.best_demand import Demand
from dpfast.design.best_ranking import Ranking, split_candidates
from dpfast.design.best_reactions import find_reaction
from dpfast.design.low_accuracy_warning import warn_of_low_accuracy
from dpfast.mechanisms import lags
from dpfast.mechanisms.best_choice import UNDECIDED, Choice, join_reasons
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.privacy import LARGEST_EPSILON
from dpfast.privacy.provenance import Provenance

SMOOTHER = "LMMSE smoother"  # a row of every table, to show what the whole signal would bring
LABELS = tuple(x.label for x in filter_candidates())
_SMALLEST_LAST_LAG = 20
_N_LAGS, _N_EPSILONS = 8, 9
Place = tuple[int | None, float]  # a lag and an epsilon


def lags_around(lag: int) -> list[int]:
    """Return about ten lags from 0 to four times the given one, which is among them, and to 20 at least."""
    last = min(max(_SMALLEST_LAST_LAG, 4 * lag), validation.MAX_LAG)
    return sorted({0, lag, *np.rint(np.geomspace(1, last, _N_LAGS)).astype(int).tolist()})


def epsilons_around(epsilon: float) -> list[float]:
    """Return values in two decades around the given epsilon, which is among them, as far as a Privacy allows."""
    factors = np.geomspace(0.1, 10, _N_EPSILONS)
    factors[_N_EPSILONS // 2] = 1.0
    return [x for x in (epsilon * factors).tolist() if x < LARGEST_EPSILON]


def searches_times(task: Demand) -> bool:
    """Tell whether designs search for the least favourable times of several events, each for some seconds."""
    return task.privacy.max_events > 1 and task.privacy.delta > 0 and task.model is not None


def curve_points(task: Demand) -> tuple[list[int], list[float]]:
    """Return the lags and the epsilons at which curves are drawn.

    Where each design takes long it is every second one, and no lag far beyond the given one: they take the longest.
    """
    lag, epsilon = task.lag or 0, task.privacy.epsilon
    at_lags, at_epsilons = lags_around(lag), epsilons_around(epsilon)
    if searches_times(task):
        near = [x for x in at_lags if x <= 2 * max(lag, 2)]
        at_lags, at_epsilons = sorted({lag, near[-1], *near[::2]}), sorted({epsilon, *at_epsilons[::2]})
    return at_lags, at_epsilons


def with_epsilon(task: Demand, epsilon: float) -> Demand:
    """Return the task under another epsilon."""
    return replace(task, privacy=replace(task.privacy, epsilon=epsilon))


@dataclass
class ComparedDesigns:
    """Designs for tasks that differ in lag and epsilon, each made once, and why those that failed did."""

    advance: Callable[[int], object]
    _made: dict[tuple[Any, ...], AnyMechanism | None] = field(default_factory=dict)
    _failed: dict[tuple[str, str], list[Place]] = field(default_factory=dict)  # where, by label and reason
    _warned: list[tuple[str, Place, str]] = field(default_factory=list)

    def keep(self, candidate: Candidate, task: Demand, mechanism: AnyMechanism) -> None:
        """Keep a design that was made elsewhere."""
        self._made[_key(candidate, task)] = mechanism

    def fail(self, candidate: Candidate, task: Demand, reason: str) -> None:
        """Keep why a design that was tried elsewhere failed."""
        self._made[_key(candidate, task)] = None
        self._failed.setdefault((candidate.label, reason), []).append((task.lag, task.privacy.epsilon))

    def side_by_side(self, candidates: Iterable[Candidate], task: Demand) -> dict[str, AnyMechanism]:
        """Design the mechanism of every candidate for a task; leave out those that have none."""
        found = {}
        for candidate in candidates:
            if (mechanism := self.design(candidate, task)) is not None:
                found[candidate.label] = mechanism
            self.advance(1)
        return found

    def design(self, candidate: Candidate, task: Demand) -> AnyMechanism | None:
        """Design the mechanism of a candidate for a task; None where it has none."""
        key = _key(candidate, task)
        if key not in self._made:
            try:
                with note_warnings() as noted:
                    self._made[key] = candidate.design(task)
                self._warned += [(candidate.label, (task.lag, task.privacy.epsilon), text) for text, _ in noted]
            except ValueError as error:  # a DesignError, or of an argument that the family does not take
                self.fail(candidate, task, str(error))
        mechanism = self._made[key]
        # the filters of a design without a model are the same for every epsilon: only the noise changes
        return None if mechanism is None else mechanism.under(task.privacy)

    def failures(self) -> list[str]:
        """Say why designs failed, each reason once, and where, of those that there are elsewhere."""
        made = {label for (label, *_), mechanism in self._made.items() if mechanism is not None}
        names: dict[tuple[str, str], list[str]] = {}
        for (label, reason), places in self._failed.items():
            names.setdefault((_say_where(places) if label in made else "", reason), []).append(label)
        return [f"No {', '.join(several)}{where}: {reason}." for (where, reason), several in names.items()]

    def warnings(self) -> list[str]:
        """Say what designs warned of, each warning once, with all of its places."""
        warned: dict[tuple[str, str], list[Place]] = {}
        for label, place, text in self._warned:
            warned.setdefault((label, text), []).append(place)
        return [f"{label}{_say_where(places)}: {text}." for (label, text), places in warned.items()]


def _key(candidate: Candidate, task: Demand) -> tuple[Any, ...]:
    needs = candidate.needs
    own_noise = bool(needs & {"model", "integers"})  # that of integers is another law at another epsilon
    return candidate.label, task.lag if "lag" in needs else None, task.privacy.epsilon if own_noise else None


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
        The mechanism of each candidate that has one, by label: in order of their errors, then those without.
    choice : Choice
        How they compare.
    chosen : str
        The label of the one to be used.
    over_lag, over_epsilon : dict
        Those with a predicted error likewise, at other lags and under other epsilons.
    reacts : dict
        Whether the guarantee of each is proven for inputs that react to what was published, by label.
    notes : tuple of str
        How simulated ones were compared, bounds, and what designs warned of.
    left_out : tuple of str
        What does not serve, where and why.
    """

    mechanisms: dict[str, AnyMechanism]
    choice: Choice
    chosen: str
    over_lag: dict[int, dict[str, AnyMechanism]]
    over_epsilon: dict[float, dict[str, AnyMechanism]]
    reacts: dict[str, bool]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def check_choice(choose: str | None, task: Demand) -> None:
    """Refuse to save what is not designed here, before anything is, and say why where that is known."""
    if choose is None:
        return
    possible, reasons = split_candidates(replace(task, online=False))
    try:
        validation.choice("choose", choose, [x.label for x in possible])
    except ValueError as error:
        why = join_reasons((label, reason) for label, reason in reasons if label == choose)
        raise ValueError(". ".join([str(error), *why])) from None


def compare_families(
    ranking: Ranking,
    choice: Choice,
    *,
    sources: Mapping[str, Provenance],
    choose: str | None,
    advance: Callable[[int], object],
) -> SideBySide:
    """Set the designs of a ranking side by side, with their curves, and choose the one to be used.

    Parameters
    ----------
    ranking : Ranking
    choice : Choice
        What is best of it.
    sources : mapping
        Provenances of inputs, for the mechanisms that depend on them.
    choose : str or None
        The label of the one to be used; by default that of the least error, among those that can be released exactly,
        as far as there are such.
    advance : callable
        Hears of the points of the curves, see :func:`count_points`.
    """
    task, every = ranking.task, (*ranking.ranked, *ranking.unpredicted)
    designs, tried = ComparedDesigns(advance), {x.label: x for x in split_candidates(task)[0]}
    for x in every:
        designs.keep(x.candidate, task, x.mechanism)
    for label, reason in ranking.reasons:
        if label in tried:
            designs.fail(tried[label], task, reason)
    found = _in_order(choice, {x.label: x.mechanism for x in every})
    drawn = curve_candidates(task)
    for other in filter_candidates():
        shown = other.label == choose or (other.label == SMOOTHER and other in drawn and task.lag is not None)
        if shown and other.label not in found and (mechanism := designs.design(other, task)) is not None:
            found[other.label] = mechanism
    found = {label: _with_sources(x, sources) for label, x in found.items()}
    _check_sources(sources, found)
    chosen = _choose(choice, found, choose)
    at_lags, at_epsilons = curve_points(task)
    over_lag = {x: designs.side_by_side(drawn, replace(task, lag=x)) for x in at_lags}
    over_epsilon = {x: designs.side_by_side(drawn, with_epsilon(task, x)) for x in at_epsilons}
    saved = found[chosen]
    warn_of_low_accuracy(saved.name, task.filter, task.privacy, task.model, saved.lag, saved.predicted_mse)
    reacts = {x.label: find_reaction(x, found[x.label]).proven for x in filter_candidates() if x.label in found}
    notes = *replace(choice, reasons=()).notes(), *designs.warnings()
    left_out = *join_reasons(x for x in choice.reasons if x[0] not in tried), *designs.failures()
    return SideBySide(found, choice, chosen, over_lag, over_epsilon, reacts, notes, left_out)


def curve_candidates(task: Demand) -> list[Candidate]:
    """List those whose predicted errors are drawn over lags and epsilons; of smoothers, one."""
    possible = split_candidates(replace(task, online=False, lag=0))[0]  # who may serve does not depend on the lag
    return [x for x in possible if x.predicted and (not x.waits or x.label == SMOOTHER)]


def count_points(task: Demand) -> int:
    """Count the designs of curves."""
    at_lags, at_epsilons = curve_points(task)
    return len(curve_candidates(task)) * (len(at_lags) + len(at_epsilons))


def _in_order(choice: Choice, designs: Mapping[str, AnyMechanism]) -> dict[str, AnyMechanism]:
    """Sort designs by the rows of the choice, which come before what only simulation would tell."""
    ranked = [x.name for x in choice.rows if x.name in designs]
    return {label: designs[label] for label in dict.fromkeys([*ranked, *designs])}


def _with_sources(mechanism: AnyMechanism, sources: Mapping[str, Provenance]) -> AnyMechanism:
    known = mechanism.sources
    return mechanism.with_sources(**{name: word for name, word in sources.items() if name in known})


def _check_sources(sources: Mapping[str, Provenance], designs: Mapping[str, AnyMechanism]) -> None:
    known = dict.fromkeys(name for mechanism in designs.values() for name in mechanism.sources)
    for name in sources:
        if name not in known:
            meant = validation.did_you_mean(name, known)
            raise ValueError(f"a source must be that of one of {', '.join(known)}, got {name!r}{meant}")


def _choose(choice: Choice, designs: Mapping[str, AnyMechanism], choose: str | None) -> str:
    if choose is not None:
        if choose not in designs:
            raise DesignError(
                f"choose must be one of {', '.join(designs)}, got {choose!r}, of which there is no design"
            )
        return choose
    ranked = [x.name for x in choice.rows if x.name in designs and x.status != UNDECIDED]
    exact = [label for label in ranked if not designs[label].release_hindrance()]
    return (exact or ranked)[0]


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
