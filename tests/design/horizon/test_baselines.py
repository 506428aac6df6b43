"""Mechanisms over a horizon: published errors, and dense matrices of small ones."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.square_root import square_root
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz

UNIT = dp.Privacy.from_gdp(1, 1e-6)
EXAMPLE = dp.Filter([1, 0.995], [1, -0.995])
SEEDS = st.integers(0, 10**6)
LAPLACE = {"noise": "laplace"}
DESIGNS = {
    "square root": square_root,
    "BLT": lambda target, privacy: buffered_toeplitz(target, privacy, n_buffers=1),
    "tree": lambda target, privacy: binary_tree(target, privacy, estimator="plain"),
    "Honaker": binary_tree,
    "Laplace tree": lambda target, privacy: binary_tree(target, privacy, **LAPLACE),
    "decayed": decayed_sum,
    "Laplace decayed": lambda target, privacy: decayed_sum(target, privacy, **LAPLACE),
}


def lower(f):
    return np.array([[f[t - k] if k <= t else 0.0 for k in range(len(f))] for t in range(len(f))])


def errors(mechanism):
    """Largest and mean, root mean square, in units of the noise multiplier."""
    k = UNIT.noise_multiplier
    return math.sqrt(mechanism.max_mse) / k, mechanism.predicted_rmse / k


# --- published figures ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [(8, 8.485, 6.003), (10, 10.488, 7.417), (12, 12.490, 8.832), (14, 14.491, 10.247), (16, 16.492, 11.662)],
)
def test_plain_trees_have_the_published_errors(power, largest, mean):
    found = binary_tree(dp.running_sum(2**power), UNIT, estimator="plain")
    assert errors(found) == pytest.approx((largest, mean), abs=5.1e-4)
    assert errors(found)[0] == pytest.approx(math.sqrt(power * (power + 1)), rel=1e-6)


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [
        (8, 2.8311, 2.6688),
        (10, 3.2726, 3.1098),
        (12, 3.7139, 3.5513),
        (14, 4.1552, 3.9929),
        pytest.param(16, 4.5964, 4.4344, marks=pytest.mark.long),
    ],
)
def test_square_roots_of_running_sums_have_the_published_errors(power, largest, mean):
    assert errors(square_root(dp.running_sum(2**power), UNIT)) == pytest.approx((largest, mean), abs=5.1e-5)


@pytest.mark.parametrize(
    ("power", "largest", "mean"),
    [
        (8, 4.239358, 4.123326),
        (10, 4.253987, 4.222870),
        (12, 4.253989, 4.246231),
        (14, 4.253989, 4.252051),
    ],
)
def test_square_roots_of_the_example_have_the_published_errors(power, largest, mean):
    found = square_root(EXAMPLE, UNIT, horizon=2**power)
    assert errors(found) == pytest.approx((largest, mean), abs=6e-7)


def test_square_roots_tend_to_zero_forcing():
    stationary = dp.zero_forcing(EXAMPLE, UNIT).ideal_rmse / UNIT.noise_multiplier
    assert errors(square_root(EXAMPLE, UNIT, horizon=2**13))[0] == pytest.approx(stationary, rel=1e-7)


@pytest.mark.parametrize(("n", "largest"), [(8, "9.6"), (16, "3.9e+04"), (32, "1.7e+13")])
def test_square_roots_are_useless_off_minimum_phase(n, largest):
    assert f"{errors(square_root([1, -2], UNIT, horizon=n))[0]:.2g}" == largest


@pytest.mark.parametrize("n", [36, 64, 2048])
def test_square_roots_that_rounding_would_spoil_are_refused(n):
    with pytest.raises(dp.DesignError, match=f"target must have a square root .* got {n} steps: .*use zero_forcing"):
        square_root([1, -2], UNIT, horizon=n)


@pytest.mark.parametrize(("n", "published"), [(2**8, 2.8318), (2**10, 3.2776)])
def test_blts_have_the_published_errors(n, published):
    assert errors(buffered_toeplitz(dp.running_sum(n), UNIT, error="max"))[0] <= published + 1e-4


# --- against dense matrices -----------------------------------------------------------------------


def largest_change(matrix, privacy, order):
    """By trying all events of a person, at all times, with both signs."""
    found = 0.0
    for m in range(1, privacy.max_events + 1):
        for times in itertools.combinations(range(matrix.shape[1]), m):
            if all(b - a >= privacy.min_separation for a, b in itertools.pairwise(times)):
                for signs in itertools.product([-1, 1], repeat=m):
                    found = max(found, np.linalg.norm(matrix[:, times] @ signs, order))
    return privacy.max_change * found


@pytest.mark.parametrize("design", DESIGNS)
@given(st.integers(1, 24), st.sampled_from([1.0, -2.5]))
def test_errors_are_those_of_the_dense_matrices(design, n, gain):
    privacy = dp.Privacy(0.7, 0.01, max_change=3.0)
    mechanism = DESIGNS[design](dp.Toeplitz(gain * np.ones(n)), privacy)
    C, B = mechanism.strategy.matrix(), mechanism.reconstruction.matrix()
    np.testing.assert_allclose(B @ C, gain * np.tri(n), atol=1e-10)
    if mechanism.noise == "laplace":
        variance = 2 * (largest_change(C, privacy, 1) / 0.7) ** 2
    else:
        variance = (privacy.noise_multiplier * largest_change(C, privacy, 2)) ** 2
    np.testing.assert_allclose(mechanism.step_mse(), variance * (B**2).sum(axis=1), rtol=1e-8)
    if mechanism.ideal_mse is not None:
        assert mechanism.ideal_mse == pytest.approx(mechanism.predicted_mse, rel=1e-10)


@pytest.mark.parametrize("design", ["square root", "BLT", "decayed", "Laplace decayed"])
@given(SEEDS)
def test_any_target_is_reconstructed_without_bias(design, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    f = rng.normal(size=n) * 0.7 ** np.arange(n)
    f[: rng.integers(n)] = 0.0
    f[np.argmax(f != 0)] = rng.choice([-3.0, 3.0])  # so that a root does not grow
    mechanism = DESIGNS[design](list(f), UNIT)
    assert mechanism.lag == 0
    assert mechanism.unbiased
    B, C = mechanism.reconstruction.matrix(), mechanism.strategy.matrix()
    np.testing.assert_allclose(B @ C, lower(f), atol=1e-8 if design == "square root" else 1e-10)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("m", "b"), [(1, 1), (2, 1), (3, 2)])
def test_the_noise_is_enough_for_all_events_of_a_person(design, m, b):
    n = 9
    privacy = dp.Privacy(1.0, 0.05, max_events=m, min_separation=b, max_change=2.0)
    mechanism = DESIGNS[design](dp.running_sum(n), privacy)
    order = 1 if mechanism.noise == "laplace" else 2
    truth = largest_change(mechanism.strategy.matrix(), privacy, order)
    assert mechanism.sensitivity >= truth * (1 - 1e-12)
    if design in {"square root", "BLT"} or m == 1:  # non-negative and non-increasing
        assert mechanism.sensitivity == pytest.approx(truth, rel=1e-9)


def test_laplace_noise_is_private_without_delta():
    n = 100
    found = binary_tree(dp.running_sum(n), dp.Privacy(0.5, 1e-9, max_change=3.0), estimator="plain", **LAPLACE)
    assert found.sensitivity == 3 * 7  # 7 levels: nodes of 1, 2, ..., 64 steps
    assert found.noise_std == pytest.approx(math.sqrt(2) * 21 / 0.5, rel=1e-8)
    assert found.predicted_mse == pytest.approx(
        2 * (21 / 0.5) ** 2 * np.mean([t.bit_count() for t in range(1, n + 1)]), rel=1e-8
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_simulated_errors_have_the_predicted_mean(design):
    n, streams = 48, 2000
    mechanism = DESIGNS[design](dp.running_sum(n), UNIT)
    u = np.random.default_rng(1).normal(size=(streams, n))
    paths = mechanism.simulate(u, seed=7)
    squares = ((paths.estimate - np.cumsum(u, axis=1)) ** 2).mean(axis=1)
    # 5 standard errors of the mean of 2000 streams: a false alarm in less than 1e-6 of runs
    assert abs(squares.mean() - mechanism.predicted_mse) < 5 * squares.std() / math.sqrt(streams)
    np.testing.assert_allclose(
        paths.estimate, paths.privatized @ mechanism.reconstruction.matrix().T, rtol=1e-9, atol=1e-8
    )


# --- square roots ---------------------------------------------------------------------------------


def test_the_root_of_a_running_sum_has_central_binomial_coefficients():
    c, exact = square_root(dp.running_sum(40), UNIT).strategy.coefficients, Fraction(1)
    for k in range(40):
        assert c[k] == pytest.approx(float(exact), rel=1e-12)
        exact *= 1 - Fraction(1, 2 * (k + 1))


@given(SEEDS, st.integers(0, 3), st.sampled_from([1.0, -1.0]))
def test_the_root_of_a_square_is_found_and_delay_and_sign_left_to_the_reconstruction(seed, delay, sign):
    rng = np.random.default_rng(seed)
    c = np.concatenate([[1.0], 0.3 * rng.normal(size=4)])
    n = 9 + delay
    found = square_root(dp.Toeplitz(np.concatenate([np.zeros(delay), sign * np.convolve(c, c)])), UNIT)
    np.testing.assert_allclose(found.strategy.coefficients[:9], [*c, 0, 0, 0, 0], atol=1e-9)
    assert not found.strategy.coefficients[n - delay :].any()
    np.testing.assert_allclose(found.reconstruction.coefficients, [*np.zeros(delay), *sign * c, 0, 0, 0, 0], atol=1e-9)


# --- which is better ------------------------------------------------------------------------------


def test_honakers_estimator_is_better_than_the_plain_one_at_every_step():
    plain, honaker = (binary_tree(dp.running_sum(300), UNIT, estimator=x).step_mse() for x in ("plain", "honaker"))
    assert (honaker <= plain * (1 + 1e-12)).all()
    assert honaker.mean() < 0.65 * plain.mean()


def test_decayed_sums_are_better_than_a_tree_for_windows():
    """A window as the difference of two prefixes has twice the error of a running sum."""
    n, width = 2**12, 16
    window = decayed_sum([1.0] * width, UNIT, horizon=n)
    assert 2 * window.predicted_mse < binary_tree(dp.running_sum(n), UNIT).predicted_mse
    assert window.predicted_mse == pytest.approx((4 + 1 / 4) ** 2, rel=0.01)


@pytest.mark.parametrize("target", [EXAMPLE, dp.Filter([1], [1, -0.9]), [1.0, 0.5, 0.2]])
def test_no_factorisation_here_is_worse_than_noise_on_the_input(target):
    found = [design(target, UNIT, horizon=256).predicted_mse for design in (square_root, buffered_toeplitz)]
    f = dp.Toeplitz.of(target, 256).coefficients
    assert max(found) < UNIT.noise_multiplier**2 * np.cumsum(f**2).mean() * (1 + 1e-9)


# --- arguments ------------------------------------------------------------------------------------


def test_a_blt_runs_as_a_filter_of_few_states():
    mechanism = buffered_toeplitz(dp.running_sum(500), UNIT, n_buffers=3, error="max")
    assert isinstance(mechanism.strategy, BufferedToeplitz)
    assert mechanism.options == (("n_buffers", 3), ("error", "max"))
    u = np.random.default_rng(3).normal(size=500)
    np.testing.assert_allclose(mechanism.strategy.filter().filter(u).y, mechanism.strategy.apply(u), atol=1e-10)


@pytest.mark.parametrize("design", [square_root, buffered_toeplitz, binary_tree, decayed_sum])
def test_inputs_are_checked(design):
    with pytest.raises(ValueError, match="privacy must be a Privacy"):
        design(dp.running_sum(4), 1.0)
    with pytest.raises(ValueError, match="horizon must be given for a Filter"):
        design(EXAMPLE, UNIT)
    with pytest.raises(ValueError, match="horizon must be at most that of the target, 4, got 5"):
        design(dp.running_sum(4), UNIT, horizon=5)
    with pytest.raises(ValueError, match="target must be a Filter"):
        design("running-sum", UNIT)
    assert design(dp.running_sum(8), UNIT, horizon=4, name="mine").name == "mine"
    assert design(dp.running_sum(8), UNIT, horizon=4).horizon == 4


def test_words_and_numbers_are_checked():
    target = dp.running_sum(4)
    with pytest.raises(ValueError, match="estimator must be one of 'honaker', 'plain'"):
        binary_tree(target, UNIT, estimator="best")
    for design in (binary_tree, decayed_sum):
        with pytest.raises(ValueError, match="noise must be one of 'gaussian', 'laplace'"):
            design(target, UNIT, noise="uniform")
    with pytest.raises(ValueError, match="error must be one of 'mean', 'max'"):
        buffered_toeplitz(target, UNIT, error="median")
    for n_buffers in (0, 13, 2.5, True):
        with pytest.raises(ValueError, match="n_buffers must be an integer, at least 1 and at most 12"):
            buffered_toeplitz(target, UNIT, n_buffers=n_buffers)


def test_trees_are_for_running_sums():
    with pytest.raises(dp.DesignError, match=r"target must be a running sum.*use decayed_sum"):
        binary_tree(EXAMPLE, UNIT, horizon=10)
    assert binary_tree([2.0, 2.0], UNIT).name == "binary tree (honaker)"
    assert binary_tree([2.0, 2.0], UNIT, estimator="plain", **LAPLACE).name == "binary tree (plain, Laplace)"
