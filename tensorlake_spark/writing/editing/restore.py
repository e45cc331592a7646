"""A tensor becomes what it was: old files come back, rows that share files are written anew, one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence

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
from tensorlake_spark.errors import ConcurrentWriteError, MissingDataError
from tensorlake_spark.rows.row import is_data
from tensorlake_spark.writing.pipeline import recomputed


def restore(storage: Storage, tensor_id: str, version: int | str) -> Snapshot:
    """Make a tensor what it was at a version; see `TensorLake.restore`."""
    now = Snapshot.open(storage)
    now.check_writable()
    old = Snapshot.open(storage, version)
    try:
        done, back = recomputed(now, tensor_id, lambda at: _Restoration(at, old, tensor_id).run())
    except StaleChange as stale:
        raise ConcurrentWriteError(
            f"{stale} of {storage.uri} while it was restored; nothing was committed, run it again if it "
            "still holds"
        ) from stale
    except MissingDataError as error:
        kept = now.table.metadata().configuration.get("delta.deletedFileRetentionDuration")
        raise MissingDataError(
            f"tensor {tensor_id!r} cannot be restored from version {old.version} of {storage.uri}: {error}"
            + ("" if kept is None else f" (this table keeps them for {kept})")
        ) from error
    gone = _gone(storage, back)
    if gone:  # a vacuum that had looked before the commit took them for files that nobody needs
        remedy = f"lake.restore({tensor_id!r}, {now.version}) makes it what it was before"
        if catalog.find(now, tensor_id) is None:
            remedy = f"lake.delete({tensor_id!r}) takes it away again"
        raise MissingDataError(
            f"tensor {tensor_id!r} was restored from version {old.version} of {storage.uri}, but a vacuum deleted "
            f"{len(gone)} of its data files meanwhile, such as {gone[0]}; bring them back from a backup, or "
            f"{remedy}"
        )
    return done


def _gone(storage: Storage, paths: Sequence[str]) -> list[str]:
    """Return which files of a table are not in the store."""
    with reaching(storage):
        found = storage.modified(paths)
    return [path for path, time in zip(paths, found, strict=True) if time is None]


class _Restoration:
    """One attempt: what has to be done between what a tensor is in `now` and what it was in `old`.

    Only data rows move. The metadata row is written anew, above all others of the tensor, so those may stay.
    """

    def __init__(self, now: Snapshot, old: Snapshot, tensor_id: str) -> None:
        self.now, self.old, self.tensor_id = now, old, tensor_id
        self.before, self.after = self._files(old), self._files(now)
        self.live = set(now.files.path)
        self.removes: list[str] = []

    def run(self) -> tuple[Snapshot, list[str]]:
        """Write what has to be written, and commit; return the files that came back, too."""
        self._check_there()
        meta = catalog.get(self.old, self.tensor_id)
        current = catalog.find(self.now, self.tensor_id)
        back: list[DataFile] = []
        seq = 1 + max(meta.seq, -1 if current is None else current.seq)
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
            ours.add_meta([meta.spec], [seq], [meta.totals])
            adds = [*back, *ours.finish(), *others.finish()]
            self._check_there()
            number = self.now.transaction(app_of(self.tensor_id))
            change = Change({self.tensor_id: number}, adds, self.removes, "restore")
            return commit(self.now.storage, change), [file.path for file in back]

    def _files(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the files that may hold data rows of the tensor, and their places in the snapshot."""
        places = snapshot.files.places_of(self.tensor_id, data=True)
        paths = in_file_order(snapshot, (snapshot.files.path[place] for place in places.tolist()))
        return {path: snapshot.places[path] for path in paths}

    def _is_whole(self, snapshot: Snapshot, place: int) -> bool:
        """Whether all rows of a file are there, and of this tensor."""
        files = snapshot.files
        alone = files.first_id[place] == files.last_id[place] == self.tensor_id
        return bool(alone) and snapshot.kept(files.path[place]) is None

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
        """Remove a file if it holds rows of the tensor; those of others are written anew."""
        if not whole and not self._held(self.now, path).any():
            return
        self.removes.append(path)
        if not whole:
            rewrite(self.now, path, others, self._rest)

    def _held(self, snapshot: Snapshot, path: str) -> Array:
        """Return for each row of a file whether it is a data row of the tensor that is still there."""
        footer = footer_of(snapshot.storage, path)
        with (
            reading(snapshot.storage, path),
            snapshot.storage.open_parquet(path, footer.metadata) as file,
        ):
            rows = plain_types(file.read(columns=["id", "nnz"], use_threads=False))
        held = np.asarray(is_data(rows, self.tensor_id), bool)
        keep = snapshot.kept(path)
        return held if keep is None else held & keep

    def _only(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(is_data(batch, self.tensor_id))

    def _rest(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.not_equal(batch["id"], self.tensor_id))


def _data_file(snapshot: Snapshot, place: int) -> DataFile:
    """Return a file as the log has it, with the statistics that plans need."""
    size = int(snapshot.files.size[place])
    return DataFile(snapshot.files.path[place], size, json.dumps(snapshot.statistics(place)))
