"""Partial writes: only the chunks that a selection touches, only the files that hold them, one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.compacting.rewrite import boxes, in_file_order, rewrite
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.commit import StaleChange, app_of
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import ConcurrentWriteError, InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.selection import box_selection
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.progress import progress
from tensorlake_spark.reading.gaps import touched_cells, uncovered
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import Row, Totals, corners, data_batch
from tensorlake_spark.tensor.sparse import array_of
from tensorlake_spark.tensor.spec import TensorSpec, converted
from tensorlake_spark.writing.pipeline import commit_change, recomputed, writer_of

Cells = tuple[list[Box], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Boxes, and their corners as arrays."""

StoredBoxes = tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""A file, and the corners of rows in it."""

Rewrite = Callable[[Snapshot, FileWriter, Iterator[int]], tuple[list[str], Totals]]
"""Writes the rows of a tensor that an assignment changes.

It takes a version, a writer and the places of new rows; it returns the files to remove, and the tensor's
totals afterwards.
"""


def assign(snapshot: Snapshot, meta: Meta, selection: AnySelection, values: Any) -> Snapshot:
    """Write values into a part of a dense tensor: only its chunks, only their files, one commit.

    Parameters
    ----------
    snapshot : Snapshot
        The version that the caller saw; the tensor must not have changed since.
    meta : Meta
        The tensor in it.
    selection : Selection, PointSelection or MixedSelection
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
    change = assignment(meta, selection, values)
    return commit_assignment(
        snapshot, meta.spec, selection, lambda now: assign_to(now, meta, change)
    )


def assignment(meta: Meta, selection: AnySelection, values: Any) -> Rewrite:
    """Return what `assign` does to the rows of a dense tensor.

    Raises
    ------
    InvalidTensorError
        If the values do not fit.
    """
    target = fitted(meta.spec, selection, values)

    def change(
        snapshot: Snapshot, writer: FileWriter, seqs: Iterator[int]
    ) -> tuple[list[str], Totals]:
        return _assign_rows(snapshot, meta, selection, target, writer, seqs)

    return change


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
    spec: TensorSpec,
    selection: AnySelection,
    change: Callable[[Snapshot], Snapshot],
) -> Snapshot:
    """Commit an assignment, if the tensor has not changed since `snapshot`; `change` takes a version, and commits."""
    app = app_of(spec.id)
    stale = ConcurrentWriteError(
        f"tensor {spec.id!r} changed after version {snapshot.version}, which this reference shows; nothing "
        "was committed, take a new reference with lake[id] and assign again"
    )
    newest = Snapshot.newest(snapshot.storage)
    newest.check_writable()
    if newest.transaction(app) != snapshot.transaction(app):
        raise stale
    if selection.is_empty:
        return newest
    try:
        return recomputed(newest, spec.id, change)
    except StaleChange as error:
        raise stale from error


def assign_to(snapshot: Snapshot, meta: Meta, change: Rewrite) -> Snapshot:
    """Assign to a tensor of a version, and return the version that has it."""
    with writer_of(snapshot, meta.spec) as writer:
        seqs = count(meta.seq + 1)
        removes, totals = change(snapshot, writer, seqs)
        writer.add_meta([meta.spec], [next(seqs)], [totals])
        return commit_change(snapshot, meta.spec.id, writer, removes, "assign", None)


def hit_files(snapshot: Snapshot, spec: TensorSpec, selection: AnySelection) -> list[str]:
    """Return the files that hold a row of a dense tensor with a selected element."""
    return _hit_files(_stored_boxes(snapshot, spec, touched_cells(spec, selection)), selection)


def clear_rows(
    snapshot: Snapshot,
    spec: TensorSpec,
    selection: AnySelection,
    paths: Sequence[str],
    writer: FileWriter,
    seqs: Iterator[int],  # not asked: every row keeps its place
) -> Totals:
    """Write files anew with the fill value in what is selected; return what came minus what went."""
    merge = _Merge(spec, selection, np.broadcast_to(spec.fill_value, selection.storage_shape))
    rewrite_files(snapshot, spec, paths, writer, merge.edit)
    return merge.written - merge.replaced


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
    merge = _Merge(spec, selection, values)
    cells = touched_cells(spec, selection)
    stored = _stored_boxes(snapshot, spec, cells)
    removes = _hit_files(stored, selection)
    rewrite_files(snapshot, spec, removes, writer, merge.edit)
    for box in _hit_gaps(cells, stored, selection):
        for row in merge.fill(box):
            writer.add(spec, next(seqs), row)
    return removes, meta.totals - merge.replaced + merge.written


@dataclass
class _Merge:
    """Rows of a dense tensor with the values of a selection put into them, and what they add up to."""

    spec: TensorSpec
    selection: AnySelection
    values: np.ndarray[Any, Any]
    replaced: Totals = field(default_factory=Totals)
    written: Totals = field(default_factory=Totals)

    def edit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a file with those that are hit replaced, and without the old metadata row."""
        superseded, boxes_hit = self._look(batch)
        out = []
        for i in range(batch.num_rows):
            row = batch.slice(i, 1)
            if i in boxes_hit:
                out += self._replace(row, boxes_hit[i])
            elif not superseded[i]:
                out.append(row)
        table = pa.Table.from_batches(out, schema=batch.schema).combine_chunks()
        return table.to_batches()[0] if table.num_rows else batch.slice(0, 0)

    def fill(self, box: Box) -> list[Row]:
        """Return the rows of a box that has none yet: it is full of the fill value elsewhere."""
        part = np.full(box.shape, self.spec.fill_value)
        return self._counted(
            stored_layout(self.spec).encode(self._put(part, box), box.lo, self.spec)
        )

    def _look(self, batch: pa.RecordBatch) -> tuple[np.ndarray[Any, Any], dict[int, Box]]:
        """Return which rows are metadata rows of the tensor, and the boxes of its data rows that are hit."""
        ours = np.asarray(pc.equal(batch.column("id"), self.spec.id))
        is_data = np.asarray(batch.column("nnz")) > 0
        data = np.flatnonzero(ours & is_data)
        lo, hi = corners(batch.take(pa.array(data)), self.spec.ndim)
        hit = self.selection.hits(lo, hi)
        places = zip(data[hit].tolist(), lo[hit].tolist(), hi[hit].tolist(), strict=True)
        return ours & ~is_data, {i: Box(tuple(a), tuple(b)) for i, a, b in places}

    def _replace(self, row: pa.RecordBatch, box: Box) -> list[pa.RecordBatch]:
        """Return a stored row with the values in it; it becomes none where all of it is the fill value."""
        layout = stored_layout(self.spec)
        whole = box_selection(self.spec.shape, box)
        part = layout.new_result(self.spec, whole, True)
        old = layout.decode(row, self.spec, whole, part)
        self.replaced += Totals(1, old.nnz, old.nbytes)
        place = row.column("seq").to_pylist()
        rows = self._counted(layout.encode_again(self._put(part, box), box.lo, self.spec))
        return [with_extras(data_batch(self.spec, place, [new]), row) for new in rows]

    def _put(self, part: np.ndarray[Any, Any], box: Box) -> np.ndarray[Any, Any]:
        src, dst = self.selection.project(box.lo, box.hi)
        # An element without axes that is picked several times has the last value, as any other has.
        part[src] = self.values[dst] if src else self.values.reshape(-1)[-1]
        return part

    def _counted(self, rows: list[Row]) -> list[Row]:
        self.written += Totals.of(rows)
        return rows


def _stored_boxes(snapshot: Snapshot, spec: TensorSpec, cells: Cells) -> list[StoredBoxes]:
    """Return the boxes of the rows near some cells, with their files."""
    _, lo, hi = cells
    region = Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
    return boxes(snapshot, spec.id, box_selection(spec.shape, region))


def _hit_files(stored: Sequence[StoredBoxes], selection: AnySelection) -> list[str]:
    """Return the files that hold a row with a selected element."""
    hits = {path for path, lo, hi in stored if selection.hits(lo, hi).any()}
    return [path for path in dict.fromkeys(path for path, _, _ in stored) if path in hits]


def _hit_gaps(
    cells: Cells, stored: Sequence[StoredBoxes], selection: AnySelection
) -> Iterator[Box]:
    """Yield what of the cells has no row, where an element of it is selected."""
    boxes_of_cells, lo, hi = cells
    row_lo = np.concatenate([a for _, a, _ in stored] or [lo[:0]])
    row_hi = np.concatenate([b for _, _, b in stored] or [hi[:0]])
    for box in uncovered(boxes_of_cells, row_lo, row_hi):
        if selection.hits(np.array([box.lo]), np.array([box.hi]))[0]:
            yield box


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
