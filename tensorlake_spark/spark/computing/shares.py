"""A selection of a stored tensor, cut into shares of about equal work: what one task folds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.regions import element_region, region_boxes
from tensorlake_spark.computing.row_blocks import fill_blocks, fold_rows, whole_place
from tensorlake_spark.computing.thread_runner import partials
from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.indexing import Box, Selection
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.reading.gaps import gaps, stored_boxes, touched_cells
from tensorlake_spark.reading.read import is_full
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]
Partial = TypeVar("Partial")

_TASKS = 2
"""For every core: each sends a partial, which may be as large as the answer."""

_LEAST_BYTES = 16 << 20
"""What a task reads at the least, where there is as much: it takes some tenths of a second to start."""

_MOST_BYTES = 1 << 30
"""What a task reads at the most, as it may be lost and done again."""


@dataclass(frozen=True, eq=False)
class RowShare:
    """Rows of a tensor, and boxes that no row covers. It travels to a task, which opens no table.

    Attributes
    ----------
    storage : Storage
        The table.
    spec : TensorSpec
        The tensor.
    selection : Selection
        What is computed on.
    pieces : tuple of ScanPiece
        Row groups that overlap the selection.
    keeps : dict of str to ndarray
        For files with a deletion vector which rows are still there.
    fills : tuple of Box
        Full of the fill value.
    """

    storage: Storage
    spec: TensorSpec
    selection: Selection
    pieces: tuple[scan.ScanPiece, ...] = ()
    keeps: dict[str, Array] = field(default_factory=dict)
    fills: tuple[Box, ...] = ()

    def fold(self, fold: Fold[Partial]) -> tuple[Partial | None, Totals]:
        """Return the partial of the share, and what was read for it; a few blocks are in memory at a time."""
        out: Partial | None = None
        totals = Totals()
        columns = scan.leaves(stored_layout(self.spec).columns, self.spec.ndim)
        for piece in self.pieces:
            keep = self.keeps.get(piece.path)
            for batch in scan.read_piece(self.storage, piece, self.spec.id, columns, keep):
                of_file = reading(self.storage, piece.path)
                both = fold_rows(fold, batch, self.spec, self.selection, out, of_file)
                out, totals = both[0], totals + both[1]
        for box in self.fills:
            out = fold.add(out, *fill_blocks(self.spec, self.selection, box.lo, box.hi))
        return out, totals


@dataclass(frozen=True, eq=False)
class RegionShare:
    """Boxes of a selection that are read as slices: what lies in several rows meets there before it is folded.

    Attributes
    ----------
    stored : Stored
        The selection; where it travels to, its version of the table is opened.
    boxes : tuple of Box
        Parts of it. None for all of it in one.
    """

    stored: Stored
    boxes: tuple[Box, ...] | None = None

    def fold(self, fold: Fold[Partial]) -> tuple[Partial | None, Totals]:
        """Return the partial of the share. Rows are not counted, as slices may share them."""
        if self.boxes is None:
            return fold.combine_all(partials(fold, self.stored)), Totals()
        place = whole_place(self.stored.shape)
        found = (fold.map(place, element_region(self.stored, box)) for box in self.boxes)
        return fold.combine_all(found), Totals()


Share = RowShare | RegionShare


def shares_of(stored: Stored, cores: int) -> list[Share]:
    """Cut a selection into shares: some for every core, none of them tiny. Only footers and corners are read.

    Parameters
    ----------
    stored : Stored
        What is computed on; not empty.
    cores : int
        Tasks that run at a time.
    """
    if not stored.has_blocks:
        return [RegionShare(stored)]
    if stored.has_duplicates:
        boxes = list(region_boxes(stored))
        count = min(len(boxes), _TASKS * cores)
        return [
            RegionShare(
                stored, tuple(boxes[len(boxes) * k // count : len(boxes) * (k + 1) // count])
            )
            for k in range(count)
        ]
    return [*_of_rows(stored, cores), *_of_gaps(stored, cores)]


def count_of(nbytes: int, cores: int) -> int:
    """Return how many tasks read so many bytes.

    Examples
    --------
    >>> [count_of(nbytes, 2) for nbytes in (1, 100 << 20, 1 << 30, 1 << 40)]
    [1, 4, 4, 1024]
    """
    return max(1, min(nbytes // _LEAST_BYTES, _TASKS * cores), -(-nbytes // _MOST_BYTES))


def _of_rows(stored: Stored, cores: int) -> list[RowShare]:
    """Return the rows that a selection needs, neighbours together, in shares of about equal bytes."""
    snapshot, spec, selection = stored.snapshot, stored.meta.spec, stored.selection
    assert isinstance(selection, Selection)  # nosec B101 # for mypy: it has blocks
    found = scan.plan(snapshot, spec.id, selection, stored_layout(spec).columns)
    count = count_of(found.n_bytes, cores)
    groups: list[list[scan.ScanPiece]] = [[] for _ in range(count)]
    before = 0
    for piece in scan.pieces(snapshot, found, max(1, found.n_bytes // (8 * count))):
        middle = before + piece.nbytes // 2
        groups[min(middle * count // max(1, found.n_bytes), count - 1)].append(piece)
        before += piece.nbytes
    out = []
    for group in groups:
        kept = {piece.path: snapshot.kept(piece.path) for piece in group}
        keeps = {path: keep for path, keep in kept.items() if keep is not None}
        if group:
            out.append(RowShare(snapshot.storage, spec, selection, scan.joined(group), keeps))
    return out


def _of_gaps(stored: Stored, cores: int) -> list[RowShare]:
    """Return what no row covers: of a dense tensor it is full of the fill value."""
    spec, selection = stored.meta.spec, stored.selection
    if stored.is_sparse or (is_full(stored.meta) and stored.verify):
        return []
    assert isinstance(selection, Selection)  # nosec B101 # as above
    cells = touched_cells(spec, selection)
    boxes = list(gaps(cells, stored_boxes(stored.snapshot, spec, cells), selection))
    if not boxes:
        return []
    ends = np.cumsum([box.size for box in boxes])
    count = count_of(int(ends[-1]) * spec.dtype.itemsize, cores)
    numbers = ((ends - 1) * count // ends[-1]).tolist()
    groups: list[list[Box]] = [[] for _ in range(count)]
    for number, box in zip(numbers, boxes, strict=True):
        groups[number].append(box)
    storage = stored.snapshot.storage
    return [RowShare(storage, spec, selection, fills=tuple(group)) for group in groups if group]
