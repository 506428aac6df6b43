"""The least noise of any law, against the tables, a linear program, a naive sum, and laws of noise that there are."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from dpfast import Privacy
from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.least_noise import least_deviation, least_variance
from tests.helpers.noise_tables import REFERENCE

GRID = [(e, d) for e in (0.01, 0.1, 1.0, 5.0, 30.0) for d in (1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.9)]


@pytest.mark.parametrize("row", REFERENCE["noise"], ids=lambda x: f"{x['epsilon']:.3g}, {x['delta']}")
def test_it_is_that_of_the_reference(row):
    privacy = Privacy(row["epsilon"], row["delta"])
    assert 1 - 2e-7 < least_variance(privacy) / row["additive_bound_variance"] <= 1  # below, as the integral is
    assert 1 - 1e-10 < least_deviation(privacy) / row["linear_mean_bound_std"] <= 1


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_it_is_below_the_best_noise_on_the_integers(epsilon, delta):
    least = least_variance(Privacy(epsilon, delta))
    best = DiscreteCanonical(epsilon, delta).variance
    assert 0.5 * best < least < best
    assert delta > 1e-4 or least > best * (1 - 1e-6)
    assert least_deviation(Privacy(epsilon, delta)) ** 2 < least


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 30.0, 600.0])
def test_without_a_delta_it_is_the_geometric(epsilon):
    assert least_variance(Privacy(epsilon)) == pytest.approx(TwoSidedGeometric(epsilon).variance, rel=1e-10)
    assert least_deviation(Privacy(min(epsilon, 30.0))) == pytest.approx(
        1 / (2 * math.sinh(min(epsilon, 30.0) / 2)), rel=1e-10
    )


def test_it_is_zero_where_no_number_is_as_small():
    assert least_variance(Privacy(800, 1e-6)) == least_deviation(Privacy(800, 1e-6)) == 0.0


def naive(epsilon, delta, n_x=400, n_h=4000):
    """The double sum by loops over the tails, at the middles of parts of x, the minimum over a grid of h."""
    first, total = (1 - delta) / (1 + math.exp(epsilon)), 0.0
    h = np.linspace(0, first * math.exp(epsilon), n_h)
    for x in (np.arange(n_x) + 0.5) / (2 * n_x):
        above, below, value, k = first + h, np.maximum(first - math.exp(-epsilon) * h, 0), np.zeros(n_h), 0
        while above.max() > 1e-15 or below.max() > 1e-15:
            value += (x + k) * above + (1 - x + k) * below
            above, below = (np.maximum(0, math.exp(-epsilon) * (t - delta)) for t in (above, below))
            k += 1
        total += value.min() / (2 * n_x)
    return 4 * total


@pytest.mark.parametrize(("epsilon", "delta"), [(math.log(3), 0.05), (1.0, 0.1), (0.5, 0.1), (3.0, 0.3)])
def test_it_is_the_integral(epsilon, delta):
    """The middles of a concave minimum, and its minimum over a grid, are both above it."""
    assert naive(epsilon, delta) * (1 - 2e-3) < least_variance(Privacy(epsilon, delta)) < naive(epsilon, delta)


def least_on_lattice(epsilon, delta, parts, reach):
    """The least variance of noise on ℤ/parts up to a reach that hides a shift of 1, by a linear program.

    The variables are P(n/parts), and what P(n) exceeds e^ε P(n - parts) by; by symmetry one direction is enough.
    """
    n = np.arange(-reach * parts, reach * parts + 1)
    size = len(n)
    shifted = sparse.eye(size + parts, size, k=0), sparse.eye(size + parts, size, k=-parts)
    excess = sparse.hstack([shifted[0] - math.exp(epsilon) * shifted[1], -sparse.eye(size + parts)])
    within = sparse.csr_matrix(np.concatenate([np.zeros(size), np.ones(size + parts)])[None])
    equal = np.zeros((size, 2 * size + parts))
    equal[0, :size] = 1
    equal[np.arange(1, size // 2 + 1), np.arange(size // 2)] = 1
    equal[np.arange(1, size // 2 + 1), size - 1 - np.arange(size // 2)] = -1
    found = optimize.linprog(
        np.concatenate([(n / parts) ** 2, np.zeros(size + parts)]),
        A_ub=sparse.vstack([excess, within]),
        b_ub=np.append(np.zeros(size + parts), delta),
        A_eq=equal[: size // 2 + 1],
        b_eq=np.append(1.0, np.zeros(size // 2)),
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize(("epsilon", "delta"), [(math.log(3), 0.05), (1.0, 0.1), (2.0, 0.2)])
def test_a_linear_program_comes_near_to_it_and_not_below(epsilon, delta):
    reached = least_on_lattice(epsilon, delta, 8, 7)
    assert least_variance(Privacy(epsilon, delta)) <= reached * (1 + 1e-9)
    assert reached <= least_variance(Privacy(epsilon, delta)) * (1 + 2e-3)
    assert reached < DiscreteCanonical(epsilon, delta).variance  # finer noise is really better


def test_many_terms_are_grouped_and_the_value_stays_below():
    few, many = Privacy(1e-3, 1e-9), Privacy(1e-5, 1e-13)
    assert least_variance(many) < DiscreteCanonical(many.epsilon, many.delta).variance
    # from afar the noise is a continuous law: its variance goes with 1/ε² where δ/ε is the same
    assert least_variance(many) == pytest.approx(1e4 * least_variance(Privacy(1e-3, 1e-11)), rel=1e-6)
    assert least_variance(few) < least_variance(Privacy(1e-3))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 0.1), (4.0, 0.02)])
def test_the_least_deviation_is_reached_on_four_outcomes(epsilon, delta):
    """Of the pair that every other one is made of, weights 1 and tanh(ε/2) have means one apart and that deviation."""
    true, false = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    p, q = np.array([delta, true, false, 0]), np.array([0, false, true, delta])
    weights = np.array([1, math.tanh(epsilon / 2), -math.tanh(epsilon / 2), -1])
    variance = (p @ weights**2 - (p @ weights) ** 2) / (p @ weights - q @ weights) ** 2
    assert math.sqrt(variance) == pytest.approx(least_deviation(Privacy(epsilon, delta)), rel=1e-9)
    rng = np.random.default_rng(18)
    for other in weights + rng.normal(scale=0.1, size=(50, 4)):
        means, squares = (p @ other, q @ other), (p @ other**2, q @ other**2)
        mean_variance = (sum(squares) - means[0] ** 2 - means[1] ** 2) / 2
        assert mean_variance > (means[0] - means[1]) ** 2 * variance * (1 - 1e-9)
