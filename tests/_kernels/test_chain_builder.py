import numpy as np
import pytest
from helpers.chains import COMB, FACTORS, LANES, NO_SECTIONS, ONE, SECTIONS
from helpers.equalizers import equalizer
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import chain_builder, chain_parts, chain_program
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.equalizer import pad_feedback_taps
from dpfast._kernels.factors import Factors
from dpfast._kernels.fir_and_sections import fold_factors
from dpfast._kernels.simd import lanes, register_bytes
from dpfast._kernels.simulated_noise import INPUT
from dpfast._kernels.tiles import ROWS

WINDOW = range(10, 20)


def kinds(chain):
    return [stage["kind"] for stage in chain.stages]


def example(chunk=48):
    chain = Chain(chunk=chunk)
    x = chain.read()
    v = chain.filter(FACTORS["all"], chain.shift(x, 1.0), lag=70, plus=Term(0.5))
    w = chain.filter(FACTORS["taps beyond a chunk"], v, plus=Term(1.0, x, 200))
    chain.smooth(FACTORS["Wiener"], 130, v, w, WINDOW)
    chain.smooth(FACTORS["comb"], 30, v, chain.decide(equalizer("four", "soft", 9), w), WINDOW)
    chain.write(w)
    return chain


# --- coefficients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(9))
def test_taps_of_feedback_are_at_least_those_of_a_tile(n):
    found = pad_feedback_taps(np.arange(1.0, n + 1))
    assert found.tolist() == [*range(1, n + 1), *[0] * (ROWS - 1 - n)]


def test_a_gain_goes_into_the_first_section():
    """And feedback of the output becomes that of the state."""
    taps, sections = fold_factors(Factors(np.array([3.0]), SECTIONS, ONE))
    assert taps.size == 0
    gains = np.array([3.0, 1.0, 1.0])
    b0, b1, b2, _, a1, a2 = SECTIONS.T
    np.testing.assert_allclose(sections.T, [gains * b0, gains * (b1 - a1 * b0), gains * (b2 - a2 * b0), a1, a2])


def test_factors_are_left_as_they_are():
    sections = SECTIONS.copy()
    fold_factors(Factors(np.array([3.0]), sections, ONE))
    assert np.array_equal(sections, SECTIONS)


@pytest.mark.parametrize(("taps", "expected"), [([1.0], []), ([2.0], [2.0]), ([0.0], [0.0]), ([1.0, 0.5], [1.0, 0.5])])
def test_taps_are_kept_unless_they_do_nothing(taps, expected):
    assert fold_factors(Factors(np.array(taps), NO_SECTIONS, ONE))[0].tolist() == expected


# --- stages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("identity", [chain_program.FILTER]),
        ("Wiener", [chain_program.FILTER]),
        ("comb", [chain_program.FILTER, chain_program.FEEDBACK]),
    ],
)
def test_a_filter_is_one_pass_but_for_a_recursion(name, expected):
    chain = Chain()
    chain.filter(FACTORS[name], chain.read())
    assert kinds(chain) == [chain_program.READ, *expected]
    chain.filter(FACTORS[name], 0, plus=Term(1.0, 0), square=WINDOW)
    behind = [chain_program.FILTER] if name == "comb" else []
    assert kinds(chain) == [chain_program.READ, *expected, *expected, *behind]


@pytest.mark.parametrize(("name", "n"), [("section", 1), ("gain", 2), ("Wiener", 2), ("comb", 3)])
def test_a_difference_is_a_pass_of_its_own_where_taps_need_its_past(name, n):
    chain = Chain()
    chain.filter(FACTORS[name], chain.read(), lag=4, minus=chain.step(1.0, 0))
    assert len(chain.stages) == 2 + n


@pytest.mark.parametrize("name", FACTORS)
def test_every_square_has_a_total_even_over_no_time(name):
    chain = Chain()
    x = chain.read()
    for window in (WINDOW, range(0), range(5, 5)):
        chain.filter(FACTORS[name], x, square=window)
    assert chain.n_totals == 3
    assert [stage["total"] for stage in chain.stages if stage.get("n_squares")] == [0, 1, 2]


def test_the_same_filter_of_the_same_signal_runs_once():
    chain = Chain()
    x, z = chain.read(), chain.step(1.0, 0)
    signals = [chain.filter_once(FACTORS[name], signal) for name in FACTORS for signal in (x, z, x)]
    assert len(set(signals)) == 2 * len(FACTORS)
    assert len({chain.shift(x, by) for by in (1.0, 2.0, 1.0, 0.0)}) == 3


def test_generators_have_words_of_their_own():
    chain = Chain()
    for _ in range(3):
        chain.normals(INPUT)
    assert [stage["place"] for stage in chain.stages] == [0, 4, 8]
    assert chain.memory(chain.compile(1)).words.shape == (12, LANES)


# --- where things are -----------------------------------------------------------------------------


def extents(built):
    """(first row, end) of each signal with its past and the end of a last tile."""
    return [(x.row - x.history, x.row + n + ROWS - 1) for x, n in zip(built.signals, lengths(built), strict=True)]


def lengths(built):
    """Rows of the present; a signal of which time stands still is as long as the passes over it."""
    passes = {stage.out: stage.n for stage in built.stages if stage.n}
    return [x.length or passes[i] for i, x in enumerate(built.signals)]


@pytest.mark.parametrize("chunk", [6, 48, 96, 240, 480])
def test_signals_lie_one_after_the_other(chunk):
    built = example(chunk).compile(1000)
    ends = [0, *(end for _, end in extents(built))]
    assert [start for start, _ in extents(built)] == ends[:-1]
    assert ends[-1] == built.first_state
    assert built.n_rows == built.first_state + 2 * (3 + 2)  # sections of "all" and "Wiener"


@pytest.mark.parametrize("chunk", [6, 48, 96, 240, 480])
def test_what_a_stage_reads_is_there(chunk):
    """The past of taps, lags and terms; whole passes."""
    built = example(chunk).compile(1000)
    history, length = built.signals.history, built.signals.length
    for stage in built.stages:
        taps = stage.n_a if stage.kind in (chain_program.FILTER, chain_program.FEEDBACK) else 0
        assert history[stage.x] >= taps + stage.lag * (stage.kind != chain_program.FEEDBACK)
        assert history[stage.plus] >= stage.late * stage.n_plus
        if stage.kind == chain_program.FEEDBACK:
            assert history[stage.out] >= stage.n_b
        for number in (stage.x, stage.out):
            assert length[number] == 0 or length[number] % (stage.period * chunk) == 0
    assert all(n == 0 or n >= h + ROWS - 1 for n, h in zip(length, history, strict=True))


def test_a_long_past_is_moved_up_rarely():
    chain = Chain()
    chain.filter(FACTORS["identity"], chain.read(), lag=100_000)
    (x, _) = chain.compile(1000).signals
    assert x.history == 100_000
    assert 100_000 < x.length < 250_000
    assert x.length % chain_parts.CHUNK == 0


@given(lookahead=st.integers(0, 3000), chunk=st.sampled_from([48, 240, 480]))
def test_a_smoother_runs_over_blocks_of_which_most_counts(lookahead, chunk):
    chain = Chain(chunk=chunk)
    x = chain.read()
    block = chain.smooth(FACTORS["section"], lookahead, x, x, WINDOW)
    assert block % chain_builder.SMOOTHER_ROWS == block % chunk == 0
    assert block == chain_builder.SMOOTHER_ROWS or block // 2 < 2 * lookahead <= block
    assert {stage["n"] for stage in chain.stages[1:]} == {block, block + lookahead}
    assert {stage["period"] for stage in chain.stages[1:]} == {block // chunk}


@pytest.mark.parametrize(("n_samples", "n_chunks"), [(0, 0), (1, 1), (480, 1), (481, 2), (4800, 10)])
def test_a_program_has_whole_chunks(n_samples, n_chunks):
    assert example(480).compile(n_samples).n_chunks == n_chunks


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_begins_on_a_cache_line_and_is_as_wide_as_a_bundle(dtype):
    chain = Chain(dtype)
    chain.filter(FACTORS["all"], chain.normals(INPUT), square=WINDOW)
    built = chain.compile(10)
    memory = chain.memory(built)
    assert memory.rows.dtype == dtype
    assert memory.rows.shape == (built.n_rows, lanes(dtype))
    assert (memory.words.shape, memory.totals.shape) == ((4, lanes(dtype)), (2, lanes(dtype)))
    assert not memory.rows.any()
    assert memory.rows.ctypes.data % 64 == 0
    for part in memory[1:]:
        assert part.ctypes.data % register_bytes() == 0
        assert part.flags.c_contiguous
        part[:] = 1  # it may be written
    assert all((part == 1).all() for part in memory[1:])  # and overlaps nothing


# --- states ---------------------------------------------------------------------------------------


def test_states_are_in_the_order_of_the_factors():
    chain = Chain(chunk=48)
    x = chain.read()
    chain.filter(Factors(np.ones(3), SECTIONS[:2], COMB), x, states=True)
    built = chain.compile(100)
    signal, out = built.signals.row[[x, 2]]
    states = list(range(built.first_state, built.first_state + 4))
    assert built.begin.tolist() == [signal - 1, signal - 2, *states, *range(out - 1, out - 41, -1)]
    t = 99 % built.signals.length[[x, 2]]
    newest = [signal + t[0], signal + t[0] - 1], range(out + t[1], out + t[1] - 40, -1)
    assert built.end.tolist() == [*newest[0], *states, *newest[1]]


def test_states_that_nobody_asks_for_are_not_kept():
    built = example().compile(100)
    assert (built.begin.size, built.end.size) == (0, 0)
