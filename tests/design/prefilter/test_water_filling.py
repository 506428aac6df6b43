"""Water-filling against convex programs, random feasible points, closed forms and direct integrals."""

import functools
import math

import cvxpy as cp
import numpy as np
import pytest
from helpers.covers import long_but
from helpers.problems import COST, NARROW, PROBLEMS, each_problem
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize

from dpfast import ARMA, DesignError, Filter, Privacy, feedback_program, lmmse, lmmse_program
from dpfast.design.prefilter import water_filling as fillings
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import (
    feedback_mse,
    feedback_water_filling,
    smoother_water_filling,
    zero_forcing_mse,
)


def arguments(problem):
    """Target, a privacy with the cost c² of the problem, and model."""
    privacy = Privacy(1, 1e-3)
    privacy = Privacy(1, 1e-3, max_change=math.sqrt(problem.cost) / privacy.noise_multiplier)
    return problem.target, privacy, problem.model


def smoother_value(problem, grid, x):
    """<P|F|²/(P x/c² + 1)>, as the paper writes it."""
    psd = problem.model.psd(grid.omega)
    gain = np.abs(problem.target.response(grid.omega))
    return grid.weights @ (psd * gain**2 / (psd * x / problem.cost + 1))


def feedback_value(problem, grid, x):
    """<ln(P x/c² + 1)>."""
    return grid.weights @ np.log1p(problem.model.psd(grid.omega) * x / problem.cost)


# --- the convex programs --------------------------------------------------------------------------


@each_problem
def test_smoother_water_filling_solves_the_convex_program(problem):
    water = smoother_water_filling(problem)
    program = lmmse_program(*arguments(problem))
    assert program.mse == pytest.approx(water.mse, rel=1e-6)
    assert smoother_value(problem, program.grid, program.x) == pytest.approx(water.mse, rel=1e-6)
    assert program.grid.mean(program.x) == pytest.approx(1, rel=1e-6)


@each_problem
def test_feedback_water_filling_solves_the_convex_program(problem):
    water = feedback_water_filling(problem)
    program = feedback_program(*arguments(problem))
    assert program.mse == pytest.approx(water.mse, rel=1e-6)
    assert program.grid.mean(program.x) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("program", "closed_form"),
    [(lmmse_program, smoother_water_filling), (feedback_program, feedback_water_filling)],
    ids=["lmmse", "feedback"],
)
@pytest.mark.parametrize("problem", [PROBLEMS["example"], PROBLEMS["resonator"]], ids=["example", "resonator"])
class TestConstraints:
    def test_a_cap_is_kept_and_costs_something(self, problem, program, closed_form):
        solution = program(*arguments(problem), constraints=lambda x, omega: [x <= 1.2])
        assert solution.x.max() <= 1.2 * (1 + 1e-6)
        assert solution.mse > closed_form(problem).mse * (1 + 1e-6)

    def test_a_band_without_gain_is_kept_and_costs_something(self, problem, program, closed_form):
        def silent(x, omega):
            return [x[(omega > 0.1) & (omega < 0.6)] == 0]

        solution = program(*arguments(problem), constraints=silent)
        omega = solution.grid.omega
        assert solution.x[(omega > 0.1) & (omega < 0.6)].max() <= 1e-6
        assert solution.mse > closed_form(problem).mse * (1 + 1e-6)

    def test_a_constraint_that_does_not_bind_costs_nothing(self, problem, program, closed_form):
        solution = program(*arguments(problem), constraints=lambda x, omega: [x <= 1e4])
        assert solution.mse == pytest.approx(closed_form(problem).mse, rel=1e-6)

    def test_infeasible_constraints_are_an_error(self, problem, program, closed_form):
        with pytest.raises(DesignError, match="infeasible"):
            program(*arguments(problem), constraints=lambda x, omega: [x <= 0.5])


@pytest.mark.parametrize("tolerance", long_but([1e-2, 1e-3], [1e-2]))
def test_the_realised_prefilter_of_a_program_keeps_its_value_and_its_cap(tolerance):
    target, privacy, model = arguments(PROBLEMS["pole .9"])
    program = lmmse_program(target, privacy, model, constraints=lambda x, omega: [x <= 3])
    prefilter = program.prefilter(tolerance=tolerance)
    mechanism = lmmse(target, privacy, model, prefilter=prefilter)
    assert mechanism.predicted_mse <= program.mse * (1 + 1.01 * tolerance)
    assert prefilter.hinf_norm() ** 2 / prefilter.h2_norm() ** 2 <= 3 * 1.2


@pytest.mark.parametrize("solve", [lmmse_program, feedback_program])
def test_a_bad_target_is_named(solve):
    _, privacy, model = arguments(PROBLEMS["pole .9"])
    with pytest.raises(ValueError, match="target must be a Filter"):
        solve([1.0], privacy, model)
    with pytest.raises(DesignError, match="target must not be zero"):
        solve(Filter([0.0]), privacy, model)


def test_a_solver_that_does_not_fit_is_an_error():
    with pytest.raises(DesignError, match="SCIPY"):
        lmmse_program(*arguments(PROBLEMS["pole .9"]), solver="SCIPY")


@pytest.mark.parametrize("problem", [PROBLEMS["pole .9"], PROBLEMS["difference"]], ids=["pole .9", "difference"])
@pytest.mark.parametrize("criterion", ["lmmse", "feedback"])
def test_the_papers_uniform_trapezoid_grid_converges_to_the_closed_form(problem, criterion):
    """Equations (9) and (16) as printed; the difference decays like 1/N²."""
    ideal = smoother_water_filling(problem).mse
    if criterion == "feedback":
        water = feedback_water_filling(problem)
        grid = problem.grid(breaks=water.cutoffs)
        ideal = feedback_value(problem, grid, water.x(grid.omega))
    errors = []
    for n in (100, 400):
        omega = np.pi * np.arange(n + 1) / n
        alpha = problem.psd(omega) * problem.gain(omega) ** 2
        beta = problem.psd(omega) / problem.cost
        x = cp.Variable(n + 1, nonneg=True)
        if criterion == "lmmse":
            f = cp.multiply(alpha, cp.inv_pos(cp.multiply(beta, x) + 1))
            goal = cp.Minimize(cp.sum(f[:-1] + f[1:]) / (2 * n))
        else:
            f = cp.log1p(cp.multiply(beta, x))
            goal = cp.Maximize(cp.sum(f[:-1] + f[1:]) / (2 * n))
        value = cp.Problem(goal, [cp.sum(x[:-1] + x[1:]) / (2 * n) == 1]).solve(solver="CLARABEL")
        errors.append(abs(value / ideal - 1))
    assert errors[0] < 5e-3
    assert errors[1] < max(errors[0] / 8, 1e-6)


# --- optimality -----------------------------------------------------------------------------------


@each_problem
def test_water_filling_is_a_shape(problem):
    for water in (smoother_water_filling(problem), feedback_water_filling(problem)):
        grid = problem.grid(breaks=water.cutoffs)
        x = water.x(grid.omega)
        assert (x >= 0).all()
        assert grid.mean(x) == pytest.approx(1, rel=1e-10)


@each_problem
def test_smoother_water_filling_meets_the_optimality_conditions(problem):
    """The slope -∂MSE/∂x is one number where x > 0, and no larger where x = 0."""
    water = smoother_water_filling(problem)
    omega = np.linspace(0, np.pi, 2001)
    x, psd = water.x(omega), problem.psd(omega)
    slope = psd**2 * problem.gain(omega) ** 2 / problem.cost / (psd * x / problem.cost + 1) ** 2
    active = x > 1e-6 * x.max()
    np.testing.assert_allclose(slope[active], slope[active].mean(), rtol=1e-8)
    assert slope[~active].max(initial=0) <= slope[active].mean() * (1 + 1e-5)


@each_problem
def test_feedback_water_filling_meets_the_optimality_conditions(problem):
    water = feedback_water_filling(problem)
    omega = np.linspace(0, np.pi, 2001)
    x, beta = water.x(omega), problem.psd(omega) / problem.cost
    slope = beta / (beta * x + 1)
    active = x > 1e-6 * x.max()
    np.testing.assert_allclose(slope[active], slope[active].mean(), rtol=1e-8)
    assert slope[~active].max(initial=0) <= slope[active].mean() * (1 + 1e-5)


@functools.cache
def closed_forms(name):
    """Return the grid of a problem, and for both criteria x there, the value, its sign and the least of it."""
    problem = PROBLEMS[name]
    grid, found = problem.grid(), []
    for fill, value, sign in (
        (smoother_water_filling, smoother_value, 1),
        (feedback_water_filling, feedback_value, -1),
    ):
        water = fill(problem)
        fine = problem.grid(breaks=water.cutoffs)
        found.append((water.x(grid.omega), value, sign, value(problem, fine, water.x(fine.omega))))
    return grid, found


@pytest.mark.parametrize("name", ["pole .9", "resonator"])
@given(data=st.data())
def test_no_feasible_point_beats_the_closed_forms(name, data):
    grid, waters = closed_forms(name)
    bumps = data.draw(hnp.arrays(float, 6, elements=st.floats(-8, 4)))
    mixture = data.draw(st.floats(0, 1))
    shape = np.exp(np.cos(np.outer(grid.omega, np.arange(6))) @ bumps)
    for best, value, sign, least in waters:
        x = mixture * best / grid.mean(best) + (1 - mixture) * shape / grid.mean(shape)
        # `grid` has no node at the cutoffs: its quadrature of the kink is good to about 1e-6
        assert sign * value(PROBLEMS[name], grid, x) >= sign * least - 1e-5 * abs(least)


@pytest.mark.parametrize("name", long_but(["pole .9", "resonator", "difference"], ["pole .9"]))
def test_more_noise_is_never_better(name):
    problem = PROBLEMS[name]
    costs = np.geomspace(1e-4, 1e4, 17)
    for water_filling in (smoother_water_filling, feedback_water_filling):
        errors = [water_filling(Problem(problem.target, problem.model, cost)).mse for cost in costs]
        assert (np.diff(errors) >= -1e-9 * errors[-1]).all()


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [1e-3, 1.0, 30.0])
def test_identity_of_white_input_is_a_scalar_wiener_filter(cost):
    variance = 0.25
    problem = Problem(Filter([1]), ARMA([0.5]), cost)
    water = smoother_water_filling(problem)
    assert water.mse == pytest.approx(variance / (variance / cost + 1), rel=1e-12)
    np.testing.assert_allclose(water.x(np.linspace(0, np.pi, 9)), 1, rtol=1e-12)


@pytest.mark.parametrize("cost", [1e-3, 0.1, 1.0, 30.0])
def test_difference_of_white_input_has_a_closed_form(cost):
    """|F| = 2 sin(ω/2) is cut at τ = 2 sin(ω₀/2); m = <(|F| - τ)₊> = (4 cos(ω₀/2) - τ(π - ω₀))/π = τ·variance/c²."""
    variance = 0.25
    water = smoother_water_filling(Problem(Filter([1, -1]), ARMA([0.5]), cost))

    def level(cut):
        return (4 * np.cos(cut / 2) - 2 * np.sin(cut / 2) * (np.pi - cut)) / np.pi

    def balance(cut):
        return level(cut) - 2 * np.sin(cut / 2) * variance / cost

    cut = optimize.brentq(balance, 0, np.pi, xtol=1e-15)
    tau = 2 * np.sin(cut / 2)
    distortion = variance * (2 * cut - 2 * np.sin(cut) + tau**2 * (np.pi - cut)) / np.pi
    assert water.cutoffs == pytest.approx([cut], rel=1e-10)
    assert water.mse == pytest.approx(distortion + cost * level(cut) ** 2, rel=1e-10)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("target", [Filter([1]), Filter([1, -2], [1, -0.9]), Filter(np.full(4, 0.25))])
def test_feedback_prefilter_of_white_input_is_flat(target, cost):
    problem = Problem(target, ARMA([0.5]), cost)
    water = feedback_water_filling(problem)
    np.testing.assert_allclose(water.x(np.linspace(0, np.pi, 9)), 1, rtol=1e-10)
    lead = (2 / 1 if len(target.b) == 2 else target.b[0]) ** 2  # the zero at 2 is reflected
    assert water.mse == pytest.approx(lead * 0.25 / (0.25 / cost + 1), rel=1e-10)


def test_feedback_prefilter_of_an_autoregression_at_weak_privacy_has_a_closed_form():
    """x = μ - c²/P > 0 everywhere: μ = 1 + c²<1/P>, MSE = γ_F² c²/μ."""
    a, b, cost = 0.5, 0.7, 1e-2
    water = feedback_water_filling(Problem(Filter([3], [1, -0.9]), ARMA([b], [1, -a]), cost))
    assert water.cutoffs == ()
    assert water.mse == pytest.approx(9 * cost / (1 + cost * (1 + a * a) / b**2), rel=1e-10)


def test_feedback_prefilter_does_not_depend_on_the_target():
    omega = np.linspace(0, np.pi, 101)
    one, other = (feedback_water_filling(Problem(f, NARROW, COST)) for f in (Filter([1]), Filter([1, 1], [1, -0.99])))
    np.testing.assert_allclose(one.x(omega), other.x(omega), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "mean_gain"),
    [
        (Filter([1, -1]), 4 / np.pi),
        (Filter([1, 1]), 4 / np.pi),
        (Filter([0, 0, 3]), 3.0),
        (Filter([-0.5, 1], [1, -0.5]), 1.0),  # all-pass
        (Filter([1, 0, -1]), 4 / np.pi),
        (Filter([1, -2, 1]), 2.0),
    ],
    ids=["difference", "sum", "delay", "all-pass", "comb", "second difference"],
)
def test_zero_forcing_has_closed_forms(target, mean_gain):
    assert zero_forcing_mse(Problem(target, None, 2.0)) == pytest.approx(2 * mean_gain**2, rel=1e-12)


def test_feedback_mse_is_the_exponential_of_the_criterion():
    problem = PROBLEMS["outside zero, notched signal"]
    grid = problem.grid()
    x = np.ones_like(grid.omega)
    expected = 4 * np.exp(-feedback_value(problem, grid, x))  # γ_F² = 4: the zero at 2; γ_u² = 1
    assert feedback_mse(problem, grid, x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("problem", [*PROBLEMS])
def test_many_cutoffs_are_found_at_once_as_one_by_one(monkeypatch, problem):
    given = PROBLEMS[problem]
    one_by_one = smoother_water_filling(given)
    monkeypatch.setattr(fillings, "_FEW_CROSSINGS", 0)
    at_once = smoother_water_filling(given)
    np.testing.assert_allclose(at_once.cutoffs, one_by_one.cutoffs, rtol=0, atol=1e-14)
    assert at_once.mse == pytest.approx(one_by_one.mse, rel=1e-13)
