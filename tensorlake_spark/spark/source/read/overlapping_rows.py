"""Rows whose boxes overlap: found by their corners alone, and cut into regions that fit into memory.

Rows of a sparse tensor may share a box: elements were appended, or came from several tasks. Who has to see
such rows together, a reader that combines duplicates or a writer that looks for them, asks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.indexing import Box, Grid, Points, Run, Selection, cells_along
from tensorlake_spark.layouts import grid_of, layout_of
from tensorlake_spark.rows.binary_views import VIEW
from tensorlake_spark.rows.row import corners
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec

Array = np.ndarray[Any, Any]

_HALVINGS = (
    4096  # regions of one cut at the most: where all rows span everything, finer ones do not help
)


@dataclass(frozen=True, eq=False)
class RowBoxes:
    """Rows of a tensor without their payload.

    Attributes
    ----------
    lo, hi : int64 ndarray, shape (rows, ndim)
        Their boxes.
    nnz, seq : int64 ndarray, shape (rows,)
        Elements that each stores, and its place in the tensor's storage order.
    """

    lo: Array
    hi: Array
    nnz: Array
    seq: Array

    def __len__(self) -> int:
        return len(self.nnz)

    def take(self, which: Array) -> RowBoxes:
        """Return some of the rows, by a mask or by their places."""
        return RowBoxes(self.lo[which], self.hi[which], self.nnz[which], self.seq[which])


def row_boxes(snapshot: Snapshot, spec: TensorSpec, selection: Selection) -> RowBoxes:
    """Return the rows that a selection needs; no payload is read."""
    names = ("seq", "lo", "hi", "nnz", *(("params",) if spec.ndim > STORED_AXES else ()))
    columns = scan.leaves(names, spec.ndim)
    parts = []
    for piece in scan.pieces(snapshot, scan.plan(snapshot, spec.id, selection)):
        keep = snapshot.kept(piece.path)
        for batch in scan.read_piece(snapshot.storage, piece, spec.id, columns, keep):
            lo, hi = corners(batch, spec.ndim)
            nnz, seq = (batch.column(name).to_numpy() for name in ("nnz", "seq"))
            parts.append(RowBoxes(lo, hi, nnz, seq).take(selection.hits(lo, hi)))
    none = np.zeros((0, spec.ndim), np.int64)
    return RowBoxes(
        np.concatenate([none, *(p.lo for p in parts)]),
        np.concatenate([none, *(p.hi for p in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(p.nnz for p in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(p.seq for p in parts)]),
    )


def filtered(batch: pa.RecordBatch, mask: Array) -> pa.RecordBatch:
    """Return some rows of a batch; payloads stay where they are, which Arrow's own filter cannot."""
    if mask.all():
        return batch
    chosen = pa.array(mask)
    columns = [
        _views(column, mask) if column.type == pa.binary_view() else column.filter(chosen)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _views(column: pa.Array, mask: Array) -> pa.Array:
    _, raw, *data = column.buffers()
    views = np.frombuffer(raw, VIEW)[column.offset : column.offset + len(column)][mask]
    valid = np.asarray(column.is_valid())[mask]
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(
        pa.binary_view(), len(views), [bitmap, pa.py_buffer(np.ascontiguousarray(views)), *data]
    )


def cell_numbers(rows: RowBoxes, spec: TensorSpec) -> Array | None:
    """Return for each row the number of the grid cell that it lies in; None if one lies in several."""
    if spec.ndim and not spec.block_shape:
        return None
    grid = grid_of(spec)
    first, last = numbers_of(grid, rows.lo.T), numbers_of(grid, rows.hi.T - 1)
    return first if (first == last).all() else None


def numbers_of(grid: Grid, coords: Array) -> Array:
    """Return the numbers, in C order, of the grid cells in which elements lie.

    Parameters
    ----------
    grid : Grid
        The grid.
    coords : integer ndarray, shape (ndim, n)
        Within its shape.

    Examples
    --------
    >>> numbers_of(Grid((10, 6), (4, 2)), np.array([[3, 9], [5, 0]]))
    array([2, 6])
    """
    out = np.zeros(coords.shape[1], np.int64)
    for axis, count, side, starts in zip(
        coords, grid.counts, grid.chunk, grid.segments, strict=True
    ):
        out *= count
        out += cells_along(axis, side, starts)[0]
    return out


def overlapping(rows: RowBoxes, group: Array, spec: TensorSpec) -> Array:
    """Return for each row whether its box may overlap that of a row of another group.

    Where every row lies in one cell of the grid, rows of one cell count as overlapping.

    Parameters
    ----------
    rows : RowBoxes
        The rows.
    group : integer ndarray, shape (rows,)
        Rows of one group are known to share no element.
    spec : TensorSpec
        The tensor.
    """
    cells = cell_numbers(rows, spec)
    out = np.zeros(len(rows), bool)
    if cells is not None:
        by = np.argsort(cells, kind="stable")
        starts = _starts(cells[by])
        if len(starts):
            least, most = (f.reduceat(group[by], starts) for f in (np.minimum, np.maximum))
            counts = np.diff(starts, append=len(by))
            out[by] = np.repeat(least != most, counts)
        return out
    for a, b in _pairs(rows):
        other = b[group[b] != group[a]]
        out[other] = True
        out[a] |= len(other) > 0
    return out


def merged(rows: RowBoxes, spec: TensorSpec) -> tuple[Array, Array]:
    """Return boxes of which none overlaps another, and each row lies in one; as few as can be.

    Returns
    -------
    lo, hi : int64 ndarray, shape (boxes, ndim)
        In C order of their lower corners.
    """
    cells = cell_numbers(rows, spec)
    lo, hi = rows.lo, rows.hi
    if cells is not None:
        lo, hi = _hulls(lo, hi, cells)
    else:
        before = -1
        while len(lo) != before:
            before = len(lo)
            some = RowBoxes(lo, hi, np.zeros(before), np.zeros(before))
            pairs = [(a, b) for a, others in _pairs(some) for b in others.tolist()]
            left, right = np.array(pairs, np.int64).reshape(-1, 2).T
            lo, hi = _hulls(lo, hi, _connected(left, right, before))
    by = np.lexsort(lo.T[::-1]) if spec.ndim else np.arange(len(lo))
    return lo[by], hi[by]


def _connected(left: Array, right: Array, count: int) -> Array:
    """Return the number of the component that each of some nodes belongs to, by the edges between them."""
    from scipy.sparse import coo_array  # late: rarely needed, and slow to import in every worker
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), bool), (left, right)), shape=(count, count))
    components: Array = connected_components(graph, directed=False)[1]
    return components


def owners(rows: RowBoxes, lo: Array, hi: Array) -> Array:
    """Return for each row which of some boxes it lies in, -1 where it lies in none."""
    out = np.full(len(rows), -1, np.int64)
    for i, (low, high) in enumerate(zip(lo, hi, strict=True)):
        out[((rows.lo >= low) & (rows.hi <= high)).all(axis=1)] = i
    return out


def _starts(ascending: Array) -> Array:
    """Return where runs of equal numbers begin."""
    if not len(ascending):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))


def _hulls(lo: Array, hi: Array, group: Array) -> tuple[Array, Array]:
    """Return the smallest boxes around the boxes of each group."""
    by = np.argsort(group, kind="stable")
    starts = _starts(group[by])
    if not len(starts):
        return lo, hi
    return np.minimum.reduceat(lo[by], starts), np.maximum.reduceat(hi[by], starts)


def _pairs(rows: RowBoxes) -> Iterator[tuple[int, Array]]:
    """Yield a row, and those that overlap it and begin at or after it on the first axis."""
    count = len(rows)
    if not rows.lo.shape[1]:
        yield from ((i, np.arange(i + 1, count)) for i in range(count - 1))
        return
    by = np.argsort(rows.lo[:, 0], kind="stable")
    lo, hi = rows.lo[by], rows.hi[by]
    for i, stop in enumerate(np.searchsorted(lo[:, 0], hi[:, 0]).tolist()):
        span = slice(i + 1, stop)
        near = ((lo[span] < hi[i]) & (hi[span] > lo[i])).all(axis=1)
        if near.any():
            yield int(by[i]), by[span][near]


def regions(rows: RowBoxes, box: Box, limit: int, spec: TensorSpec) -> list[Box]:
    """Cut a box into parts with about `limit` stored elements each, in storage order.

    Parts without a row are left out. How the elements of a row lie in its box is not known, so they count
    as spread evenly.
    """
    out: list[Box] = []
    waiting = [(box, rows)]
    while waiting:
        part, some = waiting.pop()
        lo, hi = np.maximum(some.lo, part.lo), np.minimum(some.hi, part.hi)
        hit = np.asarray((lo < hi).all(axis=1))
        some = some.take(hit)
        if not len(some):
            continue
        share = ((hi - lo)[hit] / (some.hi - some.lo)).prod(axis=1)
        halves = None
        if (share * some.nnz).sum() > limit and len(out) + len(waiting) < _HALVINGS:
            halves = halved(part, spec)
        if halves is None:
            out.append(part)
        else:
            waiting += [(half, some) for half in reversed(halves)]
    return out


def halved(box: Box, spec: TensorSpec) -> tuple[Box, Box] | None:
    """Cut a box in two, along the axis that storage follows first and between blocks; None for one element."""
    lead = layout_of(spec.layout).leading_axis(spec) if spec.ndim else 0
    axes = [lead, *(k for k in range(spec.ndim) if k != lead)]
    sides = spec.block_shape or (1,) * spec.ndim
    for block in (sides, (1,) * spec.ndim):
        for k in axes[: spec.ndim]:
            a, b, side = box.lo[k], box.hi[k], block[k]
            at = (a + b) // 2 // side * side
            at = at if at > a else at + side
            if at < b:
                return (
                    Box(box.lo, (*box.hi[:k], at, *box.hi[k + 1 :])),
                    Box((*box.lo[:k], at, *box.lo[k + 1 :]), box.hi),
                )
    return None


def within(selection: Selection, box: Box) -> Selection:
    """Return the part of a selection that lies in a box, every axis kept and ascending."""
    axes: list[Run | Points] = []
    for axis, a, b in zip(selection.axes, box.lo, box.hi, strict=True):
        if isinstance(axis, Points):
            axes.append(Points(axis.indices[(axis.indices >= a) & (axis.indices < b)]))
            continue
        there, here = axis.within(a, b)
        first, count = a + int(there.start), int(here.stop) - int(here.start)
        axes.append(
            Run(first, first + (count - 1) * axis.step + 1, axis.step) if count else Run(0, 0)
        )
    return Selection(selection.shape, tuple(axes))


def hull(lo: Array, hi: Array) -> Box:
    """Return the smallest box around some boxes, at least one.

    Examples
    --------
    >>> hull(np.array([[0, 4], [2, 1]]), np.array([[1, 5], [3, 2]]))
    Box(lo=(0, 1), hi=(3, 5))
    """
    return Box(tuple(lo.min(axis=0).tolist()), tuple(hi.max(axis=0).tolist()))
