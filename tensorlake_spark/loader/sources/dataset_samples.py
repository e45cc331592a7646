"""Columns of a dataset as samples for a loader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.samples.sample_reading import whole
from tensorlake_spark.datasets.types.schema import column_of
from tensorlake_spark.delta.store.ranges import Remote
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.loader.caching.cache_option import parse_cache
from tensorlake_spark.loader.caching.range_cache import RangeCache
from tensorlake_spark.loader.sources.batch_buffers import BatchBuffers
from tensorlake_spark.loader.sources.block_cuts import block_starts
from tensorlake_spark.loader.sources.column_reading import ColumnReading, reading_of
from tensorlake_spark.loader.sources.remote_ranges import RemoteRanges
from tensorlake_spark.loader.sources.sample_source import Array, Values
from tensorlake_spark.loader.transforms.image_transform import ImageTransform

if TYPE_CHECKING:
    from tensorlake_spark.datasets.apart.stored_parts import StoredParts
    from tensorlake_spark.delta.samples.stored_samples import StoredSamples

_KEPT = 3, 8
"""The part of the memory that keeps what was read of a remote dataset: streams of a block shuffle come back to it."""


class DatasetSamples:
    """Columns of one version of a dataset.

    Parameters
    ----------
    parts : StoredParts
        Of the version that is read, whatever is written later.
    names : sequence of str
        Columns, and ``sid``.
    transforms : mapping of str to ImageTransform
        Of columns of images.
    memory : int
        Bytes of arrays that are kept to be used again, and of a remote dataset part of that of what was read.
    cache : str, optional
        Folder and size of a cache for what is read of a remote dataset; see `parse_cache`.
    """

    def __init__(
        self,
        parts: StoredParts,
        names: Sequence[str],
        transforms: Mapping[str, ImageTransform],
        memory: int,
        cache: str | None = None,
    ) -> None:
        snapshot = parts.stored.snapshot
        self.what = f"the dataset at {snapshot.storage.uri}"
        self.version: int | None = snapshot.version
        self.names = tuple(names)
        self.parts = parts
        self._given = parts, cache
        kept = None if cache is None else RangeCache(*parse_cache(cache))
        self._ranges: RemoteRanges | None = None
        if self.is_remote:
            self._ranges = RemoteRanges(memory * _KEPT[0] // _KEPT[1], kept)
            self.parts = parts.reading_by(self._ranges.over)
        self._transforms, self._memory = dict(transforms), memory
        self._readings = [reading_of(self.parts, name, transforms.get(name)) for name in names]
        self._buffers = BatchBuffers(memory)

    def __reduce__(self) -> Any:
        parts, cache = self._given
        return DatasetSamples, (parts, self.names, self._transforms, self._memory, cache)

    def __len__(self) -> int:
        return len(self.parts.stored)

    @property
    def is_remote(self) -> bool:
        return self.parts.stored.snapshot.remote is not None

    @cached_property
    def starts(self) -> Array:
        stored = self.parts.stored
        return block_starts(stored.file_counts, np.array(stored.file_sizes, np.int64))

    @property
    def lying(self) -> Array | None:
        return self.parts.stored.lying

    @cached_property
    def sample_bytes(self) -> float:
        return max(1.0, sum(self.parts.stored.file_sizes) / max(1, len(self)))

    @cached_property
    def identity(self) -> bytes:
        return hashlib.blake2b(
            self.parts.stored.snapshot.table_id.encode() + self.starts.tobytes(), digest_size=16
        ).digest()

    def fetch(self, positions: Array) -> FetchedRows:
        return FetchedRows(self._readings, self.parts, positions, self._buffers, self._ranges)

    @property
    def reserved(self) -> float:
        """The part of a loader's memory that is used for what was read, and not made into batches yet."""
        return 0.0 if self._ranges is None else 0.5

    def draws(self) -> Mapping[str, int]:
        return {one.name: one.n_random for one in self._readings if one.n_random}

    def described(self, position: int) -> str:
        stored = self.parts.stored
        file, _ = stored.locate(np.array([position], np.int64))
        path = stored.snapshot.storage.file_uri(stored.files.paths[int(file[0])])
        return (
            f"sample {int(stored.sids[position])} of {self.what}, version {self.version}, in {path}"
        )


class FetchedRows:
    """Rows of a dataset, as they are stored.

    Parameters
    ----------
    readings : sequence of ColumnReading
        The columns.
    parts : StoredParts
        Of the dataset.
    positions : int64 ndarray
        Which samples, in any order, some perhaps twice.
    buffers : BatchBuffers
        Memory for arrays.
    ranges : RemoteRanges, optional
        Keeps what is read of a remote dataset.

    Attributes
    ----------
    hits, misses : int
        Ranges of a remote dataset that were kept, and that its store was asked for.
    """

    def __init__(
        self,
        readings: Sequence[ColumnReading],
        parts: StoredParts,
        positions: Array,
        buffers: BatchBuffers,
        ranges: RemoteRanges | None = None,
    ) -> None:
        self._readings, self._buffers = readings, buffers
        order = np.argsort(positions, kind="stable")
        self._positions = positions[order]  # files are read from front to back
        self._back = np.empty(len(order), np.int64)
        self._back[order] = np.arange(len(order))
        self.hits = self.misses = 0
        self._is_remote = ranges is not None
        if ranges is None:
            self._columns = read_columns(parts, readings, self._positions)
        else:
            self._columns = self._read(parts, ranges)

    def _read(self, parts: StoredParts, ranges: RemoteRanges) -> list[pa.Array]:
        """Read columns as copies, so that row groups are not kept for a few of their samples."""
        read: list[list[pa.Array]] = []
        for run, wanted in runs_of_ranges(parts, self._readings, self._positions, ranges.most // 2):
            with reaching(parts.stored.snapshot.storage), ranges.hold(wanted) as held:
                read.append(read_columns(parts, self._readings, run, views=False))
            self.hits, self.misses = self.hits + held.hits, self.misses + held.misses
        return [
            one[0] if len(one) == 1 else whole(pa.chunked_array(one))
            for one in zip(*read, strict=True)
        ]

    @cached_property
    def raw_nbytes(self) -> int:
        """Bytes of memory that are taken before the batch is made; 0 where files are mapped."""
        return sum(array.nbytes for array in self._columns) if self._is_remote else 0

    @cached_property
    def nbytes(self) -> int:
        return self.raw_nbytes + sum(
            reading.nbytes(array)
            for reading, array in zip(self._readings, self._columns, strict=True)
        )

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        return {
            reading.name: reading.values(
                array, self._positions, self._back, draws.get(reading.name), self._buffers
            )
            for reading, array in zip(self._readings, self._columns, strict=True)
        }


def read_columns(
    parts: StoredParts, readings: Sequence[ColumnReading], positions: Array, views: bool = True
) -> list[pa.Array]:
    """Return columns of some samples as they are stored, with the fields that are needed."""
    table = parts.stored.rows(leaves_of(parts, readings), positions, views)
    return [
        whole(
            parts.column(one.name, positions, views)
            if parts.is_apart(one.name)
            else column_of(table, one.name)
        )
        for one in readings
    ]


def leaves_of(parts: StoredParts, readings: Sequence[ColumnReading]) -> list[tuple[str, ...]]:
    """Return what is read of the dataset's own table."""
    inner = [reading for reading in readings if not parts.is_apart(reading.name)]
    return [leaf for one in inner for leaf in one.leaves]


def runs_of_ranges(
    parts: StoredParts, readings: Sequence[ColumnReading], positions: Array, most: int
) -> Iterator[tuple[Array, list[tuple[Remote, str, int, int]]]]:
    """Yield positions in runs for which a store is asked for about `most` bytes, and these ranges.

    Parameters
    ----------
    parts : StoredParts
        Of the dataset.
    readings : sequence of ColumnReading
        The columns.
    positions : int64 ndarray
        Of samples, sorted.
    most : int
        Bytes; one row group may have more.
    """
    tables = [(parts.stored, parts.stored.ranges(leaves_of(parts, readings), positions))]
    for one in readings:
        table = parts.table_of(one.name) if parts.is_apart(one.name) else None
        if table is not None:
            rows = parts.rows_of(one.name, positions)
            there = np.flatnonzero(rows >= 0)
            found: list[list[tuple[str, int, int]]] = [[] for _ in positions]
            for place, few in zip(there, table.ranges([parts.path_of(one.name)], rows[there])):
                found[place] = few
            tables.append((table, found))
    first, size = 0, 0
    wanted: dict[tuple[Remote, str, int, int], None] = {}
    for place in range(len(positions)):
        here = [(_remote(table), *one) for table, found in tables for one in found[place]]
        nbytes = sum(one[3] for one in here if one not in wanted)
        if wanted and size + nbytes > most:
            yield positions[first:place], list(wanted)
            first, size, wanted = place, 0, {}
        size += nbytes
        wanted |= dict.fromkeys(here)
    if first < len(positions):
        yield positions[first:], list(wanted)


def _remote(table: StoredSamples) -> Remote:
    found = table.snapshot.remote
    assert found is not None  # nosec B101 # for mypy: only remote tables are asked for ranges
    return found
