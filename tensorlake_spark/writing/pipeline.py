"""Regions of a tensor -> rows -> data files -> one commit: what every change has in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.compacting.rewrite import held_in, in_file_order, rewrite
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import Change, StaleChange, app_of, commit
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.properties import ROW_GROUP_BYTES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.rows.row import Row, Totals, checked, is_of
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.threads import THREADS, threads
from tensorlake_spark.writing.overlay import View, ViewWriter
from tensorlake_spark.writing.source import Source

T = TypeVar("T")
Region = np.ndarray[Any, Any] | SparseTensor

RECOMPUTE = 60
"""How often a change is computed anew because another writer was faster.

Each time another commit landed, so the table gets on; beside an optimisation that never stops, a purge
loses about every second time."""


def writer_of(snapshot: Snapshot, spec: TensorSpec | None = None) -> FileWriter:
    """Return a writer of rows for a change, with row groups as large as a tensor's layout wants them."""
    size = ROW_GROUP_BYTES if spec is None else layout_of(spec.layout).row_group_bytes
    if isinstance(snapshot, View):
        return ViewWriter(snapshot, size)
    return FileWriter.into(snapshot, size)


def drop_tensors(
    snapshot: Snapshot, ids: Collection[str], writer: FileWriter, besides: Collection[str] = ()
) -> list[str]:
    """Return the files that hold rows of some tensors; what else is in them goes to `writer`.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    ids : collection of str
        The tensors.
    writer : FileWriter
        Takes the rows of others.
    besides : collection of str
        Files that are left alone.
    """
    if isinstance(snapshot, View):
        snapshot.dropped.update(ids)
        return []

    def rest(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.invert(is_of(batch, *ids)))

    files, gone = snapshot.files, set(ids)
    may_hold = np.flatnonzero(files.may_hold_any(ids)).tolist()
    held = held_in(snapshot, [i for i in may_hold if files.path[i] not in besides], gone)
    removes = in_file_order(snapshot, (files.path[i] for i in held))
    for path in removes:
        i = snapshot.places[path]
        if files.first_id[i] != files.last_id[i] or files.first_id[i] not in gone:
            rewrite(snapshot, path, writer, rest)
    return removes


def encode(
    spec: TensorSpec, regions: Iterable[tuple[Sequence[int], Region]]
) -> Iterator[tuple[int, list[Row]]]:
    """Encode regions of a tensor in several threads; yield ``(bytes read, rows)`` in storage order.

    Only a few parts are under way at a time, so memory does not grow with the tensor.
    """
    layout = layout_of(spec.layout)

    def rows_of(values: Region, lo: tuple[int, ...]) -> list[Row]:
        return checked(spec, layout.encode(values, lo, spec))

    def parts() -> Iterator[tuple[Region, tuple[int, ...]]]:
        for offset, region in regions:
            box = Box(
                tuple(offset), tuple(o + n for o, n in zip(offset, region.shape, strict=True))
            )
            if isinstance(region, SparseTensor):
                yield region, box.lo
                continue
            grown = replace(
                spec, shape=tuple(max(a, b) for a, b in zip(spec.shape, box.hi, strict=True))
            )
            for part in layout.pieces(grown, box):
                yield region[part.shift([-o for o in offset]).slices()], part.lo

    rest = parts()
    some = [*islice(rest, 2)]
    if len(some) < 2:  # other threads would only be waited for
        yield from ((values.nbytes, rows_of(values, lo)) for values, lo in some)
        return
    waiting: deque[tuple[int, Any]] = deque()
    pool = threads()
    for values, lo in chain((some.pop(0) for _ in range(2)), rest):
        waiting.append((values.nbytes, pool.submit(rows_of, values, lo)))
        del values
        if len(waiting) > 4 * THREADS:
            nbytes, done = waiting.popleft()
            yield nbytes, done.result()
    while waiting:
        nbytes, done = waiting.popleft()
        yield nbytes, done.result()


def put(
    writer: FileWriter,
    spec: TensorSpec,
    source: Source,
    offset: Sequence[int],
    seqs: Iterator[int],
    progress: Callable[[int], None],
) -> Totals:
    """Encode a source at `offset` of the tensor into the writer's files; return what it adds up to."""
    moved = (
        (tuple(o + d for o, d in zip(lo, offset, strict=True)), region)
        for lo, region in source.regions(spec.block_shape)
    )
    rows = nnz = size = 0
    for nbytes, encoded in encode(spec, moved):
        for row in encoded:
            writer.add(spec, next(seqs), row)
            rows, nnz, size = rows + 1, nnz + row.nnz, size + row.nbytes
        progress(nbytes)
    return Totals(rows, nnz, size)


def length_of(source: Source, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a source, with the length of a stream that has ended."""
    length = getattr(source, "length", None)
    if length is None:
        return tuple(shape)
    axis = source.axis  # type: ignore[attr-defined]
    return tuple(length if k == axis else n for k, n in enumerate(shape))


def commit_change(
    snapshot: Snapshot,
    tensor_id: str,
    writer: FileWriter,
    removes: Sequence[str],
    operation: str,
    transaction: tuple[str, int] | None,
    adds: Sequence[DataFile] = (),
) -> Snapshot:
    """Commit what a writer has written, and others in `adds`, from the tensor's number in `snapshot`.

    In a transaction nothing is committed: it takes the change in.
    """
    if isinstance(snapshot, View) and isinstance(writer, ViewWriter):
        return snapshot.changes.accept(snapshot, writer, removes, adds)
    number = snapshot.transaction(app_of(tensor_id))
    files = [*adds, *writer.finish()]
    change = Change({tensor_id: number}, files, removes, operation, transaction)
    after = commit(snapshot.storage, change)
    catalog.keep(after, len(files))
    return after


def _moved(stale: StaleChange) -> bool:
    return stale.moved


def recomputed(
    snapshot: Snapshot,
    tensor_id: str,
    change: Callable[[Snapshot], T],
    again: Callable[[StaleChange], bool] = _moved,
) -> T:
    """Return what a change returns; it is computed anew where another writer was faster.

    This is the one place that decides how often.

    Parameters
    ----------
    snapshot : Snapshot
        What the change is computed from first; later from the newest one.
    tensor_id : str
        The tensor that changes, for messages.
    change : callable
        Takes the snapshot, and commits.
    again : callable, optional
        Whether the change can be computed anew. By default it can where only files were moved.

    Raises
    ------
    StaleChange
        If it cannot.
    ConcurrentWriteError
        If another writer was faster in every attempt.
    """
    for _ in range(RECOMPUTE):
        try:
            return change(snapshot)
        except StaleChange as stale:
            if not again(stale):
                raise
            snapshot = stale.snapshot
    raise ConcurrentWriteError(
        f"other writers changed tensor {tensor_id!r}, or moved its files, during each of {RECOMPUTE} attempts; "
        "nothing was committed"
    )
