"""Trees against nodes written down one by one, and Honaker's estimator against least squares."""

import functools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpfast.design.horizon.binary_tree import tree_strategy
from dpfast.mechanisms.operators.trees import DecayedPrefixes, TreeEstimator, honaker_variances, n_levels

HORIZONS = st.integers(1, 70)
RATIOS = st.sampled_from([1.0, 0.9, 0.3, -0.5, -1.0])


# --- naive twins ----------------------------------------------------------------------------------


def nodes(n):
    """(begin, end) of every complete dyadic interval inside [0, n), the short ones first."""
    found, length = [], 1
    while length <= n:
        found += [(a, a + length) for a in range(0, n - length + 1, length)]
        length *= 2
    return found


def strategy(n, ratio=1.0, shares=(1.0,) * 99):
    rows = []
    for a, b in nodes(n):
        level = (b - a).bit_length() - 1
        share = shares[level] if level < len(shares) else 0.0
        if share:
            rows.append([share * ratio ** (b - 1 - k) if a <= k < b else 0.0 for k in range(n)])
    return np.array(rows)


def digits(length):
    """The dyadic intervals that make up [0, length), by its digits from the highest on."""
    begin = 0
    for level in reversed(range(length.bit_length())):
        if length >> level & 1:
            yield begin, begin + (1 << level)
            begin += 1 << level


@functools.cache
def best_weights(length):
    """Of all the nodes in [0, length), for the least squares estimate of the sum over it."""
    C = strategy(length)
    return np.linalg.lstsq(C, np.eye(len(C)), rcond=None)[0].sum(axis=0)


def least_squares(n):
    """Rows: every prefix as the sum of its nodes, each the best linear unbiased estimate from its own subtree."""
    every = nodes(n)
    rows = np.zeros((n, len(every)))
    for t in range(n):
        for begin, end in digits(t + 1):
            inside = [i for i, (a, b) in enumerate(every) if begin <= a and b <= end]
            rows[t, inside] += best_weights(end - begin)
    return rows


# --- strategy -------------------------------------------------------------------------------------


@given(HORIZONS, RATIOS, st.data())
def test_the_strategy_has_every_node_of_a_level_with_a_share(n, ratio, data):
    shares = data.draw(st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=n_levels(n), max_size=n_levels(n)))
    shares[0] = 1.0
    np.testing.assert_allclose(
        tree_strategy(n, np.array(shares), ratio).matrix(), strategy(n, ratio, shares), rtol=1e-12, atol=0
    )


@given(st.integers(1, 200))
def test_a_tree_has_as_many_levels_as_the_length_has_digits(n):
    C = tree_strategy(n, np.ones(n_levels(n)))
    assert n_levels(n) == max(b - a for a, b in nodes(n)).bit_length()
    assert C.products()[0] == C.largest_l1() == n_levels(n)


# --- plain prefixes -------------------------------------------------------------------------------


@given(HORIZONS)
def test_plain_prefixes_are_the_sums_of_their_nodes(n):
    B = DecayedPrefixes(n, np.ones(n_levels(n)), 1.0, 3.0)
    np.testing.assert_allclose(B.matrix() @ strategy(n), 3 * np.tri(n), atol=1e-12)
    np.testing.assert_allclose(B.squared_rows(), [9 * (t + 1).bit_count() for t in range(n)], rtol=1e-12)


@given(HORIZONS, RATIOS, st.data())
def test_decayed_prefixes_of_a_decayed_tree_are_decayed_sums(n, ratio, data):
    top = data.draw(st.integers(1, n_levels(n)))
    shares = np.array(data.draw(st.lists(st.floats(0.1, 2.0), min_size=top, max_size=top)))
    B, C = DecayedPrefixes(n, shares, ratio, -2.0), tree_strategy(n, shares, ratio)
    assert B.shape == C.shape[::-1]
    wanted = [[-2 * ratio ** (t - k) if k <= t else 0.0 for k in range(n)] for t in range(n)]
    np.testing.assert_allclose(B.matrix() @ strategy(n, ratio, shares), wanted, atol=1e-10)
    np.testing.assert_allclose(B.squared_rows(), (B.matrix() ** 2).sum(axis=1), rtol=1e-10)
    x = np.random.default_rng(n).normal(size=(2, 3, B.shape[1]))
    np.testing.assert_allclose(B.apply(x), x @ B.matrix().T, atol=1e-10)


# --- Honaker --------------------------------------------------------------------------------------


@given(HORIZONS)
@example(64)
@example(63)
def test_honakers_nodes_are_the_best_linear_unbiased_estimates_from_their_subtrees(n):
    B = TreeEstimator(n, 1.0)
    np.testing.assert_allclose(B.matrix(), least_squares(n), atol=1e-10)
    np.testing.assert_allclose(B.squared_rows(), (least_squares(n) ** 2).sum(axis=1), rtol=1e-10)


@given(HORIZONS, st.floats(-5, 5))
def test_honakers_prefixes_are_unbiased(n, gain):
    B = TreeEstimator(n, gain)
    np.testing.assert_allclose(B.matrix() @ strategy(n), gain * np.tri(n), atol=1e-10)
    x = np.random.default_rng(n).normal(size=(2, 3, B.shape[1]))
    np.testing.assert_allclose(B.apply(x), x @ B.matrix().T, atol=1e-10)
    assert B.apply(x[0, 0]).shape == (n,)


@pytest.mark.parametrize("B", [TreeEstimator(11, 2.0), DecayedPrefixes(11, np.array([1.0, 2.0, 0.5]), 0.7, 3.0)])
def test_columns_of_a_reconstruction(B):
    gram = np.abs(B.matrix().T @ B.matrix())
    rows, columns = np.indices(gram.shape)
    bounds = [gram[np.abs(rows - columns) >= lag].max() for lag in range(len(gram))]
    np.testing.assert_allclose(B.products(), bounds, rtol=1e-12)
    assert B.largest_l1() == pytest.approx(np.abs(B.matrix()).sum(axis=0).max())


def test_the_variance_of_a_node_tends_to_one_half():
    assert honaker_variances(2**10)[:3] == pytest.approx([1, 2 / 3, 4 / 7])
    assert honaker_variances(2**40)[-1] == pytest.approx(0.5, abs=1e-9)
