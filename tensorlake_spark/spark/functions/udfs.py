"""The functions of tensors as Arrow UDFs, by the names that they have in SQL."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tensorlake_spark.errors import InvalidTensorError, TensorLakeError
from tensorlake_spark.spark.cluster.arguments import refused_arguments
from tensorlake_spark.spark.functions import arithmetic
from tensorlake_spark.spark.functions.tensor_stacks import apply
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_DOUBLE, _LONG = t.DoubleType(), t.LongType()
_ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide}

FUNCTIONS: dict[str, tuple[Callable[..., Any], t.DataType]] = {
    "tensor_slice": (arithmetic.take_slice, TENSOR),
    "tensor_to_array": (arithmetic.to_array, t.ArrayType(_DOUBLE)),
    "tensor_from_array": (arithmetic.from_array, TENSOR),
    "tensor_cast": (arithmetic.cast, TENSOR),
    "tensor_reshape": (arithmetic.reshape, TENSOR),
    "tensor_get": (arithmetic.get, _DOUBLE),
    "tensor_argmax": (arithmetic.argmax, _LONG),
    "tensor_argmax_axis": (arithmetic.argmax_along, TENSOR),
    "tensor_dot": (arithmetic.dot, _DOUBLE),
    "tensor_matmul": (arithmetic.matmul, TENSOR),
    "tensor_cosine": (arithmetic.cosine, _DOUBLE),
    "tensor_distance": (arithmetic.distance, _DOUBLE),
}
"""For every name in SQL the function on stacks, and the type that it returns."""

for _name, _function in _ARITHMETIC.items():
    FUNCTIONS[f"tensor_{_name}"] = (arithmetic.elementwise(_function), TENSOR)
for _name in arithmetic.REDUCTIONS:
    FUNCTIONS[f"tensor_{_name}"] = (arithmetic.reduction(_name), _DOUBLE)
    FUNCTIONS[f"tensor_{_name}_axes"] = (arithmetic.reduction_along(_name), TENSOR)


def arrow_udf(
    name: str,
    function: Callable[..., pa.Array],
    kind: t.DataType,
    takes: Callable[..., Any] | None = None,
) -> Callable[..., Column]:
    """Return a function of Arrow arrays as one of columns; where the first is ``NULL`` in SQL, so is the result.

    `takes` has the arguments that are expected, where `function` has any.
    """
    expected = takes or function
    signature = inspect.signature(expected)

    def call(*columns: pa.Array) -> pa.Array:  # Spark goes by these type hints
        try:
            signature.bind(*columns)
        except TypeError as error:
            raise refused_arguments(name, expected, error, columns) from None
        if pa.types.is_null(columns[0].type):  # what has no type is no struct
            return pa.nulls(len(columns[0]), arrow_type(kind))
        try:
            return function(*columns)
        except (TensorLakeError, MemoryError):
            raise
        except Exception as error:  # SQL does not look at types: any column may be an argument
            raise refused_arguments(name, expected, error, columns) from error

    call.__name__ = name
    spark: Any = f  # whose own type hints leave it out
    made: Callable[..., Column] = spark.arrow_udf(call, kind)
    return made


def udf(name: str) -> Callable[..., Column]:
    """Return a function of `FUNCTIONS` as an Arrow UDF."""
    function, kind = FUNCTIONS[name]

    def of_stacks(*columns: pa.Array) -> pa.Array:
        if name == "tensor_from_array":
            columns = (_doubles(columns[0]), *columns[1:])
        return apply(name, function, columns, arrow_type(kind))

    return arrow_udf(name, of_stacks, kind, function)


def _doubles(lists: pa.Array) -> pa.Array:
    """Return lists of numbers as lists of doubles: SQL makes integers or decimals of ``array(1, 2)``."""
    try:
        return lists.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid as error:
        raise InvalidTensorError(
            f"tensor_from_array: the numbers pass through doubles, which not all of them are: {error}"
        ) from error


def longs(numbers: Sequence[int]) -> Column:
    """Return integers as a constant of Spark."""
    return f.lit(np.array(numbers, np.int64).tolist()).cast("array<bigint>")


def operand(value: Any) -> Any:
    """Return a number as a constant of Spark, and a column as it is."""
    return f.lit(value) if isinstance(value, (int, float)) else value
