"""Partial writes of sparse tensors: the rows that a selection touches are decoded, changed and written anew."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tensorlake_spark.delta.files.compacting.rewrite import boxes
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import lift, locate, select
from tensorlake_spark.layouts import AnySelection, stored_layout
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import SCHEMA, Totals, corners
from tensorlake_spark.tensor.sparse import SparseTensor, sparse_of
from tensorlake_spark.tensor.spec import TensorSpec, converted
from tensorlake_spark.writing.editing.assignment import (
    Rewrite,
    assign_to,
    check_kind,
    commit_assignment,
    fitting,
    rewrite_files,
)

Array = np.ndarray[Any, Any]

Corners = tuple[tuple[int, ...], tuple[int, ...]]

IsTouched = Callable[[Array, Array], Array]
"""Takes the lower and upper corners of rows, returns which of them are written anew."""

_DENSE_CELLS = 1 << 27
"""So many elements may be assigned from an array, or from a scalar that is not zero."""


def assign_elements(
    snapshot: Snapshot, meta: Meta, selection: AnySelection, values: Any
) -> Snapshot:
    """Write values into a part of a sparse tensor, in one commit; zeros remove what was stored there.

    Parameters
    ----------
    snapshot, meta, selection
        As for `tensorlake_spark.writing.editing.assignment.assign`.
    values : array-like, SparseTensor or scalar
        Of the selection's result shape, or what NumPy stretches to it.

    Raises
    ------
    InvalidTensorError
        If the values do not fit, or a scalar would fill too many elements.
    ConcurrentWriteError
        If another writer changed the tensor since `snapshot`.
    """
    change = element_assignment(meta, selection, values)
    return commit_assignment(
        snapshot, meta.spec, selection, lambda now: assign_to(now, meta, change)
    )


def element_assignment(meta: Meta, selection: AnySelection, values: Any) -> Rewrite:
    """Return what `assign_elements` does to the rows of a sparse tensor.

    Raises
    ------
    InvalidTensorError
        If the values do not fit, or a scalar would fill too many elements.
    """
    spec = meta.spec
    given = _given(spec, selection, values)
    take, coords = lift(selection, given.coords)
    new = SparseTensor(coords, given.values[take], spec.shape)

    def change(
        snapshot: Snapshot, writer: FileWriter, seqs: Iterator[int]
    ) -> tuple[list[str], Totals]:
        touched, paths = _touched(snapshot, spec, selection)
        is_touched = _one_of(touched)
        totals = _replace(snapshot, spec, selection, new, is_touched, paths, writer, seqs)
        return paths, meta.totals + totals

    return change


def _given(spec: TensorSpec, selection: AnySelection, values: Any) -> SparseTensor:
    """Return the values as a sparse tensor of the selection's result shape."""
    shape = selection.result_shape
    sparse = sparse_of(values)
    if sparse is not None:
        check_kind(spec, sparse.dtype)
        spare = sparse.ndim - len(shape)
        if spare > 0 and sparse.shape[:spare] == (1,) * spare:  # NumPy assigns those too
            sparse = sparse.reshape(sparse.shape[spare:])
        try:
            wide = sparse.broadcast_to(shape)
        except InvalidTensorError as error:
            raise InvalidTensorError(
                f"a sparse tensor of shape {sparse.shape} cannot be assigned to a selection of shape "
                f"{shape} of tensor {spec.id!r}"
            ) from error
        converted(sparse.values, spec.dtype, f"tensor {spec.id!r}")
        return wide.astype(spec.dtype)
    given = fitting(spec, values)
    spare = given.ndim - len(shape)
    if spare > 0 and given.shape[:spare] == (1,) * spare:  # NumPy assigns those too
        given = given.reshape(given.shape[spare:])
    try:
        stretched = np.broadcast_to(given, shape)
    except ValueError as error:
        raise InvalidTensorError(
            f"values of shape {given.shape} cannot be assigned to a selection of shape {shape} of tensor "
            f"{spec.id!r}"
        ) from error
    if not SparseTensor.from_dense(given).nnz:
        none = np.zeros((len(shape), 0), np.int64)
        return SparseTensor._trusted(none, np.zeros(0, spec.dtype), shape)
    if selection.size > _DENSE_CELLS:
        raise InvalidTensorError(
            f"{selection.size} elements of the sparse tensor {spec.id!r} would be stored; assign a "
            "SparseTensor, or smaller parts"
        )
    return SparseTensor.from_dense(stretched)


def hit_files(snapshot: Snapshot, spec: TensorSpec, selection: AnySelection) -> list[str]:
    """Return the files that hold a row of a sparse tensor which a selection touches."""
    return _touched(snapshot, spec, selection)[1]


def clear_rows(
    snapshot: Snapshot,
    spec: TensorSpec,
    selection: AnySelection,
    paths: Sequence[str],
    writer: FileWriter,
    seqs: Iterator[int],
) -> Totals:
    """Write files anew without the elements that are selected; return what came minus what went."""
    is_touched: IsTouched = selection.hits
    if _may_share(spec):
        is_touched = _one_of(_touched(snapshot, spec, selection)[0])
    none = np.zeros((spec.ndim, 0), np.int64)
    new = SparseTensor._trusted(none, np.zeros(0, spec.dtype), spec.shape)
    return _replace(snapshot, spec, selection, new, is_touched, paths, writer, seqs)


def _replace(
    snapshot: Snapshot,
    spec: TensorSpec,
    selection: AnySelection,
    new: SparseTensor,
    is_touched: IsTouched,
    paths: Sequence[str],
    writer: FileWriter,
    seqs: Iterator[int],
) -> Totals:
    """Write files anew with other elements where a selection is; return what came minus what went."""
    layout = stored_layout(spec)
    whole = select(..., spec.shape)
    gathered = layout.new_result(spec, whole, False)
    change = Totals()
    replaced: list[pa.RecordBatch] = []

    def edit(batch: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal change
        ours = np.asarray(pc.equal(batch.column("id"), spec.id))
        data = ours & (np.asarray(batch.column("nnz")) > 0)
        places = np.flatnonzero(data)
        lo, hi = corners(batch.take(pa.array(places)), spec.ndim)
        hit = places[is_touched(lo, hi)]
        if len(hit):
            rows = batch.take(pa.array(hit))
            change -= layout.decode(rows, spec, whole, gathered)
            replaced.append(rows.select(batch.schema.names[len(SCHEMA) :]))
        gone = ours & ~data  # superseded by the metadata row of this commit
        gone[hit] = True
        return batch.filter(pa.array(~gone))

    rewrite_files(snapshot, spec, paths, writer, edit)
    old = layout.finish(spec, whole, gathered)
    stays = np.ones(old.nnz, bool)
    stays[locate(selection, old.coords)[0]] = False
    coords = np.concatenate([old.coords[:, stays], new.coords], axis=1)
    writer.extras = shared_extras(replaced)
    merged = SparseTensor(coords, np.concatenate([old.values[stays], new.values]), spec.shape)
    for row in layout.encode(merged, (0,) * spec.ndim, spec):
        writer.add(spec, next(seqs), row)
        change += Totals(1, row.nnz, row.nbytes)
    return change


def shared_extras(replaced: Sequence[pa.RecordBatch]) -> dict[str, pa.Scalar]:
    """Return the values of users' columns on which all rows that are replaced agree.

    The new rows take them: where old ones differ, nobody can tell which of them a new one stands for.
    """
    if not replaced or not replaced[0].num_columns:
        return {}
    table = pa.Table.from_batches(replaced)
    columns = zip(table.column_names, table.columns, strict=True)
    return {name: c[0] for name, c in columns if all(v.equals(c[0]) for v in c)}


def _rows(lo: Array, hi: Array) -> list[Corners]:
    return [(tuple(a), tuple(b)) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)]


def _one_of(touched: Collection[Corners]) -> IsTouched:
    """Return what says which rows have one of some boxes."""

    def is_touched(lo: Array, hi: Array) -> Array:
        return np.array([row in touched for row in _rows(lo, hi)], bool)

    return is_touched


def _may_share(spec: TensorSpec) -> bool:
    """Whether two rows of a tensor may store the same element."""
    return bool(spec.params.get("duplicates", "error") != "error")


def _touched(
    snapshot: Snapshot, spec: TensorSpec, selection: AnySelection
) -> tuple[set[Corners], list[str]]:
    """Return the boxes of rows that hold a selected element, and the files of those rows.

    Where rows share elements, those that share with a touched one are touched too: what is written anew
    comes after them, and the last one may count.
    """
    shared = _may_share(spec)
    stored = boxes(snapshot, spec.id, select(..., spec.shape) if shared else selection)
    lo = np.concatenate([a for _, a, _ in stored] or [np.zeros((0, spec.ndim), np.int64)])
    hi = np.concatenate([b for _, _, b in stored] or [np.zeros((0, spec.ndim), np.int64)])
    paths = [path for path, a, _ in stored for _ in range(len(a))]
    hit = selection.hits(lo, hi)
    grown = shared
    while grown:
        grown = False
        for i in np.flatnonzero(hit).tolist():
            meets = ((lo < hi[i]) & (hi > lo[i])).all(axis=1) & ~hit
            if meets.any():
                hit |= meets
                grown = True
    chosen = np.flatnonzero(hit).tolist()
    return set(_rows(lo[hit], hi[hit])), sorted({paths[i] for i in chosen})
