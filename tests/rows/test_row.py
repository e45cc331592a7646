"""Rows and their columns: Arrow's own conversion is the oracle."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl
from tensorlake_spark.rows.metadata import meta_batch
from tensorlake_spark.rows.row import (
    SCHEMA,
    Row,
    Totals,
    block_of,
    bools,
    checked,
    corners,
    data_batch,
    data_table,
    in_order,
    is_data,
    is_text,
    numbers,
)
from tensorlake_spark.tensor.spec import TensorSpec

INTEGERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)


@given(INTEGERS, st.integers(0, 20), st.sampled_from([pa.int64(), pa.int32(), pa.float64()]))
def test_numbers_are_what_arrow_converts(values, first, kind):
    if kind == pa.int32():
        values = [v if v is None else v >> 32 for v in values]
    if kind == pa.float64():
        values = [v if v is None else float(v) for v in values]
    column = pa.array(values, kind).slice(min(first, len(values)))
    want = column.to_numpy(zero_copy_only=False)
    found = numbers(column)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def test_numbers_are_a_view_of_the_column():
    column = pa.array([7, 8, 9]).slice(1)
    assert numbers(column).ctypes.data == column.buffers()[1].address + 8


@given(st.lists(st.none() | st.sampled_from(["a", "ab", "", "é"])), st.integers(0, 5), st.text())
def test_is_text_is_what_arrow_compares(values, first, text):
    column = pa.array(values, pa.string()).slice(min(first, len(values)))
    for wanted in ("a", "é", text):
        assert is_text(column, wanted).to_pylist() == [v == wanted for v in column.to_pylist()]


@given(st.lists(st.booleans()))
def test_bools_are_a_mask(mask):
    assert bools(np.array(mask, bool)).to_pylist() == mask


FLAT = TensorSpec("x", (5, 6), np.dtype("i4"), "ftsf", (2, 3))
SPARSE = TensorSpec("y", (9,), np.dtype("f4"), "coo", ())
DEEP = TensorSpec("z", (2,) * 9, np.dtype("i4"), "csr", ())
SPECS = [FLAT, SPARSE, DEEP]
ROWS = [
    Row((0, 0), (2, 3), 6, "raw", b"values"),
    Row((0,), (9,), 2, "raw", b"values", b"index"),
    Row((0,) * 9, (2,) * 9, 1, "raw", b"values", b"index", '{"axes":[1]}'),
]


def test_rows_of_several_tensors_are_those_of_each():
    """Their ranks, layouts and dtypes differ; a row that has its checksum keeps it."""
    of_each = [data_batch(spec, [k], [ROWS[k]]) for k, spec in enumerate(SPECS)]
    rows = [*checked(FLAT, ROWS[:1]), *ROWS[1:]]
    assert data_table(SPECS, [0, 1, 2], rows).equals(pa.Table.from_batches(of_each))


@pytest.mark.parametrize(("spec", "row"), [*zip(SPECS, ROWS, strict=True)])
def test_corners_are_those_of_the_row(spec, row):
    lo, hi = corners(data_batch(spec, [0], [row]), spec.ndim)
    assert (tuple(lo[0]), tuple(hi[0])) == (row.lo, row.hi)


def test_axes_without_columns_are_in_params_beside_what_the_layout_needs():
    (params,) = data_batch(DEEP, [0], ROWS[2:])["params"].to_pylist()
    assert json.loads(params) == {"axes": [1], "lo": [0], "hi": [2]}


def test_a_row_without_a_corner_is_damaged():
    with pytest.raises(tl.CorruptDataError, match=r"1 rows have no lo\.d1"):
        corners(data_batch(SPARSE, [0], ROWS[1:2]), 2)


@pytest.mark.parametrize("params", [None, "{", "{}", '{"lo":[0]}', '{"lo":[0],"hi":[1,2]}'])
def test_a_row_whose_params_lack_a_corner_is_damaged(params):
    batch = data_batch(DEEP, [0], ROWS[2:])
    place = SCHEMA.get_field_index("params")
    with pytest.raises(tl.CorruptDataError, match="row 0 does not say where its box lies"):
        corners(batch.set_column(place, SCHEMA.field(place), pa.array([params], pa.string())), 9)


def test_only_a_layout_without_blocks_has_a_null_for_them():
    scalar = replace(FLAT, shape=(), block_shape=(), segments=())
    assert [block_of(spec) for spec in (FLAT, SPARSE, scalar)] == [(2, 3), None, ()]


def test_a_metadata_row_is_no_data():
    rows = pa.Table.from_batches(
        [
            data_batch(FLAT, [0], ROWS[:1]),
            meta_batch([FLAT], [1], [Totals()]),
            data_batch(SPARSE, [0], ROWS[1:2]),
        ]
    )
    assert is_data(rows, "x").to_pylist() == [True, False, False]
    assert is_data(rows, "x", "y").to_pylist() == [True, False, True]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=4))
def test_rows_in_order_are_sorted_by_tensor_and_place(places):
    columns = [[name for name, _ in places], [seq for _, seq in places]]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int64())], ["id", "seq"]
    )
    found = in_order(batch)
    assert [*zip(*found.to_pydict().values(), strict=True)] == sorted(places)
    assert (found is batch) == (places == sorted(places))


def test_totals_add_up_and_are_taken_off():
    assert Totals.of(ROWS) == Totals(3, 9, 28)
    assert Totals.of(ROWS) - Totals.of(ROWS[:1]) == Totals.of(ROWS[1:])
    assert Totals.of(ROWS[:1]) + Totals.of(ROWS[1:]) == Totals.of(ROWS)
