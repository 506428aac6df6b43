"""Rows and columns of files of estimates."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.csv_cells import csv_lines, round_to_error
from dpfast._support.errors import MissingExtraError
from dpfast.releases.estimates_layout import COLUMNS, HEADER, Layout
from dpfast.signals.events.declared_span import Span

HOURS = Span.parse("2013-01-01", "2013-01-01T03:00", "1h")

LAYOUT = Layout(HOURS, ("b", "a, c"), 0.5)

ESTIMATE = np.array([[0.1, -2.0, 1e-17], [3.0, np.pi, 1e300]])


TEXT = (
    "time,group,estimate,predicted_rmse_if_model_holds\n"
    '2013-01-01T00:00:00,b,0.1,0.5\n2013-01-01T00:00:00,"a, c",3.0,0.5\n'
    '2013-01-01T01:00:00,b,-2.0,0.5\n2013-01-01T01:00:00,"a, c",3.142,0.5\n'
    '2013-01-01T02:00:00,b,0.0,0.5\n2013-01-01T02:00:00,"a, c",1e+300,0.5\n'
)


def test_lines_are_bin_by_bin_in_the_declared_order():
    assert HEADER + LAYOUT.csv(0, ESTIMATE) == TEXT
    assert LAYOUT.csv(1, ESTIMATE[:, 1:2]) == "".join(TEXT.splitlines(keepends=True)[3:5])


@pytest.mark.parametrize(
    ("span", "time"),
    [
        (("2013-01-01T00:00Z", "2013-01-01T01:00Z", "1h"), "2013-01-01T00:00:00Z"),
        (("2013-01-01T00:00+01:00", "2013-01-01T01:00+01:00", "1h"), "2012-12-31T23:00:00Z"),
        (("2013-01-01", "2013-01-01T01:00", "0.5h"), "2013-01-01T00:00:00"),
        (("2013-01-01T00:00:00.5", "2013-01-01T00:00:01.5", "1s"), "2013-01-01T00:00:00.500000"),
        (("2013-01-01", "2013-01-01T00:00:01", "1ms"), "2013-01-01T00:00:00.000000"),
    ],
)
def test_times_are_as_exact_as_the_declared_bins(span, time):
    layout = Layout(Span.parse(*span), ("all",), None)
    assert layout.csv(0, np.zeros((1, 1))) == f"{time},all,0.0,\n"


def test_numbers_come_back_to_the_last_bit_where_no_error_is_known():
    estimate = np.random.default_rng(1).standard_normal((2, 3)) * 1e-5
    layout = Layout(HOURS, LAYOUT.groups, None)
    rows = list(csv.DictReader((HEADER + layout.csv(0, estimate)).splitlines()))
    np.testing.assert_array_equal([float(row["estimate"]) for row in rows], estimate.T.ravel())


@pytest.mark.parametrize("utc", [True, False])
@pytest.mark.parametrize("error", [0.25, None])
def test_parquet_holds_the_same(tmp_path, utc, error):
    from pyarrow import parquet

    layout = Layout(Span(HOURS.start, HOURS.period, 3, utc), LAYOUT.groups, error)
    (tmp_path / "estimates.parquet").write_bytes(layout.parquet(ESTIMATE))
    table = parquet.read_table(tmp_path / "estimates.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert table.schema.field("time").type.tz == ("UTC" if utc else None)
    columns = table.to_pydict()
    assert columns["group"] == ["b", "a, c"] * 3
    assert columns["estimate"] == ESTIMATE.T.ravel().tolist()
    assert columns["predicted_rmse_if_model_holds"] == [error] * 6
    assert [time.hour for time in columns["time"]] == [0, 0, 1, 1, 2, 2]


def test_pyarrow_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[parquet\]'"):
        LAYOUT.parquet(ESTIMATE)
    subprocess.run(
        [sys.executable, "-c", "import sys, dpfast.releases.estimates_layout; sys.exit('pyarrow' in sys.modules)"],
        check=True,
    )


@given(groups=st.lists(st.text(min_size=1), min_size=1, max_size=4), error=st.none() | st.floats(1e-9, 1e9))
def test_cells_are_those_of_one_row_after_the_other(groups, error):
    """Names that a spreadsheet would compute, with quotes, commas and ends of lines."""
    layout = Layout(HOURS, tuple(groups), error)
    estimate = np.random.default_rng(1).standard_normal((len(groups), 3)) * 100
    estimate[0, 0] = np.nan
    values = iter(round_to_error(estimate.T.ravel().tolist(), error))
    shown = "" if error is None else f"{error:.6g}"
    expected = [(time, group, next(values), shown) for time in layout.edges(0, 3) for group in groups]
    assert layout.csv(0, estimate) == csv_lines(expected)
