import numpy as np
import pytest
from scipy import stats

from dpfast.privacy.privacy import Privacy
from dpfast.releases.audit.confidence_bounds import (
    AttackRule,
    choose_rule,
    clopper_pearson,
    epsilon_at,
    judge_rule,
    least_epsilon,
    least_mu,
    reachable_bound,
)


@pytest.mark.parametrize("trials", [1, 7, 500])
@pytest.mark.parametrize("miss", [0.3, 0.025, 1e-9])
def test_intervals_are_those_of_scipy(trials, miss):
    for k in {0, 1, trials // 3, trials - 1, trials}:
        expected = stats.binomtest(k, trials).proportion_ci(1 - 2 * miss, method="exact")
        assert clopper_pearson(k, trials, miss) == pytest.approx((expected.low, expected.high), rel=1e-6, abs=1e-12)


def test_intervals_are_those_of_the_tables():
    """Clopper and Pearson (1934), 95 %: 3 of 10, and the "rule of three"."""
    low, high = clopper_pearson(3, 10, 0.025)
    assert (round(float(low), 4), round(float(high), 4)) == (0.0667, 0.6525)
    assert float(clopper_pearson(0, 100, 0.05).high) == pytest.approx(1 - 0.05 ** (1 / 100))


@pytest.mark.parametrize("p", [1e-4, 0.02, 0.4, 0.97])
def test_each_bound_fails_no_more_often_than_said(p):
    """Exactly, by all outcomes."""
    k = np.arange(201)
    mass, bounds = stats.binom.pmf(k, 200, p), clopper_pearson(k, 200, 0.03)
    assert mass[bounds.low > p].sum() <= 0.03
    assert mass[bounds.high < p].sum() <= 0.03


def test_delta_counts_for_the_hits():
    low, high = clopper_pearson(900, 1000, 0.01).low, clopper_pearson(40, 1000, 0.01).high
    assert least_epsilon(900, 40, 1000, 0.25, 0.01) == pytest.approx(np.log((low - 0.25) / high))
    assert least_epsilon(40, 900, 1000, 0.25, 0.01) == 0
    assert least_epsilon(0, 0, 1000, 0.25, 0.01) == 0


def responses(rng, n, epsilon):
    """Randomised response, whose ε is known and seen in one event."""
    right = rng.random((2, n)) < 1 / (1 + np.exp(-epsilon))
    return np.where(right[0], 0.0, 1.0), np.where(right[1], 1.0, 0.0)


def test_randomised_response_shows_nearly_all_of_its_epsilon():
    found = judge_rule(*responses(np.random.default_rng(1), 200_000, 2.0), epsilon_at(1e-9), 1e-3)
    assert 1.9 < found.bound < 2.0
    assert found.trials == 100_000


def test_a_bound_is_above_the_truth_no_more_often_than_said():
    """False alarm of this test: below 1e-6."""
    rng, miss, n = np.random.default_rng(2), 0.1, 400
    above = sum(judge_rule(*responses(rng, 600, 1.0), epsilon_at(1e-12), miss).bound > 1.0 for _ in range(n))
    assert above <= stats.binom.isf(1e-6, n, miss)
    loose = sum(judge_rule(*responses(rng, 600, 1.0), epsilon_at(1e-12), 0.9).bound > 1.0 for _ in range(n))
    assert loose > above  # it can fail


@pytest.mark.parametrize(
    ("without", "with_", "rule"),
    [
        (lambda x: x, lambda x: x + 9, (True, True)),  # unlikely without
        (lambda x: -x, lambda x: -x - 9, (False, True)),
        (lambda x: x, lambda x: np.where(x < 0.7, x + 9, x), (True, True)),
        (lambda x: np.where(x < 0.7, x + 9, x), lambda x: x, (True, False)),
        (lambda x: x - np.where(x < 0.7, 9, 0), lambda x: x, (False, False)),
    ],
)
def test_rules_of_all_four_kinds_are_found(without, with_, rule):
    rng = np.random.default_rng(3)
    a, b = rng.random(4000), rng.random(4000)
    found = choose_rule(without(a), with_(b), epsilon_at(1e-6), 1e-3)
    hits, false_alarms = found.counts(without(a), with_(b))
    assert false_alarms == 0
    assert hits > 2000
    if rule[1] is False or rule == (False, True):
        assert (found.above, found.of_with) in {rule, (not rule[0], not rule[1])}


def test_counts_of_a_rule():
    without, with_ = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    assert AttackRule(1.0, True, True).counts(without, with_) == (2, 1)
    assert AttackRule(1.0, False, False).counts(without, with_) == (2, 1)
    assert AttackRule(0.0, False, True).counts(without, with_) == (0, 1)


@pytest.mark.parametrize("epsilon", [4.0, *(pytest.param(x, marks=pytest.mark.long) for x in (0.5, 1.0))])
def test_what_is_reachable_is_below_epsilon_and_comes_to_it(epsilon):
    mu = Privacy(epsilon, 1e-2).gdp_mu
    found = [reachable_bound(mu, n, epsilon_at(1e-2), 0.01) for n in (10**4, 10**6, 10**10)]
    assert found == sorted(found)
    assert 0.97 * epsilon < found[-1] < epsilon


def test_gaussians_show_what_is_reachable():
    rng, mu, n = np.random.default_rng(4), 0.4477, 100_000
    found = judge_rule(rng.normal(size=n), mu + rng.normal(size=n), epsilon_at(1e-6), 1e-2).bound
    assert found == pytest.approx(reachable_bound(mu, n, epsilon_at(1e-6), 1e-2), abs=0.15)
    nothing = judge_rule(rng.normal(size=n), rng.normal(size=n), epsilon_at(1e-6), 1e-9).bound
    assert nothing == 0


# --- of Gaussian differential privacy -------------------------------------------------------------


def test_mu_is_between_the_quantiles_of_the_rates():
    low, high = clopper_pearson(6000, 10_000, 1e-3).low, clopper_pearson(5000, 10_000, 1e-3).high
    assert least_mu(6000, 5000, 10_000, 1e-3) == pytest.approx(stats.norm.ppf(low) - stats.norm.ppf(high), rel=1e-9)
    assert least_mu(5000, 6000, 10_000, 1e-3) == 0
    assert least_mu(0, 0, 10, 1e-3) == least_mu(10, 10, 10, 1e-3) == 0


def test_a_bound_of_mu_is_above_the_truth_no_more_often_than_said():
    """False alarm of this test: below 1e-6."""
    rng, miss, n = np.random.default_rng(5), 0.1, 200
    shown = [judge_rule(rng.normal(size=600), 0.5 + rng.normal(size=600), least_mu, miss).bound for _ in range(n)]
    assert np.count_nonzero(np.array(shown) > 0.5) <= stats.binom.isf(1e-6, n, miss)


MU, RUNS, MISS = 0.2367, 1_200_000, 0.01 / 15  # ε = 1 at δ = 1e-6, and the audit of counts behind no filter


@pytest.mark.parametrize(("factor", "seen"), [(0.9, True), (1.0, False)])
def test_the_runs_that_show_half_of_epsilon_show_a_tenth_of_sigma_by_mu(factor, seen):
    """Scores against N(0, 1) and N(μ, 1), in standard deviations as stated; missed with a probability below 1e-9."""
    rng = np.random.default_rng(6)
    without, with_ = factor * rng.normal(size=RUNS), MU + factor * rng.normal(size=RUNS)
    assert (judge_rule(without, with_, least_mu, MISS).bound > MU) == seen
    assert judge_rule(without, with_, epsilon_at(1e-6), MISS).bound < 1


def test_what_is_reachable_of_mu():
    assert 0.224 < reachable_bound(MU, RUNS, least_mu, MISS) < 0.227


@pytest.mark.long
def test_with_many_runs_all_of_mu_is_reachable():
    assert reachable_bound(MU, 10**12, least_mu, MISS) == pytest.approx(MU, rel=1e-4)
