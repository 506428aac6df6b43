"""The ideal of a family of mechanisms: the least error that it reaches with filters of any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import Objective
from dpfast.filters.filter import Filter
from dpfast.filters.spectral_factor import Spectrum


class Ideal(NamedTuple):
    """The best K = HG of a family, for one event a person or for a given mixture of the times of several.

    Attributes
    ----------
    mse : float
    lower_bound : float
        No mechanism of the family has a smaller MSE.
    product : callable
        ω → |K|.
    distortion : float
        The part of the MSE that is distortion, without the noise.
    shape : callable
        Problem → the objective by which |G|² is fitted.
    loss : callable
        Problem → the objective by which G is measured: its MSE.
    """

    mse: float
    lower_bound: float
    product: Spectrum
    distortion: float
    shape: Callable[[Problem], Objective]
    loss: Callable[[Problem], Objective]

    def excess(self, problem: Problem, g: Filter, far: float = math.inf) -> float:
        """Return the relative excess of the MSE of G on a problem; roughly, where it is beyond `far`."""
        return self.loss(problem)._replace(ideal=self.mse).excess(g, far)


IdealFamily = Callable[[Problem], Ideal]
