import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal, stats

from dpfast import ARMA, Filter, IndependentLevels, MarkovChain
from dpfast._kernels import chain, random
from dpfast.receivers import DecisionFeedback, LinearReceiver, Smoother

ALARM = 1e-6  # of a statistical test
TARGET, PREFILTER = Filter([1.0, 0.5], [1.0, -0.8]), Filter([1.0, -0.2], [1.0, -0.6])
MARKOV = MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])
MEAN, NOISE_STD = 1 / 3, 0.7
RECEIVERS = {
    "lag 0": LinearReceiver(Filter([0.4, 0.1], [1, -0.7]), TARGET, MEAN, 0),
    "lag 5": LinearReceiver(Filter([0.1, 0.2, 0.3, 0.2, 0.1], [1, -0.7]), TARGET, MEAN, 5),
    "smoother": Smoother(Filter([0.5, 0.2], [1, -0.8]), Filter([0.6], [1, -0.5]), TARGET, MEAN),
    **{
        decision: DecisionFeedback(
            forward=np.array([0.1, 0.2, 0.3, 0.2]),
            feedback=np.array([0.3, -0.1]),
            levels=np.array([0.0, 1.0]),
            probabilities=np.array([2 / 3, 1 / 3]),
            shrinkage=0.6,
            error_variance=0.1,
            decision=decision,
            target=TARGET,
            mean=MEAN,
            lag=2,
        )
        for decision in ("soft", "sign")
    },
}
SOURCES = {
    "Markov": MarkovChain([[0.7, 0.3, 0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], levels=[2.0, -1.0, 0.5]),
    "independent": IndependentLevels([1.0, 0.0, 5.0], [0.2, 0.7, 0.1]),
    "white": ARMA([2.0], mean=1.0),
    "ARMA": ARMA([1.0, 0.4], [1.0, -0.9, 0.5], mean=-2.0),
    "rounded": ARMA([0.3], [1.0, -0.5], levels=[-1.0, 0.0, 1.0]),
}


def factors(x):
    return x.factors


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def in_chunks(run, x, cuts):
    parts = [part.copy() for part in np.split(x, sorted(cuts), axis=1)]
    for part in parts:
        run(part)
    return np.concatenate(parts, axis=1)


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
@given(cuts=st.lists(st.integers(0, 15), max_size=5))
@settings(max_examples=15)
def test_a_source_in_even_chunks_equals_the_whole_to_the_bit(name, cuts):
    source, whole = SOURCES[name].compiled(), np.empty((2, 31))
    source.start(1, 0, 2).draw(whole)
    assert np.array_equal(in_chunks(source.start(1, 0, 2).draw, np.empty((2, 31)), [2 * cut for cut in cuts]), whole)


@pytest.mark.parametrize("name", SOURCES)
def test_a_stream_depends_on_seed_and_number_alone(name):
    source, whole, part = SOURCES[name].compiled(), np.empty((9, 40)), np.empty((2, 40))
    source.start(1, 0, 9).draw(whole)
    source.start(1, 5, 2).draw(part)
    assert np.array_equal(part, whole[5:7])
    assert len(np.unique(whole, axis=0)) == 9
    source.start(2, 5, 2).draw(part)
    assert not np.array_equal(part, whole[5:7])


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_sources_of_nothing(name, shape):
    out = np.empty(shape)
    SOURCES[name].compiled().start(1, 0, shape[0]).draw(out)
    assert out.shape == shape


def test_a_gaussian_source_is_its_state_and_then_white_noise_through_the_filter():
    taps = [1.0, 0.5, -2.0]
    source = chain.GaussianSource(factors(Filter(taps)), np.array([[3.0, 1.0], [0.0, 2.0]]), 10.0, None)
    out = np.empty((2, 20))
    source.start(4, 0, 2).draw(out)
    for i in range(2):
        first, second, *w = reference.normals(4, i, random.INPUT, 22)
        newest, oldest = 3 * first, first + 2 * second  # the state: past inputs
        expected = 10 + reference.fir(taps, [oldest, newest, *w])[2:]
        np.testing.assert_allclose(out[i], expected, rtol=1e-12)


def test_samples_are_rounded_to_the_nearest_level():
    exact, rounded = np.empty((3, 200)), np.empty((3, 200))
    ARMA([0.3], [1.0, -0.5]).compiled().start(1, 0, 3).draw(exact)
    SOURCES["rounded"].compiled().start(1, 0, 3).draw(rounded)
    nearest = reference.nearest([-1.0, 0.0, 1.0])
    assert rounded.ravel().tolist() == [nearest(x) for x in exact.ravel()]


@pytest.mark.slow_nojit
def test_a_gaussian_source_is_stationary_from_the_first_sample():
    n, out = 100_000, np.empty((100_000, 4))
    SOURCES["ARMA"].compiled().start(7, 0, n).draw(out)
    impulse = signal.lfilter([1.0, 0.4], [1.0, -0.9, 0.5], np.eye(1, 300)[0])
    r = np.array([impulse[k:] @ impulse[: len(impulse) - k] for k in range(4)])
    x = out + 2.0
    for s in range(4):
        assert abs(x[:, s].mean()) < stats.norm.isf(ALARM / 40) * np.sqrt(r[0] / n)
        for t in range(s, 4):
            spread = np.sqrt((r[0] ** 2 + r[t - s] ** 2) / n)  # of a product of two Gaussians
            assert abs(np.mean(x[:, s] * x[:, t]) - r[t - s]) < stats.norm.isf(ALARM / 40) * spread


@pytest.mark.slow_nojit
def test_levels_have_the_autocovariances_of_the_chain():
    n, out, model = 200_000, np.empty((200_000, 6)), SOURCES["Markov"]
    model.compiled().start(8, 0, n).draw(out)
    x = out - model.mean
    for k, r in enumerate(reference.markov_autocovariances(model.transition, [2.0, -1.0, 0.5], 6)):
        product = x[:, 0] * x[:, k]
        assert abs(product.mean() - r) < stats.norm.isf(ALARM / 12) * product.std() / np.sqrt(n)


def test_the_noise_is_that_of_the_twin_and_not_the_input():
    stage, x = chain.Noise(6, 2, 2), np.empty((2, 10))
    stage.run(x)
    np.testing.assert_allclose(x, [reference.normals(6, i, random.NOISE, 10) for i in (2, 3)], rtol=1e-12)


# --- stages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [None, np.array([[1.0], [2.0]])])
def test_a_linear_stage_starts_from_its_state(state):
    stage, x = chain.Linear(factors(Filter([0.0, 1.0])), 2, state), np.ones((2, 3))
    stage.run(x)
    assert x.tolist() == ([[0, 1, 1], [0, 1, 1]] if state is None else [[1, 1, 1], [2, 1, 1]])


def test_backward_runs_from_the_last_sample_to_the_first():
    x = noise(2, 30)
    expected = [reference.direct_form([1.0, 0.3], [1.0, -0.7], row[::-1])[::-1] for row in x]
    np.testing.assert_allclose(chain.backward(factors(Filter([1, 0.3], [1, -0.7])), x), expected, rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 3, 40])
@pytest.mark.parametrize("level", [0.0, -2.0])
@given(cuts=st.lists(st.integers(0, 20), max_size=5))
@settings(max_examples=10)
def test_an_offset_is_a_delayed_step_through_the_target(delay, level, cuts):
    offset = chain.Offset(factors(TARGET), level, delay)
    expected = reference.step(TARGET.b, TARGET.a, level, delay, 20)
    np.testing.assert_allclose(in_chunks(offset.add, np.zeros((2, 20)), cuts), [expected] * 2, rtol=1e-12)


@pytest.mark.parametrize("name", ["lag 0", "lag 5", "soft", "sign"])
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=10)
def test_a_receiver_in_chunks_equals_the_whole_to_the_bit(name, cuts):
    receiver, v = RECEIVERS[name], noise(3, 40)
    assert np.array_equal(in_chunks(receiver.compiled().start(3).run, v, cuts), receiver.estimate(v)[0])


def test_a_smoother_in_chunks_equals_the_whole_later():
    receiver, v = RECEIVERS["smoother"], noise(1, 5000)
    compiled = receiver.compiled()
    found = in_chunks(compiled.start(1).run, v, [1, 100, 2500, 2500, 4901])
    assert compiled.delay == compiled.lookahead + compiled.block
    assert not found[:, : compiled.delay].any()
    expected = receiver.estimate(v)[0][:, : 5000 - compiled.delay]
    np.testing.assert_allclose(found[:, compiled.delay :], expected, atol=1e-10)


@pytest.mark.slow_nojit
@given(cuts=st.lists(st.integers(0, 9000), max_size=12))
def test_chunks_leave_no_trace_in_a_smoother(cuts):
    compiled, v = RECEIVERS["smoother"].compiled(), noise(2, 9000)
    whole = in_chunks(compiled.start(2).run, v, [])
    assert np.array_equal(in_chunks(compiled.start(2).run, v, cuts), whole)


@pytest.mark.slow_nojit
def test_a_long_smoother_looks_ahead_as_far_as_it_must():
    receiver, v = Smoother(Filter([1], [1, -0.995]), Filter([1], [1, -0.999]), TARGET, 1.0), noise(2, 300_000)
    compiled = receiver.compiled()
    assert compiled.block == 2 * compiled.lookahead > chain.CHUNK
    found = in_chunks(compiled.start(2).run, v, range(0, 300_000, 2048))[:, compiled.delay :]
    expected = receiver.estimate(v)[0][:, : found.shape[1]]
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


# --- the chain ------------------------------------------------------------------------------------


def study(names, burn_in=20, n_samples=150, targets=(TARGET,)):
    links = [
        chain.Link(i % len(targets), MEAN, factors(PREFILTER), NOISE_STD, RECEIVERS[name].compiled())
        for i, name in enumerate(names)
    ]
    return chain.Study(MARKOV.compiled(), tuple(map(factors, targets)), tuple(links), burn_in, n_samples)


def squared_errors(*arguments):
    lengths = []
    errors = chain.squared_errors(*arguments, lengths.append)
    assert lengths
    assert min(lengths) > 0
    return errors


def naive_receiver(name):
    receiver = RECEIVERS[name]

    def offset(n):
        return reference.step(TARGET.b, TARGET.a, MEAN, receiver.lag or 0, n)

    def linear(v):
        return reference.direct_form(receiver.filter.b, receiver.filter.a, v) + offset(len(v))

    def smoother(v):
        middle = reference.direct_form(receiver.forward.b, receiver.forward.a, v)
        return reference.direct_form(receiver.backward.b, receiver.backward.a, middle[::-1])[::-1] + offset(len(v))

    def feedback(v):
        centred, e = [-MEAN, 1 - MEAN], receiver
        soft = reference.posterior_mean(centred, e.probabilities, e.error_variance / e.shrinkage)
        decide = soft if name == "soft" else reference.sign(centred)
        decisions = reference.decision_feedback(e.forward, e.feedback, e.shrinkage, decide, e.lag, v)
        return reference.direct_form(TARGET.b, TARGET.a, decisions) + offset(len(v))

    return {LinearReceiver: linear, Smoother: smoother, DecisionFeedback: feedback}[type(receiver)]


def naive_errors(name, seed, streams, burn_in, n_samples):
    n = burn_in + n_samples + 100  # what a smoother looks ahead
    words = [reference.xoshiro128pp(reference.generator_state(seed, i, random.INPUT), n) for i in streams]
    u = [reference.markov_path([2 / 3, 1 / 3], MARKOV.transition, [0.0, 1.0], reference.uniforms(row)) for row in words]
    w = [reference.normals(seed, i, random.NOISE, n) for i in streams]
    target, prefilter = (TARGET.b, TARGET.a), (PREFILTER.b, PREFILTER.a)
    lag, receive = RECEIVERS[name].lag or 0, naive_receiver(name)
    return reference.monte_carlo_mse(u, w, MEAN, target, prefilter, NOISE_STD, receive, lag, burn_in, n_samples)


@pytest.mark.parametrize("name", RECEIVERS)
@pytest.mark.parametrize(("burn_in", "n_samples"), [(0, 1), (20, 150), (64, 64)])
def test_squared_errors_equal_a_naive_loop(monkeypatch, name, burn_in, n_samples):
    monkeypatch.setattr(chain, "CHUNK", 64)
    found = squared_errors(study([name], burn_in, n_samples), 3, 4, 2)
    np.testing.assert_allclose(found, [naive_errors(name, 3, (4, 5), burn_in, n_samples)], rtol=1e-10)


def test_mechanisms_do_not_disturb_each_other(monkeypatch):
    monkeypatch.setattr(chain, "CHUNK", 64)
    alone = [squared_errors(study([name]), 3, 0, 3)[0] for name in RECEIVERS]
    assert np.array_equal(squared_errors(study(list(RECEIVERS)), 3, 0, 3), alone)


@pytest.mark.parametrize("name", ["lag 0", "lag 5", "soft"])
def test_the_length_of_chunks_leaves_no_trace(monkeypatch, name):
    expected = squared_errors(study([name]), 3, 0, 2)
    monkeypatch.setattr(chain, "CHUNK", 6)
    assert np.array_equal(squared_errors(study([name]), 3, 0, 2), expected)


def test_streams_in_blocks_equal_all_streams(monkeypatch):
    monkeypatch.setattr(chain, "CHUNK", 64)
    names = list(RECEIVERS)
    parts = [squared_errors(study(names), 3, first, count) for first, count in ((0, 2), (2, 1), (3, 2))]
    assert np.array_equal(np.concatenate(parts, axis=1), squared_errors(study(names), 3, 0, 5))


def test_each_mechanism_is_held_against_its_own_target(monkeypatch):
    monkeypatch.setattr(chain, "CHUNK", 64)
    silent = Filter([0.0])
    both = squared_errors(study(["lag 0", "lag 0"], targets=(TARGET, silent)), 3, 0, 2)
    assert np.array_equal(both[0], squared_errors(study(["lag 0"]), 3, 0, 2)[0])
    assert np.array_equal(both[1], squared_errors(study(["lag 0"], targets=(silent,)), 3, 0, 2)[0])
    assert (both[0] != both[1]).all()
