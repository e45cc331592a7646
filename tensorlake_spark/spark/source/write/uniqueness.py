"""The driver makes sure that no element of a sparse tensor is stored twice, before it commits.

Each task has sorted its own cells and found its own duplicates. What is left are rows of different tasks,
or of a task's different buffers, or of the tensor that is there: only where their boxes overlap are their
coordinates read and compared, region by region.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import unravel
from tensorlake_spark.indexing.selection import box_selection
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.sparse.element_keys import Gathered
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.rows.row import corners
from tensorlake_spark.spark.source.read.overlapping_rows import (
    RowBoxes,
    filtered,
    halved,
    hull,
    overlapping,
    regions,
    row_boxes,
)
from tensorlake_spark.spark.source.sparse_blocks import runs_of
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.overlay import Overlay

Array = np.ndarray[Any, Any]

_REGION = 8 << 20  # elements that are compared at a time
_DECODE = 1 << 20

_NONE = np.zeros(0, np.int64)


def check_unique(
    spec: TensorSpec,
    boxes: Sequence[Box],
    spans: Sequence[tuple[int, int]],
    files: Sequence[DataFile],
    snapshot: Snapshot,
    old: Meta | None,
) -> None:
    """Raise InvalidTensorError if an element is stored twice.

    Parameters
    ----------
    spec : TensorSpec
        The tensor, its shape as it will be.
    boxes : sequence of Box
        Of the elements of each buffer that a task sorted, which has no duplicates itself.
    spans : sequence of (int, int)
        Of each, the places of its rows in the tensor's storage order.
    files : sequence of DataFile
        What the tasks wrote.
    snapshot : Snapshot
        The newest version of the table.
    old : Meta or None
        The tensor that is there, where this is an append to it; it has no duplicates itself.
    """
    if not boxes:
        return
    spec = replace(spec, params={k: v for k, v in spec.params.items() if k != "duplicates"})
    alone = Overlay(snapshot, files, alone=True)
    rows, group = _suspects(spec, boxes, spans, alone, snapshot, old)
    suspect = overlapping(rows, group, spec)
    if not suspect.any():
        return
    rows = rows.take(suspect)
    both = alone if old is None else Overlay(snapshot, files, alone=False)
    for box in regions(rows, hull(rows.lo, rows.hi), _REGION, spec):
        _check_region(both, spec, box, np.sort(rows.seq), old is not None)


def _suspects(
    spec: TensorSpec,
    boxes: Sequence[Box],
    spans: Sequence[tuple[int, int]],
    new: Snapshot,
    snapshot: Snapshot,
    old: Meta | None,
) -> tuple[RowBoxes, Array]:
    """Return the rows of buffers whose boxes meet another's or the old tensor, and the buffer of each."""
    lo = np.array([box.lo for box in boxes], np.int64).reshape(len(boxes), spec.ndim)
    hi = np.array([box.hi for box in boxes], np.int64).reshape(len(boxes), spec.ndim)
    near = np.zeros(len(boxes), bool)
    for i in range(len(boxes)):
        meets = ((lo < hi[i]) & (hi > lo[i])).all(axis=1)
        near[i] = meets.sum() > 1
    there = RowBoxes(lo[:0], hi[:0], _NONE, _NONE)
    if old is not None:
        whole = hull(lo, hi).intersect(Box.whole(old.spec.shape))
        if not whole.is_empty:
            there = row_boxes(snapshot, old.spec, box_selection(old.spec.shape, whole))
            near |= [
                bool(((there.lo < b) & (there.hi > a)).all(axis=1).any()) for a, b in zip(lo, hi)
            ]
    if not near.any():
        return there.take(_NONE), _NONE
    region = box_selection(spec.shape, hull(lo[near], hi[near]))
    rows = row_boxes(new, spec, region)
    starts = np.array([start for start, _ in spans], np.int64)
    by = np.argsort(starts)
    group = by[np.searchsorted(starts[by], rows.seq, side="right") - 1]
    rows, group = rows.take(near[group]), group[near[group]]
    return _both(rows, there), np.concatenate([group, np.full(len(there), len(boxes))])


def _both(one: RowBoxes, two: RowBoxes) -> RowBoxes:
    names = ("lo", "hi", "nnz", "seq")
    return RowBoxes(*(np.concatenate([getattr(one, n), getattr(two, n)]) for n in names))


def _check_region(
    snapshot: Snapshot, spec: TensorSpec, box: Box, seqs: Array, appends: bool
) -> None:
    """Decode the rows at some places in storage order as far as they lie in a box, and compare them."""
    found: list[Array] = []
    total = 0
    for keys in _keys(snapshot, spec, box, seqs):
        found.append(keys)
        total += len(keys)
        halves = halved(box, spec) if total > 4 * _REGION else None
        if halves is not None:  # elements crowd here
            found.clear()
            for half in halves:
                _check_region(snapshot, spec, half, seqs, appends)
            return
    keys = np.sort(np.concatenate([_NONE, *found]))
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        inside = unravel(keys[twice[:1]], box.shape)[:, 0]
        at = tuple(a + int(b) for a, b in zip(box.lo, inside, strict=True))
        stored = ", or is stored already" if appends else ""
        raise InvalidTensorError(
            f"cell {at} of tensor {spec.id!r} is given more than once{stored}; option('duplicates', 'sum') or "
            "option('duplicates', 'last') combines them"
        )


def _keys(snapshot: Snapshot, spec: TensorSpec, box: Box, seqs: Array) -> Iterator[Array]:
    """Yield the places in a box of the elements of some rows, a bounded number at a time."""
    layout = layout_of(spec.layout)
    selection = box_selection(spec.shape, box)
    columns = scan.leaves(layout.columns, spec.ndim)
    for piece in scan.pieces(snapshot, scan.plan(snapshot, spec.id, selection)):
        keep = snapshot.kept(piece.path)
        for batch in scan.read_piece(snapshot.storage, piece, spec.id, columns, keep):
            seq = batch.column("seq").to_numpy()
            place = np.minimum(np.searchsorted(seqs, seq), len(seqs) - 1)
            batch = filtered(
                batch, (seqs[place] == seq) & selection.hits(*corners(batch, spec.ndim))
            )
            for some in runs_of(batch.column("nnz").to_numpy(), _DECODE):
                gathered = Gathered()
                with reading(snapshot.storage, piece.path):
                    part = batch.slice(some.start, some.stop - some.start)
                    layout.decode(part, spec, selection, gathered)
                for keys, _, _ in gathered.parts:
                    yield keys
