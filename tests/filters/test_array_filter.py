"""Filter.filter in every shape: to the bit what a chain makes of rows of lanes, whichever kernel was chosen."""

import numpy as np
import pytest
from helpers.chains import EXAMPLES, FACTORS, noise
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Filter
from dpfast._kernels import simulation
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.filter_streams import push
from dpfast.filters.array_filter import BESIDE, CHAIN, IN_SQUARES, IN_TIME, ArrayFilter, choose_kernel

FILTERS = {name: Filter.from_factors(*factors) for name, factors in FACTORS.items()}
DTYPES = [np.float64, np.float32]
ORDERS = {  # of (streams, time)
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "part of longer streams": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "every other sample": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backward": lambda x: x[..., ::-1].copy()[..., ::-1],
}
LOW_PASS = FILTERS["gain and sections"]


def whole(f, x, zi):
    """The output and the states of a chain."""
    y = np.empty_like(x)
    return y, simulation.filter_array(simulation.build_filter_chain(f.factors, x.dtype), x, zi, y, 1)[0]


@EXAMPLES
@given(
    name=st.sampled_from(sorted(FILTERS)),
    dtype=st.sampled_from(DTYPES),
    n_streams=st.sampled_from([1, 1, 2, 7, 16, 40]),
    n=st.one_of(st.integers(1, 150), st.just(1100)),
    cuts=st.lists(st.integers(0, 1100), max_size=3),
    orders=st.lists(st.sampled_from(sorted(ORDERS)), min_size=3, max_size=3),
    into=st.sampled_from(["a new array", "an array", "x"]),
    n_threads=st.integers(1, 3),
)
def test_pieces_in_any_order_have_the_bits_of_a_chain(name, dtype, n_streams, n, cuts, orders, into, n_threads):
    f, x = FILTERS[name], noise(n_streams, n).astype(dtype)
    zi = noise(n_streams, f.n_states, seed=1).astype(dtype)
    expected, after = whole(f, x, zi)
    of_x, of_zi, of_out = (ORDERS[order] for order in orders)
    pieces = []
    for piece in np.split(x, sorted(min(cut, n) for cut in cuts), axis=1):
        given_x = of_x(piece)
        out = {"a new array": None, "x": given_x, "an array": of_out(np.empty_like(piece))}[into]
        y, zi = f.filter(given_x, of_zi(zi), dtype=dtype, out=out, n_threads=n_threads)
        assert out is None or y is out
        assert y.dtype == zi.dtype == dtype
        pieces.append(y.copy())
    assert np.array_equal(np.concatenate(pieces, axis=1), expected)
    assert np.array_equal(zi, after)


@pytest.mark.parametrize("shape", [(), (1,), (40,), (5, 1), (1, 5), (2, 3, 1), (1, 1, 9)])
@pytest.mark.parametrize("name", ["gain and sections", "eight taps", "all"])
def test_the_second_call_gives_what_the_first_gave(name, shape):
    """From the second call on, plain arrays go a shorter way."""
    f = Filter.from_factors(*FACTORS[name])
    x = noise(*shape, 3) if not shape else noise(*shape)
    zi = noise(*x.shape[:-1], f.n_states)
    first, second = f.filter(x, zi), f.filter(x, zi)
    assert all(map(np.array_equal, first, second))
    assert first.zf.shape == second.zf.shape == zi.shape
    assert all(map(np.array_equal, f.filter(x), f.filter(x, np.zeros_like(zi))))
    out = np.empty_like(x)
    assert f.filter(x, zi, out=out).y is out
    assert np.array_equal(out, first.y)


@pytest.mark.parametrize("dtype", [np.float32, "float32", "f4", np.dtype(np.float32)], ids=repr)
def test_the_short_way_is_taken_however_a_dtype_is_spelled(dtype, monkeypatch):
    f, x = Filter.from_factors(*FACTORS["gain and sections"]), noise(5).astype(np.float32)
    first = f.filter(x, dtype=dtype)
    monkeypatch.setattr(ArrayFilter, "filter_any", lambda *_: pytest.fail("the long way"))
    again = f.filter(x, dtype=dtype)
    assert again.y.dtype == np.float32
    assert all(map(np.array_equal, first, again))


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (5,), (3, 40), (20, 40), (1100,)])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": np.nan}, "x must be finite, got 1 NaN"),
        ({"x": 1e51}, r"x must be at most 1e\+50 in magnitude, got 1"),
        ({"zi": np.inf}, "zi must be finite, got 1 NaN"),
        ({"zi": -1e51}, r"zi must be at most 1e\+50 in magnitude"),
        ({"zi shape": (3,)}, r"zi must have the shape \(.*6,?\) \(..., n_states\), got \(3,\)"),
        ({"n_threads": 0}, "n_threads must be an integer, at least 1, got 0"),
        ({"n_threads": True}, "n_threads must be an integer"),
        ({"dtype": [np.float64]}, r"dtype must be numpy\.float64 or numpy\.float32"),
        ({"dtype": None}, r"dtype must be numpy\.float64 or numpy\.float32"),
        ({"out": np.empty(3)}, "out must be an array of shape"),
        ({"out": np.broadcast_to(0.0, (5,))}, "out must be"),
    ],
)
def test_what_is_refused_at_first_is_refused_for_ever(shape, options, message):
    """Outputs are NaN then if x was not finite, and else what they were."""
    f, x, out = Filter.from_factors(*FACTORS["gain and sections"]), np.ones(shape), np.ones(shape)
    zi = np.zeros((*shape[:-1], 6))
    x.flat[-1], zi.flat[-1] = options.get("x", 1.0), options.get("zi", 0.0)
    options = {"out": out, **options}
    zi = np.zeros(options.pop("zi shape")) if "zi shape" in options else zi
    is_bad_x = options.pop("x", None) is not None
    options.pop("zi", None)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            f.filter(x, zi, **options)
        assert np.isnan(out).all() if is_bad_x else (out == 1).all()
        f.filter(np.ones(shape))


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (3, 40), (20, 40), (1100,)])
def test_samples_that_are_refused_are_not_written_over(shape):
    for _ in range(2):
        x = np.ones(shape)
        x.flat[-1] = np.nan
        with pytest.raises(ValueError, match="x must be finite, got 1 NaN"):
            LOW_PASS.filter(x, out=x)
        assert np.array_equal(x.flat[:-1], np.ones(x.size - 1))
        LOW_PASS.filter(np.ones(shape))


def test_states_that_outputs_may_take_the_place_of_are_not_blamed_for_samples():
    both, x = np.zeros(4000), np.full((1, 2000), np.nan)
    for _ in range(2):
        both[:] = 1
        with pytest.raises(ValueError, match="x must be finite, got 2000 NaN"):
            LOW_PASS.filter(x, both[None, :6], out=both[None, :2000])
        LOW_PASS.filter(np.ones((1, 2000)))


def test_outputs_of_a_step_may_not_overlap_its_input():
    both = np.zeros(9)
    for _ in range(2):
        with pytest.raises(ValueError, match="out must be x itself or share no memory"):
            LOW_PASS.filter(both[:-1], out=both[1:])
        LOW_PASS.filter(both[:-1].copy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_states_come_back_as_a_view_that_goes_in_again(dtype):
    x = noise(7, 1).astype(dtype)
    LOW_PASS.filter(x, dtype=dtype)
    zf = LOW_PASS.filter(x, dtype=dtype).zf
    kept, copied = zf.copy(), np.ascontiguousarray(zf)
    assert all(map(np.array_equal, LOW_PASS.filter(x, zf, dtype=dtype), LOW_PASS.filter(x, copied, dtype=dtype)))
    assert np.array_equal(zf, kept)  # no call changes what it was given


@pytest.mark.skipif(DISABLE_JIT, reason="nothing is compiled")
def test_no_kind_of_array_is_compiled_anew():
    x = noise(1, 6)
    LOW_PASS.filter(x)
    before = list(push.signatures)
    read_only = x.copy()
    read_only.setflags(write=False)
    for given_x in (read_only, x[:, ::-1], x.astype(">f8"), x.tolist()):
        LOW_PASS.filter(given_x, zi=np.broadcast_to(0.0, (1, 6)))
    assert push.signatures == before


@pytest.mark.parametrize(
    ("n_streams", "n_samples", "is_beside", "counts", "expected"),
    [
        (1, 1, False, (1, 4, 1, 8), BESIDE),
        (1, 1023, False, (1, 4, 1, 8), BESIDE),
        (1, 1024, False, (1, 4, 1, 8), IN_TIME),
        (1, 2, False, (2, 4, 1, 8), IN_TIME),
        (15, 16, False, (1, 1, 1, 8), IN_TIME),
        (16, 15, False, (1, 1, 1, 8), BESIDE),
        (16, 16, False, (1, 1, 1, 8), IN_SQUARES),
        (16, 2, False, (2, 1, 1, 8), IN_SQUARES),
        (32, 31, False, (2, 0, 1, 8), BESIDE),
        (32, 32, False, (2, 0, 1, 8), IN_TIME),
        (16, 255, False, (1, 4, 1, 8), IN_SQUARES),
        (16, 256, False, (1, 4, 1, 8), IN_TIME),
        (1000, 256, False, (1, 3, 1, 8), IN_TIME),
        (1024, 1024, False, (1, 2, 1, 8), IN_SQUARES),
        (1024, 1025, False, (1, 2, 1, 8), IN_TIME),
        (1024, 1025, False, (1, 2, 1, 4), IN_SQUARES),
        (1024, 1025, False, (1, 5, 1, 8), IN_SQUARES),
        (1000, 256, False, (1, 5, 1, 8), IN_SQUARES),
        (1000, 20_000, False, (1, 4, 1, 4), IN_SQUARES),
        (1000, 20_000, True, (1, 4, 1, 8), BESIDE),
        (15, 20_000, True, (1, 4, 1, 8), IN_TIME),
        (1, 20_000, False, (1, 4, 41, 8), BESIDE),
        (2, 15, False, (1, 4, 41, 8), BESIDE),
        (1025, 15, False, (1, 4, 41, 8), BESIDE),
        (4, 4096, False, (1, 4, 41, 8), BESIDE),
        (4, 4097, False, (1, 4, 41, 8), CHAIN),
    ],
)
def test_the_kernel_is_chosen_by_shape(n_streams, n_samples, is_beside, counts, expected):
    assert choose_kernel(n_streams, n_samples, is_beside, counts) == expected


@pytest.mark.parametrize("shape", [(4, 50), (40, 450)], ids=["brought side by side", "as a chain"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_recursions_have_the_bits_of_a_stream(shape, dtype):
    f, x = FILTERS["comb"], noise(*shape).astype(dtype)
    stream, out = f.stream(len(x), dtype=dtype), np.empty_like(x)
    expected = stream.push(x.T).T
    for _ in range(2):
        assert all(map(np.array_equal, f.filter(x, dtype=dtype, out=out), (expected, stream.state.T)))
    x[-1, -1] = np.nan
    with pytest.raises(ValueError, match="x must be finite, got 1 NaN"):
        f.filter(x, dtype=dtype, out=out)
    assert np.isnan(out).all()
