"""Design all that can serve a task, and rank it by its predicted error: what the best mechanism is chosen by."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpfast._support.errors import DesignError
from dpfast.design.best_candidates import Candidate, candidates, other_families
from dpfast.design.best_demand import Demand
from dpfast.design.best_reactions import find_reaction
from dpfast.mechanisms.best_choice import ChoiceRow, join_reasons
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.signals.output_variance import explained_share

_NEEDS = {"model": "model", "levels": "levels", "two_levels": "two levels", "delta": "delta"}
UNKNOWN = "only simulation tells the error, which needs simulate=True, or --simulate"
_HIDDEN = "the error is so far below the variance of the output that rounding hides it, and cannot be ranked"
NO_EXACT_RELEASE = "there is no exact release of it so far, for which releasable=True asks"
TIE = 1e-9  # relative, of errors that are the same but for rounding: the order of the catalogue decides then


@dataclass(frozen=True)
class Designed:
    """A candidate, its mechanism, what the design took, and the warnings that came with it."""

    candidate: Candidate
    mechanism: AnyMechanism
    seconds: float
    warned: tuple[warnings.WarningMessage, ...] = ()

    @property
    def label(self) -> str:
        """The label of the candidate."""
        return self.candidate.label

    def row(self, task: Demand, status: str = "") -> ChoiceRow:
        """Say what it reaches, needs and guarantees."""
        m = self.mechanism
        terms, reaction = m.guarantee_terms(), find_reaction(self.candidate, m)
        worst = m.worst_step_mse
        return ChoiceRow(
            name=self.label,
            lag=m.lag,
            rmse=m.predicted_rmse,
            interval=None,
            worst_step_rmse=None if worst is None else math.sqrt(worst),
            explained=explained_share(m.predicted_mse, task.variance),
            seconds=self.seconds,
            needs=_needs(self.candidate, m),
            delta=terms.delta,
            reacts=reaction.proven,
            reacts_why=reaction.why,
            online=m.lag is not None,
            releasable=not m.release_hindrance(),
            status=status,
        )


@dataclass(frozen=True)
class Ranking:
    """The mechanisms that can serve a task, in order, and why others cannot.

    Attributes
    ----------
    task : Demand
    ranked : tuple of Designed
        In the order of the predicted error that is minimised.
    unpredicted : tuple of Designed
        Those of which only simulation tells the error.
    reasons : tuple of (label, reason)
        Why others cannot serve.
    """

    task: Demand
    ranked: tuple[Designed, ...]
    unpredicted: tuple[Designed, ...]
    reasons: tuple[tuple[str, str], ...]


def split_candidates(task: Demand) -> tuple[list[Candidate], list[tuple[str, str]]]:
    """Return the candidates that can serve a task, and why the others cannot."""
    reasons = [(x, x.reason_against(task)) for x in candidates(task)]
    return [x for x, why in reasons if not why], [(x.label, why) for x, why in reasons if why]


def design_candidate(candidate: Candidate, task: Demand) -> Designed:
    """Design a candidate, and keep the warnings for whoever chooses it."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        mechanism = candidate.design(task)
        _ = mechanism.predicted_mse
    return Designed(candidate, mechanism, time.perf_counter() - begun, tuple(warned))


def rank(task: Demand, advance: Callable[[int], object], *, unpredicted: bool) -> Ranking:
    """Design all candidates that can serve a task, those without a prediction only if asked for, and rank them.

    Raises
    ------
    DesignError
        Where none can serve; it says what would have to change.
    """
    possible, reasons = split_candidates(task)
    made: list[Designed] = []
    for candidate in possible:
        if candidate.predicted or unpredicted:
            try:
                designed = design_candidate(candidate, task)
                if task.releasable and (hindrance := designed.mechanism.release_hindrance()):
                    raise DesignError(f"{NO_EXACT_RELEASE}: {hindrance}")
                made.append(designed)
            except ValueError as error:  # a DesignError, or of an argument that the family does not take
                reasons.append((candidate.label, str(error)))
        else:
            reasons.append((candidate.label, UNKNOWN))
        advance(1)
    known = [x for x in made if x.candidate.predicted and task.value(x.mechanism) is not None]
    if not known:
        raise DesignError("no mechanism serves here. " + " ".join(join_reasons(reasons)))
    later = tuple(x for x in made if x not in known)
    if not unpredicted:
        reasons += [(x.label, _HIDDEN) for x in later]
    return Ranking(task, tuple(_order(known, task)), later, tuple(reasons + other_families(task)))


def _order(made: Iterable[Designed], task: Demand) -> list[Designed]:
    """Sort by the predicted error; those that are the same but for rounding stay in the order of the catalogue."""
    left, ordered = list(made), list[Designed]()
    while left:
        least = min(_value(x, task) for x in left)
        first = next(x for x in left if _value(x, task) <= least * (1 + TIE))
        ordered.append(first)
        left.remove(first)
    return ordered


def _value(x: Designed, task: Demand) -> float:
    value = task.value(x.mechanism)
    assert value is not None
    return value


def _needs(candidate: Candidate, mechanism: AnyMechanism) -> tuple[str, ...]:
    """Say what it depends on besides target and ε."""
    found = [name for word, name in _NEEDS.items() if word in candidate.needs]
    if mechanism.model is not None and "model" not in found:  # of its receiver
        found.insert(0, _NEEDS["model"])
    inputs = re.search(r"for (inputs that are .+?)\.( |$)", mechanism.guarantee_terms().ending)
    return (*found, *([inputs[1]] if inputs else []))
