"""Levels of blocks with unequal shares of the privacy: which law is drawn for which sum, and what all cost together."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dp
from dpfast.privacy.canonical_table import CanonicalTable
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.releases.integer.exact_block_sums import ExactBlockSums
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.integer.lattice_noise import exact_shares, read_laws
from dpfast.releases.noise import NoiseOfLaws

TARGET = dp.Filter([0.1], [1, -0.9])
COUNTS = dp.ARMA([1.2], [1, -0.9], mean=5)
INPUTS = dp.Inputs(0, 20)


def planned(*shares, delta=0.0, inputs=INPUTS, length=(1, 2), **privacy):
    noise, demanded = "canonical" if delta else "geometric", dp.Privacy(1, delta, **privacy)
    return dp.exact(dp.block_sums(TARGET, demanded, COUNTS, length=length, shares=shares, noise=noise), inputs)


def probability(law, n):
    """P(N = n), by its definition."""
    if isinstance(law, GeometricRate):
        q = math.exp(-float(law.per_step))
        return (1 - q) / (1 + q) * q ** abs(n)
    return float(law.probabilities[law.values.index(n)]) if n in law.values else 0.0


def laws_of_values(plan, n):
    """The law of each published number: found by adding one to a single draw of a known law."""
    counts, x = plan.n_draws(0, n), np.zeros((1, n), np.int64)
    laws = [law for law, k in zip(plan.drawn_laws, counts, strict=True) for _ in range(k)]
    found = {}
    for i, law in enumerate(laws):
        ((_, level, step),) = np.argwhere(plan.privatize(x[:, :0], x, np.eye(len(laws), dtype=np.int64)[[i]]))
        found[level, step] = law
    return found


def joint_law(plan, x, reach):
    """P of all rows of published numbers in reach of the sums, as products over the draws: (rows,)."""
    n = len(x)
    laws, inputs = laws_of_values(plan, n), np.array([x])
    sums = plan.privatize(inputs[:, :0], inputs, np.zeros((1, sum(plan.n_draws(0, n))), np.int64))[0]
    found = np.ones(1)
    for place in sorted(laws):
        own = [probability(laws[place], k - sums[place]) for k in range(-reach, reach + 1)]
        found = np.outer(found, own).ravel()
    return found


def distance(a, b, epsilon):
    """The least δ of two laws at an ε, on the rows that are listed."""
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum(), np.maximum(b - math.exp(epsilon) * a, 0).sum())


def check_closeness(plan):
    """Every event changes the published law by at most what is stated, and by nearly that."""
    base = joint_law(plan, [0, 0], 9)
    ratios = [np.abs(np.log(joint_law(plan, x, 9) / base)).max() for x in ([1, 0], [0, 1])]
    stated = float(plan.guarantee.loss.pure[0])
    assert ratios == pytest.approx([stated, stated], rel=1e-9)


def check_levels(plan, shares):
    """Each level costs its own share: of the marginal law of its numbers."""
    laws = laws_of_values(plan, 2)
    for level, share in enumerate(shares):
        (law,) = {law for (k, _), law in laws.items() if k == level}
        assert math.log(probability(law, 0) / probability(law, 1)) == pytest.approx(share, rel=1e-8)


def test_the_published_law_is_as_close_as_stated_by_enumeration():
    plan = planned(0.7, 0.3)
    check_closeness(plan)
    check_levels(plan, (0.7, 0.3))
    assert plan.guarantee.epsilon == pytest.approx(1, rel=1e-8)


def test_laws_that_are_swapped_between_levels_are_seen(monkeypatch):
    """The check can fail: noise of the other level costs as much together, and is not what is stated of each."""
    monkeypatch.setattr(ExactBlockSums, "_levels", (np.array([1]), np.array([0])))
    plan = planned(0.7, 0.3)
    with pytest.raises(AssertionError):
        check_levels(plan, (0.7, 0.3))


def test_more_than_the_whole_is_seen_and_refused():
    plan = planned(0.7, 0.3)
    more = tuple(x._replace(s=x.s + 2**20) for x in plan.noise)
    with pytest.raises(dp.DesignError, match="at most epsilon 1, got 1"):
        replace(plan, noise=more)
    leaking = planned(0.7, 0.3)
    object.__setattr__(leaking, "noise", more)
    object.__setattr__(leaking, "guarantee", plan.guarantee)
    with pytest.raises(AssertionError):
        check_closeness(leaking)


def test_tables_of_unequal_shares_are_as_close_as_stated_by_enumeration():
    """Two tables, and a table beside geometric noise where a share of δ is too small for one."""
    for delta, second in ((0.3, CanonicalTable), (0.004, GeometricRate)):
        plan = planned(0.8, 0.2, delta=delta)
        assert [type(x) for x in plan.noise] == [CanonicalTable, second]
        loss = plan.guarantee.loss
        assert 0.999999 < sum(x for x, _ in loss.approximate) + sum(loss.pure) <= 1
        assert sum(x for _, x in loss.approximate) <= Fraction(delta)
        base, other = joint_law(plan, [0, 0], 60), joint_law(plan, [1, 0], 60)
        for epsilon in (0.3, 0.7, 1.0):
            assert distance(base, other, epsilon) <= loss.delta(epsilon)
        assert distance(base, other, 1.0) > 0.9 * loss.delta(1.0)


def test_what_is_drawn_for_a_level_has_its_law():
    """Counts of each value within 6 standard deviations, 40 of them: a false alarm comes once in 10 million runs."""
    plan, n = planned(0.75, 0.25, length=(2, 6)), 60_000
    noise, counts = NoiseOfLaws.of(plan.drawn_laws), plan.n_draws(0, n)
    assert counts == (n // 2, n // 6)
    noise.ready(1, counts)
    x = np.zeros((1, n), np.int64)
    v = plan.privatize(x[:, :0], x, noise.take(1, counts))[0]
    for row, due, law in zip(v, plan.released(0, n), plan.laws, strict=True):
        drawn = row[due]
        assert not row[~due].any()
        for k in range(-10, 10):
            p = probability(law, k)
            assert abs(np.count_nonzero(drawn == k) - p * len(drawn)) < 6 * math.sqrt(p * (1 - p) * len(drawn))


def test_all_shares_are_within_the_demand_exactly():
    """The sum of the stated ε is that of the rates, as fractions."""
    for shares in ((0.1, 0.2, 0.7), (1 / 3, 2 / 3), (0.9, 0.1), (0.2,) * 5):
        plan = planned(*shares, length=tuple(2**i for i in range(len(shares))), max_change=2, max_events=3)
        (epsilon,) = plan.guarantee.loss.pure
        assert epsilon == 6 * sum(x.per_step for x in plan.noise) <= min(1, sum(map(Fraction, shares)))
        assert float(epsilon) == pytest.approx(sum(shares), rel=1e-7)


def test_shares_that_are_one_but_for_rounding_are_parts_of_the_whole():
    assert sum(map(Fraction, (0.2,) * 5)) > 1
    assert exact_shares((0.2,) * 5) == (Fraction(1, 5),) * 5
    assert sum(exact_shares((0.1, 0.2, 0.7))) == 1
    assert exact_shares((0.5, 0.25)) == (Fraction(1, 2), Fraction(1, 4))


def test_equal_levels_are_written_as_they_were():
    plan = planned(0.5, 0.5)
    assert plan.configuration["law"] == {"kind": "geometric", "rate": list(plan.noise[0])}
    assert plan.drawn_laws == (plan.noise[0],)


def test_each_law_is_written_and_read():
    plan = planned(0.8, 0.2)
    content = json.loads(json.dumps(plan.configuration))
    assert content["law"] == [{"kind": "geometric", "rate": list(x)} for x in plan.noise]
    again = load_exact(content)
    assert again.noise == plan.noise
    assert again.guarantee == plan.guarantee
    first = f"on sums of 1: two-sided geometric, rate {plan.noise[0].s}/2^{plan.noise[0].j} (standard deviation about "
    said = plan.guarantee.items()["noise"]
    assert said.startswith(first)
    assert "; on sums of 2: two-sided geometric, rate" in said
    assert json.loads(plan.guarantee.to_json())["noise"] == content["law"]
    with pytest.raises(ValueError, match="law must be one law of integer noise, or 3 of them, got 2"):
        read_laws(content["law"], 3)
    with pytest.raises(dp.DesignError, match="noise must have a law for each of 2 sums"):
        replace(plan, noise=plan.noise[:1])


def test_a_receiver_for_other_noise_takes_each_level_s_own():
    """A person in two streams: the noise is twice as large, and the receiver is made for it."""
    plan = planned(0.8, 0.2, inputs=dp.Inputs(0, 20, n_streams=2, streams_per_person=2))
    variances = tuple(float(x.variance) for x in plan.noise)
    assert plan.receiver is not plan.mechanism.receiver
    assert plan.predicted_mse < plan.mechanism.mse_behind(variances, plan.mechanism.receiver)
    assert plan.predicted_mse < plan.mechanism.mse_behind(variances[::-1], plan.receiver)


def test_v_agrees_with_its_model_as_often_as_it_should():
    """At a level of 2 %: more than 6 of 20 by a chance of 1e-7; with the levels' laws exchanged it does not."""
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), chain, length=(2, 4), shares=(0.8, 0.2))
    plan, n = dp.exact(mechanism, dp.Inputs(0, 1, n_streams=2)), 600
    exchanged = replace(plan, noise=plan.noise[::-1])
    noise, counts, alarms = NoiseOfLaws.of(plan.drawn_laws), plan.n_draws(0, n), 0
    for i, u in enumerate(chain.sample(40, n, seed=2).reshape(20, 2, n).astype(np.int64)):
        noise.ready(2, counts)
        v = plan.privatize(u[:, :0], u, noise.take(2, counts))
        alarms += plan.evidence(v, n).judge(0.02).agrees is False
        assert i >= 3 or exchanged.evidence(v, n).judge(0.02).agrees is False
    assert alarms <= 6


def test_streams_and_batches_run_and_are_opened_again(tmp_path):
    plan = planned(0.8, 0.2, length=(2, 6))
    u = np.random.default_rng(1).integers(0, 20, (1, 20))
    for cut in (7, 12):
        with dp.open_stream(plan, tmp_path / str(cut)) as stream:
            first = stream.push(u[:, :cut])
        with dp.open_stream(plan, tmp_path / str(cut)) as stream:
            rest = stream.push(u[:, cut:])
            whole = stream.read(0, 20)
        assert (whole.privatized == np.concatenate([first.privatized, rest.privatized], axis=-1)).all()
        np.testing.assert_array_equal(whole.estimate, plan.estimate(whole.privatized))
    released = dp.release(plan, u, tmp_path / "batch")
    np.testing.assert_array_equal(released.estimate, plan.estimate(released.privatized, 20))
