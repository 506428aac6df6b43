"""Trees with k branches: estimates are those of dense least squares, errors those of their source or less."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp

PURE = dp.Privacy(1)
DECAYS = 0.9 ** np.arange(60)


def dense(mechanism):
    return mechanism.strategy.matrix(), mechanism.reconstruction.matrix()


def rows_of_nodes(n, k, n_levels, whole):
    """The naive list of nodes."""
    nodes = [
        (start, start + k**level)
        for level in range(n_levels)
        for start in range(0, n, k**level)
        if start + k**level <= n or not whole
    ]
    return np.array([[float(start <= t < end) for t in range(n)] for start, end in nodes])


SHAPES = st.tuples(st.integers(1, 40), st.integers(2, 7), st.integers(1, 5)).filter(
    lambda x: x[2] == 1 or x[1] ** (x[2] - 2) < x[0]
)


@given(SHAPES, st.sampled_from([1.0, -2.5]))
@settings(max_examples=25)
def test_with_subtraction_it_is_the_pseudoinverse(shape, gain):
    n, k, n_levels = shape
    found = dp.tree(gain * np.ones(n), PURE, branching=k, levels=n_levels, subtraction=True)
    c, b = dense(found)
    np.testing.assert_array_equal(c, rows_of_nodes(n, k, n_levels, whole=False))
    np.testing.assert_allclose(b, gain * np.tri(n) @ np.linalg.pinv(c), atol=1e-11)
    np.testing.assert_allclose(found.reconstruction.squared_rows(), (b**2).sum(axis=1), rtol=1e-10)


@given(SHAPES)
@settings(max_examples=25)
def test_without_it_every_step_has_the_pseudoinverse_of_what_is_there(shape):
    n, k, n_levels = shape
    found = dp.tree(2.0 * np.ones(n), PURE, branching=k, levels=n_levels)
    c, b = dense(found)
    np.testing.assert_array_equal(c, rows_of_nodes(n, k, n_levels, whole=True))
    ready = np.array([np.flatnonzero(row).max() for row in c])
    for t in range(n):
        there = ready <= t
        expected = 2.0 * np.ones(t + 1) @ np.linalg.pinv(c[there, : t + 1])
        np.testing.assert_allclose(b[t, there], expected, atol=1e-11)
        assert not b[t, ~there].any()
    np.testing.assert_allclose(found.reconstruction.squared_rows(), (b**2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("f", [DECAYS, np.r_[np.ones(7), np.zeros(53)], np.r_[0.0, 1.0, -0.5, np.zeros(57)]])
def test_any_target_has_the_pseudoinverse(f):
    found = dp.tree(f, PURE, branching=4, levels=3, subtraction=True)
    c, b = dense(found)
    a = np.array([[f[t - s] if s <= t else 0.0 for s in range(60)] for t in range(60)])
    np.testing.assert_allclose(b, a @ np.linalg.pinv(c), atol=1e-12)
    np.testing.assert_allclose(found.reconstruction.squared_rows(), (b**2).sum(axis=1), rtol=1e-10, atol=1e-14)


# --- the sources ----------------------------------------------------------------------------------


def digits_of(n, k, n_levels, lowest):
    """Digits from `lowest` on of 1, ..., n in base k, naively."""
    table = {
        sum(digit * k**level for level, digit in enumerate(digits)): digits
        for digits in itertools.product(range(lowest, lowest + k), repeat=n_levels)
    }
    return [table[t] for t in range(1, n + 1)]


@pytest.mark.parametrize(("k", "n_levels"), [(3, 4), (5, 3), (7, 2), (9, 2)])
def test_least_squares_errs_less_than_the_source_with_subtraction(k, n_levels):
    """FORC 2025: k (1 - 1/k²) L³/(2ε²) for n = (kᴸ - 1)/2; here from digits, one by one, with noise 2 L²/ε²."""
    n, epsilon = (k**n_levels - 1) // 2, 0.5
    digits = np.abs(digits_of(n, k, n_levels, -(k // 2)))
    published = 2 * (n_levels / epsilon) ** 2 * digits.sum(axis=1).mean()
    zero_too = published * n / (n + 0.5)  # of -n, ..., n, as the source has them: |digits| of ±t are alike
    assert zero_too == pytest.approx(k * (1 - k**-2) * n_levels**3 / (2 * epsilon**2))
    found = dp.tree(dp.running_sum(n), dp.Privacy(epsilon), branching=k, levels=n_levels, subtraction=True)
    assert found.sensitivity == n_levels
    assert found.noise_std**2 == pytest.approx(2 * (n_levels / epsilon) ** 2)
    assert found.predicted_mse < 0.97 * published


@pytest.mark.parametrize(("k", "n_levels"), [(2, 6), (4, 3), (10, 2)])
def test_least_squares_errs_less_than_the_source_without_subtraction(k, n_levels):
    """Qardaji et al. 2013 and FORC 2025: (k - 1) L³/ε² for the lengths 0, ..., kᴸ - 1."""
    n = k**n_levels - 1
    published = 2 * n_levels**2 * np.sum(digits_of(n, k, n_levels, 0), axis=1).mean()
    assert published * n / (n + 1) == pytest.approx((k - 1) * n_levels**3)
    found = dp.tree(dp.running_sum(n), PURE, branching=k, levels=n_levels)
    assert found.sensitivity == n_levels
    assert found.predicted_mse < 0.97 * published


@pytest.mark.parametrize("n", [1, 2, 31, 256])
def test_two_branches_are_the_binary_tree_of_honaker(n):
    levels = n.bit_length()
    found = dp.tree(dp.running_sum(n), PURE, branching=2, levels=levels)
    before = dp.binary_tree(dp.running_sum(n), PURE, noise="laplace")
    np.testing.assert_allclose(found.step_mse(), before.step_mse(), rtol=1e-12)


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("subtraction", [False, True])
def test_the_best_tree_is_chosen(noise, subtraction):
    """Against all trees of 60 steps, by the noise that the mechanism really has."""
    sums, privacy = dp.running_sum(60), dp.Privacy(0.8, 1e-6 if noise == "gaussian" else 0.0, max_change=2)
    arguments = {"noise": noise, "subtraction": subtraction}
    all_trees = [
        dp.tree(sums, privacy, branching=k, levels=n_levels, **arguments).predicted_mse
        for k in range(2, 61)
        for n_levels in range(1, 8)
        if k ** (n_levels - 1) < 60
    ]
    assert dp.tree(sums, privacy, **arguments).predicted_mse == pytest.approx(min(all_trees), rel=1e-12)


def test_errors_grow_with_the_horizon_and_shrink_with_what_an_estimate_sees():
    causal, whole = (
        [dp.tree(dp.running_sum(n), PURE, subtraction=x).predicted_rmse for n in (1, 4, 16, 64, 256, 1024, 2**16)]
        for x in (False, True)
    )
    assert causal == sorted(causal)
    assert whole == sorted(whole)
    assert all(x <= y * (1 + 1e-12) for x, y in zip(whole, causal, strict=True))
    assert causal[-1] == pytest.approx(30.256, abs=1e-3)  # binary: 45
    assert whole[-1] == pytest.approx(20.243, abs=1e-3)


def test_targets_that_are_no_sums_choose_their_tree():
    found = dp.tree(DECAYS, PURE, subtraction=True)
    others = [dp.tree(DECAYS, PURE, subtraction=True, branching=k).predicted_mse for k in range(2, 60)]
    assert found.predicted_mse == pytest.approx(min(others), rel=1e-12)


# --- noise and words ------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3])
def test_geometric_noise_has_the_rate_of_all_levels_and_events(m):
    found = dp.tree(
        dp.running_sum(50), dp.Privacy(0.7, max_change=2, max_events=m), branching=3, levels=4, noise="geometric"
    )
    q = math.exp(-0.7 / (2 * 4 * m))
    assert found.sensitivity == 8 * m
    assert found.noise_std == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-8)
    assert found.guarantee_terms().delta == 0


@pytest.mark.parametrize("subtraction", [False, True])
def test_geometric_noise_publishes_integers_and_errs_as_predicted(subtraction):
    found = dp.tree(dp.running_sum(40), PURE, noise="geometric", subtraction=subtraction)
    u = np.random.default_rng(1).integers(0, 4, (3000, 40))
    paths = found.simulate(u, seed=2)
    np.testing.assert_array_equal(paths.privatized, np.rint(paths.privatized))
    mse = ((paths.estimate - np.cumsum(u, axis=1)) ** 2).mean(axis=1)
    # 5.5 standard errors of the mean of 3000 streams: a false alarm in less than 1e-6 of runs
    assert abs(mse.mean() - found.predicted_mse) < 5.5 * mse.std() / math.sqrt(3000)


def test_the_guarantee_says_for_which_inputs_it_holds():
    online, batch = (dp.tree(dp.running_sum(20), PURE, subtraction=x) for x in (False, True))
    assert (online.lag, batch.lag) == (0, None)
    assert "react to what was published before" in online.guarantee_terms().ending
    assert "for a batch" in batch.guarantee_terms().ending
    counts = dp.tree(dp.running_sum(20), PURE, noise="geometric").guarantee_terms()
    assert "for inputs that are integers" in counts.ending
    assert counts.noise == "geometric noise"


def test_names_tell_branches_and_noise():
    short = dp.running_sum(9)
    assert dp.tree(short, PURE, branching=3).name == "tree (3-ary)"
    found = dp.tree(short, PURE, branching=3, levels=2, subtraction=True, noise="geometric")
    assert found.name == "tree (3-ary, subtraction, geometric)"
    assert found.options == (("branching", 3), ("levels", 2), ("subtraction", 1))
    assert dp.tree(short, dp.Privacy(1, 1e-6), branching=3, noise="gaussian").name == "tree (3-ary, Gaussian)"
    assert dp.tree(short, PURE, name="mine").name == "mine"


def test_refusals():
    sums = dp.running_sum(30)
    for message, arguments, options in [
        ("privacy must be", (sums, 1.0), {}),
        ("target must be a running sum", (DECAYS, PURE), {}),
        ("horizon must be at most 4096", (np.r_[1.0, 0.5, np.zeros(5000)], PURE), {"subtraction": True}),
        ("branching must be", (sums, PURE), {"branching": 1}),
        ("levels must be", (sums, PURE), {"levels": 0}),
        ("levels must be no more|levels must be at least 1, and no more", (sums, PURE), {"branching": 6, "levels": 5}),
        ("levels must be an integer, at least 1 and at most 6", (sums, PURE), {"levels": 9}),
        ("subtraction must be True or False", (sums, PURE), {"subtraction": 1}),
        ("noise must be one of", (sums, PURE), {"noise": "canonical"}),
        ("max_change must be a multiple of 1", (sums, dp.Privacy(1, max_change=0.5)), {"noise": "geometric"}),
        ("delta", (sums, PURE), {"noise": "gaussian"}),
        ("horizon must be given for a Filter", (dp.Filter([1], [1, -0.5]), PURE), {}),
    ]:
        with pytest.raises(ValueError, match=message):
            dp.tree(*arguments, **options)
