"""Tables as Parquet files: types, what is not there, labels of two kinds, metadata."""

import dataclasses
import io
import json
import sys

import pandas
import pytest
from helpers.sweeps import GRID, run
from pyarrow import parquet as reader

import dpfast as dp
from dpfast import DataError, __version__
from dpfast._support.errors import MissingExtraError
from dpfast._support.text_table import Table
from dpfast.simulation.sweep.tables import build_frame, label_text, parquet_bytes, winners_table


def back(columns, *rows, about=None):
    return reader.read_table(io.BytesIO(parquet_bytes(Table(columns, rows), about or {})))


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        ([1, 2], [1, 2], "int64"),
        ([1, None], [1, None], "int64"),
        ([1, 0.5], [1.0, 0.5], "double"),
        ([None, 0.5], [None, 0.5], "double"),
        ([1, "soft"], ["1", "soft"], "string"),
        ([0.25, None, "soft"], ["0.25", None, "soft"], "string"),
        (["", "µ"], ["", "µ"], "string"),
        ([None, None], [None, None], "null"),
    ],
)
def test_a_column_has_one_type(values, expected, kind):
    table = back(("a", "b"), *((x, 7) for x in values))
    assert table.column("a").to_pylist() == expected
    assert [type(x) for x in table.column("a").to_pylist()] == [type(x) for x in expected]
    assert str(table.schema.field("a").type) == kind
    assert table.column("b").to_pylist() == [7] * len(values)


def test_floats_keep_their_bits():
    values = [0.1, 1 / 3, 5e-324, float("inf")]
    assert back(("x",), *((x,) for x in values)).column("x").to_pylist() == values


def test_a_table_without_rows_has_its_columns():
    assert back(("a", "b")).column_names == ["a", "b"]


def test_metadata():
    assert json.loads(back(("a",), (1,), about={"x": "y"}).schema.metadata[b"dpfast"]) == {"x": "y"}


def test_a_sweep_as_a_file(tmp_path):
    found = run(GRID | {"mechanism": [*GRID["mechanism"], "lmmse"], "lag": [0, None], "model": "levels:0,1@0.75,0.25"})
    file = tmp_path / "new" / "folder" / "sweep.parquet"
    found.to_parquet(file)
    about = json.loads(reader.read_schema(file).metadata[b"dpfast"])
    assert about == {"sweep": found.digest, "dpfast": __version__}
    again, kinds = pandas.read_parquet(file), {x.name: str(x.type) for x in reader.read_schema(file)}
    pandas.testing.assert_frame_equal(again, found.to_pandas(), check_dtype=False)
    assert (str(again["lag"].dtype), str(again["smoother"].dtype)) == ("Int64", "boolean")
    assert (kinds["lag"], kinds["smoother"], kinds["n_streams"], kinds["rmse"]) == ("int64", "bool", "int64", "double")
    empty = found.where(mechanism="lmmse", lag=0).where(lag=0, epsilon=2)
    empty.to_parquet(file)
    assert pandas.read_parquet(file)["mechanism"].tolist() == ["lmmse", "constant"]


@pytest.mark.parametrize(
    ("lags", "integers", "smoothers", "kinds"),
    [
        ([0, 5, "smoother", None], [0, 5, None, None], [False, False, True, None], ("Int64", "boolean")),
        (["smoother", "smoother"], [None, None], [True, True], ("Int64", "boolean")),
        ([0, 5], [0, 5], [False, False], ("Int64", "boolean")),
        ([None, None], [None, None], [None, None], ("Int64", "boolean")),
    ],
)
def test_lags_are_integers_and_the_smoother_is_told_from_what_has_none(lags, integers, smoothers, kinds):
    table = Table(("lag", "x"), tuple((x, 0.5) for x in lags))
    typed = build_frame(table)
    assert list(typed.columns) == ["lag", "smoother", "x"]
    assert (str(typed["lag"].dtype), str(typed["smoother"].dtype)) == kinds
    for found in (typed, reader.read_table(io.BytesIO(parquet_bytes(table, {}))).to_pandas()):
        assert [None if pandas.isna(x) else int(x) for x in found["lag"]] == integers
        assert [None if pandas.isna(x) else bool(x) for x in found["smoother"]] == smoothers


def test_what_somebody_calls_lags_stays():
    typed = build_frame(Table(("lag",), ((0,), ("late",), ("smoother",))))
    assert list(typed.columns) == ["lag"]
    assert list(typed["lag"]) == ["0", "late", "smoother"]


def test_a_value_that_is_not_taken_is_shown_as_the_others():
    row = dataclasses.replace(run(budget=1).rows[0], settings={})
    assert [label_text("epsilon", x, row) for x in (5, 5.0, 0.5, "soft", None)] == [
        "(5)",
        "(5)",
        "(0.5)",
        "(soft)",
        None,
    ]


def test_a_file_that_cannot_be_written(tmp_path):
    found = run(budget=1)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot write to the folder"):
        found.to_parquet(tmp_path / "folder")
    with pytest.raises(ValueError, match="path must be"):
        found.to_parquet(3)


def test_no_pyarrow_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[parquet\]'"):
        parquet_bytes(Table(("a",), ((1,),)), {})


def test_the_nearest_is_compared_on_the_streams_of_both():
    found = dp.sweep(
        {
            "mechanism": ["zero_forcing", "lmmse"],
            "target": "exponential:0.9",
            "model": "levels:0,1@0.75,0.25",
            "epsilon": [0.5, 2],
            "delta": 1e-6,
            "lag": 5,
        },
        seed=1,
        n_samples=200,
        width=0.02,
        decide="mechanism",
    )
    assert len({x.n_streams for x in found}) > 1
    cells = found.winners()
    shown = [row[-2] for row in winners_table(cells).rows]
    assert shown == pytest.approx([found.compare(x.second, x.best).rmse_ratio for x in cells], rel=1e-12)
    assert shown != pytest.approx([x.second.rmse / x.best.rmse for x in cells], rel=1e-12)
    table = winners_table(cells)
    errors = [row[table.columns.index("constant's RMSE")] for row in table.rows]
    # of white inputs 0 and 1 with the variance 3/16 behind 0.1/(1 - 0.9 z⁻¹)
    assert errors == pytest.approx([(3 / 16 * 0.01 / (1 - 0.81)) ** 0.5] * 2, rel=1e-9)
