"""Blocks that react to what was published: what they guarantee, publish and refuse, and say of themselves."""

import dataclasses
import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from helpers.mechanism_files import documents, forged, written
from helpers.reacting_blocks import follow
from scipy import signal

import dpfast as dp
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.simulated_noise import RELEASE
from dpfast.mechanisms.guarantee_text import guarantee_text
from dpfast.simulation.sweep.compiled_mechanism_json import compiled_content, read_compiled

SLOW = dp.MarkovChain([[0.97, 0.03], [0.06, 0.94]], [0, 1])
TARGET = dp.Filter([0.1], [1, -0.9])
Q, SHORT, THRESHOLD = Fraction(1, 4), 4, Fraction(1, 10)  # where all is in fractions


@pytest.fixture(scope="module")
def mechanism():
    return dp.adaptive_blocks(TARGET, dp.Privacy(2), SLOW, threshold=0.3, longest=6, lag=1)


# --- the guarantee ----------------------------------------------------------------------------------


def published(steps, paths, chance, threshold, longest):
    """All values that may be published in so many steps, within 2 of what inputs sum to: dicts from time to value."""
    variance = 2 * Q / (1 - Q) ** 2
    found, unfinished = [], [{}]
    while unfinished:
        values, nexts = unfinished.pop(), []

        def released(t, length, values=values, nexts=nexts):
            if t not in values:
                nexts.append((t, length))
                raise LookupError
            return values[t]

        try:
            follow(paths, chance, lambda n: Q ** np.abs(n), threshold * variance, longest, released)
            found.append(values)
        except LookupError:
            t, length = nexts[0]
            unfinished += [values | {t: v} for v in range(-2, length + 3)]
    assert all(max(x) < steps for x in found)
    return found


def fractions_of_paths(n):
    """All paths of a slow chain, which starts from either level alike, with their probabilities as fractions."""
    paths = np.array(list(itertools.product((0, 1), repeat=n)))
    chance = np.array([Fraction(1, 2) * math.prod(
        (Fraction(31, 32) if a == b else Fraction(1, 32) for a, b in itertools.pairwise(path)), start=Fraction(1)
    ) for path in paths.tolist()])  # fmt: skip
    return paths, chance


def probability(values, react, event):
    """P(v) up to a factor, of inputs that react to what was published before, with an event at a time or None."""
    told, begin, u = Fraction(1), 0, []
    for t in range(max(values) + 1):
        before = tuple(v for s, v in values.items() if s < t)
        u.append(react(t, before) ^ (t == event))
        if t in values:
            told *= Q ** abs(values[t] - sum(u[begin:]))
            begin = t + 1
    return told


REACTIONS = {
    "zeros": lambda t, before: 0,
    "ones": lambda t, before: 1,
    "in turn": lambda t, before: t % 2,
    "the sign of the last value": lambda t, before: int(bool(before) and before[-1] > 0),
    "the parity of all": lambda t, before: (sum(before) + len(before)) % 2,
}


@pytest.fixture(scope="module")
def everything():
    paths, chance = fractions_of_paths(SHORT)
    return published(SHORT, paths, chance, THRESHOLD, 3)


def test_the_guarantee_holds_of_every_value_that_may_be_published(everything):
    """In exact fractions: one event changes the probability of any v by at most a factor e^ε = 1/q, and some by it."""
    assert len({tuple(x) for x in everything}) > 1  # times of release
    worst = Fraction(1)
    for values, react, event in itertools.product(everything, REACTIONS.values(), range(SHORT)):
        ratio = probability(values, react, event) / probability(values, react, None)
        assert Q <= ratio <= 1 / Q
        worst = max(worst, ratio)
    assert worst == 1 / Q


def test_what_runs_has_the_partition_of_the_guarantee(everything):
    """Inputs that sum to each of these values without noise are published at their times."""
    symmetric = dp.MarkovChain([[31 / 32, 1 / 32], [1 / 32, 31 / 32]], [0, 1])
    made = dp.adaptive_blocks(TARGET, dp.Privacy(math.log(4)), symmetric, threshold=float(THRESHOLD), longest=3)
    u = np.zeros((len(everything), SHORT))
    for stream, values in zip(u, everything, strict=True):
        stream[list(values)] = list(values.values())
    chain, out = Chain(), np.empty((1, *u.shape))
    partition = made.compiled().receiver.partition
    chain.write(chain.publish(partition, IntegerTable(np.zeros(4), 1.0, 0), RELEASE, chain.read()))
    execute(chain, *u.shape, x=u, out=out, n_threads=1)
    for row, values in zip(out[0], everything, strict=True):
        assert np.flatnonzero(~np.isnan(row)).tolist() == list(values)


def test_the_guarantee_in_words(mechanism):
    text = " ".join(guarantee_text(mechanism).split())
    assert "(2, 0)-differential privacy" in text
    assert "Where a block ends depends on what was published before it, and tells nothing more." in text
    canonical = dp.adaptive_blocks(TARGET, dp.Privacy(1, 0.05), SLOW, threshold=0.3, longest=6)
    assert "(1, 0.05)-differential privacy" in guarantee_text(canonical)
    assert "canonical noise" in canonical.summary()
    over = dp.adaptive_blocks(dp.running_sum(7), dp.Privacy(1), SLOW, threshold=0.3)
    assert "streams of 7 steps" in " ".join(guarantee_text(over).split())


# --- what is published and estimated ----------------------------------------------------------------


def test_noise_and_errors_are_what_they_should_be(mechanism):
    """Six standard errors each: noise is zero as often as it should; errors are uncorrelated with the estimates."""
    u = SLOW.sample(600, 400, seed=3)
    paths = mechanism.simulate(u, seed=4)
    ends = ~np.isnan(paths.privatized)
    before = np.cumsum(u - SLOW.mean, axis=1)
    zero = []
    for row, sums, end in zip(paths.privatized, before, ends, strict=True):
        zero += (np.abs(row[end] - np.diff(sums[end], prepend=0.0)) < 1e-6).tolist()
    q = math.exp(-2)
    chance = (1 - q) / (1 + q)
    assert abs(np.mean(zero) - chance) < 6 * math.sqrt(chance * (1 - chance) / len(zero))
    y = signal.lfilter([0.1], [1, -0.9], u, axis=1)[:, 100:-1]
    estimates = paths.estimate[:, 101:]
    products = ((estimates - y) * (estimates - y.mean())).mean(axis=1)
    assert abs(products.mean()) < 6 * products.std(ddof=1) / math.sqrt(len(products))
    assert np.mean((estimates - y) ** 2) < 0.2 * y.var()


def test_next_length_is_that_of_the_variance(mechanism):
    """Of a sum of the chain from an estimate of its last level, by all paths."""
    mechanism = dataclasses.replace(mechanism, threshold=0.65)
    transition, least = SLOW.transition, 0.65 * 2 * math.exp(-2) / (1 - math.exp(-2)) ** 2
    lengths = []
    for p in np.linspace(0, 1, 21):
        for length in range(1, 7):
            paths = np.array(list(itertools.product((0, 1), repeat=length)))
            chance = (np.array([p, 1 - p]) @ transition)[paths[:, 0]]
            for a, b in itertools.pairwise(paths.T):
                chance = chance * transition[a, b]
            sums = paths.sum(axis=1)
            if chance @ sums**2 - (chance @ sums) ** 2 >= least:
                break
        lengths.append(length)
        assert mechanism.next_length([p, 1 - p]) == length
    assert len(set(lengths)) > 2


def test_simulations_take_any_shape_and_are_the_same_on_threads(mechanism):
    u = SLOW.sample(6, 50, seed=1).reshape(2, 3, 50)
    paths, again = (mechanism.simulate(u, seed=2, n_threads=x) for x in (1, 2))
    assert paths.privatized.shape == paths.estimate.shape == u.shape
    np.testing.assert_array_equal(paths.estimate, again.estimate)
    np.testing.assert_array_equal(paths.privatized, again.privatized)
    assert paths.lag == 1
    single = mechanism.simulate(u[0, 0], seed=2)
    np.testing.assert_array_equal(single.estimate, paths.estimate[0, 0])


def test_studies_have_no_prediction(mechanism):
    study = dp.monte_carlo(mechanism, SLOW, n_streams=16, n_samples=300, seed=1)
    assert study[mechanism.name].predicted_rmse is None
    assert [mechanism.predicted_mse, mechanism.ideal_mse, mechanism.worst_step_mse, mechanism.explained] == [None] * 4
    assert [mechanism.predict(SLOW), mechanism.predict_first(3, SLOW), mechanism.step_mse(3)] == [None] * 3
    with pytest.raises(ValueError, match="n must be"):
        mechanism.step_mse(0)
    over = dp.adaptive_blocks(dp.running_sum(30), dp.Privacy(2), SLOW, threshold=0.3, lag=2)
    assert over.settling_time(1e-3) == 0
    assert dp.monte_carlo(over, SLOW, n_streams=16, n_samples=30, seed=1).burn_in == 0


# --- copies and files -------------------------------------------------------------------------------


def assert_same(first, second):
    u = SLOW.sample(3, 40, seed=5)
    for x, y in zip(first.simulate(u, seed=6)[:2], second.simulate(u, seed=6)[:2], strict=True):
        np.testing.assert_array_equal(x, y)


def test_files_pickles_and_copies_publish_the_same(mechanism, tmp_path):
    told = mechanism.with_sources(epsilon="public")
    dp.save(told, tmp_path / "mechanism.json")
    loaded = dp.load(tmp_path / "mechanism.json")
    assert '"version": 4' in (tmp_path / "mechanism.json").read_text()
    assert (loaded.summary(), loaded.sources) == (told.summary(), told.sources)
    for other in (loaded, pickle.loads(pickle.dumps(mechanism)), dataclasses.replace(mechanism, name="another")):
        assert_same(other, mechanism)


def test_what_a_store_keeps_runs_the_same(mechanism):
    compiled = mechanism.compiled()
    read = read_compiled(json.loads(json.dumps(compiled_content(compiled))))
    u, outs = SLOW.sample(3, 40, seed=5), []
    for each in (compiled, read):
        chain, out = Chain(), np.empty((1, 3, 40))
        v = each.privatize(chain, chain.read(), None)
        chain.write(each.receiver.estimate(chain, v)[0])
        execute(chain, 3, 40, seed=1, x=u, out=out, n_threads=1)
        outs.append(out)
    np.testing.assert_array_equal(*outs)


def test_under_another_privacy_noise_and_partition_are_of_it(mechanism):
    other = mechanism.under(dp.Privacy(1))
    assert_same(other, dp.adaptive_blocks(TARGET, dp.Privacy(1), SLOW, threshold=0.3, longest=6, lag=1))
    assert other.noise_std > mechanism.noise_std


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition.threshold": 0}, "partition.threshold must be .*above 0, got 0"),
        ({"partition.longest": 0}, "partition.longest must be an integer, at least 1, got 0"),
        ({"partition.lag": -1}, "partition.lag must be an integer, at least 0"),
        ({"partition.kind": "laplace"}, "partition.kind must be one of"),
        ({"noise_std": 0.1}, "noise_std must be .*below what the guarantee takes"),
        ({"predicted_mse": 1.0}, "predicted_mse must be None"),
        ({"model": None}, "model must be a chain of levels"),
        ({"partition.longest": 10**6}, "longest must be smaller here"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_forged_is_refused_with_its_field(mechanism, changes, message, tmp_path):
    with pytest.raises(dp.DataError, match=message):
        dp.load(written(forged(documents(mechanism, tmp_path), changes), tmp_path))


# --- refusals ---------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused(mechanism):
    with pytest.raises(ValueError, match="probabilities must be 2 numbers that are not negative and sum to 1"):
        mechanism.next_length([0.7, 0.7])
    over = dp.adaptive_blocks(dp.running_sum(7), dp.Privacy(1), SLOW, threshold=0.3)
    with pytest.raises(ValueError, match="u must have the horizon's 7 steps"):
        over.simulate(np.zeros(8), seed=1)
    with pytest.raises(ValueError, match=r"threshold must be .*above 0"):
        dataclasses.replace(mechanism, threshold=0.0)
    assert "no exact release" in mechanism.release_hindrance()
    with pytest.raises(ValueError, match="no exact release of such noise"):
        dp.exact(mechanism, dp.Inputs(0, 1))


def test_it_says_what_it_is(mechanism):
    text = mechanism.summary()
    assert "sums of 1 to 6 steps, until their variance is 0.3 times the noise's" in text
    assert "posterior mean" in text
    assert "only simulation tells" in text
    assert repr(mechanism).startswith("<AdaptiveBlockMechanism 'block sums adaptive lag 1'")
    assert mechanism.sizes()[0].startswith("sums of 1 to 6")
