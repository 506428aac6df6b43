"""Draws of noise that blocks share in a group or in a tree of groups, with the tables of laws that are listed."""

import math

import numpy as np
import pytest
from helpers import shared_law as twin

from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.shared_draws import SharedDraws, draw_given
from dpfast._kernels.simulated_noise import RELEASE
from dpfast._kernels.tiles import ROWS
from dpfast.privacy.integer_noise.shared import SharedGeometric

ALARM = 1e-9
GROUP, ODDS = 3, 6
LAW = SharedGeometric(math.log(ODDS), (GROUP,), (2,))
TREE = SharedGeometric(math.log(ODDS), (2, 2), (2, 3))
BOTH = pytest.mark.parametrize("law", [LAW, TREE], ids=["group", "tree"])


def run(u, law, dtype="f8", chunk=48, phase=0, length=2, **options):
    """What is released of u: (streams, time)."""
    chain, out = Chain(dtype, chunk), np.empty((1, *u.shape), dtype)
    blocks = BlockSums(length, phase, 0.0, 1.0, 0.0, 0.0, False)
    single = IntegerTable.from_tails(*law.tails())
    chain.write(chain.release(blocks, single, RELEASE, chain.read(), law.table()))
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out[0]


@BOTH
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_noise_has_its_joint_law(law, dtype):
    """A chi-square test over all that are expected at least ten times."""
    n = law.n_values
    noise = run(np.zeros((40, 2 * n * 40)), law, dtype)[:, 1::2].reshape(-1, n)
    p, n_cells = twin.misfit(noise, law.branches, law.slacks, ODDS, 6 if n == GROUP else 5)
    assert p > ALARM
    assert n_cells > 15


def test_three_levels_have_the_covariances_of_their_law():
    law = SharedGeometric(1.0, (3, 2, 2), (4, 4, 3))
    noise = run(np.zeros((24, 12 * 60)), law, length=1).reshape(-1, 12)
    found = noise.T @ noise / len(noise)
    place = np.arange(12)
    level = sum((place[:, None] // n != place // n).astype(int) for n in (1, 3, 6))
    expected = np.array(law.covariances)[level]
    spread = np.sqrt(((noise[:, :, None] * noise[:, None]) ** 2).mean(axis=0) / len(noise))
    assert (np.abs(found - expected) < 6 * spread).all()  # 78 of them: less than 1e-6


def test_each_noise_is_drawn_given_those_before():
    """By inversion: uniform numbers in the middle of each piece of the conditional law draw what the piece is for."""
    table, odds = LAW.table().remaining, [0, 1, -1, 2, -2, 3, -3]
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


@BOTH
def test_bits_do_not_depend_on_chunks_threads_and_the_length_of_the_signal(law):
    u = np.random.default_rng(1).integers(0, 3, (5, 150)).astype(float)
    whole = run(u, law, phase=1)
    np.testing.assert_array_equal(run(u, law, chunk=4 * ROWS, phase=1), whole)
    np.testing.assert_array_equal(run(u, law, n_threads=2, phase=1), whole)
    np.testing.assert_array_equal(run(u[:, :61], law, phase=1), whole[:, :61])
    np.testing.assert_array_equal(run(u[:3], law, phase=1), whole[:3])


@BOTH
def test_a_draw_begins_with_the_first_block_however_short(law):
    """With another phase other blocks are summed; the noises, of zero inputs, are the same, one after the other."""
    zero = np.zeros((4, 121))
    np.testing.assert_array_equal(run(zero, law, phase=1)[:, 0::2][:, :60], run(zero, law)[:, 1::2][:, :60])
