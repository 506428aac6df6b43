import copy
import itertools
import math
import pickle
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from helpers.chains import unit_normals
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import dpfast as dp
from dpfast._kernels.simulated_noise import NOISE
from dpfast.filters.toeplitz import square_root_series
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.operator_protocol import NotLinearError
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.mechanisms.strategy_sensitivity import first_columns

ALARM = 1e-6  # of a statistical test
PRIVACY = dp.Privacy(1.0, 0.05, max_change=2.0)
MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0.0, 1.0])
N = 12
TARGET = dp.Toeplitz([1, 0.5, -0.2], N)


def lower(f):
    return np.array([[f[i - j] if i >= j else 0.0 for j in range(len(f))] for i in range(len(f))])


def square_root(privacy=PRIVACY, target=TARGET, **options):
    c = Convolution(square_root_series(target.coefficients))
    return dp.MatrixMechanism("root", target, privacy, c, c, **options)


def biased(**options):
    """A strategy that sees every second output, and a reconstruction that repeats them."""
    keep = np.repeat(np.arange(N // 2) * 2, 2)
    rows = np.eye(N)[::2] @ lower(TARGET.coefficients)
    repeat = np.eye(N)[:, ::2][keep]
    return dp.MatrixMechanism("biased", TARGET, PRIVACY, Dense(rows), Dense(repeat), unbiased=False, **options)


# --- the guarantee --------------------------------------------------------------------------------


def largest_change(matrix, privacy, order):
    """By trying all events of a person, at all times, with both signs."""
    n, found = matrix.shape[1], 0.0
    for m in range(1, privacy.max_events + 1):
        for times in itertools.combinations(range(n), m):
            if all(b - a >= privacy.min_separation for a, b in itertools.pairwise(times)):
                for signs in itertools.product([-1, 1], repeat=m):
                    found = max(found, np.linalg.norm(matrix[:, times] @ signs, order))
    return privacy.max_change * found


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 6), st.sampled_from(["gaussian", "laplace"]))
def test_the_sensitivity_is_at_least_the_largest_change(seed, m, b, noise):
    n = 6
    privacy = dp.Privacy(1, 0.05, max_change=2.0, max_events=m, min_separation=b)
    entries = np.random.default_rng(seed).normal(size=(n, n))
    f = np.random.default_rng(seed + 1).normal(size=n)
    for strategy in (
        Dense(entries),
        Sparse.of(sparse.csr_array(entries)),
        Convolution(f),
        Convolution(0.8 ** np.arange(n)),
    ):
        reconstruction = Dense(np.eye(n))
        mechanism = dp.MatrixMechanism(
            "any", dp.running_sum(n), privacy, strategy, reconstruction, noise=noise, unbiased=False
        )
        order = 2 if noise == "gaussian" else 1
        change = largest_change(strategy.matrix(), privacy, order)
        assert mechanism.sensitivity >= change * (1 - 1e-12)
        one = m == 1 or b > n - 1
        decays = isinstance(strategy, Convolution) and strategy.coefficients[1] == 0.8
        if one or (decays and noise == "gaussian"):
            assert mechanism.sensitivity == pytest.approx(change, rel=1e-9)


def test_the_noise_is_that_of_the_sensitivity():
    gaussian, laplace = square_root(), square_root(noise="laplace")
    c = square_root_series(TARGET.coefficients)
    assert gaussian.noise_std == pytest.approx(PRIVACY.noise_multiplier * 2 * np.linalg.norm(c))
    assert laplace.noise_scale == pytest.approx(2 * np.abs(c).sum() / PRIVACY.epsilon)
    assert laplace.noise_std == pytest.approx(math.sqrt(2) * laplace.noise_scale)
    assert laplace.noise_scale >= 2 * np.abs(c).sum() / PRIVACY.epsilon


# --- errors ---------------------------------------------------------------------------------------


def test_step_errors_are_those_of_the_matrices():
    mechanism = biased(centre=0.2)
    c, b = mechanism.strategy.matrix(), mechanism.reconstruction.matrix()
    residual = b @ c - lower(TARGET.coefficients)
    covariance = 0.25 * 0.5 ** np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    noise = mechanism.noise_std**2 * (b**2).sum(axis=1)
    expected = noise + np.diag(residual @ covariance @ residual.T) + (residual.sum(axis=1) * (0.5 - 0.2)) ** 2
    np.testing.assert_allclose(mechanism.step_mse(MODEL), expected, rtol=1e-10)
    assert mechanism.predict(MODEL) == pytest.approx(expected.mean())
    assert mechanism.predicted_mse is None
    designed = biased(centre=0.2, model=MODEL)
    assert designed.predicted_mse == pytest.approx(expected.mean())
    assert designed.max_mse == pytest.approx(expected.max())


def test_an_unbiased_mechanism_errs_by_its_noise_alone():
    mechanism = square_root()
    c = square_root_series(TARGET.coefficients)
    expected = mechanism.noise_std**2 * np.cumsum(c**2)
    np.testing.assert_allclose(mechanism.step_mse(), expected, rtol=1e-12)
    np.testing.assert_array_equal(mechanism.step_mse(MODEL), mechanism.step_mse())
    assert mechanism.predicted_rmse == pytest.approx(math.sqrt(expected.mean()))


class Curved(NamedTuple):
    """A reconstruction that is no matrix."""

    shape: tuple = (N, N)

    def check(self):
        pass

    def apply(self, x):
        return np.tanh(x)

    def squared_rows(self):
        raise NotLinearError

    largest_l1 = squared_rows


def test_only_a_simulation_tells_the_error_of_what_is_not_linear():
    c = Convolution(TARGET.coefficients)
    mechanism = dp.MatrixMechanism("curved", TARGET, PRIVACY, c, Curved(), model=MODEL, unbiased=False)
    assert (mechanism.step_mse(), mechanism.predicted_mse, mechanism.max_mse) == (None, None, None)
    assert mechanism.predict(MODEL) is None
    assert "predicted RMSE  - (mean" in mechanism.summary()


# --- simulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [square_root(), biased(centre=0.7), square_root(noise="laplace")])
def test_simulations_are_those_of_a_naive_twin(mechanism):
    u = MODEL.sample(11, N, seed=4)
    rows = mechanism.strategy.shape[0]
    if mechanism.noise == "gaussian":
        noise = unit_normals(9, 11, rows)
    else:
        z = unit_normals(9, 11, 3 * rows)
        noise = np.sqrt(z[:, ::3] ** 2 + z[:, 1::3] ** 2) * z[:, 2::3]
    c, b = mechanism.strategy.matrix(), mechanism.reconstruction.matrix()
    v = (u - mechanism.centre) @ c.T + mechanism.noise_scale * noise
    estimate = v @ b.T + mechanism.centre * lower(TARGET.coefficients).sum(axis=1)
    paths = mechanism.simulate(u, seed=9)
    np.testing.assert_allclose(paths.privatized, v, atol=1e-11)
    np.testing.assert_allclose(paths.estimate, estimate, atol=1e-10)
    assert (paths.decisions, paths.lag) == (None, 0)
    again = mechanism.simulate(u.reshape(11, 1, N), seed=9)
    np.testing.assert_array_equal(again.estimate[:, 0], paths.estimate)
    np.testing.assert_array_equal(mechanism.simulate(u[:3], seed=9).estimate, paths.estimate[:3])


def test_one_stream_and_none():
    mechanism = square_root()
    u = MODEL.sample(2, N, seed=4)
    np.testing.assert_array_equal(mechanism.simulate(u[0], seed=1).estimate, mechanism.simulate(u, seed=1).estimate[0])
    assert mechanism.simulate(np.empty((0, N)), seed=1).estimate.shape == (0, N)


@pytest.mark.slow_nojit
def test_unit_noise_is_gaussian_or_laplace():
    for noise, law in (("gaussian", stats.norm), ("laplace", stats.laplace)):
        drawn = square_root(noise=noise).compiled()._unit_noise(5, 0, 4000)
        assert drawn.shape == (4000, N)
        assert stats.kstest(drawn.ravel(), law.cdf).pvalue > ALARM / 2


# --- what people see, and what is refused ---------------------------------------------------------


def test_the_summary_says_what_it_is():
    mechanism = biased(model=MODEL, noise="laplace", lag=None)
    text = mechanism.summary()
    for part in ("6 rows over a horizon of 12 steps", "laplace", "all of the horizon", "mean over the horizon"):
        assert part in text
    assert repr(mechanism) == f"<MatrixMechanism 'biased': 12 steps, predicted RMSE {mechanism.predicted_rmse:.6g}>"


def test_sources_are_declared_as_of_all_mechanisms():
    mechanism = square_root(options=(("horizon", N),)).with_sources(horizon="public")
    assert isinstance(mechanism, dp.MatrixMechanism)
    assert mechanism.sources["horizon"] == "public"
    with pytest.raises(ValueError, match="must be an input of this design"):
        mechanism.with_sources(lag="public")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: square_root(noise="uniform"), "noise must be"),
        (lambda: square_root().simulate(np.zeros(5), seed=1), "u must have the horizon's 12 steps"),
        (lambda: square_root().simulate(np.full(N, np.nan), seed=1), "u must be finite"),
        (lambda: square_root().simulate(np.zeros(N), seed=-1), "seed"),
        (
            lambda: dp.MatrixMechanism("x", TARGET, PRIVACY, Dense(np.eye(3)), Dense(np.eye(3))),
            r"strategy and reconstruction must be \(m, 12\) and \(12, m\)",
        ),
        (
            lambda: dp.MatrixMechanism("x", TARGET, PRIVACY, Dense(np.eye(N)), Dense(np.eye(N))),
            "unbiased must be False here",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_purpose_of_the_noise_is_that_of_all_mechanisms():
    twin = unit_normals(3, 2, N, purpose=NOISE)
    np.testing.assert_array_equal(square_root().compiled()._unit_noise(3, 0, 8)[:2], twin)


def test_laplace_noise_is_told_with_its_own_guarantee():
    assert "epsilon 1, delta 0.05 (exact calibration" in square_root().summary()
    assert "epsilon 1, delta 0 (Laplace noise)\n" in square_root(noise="laplace").summary()


# --- what the noise is computed from --------------------------------------------------------------


def one_step(strategy, **options):
    return dp.MatrixMechanism("any", dp.Toeplitz([1.0]), PRIVACY, strategy, Dense(np.zeros((1, 1))), **options)


def test_nothing_that_the_noise_is_for_can_change_once_it_is_known():
    given = np.eye(N)
    mechanism = dp.MatrixMechanism("own", TARGET, PRIVACY, Dense(given), Dense(lower(TARGET.coefficients)))
    scale = mechanism.noise_scale
    given *= 100
    assert mechanism.strategy.entries.max() == 1
    assert mechanism.noise_scale == scale
    for each in (mechanism, square_root(), pickle.loads(pickle.dumps(mechanism)), copy.deepcopy(mechanism)):
        for operator in (each.strategy, each.reconstruction):
            assert not any(x.flags.writeable for x in operator if isinstance(x, np.ndarray))


def test_a_pickle_keeps_no_noise():
    mechanism = square_root()
    mechanism.__dict__["noise_scale"] = 0.0
    assert pickle.loads(pickle.dumps(mechanism)).noise_scale == square_root().noise_scale


def test_small_integers_do_not_wrap_around_in_the_sensitivity():
    assert one_step(Dense(np.array([[100]], np.int8)), unbiased=False).sensitivity == 200


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (np.eye(1), "strategy must be an operator .* got a ndarray of shape"),
        (Dense(np.array([[np.nan]])), "strategy.entries must be finite"),
        (Dense(np.array([[2j]])), "strategy.entries must hold real numbers"),
        (Dense(np.ones(1)), "strategy cannot be used: entries must have 2 dimensions"),
        (Dense(np.zeros((1, 1))), "strategy must have a column"),
        (Dense(np.full((1, 1), 1e-200)), "strategy must have a column"),  # whose square is zero, and so the noise
        (Sparse(np.ones(2), np.array([0, 0]), np.array([0, 2]), 1), "grow within each row"),  # 2, that looks like √2
    ],
)
def test_strategies_of_which_the_norms_would_not_be_true_are_refused(strategy, said):
    with pytest.raises(ValueError, match=said):
        one_step(strategy, unbiased=False)


def test_an_unbiased_reconstruction_is_linear():
    with pytest.raises(ValueError, match="unbiased must be False with a reconstruction"):
        dp.MatrixMechanism("any", TARGET, PRIVACY, Dense(np.eye(N)), Curved())


def test_a_dense_receiver_has_a_longest_horizon():
    with pytest.raises(dp.DesignError, match="horizon must be at most 4096 for a dense receiver, got 4097"):
        square_root(target=dp.Toeplitz([1.0], 4097)).with_receiver(MODEL)


def test_a_strategy_that_is_not_linear_is_refused():
    with pytest.raises(ValueError, match="strategy must be linear"):
        dp.MatrixMechanism("any", TARGET, PRIVACY, Curved(), Dense(np.eye(N)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"privacy": None}, "privacy must be a Privacy, got None"),
        ({"target": [1.0]}, "target must be a Toeplitz"),
        ({"centre": math.nan}, "centre must be a finite number, got nan"),
        ({"lag": -1}, "lag must be an integer"),
        ({"model": "white"}, "model must be"),
    ],
)
def test_fields_of_other_kinds_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        replace(square_root(), **changed)


@pytest.mark.parametrize("b", [1, 2, 3, 7, 50])
def test_the_sum_of_columns_is_that_of_all_of_them(b):
    rng = np.random.default_rng(b)
    for n in (1, 2, 9, 40):
        c = np.sort(rng.random(n))[::-1]
        for m in range(1, 2 + (n - 1) // b):
            naive = np.zeros(n)
            for start in range(0, m * b, b):
                naive[start:] += c[: n - start]
            assert first_columns(c, m, b) == pytest.approx(naive @ naive, rel=1e-13)


def test_very_many_events_take_no_longer_than_few():
    """One addition for each event and step would be 10^11."""
    several = dp.Privacy(1, 1e-6, max_events=2**18)
    ones = dp.MatrixMechanism("sums", dp.running_sum(2**18), several, *(Convolution(x) for x in (np.ones(2**18), E0)))
    assert ones.sensitivity**2 == pytest.approx(sum(k * k for k in range(2**18 + 1)), rel=1e-9)


E0 = np.eye(1, 2**18)[0]
