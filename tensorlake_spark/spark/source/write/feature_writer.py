"""Writes a DataFrame whose columns are features: tasks put their rows aside, and the driver encodes and commits them.

The rows of a partition begin where those of the one before it end, and no task knows where that is. So tasks leave
files of Arrow in the table's folder, which no commit names, and the driver reads one after the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tensorlake_spark.columns.feature_input import cast_to, table_of
from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.columns.feature_table import FeatureTable
from tensorlake_spark.delta.log.data_file import PART, discard, marked
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import TableNotFoundError
from tensorlake_spark.spark.source.schemas import arrow_schema
from tensorlake_spark.spark.source.source_options import SparkWriteOptions

_PART_BYTES = 64 << 20  # what the driver encodes at a time


@dataclass(frozen=True)
class FeatureCommitMessage(WriterCommitMessage):
    """What a task tells the driver: its file, and which partition it was."""

    partition: int
    path: str


class FeatureWriter(DataSourceArrowWriter):
    """Writes features, or adds rows to those that are there; made on the driver, where the columns are checked."""

    def __init__(self, options: SparkWriteOptions, schema: t.StructType, overwrite: bool) -> None:
        self.options, self.overwrite = options, overwrite
        self.schema = arrow_schema(schema)
        table_of(self.schema.empty_table())
        self.mark = f"{uuid.uuid4().hex[:16]}-"
        self._features()

    def _features(self) -> FeatureTable:
        storage = self.options.storage
        try:
            snapshot: Snapshot | None = Snapshot.open(storage)
        except TableNotFoundError:
            snapshot = None
        return FeatureTable(storage, str(self.options.id), snapshot)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Put the rows of one partition aside; runs on an executor, perhaps more than once."""
        storage, context = self.options.storage, TaskContext.get()
        name = f"{PART}{self.mark}{uuid.uuid4()}.arrow"
        with reaching(storage), storage.open_output(name) as sink:
            packed = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_stream(sink, self.schema, options=packed) as stream:
                for batch in iterator:
                    stream.write_batch(batch.cast(self.schema))
        return FeatureCommitMessage(0 if context is None else context.partitionId(), name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Encode what the tasks put aside, in the order of the partitions, in one commit; runs on the driver."""
        parts = [m for m in messages if isinstance(m, FeatureCommitMessage)]
        paths = [m.path for m in sorted(parts, key=lambda m: m.partition)]
        features = self._features()
        wanted: dict[str, pa.DataType] = {}
        if not self.overwrite and features.exists:
            wanted = {
                name: features.type_of(name) for name in self.schema.names if name in features
            }
        tables = (cast_to(table, wanted) for table in _parts(self.options.storage, self.schema, paths))  # fmt: skip
        try:
            features.write_parts(
                tables,
                mode="overwrite" if self.overwrite else "append",
                codec=self.options.write.codec,
                transaction=self.options.write.transaction,
            )
        finally:
            discard(self.options.storage, paths)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what the tasks put aside."""
        discard(self.options.storage, marked(self.options.storage, self.mark))


def _parts(storage: Storage, schema: pa.Schema, paths: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of files as tables of whole blocks, the last of them shorter."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for path in paths:
        with reaching(storage), storage.open_input(path) as file, pa.ipc.open_stream(file) as stream:  # fmt: skip
            for batch in stream:
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                if size >= _PART_BYTES and rows >= BLOCK[0]:
                    table = pa.Table.from_batches(waiting, schema)
                    whole = rows - rows % BLOCK[0]
                    yield table.slice(0, whole)
                    waiting = table.slice(whole).to_batches()
                    rows, size = rows - whole, sum(rest.nbytes for rest in waiting)
    yield pa.Table.from_batches(waiting, schema)
