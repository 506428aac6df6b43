"""What stages of a chain do, in every order and place, against NumPy and scipy on whole signals."""

import numpy as np
import pytest
from helpers import reference
from helpers.chains import EXAMPLES, FACTORS, LANES, assert_close, noise, paths, scipys, unit_normals
from helpers.equalizers import CASES, equalizer, twin
from hypothesis import example, given
from hypothesis import strategies as st

from dpfast._kernels import chain_builder, chain_parts
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import INPUT, NOISE

CHUNKS = [6, 48, 96, 240, 480]
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
LONG = 700  # samples: beyond a chunk of any length


def late(x, lag):
    """X some samples late, zero before."""
    return np.pad(x, [(0, 0), (lag, 0)])[:, : x.shape[1]]


def totals(chain, n_streams, n_samples, **options):
    return execute(chain, n_streams, n_samples, **options).totals.T


def sum_of_squares(x, window):
    return np.sum(x[:, window.start : window.stop] ** 2, axis=1)


@pytest.fixture
def short_blocks(monkeypatch):
    """Of smoothers."""
    monkeypatch.setattr(chain_builder, "SMOOTHER_ROWS", 48)


# --- any chain ------------------------------------------------------------------------------------

NUMBER = st.integers(0, 9)  # of a signal, counted on from the first
LAG = st.sampled_from([0, 1, 5, 6, 47, 48, 49, 100])
STEP = st.fixed_dictionaries(
    {
        "name": st.sampled_from(sorted(FACTORS)),
        "x": NUMBER,
        "lag": LAG,
        "by": st.sampled_from([0.0, -1.5]),
        "minus": st.none() | NUMBER,
        "plus": st.none() | st.tuples(st.floats(-2, 2), NUMBER, LAG),
        "window": st.none() | st.tuples(st.integers(0, 150), st.integers(0, 150)),
    }
)


def step(name, x=0, lag=0, by=0.0, minus=None, plus=None, window=None):
    return {"name": name, "x": x, "lag": lag, "by": by, "minus": minus, "plus": plus, "window": window}


def build(chain, steps, x):
    """Signals of a chain that reads x, what they must be, and what the totals must be."""
    signals, values, squares = [chain.read()], [x], []
    for each in steps:
        i, j, k = (n and n % len(signals) for n in (each["x"], each["minus"], each["plus"] and each["plus"][1]))
        factors, options, y = FACTORS[each["name"]], {"lag": each["lag"]}, late(values[i] + each["by"], each["lag"])
        if j is not None:
            options["minus"], y = signals[j], y - values[j]
        y = scipys(factors, y)
        if k is not None:
            scale, _, lag = each["plus"]
            options["plus"], y = Term(scale, signals[k], lag), y + scale * late(values[k], lag)
        if each["window"] is not None:
            options["square"] = range(*sorted(min(t, x.shape[1]) for t in each["window"]))
            squares.append(sum_of_squares(y, options["square"]))
        made = chain.filter(factors, chain.shift(signals[i], each["by"]), **options)
        if each["window"] is None:
            signals.append(made)
            values.append(y)
    return signals, values, squares


@DTYPES
@EXAMPLES
@given(steps=st.lists(STEP, min_size=1, max_size=5), n=st.integers(1, 120))
@example(
    steps=[
        step("all", lag=100),
        step("comb", 1, 48, minus=0),
        step("Wiener", 1, 5, plus=(0.5, 2, 49)),
        step("comb", 3, 1, -1.5, 2, (1.0, 0, 6), (7, 110)),
        step("nine taps", 1, 6, minus=3, window=(48, 49)),
    ],
    n=113,
)
def test_any_chain_is_what_numpy_makes_of_whole_signals(dtype, steps, n):
    x, results = noise(3, n).astype(dtype), []
    for length in (6, 48):
        chain = Chain(dtype, length)
        signals, values, squares = build(chain, steps, x.astype(float))
        found = paths(chain, signals, *x.shape, x=x)
        sums = totals(chain, *x.shape, x=x, out=np.empty_like(found))
        for y, expected in zip(found, values, strict=True):
            assert_close(y, expected)
        for y, expected in zip(sums, squares, strict=True):
            assert_close(y.astype(dtype), expected)
        results.append([found, sums])
    for first, second in zip(*results, strict=True):
        assert np.array_equal(first, second)


# --- chunks, lanes, bundles -----------------------------------------------------------------------


def everything(dtype, length):
    """A chain with a stage of every kind but those of a smoother."""
    chain = Chain(dtype, length)
    x = chain.read()
    v = chain.filter(FACTORS["Wiener"], chain.shift(x, -0.25), plus=Term(0.5))
    w = chain.filter(FACTORS["all"], v, lag=7, plus=Term(-0.5, chain.normals(INPUT), 50))
    rounded = chain.round(chain.add(w, Term(1.0, chain.step(0.1, 61))), np.array([-1.0, 0.0, 0.5]))
    decisions = [chain.decide(equalizer(*case, lag), v) for case, lag in zip(CASES, range(0, 130, 14), strict=False)]
    signals = [v, w, rounded, *decisions]
    for lag, signal in enumerate(signals):
        chain.filter(FACTORS["Wiener"], v, minus=signal, lag=lag, square=range(5 * lag, 100 + 37 * lag))
    return chain, signals


def bits(dtype, length, x, **options):
    chain, signals = everything(dtype, length)
    for number in signals:
        chain.write(number)
    out = np.empty((len(signals), *x.shape), dtype)
    return out, execute(chain, *x.shape, x=x, out=out, seed=4, **options).totals


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("length", CHUNKS)
def test_chunks_of_any_length_give_the_same_bits(dtype, length):
    x = noise(3, LONG).astype(dtype)
    for found, expected in zip(bits(dtype, length, x), bits(dtype, chain_parts.CHUNK, x), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 47, 48, 49, 97])
def test_samples_do_not_depend_on_how_many_follow(n):
    x = noise(2, 97)
    assert np.array_equal(bits(np.float64, 48, x[:, :n])[0], bits(np.float64, 48, x)[0][:, :, :n])


@pytest.mark.parametrize("n_streams", [1, LANES - 1, LANES, LANES + 1, 3 * LANES + 1])
def test_a_stream_depends_on_its_number_and_not_on_its_lane(n_streams):
    x = noise(n_streams, 20)
    out, sums = bits(np.float64, 48, x)
    for i in {0, n_streams // 2, n_streams - 1}:
        alone, sum_alone = bits(np.float64, 48, x[i : i + 1], first=i)
        assert np.array_equal(alone[:, 0], out[:, i])
        assert np.array_equal(sum_alone[0], sums[i])


@DTYPES
def test_a_bundle_leaves_nothing_to_the_next(short_blocks, dtype):
    """The first is loud, the second silent."""
    chain, n = Chain(dtype, 48), lanes(dtype)
    x = chain.read()
    y = chain.filter(FACTORS["all"], x, lag=100)
    z = chain.filter(FACTORS["taps beyond a chunk"], x, plus=Term(1.0, y, 60))
    for start in (0, 50, 100):
        chain.filter(FACTORS["Wiener"], z, minus=y, square=range(start, 150))
        chain.smooth(FACTORS["section"], 48, x, z, range(start, 150))
    chain.write(z)
    u, out = np.zeros((n + 1, 240), dtype), np.empty((1, n + 1, 240), dtype)
    u[:n] = 1e6
    sums = execute(chain, *u.shape, x=u, out=out, n_threads=1).totals
    assert np.abs(out[0, :n]).max() > 1
    assert sums[:n].all()
    assert not out[0, n].any()
    assert not sums[n].any()


# --- one kind of stage after the other ------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 47, 48, 60, 200])
def test_a_step_is_zero_and_then_constant(start):
    chain = Chain(chunk=48)
    (found,) = paths(chain, [chain.step(-2.5, start)], 2, 100)
    assert (found == np.where(np.arange(100) < start, 0, -2.5)).all()


def test_a_shift_by_nothing_is_the_signal_itself():
    chain = Chain()
    x = chain.read()
    assert chain.shift(x, 0.0) == x
    assert len(chain.stages) == 1


@pytest.mark.parametrize("name", ["identity", "comb"])
def test_rounding_goes_to_the_nearest_level_and_leaves_the_signal_as_it_is(name):
    """A recursion goes on from what it was."""
    levels, u = np.array([-1.0, 0.25, 3.0]), noise(2, 100)
    chain = Chain(chunk=48)
    x = chain.filter(FACTORS[name], chain.read())
    plain, rounded = paths(chain, [x, chain.round(x, levels)], *u.shape, x=u)
    assert_close(plain, scipys(FACTORS[name], u))
    nearest = reference.nearest(levels)
    assert rounded.ravel().tolist() == [nearest(value) for value in plain.ravel()]


@pytest.mark.parametrize("purpose", [INPUT, NOISE])
def test_noise_is_that_of_its_purpose(purpose):
    normals = unit_normals(5, 3, 100, purpose)
    chain = Chain(chunk=48)
    x = chain.read()
    found = paths(
        chain, [chain.filter(FACTORS["Wiener"], x, plus=Term(0.7, None, 0, purpose))], 3, 100, x=noise(3, 100), seed=5
    )
    assert_close(found[0], scipys(FACTORS["Wiener"], noise(3, 100)) + 0.7 * normals)
    assert not np.array_equal(normals, unit_normals(5, 3, 100, NOISE if purpose == INPUT else INPUT))


def test_noise_of_its_own_and_as_a_signal_give_the_same_bits():
    """A mechanism alone, and in company."""
    results = []
    for own in (True, False):
        chain = Chain(chunk=48)
        x = chain.read()
        term = Term(0.7, None if own else chain.normals(NOISE))
        results.append(paths(chain, [chain.filter(FACTORS["section"], x, plus=term)], 3, 100, x=noise(3, 100), seed=5))
    assert np.array_equal(*results)


@pytest.mark.parametrize(("alphabet", "decision"), CASES)
def test_decisions_over_several_chunks_are_those_of_the_twin(alphabet, decision):
    v, forward, taps = noise(2, 120), 0.3 * noise(50, seed=1) * 0.9 ** np.arange(50), 0.1 * noise(20, seed=2)
    for lag in (0, 3, 48, 50, 100):
        chain = Chain(chunk=48)
        x = chain.read()
        found = paths(chain, [chain.decide(equalizer(alphabet, decision, lag, forward, taps), x)], *v.shape, x=v)[0]
        assert_close(found, twin(alphabet, decision, lag, v, forward, taps), lag)


# --- smoothers ------------------------------------------------------------------------------------

BACKWARD = {  # factors, and a lookahead after which they have decayed to nothing
    "identity": ("identity", 0),
    "identity, seen from afar": ("identity", 20),
    "gain": ("gain", 0),
    "FIR": ("nine taps", 8),
    "section": ("section", 75),
    "Wiener": ("Wiener", 95),
    "recursion": ("recursion", 350),
    "comb": ("comb", 1100),
}


def smoothed(factors, x):
    """Backward in time over the whole, with nothing behind its end."""
    return scipys(factors, x[:, ::-1])[:, ::-1]


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("window", [range(1), range(30, 131), range(47, 97)], ids=str)
def test_a_smoother_runs_backward_in_time(short_blocks, name, window):
    factors, lookahead = BACKWARD[name]
    chain, u = Chain(chunk=48), noise(3, 3072)
    x = chain.read()
    v, y = chain.filter(FACTORS["section"], x), chain.shift(x, 1.0)
    block = chain.smooth(FACTORS[factors], lookahead, y, v, window)
    n = -(-(window.stop + lookahead) // block) * block
    assert n <= u.shape[1]
    expected = sum_of_squares(u + 1 - smoothed(FACTORS[factors], scipys(FACTORS["section"], u)), window)
    np.testing.assert_allclose(totals(chain, 3, n, x=u[:, :n])[0], expected, rtol=1e-11)
    assert block >= 2 * lookahead
    assert block % 48 == 0


@pytest.mark.parametrize("name", ["section", "Wiener", "recursion", "all"])
def test_a_smoother_begins_from_rest_ahead_of_every_block(short_blocks, name):
    """As seen with a lookahead that is too short."""
    chain, x, factors, ahead = Chain(chunk=48), noise(2, 240), FACTORS[name], 11
    read = chain.read()
    assert chain.smooth(factors, ahead, chain.step(0.0, 0), read, range(20, 200)) == 48
    ends = [range(max(0, end - 48 - ahead), end) for end in range(48, 241, 48)]
    blocks = [smoothed(factors, x[:, each.start : each.stop])[:, : len(each) - ahead] for each in ends]
    expected = sum_of_squares(np.concatenate(blocks, axis=1), range(20, 200))
    np.testing.assert_allclose(totals(chain, 2, 240, x=x)[0], expected, rtol=1e-11)


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("length", CHUNKS)
def test_chunks_leave_no_trace_in_a_smoother(dtype, length):
    def squares(length):
        chain = Chain(dtype, length)
        x = chain.read()
        for name in ("FIR", "Wiener", "recursion", "comb"):
            chain.smooth(FACTORS[BACKWARD[name][0]], BACKWARD[name][1], x, chain.shift(x, 0.5), range(100, 900))
        return totals(chain, 3, 7680, x=noise(3, 7680).astype(dtype))

    assert np.array_equal(squares(length), squares(480))


def test_smoothers_of_different_length_share_their_signals(short_blocks):
    x, window = noise(2, 1536), range(5, 400)
    together = Chain(chunk=48)
    read = together.read()
    for name in ("FIR", "recursion", "section"):
        together.smooth(FACTORS[BACKWARD[name][0]], BACKWARD[name][1], read, read, window)
    found = totals(together, 2, 1536, x=x)
    for sums, name in zip(found, ("FIR", "recursion", "section"), strict=True):
        expected = sum_of_squares(x - smoothed(FACTORS[BACKWARD[name][0]], x), window)
        np.testing.assert_allclose(sums, expected, rtol=1e-11)
