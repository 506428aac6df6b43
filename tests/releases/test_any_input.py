"""Anything at all as input: a correct release, or a refusal by type or shape that changes and tells nothing."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import fakes
from helpers.designs import MadeOnce, designed
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import dpfast as dp
from dpfast.releases.noise import Noise, NoiseOfLaws
from dpfast.releases.store.push_limits import MAX_BATCH
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream

TARGET = dp.Filter([1], [1, -0.9])
DECLARED = {"unit": 0.5, "centre": 2, "n_streams": 2}


def planned(inputs):
    return dp.exact(designed(dp.zero_forcing, TARGET, dp.Privacy(2, 1e-6), tolerance=0.1), inputs)


PLANS = MadeOnce(
    {
        "integers": lambda: planned(dp.Inputs(0, 6, **DECLARED)),
        "floats": lambda: planned(dp.Inputs(0, 6, **DECLARED, missing=3)),
        "one stream": lambda: planned(dp.Inputs(0, 6, unit=0.5, centre=2, missing=3)),
    }
)


class Noted(Noise):
    """Whose last draw is known."""

    def take(self, n):
        self.last = super().take(n)
        return self.last.copy()


def integers(u):
    """In half units about 2, of a value in 0 to 6; no number counts as 3."""
    if u != u:
        return 2
    return int(np.floor(2 * min(max(float(u), 0.0), 6.0) + 0.5)) - 4


def content(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- inputs ---------------------------------------------------------------------------------------

NUMBERS = ["i1", "u1", "<i2", ">i2", "u4", ">i8", "i8", "u8", "?", "f2", ">f4", "f8", "g"]
DTYPES = st.sampled_from([*NUMBERS, "c16", "O", "U3", "S2", "M8[s]", "m8[s]"])
SHAPES = st.one_of(
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4).map(lambda shape: (2, shape[1])),
    st.integers(0, 4).map(lambda n: (n,)),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
)
WRAPPERS = {
    "array": lambda x: x,
    "columns first": np.asfortranarray,
    "every other": lambda x: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "matrix": lambda x: np.matrix(x) if x.ndim == 2 else x,
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x) if x.ndim else (),
    "ragged": lambda x: [*(x.tolist() if x.ndim else []), [1]],
    "objects": lambda x: x.astype(object),
    "masked": lambda x: np.ma.array(x, mask=False),
    # objects stay what they are: pandas looks at values whether they are texts
    "series": lambda x: pd.Series(x, dtype=object if x.dtype == object else None) if x.ndim == 1 else x,
    "frame": lambda x: pd.DataFrame(x, dtype=object if x.dtype == object else None) if x.ndim == 2 else x,
    "nullable": lambda x: pd.Series(x).convert_dtypes() if x.ndim == 1 and x.dtype.kind == "i" else x,
    "sparse": lambda x: sparse.csr_matrix(x) if x.dtype.kind in "iu" and x.dtype.isnative and x.ndim == 2 else x,
    "bytes": lambda x: x.tobytes(),
    "view": lambda x: memoryview(x.copy()) if x.dtype.kind in "iu" else x,
    "record": lambda x: x.view([("count", x.dtype)]) if x.dtype.kind in "iu" and x.ndim and x.shape[-1] else x,
    "scalar": lambda x: x.ravel()[0] if x.size else x,
}


@st.composite
def twins(draw):
    """Two of one dtype and shape, with any values, wrapped in the same way."""
    dtype, shape = np.dtype(draw(DTYPES)), draw(SHAPES)
    wrapper = WRAPPERS[draw(st.sampled_from(sorted(WRAPPERS)) | st.just("array"))]
    elements = hnp.from_dtype(dtype) if dtype.kind != "O" else st.none() | st.integers() | st.floats() | st.text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is no part of the package
        return [wrapper(draw(hnp.arrays(dtype, shape, elements=elements))) for _ in range(2)]


def right(plan, u):
    """Whether it is of a type and a shape that are released."""
    kinds = "iub" if plan.inputs.missing is None else "iubf"
    if isinstance(u, pd.DataFrame):  # rows are times
        return u.shape[1] == plan.inputs.n_streams and all(
            isinstance(x, np.dtype) and x.kind in kinds for x in u.dtypes
        )
    known = isinstance(u, (np.ndarray, pd.Series)) and not isinstance(u, np.ma.MaskedArray)
    known = known and isinstance(u.dtype, np.dtype) and u.dtype.kind in kinds
    n = plan.inputs.n_streams
    return known and ((u.ndim == 2 and u.shape[0] == n) or (u.ndim == 1 and n == 1))


def x_of(plan, u):
    u = np.asarray(u.T if isinstance(u, pd.DataFrame) else u).reshape(plan.inputs.n_streams, -1)
    return np.array([[integers(value) for value in row] for row in u.tolist()], np.int64).reshape(u.shape)


NO_ARRAY = r"must be an array of numbers, not masked, as numpy.asarray\(u, dtype=numpy.int64\) gives it, got \w+"
NO_DTYPE = (
    r"must be of an integer dtype, or of floats where Inputs\(missing=...\) says what a NaN counts as, got dtype "
)
NO_NUMBERS = (
    r"must hold numbers of a NumPy dtype, as astype\('int64'\) or astype\('float64'\) gives them, got dtype \w+"
)
NO_SHAPE = r"must be of shape \(\d, time\)( or \(time,\))?, got shape \(.*\)"


def outcome(call):
    """What a call returns, and the message of its refusal, without the length that NumPy has in the dtype of a text."""
    try:
        return call(), None
    except ValueError as error:
        return None, re.sub(r"(dtype \S?[SU])\d+", r"\1", str(error))


@pytest.fixture(scope="module", params=PLANS)
def running(request, tmp_path_factory):
    """A stream, and all of its x so far."""
    plan, folder = PLANS[request.param], tmp_path_factory.mktemp("fuzz") / "store"
    with Stream(ReleaseStore.open(folder), plan, NoiseOfLaws((Noted(plan.sigma),))) as stream:
        x = [np.zeros((plan.inputs.n_streams, plan.memory), np.int64)]
        yield stream, plan, x, folder


@settings(max_examples=50)
@given(twins())
@example([np.array([[np.nan], [0.5]]), np.array([[np.inf], [1e308]])])
@example([np.array([[0.25], [-1e300]], np.longdouble) * 10, np.array([[1], ["1e4000"]]).astype(np.longdouble)])
@example([np.array([[2**63 - 1]] * 2), np.array([[-(2**63)]] * 2)])
@example([np.frombuffer(b"\x00\x00\xa0\x7f" * 2, "<f4").reshape(2, 1), np.ones((2, 1), "f4")])  # a signalling NaN
@example([sparse.csr_matrix([[1], [2]])] * 2)
@example([sparse.csr_matrix([[1]])] * 2)
@example([np.bytes_(b""), np.bytes_(b"\x01")])
def test_a_chunk_is_published_or_refused_whatever_its_values(running, pair):
    stream, plan, history, folder = running
    messages = []
    for u in pair:
        position, before = stream.position, content(folder)
        result, message = outcome(lambda u=u: stream.push(u))
        messages.append(message)
        assert (result is not None) is right(plan, u)
        if result is None:
            assert re.match(f"chunk ({NO_ARRAY}|{NO_DTYPE}|{NO_NUMBERS}|{NO_SHAPE})", message)
            assert (stream.position, content(folder)) == (position, before)
        elif result.privatized.size:
            x = x_of(plan, u)
            n = x.shape[1]
            history[:] = [np.concatenate([*history, x], axis=1)[:, -plan.memory - n :]]
            expected = fakes.filtered(history[0], plan.taps)[:, -n:] + stream._noise.sources[0].last.reshape(x.shape)
            assert (result.first, stream.position) == (position, position + n)
            assert result.privatized.tolist() == expected.tolist()
    assert messages[0] == messages[1] or type(pair[0]) is not type(pair[1])  # what arrays of objects hold


@settings(max_examples=30)
@given(st.sampled_from(sorted(PLANS)), twins(), st.integers(0, 2**61))
def test_a_batch_is_published_or_refused_whatever_its_values(tmp_path_factory, name, pair, first):
    plan, messages = PLANS[name], []
    for u in pair:
        folder = tmp_path_factory.mktemp("fuzz") / "store"
        result, message = outcome(lambda u=u, f=folder: dp.release(plan, u, f, first=first))
        messages.append(message)
        assert (result is not None) is right(plan, u) is folder.exists()
        if result is None:
            assert re.match(f"u ({NO_ARRAY}|{NO_DTYPE}|{NO_NUMBERS}|{NO_SHAPE})", message)
            continue
        # what is left is the noise, and that is never so large
        x = x_of(plan, u)
        assert result.privatized.shape == x.shape
        assert (np.abs(result.privatized - fakes.filtered(x, plan.taps)) < 30 * plan.sigma.std).all()
    assert messages[0] == messages[1] or type(pair[0]) is not type(pair[1])  # what arrays of objects hold


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.floats(), st.text(max_size=3), st.binary(max_size=3), st.integers(), st.just(2**62),
    st.integers(-3, 3).map(np.int64), st.just([0]), st.just(np.zeros(1, int)), st.just(np.array(1)), st.just(dp),
)  # fmt: skip


@given(ANYTHING)
def test_any_first_is_the_next_step_or_refused(running, first):
    stream, plan, history, folder = running
    assume(first is not None)
    position, before = stream.position, content(folder)
    u = np.zeros((plan.inputs.n_streams, 1), np.int64)
    result, message = outcome(lambda: stream.push(u, first=first))
    if result is None:
        assert re.match("first must be|steps .* are published, with other inputs", message)
        assert (stream.position, content(folder)) == (position, before)
    else:
        assert isinstance(first, (int, np.integer, np.ndarray))
        assert result.first == int(first) <= position
        if stream.position > position:
            history[:] = [np.concatenate([*history, x_of(plan, u)], axis=1)]


@pytest.mark.parametrize("n", [MAX_BATCH, 10**15, 2**58])
def test_lengths_beyond_the_largest_are_refused_before_anything(running, tmp_path, n):
    stream, plan, _, folder = running
    u = np.broadcast_to(np.int64(7), (plan.inputs.n_streams, n + 1))
    before = content(folder)
    with pytest.raises(ValueError, match=r"at most 50,000,000 samples .* cut them in chunks"):
        stream.push(u)
    with pytest.raises(ValueError, match=r"at most 2,000,000,000 samples .* cut them in chunks"):
        dp.release(plan, u, tmp_path / "store")
    assert content(folder) == before
    assert not (tmp_path / "store").exists()
