"""Writes a DataFrame whose columns are features: tasks put their rows aside and encode them, and the driver commits.

A task learns from the one before it where its rows begin, see `feature_relay`. It encodes the blocks that its rows
complete. The driver gets what the tasks say of their files. It encodes only rows that no task did: those after the
last whole block, and those of a task that was lost or tried twice.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tensorlake_spark.columns.elsewhere.rows_aside import AsideFile, put_aside
from tensorlake_spark.columns.feature_changes import check_codec, tell_codec_kept
from tensorlake_spark.columns.feature_encoding import appended
from tensorlake_spark.columns.feature_input import check_rows_of_spark
from tensorlake_spark.columns.feature_reads import set_of
from tensorlake_spark.columns.feature_table import FeatureTable
from tensorlake_spark.delta.log.data_file import discard, marked
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import TableNotFoundError
from tensorlake_spark.spark.source.feature_parts_written import (
    TaskEncoding,
    WrittenPart,
    WrittenRows,
)
from tensorlake_spark.spark.source.feature_relay import Relay
from tensorlake_spark.spark.source.schemas import arrow_schema
from tensorlake_spark.spark.source.source_options import SparkWriteOptions
from tensorlake_spark.writing.uncommitted import Uncommitted

_PATIENCE = 10.0  # seconds that a task waits for the one before it, at least


@dataclass(frozen=True)
class FeatureCommitMessage(WriterCommitMessage):
    """What a task tells the driver: the file of its rows, and the parts that it has encoded."""

    file: AsideFile
    parts: tuple[WrittenPart, ...]


class FeatureWriter(DataSourceArrowWriter):
    """Writes features, or adds rows to those that are there; made on the driver, where the columns are checked."""

    def __init__(self, options: SparkWriteOptions, schema: t.StructType, overwrite: bool) -> None:
        self.options, self.overwrite = options, overwrite
        self.given = arrow_schema(schema)
        snapshot, name = self._newest(), str(options.id)
        continued = None if overwrite or snapshot is None else set_of(snapshot, name)
        checked = check_rows_of_spark(self.given, continued.types if continued else {})
        check_codec(options.write.codec, checked)  # before a task has to
        if continued is not None:
            tell_codec_kept(options.write.codec, continued)
        changes = Uncommitted(options.storage, snapshot)
        self.work = TaskEncoding(
            options.storage,
            f"{uuid.uuid4().hex[:16]}-",
            name,
            continued,
            options.write.codec,
            self.given if continued is None else appended(self.given, continued),
            changes.file_bytes,
            changes.schema,
        )

    def _newest(self) -> Snapshot | None:
        try:
            return Snapshot.open(self.options.storage)
        except TableNotFoundError:
            return None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Put the rows of one partition aside and encode them; runs on an executor, perhaps more than once."""
        context = TaskContext.get()
        return self.write_partition(0 if context is None else context.partitionId(), iterator)

    def write_partition(
        self, at: int, iterator: Iterator[pa.RecordBatch], patience: float = _PATIENCE
    ) -> FeatureCommitMessage:
        """Do the task of a partition; wait for the one before it so many seconds, or as long as its own rows took."""
        work, began = self.work, time.monotonic()
        relay = Relay(work.storage, work.mark)
        file = relay.file_of(at)
        if file is None:
            file = put_aside(work.storage, iterator, self.given, work.schema, work.mark, at)
        else:
            for _ in iterator:  # others count on the rows of an earlier try
                pass
        before = relay.awaited(at, max(patience, time.monotonic() - began))
        if before is None:
            relay.leave(file)
            before = relay.before(at)  # it may have come just now
        parts: list[WrittenPart] = []
        turn: AsideFile | None = file
        while before is not None and turn is not None:
            after = before.after(turn)
            relay.hand_on(turn.partition, after, turn)
            parts += work.encode(before, turn)
            before, turn = after, relay.left(turn.partition + 1)
        return FeatureCommitMessage(file, tuple(parts))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have encoded, in the order of the partitions; runs on the driver."""
        told = [m for m in messages if isinstance(m, FeatureCommitMessage)]
        work, write = self.work, self.options.write
        files, parts = [m.file for m in told], [part for m in told for part in m.parts]
        rows = WrittenRows(work.storage, work.schema, work.mark, files, parts)
        features = FeatureTable(work.storage, work.table, self._newest())
        try:
            if self.overwrite or not features.exists:
                mode = "overwrite" if self.overwrite else "error"
                features.write(rows, mode=mode, codec=write.codec, transaction=write.transaction)
            else:
                features.append(rows, transaction=write.transaction)
        finally:
            self.abort(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what the tasks have written and no commit names."""
        discard(self.work.storage, marked(self.work.storage, self.work.mark))
