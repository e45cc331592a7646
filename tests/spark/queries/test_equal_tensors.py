"""Bytes of tensors that are equal."""

import numpy as np
import pyarrow as pa
import pytest

from tensorlake_spark.spark.frames.image_columns import tensors_with_nulls
from tensorlake_spark.spark.queries.equal_tensors import equal_tensors
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type, tensors_of
from tensorlake_spark.tensor.spec import dtype_of


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "bfloat16"])
def test_one_zero_and_one_nan(name):
    dtype = dtype_of(name)
    values = np.array([0.0, -0.0, 1.5, np.nan, -np.nan]).astype(dtype)
    column = tensors_with_nulls("x", [values[[0, 3]], None, values[[1, 4]], values[2:3]])
    found = equal_tensors(column).to_pylist()
    assert found[0] == found[2]
    assert found[1] is None
    (last,) = tensors_of(equal_tensors(column.slice(3)))
    assert last.dtype == dtype
    assert last == values[2]


def test_other_dtypes_stay_and_lists_are_looked_into():
    column = tensors_with_nulls("x", [np.arange(3), np.zeros(2), -np.zeros(2)])
    assert equal_tensors(column.slice(0, 2)).equals(column.slice(0, 2))
    lists = pa.array(
        [column[1:2].to_pylist(), None, column[2:].to_pylist(), []], pa.list_(arrow_type(TENSOR))
    )
    first, second, third, fourth = equal_tensors(lists).to_pylist()
    assert first == third
    assert (second, fourth) == (None, [])
