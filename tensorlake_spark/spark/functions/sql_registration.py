"""Plain Delta tables of tensors in Spark: rows of a slice, their blocks, and functions of tensors.

For tables that Spark reads with ``format("delta")`` or by their name in a catalogue::

    from tensorlake_spark.spark import functions as tf

    rows = spark.read.format("delta").load(path).where(tf.slice_filter("30:40", "photos"))
    rows.select(tf.tensor_mean(tf.tensor_decode(f.struct("*"), "30:40")))

`row_functions` are of rows, `tensor_functions` of tensors, `aggregates` of the tensors of a group; `encoding` makes
rows of tensors; `read_tensor` and `collect_tensor` take a tensor as a whole. docs/plain_delta.md has a tour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tensorlake_spark.spark.cluster.arguments import SESSION, takes
from tensorlake_spark.spark.functions.aggregates import (
    AGGREGATES,
    aggregate,
    tensor_mean_agg,
    tensor_stack,
    tensor_sum_agg,
)
from tensorlake_spark.spark.functions.collect_tensor import collect_tensor
from tensorlake_spark.spark.functions.encoding import (
    ROWS,
    encoded_column,
    metadata_rows,
    tensor_encode,
)
from tensorlake_spark.spark.functions.read_tensor import read_tensor
from tensorlake_spark.spark.functions.row_functions import (
    block_column,
    decoded_column,
    slice_filter,
    tensor_block,
    tensor_decode,
)
from tensorlake_spark.spark.functions.tensor_functions import (
    tensor_add,
    tensor_argmax,
    tensor_cast,
    tensor_cosine,
    tensor_distance,
    tensor_div,
    tensor_dot,
    tensor_dtype,
    tensor_from_array,
    tensor_get,
    tensor_matmul,
    tensor_max,
    tensor_mean,
    tensor_min,
    tensor_mul,
    tensor_norm,
    tensor_reshape,
    tensor_shape,
    tensor_slice,
    tensor_sub,
    tensor_sum,
    tensor_to_array,
)
from tensorlake_spark.spark.functions.udfs import FUNCTIONS, arrow_udf, udf
from tensorlake_spark.spark.source.schemas import BLOCKS, TENSOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "collect_tensor",
    "metadata_rows",
    "read_tensor",
    "register",
    "slice_filter",
    "tensor_add",
    "tensor_argmax",
    "tensor_block",
    "tensor_cast",
    "tensor_cosine",
    "tensor_decode",
    "tensor_distance",
    "tensor_div",
    "tensor_dot",
    "tensor_dtype",
    "tensor_encode",
    "tensor_from_array",
    "tensor_get",
    "tensor_matmul",
    "tensor_max",
    "tensor_mean",
    "tensor_mean_agg",
    "tensor_min",
    "tensor_mul",
    "tensor_norm",
    "tensor_reshape",
    "tensor_shape",
    "tensor_slice",
    "tensor_stack",
    "tensor_sub",
    "tensor_sum",
    "tensor_sum_agg",
    "tensor_to_array",
]


def shape_column(tensors: pa.StructArray) -> pa.Array:
    """Return the shape of every tensor."""
    return tensors.flatten()[TENSOR.names.index("shape")]


def dtype_column(tensors: pa.StructArray) -> pa.Array:
    """Return the dtype of every tensor."""
    return tensors.flatten()[TENSOR.names.index("dtype")]


@takes(session=SESSION)
def register(session: SparkSession) -> None:
    """Make the functions known to a session's SQL, under their own names.

    A function of SQL returns one type. So what is ``tensor_sum(t, axes=0)`` in Python has a name of its own in SQL,
    ``tensor_sum_axes(t, array(0))``.

    Examples
    --------
    ::

        register(spark)
        spark.sql(f"SELECT tensor_decode(struct(*), '3:5') FROM delta.`{path}` WHERE id = 'photos'")
    """
    rows = {
        "tensor_decode": (decoded_column, TENSOR),
        "tensor_block": (block_column, BLOCKS),
        "tensor_encode": (encoded_column, ROWS),
        "tensor_shape": (shape_column, TENSOR["shape"].dataType),
        "tensor_dtype": (dtype_column, TENSOR["dtype"].dataType),
    }
    for name, (function, kind) in rows.items():
        session.udf.register(name, arrow_udf(name, function, kind))
    for name in FUNCTIONS:
        session.udf.register(name, udf(name))
    for name in AGGREGATES:
        session.udf.register(name, aggregate(name))
