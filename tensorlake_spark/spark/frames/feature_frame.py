"""DataFrames as rows of features: executors put the rows aside, then encode them in parts, and no row comes to the driver.

A row's place in a table of features is known when the rows before it are counted. So a first job writes the rows as they
come to files of Arrow in the table's folder, which no commit names, and counts them. A second one reads whole blocks of
these and encodes them. The DataFrame is computed once, so it may be one that never gives the same rows again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from tensorlake_spark.columns.feature_input import cast_to, table_of
from tensorlake_spark.columns.feature_parts import Encoded, PartEncoding, part_rows
from tensorlake_spark.columns.feature_set import BLOCK
from tensorlake_spark.delta.log.data_file import PART, discard, marked
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.spark.cluster.executor_runner import run_in
from tensorlake_spark.spark.cluster.task_errors import plain_errors
from tensorlake_spark.spark.source.schemas import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART_BYTES = 64 << 20  # that a task encodes


@dataclass(frozen=True)
class _Span:
    """Rows of one batch of a file."""

    path: str
    batch: int
    first: int
    count: int


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
        self._files: list[dict[str, Any]] | None = None

    @classmethod
    def of(cls, frame: DataFrame, storage: Storage) -> FrameRows:
        """Return the rows of a DataFrame.

        Raises
        ------
        InvalidTensorError, UnsupportedDtypeError
            If its columns cannot be features.
        """
        schema = arrow_schema(frame.schema)
        table_of(schema.empty_table())
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
            told = self._frame.mapInArrow(work, "told string").collect()
        files = [json.loads(row.told) for row in told]
        self._files = sorted(files, key=lambda file: int(file["partition"]))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(sum(file["rows"]) for file in self._ready)

    @property
    def with_nulls(self) -> frozenset[str]:
        """The columns that have a null."""
        return frozenset(name for file in self._ready for name in file["nulls"])

    @property
    def _ready(self) -> list[dict[str, Any]]:
        assert self._files is not None, "prepare() comes first"  # nosec B101
        return self._files

    def sample(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of the first rows of the batch in the middle."""
        spans = self._spans(0, self.rows)
        some = [*spans[len(spans) // 2 :][:1]]
        places = [self.schema.get_field_index(name) for name in names]
        kept = pa.schema([self.schema.field(place) for place in places])
        read = [_read(self._storage, span, places).select(names) for span in some]
        return pa.Table.from_batches(read, kept).slice(0, BLOCK[0]).combine_chunks()

    def encode(self, encoding: PartEncoding) -> Iterator[Encoded]:
        """Have executors encode all rows, a number of whole blocks each."""
        width = sum(max(1, field.type.bit_width // 8) for field in self.schema)
        step = part_rows(width, _PART_BYTES)
        tasks = [(start, self._spans(start, start + step)) for start in range(0, self.rows, step)]
        work = partial(_encode, encoding, self.schema, self._mark)
        with plain_errors():
            for _, encoded in run_in(self._frame.sparkSession)(work, tasks):
                yield encoded

    def _spans(self, start: int, stop: int) -> list[_Span]:
        """Return where some of the rows are."""
        out = []
        before = 0
        for file in self._ready:
            for batch, count in enumerate(file["rows"]):
                first, last = max(start - before, 0), min(stop - before, count)
                if first < last:
                    out.append(_Span(file["path"], batch, first, last - first))
                before += count
        return out


@dataclass(frozen=True)
class _PutAside:
    """What a task of the first job does with a partition: a file of its rows, in the types that are written."""

    storage: Storage
    given: pa.Schema
    wanted: pa.Schema
    mark: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row: which partition it was, the file, the rows of its batches, and the columns with a null."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        path = f"{PART}{self.mark}{uuid.uuid4()}.arrow"
        rows: list[int] = []
        nulls: set[str] = set()
        packed = pa.ipc.IpcWriteOptions(compression="zstd")
        with (
            reaching(self.storage),
            self.storage.open_output(path) as sink,
            pa.ipc.new_file(sink, self.wanted, options=packed) as file,
        ):
            for batch in batches:
                typed = self._typed(batch)
                file.write_batch(typed)
                rows.append(typed.num_rows)
                nulls.update(f.name for f, c in zip(self.wanted, typed.columns) if c.null_count)
        told = {"partition": partition, "path": path, "rows": rows, "nulls": sorted(nulls)}
        yield pa.RecordBatch.from_pydict({"told": [json.dumps(told)]})

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the columns that are written: those that it has not are null."""
        types = {field.name: field.type for field in self.wanted}
        table = cast_to(pa.Table.from_batches([batch.cast(self.given)]), types)
        have = {*table.column_names}
        columns = [
            table.column(field.name).combine_chunks()
            if field.name in have
            else pa.nulls(table.num_rows, field.type)
            for field in self.wanted
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.wanted)


def _encode(
    encoding: PartEncoding, schema: pa.Schema, mark: str, task: tuple[int, Sequence[_Span]]
) -> Encoded:
    """Do a task of the second job: read rows, and encode them."""
    start, spans = task
    batches = [_read(encoding.storage, span) for span in spans]
    return encoding.encode(pa.Table.from_batches(batches, schema).combine_chunks(), start, mark)


def _read(storage: Storage, span: _Span, places: Sequence[int] | None = None) -> pa.RecordBatch:
    """Return rows of a batch, by default with all columns."""
    some = pa.ipc.IpcReadOptions(included_fields=None if places is None else [*places])
    with (
        reaching(storage),
        storage.open_input(span.path) as source,
        pa.ipc.open_file(source, options=some) as file,
    ):
        return file.get_batch(span.batch).slice(span.first, span.count)
