"""Signals with labels: pandas Series and DataFrames, xarray DataArrays. In as arrays (..., time), out as they came.

Neither package is imported: an object of theirs is there only where somebody has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation

Wrap = Callable[[NDArray[Any]], Any]
TIME = "time"  # the dimension of a DataArray
_NUMBERS = "biuf"  # kinds of dtypes
_JITTER = 1e-3  # steps by which steps in time may differ: stamps are rounded


def unwrap(name: str, u: Any) -> tuple[Any, Wrap]:
    """Return the array (..., time) of a signal, and what puts its labels onto results of the same shape.

    The rows of a DataFrame are times, its columns streams; the dimension "time" of a DataArray is time. All else is
    given back as it is, and so are its results.

    Parameters
    ----------
    name : str
        Of the argument.
    u : array_like, Series, DataFrame or DataArray

    Raises
    ------
    ValueError
        For labels of time that are not equally spaced, which a filter would take as if they were; for columns that are
        not of a numeric NumPy dtype; for a DataArray without the dimension "time", and a Dataset.

    Notes
    -----
    *Privacy.* What is refused, and what an error says, depends on labels, dtypes and shapes alone, never on values.

    Examples
    --------
    >>> import pandas
    >>> x, wrap = unwrap("u", pandas.DataFrame({"north": [1, 2, 3], "south": [4, 5, 6]}))
    >>> x
    array([[1, 2, 3],
           [4, 5, 6]])
    >>> wrap(x + 0.5)
       north  south
    0    1.5    4.5
    1    2.5    5.5
    2    3.5    6.5
    """
    if isinstance(u, np.ndarray):
        return u, _keep_bare
    if is_of_class(u, "pandas", "Series"):
        return _unwrap_series(name, u)
    if is_of_class(u, "pandas", "DataFrame"):
        return _unwrap_frame(name, u)
    if is_of_class(u, "xarray", "DataArray"):
        return _unwrap_data_array(name, u)
    if is_of_class(u, "xarray", "Dataset"):
        raise validation.fail(name, "an array or a DataArray, such as one variable of it", type(u))
    return u, _keep_bare


def axis_labels(u: Any) -> tuple[NDArray[Any] | None, list[str] | None]:
    """Return the times of a signal and the names of its streams, for pictures; None where it has none.

    Times are dates, durations or numbers; those of a time zone are local there, and periods begin.

    Examples
    --------
    >>> import pandas
    >>> times, names = axis_labels(pandas.DataFrame({"north": [1, 2]}, index=pandas.period_range("2024", periods=2)))
    >>> times.astype("datetime64[D]").tolist(), names
    ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], ['north'])
    """
    if is_of_class(u, "pandas", "Series"):
        return _plain_times(u.index), None if u.name is None else [str(u.name)]
    if is_of_class(u, "pandas", "DataFrame"):
        return _plain_times(u.index), [str(x) for x in u.columns]
    if is_of_class(u, "xarray", "DataArray"):
        return _plain_times(u.indexes[TIME]) if TIME in u.indexes else None, None
    return None, None


def _plain_times(index: Any) -> NDArray[Any] | None:
    if is_of_class(index, "pandas", "PeriodIndex"):
        index = index.to_timestamp()
    if is_of_class(index, "pandas", "DatetimeIndex"):
        index = index.tz_localize(None)
    times: NDArray[Any] = index.to_numpy()
    return times if times.dtype.kind in "Mmiuf" else None


def _keep_bare(x: NDArray[Any]) -> NDArray[Any]:
    return x


def is_of_class(u: Any, package: str, kind: str) -> bool:
    """Tell whether u is of a class of a package, if that was imported at all."""
    found = getattr(sys.modules.get(package), kind, None)
    return found is not None and isinstance(u, found)


def _unwrap_series(name: str, u: Any) -> tuple[Any, Wrap]:
    _check_dtype(name, u.dtype)
    _check_times(name, u.index)

    def wrap(x: NDArray[Any]) -> Any:
        return _copy_attributes(sys.modules["pandas"].Series(x, index=u.index, name=u.name), u)

    return u.to_numpy(), wrap


def _unwrap_frame(name: str, u: Any) -> tuple[Any, Wrap]:
    for column, dtype in u.dtypes.items():
        _check_dtype(name, dtype, f" in the column {column!r}")
    _check_times(name, u.index)

    def wrap(x: NDArray[Any]) -> Any:
        return _copy_attributes(sys.modules["pandas"].DataFrame(x.T, index=u.index, columns=u.columns), u)

    return u.to_numpy(np.result_type(*u.dtypes) if len(u.columns) else np.float64).T, wrap


def _copy_attributes(result: Any, u: Any) -> Any:
    result.attrs = dict(u.attrs)
    return result


def _unwrap_data_array(name: str, u: Any) -> tuple[Any, Wrap]:
    if TIME not in u.dims:
        raise ValueError(f"{name} must have the dimension {TIME!r}, got {tuple(u.dims)}: u.rename gives another name")
    if TIME in u.indexes:
        _check_times(name, u.indexes[TIME])
    time_last = u.transpose(..., TIME)

    def wrap(x: NDArray[Any]) -> Any:
        result = time_last.copy(deep=False, data=x).transpose(*u.dims)
        result.encoding = {}  # of the file that u came from, such as integers that it was rounded to
        return result

    return time_last.to_numpy(), wrap


def _check_dtype(name: str, dtype: Any, where: str = "") -> None:
    """Refuse all but plain dtypes: of those that may hold missing values, the array depends on the values."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in _NUMBERS:
        must = f"{name} must hold numbers of a NumPy dtype, as astype('int64') or astype('float64') gives them"
        raise ValueError(f"{must}, got dtype {dtype}{where}")


def _check_times(name: str, index: Any) -> None:
    """Refuse several levels of labels, and times without equal steps forward; other labels are not looked at."""
    if index.nlevels > 1:
        raise ValueError(f"{name} must have one level of labels in time, got {index.nlevels}: unstack the others")
    if not _is_regular(index):
        raise ValueError(
            f"{name} must be equally spaced and increasing in time, as a filter takes it to be, got an index of times "
            "that is not: resample it, as by resample('5min').sum() or .mean(); where it is regular on a calendar, say "
            "so by asfreq or to_period; or replace its times by numbers"
        )


def _is_regular(index: Any) -> bool:
    """Tell whether times are equally spaced, or on a calendar that pandas knows; true of what are no times."""
    is_time = any(is_of_class(index, "pandas", kind) for kind in ("DatetimeIndex", "TimedeltaIndex"))
    if is_time and index.freq is not None:
        return bool(index.is_monotonic_increasing)
    if is_time or is_of_class(index, "pandas", "PeriodIndex"):
        return not index.hasnans and _are_equal(np.diff(index.astype("int64").to_numpy()))
    values = index.to_numpy() if index.dtype == object else []
    if not any(hasattr(x, "timetuple") for x in values):  # dates of Python, and of other calendars
        return True
    try:
        return _are_equal(np.diff(values))
    except TypeError:  # something else among them
        return False


def _are_equal(steps: NDArray[Any]) -> bool:
    """Tell whether steps are all forward and the same, but for rounding."""
    if len(steps) == 0:
        return True
    least, most = steps.min(), steps.max()
    return bool(least > 0 * least and most - least <= _JITTER * least)
