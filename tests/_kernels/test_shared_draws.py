"""Draws of noise that blocks share, with the table of a law that is listed."""

import math

import numpy as np
import pytest
from helpers import shared_law as twin
from scipy import stats

from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.shared_draws import SharedDraws, SharedTable, draw_given
from dpfast._kernels.simulated_noise import RELEASE
from dpfast._kernels.tiles import ROWS
from dpfast.privacy.integer_noise.shared import SharedGeometric

ALARM = 1e-9
GROUP, SLACK, ODDS = 3, 2, 6
LAW = SharedGeometric(math.log(ODDS), GROUP, SLACK)


def run(u, dtype="f8", chunk=48, phase=0, length=2, **options):
    """What is released of u: (streams, time)."""
    chain, out = Chain(dtype, chunk), np.empty((1, *u.shape), dtype)
    blocks = BlockSums(length, phase, 0.0, 1.0, 0.0, 0.0, False)
    table = IntegerTable.from_tails(*LAW.tails())
    chain.write(chain.release(blocks, table, RELEASE, chain.read(), SharedTable(LAW.table())))
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out[0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_noise_of_a_group_has_its_joint_law(dtype):
    """A chi-square test over all triples that are expected at least ten times."""
    n_streams, n_groups = 40, 25
    noise = run(np.zeros((n_streams, 2 * GROUP * n_groups)), dtype)[:, 1::2].reshape(-1, GROUP)
    found, counts = np.unique(noise.astype(int), axis=0, return_counts=True)
    seen = {tuple(map(int, x)): int(n) for x, n in zip(found, counts, strict=True)}
    law = twin.weights(GROUP, SLACK, ODDS, 6)
    total = float(sum(law.values()))
    expected = {x: len(noise) * float(w) / total for x, w in law.items() if float(w) / total * len(noise) > 10}
    rest = len(noise) - sum(seen.get(x, 0) for x in expected), len(noise) - sum(expected.values())
    pairs = np.array([(seen.get(x, 0), n) for x, n in expected.items()] + [rest])
    assert stats.chisquare(*(pairs / 1.0).T, sum_check=False).pvalue > ALARM
    assert len(pairs) > 15


def test_each_noise_is_drawn_given_those_before():
    """By inversion: uniform numbers in the middle of each piece of the conditional law draw what the piece is for."""
    table, odds = LAW.table(), [0, 1, -1, 2, -2, 3, -3]
    n = table.shape[1]
    draws = SharedDraws(0, 0, n, GROUP, 0)
    for drawn, above, below in ((0, 0, 0), (1, 2, 0), (1, 0, 1), (2, 1, 3)):
        before = 1.0 if drawn == 0 else table[drawn - 1, above, below]
        passed = 0.0
        for noise in odds:
            piece = table[drawn, above + max(noise, 0), below + max(-noise, 0)] / before
            assert draw_given(table.ravel(), draws, drawn, above, below, passed + piece / 2) == noise
            passed += piece
    assert abs(draw_given(table.ravel(), draws, 0, 0, 0, 1 - 1e-16)) < n  # beyond the table nothing is read


def test_bits_do_not_depend_on_chunks_threads_and_the_length_of_the_signal():
    u = np.random.default_rng(1).integers(0, 3, (5, 150)).astype(float)
    whole = run(u, phase=1)
    np.testing.assert_array_equal(run(u, chunk=4 * ROWS, phase=1), whole)
    np.testing.assert_array_equal(run(u, n_threads=2, phase=1), whole)
    np.testing.assert_array_equal(run(u[:, :61], phase=1), whole[:, :61])
    np.testing.assert_array_equal(run(u[:3], phase=1), whole[:3])


def test_a_group_begins_with_the_first_block_however_short():
    """With another phase other blocks are summed; the noises, of zero inputs, are the same, one after the other."""
    zero = np.zeros((4, 121))
    np.testing.assert_array_equal(run(zero, phase=1)[:, 0::2][:, :60], run(zero)[:, 1::2][:, :60])
