"""Samples -> Parquet files: streamed, in row groups that a random read wants."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.log.data_file import PART, DataFile, discard
from tensorlake_spark.delta.log.properties import FILE_BYTES, ROW_GROUP_BYTES
from tensorlake_spark.delta.samples.bounds import FileBounds, leaf_of
from tensorlake_spark.delta.samples.leaf_columns import (
    LeafColumn,
    has_views,
    leaf_columns,
    with_views,
)
from tensorlake_spark.delta.store.parquet_output import ParquetOutput
from tensorlake_spark.delta.store.payload_lengths import KEY, NULL, packed_lengths
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.rows.binary_views import lengths_of
from tensorlake_spark.rows.row_sizes import row_ends
from tensorlake_spark.threads import Behind

Array = np.ndarray[Any, Any]

SORTED = "samples-"
"""Names of our data files begin so. Their rows are in the order of their numbers; those of others may not be."""

GROUP_ROWS = 1 << 16
"""A row group has no more rows, however small they are."""

GROUPS_AT_ONCE = 4
"""Row groups that are made at once, and written by one call unless they have views.

Arrow needs the interpreter only between calls, and others do meanwhile.
"""

WAITING = 16 << 20
"""Bytes of samples that may wait to be written, about."""

_PAGE_ROWS = 64, 1024
"""Rows after which Arrow looks at the size of a page: the least, and the most where samples are small."""

_PAGE_BYTES = 1 << 20  # of these rows, and of a page, about
_ONE_PAGE = 1 << 30  # as a size of pages, more than a row group has

_LEAST_PAYLOAD = 4 << 10
"""From this size of a sample on, the footer has the lengths of payloads; for smaller ones it would be too large."""

_UNEVEN = 1.25  # of the bytes of a row group, that it may have where all are of as many rows


class SampleWriter:
    """Writes samples to new data files of a table, none of which any commit names yet.

    A thread of its own writes, while the caller makes the next samples. Memory is bounded by these, by
    `GROUPS_AT_ONCE` row groups and by `WAITING`. As a context manager it deletes what it wrote when an error leaves it.

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

    Attributes
    ----------
    given_bytes : int
        Bytes of all samples that were added.
    files : list of DataFile
        Those that are whole.
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
        self.given_bytes = 0
        self.files: list[DataFile] = []
        self._leaves = leaf_columns(schema)
        self._pending: list[tuple[pa.Table, Array]] = []  # with the bytes of each row
        self._pending_bytes = 0
        self._file: ParquetOutput | None = None  # that is being written
        self._open: list[ParquetOutput] = []  # all that are not whole
        self._form, self._has_views = schema, False  # of its rows
        self._written = 0
        self._bounds = FileBounds(self._leaves)
        self._payloads = [leaf for leaf in self._leaves if leaf.is_payload and not leaf.repeated]
        self._lengths: dict[
            LeafColumn, list[Array]
        ] = {}  # of the payloads of the file, where it gets them
        self._behind = Behind(WAITING)

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()

    def add(self, rows: pa.Table) -> None:
        """Add samples, of the writer's schema; what went wrong with earlier ones is raised here, or by `finish`."""
        ends = row_ends(rows)
        self.given_bytes += int(ends[-1])
        start = 0
        while start < rows.num_rows:
            # The first one is written at once, so that writing begins while the next samples are made.
            groups = GROUPS_AT_ONCE if self._open or self.files else 1
            most = min(groups * self.row_group_bytes, self.file_bytes)
            room = ends[start] + most - self._pending_bytes
            stop = int(np.searchsorted(ends, room, side="right")) - 1
            if stop <= start and self._pending:
                self._flush()
                continue
            stop = max(stop, start + 1)
            self._pending.append((rows.slice(start, stop - start), np.diff(ends[start : stop + 1])))
            self._pending_bytes += int(ends[stop] - ends[start])
            start = stop
            if start < rows.num_rows:
                self._flush()

    def finish(self) -> list[DataFile]:
        """Write what is left and return all files."""
        self._flush()
        self._close()
        self._behind.finish()
        return self.files

    def abort(self) -> None:
        """Delete every file that was written and that the log does not name."""
        self._behind.stop()
        for file in self._open:
            file.abort()
        discard(self.storage, [file.path for file in self.files])
        self._file, self._open, self.files, self._pending = None, [], [], []

    def _flush(self) -> None:
        if not self._pending:
            return
        pieces: Sequence[pa.Table]
        pieces, sizes = zip(*self._pending)
        ends = np.concatenate([[0], *sizes]).cumsum()
        self._pending, self._pending_bytes = [], 0
        if self._file is None:
            self._file = self._opened(int(ends[-1]) // (len(ends) - 1))
            self._open.append(self._file)
        form = self._form
        pieces = [piece if piece.schema.equals(form) else piece.cast(form) for piece in pieces]
        rows = pa.concat_tables(pieces)
        for part, most in _groups(rows, ends, self.row_group_bytes):
            step = most if self._has_views else part.num_rows
            for start in range(0, part.num_rows, step):
                some = part.slice(start, step)
                some = _in_one_piece(some) if self._has_views else some
                nbytes = int(ends[-1]) * some.num_rows // len(rows)
                self._behind.do(partial(self._file.write, some, most), nbytes)
        for piece in pieces:
            self._bounds.add(piece)
            for leaf, lengths in self._lengths.items():
                lengths += _lengths_of(leaf_of(piece, leaf))
        self._written += int(ends[-1])
        if self._written >= self.file_bytes:
            self._close()

    def _opened(self, row_bytes: int) -> ParquetOutput:
        """Open a new file for rows of about so many bytes."""
        least, most = _PAGE_ROWS
        self._bounds, self._written = FileBounds(self._leaves), 0
        has_lengths = row_bytes >= _LEAST_PAYLOAD
        self._form = with_views(self.schema) if has_lengths else self.schema
        self._has_views = self._form != self.schema
        self._lengths = {leaf: [] for leaf in self._payloads} if has_lengths else {}
        packed = [leaf.path for leaf in self._leaves if not leaf.is_payload]
        return ParquetOutput(
            self.storage,
            f"{self._prefix}{self.mark}{uuid.uuid4()}.parquet",
            self._form,
            # Media are compressed already, and are read where they lie.
            compression=dict.fromkeys(packed, "zstd") or "none",
            # Numbers are smaller without one, once they are packed.
            use_dictionary=[leaf.path for leaf in self._leaves if pa.types.is_string(leaf.type)],
            write_statistics=[leaf.path for leaf in self._leaves if leaf.is_bounded],
            # Lengths of payloads tell where these are in a page that is the only one of its row group.
            data_page_size=_ONE_PAGE if has_lengths else _PAGE_BYTES,
            # Of views in structs Arrow writes no more than one batch.
            write_batch_size=GROUP_ROWS
            if self._has_views
            else min(max(least, _PAGE_BYTES // max(1, row_bytes)), most),
        )

    def _close(self) -> None:
        if self._file is not None:
            said, bounds = self._said(), self._bounds.to_json()
            self._behind.do(partial(self._closed, self._file, said, bounds), 0)
            self._file = None

    def _closed(self, file: ParquetOutput, said: dict[str, str], bounds: str) -> None:
        self.files.append(DataFile(file.name, file.close(said), bounds))
        self._open.remove(file)

    def _said(self) -> dict[str, str]:
        """Return what the footer says of payloads that are large enough."""
        found = {leaf.path: np.concatenate(lengths) for leaf, lengths in self._lengths.items()}
        return {
            f"{KEY}{path}": packed_lengths(lengths)
            for path, lengths in found.items()
            if lengths[lengths != NULL].sum() >= _LEAST_PAYLOAD * len(lengths)
        }


def _groups(rows: pa.Table, ends: Array, nbytes: int) -> Iterator[tuple[pa.Table, int]]:
    """Yield parts of some rows, and of how many rows the row groups are that each is written as.

    Rows that are about alike are one part. Otherwise a row group is cut where it would have more than `nbytes`.
    """
    count = rows.num_rows
    groups = max(-(-int(ends[-1]) // nbytes), -(-count // GROUP_ROWS), 1)
    each = -(-count // groups)
    stops = np.append(np.arange(each, count, each), count)
    if np.diff(ends[stops], prepend=0).max() <= nbytes * _UNEVEN:
        yield rows, each
        return
    start = 0
    while start < count:
        stop = int(np.searchsorted(ends, ends[start] + nbytes, side="right")) - 1
        stop = min(max(stop, start + 1), start + GROUP_ROWS)
        yield rows.slice(start, stop - start), stop - start
        start = stop


def _in_one_piece(rows: pa.Table) -> pa.Table:
    """Return a row group, each column with views as one array that begins with its first value.

    Arrow writes no other views in structs. One array also takes half as long as two.
    """
    columns = [pa.concat_arrays(c.chunks) if has_views(c.type) else c for c in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _lengths_of(values: pa.Array | pa.ChunkedArray) -> list[Array]:
    """Return the lengths of payloads, which are views, by their arrays."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return [lengths_of(chunk, NULL) for chunk in chunks]


def discard_marked(storage: Storage, mark: str) -> None:
    """Delete files of a job that no commit names; one that the store does not give up is for vacuum."""
    with suppress(TensorLakeError, OSError):
        names = [info.base_name for info in storage.files_in("")]
        discard(storage, [name for name in names if name.startswith(f"{SORTED}{mark}")])
