"""DataFrames as rows of features: executors put the rows aside, then encode them; none comes to the driver.

A row's place in a table of features is known when the rows before it are counted. So a first job writes the rows as
they come to files of Arrow in the table's folder, which no commit names, and counts them. A second one reads whole
blocks of these and encodes them. The DataFrame is computed once, so it may be one that never gives the same rows again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from tensorlake_spark.columns.elsewhere.feature_parts import Encoded, PartEncoding
from tensorlake_spark.columns.elsewhere.rows_aside import (
    AsideFile,
    Span,
    parts_between,
    put_aside,
    read_spans,
    sample_of,
    spans_in,
)
from tensorlake_spark.columns.feature_input import check_rows_of_spark
from tensorlake_spark.delta.log.data_file import discard, marked
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.frames.named_batches import in_arrow
from tensorlake_spark.spark.source.schemas import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FrameRows:
    """The rows of a DataFrame as features; a context manager, at whose end what was put aside is deleted.

    Parameters
    ----------
    frame : DataFrame
        Its partitions give the order of the rows.
    storage : Storage
        The table.
    schema : pyarrow.Schema
        Columns of the DataFrame in Arrow.
    """

    def __init__(self, frame: DataFrame, storage: Storage, schema: pa.Schema) -> None:
        self._frame, self._storage = frame, storage
        self._given = self.schema = schema
        self._mark = f"{uuid.uuid4().hex[:16]}-"  # names of all files begin with it
        self._files: list[AsideFile] | None = None

    @classmethod
    def of(cls, frame: DataFrame, storage: Storage, types: Mapping[str, pa.DataType]) -> FrameRows:
        """Return the rows of a DataFrame, which continue features of some types; those of new ones have none.

        Raises
        ------
        InvalidTensorError, UnsupportedDtypeError
            If its columns cannot be features.
        """
        schema = arrow_schema(frame.schema)
        check_rows_of_spark(schema, types)
        return cls(frame, storage, schema)

    def __enter__(self) -> FrameRows:
        return self

    def __exit__(self, *_: object) -> None:
        discard(self._storage, marked(self._storage, self._mark))

    def prepare(self, types: pa.Schema | None) -> None:
        """Have the rows put aside, once for the same types."""
        wanted = self._given if types is None else types
        if self._files is not None and self.schema == wanted:
            return
        self.schema = wanted
        work = _PutAside(self._storage, self._given, wanted, self._mark)
        with plain_errors():
            told = in_arrow(self._frame, work, "told string").collect()
        files = [AsideFile.from_json(row.told) for row in told]
        self._files = sorted(files, key=lambda file: file.partition)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(sum(file.rows) for file in self._ready)

    @property
    def with_nulls(self) -> frozenset[str]:
        """The columns that have a null."""
        return frozenset(name for file in self._ready for name in file.nulls)

    @property
    def _ready(self) -> list[AsideFile]:
        assert self._files is not None, "prepare() comes first"  # nosec B101
        return self._files

    def sample(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of the first rows of the batch in the middle."""
        return sample_of(self._storage, self._spans(0, self.rows), self.schema, names)

    def encode(self, encoding: PartEncoding) -> Iterator[Encoded]:
        """Have executors encode all rows, a number of whole blocks each."""
        parts = parts_between(0, self.rows, self.schema)
        tasks = [(start, self._spans(start, stop)) for start, stop in parts]
        work = partial(_encode, encoding, self.schema, self._mark)
        with plain_errors():
            for _, encoded in run_in(self._frame.sparkSession)(work, tasks):
                yield encoded

    def _spans(self, start: int, stop: int) -> list[Span]:
        """Return where some of the rows are."""
        return spans_in(self._ready, start, stop)


@dataclass(frozen=True)
class _PutAside:
    """What a task of the first job does with a partition: a file of its rows, in the types that are written."""

    storage: Storage
    given: pa.Schema
    wanted: pa.Schema
    mark: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row: what there is to say of the file."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        file = put_aside(self.storage, batches, self.given, self.wanted, self.mark, partition)
        yield pa.RecordBatch.from_pydict({"told": [file.to_json()]})


def _encode(
    encoding: PartEncoding, schema: pa.Schema, mark: str, task: tuple[int, Sequence[Span]]
) -> Encoded:
    """Do a task of the second job: read rows, and encode them."""
    start, spans = task
    return encoding.encode(read_spans(encoding.storage, spans, schema), start, mark)
