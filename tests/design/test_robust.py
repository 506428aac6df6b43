"""The worst input: closed forms, known values, certificates, and sinusoids through the realised filters."""

import itertools
import math

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed

import dpfast as dp
from dpfast.design import robust
from dpfast.design.prefilter import robust_lower_bound
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.rational_basis import basis_for
from dpfast.design.prefilter.water_filling import robust_filling
from dpfast.design.programs.worst_error_program import minimize_worst_error, noise_of_product

EXAMPLE = dp.Filter([1, 0.995], [1, -0.995])
TARGET = dp.Filter([1], [1, -0.9])
SHORT = dp.Filter([1, 0.5])
PAPER = dp.Privacy(math.log(3), 0.05, calibration="paper")
COST = 1.75633987311476**2
V = 0.25
RMSE = {0: 6.381, 5: 5.422, 20: 5.205, None: 5.177}
LAGS = [*RMSE]
QUICK = [5, None]


def design(lag):
    """Return the design for the example, to a wide tolerance but for the lag 0."""
    return designed(
        dp.robust, EXAMPLE, PAPER, mean_square=V, lag=lag, tolerance={0: 1e-3, 5: 0.01, 20: 0.01, None: 0.01}[lag]
    )


def worst_sinusoid(mechanism, mean_square):
    """Mean square error for a sinusoid at the worst frequency, from runs of the realised filters, and of the noise."""
    omega = np.concatenate([[0], np.geomspace(1e-5, np.pi, 20_000)])
    lag = mechanism.lag or 0
    wanted = mechanism.target.response(omega) * np.exp(-1j * lag * omega)
    error = np.abs(wanted - mechanism.receiver.response(omega) * mechanism.prefilter.response(omega))
    n, cut = 80_000, 20_000
    worst = omega[np.argmax(error)]
    phase = worst * np.arange(n)
    # two sinusoids in quadrature, so that their mean power needs no whole number of periods
    waves = np.sqrt(mean_square) * np.array([np.cos(phase), np.sin(phase)])
    estimate, _ = mechanism.receiver.estimate(mechanism.prefilter.filter(waves).y)
    y = mechanism.target.filter(waves).y
    distortion = (estimate[:, lag:] - y[:, : n - lag])[:, cut:-cut]
    pulse = np.zeros((1, n))
    pulse[0, n // 2] = 1
    response, _ = mechanism.receiver.estimate(pulse)
    return np.mean(np.sum(distortion**2, axis=0)), mechanism.noise_std**2 * np.sum(response**2)


@pytest.mark.parametrize("lag", long_but(LAGS, QUICK))
def test_example(lag):
    mechanism = design(lag)
    assert mechanism.ideal_rmse == pytest.approx(RMSE[lag], abs=6e-4)
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + dict(mechanism.options)["tolerance"])
    assert mechanism.ideal_mse * (1 - 4e-4) <= mechanism.lower_bound_mse <= mechanism.ideal_mse * (1 + 1e-9)
    assert mechanism.predicted_mse >= mechanism.lower_bound_mse * (1 - 1e-9)
    assert mechanism.predicted_mse == mechanism.worst_case_mse(V)
    assert mechanism.lag == lag
    assert mechanism.mean_square == V
    assert mechanism.prefilter.order <= 6


def test_a_summary_says_that_its_figures_are_worst_cases():
    text = design(5).summary()
    assert "ideal RMSE      5.42" in text
    assert text.count("(worst input of mean square 0.25)") == 2


@pytest.mark.parametrize("lags", [QUICK, pytest.param(LAGS, marks=pytest.mark.long)], ids=["two", "all"])
def test_errors_fall_with_the_lag(lags):
    errors = [design(lag).ideal_mse for lag in lags]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < dp.zero_forcing(EXAMPLE, PAPER, tolerance=0.3).ideal_mse


@pytest.mark.parametrize("lag", long_but(LAGS, QUICK))
def test_a_sinusoid_at_the_worst_frequency_comes_near_to_the_worst_case(lag):
    distortion, noise = worst_sinusoid(design(lag), V)
    assert distortion + noise == pytest.approx(design(lag).predicted_mse, rel=1e-4)
    assert distortion + noise <= design(lag).predicted_mse * (1 + 1e-7)


@pytest.mark.parametrize("lag", long_but(LAGS, QUICK))
@pytest.mark.parametrize("model", [dp.ARMA([0.5]), dp.ARMA([0.5 * math.sqrt(1 - 0.99**2)], [1, -0.99])])
def test_no_signal_of_that_power_is_worse(lag, model):
    assert model.variance == pytest.approx(V)
    assert design(lag).predict(model) <= design(lag).predicted_mse
    # nor better than what knows it
    smoother = designed(dp.lmmse, EXAMPLE, PAPER, model, tolerance=0.3)
    assert design(lag).predict(model) >= smoother.ideal_mse * (1 - 1e-9)


@pytest.mark.parametrize("lag", long_but([0, None], [None]))
def test_from_nothing_to_zero_forcing_with_the_power(lag):
    powers = [1e-6, 1.0, 1e7]
    found = [dp.robust(TARGET, PAPER, mean_square=v, lag=lag, tolerance=0.1) for v in powers]
    errors = [x.ideal_mse for x in found]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(1e-6 * TARGET.hinf_norm() ** 2, rel=0.03)  # hardly any K, no noise
    assert errors[-1] == pytest.approx(dp.zero_forcing(TARGET, PAPER, tolerance=0.3).ideal_mse, rel=1e-3)
    assert all(x.predicted_mse <= x.ideal_mse * 1.1 for x in found)


@pytest.mark.parametrize("lag", long_but([0, 3, None], [3, None]))
def test_a_target_of_one_has_a_constant(lag):
    """K = k: V (1 - k)² + c²k² is least at k = V/(V + c²)."""
    mechanism = dp.robust(dp.Filter([1]), PAPER, mean_square=V, lag=lag)
    assert mechanism.ideal_mse == pytest.approx(V * COST / (V + COST), rel=1e-6)
    assert mechanism.lower_bound_mse == pytest.approx(mechanism.ideal_mse, rel=1e-6)


SMOOTHED = {
    "resonator": dp.Filter([1, 0.2], [1, -0.9, 0.7]),
    "pole .9999": dp.Filter([1], [1, -0.9999]),
    "difference": dp.Filter([1, -1]),
}


@pytest.mark.parametrize(
    ("name", "tolerance"),
    long_but([*itertools.product(SMOOTHED, (0.1, 0.01))], [("difference", 0.01)]),
)
def test_smoother_on_a_dense_grid(name, tolerance):
    target = SMOOTHED[name]
    omega = (np.arange(2**18) + 0.5) * np.pi / 2**18
    gain = np.sort(np.abs(target.response(omega)))[::-1]
    tau = np.geomspace(1e-3, gain[0], 2000)[:-1]
    above = len(gain) - np.searchsorted(gain[::-1], tau)  # how many gains
    passed = (np.cumsum(gain)[above - 1] - above * tau) / len(gain)
    scanned = (V * tau**2 + COST * passed**2).min()
    filling = robust_filling(Problem(target, None, COST), V)
    assert filling.mse == pytest.approx(scanned, rel=2e-4)
    assert filling.mse <= scanned * (1 + 1e-6)
    mechanism = dp.robust(target, PAPER, mean_square=V, tolerance=tolerance)
    assert mechanism.ideal_mse == pytest.approx(filling.mse, rel=1e-9)
    assert filling.mse * (1 - 1e-9) <= mechanism.predicted_mse <= filling.mse * (1 + tolerance)


OTHERS = [(dp.Filter([1], [1, -0.9999]), 0), (dp.Filter([1, -2]), 5)]


@pytest.mark.parametrize(("target", "lag"), long_but(OTHERS, OTHERS[1:]))
def test_other_targets_at_a_lag(target, lag):
    mechanism = dp.robust(target, PAPER, mean_square=V, lag=lag)
    assert mechanism.ideal_mse * (1 - 2e-3) <= mechanism.lower_bound_mse <= mechanism.ideal_mse
    assert mechanism.lower_bound_mse <= mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1e-3)


def test_a_certificate_holds_whatever_the_solver_found(monkeypatch):
    problem = Problem(TARGET, None, COST)
    basis = basis_for(problem, 2)
    best = robust_lower_bound.robust_lower_bound(problem, V, 2, basis, "CLARABEL")
    solution = robust_lower_bound._solve_dual
    solved = []
    monkeypatch.setattr(
        robust_lower_bound, "_solve_dual", lambda *arguments: solved.append(solution(*arguments)) or solved[-1]
    )
    robust_lower_bound.robust_lower_bound(problem, V, 2, basis, "CLARABEL")
    coefficients, largest, size = solved[0]
    ideal = dp.robust(TARGET, PAPER, mean_square=V, lag=2, tolerance=0.1).ideal_mse
    assert 0.998 * ideal < best <= ideal
    for seed in range(10):
        noise = 0.1 * np.random.default_rng(seed).standard_normal(len(coefficients) + 2)
        other = coefficients + noise[2:], largest * (1 + noise[0]), size * (1 + noise[1])
        monkeypatch.setattr(robust_lower_bound, "_solve_dual", lambda *_, other=other: other)
        assert robust_lower_bound.robust_lower_bound(problem, V, 2, basis, "CLARABEL") < best


@pytest.mark.parametrize(("target", "lag"), long_but([(SHORT, 1), (EXAMPLE, 5)], [(SHORT, 1)]))
def test_the_ideal_is_not_above_what_is_reached(monkeypatch, target, lag):
    """Where the program had fewer functions than the receiver."""
    monkeypatch.setattr(robust, "_RICHNESS", 1 / 3)
    monkeypatch.setattr(robust, "_GROWTH", (2.0,))
    found = dp.robust(target, PAPER, mean_square=V, lag=lag)
    assert found.lower_bound_mse <= found.ideal_mse <= found.predicted_mse


@pytest.mark.parametrize(
    ("target", "lag", "tolerance"),
    long_but(
        [*itertools.product([SHORT], [0, None], [1e-2]), *itertools.product([TARGET], [0, None], [1e-3])],
        [(SHORT, 0, 1e-2)],
    ),
)
def test_a_program_that_fails_is_left_out(monkeypatch, target, lag, tolerance):
    """As solvers do, on some machines, for some numbers of functions; others do, and at a lag K/G."""
    sizes, whole = set(), dp.robust(target, PAPER, mean_square=V, lag=lag, tolerance=tolerance)

    def failing(weight, grid, wanted, functions, noise, *constraint, **accuracy):
        sizes.add(functions.shape[1])
        if noise is not noise_of_product and functions.shape[1] == min(sizes):
            raise dp.DesignError("the solver failed")
        return minimize_worst_error(weight, grid, wanted, functions, noise, *constraint, **accuracy)

    monkeypatch.setattr(robust, "minimize_worst_error", failing)
    found = dp.robust(target, PAPER, mean_square=V, lag=lag, tolerance=tolerance)
    assert len(sizes) > 1
    assert found.predicted_mse == pytest.approx(whole.predicted_mse, rel=tolerance)


def test_programs_that_all_fail_are_an_error(monkeypatch):
    def failing(*arguments, **accuracy):
        raise dp.DesignError("the solver failed")

    monkeypatch.setattr(robust, "minimize_worst_error", failing)
    with pytest.raises(dp.DesignError, match="the solver failed"):
        dp.robust(TARGET, PAPER, mean_square=V)


def test_a_tolerance_that_is_not_reached_is_said(monkeypatch):
    monkeypatch.setattr(robust, "_GROWTH", (1 / 3,))
    with pytest.warns(dp.ToleranceWarning, match=r"worst MSE .* above the ideal, tolerance is 0\.0001"):
        dp.robust(SHORT, PAPER, mean_square=V, tolerance=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean_square": 0}, "mean_square must be a finite number above 0, got 0"),
        ({"mean_square": V, "lag": -1}, "lag must be an integer, at least 0"),
        ({"mean_square": V, "tolerance": 0}, "tolerance must be"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dp.robust(TARGET, PAPER, **arguments)


def test_several_events_are_refused():
    with pytest.raises(dp.DesignError, match="max_events must be 1 in a convex program"):
        dp.robust(TARGET, dp.Privacy(1, 1e-3, max_events=3), mean_square=V)


@pytest.mark.parametrize("lag", [None, 3])
def test_nothing_is_estimated_where_there_is_next_to_nothing(lag):
    target = dp.Filter([1], [1, -0.5])
    mechanism = dp.robust(target, PAPER, mean_square=1e-10, lag=lag)
    assert mechanism.predicted_mse == pytest.approx(1e-10 * 4, rel=1e-3)  # the gain of 2, squared
    assert mechanism.lower_bound_mse <= mechanism.ideal_mse <= mechanism.predicted_mse
    assert (mechanism.simulate(np.ones(50), seed=1).estimate == 0).all()


@pytest.mark.parametrize("lag", long_but([0, 5, None], [5]))
def test_at_any_power_it_is_zero_forcing_or_refused(lag):
    """The distortion, zero but for rounding, counts with the power."""
    forcing = designed(dp.zero_forcing, TARGET, PAPER)
    for power in (1e12, 1e24):
        found = dp.robust(TARGET, PAPER, mean_square=power, lag=lag)
        assert found.lower_bound_mse <= found.ideal_mse <= found.predicted_mse <= found.ideal_mse * (1 + 1e-3)
        assert found.ideal_mse == pytest.approx(forcing.ideal_mse, rel=1e-9)
        u = np.sqrt(power) * np.ones((1, 3000))
        estimate, _ = found.receiver.estimate(found.prefilter.filter(u).y)
        wanted = TARGET.filter(u).y[:, : 3000 - (lag or 0)]
        error = np.abs(estimate[:, lag or 0 :] - wanted)[:, 1000:-1000]
        steps = 8 * np.spacing(np.abs(wanted).max())  # what simulating it rounds by itself
        assert error.max() <= np.sqrt(found.predicted_mse - forcing.ideal_mse) + steps
    for power in (1e30, 1e300):
        with pytest.raises(dp.DesignError, match=r"mean_square must be at most 1e\+2\d for this .* use zero_forcing"):
            dp.robust(TARGET, PAPER, mean_square=power, lag=lag)


@pytest.mark.long
@pytest.mark.parametrize("mean_square", [0.25, 10.0])
def test_a_moving_average_at_powers_at_which_its_prefilter_had_no_inverse(mean_square):
    found = dp.robust(dp.Filter(np.ones(12) / 12), dp.Privacy(1, 1e-2), mean_square=mean_square)
    assert found.lower_bound_mse <= found.predicted_mse <= found.ideal_mse * (1 + 1e-3)


# --- large programs -------------------------------------------------------------------------------

AVERAGE = dp.Filter(np.full(6, 1 / 6))


def test_a_large_program_is_solved_on_fewer_angles_to_nearly_the_same_error(monkeypatch):
    small = dp.robust(AVERAGE, PAPER, mean_square=V, lag=2, tolerance=0.01)
    monkeypatch.setattr(robust_lower_bound, "_LARGE", 0)
    monkeypatch.setattr(robust_lower_bound, "MOST_VALUES", 1000)  # the bound is evaluated in pieces
    problem = Problem(AVERAGE, None, COST)
    basis = basis_for(problem, 2)
    grid, accuracy = robust_lower_bound.program_grid(problem, basis)
    assert len(grid.omega) < len(problem.grid(basis.poles, basis.taps // 2).omega)
    assert accuracy == 1e-4
    large = dp.robust(AVERAGE, PAPER, mean_square=V, lag=2, tolerance=0.01)
    assert large.ideal_mse == pytest.approx(small.ideal_mse, rel=2e-3)
    assert large.lower_bound_mse == pytest.approx(small.lower_bound_mse, rel=2e-3)
    assert large.lower_bound_mse <= min(large.ideal_mse, small.ideal_mse)
    assert large.predicted_mse <= large.ideal_mse * 1.01


def test_where_a_receiver_takes_too_large_a_program_it_is_the_product_over_the_prefilter(monkeypatch):
    monkeypatch.setattr(robust, "MOST_VALUES", 1000)
    solved = []

    def counted(*arguments, **accuracy):
        solved.append(arguments[-1])
        return minimize_worst_error(*arguments, **accuracy)

    monkeypatch.setattr(robust, "minimize_worst_error", counted)
    found = dp.robust(AVERAGE, PAPER, mean_square=V, lag=2, tolerance=0.01)
    assert solved == [noise_of_product]
    assert found.predicted_mse <= found.ideal_mse * 1.01


@pytest.mark.long
def test_a_moving_average_of_50_takes_seconds():
    found = dp.robust(dp.Filter(np.full(50, 1 / 50)), dp.Privacy(math.log(3), 0.05), mean_square=V, lag=20)
    assert found.ideal_mse == pytest.approx(0.0018891, rel=2e-3)  # of all angles, in minutes
    assert found.predicted_mse <= found.ideal_mse * 1.001
    assert found.ideal_mse <= found.lower_bound_mse * 1.006
