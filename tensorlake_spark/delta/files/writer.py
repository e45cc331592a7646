"""Rows -> Parquet files: streamed, row group by row group, in the shape that slices want."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.statistics import BOUNDED, Statistics, bounds_of
from tensorlake_spark.delta.log.data_file import PART, DataFile, discard
from tensorlake_spark.delta.log.properties import FILE_BYTES, ROW_GROUP_BYTES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.parquet_output import ParquetOutput
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.rows.metadata import meta_batch
from tensorlake_spark.rows.row import SCHEMA, Row, Totals, data_table, in_order
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)

_STRINGS = ("id", "layout", "params", "dtype", "codec")
_PACKED = (
    *_STRINGS, "seq", "nnz", "crc", "shape.list.element", "block_shape.list.element", "attrs",
    *(f"{side}.d{k}" for side in ("lo", "hi") for k in range(STORED_AXES)),
)  # fmt: skip

SHARED_BYTES = 64 << 10
"""A row group that several small tensors share is not larger."""

SHARED_ROWS = 1024
"""Nor has it more rows: the table's parquet.block.row.count.limit."""


class FileWriter:
    """Writes rows to new data files of a table, none of which any commit names yet.

    Memory is bounded by one row group of data and one of metadata: what is full goes to storage at once. The
    data rows of a file are in the order (``id``, ``seq``), and so are its metadata rows, which end it: data that
    would have to come before what is written begins a new file. As a context manager it aborts when an error
    leaves it.

    Parameters
    ----------
    storage : Storage
        The table.
    file_bytes, row_group_bytes : int
        Target sizes in bytes of payload.
    schema : pyarrow.Schema
        Columns of the files; a table's own where users added some.
    mark : str
        What the names of its files begin with, so that others find them.
    """

    def __init__(
        self,
        storage: Storage,
        file_bytes: int = FILE_BYTES,
        row_group_bytes: int = ROW_GROUP_BYTES,
        schema: pa.Schema = SCHEMA,
        mark: str = "",
    ) -> None:
        self.storage = storage
        self.file_bytes = file_bytes  # a file is closed when it has grown to this
        self.row_group_bytes = row_group_bytes
        self.schema = schema
        self.mark = mark
        self.extras: dict[str, pa.Scalar] = {}  # what rows that are added have in users' columns
        self.files: list[DataFile] = []
        self._rows: list[tuple[TensorSpec, int, Row]] = []  # of the row group that is filled
        self._last = ("", -1)  # id and seq of the last data row that was added to this file
        self._metas: list[pa.RecordBatch] = []  # which end the file
        self._pending = 0
        self._file: ParquetOutput | None = None  # that is being written
        self._groups: list[Statistics] = []  # of its row groups
        self._written = 0

    @classmethod
    def into(cls, snapshot: Snapshot, row_group_bytes: int = ROW_GROUP_BYTES) -> FileWriter:
        """Return a writer of files as a table wants them: of its size, with its columns."""
        return cls(snapshot.storage, snapshot.file_bytes, row_group_bytes, snapshot.schema)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()

    def add(self, spec: TensorSpec, seq: int, row: Row) -> None:
        """Add one encoded row of a tensor."""
        size = row.nbytes
        if self._rows and self._is_full(spec, size, row):
            self._flush()
            if self._written >= self.file_bytes:
                self._close()
        if (spec.id, seq) <= self._last:
            self._flush()
            self._close()
        self._last = (spec.id, seq)
        self._rows.append((spec, seq, row))
        self._pending += size

    def _is_full(self, spec: TensorSpec, size: int, row: Row) -> bool:
        """Whether a row group ends before a row: at its size, or half full where the first axis moves on.

        Row groups whose ranges on the first axis do not meet prune better, and need no merging. Only tensors
        that are small altogether share a row group, for a footer takes 2 KiB for each of them.
        """
        (first, _, _), (_, _, last) = self._rows[0], self._rows[-1]
        if first.id != spec.id:
            return self._pending + size > SHARED_BYTES or len(self._rows) >= SHARED_ROWS
        limit = self.row_group_bytes // 2 if row.lo[:1] != last.lo[:1] else self.row_group_bytes
        return self._pending + size > limit

    def add_meta(
        self, specs: Sequence[TensorSpec], seqs: Sequence[int], totals: Sequence[Totals]
    ) -> None:
        """Add metadata rows."""
        self.add_batch(meta_batch(specs, seqs, totals))

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows as they are, those with data as one row group."""
        self._flush()
        meta = pc.equal(batch.column("nnz"), 0)
        data = batch.filter(pc.invert(meta)) if pc.any(meta).as_py() else batch
        if data.num_rows:
            self._put_data(in_order(data))
        if data.num_rows < batch.num_rows:
            self._metas.append(widen(batch.filter(meta), self.schema))
            if sum(rows.nbytes for rows in self._metas) > ROW_GROUP_BYTES:
                self._close()

    def finish(self) -> list[DataFile]:
        """Write what is left and return all files."""
        self._flush()
        self._close()
        return self.files

    def abort(self) -> None:
        """Delete every file that was written and that the log does not name."""
        if self._file is not None:
            self._file.abort()
        discard(self.storage, [file.path for file in self.files])
        self._file, self.files, self._rows, self._metas = None, [], [], []

    def _flush(self) -> None:
        if self._rows:
            specs, seqs, encoded = zip(*self._rows, strict=True)
            rows = data_table(specs, seqs, encoded)
            for name, value in self.extras.items():
                rows = rows.append_column(
                    self.schema.field(name), pa.repeat(value, len(self._rows))
                )
            self._put(rows, Statistics.of_encoded(specs, seqs, encoded))
        self._rows, self._pending = [], 0

    def _put_data(self, rows: pa.RecordBatch) -> None:
        ids, seqs = rows.column("id"), rows.column("seq")
        if (ids[0].as_py(), seqs[0].as_py()) < self._last or self._written >= self.file_bytes:
            self._close()
        self._last = ids[-1].as_py(), seqs[-1].as_py()
        self._put(pa.Table.from_batches([rows]), Statistics.of(rows))

    def _put(self, rows: pa.Table, statistics: Statistics) -> None:
        if self._file is None:
            self._groups = []
            self._written = 0
            self._file = ParquetOutput(
                self.storage,
                f"{PART}{self.mark}{uuid.uuid4()}.parquet",
                self.schema,
                # Payloads are compressed already, and are read where they lie. For columns of a few numbers a new
                # compressor of zstd takes longer than all else, to write and to read, and saves no more than Snappy.
                compression=dict.fromkeys(_PACKED, "snappy") | {"attrs": "zstd"},
                use_dictionary=list(_STRINGS),
                write_statistics=list(BOUNDED),
                # Page size is looked at only after this many rows; a payload row may be megabytes.
                write_batch_size=8,
            )
        rows = widen(rows, self.schema)
        self._file.write(rows)
        self._groups.append(statistics)
        self._written += rows.nbytes

    def _close(self) -> None:
        self._last = ("", -1)
        if self._metas:
            metas, self._metas = in_order(pa.concat_batches(self._metas)), []
            self._put(pa.Table.from_batches([metas]), Statistics.of(metas))
        if self._file is not None:
            size = self._file.close(bounds=bounds_of(self._groups))
            stats = Statistics.all_of(self._groups).to_json()
            self.files.append(DataFile(self._file.name, size, stats))
            self._file = None


def widen(rows: Rows, schema: pa.Schema) -> Rows:
    """Return a batch, or a table, with the columns of `schema`, null where it has none."""
    if rows.schema == schema:
        return rows
    have = set(rows.schema.names)
    columns = [
        rows.column(f.name).cast(f.type) if f.name in have else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return type(rows).from_arrays(columns, schema=schema)
