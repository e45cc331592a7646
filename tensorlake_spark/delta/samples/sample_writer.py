"""Samples -> Parquet files: streamed, in row groups that a random read wants."""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer_checksum import SealedOutput
from tensorlake_spark.delta.log.data_file import PART, DataFile, discard
from tensorlake_spark.delta.log.properties import FILE_BYTES, ROW_GROUP_BYTES
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn, leaf_columns
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.threads import Behind

SORTED = "samples-"
"""What the names of our data files begin with. Their rows are in the order of their numbers; those of others need not be."""

GROUP_ROWS = 1 << 16
"""A row group has no more rows, however small they are."""

WAITING = 16 << 20
"""Bytes of samples that may wait to be written, about."""

_LONGEST_BOUND = 32  # characters of a text in the log: Delta's own limit


class SampleWriter:
    """Writes samples to new data files of a table, none of which any commit names yet.

    It writes in a thread of its own, while the caller makes the next samples. Memory is bounded by these, by a row
    group and by `WAITING`. As a context manager it deletes what it wrote when an error leaves it.

    Parameters
    ----------
    storage : Storage
        The table.
    schema : pyarrow.Schema
        Its columns.
    file_bytes, row_group_bytes : int
        Target sizes in bytes.
    mark : str
        What the names of its files begin with, so that others find them.
    in_order : bool
        Whether samples come in the order of their numbers.
    """

    def __init__(
        self,
        storage: Storage,
        schema: pa.Schema,
        file_bytes: int = FILE_BYTES,
        row_group_bytes: int = ROW_GROUP_BYTES,
        mark: str = "",
        in_order: bool = True,
    ) -> None:
        self.storage = storage
        self.schema = schema
        self._prefix = SORTED if in_order else PART
        self.file_bytes = file_bytes
        self.row_group_bytes = row_group_bytes
        self.mark = mark
        self.files: list[DataFile] = []
        self._leaves = leaf_columns(schema)
        self._pending: list[pa.Table] = []
        self._pending_bytes = self._pending_rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._sink: Any = None
        self._name = ""
        self._written = 0
        self._bounds: dict[tuple[str, ...], Bounds] = {}
        self._rows = 0
        self._behind = Behind(WAITING)

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()

    def add(self, rows: pa.Table) -> None:
        """Add samples, of the writer's schema; what went wrong with earlier ones is raised here, or by `finish`."""
        self._behind.do(partial(self._add, rows), rows.nbytes)

    def _add(self, rows: pa.Table) -> None:
        start = 0
        while start < rows.num_rows:
            room = self.row_group_bytes - self._pending_bytes
            taken = _rows_within(rows, start, room, GROUP_ROWS - self._pending_rows)
            if not taken and self._pending:
                self._flush()
                continue
            taken = max(taken, 1)
            piece = rows.slice(start, taken)
            self._pending.append(piece)
            self._pending_bytes += piece.nbytes
            self._pending_rows += taken
            start += taken
            if start < rows.num_rows:
                self._flush()

    def finish(self) -> list[DataFile]:
        """Write what is left and return all files."""
        self._behind.finish()
        self._flush()
        self._close()
        return self.files

    def abort(self) -> None:
        """Delete every file that was written and that the log does not name."""
        self._behind.stop()
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):  # the store may be why we are here
                self._writer.close()
            with suppress(OSError, pa.ArrowException):
                self._sink.close()
            with suppress(OSError, pa.ArrowException):
                self.storage.delete(self._name)
        discard(self.storage, [file.path for file in self.files])
        self._writer, self.files, self._pending = None, [], []

    def _flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0
        with reaching(self.storage):
            if self._writer is None:
                self._open()
            assert self._writer is not None  # nosec B101 # for mypy
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        for leaf in self._leaves:
            if leaf.is_bounded:
                self._bounds[leaf.parts] = Bounds.of(leaf_of(rows, leaf)).joined(
                    self._bounds.get(leaf.parts)
                )
        self._rows += rows.num_rows
        self._written += rows.nbytes
        if self._written >= self.file_bytes:
            self._close()

    def _open(self) -> None:
        self._name = f"{self._prefix}{self.mark}{uuid.uuid4()}.parquet"
        self._sink = SealedOutput(self.storage.open_output(self._name))
        self._bounds, self._rows, self._written = {}, 0, 0
        packed = [leaf.path for leaf in self._leaves if not leaf.is_payload]
        self._writer = pq.ParquetWriter(
            self._sink.stream,
            self.schema,
            # Media are compressed already, and are read where they lie.
            compression=dict.fromkeys(packed, "zstd") or "none",
            # Numbers are smaller without one, once they are packed.
            use_dictionary=[leaf.path for leaf in self._leaves if pa.types.is_string(leaf.type)],
            write_statistics=[leaf.path for leaf in self._leaves if leaf.is_bounded],
            # Page size is looked at only after this many rows; a sample may be megabytes.
            write_batch_size=64,
            data_page_size=1 << 20,
            store_schema=False,
        )

    def _close(self) -> None:
        if self._writer is None:
            return
        with reaching(self.storage):
            self._sink.keep_footer()
            self._writer.close()
            self._sink.close()
        self._writer = None
        self.files.append(DataFile(self._name, self._sink.tell(), self._statistics()))

    def _statistics(self) -> str:
        """Return what the log says of the file."""
        said: dict[str, Any] = {
            "numRecords": self._rows,
            "minValues": {},
            "maxValues": {},
            "nullCount": {},
        }
        for parts, bounds in self._bounds.items():
            put_bound(said["minValues"], parts, _said(bounds.least, below=True))
            put_bound(said["maxValues"], parts, _said(bounds.most, below=False))
            put_bound(said["nullCount"], parts, bounds.nulls)
        return json.dumps(said)


def discard_marked(storage: Storage, mark: str) -> None:
    """Delete files of a job that no commit names; one that the store does not give up is for vacuum."""
    with suppress(TensorLakeError, OSError):
        names = [info.base_name for info in storage.files_in("")]
        discard(storage, [name for name in names if name.startswith(f"{SORTED}{mark}")])


class Bounds:
    """Bounds of a leaf column, None where they are not known, and how many nulls it has."""

    __slots__ = ("exact", "least", "most", "nulls")

    def __init__(self, least: Any, most: Any, nulls: int, exact: bool = True) -> None:
        self.least, self.most, self.nulls = least, most, nulls
        self.exact = exact  # False where values have no order, as NaN

    @classmethod
    def of(cls, column: pa.Array | pa.ChunkedArray) -> Bounds:
        """Return the bounds of some values."""
        if column.null_count == len(column):
            return cls(None, None, column.null_count)
        # Spark takes NaN for greater than all, Arrow leaves it out: say nothing.
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            return cls(None, None, column.null_count, exact=False)
        found = pc.min_max(column)
        return cls(found["min"].as_py(), found["max"].as_py(), column.null_count)

    def joined(self, other: Bounds | None) -> Bounds:
        """Return the bounds of these values and others."""
        if other is None:
            return self
        nulls = self.nulls + other.nulls
        if not (self.exact and other.exact):
            return Bounds(None, None, nulls, exact=False)
        if self.least is None or other.least is None:
            known = other if self.least is None else self
            return Bounds(known.least, known.most, nulls)
        return Bounds(min(self.least, other.least), max(self.most, other.most), nulls)


def _said(value: Any, below: bool) -> Any:
    """Return a bound as the log has it, None where it has none."""
    if isinstance(value, str) and len(value) > _LONGEST_BOUND:
        return value[:_LONGEST_BOUND] if below else None
    if isinstance(value, dt.datetime):
        return time_bound(value, is_most=not below)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def time_bound(value: dt.datetime, is_most: bool) -> str:
    """Return a bound of times as the log has it: in milliseconds, so that it may be wider, never narrower."""
    moved = value + dt.timedelta(microseconds=999 if is_most else 0)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def put_bound(tree: dict[str, Any], parts: Sequence[str], value: Any) -> None:
    """Put what is known of a leaf column where the log has it, in the objects of the structs around it."""
    if value is None:
        return
    for part in parts[:-1]:
        tree = tree.setdefault(part, {})
    tree[parts[-1]] = value


def leaf_of(rows: pa.Table, leaf: LeafColumn) -> pa.Array | pa.ChunkedArray:
    """Return a leaf column of rows; null where a struct around it is."""
    column = rows.column(leaf.parts[0])
    if column.num_chunks != 1:
        return pc.struct_field(column, list(leaf.parts[1:])) if len(leaf.parts) > 1 else column
    found = column.chunk(0)
    for at, part in enumerate(leaf.parts[1:], 1):
        if found.null_count:  # what lies under a null is null
            return pc.struct_field(found, list(leaf.parts[at:]))
        found = found.field(part)
    return found


def _rows_within(rows: pa.Table, start: int, nbytes: int, most: int) -> int:
    """Return how many rows from `start` on have at most so many bytes."""
    low, high = 0, min(most, int(rows.num_rows) - start)
    if high <= 0:
        return 0
    if rows.slice(start, high).nbytes <= nbytes:
        return high
    while low < high - 1:  # low fits, high does not
        middle = (low + high) // 2
        if rows.slice(start, middle).nbytes <= nbytes:
            low = middle
        else:
            high = middle
    return low
