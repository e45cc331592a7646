"""What a transaction has changed so far: rows in memory, data files that no commit names yet, and who was deleted.

Rows of small tensors wait in memory, all together up to `WAITING_BYTES`, and go to data files sorted by tensor.
So small tensors share files. Rows of a larger change go to files of its own at once. A change is computed
from a `View`, a version of the table with all of that in it: appends, assignments and conversions do not know
that nothing is committed. They begin a writer and end with a commit, and a view stands for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.compacting.merge import Packer
from tensorlake_spark.delta.files.compacting.rewrite import rewrite
from tensorlake_spark.delta.files.footer import footer_of, plain_types, reading
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.data_file import DataFile, discard
from tensorlake_spark.delta.log.properties import FILE_BYTES
from tensorlake_spark.delta.log.replaying.live_files import Array, Files
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import TensorNotFoundError, did_you_mean
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import SCHEMA
from tensorlake_spark.writing.overlay import (
    View,
    ViewWriter,
    Waiting,
    add_rows,
    are_stored,
    entries,
    first_seqs,
    is_small,
    stored,
)

WAITING_BYTES = 64 << 20
"""So many bytes of rows wait altogether."""


@dataclass
class _NewFile:
    """A data file that no commit names yet, and the tensors whose rows in it do not count any more."""

    file: DataFile
    files: Files
    dropped: set[str] = field(default_factory=set)

    @property
    def is_one_tensors(self) -> bool:
        return bool(self.files.first_id[0] == self.files.last_id[0])

    def may_hold(self, tensor_id: str) -> bool:
        return bool(self.files.may_hold_any([tensor_id])[0])


class Uncommitted:
    """All that a transaction has changed, on top of one version of the table.

    Parameters
    ----------
    storage : Storage
        The table.
    base : Snapshot or None
        The version; None where there is no table yet.
    """

    def __init__(self, storage: Storage, base: Snapshot | None) -> None:
        self.storage = storage
        self.base = base
        self.removed: set[str] = set()  # files of the version that were written anew
        self.dropped: set[str] = set()  # tensors whose rows in the version do not count any more
        self.carried: set[str] = (
            set()
        )  # those of them whose rows are in new files, as they were or changed
        self._new: dict[str, _NewFile] = {}
        self._metas: dict[str, Meta | None] = {}  # None of a tensor that was deleted
        self._waiting: dict[str, list[Waiting]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0  # of those
        self._masks: dict[str, tuple[int, Array]] = {}

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return SCHEMA if self.base is None else self.base.schema

    @property
    def file_bytes(self) -> int:
        """Target size of data files."""
        return FILE_BYTES if self.base is None else self.base.file_bytes

    @cached_property
    def _base_ids(self) -> frozenset[str]:
        return frozenset(() if self.base is None else catalog.ids(self.base))

    @property
    def changed(self) -> list[str]:
        """Ids of the tensors that a commit would change: written, described, or deleted from the version."""
        return sorted(
            name
            for name, meta in self._metas.items()
            if meta is not None or name in self.dropped or name in self._base_ids
        )

    def ids(self) -> list[str]:
        """Return the ids of all tensors, sorted."""
        gone = {name for name, meta in self._metas.items() if meta is None}
        return sorted((self._base_ids | self._metas.keys()) - gone)

    def find(self, tensor_id: str) -> Meta | None:
        """Return a tensor as it is now, None if there is none."""
        if tensor_id in self._metas:
            return self._metas[tensor_id]
        is_there = self.base is not None and tensor_id in self._base_ids
        return catalog.find(self.base, tensor_id) if is_there and self.base is not None else None

    def get(self, tensor_id: str) -> Meta:
        """Return a tensor as it is now.

        Raises
        ------
        TensorNotFoundError
            If there is none; the message offers the nearest names.
        """
        meta = self.find(tensor_id) if isinstance(tensor_id, str) else None
        if meta is None:
            hint = did_you_mean(str(tensor_id), self.ids())
            raise TensorNotFoundError(
                f"there is no tensor {tensor_id!r} in this transaction on {self.storage.uri}{hint}"
            )
        return meta

    def view(self, tensor_id: str) -> Snapshot:
        """Return the version in which a tensor can be read as it is now."""
        if self.base is not None and tensor_id not in self._metas:
            return self.base
        return View(self, tensor_id)

    def changing(self, meta: Meta | None, tensor_id: str, rewrites: bool = False) -> View:
        """Return the version from which a change of a tensor is computed; it ends in `accept`.

        Parameters
        ----------
        meta : Meta or None
            The tensor as it is now.
        tensor_id : str
            Its id.
        rewrites : bool
            Whether stored rows change. Those of a small tensor are taken into memory then, so that a file which
            it shares with others is not written anew for it alone.
        """
        gathers = rewrites and meta is not None and is_small(meta)
        return View(self, tensor_id, gathers=gathers)

    def accept(
        self, view: View, writer: ViewWriter, removes: Iterable[str], adds: Iterable[DataFile]
    ) -> Snapshot:
        """Take in a change, and return the version in which its tensor can be read.

        Parameters
        ----------
        view : View
            What it was computed from.
        writer : ViewWriter
            What it wrote.
        removes, adds : iterable of str, iterable of DataFile
            Files that it replaces, and others that it made.
        """
        files = [*adds, *writer.finish()]
        paths = set(removes)
        dropped = set(view.dropped)
        if view.gathers and paths:
            dropped.add(view.tensor_id)
            self.carried.add(view.tensor_id)
        elif not paths.isdisjoint(view.held):
            self._forget(view.tensor_id)
        for tensor_id in dropped:
            self._drop(tensor_id)
        for path in paths - view.held:
            self._remove(path)
        for file in files:
            self._new[file.path] = _NewFile(file, entries([file]))
        if writer.waiting:
            self._wait(view.tensor_id, writer.waiting, writer.waiting_bytes)
        self._metas.update(dict.fromkeys(view.dropped))
        self._metas.update(writer.metas)
        if self._total > WAITING_BYTES:
            self._write_waiting()
        return self.view(view.tensor_id)

    def _wait(self, tensor_id: str, rows: Sequence[Waiting], nbytes: int) -> None:
        self._waiting.setdefault(tensor_id, []).extend(rows)
        self._bytes[tensor_id] = self._bytes.get(tensor_id, 0) + nbytes
        self._total += nbytes

    def _forget(self, tensor_id: str) -> None:
        """Take the rows of a tensor out of memory."""
        self._waiting.pop(tensor_id, None)
        self._total -= self._bytes.pop(tensor_id, 0)

    def _drop(self, tensor_id: str) -> None:
        """Take away all rows that a tensor has."""
        self._forget(tensor_id)
        if tensor_id in self._base_ids:
            self.dropped.add(tensor_id)
        for path, new in [*self._new.items()]:
            if new.may_hold(tensor_id):
                if new.is_one_tensors:
                    self._remove(path)
                else:
                    new.dropped.add(tensor_id)

    def _remove(self, path: str) -> None:
        if path not in self._new:
            self.removed.add(path)
            return
        del self._new[path]
        with suppress(OSError):  # it would be vacuum's
            self.storage.delete(path)

    def new_files(self, paths: Iterable[str]) -> list[DataFile]:
        """Return some of the files that no commit names yet."""
        return [self._new[path].file for path in paths]

    def waiting_rows(self, tensor_id: str) -> list[Waiting]:
        """Return the rows of a tensor that are in memory."""
        return self._waiting.get(tensor_id, [])

    def files_of(self, tensor_id: str) -> tuple[Files, Array]:
        """Return the data files that may hold rows of a tensor, and the least ``seq`` of each."""
        found, first = entries([]), np.zeros(0, np.int64)
        if self.base is not None and tensor_id not in self.dropped:
            mask = self.base.files.may_hold(tensor_id, data=True)
            mask[[self.base.places[path] for path in self.removed]] = False
            found, first = self.base.files.chosen(mask), self.base.first_seq[mask]
        new = [
            n for n in self._new.values() if n.may_hold(tensor_id) and tensor_id not in n.dropped
        ]
        if new:
            files = [n.file for n in new]
            found = found.joined(entries(files))
            first = np.concatenate([first, first_seqs(files)])
        return found, first

    def kept(self, path: str) -> Array | None:
        """Return which rows of a data file count, None if all of them do."""
        new = self._new.get(path)
        if new is not None:
            return self._mask(path, new.dropped) if new.dropped else None
        if self.base is None:
            return None
        keep = self.base.kept(path)
        place = self.base.places[path]
        first, last = self.base.files.first_id[place], self.base.files.last_id[place]
        if any(first is None or first <= name <= last for name in self.dropped):
            mask = self._mask(path, self.dropped)
            return mask if keep is None else mask & keep
        return keep

    def _mask(self, path: str, dropped: set[str]) -> Array:
        """Return which rows of a file are not of some tensors; kept until there are more of these."""
        known = self._masks.get(path)
        if known is None or known[0] != len(dropped):
            footer = footer_of(self.storage, path)
            with (
                reading(self.storage, path),
                self.storage.open_parquet(path, footer.metadata) as file,
            ):
                ids = plain_types(file.read(columns=["id"], use_threads=False)).column("id")
            gone = pc.is_in(ids, pa.array([*dropped], pa.string()))
            known = self._masks[path] = len(dropped), ~np.asarray(gone, bool)
        return known[1]

    def _write_waiting(self) -> None:
        """Write the rows that wait to data files, sorted by tensor."""
        with FileWriter(self.storage, self.file_bytes, schema=self.schema) as writer:
            self._put_waiting(writer)
            self._take_files(writer)

    def _put_waiting(self, writer: FileWriter) -> None:
        packer = Packer(writer, lambda name: layout_of(name).row_group_bytes)
        for tensor_id in sorted(self._waiting):
            rows = self._waiting[tensor_id]
            if are_stored(rows):
                packer.add(stored(rows, self.schema), False)
            else:
                packer.flush()
                add_rows(writer, rows)
        packer.flush()

    def _take_files(self, writer: FileWriter) -> None:
        for file in writer.finish():
            self._new[file.path] = _NewFile(file, entries([file]))
        self._waiting, self._bytes, self._total = {}, {}, 0

    def seal(self) -> list[DataFile]:
        """Write what waits, and the metadata of all tensors that changed; return all new files."""
        worn = [
            path
            for path, new in self._new.items()
            if new.dropped and not self._mask(path, new.dropped).all()
        ]
        metas = [meta for _, meta in sorted(self._metas.items()) if meta is not None]
        with FileWriter(self.storage, self.file_bytes, schema=self.schema) as writer:
            self._put_waiting(writer)
            for path in worn:
                rewrite(View(self, "", [path]), path, writer, lambda batch: batch)
            if metas:
                writer.add_meta(
                    [m.spec for m in metas], [m.seq for m in metas], [m.totals for m in metas]
                )
            self._take_files(writer)
        for path in worn:
            self._remove(path)
        return [new.file for new in self._new.values()]

    def discard(self) -> None:
        """Delete the data files, unless a commit that raised has landed all the same."""
        discard(self.storage, [*self._new])
        self._new, self._waiting, self._metas = {}, {}, {}
