"""Rows for ``format("tensor")`` without Spark: what its tasks and its driver do, in this process; and where rows lie."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from tensorlake_spark.delta.files.inspection import stored_batches
from tensorlake_spark.delta.log.creation import create_table
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts.verification import boxes
from tensorlake_spark.spark.source.schemas import TENSOR
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.spark.source.write.source_writer import TensorWriter


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


def with_files_of(place, size):
    """Make the table at a place one whose files are of about some size, such as ``"2mb"``; return its storage."""
    storage = Storage(place)
    create_table(storage)
    table = DeltaTable(place, storage_options=storage.log_options)
    table.alter.set_table_properties({"delta.targetFileSize": size}, False)
    return storage


def files_in_order(storage, ndim):
    """See that the rows of each file are in order, and no two share a place; return their ids and boxes by file."""
    snapshot = Snapshot.open(storage)
    out, every = {}, []
    for path in snapshot.files.path:
        batches = [
            batch.filter(pc.greater(batch["nnz"], 0)) for batch in stored_batches(snapshot, path)
        ]
        rows = pa.Table.from_batches(batches, snapshot.schema).combine_chunks()
        if rows.num_rows:
            keys = list(zip(rows["id"].to_pylist(), rows["seq"].to_pylist(), strict=True))
            assert keys == sorted(keys), path
            every += keys
            out[path] = (rows["id"].to_pylist(), *boxes(rows.to_batches()[0], ndim))
    assert len(set(every)) == len(every), "two rows have one place"
    return out


def check_apart(files):
    """See that the box around the rows of a file, or its range of ids, meets that of no other."""
    for (a, lo, hi), (b, low, high) in itertools.combinations(files.values(), 2):
        ids = min(a) <= max(b) and min(b) <= max(a)
        assert not (ids and np.all(lo.min(0) < high.max(0)) and np.all(low.min(0) < hi.max(0)))
