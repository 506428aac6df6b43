"""From the ideal of a family of mechanisms to a realised prefilter, for one event a person or for several."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast.design.contributions import Mixture
from dpfast.design.prefilter import Problem, noise_cost
from dpfast.filters import Filter
from dpfast.privacy import Privacy
from dpfast.realize import Objective, best_realization, check_excess, realize
from dpfast.spectra import Spectrum, fft_length

_ROUNDS = 60
_STEPS = 30  # of the mixture in a round
GAP = 1e-4  # relative, between the MSE reached and the bound, where the rounds end
_PATIENCE = 10  # rounds that are watched
_PROGRESS = 0.9  # of the gap: what so many rounds must bring it to
_LONGEST = 2**19  # steps of the circle of a mixture
_DECAY = 20.0


class Ideal(NamedTuple):
    """The best K = HG of a family.

    Attributes
    ----------
    mse : float
    lower_bound : float
        No mechanism of the family has a smaller MSE.
    product : callable
        ω → |K|.
    distortion : float
        The part of the MSE that is not noise.
    shape : callable
        Problem → what a realised |G|² is fitted by.
    loss : callable
        Problem → what it is measured by there: the MSE of G.
    """

    mse: float
    lower_bound: float
    product: Spectrum
    distortion: float
    shape: Callable[[Problem], Objective]
    loss: Callable[[Problem], Objective]

    def excess(self, problem: Problem, g: Filter) -> float:
        """Relative excess of the MSE of G on a problem."""
        return self.loss(problem)._replace(ideal=self.mse).excess(g)


Family = Callable[[Problem], Ideal]


class Realized(NamedTuple):
    """A realised prefilter, and the MSE and lower bound of its ideal."""

    prefilter: Filter
    ideal_mse: float
    lower_bound_mse: float


def realize_family(
    problem: Problem, privacy: Privacy, family: Family, tolerance: float, mixed_by: Family | None = None
) -> Realized:
    """The prefilter of a family that is within the tolerance of its ideal.

    For several events a person the ideal is that of the least favourable times of the events, which no filter of low
    order may reach: the better one is kept of what is realised for those times, and for events far apart. Both are
    measured with the noise of their own sensitivity. `mixed_by` is the family whose least favourable times are taken,
    if that is another one.
    """
    plain = family(problem)
    if privacy.max_events == 1:
        prefilter = realize(plain.shape(problem), tolerance=tolerance, excess=lambda g: plain.excess(problem, g))
        return Realized(prefilter, plain.mse, plain.lower_bound)
    mixture = Mixture(privacy, min(_LONGEST, max(2**14, fft_length(problem.slowest, decay=_DECAY))))
    worst, ideal = _least_favourable(problem, mixture, mixed_by or family)
    if mixed_by is not None:
        ideal = _reached(problem, mixture, family(worst))

    def excess(g: Filter) -> float:
        return ideal.excess(replace(problem, cost=noise_cost(privacy, g)), g)

    found = []
    for objective in (ideal.shape(worst), plain.shape(problem)):
        found.append(best_realization(objective, excess, tolerance))
        if found[-1][0] <= tolerance:
            break
    least, prefilter = min(found, key=lambda x: x[0])
    check_excess(least, tolerance)
    bound = ideal.lower_bound if privacy.max_events == 2 else plain.lower_bound
    return Realized(prefilter, ideal.mse, bound)


def _least_favourable(problem: Problem, mixture: Mixture, family: Family) -> tuple[Problem, Ideal]:
    """The saddle point of designs and mixtures of times, by steps of the mixture between designs for it.

    The MSE is one that is reached at the worst times. The bound is that of the best mixture: one for all mechanisms of
    the family whose noise is that of the mixed times.
    """
    mse, bound, gaps = math.inf, 0.0, [math.inf]
    for _ in range(_ROUNDS):
        mixed = replace(problem, contributions=mixture.contributions())
        ideal = family(mixed)
        size, weight = ideal.product(mixture.grid.omega), mixed.weight(mixture.grid.omega)
        reached = ideal.distortion + problem.cost * mixture.worst(size / weight) * mixture.grid.mean(size * weight)
        if reached < mse:
            mse, best = reached, (mixed, ideal)
        bound = max(bound, ideal.lower_bound)
        gaps.append(mse / bound - 1)
        if gaps[-1] <= GAP or (len(gaps) > _PATIENCE and gaps[-1] > _PROGRESS * gaps[-_PATIENCE]):
            break
        for _ in range(_STEPS):
            mixture.ascend(size)
    return best[0], best[1]._replace(mse=mse, lower_bound=bound)


def _reached(problem: Problem, mixture: Mixture, ideal: Ideal) -> Ideal:
    """With the MSE of its shape at the worst times of that."""
    shape = ideal.loss(problem).shape
    power = shape(mixture.grid.omega)
    cost = problem.cost * mixture.worst(power) / mixture.grid.mean(power)
    grid, loss = ideal.loss(replace(problem, cost=cost)).resolve(np.empty(0, dtype=np.complex128), 0)
    return ideal._replace(mse=loss(shape(grid.omega))[0])
