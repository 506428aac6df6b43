"""Each draw of noise of a tree of groups, given those before; their joint law is tested in test_shared_draws."""

import math

import numpy as np
import pytest

from dpfast._kernels import tree_draws
from dpfast.privacy.integer_noise.shared import SharedGeometric

SLACKS = (2, 3)
TABLE = SharedGeometric(math.log(6), (2, 2), SLACKS).table()


def pieces(draw, total, n=1000):
    """How often each result comes of numbers that are spread evenly between zero and one."""
    found = {}
    for i in range(n):
        x = draw((i + 0.5) / n)
        found[x] = found.get(x, 0) + 1 / n
    return {x: round(p * total, 12) for x, p in found.items()}


def test_each_draw_has_its_conditional_law():
    """The law of one draw, given those before, from the table itself: counted over uniform numbers."""
    (powers, upper), parts = TABLE.powers, TABLE.parts[0]
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
