"""Objectives of the realisation: slopes against finite differences, and ideals that are lower bounds."""

import numpy as np
import pytest
from helpers.problems import COST, each_problem

from dpfast import ARMA, Filter
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import (
    MOST_STEPS,
    feedback_objective,
    smoother_objective,
    wiener_objective,
    zero_forcing_objective,
)
from dpfast.design.prefilter.water_filling import feedback_water_filling, smoother_water_filling

OBJECTIVES = {
    "zero forcing": zero_forcing_objective,
    "smoother": lambda problem: smoother_objective(problem, smoother_water_filling(problem)),
    "feedback": lambda problem: feedback_objective(problem, feedback_water_filling(problem)),
}


@pytest.mark.parametrize("kind", OBJECTIVES)
@each_problem
class TestObjectives:
    def test_the_slope_is_that_of_finite_differences(self, problem, kind):
        objective = OBJECTIVES[kind](problem)
        grid, loss = objective.resolve(np.array([0.5 + 0j]), 1)
        power = np.exp(np.cos(grid.omega))
        _, slope = loss(power)
        for direction in (np.cos(grid.omega), np.sin(grid.omega) ** 2, np.cos(3 * grid.omega) + 0.3):
            h = 1e-5
            up, down = (loss(power * np.exp(s * h * direction))[0] for s in (1, -1))
            scale = grid.mean(np.abs(slope * direction))
            assert (up - down) / (2 * h) == pytest.approx(grid.mean(slope * direction), abs=1e-6 * scale + 1e-12 * up)

    def test_the_gain_does_not_matter(self, problem, kind):
        objective = OBJECTIVES[kind](problem)
        grid, loss = objective.resolve(np.empty(0), 0)
        power = 2 + np.cos(grid.omega)
        assert loss(1e6 * power)[0] == pytest.approx(loss(power)[0], rel=1e-12)
        assert grid.mean(loss(power)[1]) == pytest.approx(0, abs=1e-10 * loss(power)[0])

    def test_the_ideal_is_a_lower_bound_that_the_shape_reaches(self, problem, kind):
        objective = OBJECTIVES[kind](problem)
        grid, loss = objective.resolve(np.empty(0), 0)
        shape = objective.shape(grid.omega)
        assert loss(np.maximum(shape, 1e-14 * shape.max()))[0] == pytest.approx(objective.ideal, rel=1e-6)
        for power in (np.ones_like(shape), shape + 0.1, 1 + shape):
            assert loss(power)[0] >= objective.ideal * (1 - 1e-9)


def test_a_large_excess_is_measured_in_fewer_steps():
    """Of a G with poles 2e-5 from the circle, which only millions of steps resolve."""
    problem = Problem(Filter([1, 0.4, 0.2]), ARMA([1], [1, -0.5]), COST)
    objective = wiener_objective(problem, 3, zero_forcing_objective(problem), ())._replace(ideal=1e-2)
    pole = (1 - 2.1e-5) * np.exp(1.3j)
    g = Filter.from_zpk([0.9997 * pole, 0.9997 * pole.conj()], [pole, pole.conj()], 1.0)
    exact = objective.excess(g)
    assert len(objective.resolve(g.poles, 2)[0].omega) > 4 * MOST_STEPS
    assert objective.excess(g, far=2 * exact) == exact
    brief = objective._replace(resolve=None).excess(g, far=0.5 * exact)
    assert brief == pytest.approx(exact, rel=1e-4)
    assert brief != exact
    assert objective.brief(np.array([0.5 + 0j]), 2) is None
