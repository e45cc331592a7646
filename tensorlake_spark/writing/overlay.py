"""A version of a table with files that no commit names yet, so that all that reads a version reads them too.

`Overlay` adds files to a version. `View` is the version in which a tensor is as a transaction has left it, and
`ViewWriter` writes what is computed from it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlake_spark.delta.files.compacting.rewrite import live_batches
from tensorlake_spark.delta.files.writer import FileWriter, widen
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.properties import ROW_GROUP_BYTES
from tensorlake_spark.delta.log.replaying.live_files import LEAST, MOST, Array, Files
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage, open_here
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta, meta_row, read_meta
from tensorlake_spark.rows.row import Row, Totals, data_batch, in_order, is_data
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec

SMALL_BYTES = 4 << 20
"""Rows of a change up to so many bytes wait in memory, to share files with those of other changes."""

_ROW_BYTES = 1 << 10  # what a row takes in memory beside its payload

Waiting: TypeAlias = tuple[TensorSpec, int, Row] | pa.RecordBatch
"""A row with its tensor and its place, or stored rows as they are."""


class Overlay(Snapshot):
    """A version of the table with files that no commit names yet, and without or with those it has.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    files : sequence of DataFile
        The files that are new.
    alone : bool
        Whether those of the version are left out.
    """

    def __init__(self, snapshot: Snapshot, files: Sequence[DataFile], alone: bool) -> None:
        super().__init__(snapshot.storage, snapshot._opened)
        self.reader_features = frozenset() if alone else snapshot.reader_features
        new = entries(files)
        self.files = new if alone else snapshot.files.joined(new)


class HeldFiles(Storage):
    """A table's place with some files that are in memory only: those that are written here."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage.uri, storage.options)
        object.__setattr__(self, "held", {})

    held: dict[str, pa.Buffer]

    def open_output(self, name: str) -> Any:
        """Return a writable binary stream for a file in memory, which is there once it is closed."""
        return _Sink(self.held, name)

    def open_parquet(self, name: str, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
        """Open a data file, wherever it is."""
        if name in self.held:
            return open_here(pa.BufferReader(self.held[name]), metadata)
        return Storage.open_parquet(self, name, metadata)

    def map_file(self, name: str) -> pa.Buffer | None:
        """Return a data file as one buffer, None where it is in a store that cannot map."""
        return self.held[name] if name in self.held else Storage.map_file(self, name)

    def read_tail(self, name: str, nbytes: int) -> pa.Buffer:
        """Return the last bytes of a data file, all of it if it is shorter."""
        held = self.held.get(name)
        if held is None:
            return Storage.read_tail(self, name, nbytes)
        return held.slice(max(0, held.size - nbytes))

    def delete(self, name: str) -> None:
        """Forget a file in memory."""
        self.held.pop(name, None)


class _Sink(io.BytesIO):
    """Bytes that become a file in memory when they are closed."""

    def __init__(self, held: dict[str, pa.Buffer], name: str) -> None:
        super().__init__()
        self._held, self._file = held, name

    def close(self) -> None:
        if not self.closed:
            self._held[self._file] = pa.py_buffer(self.getvalue())
        super().close()


def entries(files: Sequence[DataFile]) -> Files:
    """Return data files as the log would have them."""
    stats = [json.loads(file.stats) for file in files]
    least, most = [s["minValues"] for s in stats], [s["maxValues"] for s in stats]

    def corner(bounds: list[dict[str, Any]], side: str, unknown: int) -> Array:
        rows = [[b.get(side, {}).get(f"d{k}", unknown) for k in range(STORED_AXES)] for b in bounds]
        return np.array(rows, np.int64).reshape(len(files), STORED_AXES)

    def objects(values: list[Any]) -> Array:
        out = np.empty(len(values), object)
        out[:] = values
        return out

    return Files(
        path=[file.path for file in files],
        size=np.array([file.size for file in files], np.int64),
        rows=np.array([s["numRecords"] for s in stats], np.int64),
        first_id=objects([b["id"] for b in least]),
        last_id=objects([b["id"] for b in most]),
        least_nnz=np.array([b["nnz"] for b in least], np.int64),
        most_nnz=np.array([b["nnz"] for b in most], np.int64),
        last_seq=np.array([b["seq"] for b in most], np.int64),
        lo=corner(least, "lo", LEAST),
        hi=corner(most, "hi", MOST),
        first_sid=np.full(len(files), LEAST, np.int64),
        last_sid=np.full(len(files), MOST, np.int64),
    )


def first_seqs(files: Sequence[DataFile]) -> Array:
    """Return the least ``seq`` of each data file."""
    return np.array([json.loads(f.stats)["minValues"]["seq"] for f in files], np.int64)


class Changes(Protocol):
    """What a transaction has changed so far; see `tensorlake_spark.writing.uncommitted.Uncommitted`."""

    storage: Storage
    base: Snapshot | None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""

    @property
    def file_bytes(self) -> int:
        """Target size of data files."""

    def accept(
        self, view: View, writer: ViewWriter, removes: Iterable[str], adds: Iterable[DataFile]
    ) -> Snapshot:
        """Take in a change."""

    def files_of(self, tensor_id: str) -> tuple[Files, Array]:
        """Return the data files that may hold rows of a tensor, and the least ``seq`` of each."""

    def new_files(self, paths: Iterable[str]) -> list[DataFile]:
        """Return some of the files that no commit names yet."""

    def waiting_rows(self, tensor_id: str) -> list[Waiting]:
        """Return the rows of a tensor that are in memory."""

    def kept(self, path: str) -> Array | None:
        """Return which rows of a data file count, None if all of them do."""


class View(Snapshot):
    """The version in which one tensor is as a transaction has left it; other tensors may be missing in it.

    Parameters
    ----------
    changes : Uncommitted
        The transaction's.
    tensor_id : str
        The tensor.
    paths : sequence of str, optional
        Show these files, whatever is in them, and not those of the tensor.
    gathers : bool
        Whether all rows of the tensor are taken into memory first.
    """

    def __init__(
        self,
        changes: Changes,
        tensor_id: str,
        paths: Sequence[str] | None = None,
        gathers: bool = False,
    ) -> None:
        self.changes, self.tensor_id, self.gathers = changes, tensor_id, gathers
        self.storage = HeldFiles(changes.storage)
        self.version = -1 if changes.base is None else changes.base.version
        self.dropped: set[str] = set()  # by the change that is computed from it
        self._paths = paths

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return self.changes.schema

    @property
    def file_bytes(self) -> int:
        """Target size of new data files."""
        return self.changes.file_bytes

    @cached_property
    def remote(self) -> None:
        """None: files in memory are read as local ones are."""
        return None

    @property
    def held(self) -> set[str]:
        """Names of the files that are in memory."""
        return set(self.storage.held) if isinstance(self.storage, HeldFiles) else set()

    @cached_property
    def _shown(self) -> tuple[Files, Array]:
        if self._paths is not None:
            new = self.changes.new_files(self._paths)
            return entries(new), first_seqs(new)
        if self.gathers:
            return self._hold([*View(self.changes, self.tensor_id).rows()])
        found, first = self.changes.files_of(self.tensor_id)
        held, places = self._hold(self.changes.waiting_rows(self.tensor_id))
        return found.joined(held), np.concatenate([first, places])

    def _hold(self, rows: Sequence[Waiting]) -> tuple[Files, Array]:
        """Return rows of the tensor as a file in memory."""
        writer = FileWriter(self.storage, schema=self.schema)
        if are_stored(rows):
            writer.add_batch(stored(rows, self.schema))
        else:
            add_rows(writer, rows)
        files = writer.finish()
        return entries(files), first_seqs(files)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the data rows of the tensor."""
        for path in self.files.path:
            for batch in live_batches(self, path):
                ours = batch.filter(is_data(batch, self.tensor_id))
                if ours.num_rows:
                    yield ours

    @cached_property
    def files(self) -> Files:
        """The data files that may hold rows of the tensor."""
        return self._shown[0]

    @cached_property
    def first_seq(self) -> Array:
        """For each of `files` the least ``seq``."""
        return self._shown[1]

    def kept(self, path: str) -> Array | None:
        """Return which rows of a data file count."""
        return None if path in self.held else self.changes.kept(path)

    def check_writable(self) -> None:
        """Do nothing: it was done when the transaction began."""


def is_small(meta: Meta) -> bool:
    """Whether the rows of a tensor can wait in memory."""
    return meta.totals.nbytes <= SMALL_BYTES


class ViewWriter(FileWriter):
    """What a change of a transaction writes: rows that wait while they are few, else data files.

    Parameters
    ----------
    view : View
        What the change is computed from.
    row_group_bytes : int
        Target size of row groups.

    Attributes
    ----------
    waiting, waiting_bytes : list, int
        Rows that wait, and the bytes of their payload.
    metas : dict of str to Meta
        The tensors that are described anew, as their metadata rows will say it.
    """

    def __init__(self, view: View, row_group_bytes: int = ROW_GROUP_BYTES) -> None:
        super().__init__(view.changes.storage, view.file_bytes, row_group_bytes, view.schema)
        self.waiting: list[Waiting] = []
        self.waiting_bytes = 0
        self.metas: dict[str, Meta] = {}
        self._keeps_batches = view.gathers
        self._streams = False

    def add(self, spec: TensorSpec, seq: int, row: Row) -> None:
        """Add one encoded row of a tensor."""
        if self._streams or self.extras or self.waiting_bytes + row.nbytes > SMALL_BYTES:
            self._stream()
            super().add(spec, seq, row)
            return
        self.waiting.append((spec, seq, _own(row)))
        self.waiting_bytes += row.nbytes + _ROW_BYTES

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows as they are."""
        if (
            self._streams
            or not self._keeps_batches
            or self.waiting_bytes + batch.nbytes > SMALL_BYTES
        ):
            self._stream()
            super().add_batch(batch)
            return
        self.waiting.append(batch)
        self.waiting_bytes += batch.nbytes

    def add_meta(
        self, specs: Sequence[TensorSpec], seqs: Sequence[int], totals: Sequence[Totals]
    ) -> None:
        """Take metadata rows, which the transaction writes at its end."""
        for spec, seq, total in zip(specs, seqs, totals, strict=True):
            self.metas[spec.id] = read_meta(meta_row(spec, seq, total))

    def abort(self) -> None:
        """Forget what was written."""
        self.waiting, self.metas = [], {}
        super().abort()

    def _stream(self) -> None:
        """Let no row wait any more."""
        if self._streams:
            return
        self._streams = True
        rows, self.waiting, self.waiting_bytes = self.waiting, [], 0
        extras, self.extras = self.extras, {}
        for item in rows:
            if isinstance(item, pa.RecordBatch):
                super().add_batch(item)
            else:
                super().add(*item)
        if extras:
            self._flush()
            self.extras = extras


def add_rows(writer: FileWriter, rows: Sequence[Any]) -> None:
    for spec, seq, row in rows:
        writer.row_group_bytes = layout_of(spec.layout).row_group_bytes
        writer.add(spec, seq, row)


def are_stored(rows: Sequence[Waiting]) -> bool:
    """Whether there are stored rows among some: then they may be in any order."""
    return any(isinstance(row, pa.RecordBatch) for row in rows)


def stored(rows: Sequence[Waiting], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of a tensor as one batch, in their order."""
    batches = [
        row if isinstance(row, pa.RecordBatch) else data_batch(row[0], [row[1]], [row[2]])
        for row in rows
    ]
    return in_order(pa.concat_batches([widen(batch, schema) for batch in batches]))


def _own(row: Row) -> Row:
    """Return a row whose payload nobody else can change."""
    if isinstance(row.values, bytes) and (row.index is None or isinstance(row.index, bytes)):
        return row
    index = None if row.index is None else bytes(row.index)
    return replace(row, values=bytes(row.values), index=index)
