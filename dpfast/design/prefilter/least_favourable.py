"""Find the least favourable times of a person's events, and the best mechanism of a family for them."""

from __future__ import annotations

import collections
import math
from dataclasses import replace
from typing import Any, NamedTuple

from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import Ideal, IdealFamily
from dpfast.design.prefilter.several_events import Mixture
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

GAP = 1e-4  # the rounds end at this relative gap between the MSE reached and the bound
_ROUNDS = 200
_PATIENCE = 25  # rounds over which progress is measured
_PROGRESS = 0.9  # so many rounds must bring the gap below this part of it
_LONGEST_STRIDE = 30.0  # steps of the mixture between two designs
_LONGER, _SHORTER = 2.0, 0.25  # of a stride, after one that went up, and after one too far


class Saddle(NamedTuple):
    """A saddle point, nearly: the best design for the worst times.

    Attributes
    ----------
    problem : Problem
        The problem with the least favourable mixture of times.
    ideal : Ideal
        The ideal for it. Its MSE is reached at the times that are worst for it; its lower bound is the largest of all
        mixtures tried, and holds for all mechanisms of the family whose noise is that of the mixed times.
    """

    problem: Problem
    ideal: Ideal


_KEPT: collections.deque[tuple[Any, Model | None, IdealFamily, Saddle]] = collections.deque(maxlen=4)


def saddle_of_family(problem: Problem, privacy: Privacy, family: IdealFamily, size: int) -> Saddle:
    """Find the saddle of a problem for one event, with times on a circle of so many steps.

    The last ones are kept: the smoother's, which does not depend on the lag, is that of the mechanisms of every lag.
    """
    key = problem.target, problem.cost, problem.entries, privacy, size
    for known, model, of_family, saddle in _KEPT:
        if model is problem.model and of_family is family and known == key:
            return saddle
    found = find_saddle(problem, Mixture(privacy, size), family)
    _KEPT.append((key, problem.model, family, found))
    return found


def find_saddle(problem: Problem, mixture: Mixture, family: IdealFamily) -> Saddle:
    """Move the mixture in strides, with a design after each: longer every time, or shorter after one too far.

    The error of the best design is concave in the mixture, and a stride is kept only if it raises that error.
    """
    best, reached, stride = None, math.inf, _LONGEST_STRIDE
    accepted, size, value, gaps = mixture.probabilities, None, -math.inf, []
    for _ in range(_ROUNDS):
        mixed = replace(problem, contributions=mixture.contributions())
        ideal = family(mixed)
        if ideal.lower_bound > value or size is None:
            accepted, value, stride = mixture.probabilities, ideal.lower_bound, min(_LONGER * stride, _LONGEST_STRIDE)
            size = mixture.sample(ideal.product, problem.spectrum_zeros())
            weight = mixed.weight(mixture.grid.omega)
            noise = problem.cost * mixture.squared_sensitivity(size / weight) * mixture.grid.mean(size * weight)
            if ideal.distortion + noise < reached:
                reached, best = ideal.distortion + noise, (mixed, ideal)
        else:
            stride *= _SHORTER
        gaps.append(reached / value - 1)
        if gaps[-1] <= GAP or (len(gaps) > _PATIENCE and gaps[-1] > _PROGRESS * gaps[-_PATIENCE]):
            break
        mixture.probabilities = accepted
        mixture.ascend(size, stride)
    assert best is not None
    # the noise at the worst times is no less than at mixed ones, but for what the steps of the circle lose
    return Saddle(best[0], best[1]._replace(mse=max(reached, value), lower_bound=value))
