"""Samples copied to a new place as they are stored: what one task does with its share of them.

Media are not decoded: their bytes are those of the source. What links lead to is fetched where that is asked for,
and values that a query computes are encoded. A task writes files that no commit names yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.apart_writer import ApartWriter
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.apart.pinning import Written
from tensorlake_spark.datasets.apart.stored_parts import StoredParts
from tensorlake_spark.datasets.apart.tile_writer import TileWriter
from tensorlake_spark.datasets.derived.column_digests import BLOCK, RowDigest
from tensorlake_spark.datasets.links.link_columns import linked_bytes, target_bytes
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.maintenance.value_check import tiled_samples
from tensorlake_spark.datasets.samples.sample_encoding import numbered
from tensorlake_spark.datasets.samples.sample_reading import (
    read_column,
    read_table,
    row_bytes,
    whole,
)
from tensorlake_spark.datasets.types.base import Place
from tensorlake_spark.datasets.types.schema import SampleSchema, column_of
from tensorlake_spark.delta.files.runner import parcels
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.sample_writer import SampleWriter
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.storage import Storage

Array = np.ndarray[Any, Any]

BATCH_BYTES = 16 << 20
"""Bytes of a batch, about: while one is written, the next is copied."""

_COMPUTED_BYTES = 1 << 10  # of a computed value, about: nobody knows before
_MOST_ROWS = 4096  # of a batch
_LOOKED_AT = 256  # samples whose links tell how many bytes are fetched for one, about


class Computed(Protocol):
    """Values that are not stored anywhere. It travels to executors, so it can be pickled."""

    def __call__(self, start: int, stop: int) -> Mapping[str, Any]:
        """Return for some rows of what is copied the values of columns, one a row each."""

    def tiled_bytes(self, start: int, stop: int) -> Array:
        """Return for each of some rows how many bytes of tiles are read for it, about."""


@dataclass(frozen=True)
class Origin:
    """A version of a dataset from which columns are copied.

    Attributes
    ----------
    snapshot : Snapshot
        The version.
    columns : dict of str to str
        For each new column its name there.
    rules : LinkRules
        What links may do.
    fetched : frozenset of str
        New columns that get what the links of the old one lead to.
    """

    snapshot: Snapshot
    columns: Mapping[str, str]
    rules: LinkRules
    fetched: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        return Origin, (self.snapshot, dict(self.columns), self.rules, self.fetched)

    @cached_property
    def parts(self) -> StoredParts:
        """The version, opened where it is used."""
        schema = SampleSchema.from_arrow(self.snapshot.schema)
        return StoredParts(StoredSamples(self.snapshot), schema, self.rules)

    def opened(self, parts: StoredParts) -> Origin:
        """Let tasks of this process use what is open already, with what is known of its files; return the origin."""
        if parts.stored.snapshot is self.snapshot:
            self.__dict__["parts"] = parts
        return self

    def row_bytes(self, positions: Array) -> int:
        """Return how many bytes each of some samples has in these columns, about, with what is fetched for it."""
        there = positions[positions >= 0]
        each = row_bytes(self.parts, [*{*self.columns.values()}], there)
        if self.fetched and len(there):
            each += int(self.fetched_bytes(there[:_LOOKED_AT]).mean())
        return each

    def fetched_bytes(self, positions: Array) -> Array:
        """Return for some samples how many bytes their links lead to, of those that are fetched."""
        out = np.zeros(len(positions), np.int64)
        for name in self.fetched:
            links = read_column(self.parts, self.columns[name], positions, views=False)
            out += target_bytes(links)
        return out


@dataclass(frozen=True)
class Share:
    """Rows that one task copies.

    Attributes
    ----------
    start, stop : int
        Which of all rows.
    positions : tuple of int64 ndarray
        For each origin the positions of its samples; -1 where a row has none.
    """

    start: int
    stop: int
    positions: tuple[Array, ...]


@dataclass
class Copied:
    """What came of a share: files that no commit names, tiles, and digests.

    Attributes
    ----------
    files : list of DataFile
        With the samples.
    apart : dict of str to list of DataFile
        By columns that are kept apart.
    tiles : list of Written
        Versions of the lake of tiles.
    digests : dict of str to bytes
        By columns, see `RowDigest.finish`.
    """

    files: list[DataFile] = field(default_factory=list)
    apart: dict[str, list[DataFile]] = field(default_factory=dict)
    tiles: list[Written] = field(default_factory=list)
    digests: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleCopying:
    """What all tasks know; called with a `Share` it copies it.

    Attributes
    ----------
    storage : Storage
        Where the new samples come.
    schema : SampleSchema
        Their columns.
    names : dict of str to str
        By which the parts of columns are stored there.
    origins : tuple of Origin
        What is copied.
    computed : Computed, or None
        Columns that no origin has.
    first : int
        The number of the first new sample.
    tile_bytes, file_bytes, row_group_bytes : int
        Bounds and target sizes.
    mark : str
        What the names of files begin with.
    """

    storage: Storage
    schema: SampleSchema
    names: Mapping[str, str]
    origins: tuple[Origin, ...]
    computed: Computed | None
    first: int
    tile_bytes: int
    file_bytes: int
    row_group_bytes: int
    mark: str

    def row_bytes(self, positions: Sequence[Array]) -> int:
        """Return how many bytes a row has, about, where rows come from some samples of each origin."""
        more = 0 if self.computed is None else _COMPUTED_BYTES
        each = zip(self.origins, positions, strict=True)
        return sum(origin.row_bytes(some) for origin, some in each) + more

    def __call__(self, share: Share) -> Copied:
        """Copy a share; what was written is deleted again if an error leaves it."""
        out, digest = Copied(), RowDigest()
        tiles = TileWriter(self.storage, self.tile_bytes)
        apart = {
            name: ApartWriter(self.storage, self.names[name], kind, mark=self.mark)
            for name, kind in self.schema.items()
            if kind.apart
        }
        with ExitStack() as stack:
            writer = SampleWriter(
                self.storage,
                self.schema.to_arrow(),
                self.file_bytes,
                self.row_group_bytes,
                self.mark,
            )
            stack.enter_context(writer)
            stack.push(partial(_abort, [tiles, *apart.values()]))
            for start, stop in self._batches(share):
                sids = np.arange(self.first + start, self.first + stop)
                arrays = self._arrays(share, start, stop, sids, tiles)
                rows = dict(arrays)
                for name, column in apart.items():
                    column.take(arrays[name], sids.tolist())
                    rows[name] = pa.nulls(stop - start, self.schema[name].storage())
                writer.add(numbered(rows, self.schema, int(sids[0])))
                digest.add(arrays)  # while they are written
            out.tiles = tiles.finish()
            out.apart = {name: column.files() for name, column in apart.items()}
            out.files = writer.finish()
        out.digests = digest.finish()
        return out

    def _batches(self, share: Share) -> Iterator[tuple[int, int]]:
        most = max(1, min(_MOST_ROWS, BATCH_BYTES // max(1, self.row_bytes(share.positions))))
        step = even_step(share.stop - share.start, most)
        for start in range(share.start, share.stop, step):
            stop = min(share.stop, start + step)
            sizes = np.zeros(stop - start, np.int64)
            for origin, positions in zip(self.origins, share.positions, strict=True):
                if origin.fetched:
                    some = positions[start - share.start : stop - share.start]
                    sizes[some >= 0] += origin.fetched_bytes(some[some >= 0])
            if self.computed is not None:
                sizes += self.computed.tiled_bytes(start, stop)
            # What links lead to, and tiles, may be much more than the rows.
            for first, last in parcels(sizes.tolist(), 2 * BATCH_BYTES, 0):
                yield start + first, start + last

    def _arrays(
        self, share: Share, start: int, stop: int, sids: Array, tiles: TileWriter
    ) -> dict[str, pa.Array]:
        """Return all columns of some rows in the types that are stored; tiles are written."""
        found: dict[str, pa.Array] = {}
        for origin, positions in zip(self.origins, share.positions, strict=True):
            some = positions[start - share.start : stop - share.start]
            found |= self._copied(origin, some, sids, tiles)
        if self.computed is not None:
            for name, values in self.computed(start, stop).items():
                kind = self.schema[name]
                if is_tileable(kind):
                    place = Place(name, start)
                    values = tiles.take(values, kind, self.names[name], sids.tolist(), place)
                found[name] = kind.encode(values, name, start)
        return {name: found[name] for name in self.schema}

    def _copied(
        self, origin: Origin, positions: Array, sids: Array, tiles: TileWriter
    ) -> dict[str, pa.Array]:
        parts = origin.parts
        there = positions >= 0
        known = positions if there.all() else positions[there]
        # As views, so that payloads of several files are copied once, when they have come together.
        table = read_table(parts, [*{*origin.columns.values()}], known, views=True)
        out = {}
        for name, old in origin.columns.items():
            kind = parts.schema[old]
            array = whole(column_of(table, old)).cast(kind.storage())
            if name in origin.fetched:
                array = linked_bytes(array, kind, origin.rules, old, known.tolist())
            for row, said in tiled_samples(kind, array):
                ref = parts.tensor(old, int(known[row]), said)
                tiles.copy(ref, self.names[name], int(sids[there][row]))
            if len(known) < len(positions):
                places = np.where(there, np.cumsum(there) - 1, 0)
                array = array.take(pa.array(places, mask=~there))
            kind = self.schema[name]
            out[name] = array if array.type == kind.storage() else array.cast(kind.storage())
        return out


def _abort(writers: Sequence[TileWriter | ApartWriter], kind: Any, *_: object) -> None:
    """Have writers give up what they wrote, if an error leaves their block."""
    if kind is not None:
        for writer in writers:
            writer.abort()


def even_step(rows: int, most: int) -> int:
    """Return how many rows each batch has, about `most`: what is left over would take nearly as long as a whole one.

    Examples
    --------
    >>> even_step(1024, 1000), even_step(1600, 1000), even_step(0, 1000)
    (1024, 800, 1)
    """
    return max(1, -(-rows // max(1, round(rows / most))))


def shares(count: int, positions: Sequence[Array], rows: int) -> list[Share]:
    """Return rows in equal shares of about so many, which begin where a block of digests does.

    Examples
    --------
    >>> [(one.start, one.stop) for one in shares(1500, [], 600)]
    [(0, 768), (768, 1500)]
    """
    each = -(-count // max(1, round(count / max(1, rows))))
    step = max(1, -(-each // BLOCK)) * BLOCK
    return [
        Share(a, min(count, a + step), tuple(one[a : a + step] for one in positions))
        for a in range(0, count, step)
    ]
