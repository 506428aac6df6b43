"""Sources, receivers and mechanisms: fused runs against scipy and the naive equaliser on the same input and noise."""

import functools

import numpy as np
import pytest
from helpers import reference
from helpers.chains import EXAMPLES, FACTORS, LANES, assert_close, noise, scipys, unit_normals
from helpers.equalizers import CASES, equalizer, twin
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from dpfast import ARMA, IndependentLevels, MarkovChain
from dpfast._kernels import chain_builder, chain_program, simd, simulation
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.compiled_mechanisms import CompiledMechanism
from dpfast._kernels.compiled_receivers import CompiledDecisionFeedback, CompiledLinearReceiver, CompiledSmoother
from dpfast._kernels.factors import Factors
from dpfast._kernels.signal_sources import GaussianSource
from dpfast._kernels.simulated_noise import INPUT, NOISE, START
from dpfast._kernels.simulation import CompiledStudy

ALARM = 1e-6  # of a statistical test
LONG = pytest.mark.long
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
CHUNKS = [48, 96, 240, 480]
LONG_AR = [1.0, *[0.0] * 39, -0.3]  # 40 poles: a recursion

MODELS = {
    "two states": MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0]),
    "two levels, three states": MarkovChain([[0.5, 0.5, 0], [0, 0.2, 0.8], [0.6, 0, 0.4]], [1.0, -1.0, 1.0]),
    "three states": MarkovChain([[0.7, 0.3, 0], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], [2.0, -1.0, 0.5]),
    "nine states": MarkovChain(np.random.default_rng(1).dirichlet(np.ones(9), 9), np.arange(9) / 4),
    "a coin": IndependentLevels([1.0, -1.0], [0.3, 0.7]),
    "independent": IndependentLevels([1.0, 0.0, 5.0, -2.0, 0.5], [0.2, 0.5, 0.1, 0.1, 0.1]),
    "white": ARMA([2.0], mean=1.0),
    "moving average": ARMA([1.0, 0.4, -0.3]),
    "ARMA": ARMA([1.0, 0.4], [1.0, -0.9, 0.5], mean=-2.0),
    "long AR": ARMA([1.0], LONG_AR, mean=0.5),
    "rounded": ARMA([0.3], [1.0, -0.5], levels=[-1.0, 0.0, 1.0]),
    "rounded long AR": ARMA([0.5], LONG_AR, levels=[-1.0, 0.0, 0.5, 2.0]),
}
SOURCES = {name: model.compiled() for name, model in MODELS.items()}
MODEL = pytest.mark.parametrize("name", MODELS)
NASTY = {"nine states", "independent", "rounded long AR"}  # a table, no memory, a recursion and a state to begin from
FEW_MODELS = pytest.mark.parametrize("name", [x if x in NASTY else pytest.param(x, marks=LONG) for x in MODELS])

LEVEL = 0.25
PREFILTER, TARGET = FACTORS["delay and section"], FACTORS["section"]
RECEIVERS = {
    **{f"linear, {name}": CompiledLinearReceiver(factors, TARGET, LEVEL, 5) for name, factors in FACTORS.items()},
    "linear, lag 0": CompiledLinearReceiver(FACTORS["Wiener"], TARGET, LEVEL, 0),
    "linear, a lag beyond a chunk": CompiledLinearReceiver(FACTORS["Wiener"], TARGET, LEVEL, 130),
    "linear, without a mean": CompiledLinearReceiver(FACTORS["Wiener"], TARGET, 0.0, 3),
    "linear, target with a recursion": CompiledLinearReceiver(FACTORS["Wiener"], FACTORS["all"], LEVEL, 3),
    "smoother": CompiledSmoother(FACTORS["Wiener"], FACTORS["section"], TARGET, LEVEL, 80),
    "smoother of gains": CompiledSmoother(FACTORS["gain"], FACTORS["identity"], TARGET, LEVEL, 0),
    "smoother of taps": CompiledSmoother(FACTORS["identity"], FACTORS["nine taps"], FACTORS["nine taps"], LEVEL, 8),
    "smoother of recursions": CompiledSmoother(FACTORS["comb"], FACTORS["recursion"], FACTORS["comb"], LEVEL, 380),
    "smoother without a mean": CompiledSmoother(FACTORS["section"], FACTORS["section"], TARGET, 0.0, 80),
    **{
        f"feedback, {' '.join(x)}": CompiledDecisionFeedback(equalizer(*x, 3, level=LEVEL), TARGET, LEVEL)
        for x in CASES
    },
    "feedback, lag 0": CompiledDecisionFeedback(equalizer("two", "hard", 0), TARGET, 0.0),
    "feedback, a lag beyond a chunk": CompiledDecisionFeedback(
        equalizer("four", "soft", 70, level=LEVEL), TARGET, LEVEL
    ),
    "feedback, FIR target": CompiledDecisionFeedback(
        equalizer("four", "soft", 2, level=LEVEL), FACTORS["nine taps"], LEVEL
    ),
    "feedback, gain": CompiledDecisionFeedback(equalizer("two", "soft", 1, level=LEVEL), FACTORS["gain"], LEVEL),
    "feedback, recursive target": CompiledDecisionFeedback(
        equalizer("two", "soft", 1, level=LEVEL), FACTORS["all"], LEVEL
    ),
    "feedback, many taps": CompiledDecisionFeedback(
        equalizer("nine", "soft", 5, 0.3 * 0.9 ** np.arange(64), 0.1 * noise(16), LEVEL), TARGET, LEVEL
    ),
}
ALPHABETS = {name: name.split()[1] for name in RECEIVERS if name.split()[-1] in ("hard", "soft")} | {
    "feedback, lag 0": "two",
    "feedback, a lag beyond a chunk": "four",
    "feedback, FIR target": "four",
    "feedback, gain": "two",
    "feedback, recursive target": "two",
    "feedback, many taps": "nine",
}
RECEIVER = pytest.mark.parametrize("name", RECEIVERS)
STEADY = {"n_threads": 1}


def link(name, prefilter=PREFILTER, centre=LEVEL, noise_std=0.7):
    return CompiledMechanism(centre, prefilter, noise_std, RECEIVERS[name])


LINKS = tuple(link(name) for name in RECEIVERS)


@pytest.fixture
def short_chunks(monkeypatch):
    """To come to the ends of many in little time."""
    monkeypatch.setattr(simulation, "Chain", functools.partial(Chain, chunk=48))
    monkeypatch.setattr(chain_builder, "SMOOTHER_ROWS", 48)


def with_chunks(monkeypatch, length):
    monkeypatch.setattr(simulation, "Chain", functools.partial(Chain, chunk=length))


def sample(source, n_streams, n_samples, seed=0):
    out = np.empty((n_streams, n_samples))
    simulation.sample(source, seed, out, 1)
    return out


# --- the oracle -----------------------------------------------------------------------------------


def late(x, lag):
    return np.pad(x, [(0, 0), (lag, 0)])[:, : x.shape[1]]


def decisions(name, v):
    e = RECEIVERS[name].equalizer
    level = LEVEL if RECEIVERS[name].level else 0.0
    decision = "soft" if e.soft else "hard"
    return twin(ALPHABETS[name], decision, e.lag, v, e.forward, e.feedback, level)


def estimates(name, v):
    """Of the centred output, at the time of v."""
    r = RECEIVERS[name]
    if isinstance(r, CompiledLinearReceiver):
        return scipys(r.factors, v)
    if isinstance(r, CompiledSmoother):
        return scipys(r.backward, scipys(r.forward, v)[:, ::-1])[:, ::-1]
    return scipys(r.target, decisions(name, v))


def lag_of(name):
    r = RECEIVERS[name]
    return r.equalizer.lag if isinstance(r, CompiledDecisionFeedback) else getattr(r, "lag", 0)


def errors(name, x, v, window):
    """Of each stream, against the output for the centred input."""
    r, lag = RECEIVERS[name], lag_of(name)
    e = estimates(name, v) - late(scipys(r.target, x), lag)
    return np.mean(e[:, window.start + lag : window.stop + lag] ** 2, axis=1)


def expected_errors(run, names, n_streams, seed):
    """Of a study, on the very input and unit noise that it draws."""
    n = run.burn_in + run.n_samples + 400  # what is ahead
    u, unit = sample(run.source, n_streams, n, seed), unit_normals(seed, n_streams, n)
    window, result = range(run.burn_in, run.burn_in + run.n_samples), []
    for name, each in zip(names, run.mechanisms, strict=True):
        x = u - each.centre
        v = scipys(each.prefilter, x) + each.noise_std * unit
        result.append(errors(name, x, v, window))
    return np.transpose(result)


def squared_errors(run, n_streams, seed, **options):
    return simulation.squared_errors(run, n_streams, seed, **(STEADY | options))


# --- studies --------------------------------------------------------------------------------------


@pytest.mark.slow_nojit
@FEW_MODELS
def test_a_study_of_all_receivers_equals_a_slow_run(short_chunks, name):
    run = CompiledStudy(SOURCES[name], LINKS, 30, 101)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, RECEIVERS, 2, 7), rtol=1e-12)


@MODEL
def test_a_study_of_two_mechanisms_equals_a_slow_run(short_chunks, name):
    names = ["linear, Wiener", "feedback, four soft"]
    run = CompiledStudy(SOURCES[name], tuple(map(link, names)), 20, 60)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, names, 2, 7), rtol=1e-12)


@RECEIVER
def test_a_study_of_one_mechanism_equals_a_slow_run(short_chunks, name):
    run = CompiledStudy(SOURCES["two states"], (link(name),), 20, 60)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, [name], 2, 7), rtol=1e-12)


@pytest.mark.slow_nojit
@pytest.mark.parametrize(
    ("burn_in", "n_samples", "chunk"),
    [
        (0, 1, 48),
        (300, 13, 48),
        *(pytest.param(*x, 48, marks=LONG) for x in [(0, 7), (5, 1), (1000, 481)]),
        *(pytest.param(*x, 480, marks=LONG) for x in [(0, 1), (0, 7), (5, 1), (300, 13), (1000, 481)]),
    ],
)
def test_any_window_is_that_of_a_slow_run(monkeypatch, burn_in, n_samples, chunk):
    with_chunks(monkeypatch, chunk)
    run = CompiledStudy(SOURCES["ARMA"], LINKS, burn_in, n_samples)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, RECEIVERS, 2, 7), rtol=1e-12)


@pytest.mark.slow_nojit
def test_mechanisms_differ_in_everything(short_chunks):
    """In prefilter, noise, mean, target and lag, on the same input and the same unit noise."""
    filters, names = list(FACTORS), list(RECEIVERS)
    links = [
        link(name, FACTORS[filters[i % len(filters)]], [0.0, 0.25, -1.0][i % 3], [0.7, 0.01, 2.0, 0.0][i % 4])
        for i, name in enumerate(names)
    ]
    run = CompiledStudy(SOURCES["three states"], tuple(links), 30, 101)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, names, 2, 7), rtol=1e-12, atol=1e-20)


@pytest.mark.slow_nojit
@FEW_MODELS
def test_a_study_in_float32_is_near_a_slow_run(short_chunks, name):
    run = CompiledStudy(SOURCES[name], LINKS, 30, 101, np.float32)
    np.testing.assert_allclose(squared_errors(run, 2, 7), expected_errors(run, RECEIVERS, 2, 7), rtol=1e-4)


def test_the_input_and_the_noise_are_drawn_once():
    chain, *_ = CompiledStudy(SOURCES["three states"], LINKS, 30, 101).build_chain()
    kinds = [stage["kind"] for stage in chain.stages]
    assert kinds.count(chain_program.MANY_LEVELS) == kinds.count(chain_program.NORMALS) == 1
    assert not any(stage.get("n_noise") for stage in chain.stages)


def test_the_same_output_is_filtered_once():
    chain, *_ = CompiledStudy(
        SOURCES["two states"], (link("linear, lag 0"), link("smoother"), link("linear, gain")), 30, 101
    ).build_chain()
    (shift,) = [stage["out"] for stage in chain.stages if stage.get("scale") == -LEVEL]
    assert [stage["x"] for stage in chain.stages if stage["kind"] == chain_program.FILTER].count(shift) == 3 + 1


# --- the same bits --------------------------------------------------------------------------------


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("name", ["two states", "nine states", "rounded long AR"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_chunks_of_any_length_give_the_same_errors(monkeypatch, name, dtype, chunk):
    run = CompiledStudy(SOURCES[name], LINKS, 100, 1000, dtype)
    expected = squared_errors(run, 2, 7)
    with_chunks(monkeypatch, chunk)
    assert np.array_equal(squared_errors(run, 2, 7), expected)


@pytest.mark.slow_nojit
@RECEIVER
@DTYPES
def test_a_mechanism_has_the_same_bits_alone_and_in_company(short_chunks, name, dtype):
    alone = squared_errors(CompiledStudy(SOURCES["ARMA"], (link(name),), 10, 30, dtype), 2, 7)
    company = (link("linear, lag 0"), link(name), link("smoother"))
    assert np.array_equal(squared_errors(CompiledStudy(SOURCES["ARMA"], company, 10, 30, dtype), 2, 7)[:, 1:2], alone)


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [2, 4])
@DTYPES
def test_threads_leave_no_trace_in_the_bits(n_threads, dtype):
    run, n = CompiledStudy(SOURCES["rounded long AR"], LINKS, 50, 200, dtype), 3 * LANES + 1
    assert np.array_equal(squared_errors(run, n, 7, n_threads=n_threads), squared_errors(run, n, 7))


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_streams", [1, LANES - 1, LANES, LANES + 1, 2 * LANES + 1])
@pytest.mark.parametrize("name", ["three states", "rounded long AR"])
def test_a_stream_does_not_depend_on_how_many_there_are(short_chunks, n_streams, name):
    run = CompiledStudy(SOURCES[name], (link("linear, Wiener"), link("feedback, two hard")), 10, 30)
    errors = squared_errors(run, n_streams, 7)
    assert np.array_equal(errors, squared_errors(run, 2 * LANES + 1, 7)[:n_streams])
    assert len(np.unique(errors[:, 0])) == n_streams


def test_seeds_differ():
    run = CompiledStudy(SOURCES["white"], (link("linear, Wiener"),), 10, 30)
    assert not np.array_equal(squared_errors(run, 2, 7), squared_errors(run, 2, 8))


def test_no_streams_have_no_errors():
    run = CompiledStudy(SOURCES["ARMA"], (link("linear, Wiener"), link("smoother")), 10, 30)
    assert squared_errors(run, 0, 7).shape == (0, 2)


@pytest.mark.parametrize("name", ["linear, Wiener", "smoother", "feedback, two soft"])
def test_progress_hears_of_as_many_samples_as_a_study_is_long(short_chunks, name):
    run, heard = CompiledStudy(SOURCES["two states"], (link(name),), 10, 30), []
    squared_errors(run, 3, 7, advance=heard.append)
    assert sum(heard) == 3 * run.build_chain().length
    assert run.build_chain().length >= 40 + lag_of(name)


# --- sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not isinstance(model, ARMA)])
def test_levels_are_those_of_the_twin(short_chunks, name):
    source, model = SOURCES[name], MODELS[name]
    transition = np.diff(source.transition, axis=1, prepend=0)
    transition = np.broadcast_to(transition, (len(source.levels),) * 2)  # without memory: as from any state
    initial = np.diff(source.stationary, prepend=0)
    found = sample(source, 3, 200, seed=5)
    for i, path in enumerate(found):
        assert path.tolist() == reference.stationary_path(5, i, initial, transition, source.levels, 200).tolist()
    assert set(found.ravel()) == set(model.levels)


def test_a_gaussian_source_is_its_state_and_then_white_noise_through_the_filter(short_chunks):
    taps, root = np.array([1.0, 0.5, -2.0]), np.array([[3.0, 1.0], [0.0, 2.0]])
    source = GaussianSource(Factors(taps, np.empty((0, 6)), np.ones(1)), root, 10.0, None)
    past = (unit_normals(4, 3, 2, START) @ root)[:, ::-1]  # a state's newest input first
    expected = 10 + signal.lfilter(taps, 1, np.hstack([past, unit_normals(4, 3, 100, INPUT)]))[:, 2:]
    assert_close(sample(source, 3, 100, seed=4), expected)


def test_samples_are_rounded_to_the_nearest_level():
    for name, b, a in (("rounded", [0.3], [1.0, -0.5]), ("rounded long AR", [0.5], LONG_AR)):
        plain, rounded = (sample(x, 2, 1100) for x in (ARMA(b, a).compiled(), SOURCES[name]))
        nearest = reference.nearest(MODELS[name].levels)
        assert rounded.ravel().tolist() == [nearest(x) for x in plain.ravel()]


@MODEL
def test_samples_do_not_depend_on_how_many_follow_or_on_chunks(monkeypatch, name):
    whole = sample(SOURCES[name], 3, 97)
    with_chunks(monkeypatch, 48)
    assert [n for n in (1, 5, 48, 97) if not np.array_equal(sample(SOURCES[name], 3, n), whole[:, :n])] == []
    assert len(np.unique(sample(SOURCES[name], LANES + 1, 97), axis=0)) == LANES + 1


@MODEL
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_samples_of_nothing(name, shape):
    assert sample(SOURCES[name], *shape).shape == shape


@pytest.mark.slow_nojit
@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("long AR", 40_000),
        *(pytest.param(name, 100_000, marks=LONG) for name in ("ARMA", "long AR", "moving average")),
    ],
)
def test_a_gaussian_source_is_stationary_from_the_first_sample(name, n):
    model = MODELS[name]
    impulse = model.shaping.impulse(2000)
    r = np.array([impulse[k:] @ impulse[: len(impulse) - k] for k in range(4)])
    x = sample(SOURCES[name], n, 4, seed=7) - model.mean
    for s in range(4):
        assert abs(x[:, s].mean()) < stats.norm.isf(ALARM / 40) * np.sqrt(r[0] / n)
        for t in range(s, 4):
            spread = np.sqrt((r[0] ** 2 + r[t - s] ** 2) / n)  # of a product of two Gaussians
            assert abs(np.mean(x[:, s] * x[:, t]) - r[t - s]) < stats.norm.isf(ALARM / 40) * spread


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", ["two levels, three states", "three states", "nine states"])
def test_levels_have_the_autocovariances_of_the_chain_from_the_first_sample(name):
    n, model = 200_000, MODELS[name]
    x = sample(SOURCES[name], n, 6, seed=8) - model.mean
    expected = reference.markov_autocovariances(model.transition, SOURCES[name].levels, 6)
    for k, r in enumerate(expected):
        product = x[:, 0] * x[:, k]
        assert abs(product.mean() - r) < stats.norm.isf(ALARM / 12) * product.std() / np.sqrt(n)


# --- paths ----------------------------------------------------------------------------------------


def simulated(name, u, seed=3, **options):
    return simulation.simulate(link(name), u, seed, **(STEADY | options))


def offset(name, n):
    """What the mean adds to estimates."""
    r = RECEIVERS[name]
    return r.level * scipys(r.target, late(np.ones((1, n)), lag_of(name)))


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("linear, identity", "linear, Wiener"),
        ("linear, Wiener", "linear, target with a recursion"),
        ("smoother of gains", "smoother of taps"),
        ("feedback, two hard", "feedback, four soft"),
    ],
)
def test_a_receiver_of_more_coefficients_costs_more(less, more):
    """By as many multiply-adds, beside what each pass costs, which are no more than ten; thrice there and back."""
    times = 3 if "smoother" in less else 1
    sizes = [
        sum(
            part.size
            for filter in RECEIVERS[x]
            if isinstance(filter, tuple)
            for part in filter
            if isinstance(part, np.ndarray)
        )
        for x in (less, more)
    ]
    assert 0 < times * sizes[0] <= RECEIVERS[less].cost <= times * (sizes[0] + 4 * 10)
    assert RECEIVERS[more].cost - RECEIVERS[less].cost == times * (sizes[1] - sizes[0])


@RECEIVER
@pytest.mark.parametrize("n", [1, 100])
def test_paths_equal_a_slow_run(short_chunks, name, n):
    u = noise(3, n)
    v, estimate, *rest = simulated(name, u)
    assert np.array_equal(simulation.estimate(RECEIVERS[name], v, 1), [estimate, *rest])
    assert_close(v, scipys(PREFILTER, u - LEVEL) + 0.7 * unit_normals(3, 3, n))
    assert_close(estimate, estimates(name, v) + offset(name, n))
    if isinstance(RECEIVERS[name], CompiledDecisionFeedback):
        assert_close(*rest, decisions(name, v) + RECEIVERS[name].level * (np.arange(n) >= lag_of(name)))
    else:
        assert rest == []
        assert RECEIVERS[name].equalizer is None


@pytest.mark.slow_nojit
@RECEIVER
def test_the_errors_of_a_study_are_those_of_its_paths(short_chunks, name):
    run = CompiledStudy(SOURCES["two states"], (link(name),), 20, 60)
    window = slice(20 + lag_of(name), 80 + lag_of(name))
    n = 600 if isinstance(RECEIVERS[name], CompiledSmoother) else window.stop  # a smoother needs what comes behind, too
    u = sample(run.source, 2, n, seed=7)
    error = simulated(name, u, seed=7)[1] - late(scipys(RECEIVERS[name].target, u), lag_of(name))
    # the receiver counts on a mean that is that of the link
    error -= offset(name, n) - LEVEL * late(scipys(RECEIVERS[name].target, np.ones((1, n))), lag_of(name))
    np.testing.assert_allclose(squared_errors(run, 2, 7)[:, 0], np.mean(error[:, window] ** 2, axis=1), rtol=1e-10)


@RECEIVER
def test_paths_of_nothing(name):
    parts, shapes = 3 if isinstance(RECEIVERS[name], CompiledDecisionFeedback) else 2, [(0, 5), (3, 0), (0, 0)]
    assert [simulated(name, np.empty(shape)).shape for shape in shapes] == [(parts, *shape) for shape in shapes]


@pytest.mark.slow_nojit
@RECEIVER
def test_paths_have_the_same_bits_for_any_chunks_and_threads(monkeypatch, name):
    u = noise(LANES + 1, 1000)
    expected = simulated(name, u)
    assert np.array_equal(simulated(name, u, n_threads=2), expected)
    for chunk in CHUNKS:
        with_chunks(monkeypatch, chunk)
        assert np.array_equal(simulated(name, u), expected)


@pytest.mark.parametrize("kind", ["linear, Wiener", "smoother of recursions", "feedback, nine soft"])
@EXAMPLES
@given(n=st.integers(1, 100))
def test_the_past_of_a_path_does_not_depend_on_its_future(kind, n):
    """Of a smoother only v."""
    u = noise(2, 100)
    whole, part = simulated(kind, u), simulated(kind, u[:, :n])
    for x, y in list(zip(whole, part, strict=True))[: 1 if kind.startswith("smoother") else None]:
        assert np.array_equal(x[:, :n], y)


# --- piece by piece -------------------------------------------------------------------------------

LIVE = [name for name in RECEIVERS if isinstance(RECEIVERS[name], CompiledDecisionFeedback)]


def in_pieces(name, v, cuts):
    """Estimates, and decisions if any, and the last states, one piece of v after the other."""
    chain, outputs, past = simulation.build_live_chain(RECEIVERS[name]), [], 0
    states = np.zeros((len(v), len(chain.end)))
    for part in np.split(v, sorted(cuts), axis=1):
        out, states = simulation.continue_chain(chain, part, states, past, 1)
        outputs.append(out)
        past += part.shape[1]
    return np.concatenate(outputs, axis=2), states


@pytest.mark.parametrize("name", LIVE)
def test_a_receiver_one_sample_after_the_other_equals_a_slow_run(name):
    v, n = noise(2, 20), lag_of(name) + 20
    v = np.pad(v, [(0, 0), (n - 20, 0)])
    (estimate, *rest), _ = in_pieces(name, v, [*range(n - 20, n)])
    assert_close(estimate, estimates(name, v) + offset(name, n))
    if rest:
        assert_close(*rest, decisions(name, v) + RECEIVERS[name].level * (np.arange(n) >= lag_of(name)))


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", LIVE)
def test_a_receiver_in_pieces_gives_the_bits_of_the_whole(short_chunks, name):
    v = noise(2, 160)
    found, states = in_pieces(name, v, [0, 0, 1, 2, 8, 51, 100, 159])
    assert found.tobytes() == simulation.estimate(RECEIVERS[name], v, 1).tobytes()
    assert states.tobytes() == in_pieces(name, v, [])[1].tobytes()


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", LIVE)
@EXAMPLES
@given(
    cuts=st.lists(st.integers(0, 160), max_size=8),
    n_streams=st.sampled_from([1, 2, LANES + 1]),
    n=st.integers(0, 160),
)
def test_a_receiver_in_any_pieces_gives_the_bits_of_the_whole(name, cuts, n_streams, n):
    v = noise(n_streams, n)
    found, states = in_pieces(name, v, [min(cut, n) for cut in cuts])
    assert found.tobytes() == simulation.estimate(RECEIVERS[name], v, 1).tobytes()
    assert states.tobytes() == in_pieces(name, v, [])[1].tobytes()


@pytest.mark.parametrize("name", ["feedback, a lag beyond a chunk"])
def test_the_time_before_counts_up_to_the_lag(name):
    chain, v, lag = simulation.build_live_chain(RECEIVERS[name]), noise(2, 9), lag_of(name)
    states = noise(2, len(chain.end))
    before, there, late, much_later = (
        simulation.continue_chain(chain, v, states, past, 1)[0] for past in (lag - 3, lag, lag + 1, 2**60)
    )
    assert not np.array_equal(before, there)
    assert np.array_equal(there, late)
    assert np.array_equal(there, much_later)


@pytest.mark.parametrize("name", ["feedback, two hard", "feedback, four soft"])
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_pieces_of_nothing_leave_the_states_as_they_are(name, shape):
    chain = simulation.build_live_chain(RECEIVERS[name])
    states = noise(shape[0], len(chain.end))
    out, after = simulation.continue_chain(chain, np.empty(shape), states, 3, 1)
    assert out.shape == (chain.n_outputs, *shape)
    assert np.array_equal(after, states)


# --- filters --------------------------------------------------------------------------------------


@DTYPES
def test_a_filter_goes_on_from_states_and_sums_the_squares_of_its_input(short_chunks, dtype):
    chain, states, x = (
        simulation.build_filter_chain(FACTORS["all"], dtype),
        np.zeros((3, 49), dtype),
        noise(3, 130).astype(dtype),
    )
    outputs, squares = [], 0
    for part in np.split(x, [1, 50, 50, 97], axis=1):
        outputs.append(np.empty_like(part))
        states, more = simulation.filter_array(chain, part, states, outputs[-1], 1)
        squares = squares + more
    assert_close(np.concatenate(outputs, axis=1), scipys(FACTORS["all"], x.astype(float)))
    np.testing.assert_allclose(squares, np.sum(x.astype(float) ** 2, axis=1), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_an_empty_piece_leaves_the_states_as_they_are(shape):
    chain, states = simulation.build_filter_chain(FACTORS["all"], float), noise(shape[0], 49)
    found, squares = simulation.filter_array(chain, np.empty(shape), states, np.empty(shape), 1)
    assert np.array_equal(found, states)
    assert squares.tolist() == [0.0] * shape[0]


# --- the privacy boundary -------------------------------------------------------------------------


@pytest.fixture
def private(monkeypatch):
    """The stages that `privatize` has made, and the signals v that it has given."""
    made, given = [], []

    def recorded(chain, *arguments, privatize=simulation.privatize):
        before = len(chain.stages)
        given.append(privatize(chain, *arguments))
        made.extend(map(id, chain.stages[before:]))
        return given[-1]

    monkeypatch.setattr(simulation, "privatize", recorded)
    return made, given


def reads(stage):
    return {stage[name] for name in ("x", "minus", "plus") if name in stage}


def reached(chain, sources, without=()):
    """Signals that depend on others, but not by way of some; each stage comes after those that it reads."""
    found = set(sources)
    for stage in chain.stages:
        if reads(stage) & found and not stage.get("n_squares") and stage["out"] not in without:
            found.add(stage["out"])
    return found


def decides(stage):
    return stage["kind"] == chain_program.FEEDBACK and stage.get("n_levels", 0) > 0


@RECEIVER
def test_in_a_simulation_only_the_privatizer_reads_the_input(monkeypatch, private, name):
    """Nobody else sees u or what comes from it without noise, through whatever stages."""
    chains = []
    monkeypatch.setattr(simulation, "_run_paths", lambda chain, *_: chains.append(chain))
    simulated(name, noise(2, 30))
    (chain,), (made, (v,)) = chains, private
    (u,) = [stage["out"] for stage in chain.stages if stage["kind"] == chain_program.READ]
    secret = reached(chain, {u}, without={v})
    assert v in reached(chain, {u})
    assert len(secret) > 1  # the shifted input, at least
    assert all(id(stage) in made for stage in chain.stages if reads(stage) & secret)


@RECEIVER
def test_in_a_study_the_input_without_noise_is_for_linear_errors_alone(private, name):
    """It takes part in no decision, and nothing but sums of squares leaves the chain."""
    chain, *_ = CompiledStudy(SOURCES["two states"], (link(name),), 10, 20).build_chain()
    made, (v,) = private
    (u,) = [stage["out"] for stage in chain.stages if stage["kind"] == chain_program.TWO_LEVELS]
    secret, public = reached(chain, {u}, without={v}), reached(chain, {v})
    others = [stage for stage in chain.stages if reads(stage) & secret and id(stage) not in made]
    assert not any(map(decides, others))
    assert {stage["kind"] for stage in others} <= {chain_program.FILTER, chain_program.FEEDBACK}
    assert any(reads(stage) & public and stage.get("n_squares") for stage in chain.stages)
    assert (chain.n_outputs, chain.end, chain.n_totals) == (0, [], 1)


@RECEIVER
def test_errors_are_those_of_estimates_from_v_alone(short_chunks, name):
    """Whatever signal they are held against: here one that has nothing to do with v."""
    v, window, chain = noise(3, 1200), range(20, 91), Chain(chunk=48)
    read, x = chain.read(), chain.normals(START)
    n = RECEIVERS[name].square_errors(chain, read, x, window)
    assert n <= 1200
    found = execute(chain, 3, n, x=v[:, :n], seed=6).totals[:, 0] / len(window)
    np.testing.assert_allclose(found, errors(name, unit_normals(6, 3, n, START), v[:, :n], window), rtol=1e-12)


@pytest.mark.slow_nojit
@RECEIVER
def test_what_the_privatizer_does_not_let_pass_leaves_no_trace(monkeypatch, name):
    """With a wall in its place, which gives noise alone, paths do not depend on the input at all."""
    monkeypatch.setattr(simulation, "privatize", lambda chain, *_: chain.normals(NOISE))
    assert np.array_equal(simulated(name, noise(3, 100)), simulated(name, 1e6 * noise(3, 100, seed=1)))


# --- lanes ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not DISABLE_JIT, reason="a compiled kernel has the width of its processor")
@pytest.mark.parametrize("bytes_per_register", [16, 32])
def test_lanes_of_any_number_give_the_same_bits(monkeypatch, short_chunks, bytes_per_register):
    def results():
        u = sample(SOURCES["rounded long AR"], 9, 50)
        run = CompiledStudy(SOURCES["nine states"], (link("smoother"), link("feedback, four soft")), 5, 20)
        return u, simulated("linear, all", u), squared_errors(run, 9, 7), squared_errors(run._replace(dtype="f4"), 9, 7)

    expected = results()
    monkeypatch.setattr(simd, "register_bytes", lambda: bytes_per_register)
    assert simd.lanes("f4") == bytes_per_register // 2
    assert all(map(np.array_equal, results(), expected))


def test_the_shared_noise_is_that_of_the_streams_by_their_numbers():
    assert_close(simulation.draw_unit_noise(4, 1, 2, 7), unit_normals(4, 3, 7)[1:])
