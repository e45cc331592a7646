"""Arrow columns as parts of arrays, and arrays as Arrow columns."""

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.columns.feature_types import DTYPES
from tensorlake_spark.columns.feature_values import Columns, Nulls, arrow_columns

TABLE = [pa.array([1, None, 3, 4], pa.int16()), pa.array([9, 5, 6, 7, 8], pa.int16()).slice(1)]


def test_parts_of_columns():
    part = Columns(TABLE, "int16")
    assert part.shape == (4, 2)
    assert part[0:4, 0:2].tolist() == [[1, 5], [0, 6], [3, 7], [4, 8]]
    assert part[1:3, 1:2].tolist() == [[6], [7]]


def test_parts_of_nulls_behind_others():
    part = Nulls(TABLE, (2, 1))
    assert part.shape == (6, 3)
    want = np.zeros((6, 3), bool)
    want[3, 1] = True
    for rows, columns in ((slice(0, 6), slice(0, 3)), (slice(0, 2), slice(0, 3)), (slice(3, 4), slice(1, 2))):  # fmt: skip
        assert np.array_equal(part[rows, columns], want[rows, columns])


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_become_columns_with_their_nulls(dtype):
    values = np.arange(22).reshape(2, 11).astype(dtype)
    nulls = np.zeros((2, 11), bool)
    nulls[1, ::3] = True
    one, two = arrow_columns(values, nulls, dtype, [None, None])
    plain = arrow_columns(values, None, dtype, [None, None])
    for column in (one, two, *plain):
        column.validate(full=True)
    assert [column.to_pylist() for column in plain] == values.tolist()
    assert one.null_count == 0
    assert one.to_pylist() == values[0].tolist()
    assert two.to_pylist() == [None if n else v for v, n in zip(values[1].tolist(), nulls[1])]
