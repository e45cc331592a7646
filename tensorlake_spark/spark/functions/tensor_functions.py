"""Functions of columns of type TENSOR, with NumPy's meaning; a null argument gives null.

They run as Arrow UDFs: rows of a batch with one dtype and shape are one call of NumPy. What NumPy refuses ends
the query with InvalidTensorError, which names the function, what it was given, and the row of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as f

from tensorlake_spark.indexing import format_key
from tensorlake_spark.spark.cluster.arguments import (
    ANY_KEY,
    COLUMN,
    INTEGER,
    INTEGERS,
    NOTHING,
    NUMBER,
    TEXT,
    takes,
)
from tensorlake_spark.spark.functions.udfs import longs, operand, udf

if TYPE_CHECKING:
    from pyspark.sql import Column


def _reduced(name: str, tensor: Any, axes: int | Sequence[int] | None) -> Column:
    if axes is None:
        return udf(name)(tensor)
    return udf(f"{name}_axes")(
        tensor, longs([axes] if isinstance(axes, (int, np.integer)) else axes)
    )


@takes(tensor=COLUMN, key=ANY_KEY)
def tensor_slice(tensor: Any, key: Any) -> Column:
    """Return a slice of a tensor: integers, slices, ``...`` and ``None``, as a NumPy key or its text.

    Examples
    --------
    ::

        df.select(tensor_slice("tensor", "0, ::2"))
    """
    return udf("tensor_slice")(
        tensor, f.lit(key) if isinstance(key, str) else f.lit(format_key(key))
    )


@takes(tensor=COLUMN)
def tensor_shape(tensor: Any) -> Column:
    """Return the shape of a tensor, an array of longs.

    Examples
    --------
    ::

        df.select(tensor_shape("tensor"))
    """
    return _field(tensor, "shape")


@takes(tensor=COLUMN)
def tensor_dtype(tensor: Any) -> Column:
    """Return the name of a tensor's dtype.

    Examples
    --------
    ::

        df.where(tensor_dtype("tensor") == "uint8")
    """
    return _field(tensor, "dtype")


def _field(tensor: Any, name: str) -> Column:
    return (f.col(tensor) if isinstance(tensor, str) else tensor).getField(name)


@takes(tensor=COLUMN)
def tensor_to_array(tensor: Any) -> Column:
    """Return the elements of a tensor in C order, an array of doubles.

    Examples
    --------
    ::

        df.select(f.explode(tensor_to_array("tensor")))
    """
    return udf("tensor_to_array")(tensor)


@takes(values=COLUMN, shape=INTEGERS | COLUMN, dtype=TEXT)
def tensor_from_array(values: Any, shape: Any, dtype: str = "float64") -> Column:
    """Return a tensor made of numbers in C order.

    Parameters
    ----------
    values : Column or str
        An array of numbers. They pass through doubles, which hold integers up to 2**53.
    shape : sequence of int or Column
        Shape of the tensor.
    dtype : str
        Dtype of the tensor. Floats are rounded to it. A number that the dtype does not hold ends the task with an
        error.

    Examples
    --------
    ::

        df.select(tensor_from_array(f.array(f.lit(1.0), f.lit(2.0)), (2, 1), "float32"))
    """
    lengths = longs(shape) if isinstance(shape, (list, tuple)) else shape
    return udf("tensor_from_array")(values, lengths, f.lit(dtype))


@takes(tensor=COLUMN, dtype=TEXT)
def tensor_cast(tensor: Any, dtype: str) -> Column:
    """Return a tensor in another dtype, cast as NumPy's ``astype`` does.

    Examples
    --------
    ::

        df.select(tensor_cast("tensor", "float32"))
    """
    return udf("tensor_cast")(tensor, f.lit(dtype))


@takes(tensor=COLUMN, shape=INTEGERS)
def tensor_reshape(tensor: Any, shape: Sequence[int]) -> Column:
    """Return a tensor in another shape; one length may be -1.

    Examples
    --------
    ::

        df.select(tensor_reshape("tensor", (-1,)))
    """
    return udf("tensor_reshape")(tensor, longs(shape))


@takes(tensor=COLUMN, index=INTEGER)
def tensor_get(tensor: Any, *index: int) -> Column:
    """Return one element of a tensor as a double; in SQL ``tensor_get(tensor, array(0, -1))``.

    Examples
    --------
    ::

        df.select(tensor_get("tensor", 0, 2, 5, -1))
    """
    return udf("tensor_get")(tensor, longs(index))


@takes(a=COLUMN | NUMBER, b=COLUMN | NUMBER)
def tensor_add(a: Any, b: Any) -> Column:
    """Return the sum of two tensors, which broadcast, or of a tensor and a number.

    A number works like a Python number in NumPy: it takes the dtype of the tensor, or that of a float. An integer
    that the dtype does not hold is an error.

    Examples
    --------
    ::

        df.select(tensor_add("tensor", 1.5))
    """
    return udf("tensor_add")(operand(a), operand(b))


@takes(a=COLUMN | NUMBER, b=COLUMN | NUMBER)
def tensor_sub(a: Any, b: Any) -> Column:
    """Return the difference of two tensors, or of a tensor and a number; see `tensor_add`.

    Examples
    --------
    ::

        df.select(tensor_sub("tensor", "tensor"))
    """
    return udf("tensor_sub")(operand(a), operand(b))


@takes(a=COLUMN | NUMBER, b=COLUMN | NUMBER)
def tensor_mul(a: Any, b: Any) -> Column:
    """Return the product of two tensors, element by element, or of a tensor and a number; see `tensor_add`.

    Examples
    --------
    ::

        df.select(tensor_mul(2, "tensor"))
    """
    return udf("tensor_mul")(operand(a), operand(b))


@takes(a=COLUMN | NUMBER, b=COLUMN | NUMBER)
def tensor_div(a: Any, b: Any) -> Column:
    """Return the quotient of two tensors, or of a tensor and any number, as floats.

    Examples
    --------
    ::

        df.select(tensor_div("tensor", 255))
    """
    return udf("tensor_div")(operand(a), operand(b))


@takes(tensor=COLUMN, axes=INTEGER | INTEGERS | NOTHING)
def tensor_sum(tensor: Any, axes: int | Sequence[int] | None = None) -> Column:
    """Return the sum of all elements as a double, or along axes as a tensor (in SQL ``tensor_sum_axes``).

    Over all elements, floats are added up as doubles. Along axes, the result has the dtype of ``np.sum``; floats of
    one or two bytes are added up as float32.

    Examples
    --------
    ::

        df.select(tensor_sum("tensor"), tensor_sum("tensor", axes=(0, -1)))
    """
    return _reduced("tensor_sum", tensor, axes)


@takes(tensor=COLUMN, axes=INTEGER | INTEGERS | NOTHING)
def tensor_mean(tensor: Any, axes: int | Sequence[int] | None = None) -> Column:
    """Return the mean as a double, or along axes as a tensor (in SQL ``tensor_mean_axes``); see `tensor_sum`.

    Examples
    --------
    ::

        df.where(tensor_mean("tensor") > 0.5)
    """
    return _reduced("tensor_mean", tensor, axes)


@takes(tensor=COLUMN, axes=INTEGER | INTEGERS | NOTHING)
def tensor_min(tensor: Any, axes: int | Sequence[int] | None = None) -> Column:
    """Return the least element as a double, or along axes as a tensor (in SQL ``tensor_min_axes``).

    Examples
    --------
    ::

        df.select(tensor_min("tensor"))
    """
    return _reduced("tensor_min", tensor, axes)


@takes(tensor=COLUMN, axes=INTEGER | INTEGERS | NOTHING)
def tensor_max(tensor: Any, axes: int | Sequence[int] | None = None) -> Column:
    """Return the greatest element as a double, or along axes as a tensor (in SQL ``tensor_max_axes``).

    Examples
    --------
    ::

        df.select(tensor_max("tensor", axes=0))
    """
    return _reduced("tensor_max", tensor, axes)


@takes(tensor=COLUMN, axes=INTEGER | INTEGERS | NOTHING)
def tensor_norm(tensor: Any, axes: int | Sequence[int] | None = None) -> Column:
    """Return the Euclidean norm as a double, or along axes as a tensor (in SQL ``tensor_norm_axes``).

    Examples
    --------
    ::

        df.select(tensor_norm("tensor"))
    """
    return _reduced("tensor_norm", tensor, axes)


@takes(tensor=COLUMN, axis=INTEGER | NOTHING)
def tensor_argmax(tensor: Any, axis: int | None = None) -> Column:
    """Return the place in C order of the greatest element as a long, or the index along one axis as a tensor.

    In SQL the second is ``tensor_argmax_axis(tensor, array(0))``.

    Examples
    --------
    ::

        df.select(tensor_argmax("tensor"))
    """
    if axis is None:
        return udf("tensor_argmax")(tensor)
    return udf("tensor_argmax_axis")(tensor, longs([axis]))


@takes(a=COLUMN, b=COLUMN)
def tensor_dot(a: Any, b: Any) -> Column:
    """Return the sum of the products of the elements of two tensors of one shape, as a double.

    Examples
    --------
    ::

        df.select(tensor_dot("tensor", "tensor"))
    """
    return udf("tensor_dot")(a, b)


@takes(a=COLUMN, b=COLUMN)
def tensor_matmul(a: Any, b: Any) -> Column:
    """Return the matrix product of two tensors, as ``a @ b`` in NumPy.

    Examples
    --------
    ::

        image = tensor_slice("tensor", "0, 0")
        df.select(tensor_matmul(image, tensor_reshape(image, (96, 32))))
    """
    return udf("tensor_matmul")(a, b)


@takes(a=COLUMN, b=COLUMN)
def tensor_cosine(a: Any, b: Any) -> Column:
    """Return the cosine of the angle between two tensors of one shape, as a double; NaN if one is zero.

    Examples
    --------
    ::

        df.orderBy(tensor_cosine("tensor", "tensor").desc())
    """
    return udf("tensor_cosine")(a, b)


@takes(a=COLUMN, b=COLUMN)
def tensor_distance(a: Any, b: Any) -> Column:
    """Return the Euclidean (L2) distance of two tensors of one shape, as a double.

    Examples
    --------
    ::

        df.orderBy(tensor_distance("tensor", "tensor")).limit(10)
    """
    return udf("tensor_distance")(a, b)
