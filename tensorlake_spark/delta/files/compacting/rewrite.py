"""Whole files anew: what a change, a deletion or a compaction needs when a file holds other rows too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.footer import footer_at, footer_of, plain_types, reading
from tensorlake_spark.delta.files.scan import leaves, pieces, plan, read_piece
from tensorlake_spark.delta.files.writer import FileWriter, widen
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import AnySelection
from tensorlake_spark.rows.row import corners, is_of
from tensorlake_spark.threads import io_threads

Array = np.ndarray[Any, Any]


def live_batches(
    snapshot: Snapshot, path: str, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a data file that are still there, a batch for each row group.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    path : str
        Path of the file in the table.
    groups : sequence of int, optional
        Which row groups; all by default.

    Returns
    -------
    iterator of pyarrow.RecordBatch
        In the table's schema, columns that users added included.
    """
    records = int(snapshot.files.rows[snapshot.places[path]])
    keep = snapshot.kept(path)
    footer = footer_of(snapshot.storage, path, records if records >= 0 else None)
    with (
        reading(snapshot.storage, path),
        snapshot.storage.open_parquet(path, footer.metadata) as file,
    ):
        for group in range(file.num_row_groups) if groups is None else groups:
            batch = file.read_row_group(group, use_threads=False).combine_chunks()
            if keep is not None:
                start = footer.first_row[group]
                batch = batch.filter(pa.array(keep[start : start + footer.rows[group]]))
            for part in batch.to_batches():
                if part.num_rows:
                    yield widen(part, snapshot.schema)


def boxes(
    snapshot: Snapshot, tensor_id: str, selection: AnySelection
) -> list[tuple[str, Array, Array]]:
    """Return ``(file, lo, hi)`` for the rows of a tensor in the row groups that a selection needs.

    ``lo`` and ``hi`` are int64 arrays of shape (rows, ndim). No payload is read.
    """
    ndim = len(selection.shape)
    columns = leaves(("lo", "hi", "params"), ndim)
    read_plan = plan(snapshot, tensor_id, selection)
    out = []
    for piece in pieces(snapshot, read_plan):
        keep = snapshot.kept(piece.path)
        for batch in read_piece(snapshot.storage, piece, tensor_id, columns, keep):
            out.append((piece.path, *corners(batch, ndim)))
    return out


def held_in(snapshot: Snapshot, places: Sequence[int], ids: Collection[str]) -> list[int]:
    """Return which files hold rows of some tensors, of those whose bounds allow it.

    The names between two bounds are many: ``x/17`` lies between ``x/1`` and ``x/8``. So the column of names is read
    where bounds do not tell, and files without such rows are not written again.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    places : sequence of int
        Where its files are in `Snapshot.files`.
    ids : collection of str
        The tensors.
    """
    names = sorted(ids)

    def holds(place: int) -> bool:
        path, footer = snapshot.files.path[place], footer_at(snapshot, place)
        unknown = []
        for group, (first, last) in enumerate(zip(*footer.bounds("id"), strict=True)):
            if first is None or last is None:
                unknown.append(group)
                continue
            at = bisect_left(names, first)
            if at < len(names) and names[at] in (first, last):
                return True
            if at < len(names) and names[at] < last:
                unknown.append(group)
        if not unknown:
            return False
        with (
            reading(snapshot.storage, path),
            snapshot.storage.open_parquet(path, footer.metadata) as file,
        ):
            found = plain_types(file.read_row_groups(unknown, ["id"], use_threads=False))
        return bool(pc.any(is_of(found, *names)).as_py())

    many = snapshot.remote is not None and len(places) > 1
    answers = (io_threads().map if many else map)(holds, places)
    return [place for place, is_held in zip(places, answers, strict=True) if is_held]


def in_file_order(snapshot: Snapshot, paths: Iterable[str]) -> list[str]:
    """Return files by the first of their rows: a writer begins a new file where one comes too late."""
    first_id, first_seq, places = snapshot.files.first_id, snapshot.first_seq, snapshot.places
    return sorted(paths, key=lambda p: (first_id[places[p]] or "", int(first_seq[places[p]])))


def rewrite(
    snapshot: Snapshot,
    path: str,
    writer: FileWriter,
    edit: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> None:
    """Write a file's rows to `writer` as `edit` leaves them, row group by row group, by (``id``, ``seq``)."""
    footer = footer_at(snapshot, snapshot.places[path])
    (ids, _), (seqs, _) = footer.bounds("id"), footer.bounds("seq")
    groups = sorted(range(len(footer.rows)), key=lambda g: (ids[g] or "", seqs[g] or 0))
    for batch in live_batches(snapshot, path, groups):
        edited = edit(batch)
        if edited.num_rows:
            writer.add_batch(edited)
