"""Folds a selection of a stored tensor in the threads of this process."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.regions import element_regions
from tensorlake_spark.computing.row_blocks import (
    BLOCK_BYTES,
    fill_blocks,
    fold_rows,
    whole_place,
)
from tensorlake_spark.delta.files import scan
from tensorlake_spark.delta.files.footer import reading
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.progress import progress
from tensorlake_spark.reading.gaps import gaps, stored_boxes, touched_cells
from tensorlake_spark.reading.read import check_totals, is_full
from tensorlake_spark.rows.row import Totals

Partial = TypeVar("Partial")

_JOB_BYTES = 64 << 20
"""What a thread reads for one partial: it may be as large as the answer, and takes time to make and to combine."""

_LARGE_BYTES = 32 << 20
"""Of an answer that is larger, each thread having one of its own would take much memory."""

_MAPPED_BYTES = 64 << 20
"""Bytes of files that may count as memory of the process when they have been computed with: the next time is faster."""


def compute(fold: Fold[Any], stored: Stored) -> Any:
    """Return the answer of an operation on a selection. No more than a few blocks of it are in memory at a time.

    Only rows that overlap the selection are read.

    Parameters
    ----------
    fold : Fold
        The operation.
    stored : Stored
        The selection.

    Raises
    ------
    CorruptDataError
        If stored bytes are not what was written, or rows are missing, as a read of the same selection would find.
    """
    return fold.finish(fold.combine_all(_of_steps(fold, stored)))


def _of_steps(fold: Fold[Partial], stored: Stored) -> Iterator[Partial]:
    """Yield the partials of all steps of a fold. What a step has in memory goes before the next one comes."""
    carried: list[Partial] = []
    for step, part in fold.steps(stored):
        yield from partials(step, part, carried)
        del step, part
    while carried:
        yield carried.pop()


def partials(
    fold: Fold[Partial], stored: Stored, carried: list[Partial] | None = None
) -> Iterator[Partial]:
    """Yield the partials of all that is selected; of each piece that a thread reads they are combined already.

    Parameters
    ----------
    fold : Fold
        The operation.
    stored : Stored
        The selection.
    carried : list, optional
        Has a large partial of steps before, or none; the one of this step may be there afterwards.
    """
    mine: list[Partial] = [] if carried is None else carried
    selection, spec = stored.selection, stored.meta.spec
    if selection.is_empty:
        block: Any = np.empty(stored.shape, spec.dtype)
        if stored.is_sparse:
            none = np.zeros((len(stored.shape), 0), np.int64)
            block = Elements._trusted(none, np.zeros(0, spec.dtype), stored.shape)
        yield fold.map(whole_place(stored.shape), block)
    elif not stored.has_blocks:
        yield fold.map(whole_place(stored.shape), _as_block(stored.read(), stored))
    elif stored.has_duplicates:
        for part in element_regions(stored):
            yield fold.map(whole_place(stored.shape), part)
    else:
        yield from _from_rows(fold, stored, mine)
        if not stored.is_sparse and not (is_full(stored.meta) and stored.verify):
            yield from _from_gaps(fold, stored)
    while carried is None and mine:
        yield mine.pop()


def _from_rows(fold: Fold[Any], stored: Stored, carried: list[Any]) -> Iterator[Any]:
    """Yield the partials of stored rows, or carry one, and hold what was found against the totals."""
    snapshot, selection, spec = stored.snapshot, stored.plain, stored.meta.spec
    columns = stored_layout(spec).columns
    read_plan = scan.plan(snapshot, spec.id, selection, columns)
    sums = Totals()

    one_by_one = _is_spread(fold, stored)

    def visit(batches: Iterator[pa.RecordBatch], of_file: reading) -> tuple[Any, Totals]:
        out: Any = carried.pop() if one_by_one and carried else None
        totals = Totals()
        for batch in batches:
            out, found = fold_rows(fold, batch, spec, selection, out, of_file)
            totals += found
        if one_by_one and out is not None:
            carried.append(out)
            out = None
        return out, totals

    with progress(f"compute {spec.id}", read_plan.n_bytes) as done:
        gives_back = read_plan.n_bytes > _MAPPED_BYTES
        found = scan.each_piece(
            snapshot, read_plan, columns, visit, done, _JOB_BYTES, gives_back, one_by_one,
            max(scan.BATCH_BYTES, BLOCK_BYTES),
        )  # fmt: skip
        for partial, totals in found:
            sums += totals
            if partial is not None:
                yield partial
    if stored.verify:
        check_totals(stored.meta, selection, sums)


def _is_spread(fold: Fold[Any], stored: Stored) -> bool:
    """Whether pieces that follow one another in storage all go into one large dense answer.

    A partial of each would be as large as the answer, so that there is one only.
    """
    shape = fold.answer_shape
    if stored.is_sparse or not stored.shape or not shape or 8 * math.prod(shape) <= _LARGE_BYTES:
        return False
    key, _ = fold.part(Box((0,) * len(shape), (1,) * len(shape)))
    return len(range(stored.shape[0])[key[0]]) == stored.shape[0]


def _from_gaps(fold: Fold[Partial], stored: Stored) -> Iterator[Partial]:
    """Yield the partials of what no row stores: it is full of the fill value."""
    spec, selection = stored.meta.spec, stored.plain
    cells = touched_cells(spec, selection)
    for box in gaps(cells, stored_boxes(stored.snapshot, spec, cells), selection):
        yield fold.map(*fill_blocks(spec, selection, box.lo, box.hi))


def _as_block(found: Any, stored: Stored) -> Any:
    """Return what a read gave as a block: of one element it gives a scalar."""
    if isinstance(found, Elements) or not stored.is_sparse:
        return found if isinstance(found, Elements) else np.asarray(found)
    values = np.asarray(found).reshape(1)
    return Elements._trusted(np.zeros((0, 1), np.int64), values, ())
