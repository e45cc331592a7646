"""Parts of stored samples that do not lie in their table, at the versions that belong to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.apart.inner_tables import (
    TENSORS_FOLDER,
    folder_of,
    inner_storage,
    inner_tables,
    stored_name,
    tensor_id,
)
from tensorlake_spark.datasets.apart.large_samples import is_tileable
from tensorlake_spark.datasets.links.link_rules import LinkRules
from tensorlake_spark.datasets.types.base import Tiled
from tensorlake_spark.datasets.types.media.recordings import VIDEO_FACTS
from tensorlake_spark.datasets.types.media.video_facts import VideoFacts
from tensorlake_spark.datasets.types.media.video_sample import VideoSample
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.statistics import BOUNDED
from tensorlake_spark.delta.log.requirements import SAMPLES, SID, TENSORS
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.samples.known_snapshot import known_snapshot
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.delta.store.ranges import Remote
from tensorlake_spark.errors import (
    CorruptDataError,
    InvalidOptionError,
    MissingDataError,
    TableNotFoundError,
    TensorLakeError,
    TensorNotFoundError,
)
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.rows.metadata import Meta

Array = np.ndarray[Any, Any]

_KEPT = 64  # tensors of large samples that are kept open
_KEPT_METAS = 4096  # tensors of which it is kept what another process has read


class StoredParts:
    """The inner tables of one version of a dataset, opened when they are needed.

    Parameters
    ----------
    stored : StoredSamples
        The samples' table.
    schema : SampleSchema
        The dataset's columns.
    rules : LinkRules, optional
        What links may do.
    known : mapping of str to StoredSamples or None, optional
        Tables of apart columns that are opened already.
    lake : Snapshot, optional
        The lake of tiles, where it is opened already.

    Attributes
    ----------
    stored, schema, rules
        As they were given.
    """

    def __init__(
        self,
        stored: StoredSamples,
        schema: SampleSchema,
        rules: LinkRules | None = None,
        known: Mapping[str, StoredSamples | None] | None = None,
        lake: Snapshot | None = None,
    ) -> None:
        self.stored = stored
        self.schema = schema
        self.rules = LinkRules() if rules is None else rules
        self._names = {name: stored_name(stored.schema, name) for name in schema}
        self._apart = {name for name, kind in schema.items() if kind.apart}
        self._known = dict(known or {})
        self._columns: dict[str, StoredSamples | None] = {**self._known}
        self._known_lake = self._lake = lake
        self._metas: dict[str, Meta] = {}  # of tensors with tiles, as another process has read them
        self._ids: set[str] | None = None  # of all tensors with tiles
        self._versions: dict[str, int] | None = None
        self._refs: dict[tuple[str, int], TensorRef] = {}
        self._make: Callable[[Remote], Remote] | None = None
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredParts, (self.stored, self.schema, self.rules, self._known, self._known_lake)

    def reading_by(self, make: Callable[[Remote], Remote]) -> StoredParts:
        """Return the same, with another way of reading data files in an object store; see `Snapshot.reading_by`."""
        known = {name: table and table.reading_by(make) for name, table in self._known.items()}
        lake = self._known_lake and self._known_lake.reading_by(make)
        out = StoredParts(self.stored.reading_by(make), self.schema, self.rules, known, lake)
        out._make = make
        return out

    def known(self, names: Sequence[str]) -> StoredParts:
        """Return the same for processes that read some columns: it pickles with what the logs of their tables say."""
        tables = {name: self.table_of(name) for name in names if self.is_apart(name)}
        lake = None
        with suppress(TensorLakeError):  # who reads a large sample says it
            lake = self.lake_of(names)
        return StoredParts(
            self.stored.known([name.replace("/", ".") for name in names]),
            self.schema,
            self.rules,
            {name: table and table.known(table.schema.names) for name, table in tables.items()},
            lake and known_snapshot(lake, BOUNDED),
        )

    def is_apart(self, name: str) -> bool:
        """Whether a column lies in a table of its own."""
        return name in self._apart

    # ------------------------------------------------------------------ apart columns

    def table_of(self, name: str) -> StoredSamples | None:
        """Return the table of an apart column, None while no sample has a value in it."""
        with self._opening(name):
            if name not in self._columns:
                snapshot = self._open(folder_of(self._names[name]), SAMPLES)
                self._columns[name] = None if snapshot is None else StoredSamples(snapshot)
            return self._columns[name]

    def path_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the structs around a column and its own, in the table where it lies."""
        table = self.table_of(name) if self.is_apart(name) else None
        if table is None:
            return tuple(name.split("/"))
        return (next(field.name for field in table.schema if field.name != SID),)

    def rows_of(self, name: str, positions: Array) -> Array:
        """Return where samples are in the table of an apart column, -1 where they are not.

        Parameters
        ----------
        name : str
            The column.
        positions : int64 ndarray
            Of samples in the dataset.
        """
        table = self.table_of(name)
        if table is None:
            return np.full(len(positions), -1, np.int64)
        return table.positions_of(self.stored.sids_of(positions))

    def column(
        self, name: str, positions: Array, views: bool = False, inside: tuple[str, ...] = ()
    ) -> pa.ChunkedArray:
        """Return an apart column of some samples as it is stored, null where they have none.

        Parameters
        ----------
        name : str
            The column.
        positions : int64 ndarray
            Of samples in the dataset.
        views : bool
            As for `StoredSamples.rows`.
        inside : tuple of str
            The field of it that is read, if not all of them are.
        """
        table, rows = self.table_of(name), self.rows_of(name, positions)
        there = rows >= 0
        if table is None or not there.any():
            return pa.chunked_array([pa.nulls(len(positions), self.schema[name].storage())])
        (column,) = self.path_of(name)
        path = column, *inside
        if there.all():
            return table.rows([path], rows, views).column(column)
        found = table.rows([path], rows[there]).column(column)
        places = np.where(there, np.cumsum(there) - 1, 0)
        return found.take(pa.array(places, mask=~there))

    # ------------------------------------------------------------------ videos

    def videos(self, name: str, positions: Array) -> list[VideoSample | None]:
        """Return videos of some samples, of which nothing but what is known of them is read; None for a null.

        Parameters
        ----------
        name : str
            The column.
        positions : int64 ndarray
            Of samples in the dataset.
        """
        table, rows = self.stored, positions
        if self.is_apart(name):
            inner = self.table_of(name)
            if inner is None:
                return [None] * len(positions)
            table, rows = inner, self.rows_of(name, positions)
        path = self.path_of(name)
        leaf = table.leaf((*path, "data"))
        facts = [
            (*path, field.name) for field in self.schema[name].storage() if field.name != "data"
        ]
        there = rows[rows >= 0]
        found = iter(_inside(one, path) for one in table.rows(facts, there).to_pylist())
        out: list[VideoSample | None] = []
        for row in rows.tolist():
            said = next(found) if row >= 0 else None
            size = -1 if said is None else table.payload_size(row, leaf)
            if said is None or size < 0:
                out.append(None)
                continue
            known = VideoFacts(*(said[n] for n in VIDEO_FACTS))
            out.append(VideoSample(partial(table.payload_range, row, leaf), size, known))
        return out

    # ------------------------------------------------------------------ tiles

    def lake_of(self, names: Sequence[str]) -> Snapshot | None:
        """Return the lake with the tiles of some columns, None where none of them may have any."""
        if not any(is_tileable(self.schema[name]) for name in names if name in self.schema):
            return None
        with self._opening(TENSORS_FOLDER):
            if self._lake is None:
                self._lake = self._open(TENSORS_FOLDER, TENSORS)
            return self._lake

    def tensors_of(self, name: str, positions: Array) -> list[str]:
        """Return the ids of the tensors with the elements of some samples: of those in a column that are tiled."""
        lake = self.lake_of([name])
        if lake is None:
            return []
        if self._ids is None:
            self._ids = {*catalog.ids(lake)}
        stored = self._names[name]
        wanted = (tensor_id(stored, sid) for sid in self.stored.sids_of(positions).tolist())
        return [one for one in wanted if one in self._ids]

    def learn_tensors(self, metas: Mapping[str, Meta]) -> None:
        """Know what another process has read of tensors with tiles, by their ids."""
        with self._lock:
            self._metas |= metas
            while len(self._metas) > _KEPT_METAS:
                del self._metas[next(iter(self._metas))]

    def known_tensor(self, name: str, position: int) -> TensorRef | None:
        """Return what `tensor` returned for a sample not long ago; None otherwise."""
        return self._refs.get((name, position))

    def tensor(self, name: str, position: int, tiled: Tiled) -> TensorRef:
        """Return the tensor with the elements of a large sample.

        Parameters
        ----------
        name : str
            The column.
        position : int
            The sample's.
        tiled : Tiled
            What its row says of it.

        Raises
        ------
        MissingDataError
            If there is none.
        CorruptDataError
            If it has another shape or dtype than the row says.
        """
        known = self.known_tensor(name, position)
        if known is not None:
            return known
        sid = int(self.stored.sids_of(np.array([position]))[0])
        ref = self._opened(
            name, tensor_id(self._names[name], sid), f"sample {sid} of column {name!r}"
        )
        if ref.shape != tuple(tiled.shape) or ref.dtype.name != tiled.dtype:
            raise CorruptDataError(
                f"sample {sid} of column {name!r} is {tiled.dtype} of shape {tiled.shape} by its row, and its tiles "
                f"are {ref.dtype.name} of shape {ref.shape}; the table, or the lake in {TENSORS_FOLDER}, was changed "
                "by others"
            )
        with self._lock:
            while len(self._refs) >= _KEPT:
                del self._refs[next(iter(self._refs))]
            self._refs[name, position] = ref
        return ref

    def _opened(self, name: str, known: str, what: str) -> TensorRef:
        lake, meta = self.lake_of([name]), self._metas.get(known)
        try:
            if lake is not None:
                return TensorRef(lake, catalog.get(lake, known) if meta is None else meta)
        except TensorNotFoundError:
            pass
        raise MissingDataError(
            f"{what} is kept as tiles, and the lake in {TENSORS_FOLDER} of {self.stored.snapshot.storage.uri} has no "
            f"tensor {known!r}; somebody deleted it, or wrote the row by other means: restore a version that has it"
        )

    # ------------------------------------------------------------------ both

    def give_back_pages(self) -> None:
        """Give back the mapped pages of all tables: what was read of them is not needed again soon."""
        with self._lock:
            tables = [table.snapshot for table in self._columns.values() if table is not None]
            lake = [] if self._lake is None else [self._lake]
        for snapshot in (self.stored.snapshot, *tables, *lake):
            snapshot.maps.give_back()

    def _opening(self, what: str) -> threading.Lock:
        """Return the lock of one inner table: several are opened at the same time, each once."""
        with self._lock:
            return self._locks.setdefault(what, threading.Lock())

    def _open(self, folder: str, kind: str) -> Snapshot | None:
        """Return the version of an inner table that belongs to the samples, None where it has none."""
        snapshot = self.stored.snapshot
        if self._versions is None:
            self._versions = inner_tables(snapshot)
        version = self._versions.get(folder)
        if version is None:
            return None
        try:
            found = Snapshot.open(inner_storage(snapshot.storage, folder), version, kind=kind)
        except (TableNotFoundError, InvalidOptionError) as error:
            raise MissingDataError(
                f"version {snapshot.version} of the dataset at {snapshot.storage.uri} needs version {version} of its "
                f"folder {folder}, which no longer exists: {error}"
            ) from error
        return found if self._make is None else found.reading_by(self._make)


def _inside(row: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    """Return a struct that lies in others; None where one of them is null."""
    found: Any = row
    for part in path:
        found = None if found is None else found[part]
    return None if found is None else dict(found)
