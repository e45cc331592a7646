"""Rows for ``format("tensor")`` without Spark: what its tasks and its driver do, in this process."""

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from tensorlake_spark.spark.options import SparkWriteOptions
from tensorlake_spark.spark.views import TENSOR
from tensorlake_spark.spark.writer import TensorWriter


def write_here(rows, schema, options):
    """Append rows of a schema in Spark's own words, all by one task; columns ``tensor`` are tuples or null."""
    schema = t.StructType.fromDDL(schema)
    writer = TensorWriter(SparkWriteOptions.parse(options), schema, False)
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = []
    for field, column in zip(schema, columns, strict=True):
        if field.name == "tensor":
            column = [row and dict(zip(TENSOR.names, row, strict=True)) for row in column]
        arrays.append(pa.array(column, to_arrow_type(field.dataType)))
    batch = pa.RecordBatch.from_arrays(arrays, names=schema.names)
    try:
        message = writer.write(iter([batch]))
    except Exception:
        writer.abort([])
        raise
    writer.commit([message])
