"""The constant, and the part of the true output's variance that others explain."""

import numpy as np
import pytest
from scipy import linalg, signal

import dpfast as dp
from dpfast.signals.output_variance import explained_share, output_variance, step_variances

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])  # covariance 2^-|k| / 4
MODELS = {
    "chain": (CHAIN, [0.5 * np.sqrt(0.75)], [1, -0.5]),
    "ARMA": (dp.ARMA([1, 0.4], [1, -1.2, 0.5], innovation_std=2, mean=3), [2, 0.8], [1, -1.2, 0.5]),
    "white": (dp.IndependentLevels([0, 1, 4], [0.5, 0.25, 0.25]), [np.sqrt(2.6875)], [1]),
}
TARGETS = {
    "paper": ([1, 0.995], [1, -0.995]),
    "moving average": (np.ones(12) / 12, [1]),
    "resonator": ([1], [1, -1.6454483, 0.9025]),
    "near 1": ([1], [1, -0.99997]),
}
PRIVACY = dp.Privacy(1, 1e-6)


def by_lyapunov(b, a):
    """Variance of white noise behind b/a."""
    n = max(len(a), len(b))
    b, a = np.pad(np.asarray(b, float), (0, n - len(b))), np.pad(np.asarray(a, float), (0, n - len(a)))
    system = signal.tf2ss(b, a)
    covariance = linalg.solve_discrete_lyapunov(system[0], system[1] @ system[1].T)
    return (system[2] @ covariance @ system[2].T + system[3] @ system[3].T).item()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", TARGETS)
def test_its_error_is_the_variance_of_the_output_by_a_lyapunov_equation(model, target):
    (stream, *shaping), (b, a) = MODELS[model], TARGETS[target]
    wanted = by_lyapunov(np.convolve(b, shaping[0]), np.convolve(a, shaping[1]))
    mechanism = dp.constant(dp.Filter(b, a), stream)
    assert mechanism.predicted_mse == pytest.approx(wanted, rel=1e-8)
    assert mechanism.predict(stream) == mechanism.predicted_mse
    assert (mechanism.explained, mechanism.lag) == (0.0, 0)


def covariance(n):
    """Of the chain, by its definition."""
    return 0.25 * 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


@pytest.mark.parametrize("target", [dp.running_sum(40), dp.polynomial_decay(1, 40), dp.Filter([1, 2], [1, -0.9])])
def test_from_a_start_it_is_that_of_dense_matrices(target):
    f = target.coefficients if isinstance(target, dp.Toeplitz) else target.impulse(40)
    a = linalg.toeplitz(f, np.zeros(40))
    mechanism = dp.constant(target, CHAIN)
    np.testing.assert_allclose(mechanism.step_mse(40), np.diag(a @ covariance(40) @ a.T), rtol=1e-11)
    np.testing.assert_allclose(mechanism.expected(40), a @ np.full(40, 0.5), rtol=1e-12)
    other = dp.ARMA([1], mean=2.0)  # white: of variance 1, and 1.5 away in the mean
    wanted = (a**2).sum(axis=1) + (1.5 * a.sum(axis=1)) ** 2
    np.testing.assert_allclose(mechanism.step_mse(40, other), wanted, rtol=1e-11)
    if isinstance(target, dp.Toeplitz):
        assert mechanism.predicted_mse == pytest.approx(mechanism.step_mse().mean(), rel=1e-12)
        assert mechanism.predict(other) == pytest.approx(wanted.mean(), rel=1e-11)


def test_on_another_model_a_wrong_mean_costs_its_square():
    mechanism = dp.constant(dp.Filter([1], [1, -0.5]), CHAIN)
    assert mechanism.predict(dp.ARMA([1], mean=2.0)) == pytest.approx(4 / 3 + (2 * 1.5) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("target", "burn_in"), [(dp.Filter([1], [1, -0.9]), None), (dp.Filter([1], [1, -0.9]), 0), (dp.running_sum(100), 0)]
)
def test_a_study_finds_that_error(target, burn_in):
    result = dp.monte_carlo(
        dp.constant(target, CHAIN), CHAIN, n_streams=2000, n_samples=100, seed=1, burn_in=burn_in, confidence=1 - 1e-6
    )["constant"]
    low, high = result.interval
    assert low < result.predicted_rmse < high
    assert result.explained == pytest.approx(0, abs=0.2)


def test_simulated_it_says_the_mean_whatever_comes():
    mechanism = dp.constant(dp.Filter([1], [1, -0.5]), CHAIN)
    paths = mechanism.simulate(np.random.default_rng(1).random((3, 4)), seed=1)
    np.testing.assert_allclose(paths.estimate, np.tile([0.5, 0.75, 0.875, 0.9375], (3, 1)), rtol=1e-15)
    assert not paths.privatized.any()
    assert paths.decisions is None
    assert paths.lag == 0
    with pytest.raises(ValueError, match="u must have the horizon's 5 steps"):
        dp.constant(dp.running_sum(5), CHAIN).simulate([1, 2], seed=1)
    with pytest.raises(ValueError, match="seed must be"):
        mechanism.simulate([1, 2], seed=-1)


def test_there_is_nothing_to_release(tmp_path):
    with pytest.raises(dp.ReleaseError, match="publishes nothing of the data"):
        dp.release(dp.constant(dp.Filter([1.0]), CHAIN), np.array([1, 2]), tmp_path / "store", dp.Inputs(0, 1))
    assert list(tmp_path.iterdir()) == []


def test_what_is_private_of_it_is_said():
    mechanism = dp.constant(dp.Filter([1.0]), CHAIN)
    assert "nothing of the data is published" in mechanism.summary()
    fitted = dp.ARMA.fit(np.random.default_rng(1).random(50), 1)
    assert "the mean was fitted to private data" in dp.constant(dp.Filter([1.0]), fitted).summary()
    assert "<table>" in mechanism._repr_html_()
    assert repr(mechanism) == "<Constant 'constant': predicted RMSE 0.5>"


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="target must be"):
        dp.constant([1, 2], CHAIN)
    with pytest.raises(ValueError, match="model must be"):
        dp.constant(dp.Filter([1.0]), "chain")
    with pytest.raises(ValueError, match="name must be"):
        dp.constant(dp.Filter([1.0]), CHAIN, name=1)
    with pytest.raises(ValueError, match="n must be"):
        dp.constant(dp.running_sum(5), CHAIN).expected(6)


# --- what others explain


def test_white_input_behind_white_noise_is_explained_by_the_share_of_the_signal():
    privacy, model = dp.Privacy.from_gdp(1, 1e-6), dp.ARMA([1], innovation_std=3.0)
    mechanism = dp.lmmse(dp.Filter([1.0]), privacy, model, lag=0, prefilter=dp.Filter([1.0]))
    assert mechanism.explained == pytest.approx(9 / (9 + 1), rel=1e-9)  # σ² is 1
    assert "90.0% of the variance of the true output; the constant errs by 3\n" in f"{mechanism.summary()}\n"


def test_the_error_of_the_constant_keeps_its_digits_where_all_is_explained():
    """The noise is a billionth of the signal: 1 - explained has no right digit."""
    privacy, model = dp.Privacy.from_gdp(1, 1e-6), dp.ARMA([1], [1, -0.5], innovation_std=1e9)
    mechanism = dp.lmmse(dp.Filter([1.0, 0.7]), privacy, model, lag=0, prefilter=dp.Filter([1.0]))
    wanted = (1e18 / 0.75 * (1 + 0.49 + 2 * 0.7 * 0.5)) ** 0.5
    assert mechanism.explained == pytest.approx(1, abs=1e-15)
    assert f"the constant errs by {wanted:.6g}\n" in f"{mechanism.summary()}\n"
    plan = dp.exact(mechanism, dp.Inputs(-(2**30), 2**30))
    assert plan.constant_rmse_if_model_holds == pytest.approx(wanted, rel=1e-9)


def test_over_a_horizon_both_are_means_over_its_steps():
    target = dp.running_sum(20)
    mechanism = dp.optimal_factorization(target, PRIVACY, model=CHAIN)
    a = linalg.toeplitz(np.ones(20), np.zeros(20))
    wanted = 1 - mechanism.predicted_mse / np.diag(a @ covariance(20) @ a.T).mean()
    assert mechanism.explained == pytest.approx(wanted, rel=1e-9)


def test_what_is_worse_than_the_mean_explains_less_than_nothing():
    study = dp.monte_carlo(dp.input_perturbation(dp.Filter([1.0]), PRIVACY), CHAIN, n_streams=64, n_samples=100, seed=1)
    assert study["input perturbation"].explained < -50
    assert study.constants() == pytest.approx({"constant": 0.5}, rel=1e-12)


@pytest.mark.parametrize(
    ("design", "given", "options"),
    [
        (dp.zero_forcing, (dp.Filter([1, 1]), PRIVACY), {"tolerance": 0.3}),
        (dp.robust, (dp.Filter([1, 1]), PRIVACY), {"mean_square": 1.0, "tolerance": 0.3}),
        (dp.decision_feedback, (dp.Filter([1, 1]), PRIVACY, CHAIN), {"tolerance": 0.3}),
        (dp.square_root, (dp.running_sum(4), PRIVACY), {}),
    ],
)
def test_without_a_model_or_a_prediction_it_is_not_known(design, given, options):
    assert design(*given, **options).explained is None


def test_an_output_that_does_not_vary_is_not_explained():
    assert explained_share(1.0, 0.0) is None
    assert explained_share(None, 1.0) is None


def test_a_study_of_several_targets_has_a_constant_for_each():
    mechanisms = [dp.zero_forcing(dp.Filter([1]), PRIVACY), dp.zero_forcing(dp.Filter([2]), PRIVACY, name="twice")]
    study = dp.monte_carlo(mechanisms, CHAIN, n_streams=8, n_samples=10, seed=1)
    assert study.constants() == pytest.approx({"constant for LZF": 0.5, "constant for twice": 1.0}, rel=1e-12)
    given = dp.monte_carlo(dp.constant(dp.Filter([1]), CHAIN), CHAIN, n_streams=8, n_samples=10, seed=1)
    assert given.constants() == {}


def test_variances_of_steps_tend_to_that_of_the_settled_output():
    target = dp.Filter([1], [1, -0.9])
    steps = step_variances(target, CHAIN, 400)
    assert steps[-1] == pytest.approx(output_variance(target, CHAIN), rel=1e-9)
    assert (np.diff(steps) > -1e-12).all()
