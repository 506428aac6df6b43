"""The code of docs/explanation/beyond-blocks.md gives what the page says, and its law hides an event."""

import collections
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.simulation.paper_example import CHAIN

PAGE = (Path(__file__).parents[2] / "docs/explanation/beyond-blocks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def code():
    """What the page defines."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(block, names)
    return names


def law(q, slack, epsilon, largest):
    """All x of a box, and P(x), by the formula of the page."""
    x = np.array(list(itertools.product(range(-largest, largest + 1), repeat=q)))
    weight = np.exp(-epsilon * np.maximum(np.abs(x.sum(axis=1)), np.abs(x).sum(axis=1) - slack))
    return x, weight / weight.sum()


@pytest.mark.parametrize(("q", "slack", "epsilon", "largest"), [(2, 2, 1, 30), (2, 0, 1, 30), (3, 2.5, 3, 12)])
def test_variances_are_those_of_the_law(code, q, slack, epsilon, largest):
    x, p = law(q, slack, epsilon, largest)
    covariance = (x.T * p) @ x
    np.testing.assert_allclose(code["group_noise"](q, slack, epsilon), covariance[0, :2], atol=1e-8)


@pytest.mark.parametrize(("q", "slack", "epsilon", "largest"), [(2, 2, 1, 10), (3, 2.5, 3, 6)])
def test_a_step_of_one_coordinate_changes_a_probability_by_e_to_epsilon_at_most(q, slack, epsilon, largest):
    _, p = law(q, slack, epsilon, largest)
    for axis in range(q):
        ratio = np.diff(np.log(p.reshape((2 * largest + 1,) * q)), axis=axis)
        assert np.abs(ratio).max() == pytest.approx(epsilon, rel=1e-12)


def test_errors_of_shared_noise_are_those_shown(code):
    rows = [x for x in PAGE.split("<!-- shared -->\n")[1].split("\n\n")[0].splitlines() if x.startswith("| .99")]
    assert len(rows) == 9
    for row in rows[:4]:  # the others take seconds
        p, epsilon, lag, _, shown, less, _ = (x.strip(" *") for x in row.strip("|").split("|"))
        error, length, q, slack = map(float, re.findall(r"[\d.]+", shown))
        target = dp.Filter([1, float(p)], [1, -float(p)])
        blocks = dp.block_sums(target, dp.Privacy(float(epsilon)), CHAIN, lag=int(lag))
        assert f"| {blocks.predicted_rmse:.4g} ({blocks.lengths[0]}) |" in row
        assert float(less.rstrip(" %")) == pytest.approx(100 * (1 - error / blocks.predicted_rmse), abs=0.06)
        given = {"length": int(length), "group": int(q), "slack": int(slack)}
        shared = dp.block_sums(target, dp.Privacy(float(epsilon)), CHAIN, lag=int(lag), **given)
        assert f"{shared.predicted_rmse:.4g}" == f"{error:.4g}"
        if lag == "0":  # which the code is for
            assert f"{code['rmse'](float(p), float(epsilon), int(length), int(q), slack):.4g}" == f"{error:.4g}"


def test_errors_of_trees_are_those_shown():
    rows = [x for x in PAGE.split("<!-- trees -->\n")[1].split("\n\n")[0].splitlines() if x.startswith("| .99")]
    assert len(rows) == 7
    for row in rows:
        p, epsilon, _, _, *trees, _ = (x.strip(" *") for x in row.strip("|").split("|"))
        target = dp.Filter([1, float(p)], [1, -float(p)])
        for tree in trees:
            if tree != "–":
                error, numbers = re.fullmatch(r"([\d.]+)\**? \((.*)\)", tree).groups()
                length, group, slack = (tuple(map(int, x.split(", "))) for x in numbers.split("; "))
                options = {"length": length[0], "group": group, "slack": slack}
                found = dp.block_sums(target, dp.Privacy(float(epsilon)), CHAIN, **options)
                assert f"{found.predicted_rmse:#.4g}" == f"{float(error):#.4g}"


def test_a_dense_strategy_read_as_noise_on_inputs_hides_an_event_where_inputs_react():
    """Geometric noise on C = (1, 0; 0, 1; 1, 1) of norm 2, enumerated: v' = u + C⁺n, u₂ a function of v'₁."""
    size = 24
    a, b, c = (x.ravel() for x in np.meshgrid(*[np.arange(-size, size + 1)] * 3, indexing="ij"))
    weight = np.exp(-(np.abs(a) + np.abs(b) + np.abs(c)) / 2.0)  # of rate ε/2: ε = 1 for a change of 1
    noise = collections.defaultdict(float)  # of 3 C⁺n
    for key, mass in zip(zip(2 * a - b + c, -a + 2 * b + c, strict=True), weight, strict=True):
        noise[key] += mass

    def published(first, change):
        """3 v' and its probability, for the first input and a second one that reacts, changed by so much."""
        found = {}
        for (x, y), mass in noise.items():
            seen = x + 3 * first
            found[seen, y + 3 * ((2 if seen > 1 else 0) + change)] = mass
        return found

    for other in ((1, 0), (0, 1)):
        one, two = published(0, 0), published(*other)
        inner = [x for x in one if max(map(abs, x)) <= 18]
        ratios = [math.log(one[x] / two[x]) for x in inner]
        assert 0.98 < max(map(abs, ratios)) <= 1 + 1e-6
