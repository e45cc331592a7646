"""Tensors become what they were: old files come back, rows that share files are written anew, one commit."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.compacting.rewrite import in_file_order, live_batches, rewrite
from tensorlake_spark.delta.files.footer import footer_of, plain_types, reading
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.replaying.live_files import Array
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.log.time_travel import FILES_KEPT
from tensorlake_spark.delta.store.storage import Storage, reaching
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    InvalidOptionError,
    MissingDataError,
    is_iterable,
)
from tensorlake_spark.rows.row import is_data, is_of
from tensorlake_spark.tensor.spec import check_id
from tensorlake_spark.writing.pipeline import recomputed


def restore(
    now: Snapshot,
    ids: Sequence[str],
    version: int | str,
    dropped: Collection[str] = (),
    seen: Collection[str] = (),
    undo: str | None = None,
) -> Snapshot:
    """Make tensors what they were at a version, in one commit; see `TensorLake.restore`.

    Parameters
    ----------
    now : Snapshot
        The newest version: the tensors must not change after it.
    ids : sequence of str
        Which tensors.
    version : int or str
        The version or the tag.
    dropped : collection of str
        Tensors that are deleted by the same commit.
    seen : collection of str
        Others that must not change meanwhile, whether they are there or not.
    undo : str, optional
        What makes the tensors what they were before, for the message about a vacuum.
    """
    now.check_writable()
    storage = now.storage
    old = Snapshot.open(storage, version)
    what = _named(ids)
    try:
        done, back = recomputed(
            now, ids[0], lambda at: _Restoration(at, old, ids, dropped, seen).run()
        )
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale} of {storage.uri} while it was restored; nothing was committed, run it again if it "
            "still holds"
        ) from stale
    except MissingDataError as error:
        kept = now.table.metadata().configuration.get("delta.deletedFileRetentionDuration")
        raise MissingDataError(
            f"{what} cannot be restored from version {old.version} of {storage.uri}: {error}"
            + ("" if kept is None else f" (this table keeps them for {kept})")
        ) from error
    gone = _gone(storage, back)
    if gone:  # a vacuum that had looked before the commit took them for files that nobody needs
        done_to = "was restored" if len(ids) == 1 else "were restored"
        raise MissingDataError(
            f"{what} {done_to} from version {old.version} of {storage.uri}, but a vacuum deleted {len(gone)} of the "
            f"data files meanwhile, such as {gone[0]}; bring them back from a backup, or {undo or _undo(now, ids)}"
        )
    return done


def checked_ids(ids: Any) -> list[str]:
    """Return ids of tensors as a list, each of them there once.

    Raises
    ------
    InvalidOptionError
        If they are no list of ids, none, or one is there twice.

    Examples
    --------
    >>> checked_ids(("x", "y"))
    ['x', 'y']
    """
    if isinstance(ids, bytes) or not is_iterable(ids):
        raise InvalidOptionError(f"{ids!r:.100} is not an id of a tensor, and not a list of them")
    found: dict[str, None] = {}
    for name in ids:
        check_id(name)
        if name in found:
            raise InvalidOptionError(f"tensor {name!r} is named twice; name each tensor once")
        found[name] = None
    if not found:
        raise InvalidOptionError("no tensor is named; give an id, or a list of ids")
    return [*found]


def _named(ids: Sequence[str]) -> str:
    """Return how a message names tensors, the first three of many."""
    if len(ids) == 1:
        return f"tensor {ids[0]!r}"
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"tensors {', '.join(map(repr, ids[:3]))}{more}"


def _undo(now: Snapshot, ids: Sequence[str]) -> str:
    """Return what makes tensors what they were before a restore."""
    was_there = [name for name in ids if catalog.find(now, name) is not None]
    steps = [f"lake.delete({name!r}) takes it away again" for name in ids if name not in was_there]
    if was_there:
        again = was_there if len(ids) > 1 else was_there[0]
        steps.append(f"lake.restore({again!r}, {now.version}) makes it what it was before")
    return " and ".join(steps)


def _gone(storage: Storage, paths: Sequence[str]) -> list[str]:
    """Return which files of a table are not in the store."""
    with reaching(storage):
        found = storage.modified(paths)
    return [path for path, time in zip(paths, found, strict=True) if time is None]


class _Restoration:
    """One attempt: what has to be done between what tensors are in `now` and what they were in `old`.

    Of those that come back only data rows move. Their metadata rows are written anew, above all others of the tensor,
    so those may stay.
    """

    def __init__(
        self,
        now: Snapshot,
        old: Snapshot,
        ids: Sequence[str],
        dropped: Collection[str],
        seen: Collection[str],
    ) -> None:
        self.now, self.old, self.ids, self.dropped, self.seen = now, old, ids, dropped, seen
        self.before = self._files(old, dict.fromkeys(ids, True))
        self.after = self._files(now, dict.fromkeys(ids, True) | dict.fromkeys(dropped))
        self.live = set(now.files.path)
        self.removes: list[str] = []

    def run(self) -> tuple[Snapshot, list[str]]:
        """Write what has to be written, and commit; return the files that came back, too."""
        self._check_there()
        metas = [catalog.get(self.old, tensor_id) for tensor_id in sorted(self.ids)]
        back: list[DataFile] = []
        with FileWriter.into(self.now) as ours, FileWriter.into(self.now) as others:
            for path, place in self.before.items():
                if path in self.live:
                    self._compare(path, ours, others)
                elif self._is_whole(self.old, place):
                    back.append(_data_file(self.old, place))
                else:
                    rewrite(self.old, path, ours, self._only)
            for path, place in self.after.items():
                if path not in self.before:
                    self._take_away(path, self._is_whole(self.now, place), others)
            seqs = [1 + max(meta.seq, self._last_seq(meta.spec.id)) for meta in metas]
            ours.add_meta([m.spec for m in metas], seqs, [m.totals for m in metas])
            adds = [*back, *ours.finish(), *others.finish()]
            self._check_there()
            numbers = self._numbers([*self.ids, *self.dropped])
            change = Change(numbers, adds, self.removes, "restore", seen=self._numbers(self.seen))
            return commit(self.now.storage, change), [file.path for file in back]

    def _last_seq(self, tensor_id: str) -> int:
        """Return the place of a tensor's last row, -1 if it is not there."""
        current = catalog.find(self.now, tensor_id)
        return -1 if current is None else current.seq

    def _numbers(self, ids: Collection[str]) -> dict[str, int | None]:
        """Return for each tensor the number of its last change."""
        return {tensor_id: self.now.transaction(app_of(tensor_id)) for tensor_id in ids}

    def _files(self, snapshot: Snapshot, ids: Mapping[str, bool | None]) -> dict[str, int]:
        """Return the files that may hold rows of tensors, and their places; data rows only where it says True."""
        found = [snapshot.files.places_of(name, data).tolist() for name, data in ids.items()]
        paths = {snapshot.files.path[place] for place in chain.from_iterable(found)}
        return {path: snapshot.places[path] for path in in_file_order(snapshot, paths)}

    def _is_whole(self, snapshot: Snapshot, place: int) -> bool:
        """Whether all rows of a file are there, and of one of the tensors."""
        files = snapshot.files
        first, last = files.first_id[place], files.last_id[place]
        alone = first == last and (first in self.ids or first in self.dropped)
        return alone and snapshot.kept(files.path[place]) is None

    def _check_there(self) -> None:
        """Raise MissingDataError if a file that left the table since is not in the store any more."""
        gone = _gone(self.old.storage, [path for path in self.before if path not in self.live])
        if gone:
            raise MissingDataError(
                f"{len(gone)} of its data files were deleted, such as {gone[0]}. {FILES_KEPT}"
            )

    def _compare(self, path: str, ours: FileWriter, others: FileWriter) -> None:
        """Write what a deletion vector took since from a file that is still there."""
        was, now = self.old.kept(path), self.now.kept(path)
        if (was is None and now is None) or (
            was is not None and now is not None and np.array_equal(was, now)
        ):
            return
        held, holds = self._held(self.old, path), self._held(self.now, path)
        if (holds & ~held).any():
            rewrite(self.old, path, ours, self._only)
            self._take_away(path, False, others)
            return
        missing = held & ~holds
        wanted, first = missing if was is None else missing[was], 0
        for batch in live_batches(self.old, path) if missing.any() else ():
            rows = batch.filter(pa.array(wanted[first : first + batch.num_rows]))
            first += batch.num_rows
            if rows.num_rows:
                ours.add_batch(rows)

    def _take_away(self, path: str, whole: bool, others: FileWriter) -> None:
        """Remove a file if it holds rows of the tensors; those of others are written anew."""
        if not whole and not self._held(self.now, path).any():
            return
        self.removes.append(path)
        if not whole:
            rewrite(self.now, path, others, self._rest)

    def _held(self, snapshot: Snapshot, path: str) -> Array:
        """Return for each row of a file whether it is there, and leaves where it is in the newest version only."""
        footer = footer_of(snapshot.storage, path)
        with (
            reading(snapshot.storage, path),
            snapshot.storage.open_parquet(path, footer.metadata) as file,
        ):
            rows = plain_types(file.read(columns=["id", "nnz"], use_threads=False))
        leaves = pc.or_(is_data(rows, *self.ids), is_of(rows, *self.dropped))
        held = np.asarray(leaves, bool)
        keep = snapshot.kept(path)
        return held if keep is None else held & keep

    def _only(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(is_data(batch, *self.ids))

    def _rest(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.invert(is_of(batch, *self.ids, *self.dropped)))


def _data_file(snapshot: Snapshot, place: int) -> DataFile:
    """Return a file as the log has it, with the statistics that plans need."""
    size = int(snapshot.files.size[place])
    return DataFile(snapshot.files.path[place], size, json.dumps(snapshot.statistics(place)))
