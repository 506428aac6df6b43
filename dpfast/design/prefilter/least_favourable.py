"""The least favourable times of a person's events, and the best mechanism of a family for them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from dpfast.design.prefilter.ideal import Ideal, IdealFamily
from dpfast.design.prefilter.problem import Problem
from dpfast.design.prefilter.several_events import Mixture

GAP = 1e-4  # relative, between the MSE reached and the bound, where the rounds end
_ROUNDS = 200
_PATIENCE = 25  # rounds that are watched
_PROGRESS = 0.9  # of the gap: what so many rounds must bring it to
_LONGEST_STRIDE = 30.0  # steps of the mixture between two designs
_LONGER, _SHORTER = 2.0, 0.25  # of a stride, after one that went up, and after one too far


class Saddle(NamedTuple):
    """Where the best design and the worst times meet, nearly.

    Attributes
    ----------
    problem : Problem
        With the mixture of times.
    ideal : Ideal
        Designed for it. Its MSE is one that is reached at the worst times of its own, its lower bound that of all
        mixtures tried: for all mechanisms of the family whose noise is that of the mixed times.
    """

    problem: Problem
    ideal: Ideal


def find_saddle(problem: Problem, mixture: Mixture, family: IdealFamily) -> Saddle:
    """Strides of the mixture between designs for it, each longer than the last one, or shorter when it went too far.

    The error of the best design is concave in the mixture: it only ever goes up.
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
    # no noise at the worst times is less than at mixed ones: what is, is what the steps of the circle lose
    return Saddle(best[0], best[1]._replace(mse=max(reached, value), lower_bound=value))
