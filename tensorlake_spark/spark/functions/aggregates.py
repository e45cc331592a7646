"""Aggregates over the tensors of a group, read batch by batch: sums hold one tensor, however many rows there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from tensorlake_spark.errors import InvalidTensorError, TensorLakeError
from tensorlake_spark.spark.cluster.arguments import COLUMN, NOTHING, takes
from tensorlake_spark.spark.functions.arithmetic import is_float
from tensorlake_spark.spark.functions.tensor_stacks import check_bytes, stacks
from tensorlake_spark.spark.source.schemas import TENSOR, arrow_type, tensor_column

if TYPE_CHECKING:
    from pyspark.sql import Column

Array = np.ndarray[Any, Any]
Kind = tuple[np.dtype[Any], tuple[int, ...]]
Batches = Iterator[Any]
"""Of a group: a column, or a tuple of columns, at a time."""


@takes(tensor=COLUMN)
def tensor_sum_agg(tensor: Any) -> Column:
    """Return the sum of the tensors of a group, element by element.

    All tensors have one dtype and one shape. The result has the dtype of ``np.sum``: small integers become 64 bits
    wide, floats keep their dtype and are added up as float64. Nulls are left out. A group of nulls only gives
    null.

    Examples
    --------
    ::

        df.groupBy(tensor_dtype("tensor")).agg(tensor_sum_agg("tensor"))
    """
    return aggregate("tensor_sum_agg")(tensor)


@takes(tensor=COLUMN)
def tensor_mean_agg(tensor: Any) -> Column:
    """Return the mean of the tensors of a group, element by element, as float64 or complex128.

    See also `tensor_sum_agg`.

    Examples
    --------
    ::

        df.agg(tensor_mean_agg("tensor"))
    """
    return aggregate("tensor_mean_agg")(tensor)


@takes(tensor=COLUMN, order=COLUMN | NOTHING)
def tensor_stack(tensor: Any, order: Any = None) -> Column:
    """Return the tensors of a group as one tensor, along a new first axis.

    All tensors have one dtype and one shape. Nulls are left out. A group of nulls only gives null.

    Parameters
    ----------
    tensor : Column or str
        The tensors.
    order : Column or str, optional
        What to sort the tensors by, as ORDER BY does: nulls come first. Spark gives the rows of a group no order,
        so without it the tensors come in any order.

    Notes
    -----
    Where a task runs, it ends with an error for a stack of 2 GiB or more.

    Examples
    --------
    ::

        df.agg(tensor_stack("tensor", tensor_sum("tensor")))
    """
    return aggregate("tensor_stack")(*([tensor] if order is None else [tensor, order]))


def _added(
    batches: Batches, dtype: Callable[[np.dtype[Any]], Any]
) -> tuple[Array | None, int, np.dtype[Any] | None]:
    """Return the sum of all tensors, added as numbers of a dtype, how many there are, and what dtype they have."""
    total: Array | None = None
    kind: Kind | None = None
    count = 0
    for column in batches:
        for _, (stack,) in stacks([column]):
            kind = _like(kind, stack)
            if stack.dtype.kind in "mM":
                raise InvalidTensorError(f"tensors of dtype {stack.dtype} are not added")
            with np.errstate(all="ignore"):
                part = np.asarray(np.sum(stack, axis=0, dtype=dtype(stack.dtype)))
                total = part if total is None else np.add(total, part, out=total)
            count += len(stack)
    return total, count, None if kind is None else kind[0]


def _like(kind: Kind | None, stack: Array) -> Kind:
    """Return dtype and shape of a stack's tensors; raise if those before them had others."""
    found = stack.dtype, stack.shape[1:]
    if kind is None or kind == found:
        return found
    raise InvalidTensorError(
        f"the tensors of a group differ: {kind[0]} of shape {kind[1]}, and {found[0]} of shape {found[1]}; "
        "group by tensor_dtype() and tensor_shape(), or use tensor_cast() and tensor_reshape()"
    )


def _sum(batches: Batches) -> Array | None:
    total, _, kind = _added(batches, lambda dtype: np.float64 if is_float(dtype) else None)
    if total is None or kind is None or not is_float(kind):
        return total
    with np.errstate(all="ignore"):
        return total.astype(kind)


def _mean(batches: Batches) -> Array | None:
    total, count, _ = _added(
        batches, lambda dtype: np.complex128 if dtype.kind == "c" else np.float64
    )
    return None if total is None else total / count


def _stack(batches: Batches) -> Array | None:
    parts: list[Array] = []
    places: list[Any] = []
    kind: Kind | None = None
    size = 0
    for columns in batches:
        column, *orders = columns if isinstance(columns, tuple) else (columns,)
        order = orders[0].to_pylist() if orders else [None] * len(column)
        for numbers, (stack,) in stacks([column]):
            kind = _like(kind, stack)
            size += stack.nbytes
            check_bytes(size, len(parts) + len(stack))
            parts += list(stack.copy())  # the batch's own memory goes
            places += [_place(order[i]) for i in numbers.tolist()]
    if not parts:
        return None
    return np.stack([parts[i] for i in sorted(range(len(parts)), key=places.__getitem__)])


def _place(value: Any) -> tuple[Any, ...]:
    """Return what Python sorts as Spark sorts a value: nulls first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return (1, [_place(v) for v in value])
    return (1, value) if value == value else (2,)


AGGREGATES: dict[str, Callable[[Batches], Array | None]] = {
    "tensor_sum_agg": _sum, "tensor_mean_agg": _mean, "tensor_stack": _stack,
}  # fmt: skip
"""For every name in SQL what makes one array of a group."""


def aggregate(name: str) -> Callable[..., Column]:
    """Return a function of `AGGREGATES` as an aggregate of columns."""
    function, kind = AGGREGATES[name], arrow_type(TENSOR)

    def call(batches: Iterator[tuple[pa.Array, ...]]) -> Any:  # Spark goes by these type hints
        try:
            out = function(batches)
        except TensorLakeError as error:
            raise type(error)(f"{name}: {error}") from error
        except AttributeError as error:  # SQL does not look at types: any column may be an argument
            raise InvalidTensorError(
                f"{name} takes tensors, struct<dtype, shape, data>, as tensor_decode and tensor_from_array give them"
            ) from error
        return pa.scalar(None, kind) if out is None else tensor_column([out]).cast(kind)[0]

    call.__name__ = name
    spark: Any = f  # whose own type hints leave it out
    made: Callable[..., Column] = spark.arrow_udf(call, TENSOR)
    return made
