"""Bundles, slices and threads; memory orders; states; several callers at once."""

import threading

import numpy as np
import pytest
from helpers.chains import COMB, EXAMPLES, FACTORS, LANES, NO_SECTIONS, ONE, assert_close, noise, scipys
from helpers.equalizers import equalizer
from helpers.patience import PATIENCE
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter
from dpfast._kernels import chain_execute as module
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors
from dpfast._kernels.simulated_noise import INPUT

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
SHAPE = 3 * LANES + 1, 130


def example_chain(dtype=np.float64, chunk=48):
    """Reads, draws, decides and sums squares; writes two signals."""
    chain = Chain(dtype, chunk)
    v = chain.filter(FACTORS["Wiener"], chain.read(), plus=Term(0.5))
    decisions = chain.decide(equalizer("four", "soft", 9), v)
    chain.filter(FACTORS["comb"], chain.normals(INPUT), minus=decisions, square=range(20, 110))
    chain.write(v)
    chain.write(decisions)
    return chain


def run(x, chunk=48, **options):
    """(paths, totals)."""
    out = np.empty((2, *x.shape), x.dtype)
    return out, execute(example_chain(x.dtype, chunk), *x.shape, x=x, out=out, seed=3, **options).totals


def same(first, second):
    return all(map(np.array_equal, first, second))


# --- slices and threads ---------------------------------------------------------------------------


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("n_threads", [1, 2, 4, 100])
@pytest.mark.parametrize("multiply_adds", [1, 30_000, 100_000, 10**9])
@pytest.mark.parametrize("few", [0, 10**9])
def test_threads_and_slices_leave_no_trace_in_the_bits(monkeypatch, dtype, n_threads, multiply_adds, few):
    """Slices of one chunk, of a bundle, of several; streams that each range prepares, or that are prepared before."""
    x = noise(*SHAPE).astype(dtype)
    expected = run(x)
    monkeypatch.setattr(module, "_SLICE", multiply_adds)
    monkeypatch.setattr(module, "_FEW", few)
    assert same(run(x, n_threads=n_threads), expected)


@pytest.mark.parametrize(("multiply_adds", "fewest", "most"), [(1, 6, 6), (10**9, 1, 1)])
def test_a_slice_is_a_chunk_or_more(monkeypatch, multiply_adds, fewest, most):
    monkeypatch.setattr(module, "_SLICE", multiply_adds)
    heard = []
    expected = run(noise(LANES + 2, 130))
    assert same(run(noise(LANES + 2, 130), advance=heard.append), expected)
    assert fewest <= len(heard) <= most
    assert sum(heard) == (LANES + 2) * 130


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("multiply_adds", [1, 100_000, 10**9])
def test_progress_hears_of_every_sample_once(monkeypatch, n_threads, multiply_adds):
    monkeypatch.setattr(module, "_SLICE", multiply_adds)
    heard = []
    run(noise(*SHAPE), n_threads=n_threads, advance=heard.append)
    assert sum(heard) == SHAPE[0] * SHAPE[1]
    assert min(heard) > 0


def test_what_listens_to_progress_may_stop_it():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(noise(2, 10), advance=stop)


@pytest.mark.slow_nojit
def test_several_callers_at_once_do_not_disturb_each_other():
    inputs = [noise(3, 60, seed=i) for i in range(6)]
    expected, found, together = [run(x) for x in inputs], {}, threading.Barrier(len(inputs), timeout=PATIENCE)

    def call(i):
        together.wait()
        for _ in range(3):
            found.setdefault(i, []).append(run(inputs[i], n_threads=1 + i % 2))

    callers = [threading.Thread(target=call, args=(i,)) for i in range(len(inputs))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all(same(each, expected[i]) for i in range(len(inputs)) for each in found[i])


def test_one_chain_may_run_several_times():
    """It keeps no state of its own, and follows the length of the signals."""
    chain, x = example_chain(), noise(3, 100)
    for n in (100, 7, 100):
        out = np.empty((2, 3, n))
        execute(chain, 3, n, x=x[:, :n], out=out, seed=3)
        assert np.array_equal(out, run(x[:, :n])[0])


@pytest.mark.parametrize(("n_samples", "n_threads"), [(1, 1), (100_000, 4)])
def test_short_jobs_take_one_thread(monkeypatch, n_samples, n_threads):
    chain, taken = Chain(), []
    chain.read()
    monkeypatch.setattr(module.threads, "for_ranges", lambda task, n, size, n_threads: taken.append(-(-n // size)))
    execute(chain, 100 * LANES, n_samples, x=np.zeros((100 * LANES, 1)), n_threads=4)
    assert (taken[0] >= n_threads) if n_threads > 1 else taken == [1]


@pytest.mark.parametrize(("few", "ranges"), [(0, 2), (10**9, 8)])
def test_few_streams_are_dealt_out_in_shorter_ranges(monkeypatch, few, ranges):
    """Whoever starts late takes fewer of them; `few` streams are prepared once, so that a range costs little."""
    chain, taken = Chain(), []
    chain.read()
    monkeypatch.setattr(module, "_FEW", few)
    monkeypatch.setattr(module.threads, "for_ranges", lambda task, n, size, n_threads: taken.append(-(-n // size)))
    execute(chain, 16 * LANES, 100_000, x=np.zeros((16 * LANES, 1)), n_threads=2)
    assert taken == [ranges]


# --- arrays ---------------------------------------------------------------------------------------

LAYOUTS = {
    "C": lambda shape, dtype: np.empty(shape, dtype),
    "Fortran": lambda shape, dtype: np.empty(shape, dtype, order="F"),
    "part of longer streams": lambda shape, dtype: np.empty((*shape[:-1], shape[-1] + 9), dtype)[..., 4:-5],
    "every other sample": lambda shape, dtype: np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2],
    "every other stream": lambda shape, dtype: np.empty((*shape[:-2], 2 * shape[-2], shape[-1]), dtype)[..., ::2, :],
    "backward": lambda shape, dtype: np.empty(shape, dtype)[..., ::-1],
    "streams backward": lambda shape, dtype: np.empty(shape, dtype)[..., ::-1, :],
}


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_streams", [1, LANES + 1])
def test_the_memory_order_does_not_matter(layout, n_streams, dtype):
    x, shape = noise(n_streams, 60).astype(dtype), (2, n_streams, 60)
    given, out = LAYOUTS[layout](x.shape, dtype), LAYOUTS[layout](shape, dtype)
    given[...] = x
    totals = execute(example_chain(dtype), *x.shape, x=given, out=out, seed=3).totals
    assert same((out, totals), run(x))


def test_the_input_may_be_read_only_and_is_left_as_it_is():
    x = noise(LANES + 1, 60)
    before = x.copy()
    x.setflags(write=False)
    run(x)
    assert np.array_equal(x, before)


def test_the_output_may_take_the_place_of_the_input():
    chain, x = Chain(chunk=48), noise(LANES + 1, 100)
    chain.write(chain.filter(FACTORS["Wiener"], chain.read(), lag=50))
    expected, out = np.empty((1, *x.shape)), x[None].copy()
    execute(chain, *x.shape, x=x, out=expected)
    execute(chain, *x.shape, x=out[0], out=out)
    assert np.array_equal(out, expected)


def test_nothing_but_the_output_is_written():
    x = noise(LANES + 1, 100)
    around = np.full((2, LANES + 5, 120), 7.0)
    execute(example_chain(), *x.shape, x=x, out=around[:, 2:-2, 10:-10], seed=3)
    assert np.array_equal(around[:, 2:-2, 10:-10], run(x)[0])
    around[:, 2:-2, 10:-10] = 7.0
    assert (around == 7).all()


@DTYPES
@pytest.mark.parametrize("shape", [(0, 5), (0, 0), (0, 500)])
def test_no_streams_give_nothing(shape, dtype):
    out, totals = run(np.empty(shape, dtype))
    assert out.shape == (2, *shape)
    assert totals.shape == (0, 1)


def test_no_time_takes_no_time():
    out, _ = run(np.empty((3, 0)))
    assert out.shape == (2, 3, 0)


@pytest.mark.skipif(DISABLE_JIT, reason="nothing is compiled")
def test_the_loop_is_compiled_once_for_each_precision():
    """Whatever a chain reads, draws, sums, writes and remembers, and in whatever memory order."""
    for dtype in (np.float64, np.float32):
        drawing, copying = Chain(dtype), Chain(dtype)
        drawing.normals(INPUT)
        copying.write(copying.read())
        execute(drawing, 3, 1)
        execute(copying, 3, 1, x=np.zeros((3, 1), dtype), out=np.zeros((1, 3, 1), dtype, order="F"))
        run(np.zeros((1, 1), dtype))
        pieces(FACTORS["all"], np.zeros((LANES, 7), dtype), [1])
    assert len(module.chain_loop.run_chunks.signatures) == 2


# --- states ---------------------------------------------------------------------------------------


def poles(n):
    return Factors(
        ONE, NO_SECTIONS, np.eye(1, n + 1)[0] + 0.3 * np.eye(1, n + 1, n - 1)[0] - 0.2 * np.eye(1, n + 1, n)[0]
    )


STATEFUL = FACTORS | {f"{n} poles": poles(n) for n in range(42, 47)}  # whose past just fits into a chunk


def pieces(factors, x, cuts):
    """Output and last state of a filter, one piece of a signal after the other."""
    chain = Chain(x.dtype, 48)
    y = chain.filter(factors, chain.read(), states=True)
    chain.write(y)
    outputs, states = [], np.zeros((len(x), factors.n_states), x.dtype)
    for part in np.split(x, sorted(cuts), axis=1):
        out = np.empty((1, *part.shape), x.dtype)
        if part.shape[1]:
            states = execute(chain, *part.shape, x=part, states=states, out=out).states
        outputs.append(out[0])
    return np.concatenate(outputs, axis=1), states


@pytest.mark.parametrize("name", STATEFUL)
def test_a_signal_in_pieces_gives_the_bits_of_the_whole(name):
    x = noise(2, 150)
    assert same(pieces(STATEFUL[name], x, [1, 2, 51, 100, 149]), pieces(STATEFUL[name], x, []))


@pytest.mark.slow_nojit
@DTYPES
@pytest.mark.parametrize("name", STATEFUL)
@EXAMPLES
@given(cuts=st.lists(st.integers(0, 150), max_size=5))
def test_a_signal_in_any_pieces_gives_the_bits_of_the_whole(name, dtype, cuts):
    x = noise(2, 150).astype(dtype)
    assert same(pieces(STATEFUL[name], x, cuts), pieces(STATEFUL[name], x, []))


@pytest.mark.parametrize("name", STATEFUL)
def test_the_state_is_that_of_state_space(name):
    factors, x = STATEFUL[name], noise(1, 100)
    a, b, c, d = Filter.from_factors(*factors).state_space()
    expected, y = [np.zeros(len(a))], []
    for value in x.T:
        y.append(c @ expected[-1] + d @ value)
        expected.append(a @ expected[-1] + b @ value)
    for n in (1, 2, 47, 49, 50, 100):
        found, states = pieces(factors, x[:, :n], [])
        assert_close(found[0], np.concatenate(y[:n]), n)
        assert_close(states[0], expected[n], n)


@pytest.mark.parametrize("name", ["nine taps", "gain and sections", "comb", "all"])
def test_streams_begin_from_their_own_states(name):
    """Given to the call, or by the chain's rule for the numbers of the streams."""
    factors, x, n = FACTORS[name], noise(3 * LANES + 3, 60), 3 * LANES + 1
    states = noise(len(x), factors.n_states, seed=1)
    every = np.tile(states.T, 2)  # also of the streams that fill up a bundle
    results = []
    for how, begin in (({"states": True}, states[2:]), ({"begin": lambda _, i, n: every[:, i : i + n]}, None)):
        chain, out = Chain(chunk=48), np.empty((1, n, 60))
        chain.write(chain.filter(factors, chain.read(), **how))
        execute(chain, n, 60, x=x[2:], states=begin, out=out, first=2, n_threads=2)
        results.append(out[0])
    assert np.array_equal(*results)
    a, _, c, _ = Filter.from_factors(*factors).state_space()
    free = np.array([c @ np.linalg.matrix_power(a, t) for t in range(60)])[:, 0]  # of the state alone
    assert_close(results[0], scipys(factors, x[2:]) + states[2:] @ free.T)


def test_every_filter_has_its_own_first_states():
    first, second = noise(1, 3 * LANES, seed=1), noise(40, 3 * LANES, seed=2)
    chain, out = Chain(chunk=48), np.empty((2, 3, 60))
    x = chain.read()
    delay = Factors(np.array([0.0, 1.0]), NO_SECTIONS, ONE)
    chain.write(chain.filter(delay, x, begin=lambda _, i, n: first[:, i : i + n]))
    chain.write(chain.filter(Factors(ONE, NO_SECTIONS, COMB), x, begin=lambda _, i, n: second[:, i : i + n]))
    execute(chain, 3, 60, x=np.zeros((3, 60)), out=out)
    assert np.array_equal(out[0], np.pad(first[:, :3].T, [(0, 0), (0, 59)]))
    assert_close(out[1, :, 0], -second[:, :3].T @ COMB[1:])
