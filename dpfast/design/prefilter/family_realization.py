"""Realise the ideal prefilter of a family of mechanisms, for one event a person or for several."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpfast._support.errors import ConvergenceWarning, warn
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.ideal_mechanism import Ideal, IdealFamily
from dpfast.design.prefilter.least_favourable import saddle_of_family
from dpfast.design.prefilter.order_selection import FAR, best_realization, check_excess, realize
from dpfast.design.prefilter.several_events import Mixture
from dpfast.filters.fft_grid import fft_length
from dpfast.filters.filter import Filter
from dpfast.privacy.privacy import Privacy

_LOOSE = 1e-2  # a larger gap is warned of
_SHORTEST, _LONGEST = 2**14, 2**19  # steps of the circle of a mixture
_DECAY = 20.0  # the slowest pole decays by exp(-20) over the circle of a mixture


class Realized(NamedTuple):
    """A realised prefilter, and the MSE and lower bound of its ideal."""

    prefilter: Filter
    ideal_mse: float
    lower_bound_mse: float


def realize_family(
    problem: Problem, privacy: Privacy, family: IdealFamily, tolerance: float, mixed_by: IdealFamily | None = None
) -> Realized:
    """Return a realised prefilter of a family, within the tolerance of its ideal.

    For several events, `mixed_by` is the family whose least favourable times are used, if that is another one.
    """
    if privacy.max_events > 1:
        return _realize_for_several_events(problem, privacy, family, tolerance, mixed_by or family)
    plain = family(problem)
    far = FAR * tolerance
    prefilter = realize(plain.shape(problem), tolerance=tolerance, excess=lambda g: plain.excess(problem, g, far))
    return Realized(prefilter, plain.mse, plain.lower_bound)


def _realize_for_several_events(
    problem: Problem, privacy: Privacy, family: IdealFamily, tolerance: float, mixed_by: IdealFamily
) -> Realized:
    """Realise the design for the least favourable times, or that for events far apart, whichever is better.

    Both are measured with the noise of their own sensitivity. The bound is that of the mixture for two events, whose
    sensitivity is what it mixes; for more it is that of events far apart.
    """
    plain = family(problem)
    size = min(_LONGEST, max(_SHORTEST, fft_length(problem.slowest, decay=_DECAY)))
    saddle = saddle_of_family(problem, privacy, mixed_by, size)
    ideal = saddle.ideal
    if mixed_by is not family:
        ideal = _with_reached_mse(problem, Mixture(privacy, size), family(saddle.problem))

    def excess(g: Filter) -> float:
        return ideal.excess(replace(problem, cost=noise_cost(privacy, g)), g)

    found = []
    for objective in (ideal.shape(saddle.problem), plain.shape(problem)):
        found.append(best_realization(objective, excess, tolerance))
        if found[-1][0] <= tolerance:
            break
    # never worse than the design for one event, which may be within the tolerance of a loose ideal and still better
    _, single = best_realization(plain.shape(problem), lambda g: plain.excess(problem, g), tolerance)
    found.append((excess(single), single))
    least, prefilter = min(found, key=lambda x: x[0])
    check_excess(least, tolerance)
    mse = ideal.mse * min(1.0, 1 + least)
    gap = mse / saddle.ideal.lower_bound - 1
    if mixed_by is family and gap > _LOOSE:
        warn(
            f"the design for the least favourable times of {privacy.max_events} events may have an MSE {gap:.1g} "
            "(relative) above the best one; its noise and its predicted error hold",
            ConvergenceWarning,
        )
    bound = saddle.ideal.lower_bound if privacy.max_events == 2 else plain.lower_bound
    return Realized(prefilter, mse, bound)


def _with_reached_mse(problem: Problem, mixture: Mixture, ideal: Ideal) -> Ideal:
    """Give an ideal the MSE that its shape has at the times which are worst for it."""
    shape = ideal.loss(problem).shape
    power = mixture.sample(shape, problem.spectrum_zeros())
    cost = problem.cost * mixture.squared_sensitivity(power) / mixture.grid.mean(power)
    grid, loss = ideal.loss(replace(problem, cost=cost)).resolve(np.empty(0, dtype=np.complex128), 0)
    return ideal._replace(mse=loss(shape(grid.omega))[0])
