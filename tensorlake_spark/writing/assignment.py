"""Partial writes: only the chunks that a selection touches, only the files that hold them, one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.rewrite import boxes, in_file_order, rewrite
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import StaleChange, app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError, InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.selection import box_selection
from tensorlake_spark.layouts import AnySelection, layout_of
from tensorlake_spark.progress import progress
from tensorlake_spark.reading.gaps import touched_cells, uncovered
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Row, Totals, corners, data_batch
from tensorlake_spark.tensor.sparse import array_of
from tensorlake_spark.tensor.spec import TensorSpec, converted
from tensorlake_spark.writing.pipeline import commit_change, recomputed, writer_of


def assign(snapshot: Snapshot, meta: Meta, selection: AnySelection, values: Any) -> Snapshot:
    """Write values into a part of a dense tensor: only its chunks, only their files, one commit.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the caller saw; the tensor must not have changed since.
    meta : Meta
        The tensor in it.
    selection : Selection or PointSelection
        Which elements.
    values : array-like
        Of the selection's result shape, or what NumPy stretches to it.

    Raises
    ------
    InvalidTensorError
        If the values do not fit.
    ConcurrentWriteError
        If another writer changed the tensor since `snapshot`.
    """
    target = fitted(meta.spec, selection, values)

    def change(
        newest: Snapshot, writer: FileWriter, seqs: Iterator[int]
    ) -> tuple[list[str], Totals]:
        return _assign_rows(newest, meta, selection, target, writer, seqs)

    return commit_assignment(snapshot, meta, selection, change)


def fitted(spec: TensorSpec, selection: AnySelection, values: Any) -> np.ndarray[Any, Any]:
    """Return values as an array of the selection's storage shape.

    Raises
    ------
    InvalidTensorError
        If dtype or shape do not fit.
    """
    given = fitting(spec, values)
    if not given.ndim:  # the same everywhere takes no memory
        return np.broadcast_to(given, selection.storage_shape)
    target = np.empty(selection.storage_shape, spec.dtype)
    view = target if selection.is_scalar else selection.finish(target)
    try:
        view[...] = given
    except ValueError as error:
        raise InvalidTensorError(
            f"values of shape {given.shape} cannot be assigned to a selection of shape "
            f"{selection.result_shape} of tensor {spec.id!r}"
        ) from error
    return target


def fitting(spec: TensorSpec, values: Any) -> np.ndarray[Any, Any]:
    """Return values as an array of a tensor's dtype.

    Raises
    ------
    InvalidTensorError
        If they are no array, or the tensor cannot hold one of them.
    """
    given = array_of(values, f" for tensor {spec.id!r}")
    if hasattr(values, "dtype") and not np.isscalar(values):  # lists count as what is in them
        check_kind(spec, given.dtype)
    return converted(given, spec.dtype, f"tensor {spec.id!r}")


def check_kind(spec: TensorSpec, dtype: np.dtype[Any]) -> None:
    """Raise InvalidTensorError if arrays of a dtype are of another kind than the tensor."""
    if not np.can_cast(dtype, spec.dtype, "same_kind"):
        raise InvalidTensorError(
            f"values of dtype {dtype} cannot be assigned to tensor {spec.id!r} of dtype "
            f"{spec.dtype} without loss; convert them with .astype({spec.dtype.name!r})"
        )


def commit_assignment(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    change: Callable[[Snapshot, FileWriter, Iterator[int]], tuple[list[str], Totals]],
) -> Snapshot:
    """Commit what `change` writes, if the tensor has not changed since `snapshot`.

    `change` takes the newest version, a writer and the places of new rows; it returns the files to
    remove, and the tensor's totals afterwards.
    """
    spec, app = meta.spec, app_of(meta.spec.id)
    stale = ConcurrentWriteError(
        f"tensor {spec.id!r} changed after version {snapshot.version}, which this reference shows; nothing "
        "was committed, take a new reference with lake[id] and assign again"
    )
    newest = Snapshot.open(snapshot.storage)
    newest.check_writable()
    if newest.transaction(app) != snapshot.transaction(app):
        raise stale
    if selection.is_empty:
        return newest

    def assigned(now: Snapshot) -> Snapshot:
        with writer_of(now, spec) as writer:
            seqs = count(meta.seq + 1)
            removes, totals = change(now, writer, seqs)
            writer.add_meta([spec], [next(seqs)], [totals])
            return commit_change(now, spec.id, writer, removes, "assign", None)

    try:
        return recomputed(newest, spec.id, assigned)
    except StaleChange as error:
        raise stale from error


def _assign_rows(
    snapshot: Snapshot,
    meta: Meta,
    selection: AnySelection,
    values: np.ndarray[Any, Any],
    writer: FileWriter,
    seqs: Iterator[int],
) -> tuple[list[str], Totals]:
    """Write the touched rows anew; return the files they were in, and the tensor's totals afterwards."""
    spec = meta.spec
    layout = layout_of(spec.layout)
    totals = meta.totals

    def merged(part: np.ndarray[Any, Any], box: Box) -> list[Row]:
        src, dst = selection.project(box.lo, box.hi)
        part[src] = values[dst]
        return layout.encode(part, box.lo, spec)

    def edit(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal totals
        ours = np.asarray(pc.equal(batch.column("id"), spec.id))
        nnz = np.asarray(batch.column("nnz"))
        data = np.flatnonzero(ours & (nnz > 0))
        lo, hi = corners(batch.take(pa.array(data)), spec.ndim)
        hit = selection.hits(lo, hi)
        out = []
        boxes_of = {
            int(i): (tuple(a), tuple(b))
            for i, a, b in zip(data[hit], lo[hit].tolist(), hi[hit].tolist(), strict=True)
        }
        for i in range(batch.num_rows):
            row = batch.slice(i, 1)
            if ours[i] and nnz[i] == 0:
                continue  # superseded by the metadata row of this commit
            if i not in boxes_of:
                out.append(row)
                continue
            box = Box(*boxes_of[i])
            whole = box_selection(spec.shape, box)
            part = layout.new_result(spec, whole, True)
            old = layout.decode(row, spec, whole, part)
            totals -= Totals(1, old.nnz, old.nbytes)
            for new in merged(part, box):
                out.append(with_extras(data_batch(spec, row.column("seq").to_pylist(), [new]), row))
                totals += Totals(1, new.nnz, new.nbytes)
        table = pa.Table.from_batches(out, schema=batch.schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else batch.slice(0, 0)

    cells, lo, hi = touched_cells(spec, selection)
    region = Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
    stored = boxes(snapshot, spec.id, box_selection(spec.shape, region))
    hits = {path for path, a, b in stored if selection.hits(a, b).any()}
    removes = [path for path in dict.fromkeys(path for path, _, _ in stored) if path in hits]
    rewrite_files(snapshot, spec, removes, writer, edit)
    row_lo = np.concatenate([a for _, a, _ in stored] or [lo[:0]])
    row_hi = np.concatenate([b for _, _, b in stored] or [hi[:0]])
    for box in uncovered(cells, row_lo, row_hi):
        if selection.hits(np.array([box.lo]), np.array([box.hi]))[0]:
            for row in merged(np.full(box.shape, spec.fill_value), box):
                writer.add(spec, next(seqs), row)
                totals += Totals(1, row.nnz, row.nbytes)
    return removes, totals


def rewrite_files(
    snapshot: Snapshot,
    spec: TensorSpec,
    paths: Sequence[str],
    writer: FileWriter,
    edit: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> None:
    """Give the live rows of files to a writer, as `edit` makes them, and show how far that is."""
    paths = in_file_order(snapshot, paths)
    sizes = [int(snapshot.files.size[snapshot.places[path]]) for path in paths]
    with progress(f"assign {spec.id}", sum(sizes)) as done:
        for path, size in zip(paths, sizes, strict=True):
            rewrite(snapshot, path, writer, edit)
            done(size)


def with_extras(batch: pa.RecordBatch, old: pa.RecordBatch) -> pa.RecordBatch:
    """Return a new row with the columns that users added to the one that it replaces."""
    have = set(batch.schema.names)
    columns = [batch.column(n) if n in have else old.column(n) for n in old.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=old.schema)
