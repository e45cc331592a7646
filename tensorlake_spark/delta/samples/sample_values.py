"""Payloads of samples where they lie in a data file: media are read without a copy."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.files.payload import (
    distant_spans,
    nested_spans,
    plain_column,
    present_spans,
)
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples import leaf_columns
from tensorlake_spark.delta.samples.leaf_columns import LeafColumn, SmallColumns
from tensorlake_spark.delta.store.footer_index import schema_of
from tensorlake_spark.delta.store.memory_maps.mapped_pages import give_back_pages
from tensorlake_spark.delta.store.payload_lengths import PREFIX, ends_of, unpacked_lengths
from tensorlake_spark.delta.store.ranges import Part, PartFile, joined
from tensorlake_spark.delta.store.storage import open_here, reaching
from tensorlake_spark.errors import CorruptDataError, MissingDataError
from tensorlake_spark.rows.binary_views import without_views
from tensorlake_spark.threads import io_threads

Array = np.ndarray[Any, Any]

_GAP = 64 << 10  # bytes that are read and not needed rather than asking twice
_WALKED = 1 << 20  # bytes a value: where values are larger, they are not read to find them
_FEW = 4  # a row group is read as a whole where fewer times as many bytes are wanted of it
_MOST_FEW = 64  # payloads that are read one by one


class SampleFile:
    """A data file of samples: its row groups, and where the payloads of each lie. Files never change.

    Parameters
    ----------
    snapshot : Snapshot
        A version of the table that has the file.
    path : str
        Its path in the table.
    small : SmallColumns, optional
        Keeps columns of it, and of other files.
    """

    records = -1  # its rows by the log; below 0 where it does not say

    def __init__(self, snapshot: Snapshot, path: str, small: SmallColumns | None = None) -> None:
        self._snapshot = snapshot
        self.path = path
        self._spans: dict[tuple[int, str], tuple[Array, Array, Array]] = {}
        self._group_spans: dict[tuple[int, tuple[str, ...]], list[tuple[int, int]]] = {}
        self._small = SmallColumns() if small is None else small
        self._sizes: dict[tuple[str, ...], int] = {}
        self._lengths: dict[str, Array | None] = {}
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._metadata: pq.FileMetaData | None = None

    @property
    def is_read_by_groups(self) -> bool:
        """Whether row groups are kept as they are fetched, so that no column of the whole file is read."""
        remote = self._snapshot.remote
        return remote is not None and remote.is_kept

    @property
    def is_far(self) -> bool:
        """Whether each read of it waits for an object store."""
        remote = self._snapshot.remote
        return remote is not None and not remote.is_kept

    @property
    def is_opened(self) -> bool:
        """Whether its footer was read."""
        return self._metadata is not None

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        if self._metadata is None:
            # A lock of this file: a cached_property of Python 3.11 has one lock for the footers of all files.
            with self._reading:
                if self._metadata is None:
                    self._metadata = self._read_metadata()
        return self._metadata

    @metadata.setter
    def metadata(self, known: pq.FileMetaData) -> None:
        self._metadata = known

    def _read_metadata(self) -> pq.FileMetaData:
        storage, remote = self._snapshot.storage, self._snapshot.remote
        tail = None if remote is None else partial(remote.tail, self.path)
        with reaching(storage):
            try:
                return read_footer(storage, self.path, tail, self.records)
            except FileNotFoundError as error:
                raise MissingDataError(
                    f"the data file {storage.file_uri(self.path)} is gone; a vacuum deleted it, or somebody did: open "
                    "a newer version of the dataset, or see what ds.check() of the newest says"
                ) from error
            except (pa.ArrowInvalid, CorruptDataError) as error:
                raise CorruptDataError(
                    f"the data file {storage.file_uri(self.path)} cannot be read: {error}"
                ) from error

    @cached_property
    def starts(self) -> Array:
        """The number of the first row of each row group, and after the last one all rows."""
        rows = [self.metadata.row_group(g).num_rows for g in range(self.metadata.num_row_groups)]
        return np.concatenate([[0], np.cumsum(np.array(rows, np.int64))]).astype(np.int64)

    @cached_property
    def _place(self) -> dict[str, int]:
        return leaf_columns.places_in(schema_of(self.metadata))

    def _named(self, columns: Sequence[str]) -> list[str]:
        schema = schema_of(self.metadata)
        return [schema.column(self._place[name]).path for name in columns]

    def has(self, leaf: LeafColumn) -> bool:
        """Whether the file has a column: those that were added to the table later are not in it."""
        return leaf.path in self._place

    def groups_of(self, rows: Array) -> Array:
        """Return the row group of each of some rows."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    @cached_property
    def _firsts(self) -> list[int]:
        return self.starts.tolist()  # type: ignore[no-any-return]

    def place_of(self, row: int) -> tuple[int, int]:
        """Return the row group of one row, and its place there."""
        group = bisect_right(self._firsts, row) - 1
        return group, row - self._firsts[group]

    def table(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return leaf columns of row groups, as Arrow reads them."""
        remote = self._snapshot.remote
        if remote is not None and columns and len(groups):
            # Arrow asks for the size first, and then for few column chunks at a time.
            spans = self.spans_of(groups, columns)
            parts = map(self.part, spans) if len(spans) == 1 else io_threads().map(self.part, spans)
            return self.table_in(list(parts), groups, columns)
        with self._snapshot.storage.open_parquet(self.path, self.metadata) as file:
            return without_views(file.read_row_groups([*groups], columns=self._named(columns)))

    def part(self, span: tuple[int, int]) -> Part:
        """Return some bytes of a file in an object store."""
        remote, (start, stop) = self._snapshot.remote, span
        assert remote is not None  # nosec B101 # for mypy
        return Part(remote.read(self.path, start, stop - start), start)

    def table_in(
        self, parts: Sequence[Part], groups: Sequence[int], columns: Sequence[str]
    ) -> pa.Table:
        """Return leaf columns of row groups from the parts of the file that have them."""
        file = open_here(PartFile(joined(parts)), self.metadata)
        return without_views(file.read_row_groups([*groups], columns=self._named(columns)))

    def spans_of(self, groups: Sequence[int], columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return where leaf columns of row groups lie, without the large gaps between them."""
        out: list[tuple[int, int]] = []
        for group in map(self.metadata.row_group, groups):
            for place in sorted(self._place[name] for name in columns):
                chunk = group.column(place)
                start = int(chunk.data_page_offset)
                if chunk.dictionary_page_offset is not None:
                    start = min(start, int(chunk.dictionary_page_offset))
                stop = start + int(chunk.total_compressed_size)
                if out and 0 <= start - out[-1][1] <= _GAP:
                    out[-1] = out[-1][0], stop
                else:
                    out.append((start, stop))
        return sorted(out)

    def spans_of_group(self, group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Return `spans_of` of one row group, kept for the next time."""
        key = (group, tuple(columns))
        found = self._group_spans.get(key)
        if found is None:
            found = self._group_spans[key] = self.spans_of([group], columns)
        return found

    def size_of(self, columns: Sequence[str]) -> int:
        """Return the bytes of leaf columns when they are read."""
        columns = tuple(columns)
        found = self._sizes.get(columns)
        if found is None:
            found = self._sizes[columns] = self._size(columns)
        return found

    def _size(self, columns: Sequence[str]) -> int:
        places = [self._place[name] for name in columns]
        groups = range(self.metadata.num_row_groups)
        if len(groups) > 64:  # an estimate by some of them will do
            chosen = groups[:: len(groups) // 32]
            return self._sum(places, chosen) * len(groups) // len(chosen)
        return self._sum(places, groups)

    def _sum(self, places: list[int], groups: range) -> int:
        chunks = (self.metadata.row_group(g).column(p) for g in groups for p in places)
        return sum(int(chunk.total_uncompressed_size) for chunk in chunks)

    def bytes_of(self, groups: Sequence[int], columns: Sequence[str]) -> int:
        """Return the bytes of leaf columns in some row groups as they lie in the file; 0 for those that it has not."""
        places = [self._place[name] for name in columns if name in self._place]
        chunks = (self.metadata.row_group(g).column(p) for g in groups for p in places)
        return sum(int(chunk.total_compressed_size) for chunk in chunks)

    def small(self, columns: tuple[str, ...]) -> pa.Table:
        """Return leaf columns of the whole file that are no payload; read once, then kept."""
        found = self._small.get(self.path, columns)
        if found is None:
            found = self.table(range(self.metadata.num_row_groups), columns)
            found = self.keep_small(columns, found)
        return found

    def has_small(self, columns: tuple[str, ...]) -> bool:
        """Whether `small` returns leaf columns without reading them."""
        return self._small.get(self.path, columns) is not None

    def keep_small(self, columns: tuple[str, ...], table: pa.Table) -> pa.Table:
        """Keep leaf columns of the whole file for `small`, and return them."""
        whole = table.combine_chunks()
        self._small.keep(self.path, columns, whole)
        return whole

    def chunk(self, group: int, leaf: LeafColumn) -> pq.ColumnChunkMetaData | None:
        """Return a column chunk whose values lie in the file as they are, None if Arrow has to read it."""
        place = self._place.get(leaf.path)
        if place is None or leaf.repeated:
            return None
        return plain_column(self.metadata.row_group(group), place)

    def statistics(self, group: int, leaf: LeafColumn) -> pq.Statistics | None:
        """Return what the footer says of the values of a column chunk, None where it says nothing."""
        return self.metadata.row_group(group).column(self._place[leaf.path]).statistics

    def start_of(self, group: int, path: str) -> int:
        """Return where the pages of a column chunk begin."""
        return int(self.metadata.row_group(group).column(self._place[path]).data_page_offset)

    def near(
        self, group: int, leaf: LeafColumn, chunk: pq.ColumnChunkMetaData
    ) -> tuple[Array, Array] | None:
        """Return where each payload of a row group ends in the file, and its length, None if the footer has no lengths.

        Nobody has compared them with what is there: before a payload stands its length. It is always None for files
        that are mapped, and where row groups are kept.
        """
        remote, size = self._snapshot.remote, int(chunk.total_compressed_size)
        if remote is None or remote.is_kept or size < _FEW * _GAP:
            return None
        if leaf.path not in self._lengths:
            self._lengths[leaf.path] = unpacked_lengths(
                self.metadata.metadata, leaf.path, int(self.starts[-1])
            )
        lengths = self._lengths[leaf.path]
        if lengths is None:
            return None
        here = lengths[int(self.starts[group]) : int(self.starts[group + 1])]
        ends = ends_of(here, size)
        return None if ends is None else (int(chunk.data_page_offset) + ends, here)

    def few(
        self, leaf: LeafColumn, chunks: Sequence[Any], groups: Array, rows: Array
    ) -> list[memoryview] | None:
        """Return payloads of some rows, each by a request of its own, all at once.

        Parameters
        ----------
        leaf : LeafColumn
            The column.
        chunks : sequence of pyarrow.parquet.ColumnChunkMetaData
            As `chunk` returned them for the row groups.
        groups, rows : int64 ndarray
            The row groups, in order, and rows in them.

        Returns
        -------
        list of memoryview, or None
            None if the footer does not tell where they are, or if their row groups have not much more bytes.
        """
        if self._snapshot.remote is None or len(rows) > _MOST_FEW:
            return None
        known = {
            group: self.near(group, leaf, chunk)
            for group, chunk in zip(groups.tolist(), chunks, strict=True)
        }
        spans: list[tuple[int, int]] = []
        for row in rows.tolist():
            group, at = self.place_of(row)
            found = known[group]
            if found is None:
                return None
            ends, lengths = found
            length = int(lengths[at])
            spans.append((int(ends[at]) - length - PREFIX, length + PREFIX))
        whole = sum(int(chunk.total_compressed_size) for chunk in chunks)
        if _FEW * sum(size for _, size in spans) > whole:
            return None
        read = [*io_threads().map(lambda span: self.read(*span), spans)]
        values = [data[PREFIX:] for data in read]
        said = [int.from_bytes(data[:PREFIX], "little") for data in read]
        return values if said == [len(value) for value in values] else None

    def region(self, chunk: pq.ColumnChunkMetaData) -> pa.Buffer:
        """Return the bytes of a column chunk: a part of the file's map, or what one request gives."""
        start, size = int(chunk.data_page_offset), int(chunk.total_compressed_size)
        return pa.py_buffer(self.read(start, size))

    def regions(self, chunks: Sequence[pq.ColumnChunkMetaData]) -> list[pa.Buffer]:
        """Return the bytes of column chunks; those of an object store are asked for all at once."""
        if self._snapshot.remote is None or len(chunks) < 2:
            return [self.region(chunk) for chunk in chunks]
        return [*io_threads().map(self.region, chunks)]

    def give_back(self, start: int, nbytes: int) -> None:
        """Say that a part of the file's map is not needed now; nothing is done where the file is not mapped."""
        if self._snapshot.remote is not None:
            return
        file = self._snapshot.maps.map(self._snapshot.storage, self.path)
        if file is not None and start + nbytes <= file.size:
            give_back_pages(file.address + start, nbytes)

    def known_spans(self, group: int, leaf: LeafColumn) -> tuple[Array, Array, Array] | None:
        """Return what `spans` does if it is known already."""
        with self._lock:
            return self._spans.get((group, leaf.path))

    def spans(
        self, group: int, leaf: LeafColumn, chunk: pq.ColumnChunkMetaData, region: pa.Buffer
    ) -> tuple[Array, Array, Array]:
        """Return for each value of a column chunk where it begins in it, its length, and its definition level."""
        key = (group, leaf.path)
        with self._lock:
            found = self._spans.get(key)
        if found is None:
            data = memoryview(region).cast("B")
            present = present_spans(data, chunk.num_values, leaf.depth)
            if present is None:
                return self._keep(group, leaf, *nested_spans(data, chunk.num_values, leaf.depth))
            found = *present, np.full(len(present[0]), leaf.depth, np.int8)
            with self._lock:
                self._spans[key] = found
        return found

    def place(self, row: int, leaf: LeafColumn) -> tuple[int, int] | None:
        """Return where in the file one payload begins, and its bytes; None if it does not lie there as it is.

        A length of -1 is a null. A payload in an object store is not read for it, if the group has large ones.
        """
        return self._found(row, leaf)[0]

    def _found(
        self, row: int, leaf: LeafColumn
    ) -> tuple[tuple[int, int] | None, tuple[int, pa.Buffer] | None]:
        """Return what `place` does, and the column chunk with its place if it was read for that."""
        group = int(self.groups_of(np.int64(row)))
        chunk = self.chunk(group, leaf)
        if chunk is None:
            return None, None
        start, read = int(chunk.data_page_offset), None
        known = self._spans.get((group, leaf.path))
        if known is None:
            remote, size = self._snapshot.remote, int(chunk.total_compressed_size)
            if remote is not None and size > _WALKED * int(chunk.num_values):
                known = self._walked(group, leaf, chunk)
            else:
                read = start, self.region(chunk)
                known = self.spans(group, leaf, chunk, read[1])
        at = row - int(self.starts[group])
        return (start + int(known[0][at]), int(known[1][at])), read

    def read(self, start: int, nbytes: int) -> memoryview:
        """Return bytes of the file: a part of its map, or what one request gives."""
        remote = self._snapshot.remote
        if remote is not None:
            return memoryview(remote.read(self.path, start, nbytes)).cast("B")
        file = self._snapshot.maps.map(self._snapshot.storage, self.path)
        if file is None:
            with self._snapshot.storage.open_input(self.path) as opened:
                return memoryview(opened.read_at(nbytes, start)).cast("B")
        if start + nbytes > file.size:
            raise CorruptDataError(
                f"{self._snapshot.storage.file_uri(self.path)} has {file.size} bytes, and a sample ends at "
                f"{start + nbytes}"
            )
        return memoryview(file.slice(start, nbytes)).cast("B")

    def value(self, row: int, leaf: LeafColumn) -> memoryview | None:
        """Return one payload where it lies, None for a null.

        Raises
        ------
        CorruptDataError
            If the pages of its row group do not add up.
        """
        if self._snapshot.remote is not None:
            group, _ = self.place_of(row)
            chunk = self.chunk(group, leaf)
            if chunk is not None and (group, leaf.path) not in self._spans:
                few = self.few(leaf, [chunk], np.array([group]), np.array([row]))
                if few is not None:
                    return few[0]
        found, region = self._found(row, leaf)
        if found is not None:
            start, length = found
            if region is not None and length > 0:
                base = int(start) - region[0]
                return memoryview(region[1]).cast("B")[base : base + length]
            return None if length < 0 else self.read(start, length) if length else memoryview(b"")
        if not self.has(leaf):
            return None
        group = int(self.groups_of(np.int64(row)))
        at = row - int(self.starts[group])
        read = self.table([group], [leaf.path]).slice(at, 1).column(leaf.parts[0])[0]
        for part in leaf.parts[1:]:
            read = None if read is None or not read.is_valid else read[part]
        return None if read is None or not read.is_valid else memoryview(read.as_buffer())

    def _walked(
        self, group: int, leaf: LeafColumn, chunk: pq.ColumnChunkMetaData
    ) -> tuple[Array, Array, Array]:
        """Return what `spans` does, by small requests between the values."""
        start, size = int(chunk.data_page_offset), int(chunk.total_compressed_size)
        spans, levels = distant_spans(
            lambda at, nbytes: self.read(start + at, nbytes), size, chunk.num_values, leaf.depth
        )
        return self._keep(group, leaf, spans, levels)

    def _keep(
        self, group: int, leaf: LeafColumn, spans: list[tuple[int, int] | None], levels: list[int]
    ) -> tuple[Array, Array, Array]:
        both = np.array([(0, -1) if span is None else span for span in spans], np.int64)
        both = both.reshape(-1, 2)
        found = both[:, 0], both[:, 1], np.array(levels, np.int8)
        with self._lock:
            self._spans[group, leaf.path] = found
        return found
