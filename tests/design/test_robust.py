"""The worst input: closed forms, known values, certificates, and sinusoids through the realised filters."""

import math

import numpy as np
import pytest

import dpfast as dp
from dpfast.design import robust
from dpfast.design.prefilter import certificate
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.rational_basis import basis_for
from dpfast.design.prefilter.water_filling import robust_filling
from dpfast.design.programs.worst_error_program import minimize_worst_error, noise_of_product

EXAMPLE = dp.Filter([1, 0.995], [1, -0.995])
TARGET = dp.Filter([1], [1, -0.9])
PAPER = dp.Privacy(math.log(3), 0.05, calibration="paper")
COST = 1.75633987311476**2
LAGS = [0, 5, 20, None]
V = 0.25


@pytest.fixture(scope="module")
def designs():
    """To a wide tolerance but for one; that the smoother reaches a thousandth too is among the doctests."""
    return {
        lag: dp.robust(EXAMPLE, PAPER, mean_square=V, lag=lag, tolerance=1e-3 if lag == 0 else 0.01) for lag in LAGS
    }


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


@pytest.mark.parametrize(("lag", "rmse"), [(0, 6.381), (5, 5.422), (20, 5.205), (None, 5.177)])
def test_example(designs, lag, rmse):
    mechanism = designs[lag]
    assert mechanism.ideal_rmse == pytest.approx(rmse, abs=6e-4)
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + dict(mechanism.options)["tolerance"])
    assert mechanism.ideal_mse * (1 - 4e-4) <= mechanism.lower_bound_mse <= mechanism.ideal_mse * (1 + 1e-9)
    assert mechanism.predicted_mse >= mechanism.lower_bound_mse * (1 - 1e-9)
    assert mechanism.predicted_mse == mechanism.worst_case_mse(V)
    assert mechanism.lag == lag
    assert mechanism.mean_square == V
    assert mechanism.prefilter.order <= 6


def test_a_summary_says_that_its_figures_are_worst_cases(designs):
    text = designs[5].summary()
    assert "ideal RMSE      5.42" in text
    assert text.count("(worst input of mean square 0.25)") == 2


def test_errors_fall_with_the_lag(designs):
    errors = [designs[lag].ideal_mse for lag in LAGS]
    assert errors == sorted(errors, reverse=True)
    assert designs[0].ideal_mse < dp.zero_forcing(EXAMPLE, PAPER, tolerance=0.3).ideal_mse


@pytest.mark.parametrize("lag", LAGS)
def test_a_sinusoid_at_the_worst_frequency_comes_near_to_the_worst_case(designs, lag):
    distortion, noise = worst_sinusoid(designs[lag], V)
    assert distortion + noise == pytest.approx(designs[lag].predicted_mse, rel=1e-4)
    assert distortion + noise <= designs[lag].predicted_mse * (1 + 1e-7)


@pytest.mark.parametrize("lag", LAGS)
@pytest.mark.parametrize("model", [dp.ARMA([0.5]), dp.ARMA([0.5 * math.sqrt(1 - 0.99**2)], [1, -0.99])])
def test_no_signal_of_that_power_is_worse(designs, lag, model):
    assert model.variance == pytest.approx(V)
    assert designs[lag].predict(model) <= designs[lag].predicted_mse
    # nor better than what knows it
    assert designs[lag].predict(model) >= dp.lmmse(EXAMPLE, PAPER, model, tolerance=0.3).ideal_mse * (1 - 1e-9)


@pytest.mark.parametrize("lag", [0, None])
def test_from_nothing_to_zero_forcing_with_the_power(lag):
    powers = [1e-6, 1.0, 1e7]
    found = [dp.robust(TARGET, PAPER, mean_square=v, lag=lag, tolerance=0.1) for v in powers]
    errors = [x.ideal_mse for x in found]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(1e-6 * TARGET.hinf_norm() ** 2, rel=0.03)  # hardly any K, no noise
    assert errors[-1] == pytest.approx(dp.zero_forcing(TARGET, PAPER, tolerance=0.3).ideal_mse, rel=1e-3)
    assert all(x.predicted_mse <= x.ideal_mse * 1.1 for x in found)


@pytest.mark.parametrize("lag", [0, 3, None])
def test_a_target_of_one_has_a_constant(lag):
    """K = k: V (1 - k)² + c²k² is least at k = V/(V + c²)."""
    mechanism = dp.robust(dp.Filter([1]), PAPER, mean_square=V, lag=lag)
    assert mechanism.ideal_mse == pytest.approx(V * COST / (V + COST), rel=1e-6)
    assert mechanism.lower_bound_mse == pytest.approx(mechanism.ideal_mse, rel=1e-6)


@pytest.mark.parametrize(
    "target",
    [dp.Filter([1, 0.2], [1, -0.9, 0.7]), dp.Filter([1], [1, -0.9999]), dp.Filter([1, -1])],
    ids=["resonator", "pole .9999", "difference"],
)
def test_smoother_on_a_dense_grid(target):
    omega = (np.arange(2**18) + 0.5) * np.pi / 2**18
    gain = np.abs(target.response(omega))
    tau = np.geomspace(1e-3, gain.max(), 2000)[:-1]
    scanned = min(V * t**2 + COST * np.mean(np.maximum(gain - t, 0)) ** 2 for t in tau)
    filling = robust_filling(Problem(target, None, COST), V)
    assert filling.mse == pytest.approx(scanned, rel=2e-4)
    assert filling.mse <= scanned * (1 + 1e-6)
    mechanism = dp.robust(target, PAPER, mean_square=V, tolerance=0.01)
    assert mechanism.ideal_mse == pytest.approx(filling.mse, rel=1e-9)
    assert filling.mse * (1 - 1e-9) <= mechanism.predicted_mse <= filling.mse * 1.01


@pytest.mark.parametrize(("target", "lag"), [(dp.Filter([1], [1, -0.9999]), 0), (dp.Filter([1, -2]), 5)])
def test_other_targets_at_a_lag(target, lag):
    mechanism = dp.robust(target, PAPER, mean_square=V, lag=lag)
    assert mechanism.ideal_mse * (1 - 2e-3) <= mechanism.lower_bound_mse <= mechanism.ideal_mse
    assert mechanism.lower_bound_mse <= mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1e-3)


def test_a_certificate_holds_whatever_the_solver_found(monkeypatch):
    problem = Problem(TARGET, None, COST)
    basis = basis_for(problem, 2)
    best = certificate.robust_lower_bound(problem, V, 2, basis, "CLARABEL")
    solution = certificate._solve_dual
    solved = []
    monkeypatch.setattr(
        certificate, "_solve_dual", lambda *arguments: solved.append(solution(*arguments)) or solved[-1]
    )
    certificate.robust_lower_bound(problem, V, 2, basis, "CLARABEL")
    coefficients, largest, size = solved[0]
    ideal = dp.robust(TARGET, PAPER, mean_square=V, lag=2).ideal_mse
    assert 0.998 * ideal < best <= ideal
    for seed in range(10):
        noise = 0.1 * np.random.default_rng(seed).standard_normal(len(coefficients) + 2)
        other = coefficients + noise[2:], largest * (1 + noise[0]), size * (1 + noise[1])
        monkeypatch.setattr(certificate, "_solve_dual", lambda *_, other=other: other)
        assert certificate.robust_lower_bound(problem, V, 2, basis, "CLARABEL") < best


def test_the_ideal_is_not_above_what_is_reached(monkeypatch):
    """Where the program had fewer functions than the receiver."""
    monkeypatch.setattr(robust, "_RICHNESS", 1 / 3)
    monkeypatch.setattr(robust, "_GROWTH", (2.0,))
    found = dp.robust(EXAMPLE, PAPER, mean_square=V, lag=5)
    assert found.lower_bound_mse <= found.ideal_mse <= found.predicted_mse


@pytest.mark.parametrize("lag", [0, None])
def test_a_program_that_fails_is_left_out(monkeypatch, lag):
    """As solvers do, on some machines, for some numbers of functions; others do, and at a lag K/G."""
    sizes, whole = set(), dp.robust(TARGET, PAPER, mean_square=V, lag=lag)

    def failing(weight, grid, wanted, functions, noise, *constraint):
        sizes.add(functions.shape[1])
        if noise is not noise_of_product and functions.shape[1] == min(sizes):
            raise dp.DesignError("the solver failed")
        return minimize_worst_error(weight, grid, wanted, functions, noise, *constraint)

    monkeypatch.setattr(robust, "minimize_worst_error", failing)
    found = dp.robust(TARGET, PAPER, mean_square=V, lag=lag)
    assert len(sizes) > 1
    assert found.predicted_mse == pytest.approx(whole.predicted_mse, rel=1e-3)


def test_programs_that_all_fail_are_an_error(monkeypatch):
    def failing(*arguments):
        raise dp.DesignError("the solver failed")

    monkeypatch.setattr(robust, "minimize_worst_error", failing)
    with pytest.raises(dp.DesignError, match="the solver failed"):
        dp.robust(TARGET, PAPER, mean_square=V)


def test_a_tolerance_that_is_not_reached_is_said(monkeypatch):
    monkeypatch.setattr(robust, "_GROWTH", (1 / 3,))
    with pytest.warns(dp.ToleranceWarning, match=r"worst MSE .* above the ideal, tolerance is 0\.0001"):
        dp.robust(TARGET, PAPER, mean_square=V, tolerance=1e-4)


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


@pytest.mark.parametrize("lag", [0, 5, None])
def test_at_any_power_it_is_zero_forcing_or_refused(lag):
    """The distortion, zero but for rounding, counts with the power."""
    forcing = dp.zero_forcing(TARGET, PAPER)
    for power in (1e12, 1e24):
        found = dp.robust(TARGET, PAPER, mean_square=power, lag=lag)
        assert found.lower_bound_mse <= found.ideal_mse <= found.predicted_mse <= found.ideal_mse * (1 + 1e-3)
        assert found.ideal_mse == pytest.approx(forcing.ideal_mse, rel=1e-9)
        u = np.sqrt(power) * np.ones((1, 3000))
        estimate, _ = found.receiver.estimate(found.prefilter.filter(u).y)
        wanted = TARGET.filter(u).y[:, : 3000 - (lag or 0)]
        error = (estimate[:, lag or 0 :] - wanted)[:, 1000:-1000]
        assert np.max(error**2) <= found.predicted_mse - forcing.ideal_mse
    for power in (1e30, 1e300):
        with pytest.raises(dp.DesignError, match=r"mean_square must be at most 1e\+2\d for this .* use zero_forcing"):
            dp.robust(TARGET, PAPER, mean_square=power, lag=lag)


@pytest.mark.long
@pytest.mark.parametrize("mean_square", [0.25, 10.0])
def test_a_moving_average_at_powers_at_which_its_prefilter_had_no_inverse(mean_square):
    found = dp.robust(dp.Filter(np.ones(12) / 12), dp.Privacy(1, 1e-2), mean_square=mean_square)
    assert found.lower_bound_mse <= found.predicted_mse <= found.ideal_mse * (1 + 1e-3)
