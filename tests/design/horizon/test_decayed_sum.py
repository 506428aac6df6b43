"""Decayed sums against windows cut up one by one, dense matrices, and shares that are searched for."""

import math

import numpy as np
import pytest
from helpers.horizons import UNIT
from hypothesis import example, given
from hypothesis import strategies as st

import dpfast as dp
from dpfast import DesignError
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.decayed_sum import (
    decayed_factorization,
    decayed_sum,
    geometric_energies,
    geometric_ratio,
    least_error,
    level_shares,
    window_cover,
)

HORIZONS = st.integers(1, 40)
NOISES = st.sampled_from(["gaussian", "laplace"])
SEEDS = st.integers(0, 10**6)


# --- naive twins ----------------------------------------------------------------------------------


def lower(f):
    return np.array([[f[t - k] if k <= t else 0.0 for k in range(len(f))] for t in range(len(f))])


def pieces(begin, end):
    """The fewest dyadic intervals that make up [begin, end): the longest that begins here, again and again."""
    found = []
    while begin < end:
        level = 0
        while begin % (2 << level) == 0 and begin + (2 << level) <= end:
            level += 1
        found.append((level, begin >> level))
        begin += 1 << level
    return found


def windows(f):
    """Weights (step, level, node): of every window [s, t + 1) the difference of f between its begin and before."""
    total = {}
    for t in range(len(f)):
        for s in range(t + 1):
            weight = f[t - s] - (f[t - s + 1] if s > 0 else 0.0)
            for level, node in pieces(s, t + 1):
                total[t, level, node] = total.get((t, level, node), 0.0) + weight
    return total


def targets(kind, n, seed):
    rng = np.random.default_rng(seed)
    return {
        "window": (np.arange(n) < rng.integers(1, n + 1)).astype(float),
        "polynomial": np.arange(1, n + 1.0) ** -1.5,
        "steps": np.sort(rng.integers(1, 4, n))[::-1].astype(float),
        "delay": np.eye(n)[rng.integers(n)] * 2,
        "any": rng.normal(size=n),
        "geometric": 3 * rng.uniform(-1, 1) ** np.arange(n),
        "running sum": np.full(n, -2.0),
        "growing": 1.1 ** np.arange(n),
        "one": np.eye(n)[0],
    }[kind]


KINDS = st.sampled_from(["window", "polynomial", "steps", "delay", "any", "geometric", "running sum", "growing", "one"])


# --- factors --------------------------------------------------------------------------------------


@given(KINDS, HORIZONS, SEEDS, NOISES)
@example("delay", 1, 0, "gaussian")
def test_the_reconstruction_of_the_strategy_is_the_target(kind, n, seed, noise):
    f = targets(kind, n, seed)
    C, B = decayed_factorization(f, noise)
    np.testing.assert_allclose(B.matrix() @ C.matrix(), lower(f), atol=1e-10)
    np.testing.assert_allclose(B.squared_rows(), (B.matrix() ** 2).sum(axis=1), rtol=1e-10, atol=1e-25)


@given(KINDS, HORIZONS, SEEDS, NOISES)
def test_the_largest_column_has_all_shares(kind, n, seed, noise):
    C, _ = decayed_factorization(targets(kind, n, seed), noise)
    assert np.linalg.norm(C.matrix(), 2 if noise == "gaussian" else 1, axis=0).max() == pytest.approx(1, rel=1e-12)


@given(KINDS, HORIZONS, SEEDS)
def test_windows_in_their_fewest_nodes(kind, n, seed):
    f = targets(kind, n, seed)
    found, cover = {}, window_cover(f)
    for step, level, node, weight in zip(*cover, strict=True):
        assert (step, level, node) not in found
        found[int(step), int(level), int(node)] = weight
    wanted = windows(f)
    for key in found.keys() | wanted.keys():
        assert found.get(key, 0.0) == pytest.approx(wanted.get(key, 0.0), abs=1e-12)


@given(st.integers(1, 200), st.integers(1, 300))
def test_a_window_takes_few_nodes_of_few_levels(width, n):
    cover = window_cover((np.arange(n) < width).astype(float))
    used = cover.weights != 0
    assert set(np.unique(cover.weights)) <= {0.0, 1.0}
    log = min(width, n).bit_length() - 1
    assert np.bincount(cover.steps[used]).max() <= 2 * log + 1
    assert cover.levels[used].max() <= log


def test_a_window_of_a_power_of_two_costs_the_square_of_its_logarithm():
    k, n = 5, 2**14
    cover = window_cover((np.arange(n) < 2**k).astype(float))
    later = cover.steps >= 2**k
    energies = np.bincount(cover.levels[later], cover.weights[later] ** 2, k + 1)[: k + 1] / (n - 2**k)
    np.testing.assert_allclose(energies, [1] * k + [2.0**-k], rtol=1e-12)
    assert least_error(energies, "gaussian") == pytest.approx((k + 2 ** (-k / 2)) ** 2)


# --- shares of the noise --------------------------------------------------------------------------


def mean_error(f, noise):
    """Of unit noise for a sensitivity of one, from the dense matrices."""
    C, B = (x.matrix() for x in decayed_factorization(f, noise))
    sensitivity = np.linalg.norm(C, 2 if noise == "gaussian" else 1, axis=0).max()
    return sensitivity**2 * (B**2).sum() / len(f)


@given(SEEDS, st.integers(1, 8), NOISES)
def test_no_other_shares_of_the_noise_have_less_error(seed, n, noise):
    rng = np.random.default_rng(seed)
    energies = rng.exponential(size=n) ** 3 + 1e-9
    least, order = least_error(energies, noise), 2 if noise == "gaussian" else 1

    def error(shares):
        return np.linalg.norm(shares, order) ** 2 * (energies / shares**2).sum()

    best = level_shares(energies, noise)
    assert np.linalg.norm(best, order) == pytest.approx(1)
    assert error(best) == pytest.approx(least, rel=1e-12)
    for _ in range(20):
        assert error(best * np.exp(rng.normal(size=n) * 10 ** rng.uniform(-4, 0))) >= least * (1 - 1e-12)


@given(st.floats(0.05, 1), st.integers(1, 64), NOISES)
def test_the_error_of_an_exponential_decay_is_that_of_its_best_highest_level(ratio, n, noise):
    energies = geometric_energies(ratio, n, noise)
    assert mean_error(ratio ** np.arange(n), noise) == pytest.approx(least_error(energies, noise), rel=1e-9)
    digits = [np.mean([(t >> v & 1) * ratio ** (2 * (t % 2**v)) for t in range(1, n + 1)]) for v in range(8)]
    for top in range(n.bit_length()):
        ends = [(t, e) for t in range(1, n + 1) for e in range(2**top, t + 1, 2**top)]
        highest = sum(ratio ** (2 * (t - e)) for t, e in ends) / n
        assert least_error(energies, noise) <= least_error(np.array([*digits[:top], highest]), noise) * (1 + 1e-12)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_error_of_an_exponential_decay_does_not_grow_with_the_horizon(noise):
    for ratio in (0.9, 0.99):
        _, B = decayed_factorization(ratio ** np.arange(2**16), noise)
        rows = B.squared_rows()
        assert rows.max() < 1.001 * rows[: 2**12].max()
        assert rows.mean() < 1.02 * rows[: 2**12].mean()
    _, B = decayed_factorization(0.999 ** np.arange(2**15), noise)
    assert math.sqrt(B.squared_rows().mean()) < math.log2(1000) ** (1.0 if noise == "gaussian" else 1.5)


# --- which targets --------------------------------------------------------------------------------


@given(st.floats(0.01, 1), st.sampled_from([-1, 1]), st.floats(-9, 9).filter(lambda x: abs(x) > 1e-3))
def test_geometric_sequences_are_seen(size, sign, gain):
    assert geometric_ratio(gain * (sign * size) ** np.arange(50)) == pytest.approx(sign * size, rel=1e-12)


@pytest.mark.parametrize("f", [[1.0], [1.0, 0.0], [1.0, 2.0], [0.0, 1.0], [1.0, 0.5, 0.25, 0.125 + 1e-9], [1, 1, 0]])
def test_other_sequences_are_not_geometric(f):
    assert geometric_ratio(np.array(f, float)) is None


def test_a_long_polynomial_decay_is_refused():
    with pytest.raises(DesignError, match=r"horizon must be shorter .* got 8192: .* use square_root or buffered"):
        decayed_factorization(1 / np.arange(1.0, 2**13 + 1), "gaussian")
    C, _ = decayed_factorization((np.arange(2**13) < 100).astype(float), "gaussian")
    assert C.shape[1] == 2**13


def test_decayed_sums_are_better_than_a_tree_for_windows():
    """A window as the difference of two prefixes has twice the error of a running sum."""
    n, width = 2**12, 16
    window = decayed_sum([1.0] * width, UNIT, horizon=n)
    assert 2 * window.predicted_mse < binary_tree(dp.running_sum(n), UNIT).predicted_mse
    assert window.predicted_mse == pytest.approx((4 + 1 / 4) ** 2, rel=0.01)
