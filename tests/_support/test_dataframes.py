"""Signals of pandas and xarray: the numbers are those of the plain arrays, and the labels stay."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers.designs import designed
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.dataframes import unwrap
from dpfast.mechanisms.operators.dense import Dense

FILTER = dp.Filter([1, 0.5], [1, -0.5])
N = 60
X = np.random.default_rng(1).poisson(2, (2, N))
FROM = "2026-01-01"
TIMES = pd.date_range(FROM, periods=N, freq="5min", name="when")
SECRET = 8675309


def mechanism():
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    return designed(dp.lmmse, FILTER, dp.Privacy(2, 1e-6), model, lag=2, tolerance=0.01)


def frame(x):
    found = pd.DataFrame(x.T, index=TIMES[: x.shape[1]], columns=pd.Index(["north", "south"], name="place"))
    found.attrs = {"unit": "events"}
    return found


def series(x):
    found = pd.Series(x[0], index=TIMES[: x.shape[1]], name="north")
    found.attrs = {"unit": "events"}
    return found


def cube(x):
    """Time in the middle, streams about it."""
    coords = {"time": TIMES[: x.shape[1]].to_numpy(), "place": ["north", "south"], "height": ("place", [3.0, 4.0])}
    attrs = {"unit": "events"}
    return xr.DataArray(x[:, :, None], dims=("place", "time", "day"), coords=coords, attrs=attrs, name="counts")


def plain(u):
    """The array (..., time), by other means than those of the package."""
    if isinstance(u, xr.DataArray):
        return np.moveaxis(u.to_numpy(), 1, -1)
    return u.to_numpy().T


KINDS = {"frame": frame, "series": series, "cube": cube}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def check(found, u, expected):
    """Of the kind of u with all its labels, and with these numbers."""
    assert type(found) is type(u)
    np.testing.assert_array_equal(plain(found), expected)
    assert found.attrs == u.attrs
    if isinstance(u, xr.DataArray):
        xr.testing.assert_identical(found, u.copy(data=found.to_numpy()))
        return
    pd.testing.assert_index_equal(found.index, u.index)
    assert getattr(found.index, "freq", None) == getattr(u.index, "freq", None)
    if isinstance(u, pd.DataFrame):
        pd.testing.assert_index_equal(found.columns, u.columns)
    else:
        assert found.name == u.name


# --- public functions -----------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_filter_keeps_labels(kind, dtype):
    u = kind(X)
    y, zf = FILTER.filter(u, dtype=dtype)
    expected = FILTER.filter(plain(u), dtype=dtype)
    check(y, u, expected.y)
    np.testing.assert_array_equal(zf, expected.zf)
    assert y.to_numpy().dtype == dtype


@every_kind
def test_filter_goes_on_from_a_state_and_takes_no_out(kind):
    u = kind(X)
    first, second = (u.isel(time=slice(a, b)) if isinstance(u, xr.DataArray) else u[a:b] for a, b in [(0, 20), (20, N)])
    one = FILTER.filter(first)
    two = FILTER.filter(second, one.zf)
    check(two.y, second, FILTER.filter(plain(u)).y[..., 20:])
    with pytest.raises(ValueError, match=r"out must be None where x has labels, as a (Series|DataFrame|DataArray) has"):
        FILTER.filter(u, out=np.empty(plain(u).shape))


@every_kind
def test_simulate_keeps_labels(kind):
    u = kind(X)
    paths, expected = (mechanism().simulate(x, seed=3) for x in (u, plain(u)))
    check(paths.privatized, u, expected.privatized)
    check(paths.estimate, u, expected.estimate)
    assert (paths.decisions, paths.lag) == (None, 2)


def test_simulate_keeps_labels_of_decisions():
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
    mechanism = dp.decision_feedback(FILTER, dp.Privacy(2, 1e-3), chain, lag=1)
    u = frame(X / 2)
    check(mechanism.simulate(u, seed=3).decisions, u, mechanism.simulate(plain(u), seed=3).decisions)


@every_kind
def test_matrix_mechanisms_and_their_targets_keep_labels(kind):
    target = dp.running_sum(N)
    one_of_two = Dense(np.eye(N)[::2])
    mechanism = dp.MatrixMechanism(
        "half", target, dp.Privacy(2, 1e-6), one_of_two, Dense(np.eye(N)[:, ::2]), unbiased=False
    )
    u = kind(X)
    paths, expected = (mechanism.simulate(x, seed=3) for x in (u, plain(u)))
    check(paths.estimate, u, expected.estimate)
    np.testing.assert_array_equal(paths.privatized, expected.privatized)
    check(target.apply(u), u, target.apply(plain(u)))
    with pytest.raises(ValueError, match="u must be equally spaced"):
        mechanism.simulate(pd.Series(range(N), TIMES[:-1].append(TIMES[-1:] + pd.Timedelta("1s"))), seed=1)


def test_a_fit_does_not_depend_on_the_kind():
    for u in (frame(X), series(X), cube(X)[..., 0], cube(X)[..., 0].T):
        x = np.atleast_2d(plain(u) if u.ndim == 1 or not isinstance(u, xr.DataArray) else u.transpose(..., "time"))
        ours, expected = dp.ARMA.fit(u, 2), dp.ARMA.fit(x, 2)
        assert (ours.shaping, ours.mean) == (expected.shaping, expected.mean)


@pytest.mark.parametrize("kind", [frame, series], ids=["frame", "series"])
def test_adapting_and_its_estimates_keep_labels(kind):
    x = mechanism().model.sample(2, 600, seed=1)
    n = pd.RangeIndex(600)
    u = kind(x[:, :N]).reset_index(drop=True).reindex(n)
    u[:] = x.T if u.ndim == 2 else x[0]
    v = mechanism().simulate(u, seed=2).privatized
    ours, expected = dp.adapt(mechanism(), v), dp.adapt(mechanism(), plain(v))
    assert str(ours) == str(expected)
    check(ours.estimate(v), v, expected.estimate(plain(v)))


@pytest.fixture(scope="module")
def plans():
    return {n: dp.exact(mechanism(), dp.Inputs(0, 9, centre=2, n_streams=n)) for n in (1, 2)}


@pytest.mark.parametrize("kind", [frame, series, lambda x: cube(x)[..., 0]], ids=KINDS)
def test_a_release_keeps_labels_but_no_attributes(kind, plans, tmp_path):
    u = kind(X)
    result = dp.release(plans[min(u.ndim, 2)], u, tmp_path / "store")
    n_streams = 1 if u.ndim == 1 else 2
    assert result.privatized.shape == (n_streams, N + 2)
    assert type(result.privatized) is np.ndarray
    assert result.estimate.attrs == {}
    assert u.attrs == {"unit": "events"}
    u.attrs = {}
    of_v = plans[n_streams].estimate(result.privatized)[:, 2:]
    check(result.estimate, u, of_v[0] if u.ndim == 1 else of_v)
    assert repr(result).startswith(f"<Release of {N} steps from 0, {n_streams} streams: epsilon 2")


def test_a_release_of_labels_has_the_inputs_of_the_plain_array(plans, tmp_path):
    assert np.array_equal(plans[2].inputs.integers(frame(X)), plans[2].inputs.integers(X))
    assert np.array_equal(plans[2].inputs.integers(cube(X)[..., 0].T), plans[2].inputs.integers(X))
    with dp.open_stream(plans[2], tmp_path / "live") as stream:
        assert stream.push(frame(X)[:5]).privatized.shape == (2, 5)
        stream.push(X[:, 2:5], first=2)  # refused if the inputs were others
        with pytest.raises(ValueError, match=r"chunk must be of shape \(2, time\), got shape \(5, 2\): transpose it"):
            stream.push(X[:, :5].T)


def test_a_release_refuses_floats_by_their_type(plans, tmp_path):
    u = frame(X).astype({"south": float})
    with pytest.raises(ValueError, match=r"u must be of an integer dtype, or of floats where .* got dtype float64"):
        dp.release(plans[2], u, tmp_path / "store")
    assert not (tmp_path / "store").exists()


# --- any signal -----------------------------------------------------------------------------------

DTYPES = [np.int8, np.uint64, np.float32, np.float64, np.bool_]


@given(st.integers(0, 4), st.integers(0, 5), st.lists(st.sampled_from(DTYPES), min_size=5, max_size=5), st.data())
def test_a_frame_of_any_size_comes_back(n_samples, n_streams, dtypes, data):
    index = data.draw(st.lists(st.sampled_from(["a", 1, None, 2.5]), min_size=n_samples, max_size=n_samples))
    columns = data.draw(st.lists(st.sampled_from(["a", 1]), min_size=n_streams, max_size=n_streams))
    parts = [pd.Series(np.arange(n_samples).astype(x), index=index) for x in dtypes[:n_streams]]
    u = pd.concat(parts, axis=1) if parts else pd.DataFrame(index=index)
    u.columns = columns
    x, wrap = unwrap("u", u)
    assert x.shape == (n_streams, n_samples)
    assert x.dtype == np.result_type(*dtypes[:n_streams], *[np.float64] * (n_streams == 0))
    found = wrap(x)
    assert found.index.equals(u.index)
    assert found.columns.equals(u.columns)
    assert (found.to_numpy() == u.to_numpy()).all()


@given(st.permutations(["time", "a", "b"]), st.integers(0, 3))
def test_an_array_with_any_order_of_dimensions_comes_back(dims, n):
    sizes = {"time": n, "a": 2, "b": 3}
    u = xr.DataArray(np.arange(6 * n).reshape([sizes[x] for x in dims]), dims=dims)
    x, wrap = unwrap("u", u)
    assert x.shape[-1] == n
    xr.testing.assert_identical(wrap(x), u)
    xr.testing.assert_identical(wrap(2 * x), 2 * u)


@pytest.mark.parametrize("u", [X, X.tolist(), (1, 2), 3, None, np.ma.array([1, 2]), pd.Index([1, 2])], ids=type)
def test_everything_else_is_left_as_it_is(u):
    x, wrap = unwrap("u", u)
    assert x is u
    assert wrap(X) is X


def test_the_encoding_of_a_file_is_not_that_of_the_result():
    u = cube(X)
    u.encoding = {"dtype": "int16", "scale_factor": 10.0}
    assert FILTER.filter(u).y.encoding == {}


# --- times ----------------------------------------------------------------------------------------


def days(*numbers):
    return pd.DatetimeIndex([pd.Timestamp(FROM) + pd.Timedelta(days=x) for x in numbers])


REGULAR = {
    "one": days(0),
    "none": days(),
    "days": days(0, 1, 2),
    "every other": days(*range(6))[::2],
    "with a frequency": pd.date_range(FROM, periods=3, freq="MS"),
    "across the change to summer time": pd.date_range("2026-03-28", periods=3, freq="D", tz="Europe/Vienna"),
    "rounded to nanoseconds": pd.date_range(FROM, periods=30, freq="1s")[:1].append(
        pd.DatetimeIndex([pd.Timestamp(FROM) + pd.Timedelta(round(x * 1e9 / 44_100)) for x in range(1, 30)])
    ),
    "lengths of time": pd.timedelta_range(0, periods=3, freq="3s"),
    "months": pd.period_range("2026-01", periods=3, freq="M"),
    "dates": pd.Index([datetime.date(2026, 1, x) for x in (1, 2, 3)]),
    "numbers": pd.Index([5, 5, 1]),
    "words": pd.Index(["c", "c", "a"]),
    "mixed": pd.Index(["c", 1, None], dtype=object),
}
IRREGULAR = {
    "a gap": days(0, 1, 3),
    "twice": days(0, 0, 0),
    "backwards": days(2, 1, 0),
    "backwards with a frequency": pd.date_range(FROM, periods=3, freq="-1D"),
    "jitter": days(0, 1, 2.002),
    "missing": pd.DatetimeIndex([FROM, None, "2026-01-03"]),
    "months without a frequency": pd.DatetimeIndex(["2026-01-01", "2026-02-01", "2026-03-01"]),
    "lengths of time": pd.to_timedelta([0, 1, 3], unit="s"),
    "months": pd.PeriodIndex(["2026-01", "2026-02", "2026-04"], freq="M"),
    "missing months": pd.PeriodIndex(["2026-01", None, "2026-03"], freq="M"),
    "dates": pd.Index([datetime.date(2026, 1, x) for x in (1, 2, 5)]),
    "dates backwards": pd.Index([datetime.date(2026, 1, x) for x in (3, 2, 1)]),
    "a date missing": pd.Index([datetime.date(2026, 1, 1), None, datetime.date(2026, 1, 3)], dtype=object),
}


@pytest.mark.parametrize("index", REGULAR.values(), ids=REGULAR)
def test_equal_steps_in_time_are_taken(index):
    x, _ = unwrap("u", pd.Series(np.arange(len(index)), index=index))
    assert x.tolist() == list(range(len(index)))


@pytest.mark.parametrize("index", IRREGULAR.values(), ids=IRREGULAR)
@pytest.mark.parametrize("kind", ["Series", "DataFrame"])
def test_unequal_steps_in_time_are_refused_with_what_to_do(index, kind):
    u = pd.Series(SECRET, index=index)
    with pytest.raises(ValueError, match=r"u must be equally spaced and increasing in time.*resample.*asfreq") as error:
        unwrap("u", u if kind == "Series" else u.to_frame())
    assert str(SECRET) not in str(error.value)
    assert "2026" not in str(error.value)


def test_coordinates_of_time_are_looked_at():
    u = cube(X)
    with pytest.raises(ValueError, match="x must be equally spaced"):
        FILTER.filter(u[:, [0, 1, 3]])
    assert FILTER.filter(u.drop_vars("time")[:, [0, 1, 3]]).y.shape == (2, 3, 1)
    assert FILTER.filter(u[:, [0, 2, 4]]).y.shape == (2, 3, 1)


# --- refused --------------------------------------------------------------------------------------

OTHER_COLUMNS = {
    "text": pd.Series(["8675309", "b", "c"]),
    "nullable": pd.Series([SECRET, 2, 3], dtype="Int64"),
    "times": pd.Series(days(0, 1, 2)),
    "objects": pd.Series([SECRET, None, 3], dtype=object),
    "complex": pd.Series([1j * SECRET, 2, 3]),
    "categories": pd.Series([SECRET, 2, 3]).astype("category"),
}


@pytest.mark.parametrize("column", OTHER_COLUMNS.values(), ids=OTHER_COLUMNS)
def test_columns_that_are_no_numbers_are_named(column):
    message = r"u must hold numbers of a NumPy dtype, as astype.* gives them, got dtype \w+"
    with pytest.raises(ValueError, match=f"^{message}.* in the column 'bad'$") as error:
        mechanism().simulate(pd.DataFrame({"good": [1, 2, 3], "bad": column}), seed=1)
    assert str(SECRET) not in str(error.value)
    with pytest.raises(ValueError, match=f"^{message}"):
        mechanism().simulate(column, seed=1)


@pytest.mark.parametrize(
    ("u", "message"),
    [
        (frame(X).unstack(), "u must have one level of labels in time, got 2: unstack"),
        (cube(X).rename(time="t"), r"u must have the dimension 'time', got \('place', 't', 'day'\): u.rename"),
        (cube(X).to_dataset(), "u must be an array or a DataArray, such as one variable of it, got .*Dataset"),
        (frame(X) * np.nan, "u must be finite, got 120 NaN or infinite values"),
        (cube(X) * np.nan, "u must be finite, got 120 NaN or infinite values"),
        (xr.DataArray(["a", "b"], dims="time"), "u must hold real numbers, got dtype <U1"),
    ],
)
def test_what_is_no_signal_is_refused(u, message):
    with pytest.raises(ValueError, match=message):
        mechanism().simulate(u, seed=1)


# --- without the packages -------------------------------------------------------------------------


def test_neither_package_is_imported_nor_needed():
    command = (
        "import sys, dpfast.signals.events.historical_counts; assert not {'pandas', 'xarray'} & {*sys.modules}\n"
        "sys.modules['pandas'] = sys.modules['xarray'] = None; import dpfast\n"
        "print(dpfast.Filter([1]).filter([1, 2]).y)"
    )
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert result.stdout == "[1. 2.]\n"
