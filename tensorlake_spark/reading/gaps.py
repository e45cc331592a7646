"""Which parts of a dense tensor have no row: they are full of the fill value, where no row was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.delta.files.compacting.rewrite import boxes
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.selection import box_selection
from tensorlake_spark.layouts import AnySelection, grid_of
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

Cells = tuple[list[Box], Array, Array]
"""Boxes, and their lower and upper corners as arrays of shape (boxes, ndim)."""

StoredBoxes = tuple[str, Array, Array]
"""A file, and the corners of rows in it."""


def touched_cells(spec: TensorSpec, selection: AnySelection) -> Cells:
    """Return the grid cells that hold a selected element."""
    cells = list(grid_of(spec).cells(selection.box))
    lo = np.array([c.lo for c in cells], np.int64).reshape(len(cells), spec.ndim)
    hi = np.array([c.hi for c in cells], np.int64).reshape(len(cells), spec.ndim)
    hit = selection.hits(lo, hi)
    return [c for c, h in zip(cells, hit.tolist(), strict=True) if h], lo[hit], hi[hit]


def stored_boxes(snapshot: Snapshot, spec: TensorSpec, cells: Cells) -> list[StoredBoxes]:
    """Return the boxes of the rows near some cells, at least one, with their files; no payload is read."""
    _, lo, hi = cells
    region = Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
    return boxes(snapshot, spec.id, box_selection(spec.shape, region))


def gaps(cells: Cells, stored: Sequence[StoredBoxes], selection: AnySelection) -> Iterator[Box]:
    """Yield what of the cells no stored row covers, where an element of it is selected."""
    of_cells, lo, hi = cells
    row_lo = np.concatenate([a for _, a, _ in stored] or [lo[:0]])
    row_hi = np.concatenate([b for _, _, b in stored] or [hi[:0]])
    for box in uncovered(of_cells, row_lo, row_hi):
        if selection.hits(np.array([box.lo]), np.array([box.hi]))[0]:
            yield box


def uncovered(cells: Iterable[Box], lo: Array, hi: Array) -> Iterator[Box]:
    """Yield what of the cells no stored row covers: whole cells, mostly.

    Parameters
    ----------
    cells : iterable of Box
        Cells of the tensor's grid.
    lo, hi : int64 ndarray, shape (rows, ndim)
        Corners of the stored rows.

    Examples
    --------
    >>> list(uncovered([Box((0,), (4,)), Box((4,), (8,))], np.array([[0]]), np.array([[6]])))
    [Box(lo=(6,), hi=(8,))]
    """
    whole = {(tuple(a), tuple(b)) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)}
    for cell in cells:
        if (cell.lo, cell.hi) in whole:
            continue
        near = ((lo < cell.hi) & (hi > cell.lo)).all(axis=1) if len(lo) else np.zeros(0, bool)
        missing = [cell]
        for a, b in zip(lo[near].tolist(), hi[near].tolist(), strict=True):
            missing = [rest for box in missing for rest in box.subtract(Box(tuple(a), tuple(b)))]
        yield from missing
