"""Columns of a dataset as samples for a loader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from pyarrow.parquet import FileMetaData

from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.samples.padding import Blank, blank_of
from tensorlake_spark.datasets.samples.sample_reading import parts_of
from tensorlake_spark.delta.samples.scattered.scattered_rows import ScatteredRows
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.ranges import Remote
from tensorlake_spark.delta.store.storage import reaching
from tensorlake_spark.errors import TensorLakeError
from tensorlake_spark.loader.caching.cache_option import parse_cache
from tensorlake_spark.loader.caching.range_cache import RangeCache
from tensorlake_spark.loader.columns.batch_buffers import BatchBuffers
from tensorlake_spark.loader.columns.column_reading import Reading
from tensorlake_spark.loader.columns.column_readings import readings_of
from tensorlake_spark.loader.columns.picture_reading import ReadPictures
from tensorlake_spark.loader.columns.values import Array, Values
from tensorlake_spark.loader.sources.block_cuts import block_starts
from tensorlake_spark.loader.sources.fetched_parts import FetchedParts, parts_within
from tensorlake_spark.loader.sources.loader_source import FetchedSamples, Told
from tensorlake_spark.loader.sources.remote_ranges import RemoteRanges
from tensorlake_spark.loader.sources.sample_marks import SampleMarks
from tensorlake_spark.loader.sources.tile_facts import TileFacts, learn_tiles, tile_facts
from tensorlake_spark.loader.transforms.image_transform import ImageTransform

_KEPT = 5, 8
"""The part of the memory for what was read of a remote dataset: the streams of a block shuffle come back to it. Blocks
do not end where row groups do, so the row groups of a buffer have up to twice its bytes; all of them have to find room,
or most are fetched again for each batch."""

_RESERVED = 0.7
"""That part, and what waits to be decoded."""

_COPIES, _LEAST_COPIES = 16, 64 << 10
"""Memory for copies of what was read stays, one in so many bytes, if those of a batch have so many bytes."""


class DatasetFacts(NamedTuple):
    """What a process needs to know to read samples.

    Attributes
    ----------
    footers : dict of str to dict of int to FileMetaData
        Of files by their numbers, by the apart column that has them; "" for the samples' own.
    tiles : TileFacts, or None
        Of large samples.
    """

    footers: dict[str, dict[int, FileMetaData]]
    tiles: TileFacts | None


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
        Bytes of arrays that are kept to be used again; of a remote dataset a part of them is for what was read.
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
        self._given = parts, cache
        kept = None if cache is None else RangeCache(*parse_cache(cache))
        self._ranges: RemoteRanges | None = None
        if snapshot.remote is not None:
            self._ranges = RemoteRanges(memory * _KEPT[0] // _KEPT[1], kept)
            parts = parts.reading_by(self._ranges.over)
        self.parts = parts
        self._transforms, self._memory = dict(transforms), memory
        self.blanks: Mapping[str, Blank] = {
            name: blank
            for name, kind in parts.schema.items()
            if name in names and name not in transforms and (blank := blank_of(kind)) is not None
        }
        self._rows: dict[int, ScatteredRows] = {}
        self._copies = BatchBuffers(memory // _COPIES, _LEAST_COPIES)
        self._readings = readings_of(parts, names, self._rows_of, transforms)
        self._buffers = BatchBuffers(memory)
        # Of samples whose row groups lie in the cache, where all of them find room.
        has_room = kept is not None and kept.most_bytes >= sum(map(_size, self._tables()))
        self._cached = SampleMarks(len(self)) if has_room else None

    def __reduce__(self) -> Any:
        parts, cache = self._given
        return DatasetSamples, (parts, self.names, self._transforms, self._memory, cache)

    def for_worker(self, workers: int) -> DatasetSamples:
        _, cache = self._given
        memory = self._memory // workers
        known = self.parts.known(self.names)
        return DatasetSamples(known, self.names, self._transforms, memory, cache)

    def facts(self, positions: Array, told: Told) -> DatasetFacts | None:
        found, tiles = {}, None
        with suppress(TensorLakeError):  # who reads the samples says it
            for name, table, _, rows in self._lying(positions):
                files = np.unique(table.locate(rows)[0]).tolist()
                found[name] = table.files.opened(told.new(name, files))
            tiles = tile_facts(self.parts, self.names, positions, told)
        new = {name: footers for name, footers in found.items() if footers}
        return DatasetFacts(new, tiles) if new or tiles else None

    def learn(self, facts: DatasetFacts) -> None:
        for name, footers in facts.footers.items():
            table = self.parts.table_of(name) if name else self.parts.stored
            if table is not None:
                table.files.learn(footers)
        if facts.tiles is not None:
            learn_tiles(self.parts, self.names, facts.tiles)

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
        return self.parts.stored.snapshot.table_id.encode()

    def fetch(self, positions: Array) -> FetchedSamples:
        ranges, cached = self._ranges, self._cached
        if ranges is None:
            return FetchedRows(self._readings, self.names, positions, self._buffers)
        if cached is None or not ranges.is_mapped:
            return self._held_together(ranges, positions)
        if cached.has(positions):
            return self._from_cache(ranges, cached, positions)
        found = self._held_together(ranges, positions)
        cached.add(positions)
        return found

    def _from_cache(
        self, ranges: RemoteRanges, cached: SampleMarks, positions: Array
    ) -> FetchedSamples:
        """Return samples whose row groups lie in the cache: they are mapped, as those of a local dataset."""
        asked = ranges.asked
        found = FetchedRows(self._readings, self.names, positions, self._buffers)
        found.hits = len(positions)
        if ranges.asked > asked:  # others have taken the room in the cache
            cached.clear()
            found.misses = ranges.asked - asked
        return found

    def _held_together(self, ranges: RemoteRanges, positions: Array) -> FetchedSamples:
        """Return samples for which all row groups are fetched at once, and held until they are read."""
        wanted = self._wanted(positions)
        if _held(wanted) <= ranges.most or len(positions) == 1:
            return self._fetched(ranges, positions, wanted)
        # Samples from all over the table: what is held for them is let go part after part.
        places = parts_within(positions, lambda some: _held(self._wanted(some)), ranges.most // 2)
        parts = [positions[some] for some in places]
        return FetchedParts(
            [self._fetched(ranges, part, self._wanted(part)) for part in parts], places
        )

    def _fetched(
        self, ranges: RemoteRanges, positions: Array, wanted: list[tuple[Remote, str, int, int]]
    ) -> FetchedRows:
        is_copied = not ranges.stays
        with reaching(self.parts.stored.snapshot.storage), ranges.hold(wanted) as held:
            found = FetchedRows(self._readings, self.names, positions, self._buffers, is_copied)
        found.hits, found.misses = held.hits, held.misses
        return found

    def _tables(self) -> list[StoredSamples]:
        """Return the tables that have the columns."""
        apart = [self.parts.table_of(name) for name in self.names if self.parts.is_apart(name)]
        return [self.parts.stored, *(table for table in apart if table is not None)]

    def _wanted(self, positions: Array) -> list[tuple[Remote, str, int, int]]:
        """Return the ranges of files that have columns of some samples."""
        out: list[tuple[Remote, str, int, int]] = []
        for _, table, columns, rows in self._lying(positions):
            remote = table.snapshot.remote
            if remote is not None:
                out += [(remote, *one) for one in table.ranges(columns, rows)]
        return out

    def _lying(
        self, positions: Array
    ) -> Iterator[tuple[str, StoredSamples, list[tuple[str, ...]], Array]]:
        """Yield where some samples lie: an apart column's name, or none; its table, columns in it, and rows of it."""
        parts = self.parts
        inner = [parts_of(name) for name in self.names if not parts.is_apart(name)]
        yield "", parts.stored, inner, positions
        for name in self.names:
            table = parts.table_of(name) if parts.is_apart(name) else None
            if table is not None:
                rows = parts.rows_of(name, positions)
                yield name, table, [parts.path_of(name)], rows[rows >= 0]

    @property
    def reserved(self) -> float:
        return 0.0 if self._ranges is None else _RESERVED

    def _rows_of(self, table: StoredSamples) -> ScatteredRows:
        """Return what reads a table's scattered rows: one for all columns of it."""
        if id(table) not in self._rows:
            self._rows[id(table)] = ScatteredRows(table, self._memory // 4, self._copies.bytes)
        return self._rows[id(table)]

    def draws(self) -> Mapping[str, int]:
        return {one.names[0]: one.n_random for one in self._readings if one.n_random}

    def described(self, position: int) -> str:
        stored = self.parts.stored
        here = np.array([position], np.int64)
        file, _ = stored.locate(here)
        path = stored.snapshot.storage.file_uri(stored.files.paths[int(file[0])])
        return f"sample {int(stored.sids_of(here)[0])} of {self.what}, version {self.version}, in {path}"


def _size(table: StoredSamples) -> int:
    return sum(table.file_sizes)


def _held(wanted: list[tuple[Remote, str, int, int]]) -> int:
    return sum({(id(remote), name, start): n for remote, name, start, n in wanted}.values())


class FetchedRows:
    """Rows of a dataset, as they are stored.

    Parameters
    ----------
    readings : sequence of Reading
        The columns.
    names : sequence of str
        Their names, in the order in which they are delivered.
    positions : int64 ndarray
        Which samples, in any order, some perhaps twice.
    buffers : BatchBuffers
        Memory for arrays.
    is_copied : bool
        Whether what is read is not mapped, and takes memory.

    Attributes
    ----------
    hits, misses : int
        Ranges of a remote dataset that were kept, and that its store was asked for.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        names: Sequence[str],
        positions: Array,
        buffers: BatchBuffers,
        is_copied: bool = False,
    ) -> None:
        self.hits = self.misses = 0
        self._readings, self._names, self._buffers = readings, names, buffers
        self._positions = positions
        self._read = [reading.read(positions) for reading in readings]
        self.raw_nbytes = sum(map(_raw_nbytes, self._read)) if is_copied else 0

    @cached_property
    def nbytes(self) -> int:
        return self.raw_nbytes + sum(
            reading.nbytes(read) for reading, read in zip(self._readings, self._read, strict=True)
        )

    def values(self, draws: Mapping[str, Array]) -> dict[str, Values]:
        found: dict[str, Values] = {}
        for reading, read in zip(self._readings, self._read, strict=True):
            random = draws.get(reading.names[0])
            found |= reading.values(read, self._positions, random, self._buffers)
        return {name: found[name] for name in self._names}


def _raw_nbytes(read: Any) -> int:
    """Return the bytes of what a reading has read."""
    if isinstance(read, ReadPictures):
        read = read.files
    if isinstance(read, list):
        return sum(len(one) for one in read if one is not None)
    return int(read.nbytes)
