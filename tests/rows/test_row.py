"""Rows and their columns: Arrow's own conversion is the oracle."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tensorlake_spark.rows.row import bools, is_text, numbers

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
