import math

import numpy as np
import pytest
from helpers.markov_chains import CHAINS, LAZY, every_chain, stationary
from helpers.stream_statistics import SIGMAS, worst_z

from dpfast import MarkovChain


@every_chain
def test_moments_of_a_chain(transition, levels):
    chain, pi = MarkovChain(transition, levels), stationary(transition)
    mean = pi @ np.array(levels, float)
    assert chain.mean == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert chain.variance == pytest.approx(pi @ (np.array(levels) - mean) ** 2, rel=1e-8)


def test_levels_of_a_chain_are_sorted_and_distinct():
    chain = MarkovChain(*CHAINS["duplicate levels"])
    pi = stationary(CHAINS["duplicate levels"][0])
    assert chain.levels.tolist() == [0, 1]
    np.testing.assert_allclose(chain.probabilities, [pi[1], pi[0] + pi[2]], rtol=1e-12)
    assert MarkovChain(*CHAINS["unsorted"]).levels.tolist() == [-1, 2, 3]


def test_rows_of_a_chain_are_scaled_to_sum_to_one():
    chain = MarkovChain(np.array(LAZY) * (1 + 5e-10), [0, 1])
    np.testing.assert_allclose(chain.transition.sum(axis=1), 1, rtol=0, atol=1e-15)


@pytest.mark.slow_nojit
@every_chain
def test_samples_of_a_chain_are_stationary_from_the_first(transition, levels):
    u = MarkovChain(transition, levels).sample(20_000, 3, seed=7)
    pi, p = stationary(transition), np.array(transition)
    for level in np.unique(levels):
        probability = pi[np.array(levels) == level].sum()
        z = ((u == level).mean(axis=0) - probability) / math.sqrt(probability * (1 - probability) / len(u))
        assert np.abs(z).max() < SIGMAS
    assert np.isin(u, levels).all()
    centred = np.array(levels) - pi @ levels
    r = centred * pi @ p @ centred, centred * pi @ p @ p @ centred
    x = u - pi @ levels
    assert worst_z(np.column_stack([x[:, 0] * x[:, 1], x[:, 1] * x[:, 2], x[:, 0] * x[:, 2]]), [r[0], *r]) < SIGMAS


@pytest.mark.slow_nojit
def test_transitions_of_a_chain_have_their_frequencies():
    transition, levels = CHAINS["rotating"]
    u = MarkovChain(transition, levels).sample(20, 5000, seed=3)
    for i, before in enumerate(levels):
        after = u[:, 1:][u[:, :-1] == before]
        for j, level in enumerate(levels):
            p = transition[i][j]
            assert abs((after == level).mean() - p) < SIGMAS * math.sqrt(p * (1 - p) / len(after))


@pytest.mark.parametrize(
    ("transition", "levels", "message"),
    [
        ([[1, 0], [0, 1]], [0, 1], "irreducible.* 2 parts.* no way from state 0 to state 1"),
        ([[0.5, 0.5], [0, 1]], [0, 1], "irreducible"),
        ([[0, 1], [1, 0]], [0, 1], "aperiodic.* modulus 1 "),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 1, 2], "aperiodic"),
        ([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], [0, 1], r"mixing.* modulus 0\.999998.* limit is 0\.99998"),
        ([[0.5, 0.6], [0.5, 0.5]], [0, 1], r"stochastic.* row 0 with sum 1\.1"),
        ([[0.5, 0.5], [1.5, -0.5]], [0, 1], "stochastic.* smallest entry -0.5"),
        ([[0.5, 0.5]], [0, 1], r"a row and a column for each of the 2 levels, got shape \(1, 2\)"),
        (LAZY, [0, 1, 2], r"each of the 3 levels, got shape \(2, 2\)"),
        (LAZY, [[0, 1]], r"levels must have 1 dimension, got shape \(1, 2\)"),
        ([0.5, 0.5], [0, 1], "transition must have 2 dimensions"),
        ([[]], [], "transition must not be empty"),
        ([[0.5, math.nan], [0.5, 0.5]], [0, 1], "transition must be finite"),
        (LAZY, [0, math.inf], "levels must be finite"),
        (LAZY, ["a", "b"], "levels must hold real numbers"),
        (LAZY, [1, 1], "levels must not all be equal"),
        ([[1]], [3], "levels must not all be equal"),
        (np.full((3, 3), 1 / 3), [0.1] * 3, "levels must not all be equal"),
    ],
)
def test_bad_chains_are_refused(transition, levels, message):
    with pytest.raises(ValueError, match=message):
        MarkovChain(transition, levels)
