import numpy as np
import pytest
import reference
from chains import FACTORS, NO_SECTIONS, ONE, TOLERANCE, assert_close, noise, scipys
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import linear, random
from dpfast._kernels.linear import TAPS, Added, Factors, Part, Terms
from dpfast._kernels.simd import lanes
from dpfast._kernels.tiles import ROWS

PASSES = {name: x for name, x in FACTORS.items() if len(x.recursion) == 1}  # recursions are feedback
PAST = 160  # rows
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


class Bundle:
    """Signals of a bundle of streams in rows: input, minus, plus, output, each after its past; then states."""

    def __init__(self, n, dtype=np.float64):
        self.n, self.lanes, self.length = n, lanes(dtype), PAST + n + ROWS - 1
        self.x, self.minus, self.plus, self.out = (PAST + i * self.length for i in range(4))
        self.state = 4 * self.length
        self.rows = np.zeros((self.state + 20, self.lanes), dtype)
        self.words = random.generators(3, 0, self.lanes, random.NOISE).astype(np.uint32)
        self.totals = np.zeros((2, self.lanes))

    def put(self, row, x):
        self.rows[row : row + self.n] = x.T

    def get(self, row):
        return self.rows[row : row + self.n].T.copy()

    def run(self, factors, start=0, stop=None, minus=False, plus=0.0, noise=0.0, total=None):
        """The coefficients lie behind others; a mere gain is that of the first section."""
        taps, sections = factors.taps, np.delete(factors.sections, 3, axis=1)
        if len(taps) == 1:
            sections[:1, :3] *= taps[0]
        if np.array_equal(taps, [1.0]) or (len(taps) == 1 and len(sections)):
            taps = np.empty(0)
        taps = np.pad(taps, (0, -len(taps) % TAPS))
        c = np.concatenate([[7.0], taps, sections.ravel()]).astype(self.rows.dtype)
        added = Added(self.plus, int(plus != 0), 0, int(noise != 0), plus + noise)
        linear.run(
            c,
            Part(1, len(taps) // TAPS, 1 + len(taps), len(sections), self.state),
            Terms(self.minus, int(minus), added, total or 0, int(total is not None)),
            self.words,
            self.totals,
            self.rows,
            self.x,
            self.out,
            start,
            self.n if stop is None else stop,
        )


def run(factors, x, dtype=np.float64, cuts=()):
    """One pass after the other on x (streams, time), as many streams as lanes."""
    bundle = Bundle(x.shape[1], dtype)
    bundle.put(bundle.x, x)
    ends = [*sorted(cuts), x.shape[1]]
    for start, stop in zip([0, *ends], ends, strict=False):
        bundle.run(factors, start, stop)
    return bundle.get(bundle.out)


@DTYPES
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("n", [1, 5, 6, 7, 47])
def test_a_pass_equals_scipy(name, n, dtype):
    x = noise(lanes(dtype), n)
    assert_close(run(PASSES[name], x, dtype), scipys(PASSES[name], x))


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_equals_the_twin(name):
    factors, x = PASSES[name], noise(lanes(np.float64), 20)
    expected = [reference.cascade(factors.sections, reference.fir(factors.taps, row)) for row in x]
    assert_close(run(factors, x), expected)


@DTYPES
@pytest.mark.parametrize("name", PASSES)
@given(cuts=st.lists(st.integers(0, 40), max_size=6))
def test_passes_over_parts_give_the_bits_of_the_whole(name, dtype, cuts):
    x = noise(lanes(dtype), 40)
    assert np.array_equal(run(PASSES[name], x, dtype, cuts), run(PASSES[name], x, dtype))


@pytest.mark.parametrize("name", PASSES)
def test_a_lane_does_not_depend_on_the_others(name):
    n, factors = lanes(np.float64), PASSES[name]
    x, order = noise(n, 30), np.random.default_rng(1).permutation(n)
    alone = np.where(np.arange(n)[:, None] == n - 2, x, 0.0)
    whole = run(factors, x)
    assert np.array_equal(run(factors, x[order]), whole[order])
    assert np.array_equal(run(factors, alone)[n - 2], whole[n - 2])


@pytest.mark.parametrize(("name", "beyond"), [("nine taps", ROWS - 1), ("Wiener", 0), ("section", 0)])
@pytest.mark.parametrize("n", [1, 6, 8])
def test_a_pass_writes_its_rows_and_up_to_five_more_if_it_has_no_sections(name, beyond, n):
    bundle = Bundle(30)
    bundle.put(bundle.out, np.full((bundle.lanes, 30), 7.0))
    bundle.run(PASSES[name], 12, 12 + n)
    written = np.flatnonzero((bundle.get(bundle.out) != 7).any(axis=0))
    assert written.tolist() == list(range(12, 12 + (n + (-n % ROWS if beyond else 0))))


@pytest.mark.parametrize("name", ["section", "gain and sections"])
@pytest.mark.parametrize("start", [0, 5])
def test_a_signal_is_subtracted_before_the_sections(name, start):
    bundle, x, y = Bundle(33), *noise(2, lanes(np.float64), 33)
    bundle.put(bundle.x, x)
    bundle.put(bundle.minus, y)
    for first, last in ((0, start), (start, 33)):
        bundle.run(PASSES[name], first, last, minus=True)
    assert_close(bundle.get(bundle.out), scipys(PASSES[name], x - y))


@pytest.mark.parametrize("name", ["identity", "nine taps", "section", "Wiener"])
def test_a_signal_is_added_behind_the_filter(name):
    bundle, x, y = Bundle(33), *noise(2, lanes(np.float64), 33)
    bundle.put(bundle.x, x)
    bundle.put(bundle.plus, y)
    bundle.run(PASSES[name], plus=-0.7)
    assert_close(bundle.get(bundle.out), scipys(PASSES[name], x) - 0.7 * y)


@DTYPES
@pytest.mark.parametrize("name", ["identity", "nine taps", "section"])
def test_noise_is_added_behind_the_filter(name, dtype):
    """The normals that the generator gives to a signal of their own."""
    n = 5 * ROWS
    bundle, normals, x = Bundle(n, dtype), Bundle(n, dtype), noise(lanes(dtype), n)
    random.normals(normals.words, 0, normals.rows, normals.x, n)
    bundle.put(bundle.x, x)
    bundle.run(PASSES[name], noise=0.7)
    assert_close(bundle.get(bundle.out), scipys(PASSES[name], x) + 0.7 * normals.get(normals.x))
    assert np.array_equal(bundle.words, normals.words)


@DTYPES
@pytest.mark.parametrize("name", ["identity", "nine taps", "Wiener"])
@pytest.mark.parametrize(("start", "stop"), [(0, 40), (3, 31), (6, 12), (7, 8), (5, 5)])
def test_squares_are_summed_and_nothing_is_kept(name, dtype, start, stop):
    bundle, x = Bundle(40, dtype), noise(lanes(dtype), 40)
    bundle.put(bundle.x, x)
    bundle.put(bundle.out, np.full_like(x, 7.0))
    bundle.totals[:] = 1.0
    for first, last, total in ((0, start, 0), (start, stop, 1), (stop, 40, 0)):
        bundle.run(PASSES[name], first, last, total=total)
    assert (bundle.get(bundle.out) == 7).all()
    squares = np.sum(scipys(PASSES[name], x)[:, start:stop] ** 2, axis=1)
    np.testing.assert_allclose(bundle.totals[1], 1 + squares, rtol=TOLERANCE[np.dtype(dtype).itemsize])


def test_squares_of_float32_are_summed_in_float64():
    bundle, n = Bundle(6000, np.float32), lanes(np.float32)
    bundle.put(bundle.x, np.ones((n, 6000)))
    bundle.totals[0] = 2.0**30  # in float32 nothing below 2^7 could be added to it
    bundle.run(FACTORS["identity"], total=0)
    assert (bundle.totals[0] == 2.0**30 + 6000).all()


@given(
    taps=st.lists(st.floats(-2, 2), min_size=1, max_size=20),
    pairs=st.lists(st.tuples(st.floats(0, 0.95), st.floats(0, np.pi)), max_size=3),
    seed=st.integers(0, 99),
)
def test_stable_filters_equal_scipy(taps, pairs, seed):
    sections = [[1, 0.3, -0.4, 1, -2 * r * np.cos(w), r * r] for r, w in pairs]
    factors = Factors(np.array(taps), np.array(sections) if pairs else NO_SECTIONS, ONE)
    x = noise(lanes(np.float64), 80, seed=seed)
    assert_close(run(factors, x), scipys(factors, x))


@given(a=st.floats(-10, 10), b=st.floats(-10, 10))
def test_a_pass_is_linear(a, b):
    x, y = noise(2, lanes(np.float64), 30)
    expected = a * run(FACTORS["Wiener"], x) + b * run(FACTORS["Wiener"], y)
    assert_close(run(FACTORS["Wiener"], a * x + b * y), expected)


@pytest.mark.parametrize(("name", "n"), [("identity", 0), ("nine taps", 8), ("Wiener", 24), ("comb", 40), ("all", 49)])
def test_states_are_past_inputs_two_of_each_section_and_past_outputs(name, n):
    assert FACTORS[name].n_states == n
