"""The convex programs against the closed forms, and with constraints."""

import itertools

import numpy as np
import pytest
from helpers.covers import long_but

import dpfast as dp
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.water_filling import feedback_water_filling, smoother_water_filling

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
NARROW = dp.ARMA([0.4], [1, -1.2, 0.72])
NOTCHED = dp.ARMA([1, 0.3, 0.99**2], [1, -0.4])  # zeros at modulus .99
PAPER = dp.Privacy(np.log(3), 0.05, calibration="paper")

CASES = {
    "example": (dp.Filter([1, 0.995], [1, -0.995]), PAPER, CHAIN),
    "pole .9": (dp.Filter([1], [1, -0.9]), PAPER, CHAIN),
    "pole .9999": (dp.Filter([1], [1, -0.9999]), PAPER, CHAIN),
    "resonator": (dp.Filter([1, 0.2], [1, -1.140303389447398, 0.9409]), PAPER, NARROW),
    "difference": (dp.Filter([1, -1]), PAPER, CHAIN),
    "moving average": (dp.Filter(np.full(10, 0.1)), PAPER, NARROW),
    "outside zero, notched signal": (dp.Filter([1, -2]), PAPER, NOTCHED),
    "weak privacy": (dp.Filter([1], [1, -0.9]), dp.Privacy.from_gdp(30.0, 1e-3), NARROW),
    "strong privacy": (dp.Filter([1], [1, -0.9]), dp.Privacy.from_gdp(0.1, 1e-3), NARROW),
}
PROGRAMS = {
    "lmmse": (dp.lmmse_program, smoother_water_filling),
    "feedback": (dp.feedback_program, feedback_water_filling),
}

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
each_program = pytest.mark.parametrize(("program", "closed_form"), PROGRAMS.values(), ids=PROGRAMS)


def optimum(case, closed_form):
    target, privacy, model = case
    return closed_form(Problem(target, model, noise_cost(privacy, None)))


@pytest.mark.parametrize(
    ("case", "name"),
    long_but([*itertools.product(CASES, PROGRAMS)], [*zip(CASES, itertools.cycle(PROGRAMS), strict=False)]),
)
def test_the_closed_form_solves_the_program(case, name):
    case, (program, closed_form) = CASES[case], PROGRAMS[name]
    solution = program(*case)
    assert solution.mse == pytest.approx(optimum(case, closed_form).mse, rel=1e-6)
    assert solution.grid.mean(solution.x) == pytest.approx(1, rel=1e-6)


@each_case
def test_the_lmmse_value_is_that_of_x_as_the_paper_writes_it(case):
    target, privacy, model = case
    solution = dp.lmmse_program(*case)
    psd, gain = model.psd(solution.grid.omega), np.abs(target.response(solution.grid.omega))
    error = psd * gain**2 / (psd * solution.x / privacy.noise_multiplier**2 + 1)
    assert solution.grid.weights @ error == pytest.approx(solution.mse, rel=1e-5)


@each_program
@pytest.mark.parametrize("case", [CASES["pole .9"], CASES["resonator"]], ids=["pole .9", "resonator"])
class TestConstraints:
    def test_a_cap_is_kept_and_costs_something(self, case, program, closed_form):
        solution = program(*case, constraints=lambda x, omega: [x <= 1.2])
        assert solution.x.max() <= 1.2 * (1 + 1e-5)
        assert solution.mse > optimum(case, closed_form).mse * (1 + 1e-6)

    def test_a_band_without_gain_is_kept_and_costs_something(self, case, program, closed_form):
        solution = program(*case, constraints=lambda x, omega: [x[(omega > 0.1) & (omega < 0.6)] == 0])
        omega = solution.grid.omega
        assert solution.x[(omega > 0.1) & (omega < 0.6)].max() <= 1e-5
        assert solution.mse > optimum(case, closed_form).mse * (1 + 1e-6)

    def test_a_constraint_that_does_not_bind_costs_nothing(self, case, program, closed_form):
        solution = program(*case, constraints=lambda x, omega: [x <= 1e4])
        assert solution.mse == pytest.approx(optimum(case, closed_form).mse, rel=1e-6)

    def test_infeasible_constraints_are_an_error(self, case, program, closed_form):
        with pytest.raises(dp.DesignError, match="infeasible"):
            program(*case, constraints=lambda x, omega: [x <= 0.5])


def test_a_constrained_prefilter_is_realised_and_used():
    target, privacy, model = CASES["pole .9"]
    solution = dp.lmmse_program(target, privacy, model, constraints=lambda x, omega: [x <= 5])
    prefilter = solution.prefilter(tolerance=1e-3)
    omega = np.linspace(0, np.pi, 2000)
    assert (np.abs(prefilter.response(omega)) ** 2).max() < 5 * 1.1
    mechanism = dp.lmmse(target, privacy, model, prefilter=prefilter)
    assert mechanism.predicted_mse == pytest.approx(solution.mse, rel=2e-3)
    assert mechanism.predicted_mse > dp.lmmse(target, privacy, model).predicted_mse


def test_a_solver_that_does_not_fit_is_an_error():
    with pytest.raises(dp.DesignError, match="SCIPY"):
        dp.lmmse_program(*CASES["pole .9"], solver="SCIPY")


def test_several_events_are_refused():
    privacy = dp.Privacy(1, 1e-3, max_events=2)
    with pytest.raises(dp.DesignError, match="max_events must be 1 in a convex program, got 2"):
        dp.lmmse_program(dp.Filter([1]), privacy, CHAIN)


def test_constraints_that_are_not_convex_are_an_error():
    with pytest.raises(dp.DesignError, match="constraints must follow cvxpy's rules"):
        dp.lmmse_program(dp.Filter([1]), PAPER, CHAIN, constraints=lambda x, omega: [x**2 >= 1])
