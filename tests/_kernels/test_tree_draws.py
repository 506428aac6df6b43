"""Draws of noise that blocks share in groups of groups, with the tables of laws that are listed."""

import itertools
import math

import numpy as np
import pytest
from helpers import nested_law as twin
from scipy import stats

from dpfast._kernels import tree_draws
from dpfast._kernels.block_sums import BlockSums
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.simulated_noise import RELEASE
from dpfast._kernels.tiles import ROWS
from dpfast._kernels.tree_draws import TreeTable
from dpfast.privacy.integer_noise.nested import NestedGeometric

ALARM = 1e-9
ODDS, BRANCHES, SLACKS = 6, (2, 2), (2, 3)
LAW = NestedGeometric(math.log(ODDS), BRANCHES, SLACKS)


def table_of(law):
    levels, root = law.tables()
    powers, parts = zip(*levels, strict=True)
    return TreeTable(law.branches, law.slacks, powers, parts, root)


TABLE = table_of(LAW)


def run(u, dtype="f8", chunk=48, phase=0, length=2, table=TABLE, **options):
    """What is released of u: (streams, time)."""
    chain, out = Chain(dtype, chunk), np.empty((1, *u.shape), dtype)
    blocks = BlockSums(length, phase, 0.0, 1.0, 0.0, 0.0, False)
    single = IntegerTable.from_tails(*LAW.tails())
    chain.write(chain.release(blocks, single, RELEASE, chain.read(), table))
    execute(chain, *u.shape, x=u.astype(dtype), out=out, seed=5, **options)
    return out[0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_noise_of_a_tree_has_its_joint_law(dtype):
    """A chi-square test over all that are expected at least ten times."""
    noise = run(np.zeros((40, 2 * 4 * 40)), dtype)[:, 1::2].reshape(-1, 4)
    found, counts = np.unique(noise.astype(int), axis=0, return_counts=True)
    seen = {tuple(map(int, x)): int(n) for x, n in zip(found, counts, strict=True)}
    sizes = {x: twin.size(x, BRANCHES, SLACKS) for x in itertools.product(range(-5, 6), repeat=4)}
    total = sum(float(ODDS) ** -n for n in sizes.values())
    law = {x: len(noise) * float(ODDS) ** -n / total for x, n in sizes.items()}
    expected = {x: n for x, n in law.items() if n > 10}
    rest = len(noise) - sum(seen.get(x, 0) for x in expected), len(noise) - sum(expected.values())
    pairs = np.array([(seen.get(x, 0), n) for x, n in expected.items()] + [rest])
    assert stats.chisquare(*pairs.T, sum_check=False).pvalue > ALARM
    assert len(pairs) > 15


def test_three_levels_have_the_covariances_of_their_law():
    law = NestedGeometric(1.0, (3, 2, 2), (4, 4, 3))
    noise = run(np.zeros((24, 12 * 60)), length=1, table=table_of(law)).reshape(-1, 12)
    found = noise.T @ noise / len(noise)
    place = np.arange(12)
    level = sum((place[:, None] // n != place // n).astype(int) for n in (1, 3, 6))
    expected = np.array(law.covariances)[level]
    spread = np.sqrt(((noise[:, :, None] * noise[:, None]) ** 2).mean(axis=0) / len(noise))
    assert (np.abs(found - expected) < 6 * spread).all()  # 78 of them: less than 1e-6


def pieces(draw, total, n=1000):
    """How often each result comes of numbers that are spread evenly between zero and one."""
    found = {}
    for i in range(n):
        x = draw((i + 0.5) / n)
        found[x] = found.get(x, 0) + 1 / n
    return {x: round(p * total, 12) for x, p in found.items()}


def test_each_draw_has_its_conditional_law():
    """The law of one draw, given those before, from the table itself: counted over uniform numbers."""
    (powers, parts), (upper, _) = LAW.tables()[0]
    n, m, slack = len(parts), len(upper[0]), SLACKS[0]
    c = np.concatenate([powers.ravel(), parts.ravel(), upper.ravel(), TABLE.root.ravel()])
    above, root = powers.size + parts.size, powers.size + parts.size + upper.size
    size = len(TABLE.root)
    roots = pieces(lambda u: tree_draws.draw_root(c, root, size, u), 1.0)
    for (s, phi), p in roots.items():
        assert p == pytest.approx(TABLE.root[abs(s), phi] / (1 if s == 0 else 2), abs=3e-3)
    children = pieces(lambda u: tree_draws.draw_child(c, above, m, 2, 1, 5, u), upper[1, 1, 5])
    for (s, phi), p in children.items():
        assert p == pytest.approx(upper[0, abs(s), phi] * upper[0, abs(1 - s), 5 - phi], abs=upper[1, 1, 5] / 300)
    assert tree_draws.draw_child(c, above, m, 1, -1, 3, 0.5) == (-1, 3)
    leaves = pieces(lambda u: tree_draws.draw_leaf(c, 0, n, 2, -1, 3, u), 1.0)
    assert leaves == pytest.approx({1: 0.5, -2: 0.5}, abs=3e-3)
    assert tree_draws.draw_leaf(c, 0, n, 1, -2, 2, 0.5) == -2
    totals = pieces(lambda u: tree_draws.draw_total(c, powers.size, n, slack, 1, 1, u), 1.0)
    weights = parts[1, 1 : 2 + slack]
    assert totals == pytest.approx({1 + i: w for i, w in enumerate(weights / weights.sum()) if w > 1e-3}, abs=3e-3)
    assert tree_draws.draw_total(c, powers.size, n, slack, 1, 3, 0.5) == 3 + slack


def test_where_rounding_leaves_nothing_the_last_possible_value_is_drawn():
    c = np.zeros(200)
    c[0], c[5] = 0.25, 0.25  # of a root that adds up to less than one
    assert tree_draws.draw_root(c, 0, 3, 0.9999) == (1, 2)
    assert tree_draws.draw_child(c, 0, 3, 2, 0, 1, 0.5) == (0, 0)  # nothing is possible at all
    assert tree_draws.draw_leaf(c, 50, 3, 2, 0, 2, 0.5) == 0
    assert tree_draws.draw_total(c, 100, 3, 2, 0, 0, 0.5) == 2


def test_bits_do_not_depend_on_chunks_threads_and_the_length_of_the_signal():
    u = np.random.default_rng(1).integers(0, 3, (5, 150)).astype(float)
    whole = run(u, phase=1)
    np.testing.assert_array_equal(run(u, chunk=4 * ROWS, phase=1), whole)
    np.testing.assert_array_equal(run(u, n_threads=2, phase=1), whole)
    np.testing.assert_array_equal(run(u[:, :61], phase=1), whole[:, :61])
    np.testing.assert_array_equal(run(u[:3], phase=1), whole[:3])
