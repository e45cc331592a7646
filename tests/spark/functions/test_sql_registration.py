"""What SQL knows of the functions. That it can call them, test_tensor_functions.py has with a session."""

import pyarrow as pa

from tensorlake_spark.spark import functions as tf
from tensorlake_spark.spark.functions import (
    aggregates,
    encoding,
    row_functions,
    sql_registration,
    tensor_functions,
)
from tensorlake_spark.spark.source.schemas import TENSOR


def test_shape_and_dtype_of_a_column():
    shapes, dtypes = [[2, 3], [], None], ["<f4", "bool", None]
    fields = {
        "dtype": pa.array(dtypes),
        "shape": pa.array(shapes, pa.list_(pa.int64())),
        "data": pa.array([b"\0" * 24, b"\0", None]),
    }
    assert [*fields] == TENSOR.names
    tensors = pa.StructArray.from_arrays([*fields.values()], names=[*fields])
    assert sql_registration.shape_column(tensors).to_pylist() == shapes
    assert sql_registration.dtype_column(tensors).to_pylist() == dtypes


def test_a_null_has_no_shape_whatever_lies_under_it():
    whole = pa.array([{"dtype": "<f4", "shape": [1], "data": b"1234"}] * 2)
    masked = pa.StructArray.from_arrays(
        whole.flatten(), names=TENSOR.names, mask=pa.array([False, True])
    )
    assert sql_registration.shape_column(masked).to_pylist() == [[1], None]


def test_every_function_of_a_column_is_among_the_names_of_the_room():
    modules = (aggregates, encoding, row_functions, tensor_functions)
    made = {
        name
        for module in modules
        for name, value in vars(module).items()
        if name.startswith("tensor_") and getattr(value, "__module__", "") == module.__name__
    }
    assert made == {name for name in tf.__all__ if name.startswith("tensor_")}
    assert sorted(tf.__all__) == tf.__all__
