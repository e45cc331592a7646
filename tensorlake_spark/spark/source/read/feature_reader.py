"""The view ``features``: a row for every row of a table of features, and a column for each that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSourceReader, InputPartition

from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.columns.feature_table import FeatureTable
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidSliceError
from tensorlake_spark.indexing import parse_key
from tensorlake_spark.spark.source.schemas import SPARK_TYPES, arrow_schema
from tensorlake_spark.spark.source.source_options import ReadOptions

_BATCH_BYTES = 8 << 20


@dataclass
class RowPartition(InputPartition):
    """The rows that one task reads."""

    start: int
    stop: int


class FeatureReader(DataSourceReader):
    """Reads the columns of a schema, which features of one version have."""

    def __init__(self, options: ReadOptions, snapshot: Snapshot, schema: t.StructType) -> None:
        self.options, self.version, self.schema = options, snapshot.version, schema
        self.rows = rows_of(options, len(features_of(options, snapshot)))

    def partitions(self) -> Sequence[InputPartition]:
        """Rows in runs of whole blocks, of about as many bytes as the option says."""
        width = 8 * max(1, len(self.schema))
        step = max(1, self.options.partition_bytes // width // BLOCK[0]) * BLOCK[0]
        first, last = self.rows.start, self.rows.stop
        starts = [first, *range(first - first % step + step, last, step)]
        return [RowPartition(a, b) for a, b in zip(starts, [*starts[1:], max(first, last)])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs on an executor."""
        if not isinstance(partition, RowPartition):
            return
        table = features_of(self.options, Snapshot.open(self.options.storage, self.version))
        schema = arrow_schema(self.schema)
        step = max(1, _BATCH_BYTES // (8 * max(1, len(schema))))
        for start in range(partition.start, partition.stop, step):
            found = table.read(schema.names, slice(start, min(start + step, partition.stop)))
            columns = [_cast(column, f.type) for column, f in zip(found.columns, schema)]
            if not columns:  # from_arrays would forget how many rows there are
                rows = pa.Array.from_buffers(pa.struct([]), found.num_rows, [None])
                yield pa.RecordBatch.from_struct_array(rows)
                continue
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def features_of(options: ReadOptions, snapshot: Snapshot) -> FeatureTable:
    """Return the features that options name, for reading."""
    return FeatureTable(options.storage, str(options.id), snapshot)


def rows_of(options: ReadOptions, length: int) -> range:
    """Return the rows that the option ``slice`` stands for.

    Raises
    ------
    InvalidSliceError
        If it is no slice of rows without a step.
    """
    key = parse_key(options.slice, ("row",))
    picks = key if isinstance(key, tuple) else (key,)
    if picks in ((), (...,)):
        return range(length)
    if len(picks) != 1 or not isinstance(picks[0], slice) or picks[0].step not in (None, 1):
        raise InvalidSliceError(
            f"slice {options.slice!r} is not a range of rows such as '0:1000'; the option columns says which features"
        )
    return range(*picks[0].indices(length))


def feature_schema(table: FeatureTable, columns: Sequence[str] | None) -> t.StructType:
    """Return the columns of some features in Spark.

    Raises
    ------
    UnknownLabelError, InvalidOptionError, TensorNotFoundError
        As `FeatureTable.read`.
    """
    found = table.schema if columns is None else table.read(columns, slice(0, 0)).schema
    return t.StructType([t.StructField(field.name, spark_type(field.type)) for field in found])


_TYPES: dict[pa.DataType, t.DataType] = {**SPARK_TYPES, pa.float16(): t.FloatType()}


def spark_type(kind: pa.DataType) -> t.DataType:
    """Return the narrowest Spark type that holds all values of a feature; of times of day and durations their number.

    Examples
    --------
    >>> spark_type(pa.uint8()), spark_type(pa.timestamp("ns", tz="UTC")), spark_type(pa.time32("s"))
    (ShortType(), TimestampType(), LongType())
    """
    if pa.types.is_timestamp(kind):
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    return _TYPES.get(kind, t.LongType())


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return a column in Spark's type; nanoseconds become microseconds."""
    array = column.combine_chunks()
    if array.type == kind:
        return array
    if pa.types.is_time(array.type) or pa.types.is_duration(array.type):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.cast(kind, safe=False)
