"""Every law of integer noise against its definition, summed by brute force; noise.json has values from elsewhere."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpfast.privacy.integer_noise.canonical import DiscreteCanonical
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.privacy.integer_noise.staircase import MOST_STEPS, Staircase

REFERENCE = json.loads((Path(__file__).parents[2] / "data" / "noise.json").read_text())
ALARM = 1e-9  # of one comparison of counts; there are fewer than a hundred
ROUNDING = 1e-12  # of sums of thousands of numbers
FORGOTTEN = 1e-25  # probabilities below are left out of sums

GEOMETRIC = [TwoSidedGeometric(1.0), TwoSidedGeometric(0.1), TwoSidedGeometric(3.0, 4), TwoSidedGeometric(20.0)]
CANONICAL = [DiscreteCanonical(math.log(3), 0.05), DiscreteCanonical(1.0, 1e-6), DiscreteCanonical(0.1, 1e-6)]
CANONICAL += [DiscreteCanonical(3.0, 0.3), DiscreteCanonical(0.5, 0.9), DiscreteCanonical(20.0, 1e-9)]
STAIRCASE = [Staircase(3.0, 2), Staircase(1.0, 1), Staircase(0.5, 3), Staircase(2.0, 10), Staircase(2.0, 5, 5)]
STAIRCASE += [Staircase(0.3, 7, 1), Staircase(20.0, 3)]
EVERY_LAW = pytest.mark.parametrize("law", [*GEOMETRIC, *CANONICAL, *STAIRCASE], ids=repr)


# --- the definitions ------------------------------------------------------------------------------


def weight(law, n):
    """What the probability of n is proportional to, by the definition of its law."""
    n = abs(n)
    if isinstance(law, TwoSidedGeometric):
        return math.exp(-law.epsilon * n / law.steps)
    if isinstance(law, Staircase):
        stair, place = divmod(n, law.steps)
        return math.exp(-law.epsilon * (stair if place < law.high else stair + 1))
    tails = canonical_tails(law.epsilon, law.delta)
    return 1 - 2 * tails[0] if n == 0 else sum(itertools.islice([*tails, 0.0, 0.0], n - 1, n)) - [*tails, 0.0, 0.0][n]


def canonical_tails(epsilon, delta):
    """P(N >= 1), P(N >= 2), ... by their recursion, as long as they are above zero."""
    tails = [(1 - delta) / (1 + math.exp(epsilon))]
    while (following := math.exp(-epsilon) * (tails[-1] - delta)) > 0:
        tails.append(following)
    return tails


def support(law):
    """How far from zero a law is summed."""
    if isinstance(law, DiscreteCanonical):
        return len(canonical_tails(law.epsilon, law.delta))
    return 1 + law.steps + math.ceil(-math.log(FORGOTTEN) * law.steps / law.epsilon)


def probabilities(law):
    """P(N = n) for n = -support ... support."""
    weights = [weight(law, n) for n in range(support(law) + 1)]
    return np.array(weights[:0:-1] + weights) / (2 * math.fsum(weights) - weights[0])


def tails(law):
    """P(N >= 1), P(N >= 2), ... up to the support."""
    return np.cumsum(probabilities(law)[: support(law)])[::-1]


def hockey_stick(p, q, epsilon):
    """The least delta with which p is hidden by q at an epsilon."""
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0)) if epsilon < 700 else float(p[q == 0].sum())


def moved(p, k):
    """Probabilities of N and of N + k, on the same integers."""
    return np.concatenate([p, np.zeros(k)]), np.concatenate([np.zeros(k), p])


# --- probabilities --------------------------------------------------------------------------------


@EVERY_LAW
def test_probabilities_are_those_of_the_definition(law):
    n = np.arange(-support(law), support(law) + 1)
    np.testing.assert_allclose(np.exp(law.log_probability(n)), probabilities(law), rtol=1e-9, atol=1e-16)


@EVERY_LAW
def test_probabilities_sum_to_one(law):
    n = np.arange(-support(law), support(law) + 1)
    assert math.fsum(np.exp(law.log_probability(n))) == pytest.approx(1, rel=ROUNDING)


@EVERY_LAW
def test_the_variance_is_that_of_the_probabilities(law):
    n = np.arange(-support(law), support(law) + 1)
    assert law.variance == pytest.approx(math.fsum(n**2 * probabilities(law)), rel=1e-10)


@EVERY_LAW
def test_tails_are_sums_of_the_probabilities(law):
    k = np.arange(1, support(law) + 1)
    np.testing.assert_allclose(law.tail(k), tails(law), rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("law", CANONICAL, ids=repr)
def test_the_canonical_law_ends_where_its_tails_do(law):
    assert law.largest == support(law)
    assert law.tail([law.largest])[0] > 0
    assert law.tail([law.largest + 1, law.largest + 100]).tolist() == [0, 0]
    assert law.log_probability([law.largest + 1, -law.largest - 100]).tolist() == [-math.inf, -math.inf]


@EVERY_LAW
@pytest.mark.parametrize("n", [0.5, [1.0], ["1"], [True], None])
def test_only_integers_have_a_probability(law, n):
    for answer in (law.log_probability, law.tail):
        with pytest.raises((TypeError, ValueError), match=r"^n must be integers, got "):
            answer(n)


# --- guarantees -----------------------------------------------------------------------------------


@EVERY_LAW
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_guarantee_of_a_change_holds_and_is_the_least(law, k):
    """Less epsilon or less delta is not enough, but for a canonical law that a change moves off itself."""
    epsilon, delta = law.guarantee(k)
    p, q = moved(probabilities(law), k)
    room = ROUNDING * (1 + math.exp(min(epsilon, 700.0)) * 1e-13)
    if isinstance(law, DiscreteCanonical):
        least = hockey_stick(p, q, epsilon)
        assert least <= delta + room
        assert k > law.largest or least == pytest.approx(delta, rel=1e-6, abs=room)
    else:
        inside = np.s_[: len(p) - k]  # beyond it one of them is cut off
        assert delta == 0
        assert hockey_stick(p[inside], q[inside], epsilon) <= room
        assert hockey_stick(q[k:], p[k:], epsilon) <= room
        assert hockey_stick(p[inside], q[inside], 0.999 * epsilon) > 1e-9 * math.exp(-epsilon)


@EVERY_LAW
def test_no_change_costs_nothing(law):
    assert law.guarantee(0) == (0, 0)


@EVERY_LAW
def test_the_change_that_it_is_made_for_costs_what_it_says(law):
    assert law.guarantee(law.steps) == pytest.approx((law.epsilon, law.delta), rel=1e-12)


@EVERY_LAW
@pytest.mark.parametrize("k", [-1, 1.5, None, True])
def test_a_change_is_a_number_of_steps(law, k):
    with pytest.raises(ValueError, match=r"^change must be an integer, at least 0, got "):
        law.guarantee(k)


def test_a_large_change_reveals_all_under_canonical_noise():
    assert DiscreteCanonical(1.0, 0.01).guarantee(1000) == (1000, 1)
    assert DiscreteCanonical(1.0, 0.01).guarantee(10) == (10, 1)


def test_staircase_noise_charges_each_begun_stair():
    assert [Staircase(3.0, 2).guarantee(k)[0] for k in range(6)] == [0, 3, 3, 6, 6, 9]


# --- the least variance ---------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 3), (1.0, 2), (2.0, 10), (3.0, 2), (5.0, 12)])
def test_the_stairs_are_those_of_least_variance(epsilon, steps):
    laws = [Staircase(epsilon, steps, high) for high in range(1, steps + 1)]
    spread = [math.fsum(np.arange(-support(x), support(x) + 1) ** 2 * probabilities(x)) for x in laws]
    assert Staircase(epsilon, steps).high == 1 + int(np.argmin(spread))


def test_stairs_of_one_step_are_the_geometric_law():
    n = np.arange(-30, 31)
    found, expected = Staircase(0.7, 1).log_probability(n), TwoSidedGeometric(0.7).log_probability(n)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --- reference values -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFERENCE["noise"], ids=lambda x: f"{x['epsilon']:.3g}, {x['delta']:g}")
def test_the_variances_are_those_of_reference(case):
    delta = case["delta"]
    law = DiscreteCanonical(case["epsilon"], delta) if delta else TwoSidedGeometric(case["epsilon"])
    assert law.variance == pytest.approx(case["variance"], rel=1e-9)
    assert math.sqrt(law.variance) == pytest.approx(case["std"], rel=1e-9)
    known = case.get("tail_probabilities") or []
    np.testing.assert_allclose(law.tail(np.arange(1, len(known) + 1)), known, rtol=1e-9, atol=1e-16)
    if delta and case.get("support"):
        assert law.largest == case["support"]


@pytest.mark.parametrize("case", REFERENCE["staircase"], ids=lambda x: f"{x['epsilon']}, {x['max_change']}")
def test_the_stairs_are_those_of_reference(case):
    law = Staircase(case["epsilon"], case["max_change"])
    assert law.high == case["steps_high"]
    assert law.variance == pytest.approx(case["variance"], rel=1e-9)
    other = TwoSidedGeometric(case["epsilon"], case["max_change"])
    assert other.variance == pytest.approx(case["geometric_variance"], rel=1e-9)


# --- draws ----------------------------------------------------------------------------------------


@EVERY_LAW
def test_the_table_has_all_tails_that_32_bits_show(law):
    found, step = law.tails()
    assert step == 1
    np.testing.assert_allclose(found, tails(law)[: len(found)], rtol=1e-9, atol=1e-16)
    assert np.append(tails(law), 0.0)[len(found)] <= 2.0**-33
    assert (found[1:] > 2.0**-33).all()


WIDE = [TwoSidedGeometric(1e-4), TwoSidedGeometric(2e-9, 1000), DiscreteCanonical(1e-5, 1e-7), Staircase(0.01, 4000)]
WIDE += [DiscreteCanonical(1e-7, 1e-7), Staircase(1e-3, MOST_STEPS)]


@pytest.mark.parametrize("law", WIDE, ids=repr)
def test_neighbours_of_a_wide_law_are_drawn_as_the_one_in_their_middle(law):
    found, step = law.tails()
    assert 2**16 / 3 < len(found) <= 2**16
    assert step % 2 == 1
    k = np.arange(1, len(found) + 1, 97)
    np.testing.assert_array_equal(law.tail((step * (k - 0.5) + 0.5).astype(np.int64)), found[::97])
    drawn = 2 * step**2 * (2 * np.arange(len(found)) + 1) @ found  # what is behind 32 bits is not
    assert drawn == pytest.approx(law.variance, rel=1e-8)
    assert len(law.sample(1000, seed=1)) == 1000


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-4, 1e-9), (1e-5, 1e-7), (1e-4, 1e-300), (3e-6, 2e-6)])
def test_the_variance_of_a_wide_canonical_law_is_the_sum(epsilon, delta):
    law, total = DiscreteCanonical(epsilon, delta), 0.0
    tail = (1 - delta) / (1 + math.exp(epsilon))
    limit = delta / math.expm1(epsilon)
    for first in range(0, min(law.largest, round(60 / epsilon)), 100_000):
        k = np.arange(first, min(first + 100_000, law.largest), dtype=float)
        total += 2 * float((2 * k + 1) @ ((tail + limit) * np.exp(-epsilon * k) - limit))
    assert law.largest > 2**16
    assert law.variance == pytest.approx(total, rel=1e-11)


@EVERY_LAW
def test_a_uniform_number_gives_the_largest_size_whose_tails_reach_it(law):
    seen = tails(law)[tails(law) > 1e-12]
    k, step = np.arange(1, len(seen) + 1), 1e-9 + 1e-15 / seen  # tails are rounded as numbers of the size of one
    assert np.array_equal(law.magnitude(2 * seen * (1 - step)), k)
    assert np.array_equal(law.magnitude(np.minimum(2 * seen * (1 + step), 1.0)), k - 1)
    assert law.magnitude(np.array([1.0])) == 0


@pytest.mark.parametrize("law", CANONICAL, ids=repr)
def test_a_uniform_number_on_the_bound_gives_the_larger_size(law):
    k = np.arange(1, support(law) + 1)
    assert np.array_equal(law.magnitude(2 * law.tail(k)), k)


@EVERY_LAW
def test_samples_follow_the_probabilities(law):
    drawn, n = law.sample((1000, 100), seed=5), support(law)
    assert drawn.dtype == np.int64
    assert drawn.shape == (1000, 100)
    assert np.abs(drawn).max() <= n
    counts = np.bincount(drawn.ravel() + n, minlength=2 * n + 1)
    expected = probabilities(law) * drawn.size
    frequent = expected > 20
    counts, expected = (np.append(x[frequent], x[~frequent].sum()) for x in (counts, expected))
    rare = stats.poisson.sf(counts[-1] - 1, expected[-1])  # of many, each with little probability
    assert rare > ALARM
    if expected[-1] <= 20:
        counts, expected = counts[:-1], expected[:-1] * (counts[:-1].sum() / expected[:-1].sum())
    assert len(counts) == 1 or stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > ALARM


def test_samples_come_from_their_seed():
    law = TwoSidedGeometric(0.5)
    assert np.array_equal(law.sample(50, seed=3), law.sample(50, seed=np.random.default_rng(3)))
    assert not np.array_equal(law.sample(50, seed=3), law.sample(50, seed=4))


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [TwoSidedGeometric, lambda x: DiscreteCanonical(x, 0.01), lambda x: Staircase(x, 2)])
@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", None])
def test_epsilon_is_above_zero(make, epsilon):
    with pytest.raises(ValueError, match=r"^epsilon must be a .*number.*, got "):
        make(epsilon)


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_canonical_noise_needs_a_delta(delta):
    with pytest.raises(ValueError, match=r"^delta must be a .*number.*, got "):
        DiscreteCanonical(1.0, delta)


@pytest.mark.parametrize("make", [TwoSidedGeometric, Staircase])
@pytest.mark.parametrize("steps", [0, -1, 1.5, None])
def test_steps_are_counted(make, steps):
    with pytest.raises(ValueError, match=r"^steps must be an integer, at least 1.*, got "):
        make(1.0, steps)


@pytest.mark.parametrize("make", [TwoSidedGeometric, Staircase])
def test_noise_stays_in_the_integers_of_floating_point(make):
    with pytest.raises(ValueError, match=r"^epsilon must be at least 1e-12 for each unit .*, got 9e-11 over 100: "):
        make(9e-11, 100)
    law = make(1.01e-10, 100)
    assert np.abs(law.sample(1000, seed=1)).max() < 2**53
    with pytest.raises(ValueError, match=r"^epsilon must be at least 1e-12 "):
        DiscreteCanonical(1e-13, 0.1)


def test_a_delta_that_does_nothing_is_left_to_the_geometric_law():
    assert DiscreteCanonical(600.0, 1e-6).largest == 1
    with pytest.raises(ValueError, match=r"^delta must be at least 2.2e-308 times e\^epsilon, got 1e-06 .*: take geom"):
        DiscreteCanonical(700.0, 1e-6)


def test_stairs_have_an_end():
    with pytest.raises(ValueError, match=r"^steps must be an integer, at least 1 and at most 1000000, got 1000001"):
        Staircase(1.0, MOST_STEPS + 1)
    for high in (0, 4):
        with pytest.raises(ValueError, match=rf"^high must be an integer, at least 1 and at most 3, got {high}"):
            Staircase(1.0, 3, high)


@pytest.mark.parametrize(
    "law",
    [TwoSidedGeometric(800.0), TwoSidedGeometric(1e5, 3), Staircase(800.0, 3), Staircase(700.0, MOST_STEPS)],
    ids=repr,
)
def test_little_privacy_leaves_nothing_to_draw(law):
    assert law.variance < 1e-100
    assert not law.sample(1000, seed=1).any()
    assert np.exp(law.log_probability([0, 1])).tolist() == [1, pytest.approx(0, abs=1e-100)]
