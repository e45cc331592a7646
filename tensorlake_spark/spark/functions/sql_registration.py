"""The functions of SQL, by name: of rows, of tensors, of the tensors of a group, and of images.

The functions themselves are for Spark's columns::

    from tensorlake_spark.spark import functions as tf

    rows = spark.read.format("delta").load(path).where(tf.slice_filter("30:40", "photos"))
    rows.select(tf.tensor_mean(tf.tensor_decode(f.struct("*"), "30:40")))

docs/plain_delta.md has a tour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.spark.cluster.arguments import SESSION, takes
from tensorlake_spark.spark.frames import image_functions
from tensorlake_spark.spark.functions.aggregates import AGGREGATES, aggregate
from tensorlake_spark.spark.functions.encoding import ROWS, encoded_column
from tensorlake_spark.spark.functions.row_functions import block_column, decoded_column
from tensorlake_spark.spark.functions.udfs import FUNCTIONS, arrow_udf, udf
from tensorlake_spark.spark.source.schemas import BLOCKS, TENSOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as t


def shape_column(tensors: pa.StructArray) -> pa.Array:
    """Return the shape of every tensor."""
    return pc.struct_field(tensors, "shape")


def dtype_column(tensors: pa.StructArray) -> pa.Array:
    """Return the dtype of every tensor."""
    return pc.struct_field(tensors, "dtype")


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
    rows: dict[str, tuple[Callable[..., pa.Array], t.DataType]] = {
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
    for name in image_functions.FUNCTIONS:
        session.udf.register(name, image_functions.arrow_udf(name))
    for name in AGGREGATES:
        session.udf.register(name, aggregate(name))
