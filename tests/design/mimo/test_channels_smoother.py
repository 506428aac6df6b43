"""Smoothers of several streams: what waiting for all of v leaves, by dense estimation, and lags that reach it."""

import math

import numpy as np
import pytest

import dpfast as dp

LN3 = math.log(3)
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
SHORT = dp.FilterMatrix([[dp.Filter([0.5, 0.3]), dp.Filter([1.0])], [dp.Filter([0.0]), dp.Filter([0.2, 0, -0.4])]])
RELATED = dp.VectorARMA([[[0.6, 0.2], [0.0, 0.5]]], innovation_covariance=[[1.0, 0.4], [0.4, 0.8]])


def autoregression(pole, variance):
    return dp.ARMA([math.sqrt(variance * (1 - pole**2))], [1, -pole])


MODELS = [autoregression(0.5, 0.25), autoregression(0.5, 0.25), autoregression(0.8, 1.0)]


def privacy(adjacency):
    return dp.Privacy(LN3, 0.05, adjacency=adjacency)


@pytest.fixture(scope="module")
def smoothers():
    return {x: dp.lmmse(TARGET, privacy(x), MODELS) for x in ("one_input", "each_input")}


@pytest.mark.parametrize(("adjacency", "least"), [("one_input", 0.054865), ("each_input", 0.091040)])
def test_the_values_that_other_programs_found(smoothers, adjacency, least):
    made = smoothers[adjacency]
    assert made.lower_bound_mse == pytest.approx(least, abs=6e-7)
    assert made.ideal_mse == made.lower_bound_mse
    assert made.lower_bound_mse <= made.predicted_mse <= 1.0012 * least  # the tolerance, and what the lag leaves
    assert (made.name, dict(made.options)["lag"]) == ("LMMSE smoother", None)


def test_no_shorter_lag_would_do(smoothers):
    made = smoothers["one_input"]
    smoothed = made.smoothed_mse.sum()
    assert made.predicted_mse <= (1 + 1e-4) * smoothed
    half = dp.lmmse(TARGET, made.privacy, MODELS, prefilter=made.prefilter, lag=made.lag // 2)
    assert half.predicted_mse > (1 + 1e-4) * smoothed
    np.testing.assert_allclose(half.smoothed_mse, made.smoothed_mse, rtol=1e-10)  # whatever the lag is


@pytest.mark.parametrize("prefilter", [SHORT, dp.FilterMatrix([[dp.Filter([1.0, 0.5]), dp.Filter([0.7])]])])
def test_what_all_of_v_leaves_is_that_of_dense_linear_estimation(prefilter):
    """An output in the middle of a long v, estimated from all of it; models and filters are written out by hand."""
    made = dp.lmmse(SHORT, privacy("one_input"), RELATED, prefilter=prefilter, lag=2)
    n, middle = 161, 80
    a, innovations = np.array([[0.6, 0.2], [0.0, 0.5]]), np.array([[1.0, 0.4], [0.4, 0.8]])
    stationary = np.zeros((2, 2))
    for _ in range(400):
        stationary = a @ stationary @ a.T + innovations
    powers = [np.linalg.matrix_power(a, k) @ stationary for k in range(n)]
    cov = np.array([[powers[s - t] if s >= t else powers[t - s].T for t in range(n)] for s in range(n)])

    def taps(system, length=4):
        return [[np.pad(x.b, (0, length - len(x.b)))[:length] for x in row] for row in system.rows]

    def matrix(system):
        """Rows (row, time) of a causal filter of u (time, input)."""
        f, q = taps(system), system.shape[0]
        full = np.zeros((q, n, n, 2))
        for i in range(q):
            for j in range(2):
                for k, x in enumerate(f[i][j]):
                    for t in range(k, n):
                        full[i, t, t - k, j] = x
        return full.reshape(q * n, n * 2)

    u = cov.transpose(0, 2, 1, 3).reshape(n * 2, n * 2)
    g, f = matrix(prefilter), matrix(SHORT)[[middle, n + middle]]
    v = g @ u @ g.T + made.noise_std**2 * np.eye(len(g))
    cross = f @ u @ g.T
    left = np.diag(f @ u @ f.T - cross @ np.linalg.solve(v, cross.T))
    np.testing.assert_allclose(made.smoothed_mse, left, rtol=1e-8)


def test_one_stream_has_the_smoother_of_one_stream():
    demand, model = dp.Privacy(LN3, 0.05), autoregression(0.8, 1.0)
    scalar, several = dp.lmmse(SLOW, demand, model), dp.lmmse(dp.FilterMatrix([[SLOW]]), demand, [model])
    assert several.lower_bound_mse == pytest.approx(scalar.lower_bound_mse, rel=1e-10)
    np.testing.assert_allclose(several.smoothed_mse, [scalar.predicted_mse], rtol=1e-9)
    assert scalar.predicted_mse <= several.predicted_mse <= (1 + 1e-4) * scalar.predicted_mse


def test_streams_that_depend_on_one_another_have_one_and_so_has_the_optimum():
    made = dp.lmmse(SHORT, privacy("one_input"), RELATED, tolerance=0.1)
    assert made.lower_bound_mse <= made.predicted_mse <= (1 + 1e-4) * made.smoothed_mse.sum()
    independent = [autoregression(0.5, 1.0), autoregression(0.2, 1.0)]
    best = dp.optimal(SHORT, privacy("one_input"), independent, lag="smoother")
    assert best.name == "optimal smoother"
    assert best.predicted_mse == dp.lmmse(SHORT, privacy("one_input"), independent).predicted_mse


def test_it_can_be_released_and_kept(smoothers, tmp_path):
    made = smoothers["one_input"]
    plan = dp.exact(made, dp.Inputs(-5, 5, n_streams=3))
    assert plan.lag == made.lag
    assert sum(plan.output_mse) == pytest.approx(made.predicted_mse, rel=3e-3)
    dp.save(made, tmp_path / "smoother.json")
    again = dp.load(tmp_path / "smoother.json")
    assert (again.lag, again.options) == (made.lag, made.options)


def test_without_models_nothing_is_known_of_waiting():
    assert dp.zero_forcing(TARGET, privacy("one_input"), tolerance=0.1).smoothed_mse is None


def test_lags_that_are_not_found_are_said(monkeypatch):
    monkeypatch.setattr("dpfast._support.validation.MAX_LAG", 16)
    with pytest.raises(dp.DesignError, match="an estimate that is 16 samples late is not yet as near"):
        dp.lmmse(dp.FilterMatrix([[dp.Filter([0.001], [1, -0.999])]]), dp.Privacy(LN3, 0.05), [MODELS[2]])


def test_a_receiver_of_too_many_states_is_not_said_of_a_lag_that_nobody_gave():
    slow = dp.Filter([0.001], [1, -0.999])
    target = dp.FilterMatrix([[slow, slow], [slow, 0]])
    with pytest.raises(dp.DesignError, match=r"lag must be a number of samples here: .+256 samples late .+too many"):
        dp.lmmse(target, dp.Privacy(1, 1e-6, adjacency="one_input"), RELATED, tolerance=0.1)
