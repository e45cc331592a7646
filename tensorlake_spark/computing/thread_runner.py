"""Folds a selection of a stored tensor in the threads of this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.regions import element_regions
from tensorlake_spark.computing.row_blocks import fill_blocks, fold_rows, whole_place
from tensorlake_spark.delta.files import scan
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.progress import progress
from tensorlake_spark.reading.gaps import gaps, stored_boxes, touched_cells
from tensorlake_spark.reading.read import check_totals, is_full
from tensorlake_spark.rows.row import Totals

Partial = TypeVar("Partial")

_JOB_BYTES = 64 << 20
"""What a thread reads for one partial: it may be as large as the answer, and takes time to make and to combine."""


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
    for step, part in fold.steps(stored):
        yield from partials(step, part)
        del step, part


def partials(fold: Fold[Partial], stored: Stored) -> Iterator[Partial]:
    """Yield the partials of all that is selected; of each piece that a thread reads they are combined already."""
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
        yield from _from_rows(fold, stored)
        if not stored.is_sparse and not (is_full(stored.meta) and stored.verify):
            yield from _from_gaps(fold, stored)


def _from_rows(fold: Fold[Any], stored: Stored) -> Iterator[Any]:
    """Yield the partials of stored rows, and hold what was found against the totals."""
    snapshot, selection, spec = stored.snapshot, stored.plain, stored.meta.spec
    columns = stored_layout(spec).columns
    read_plan = scan.plan(snapshot, spec.id, selection, columns)
    sums = Totals()

    def visit(batches: Iterator[pa.RecordBatch]) -> tuple[Any, Totals]:
        out: Any = None
        totals = Totals()
        for batch in batches:
            out, found = fold_rows(fold, batch, spec, selection, out)
            totals += found
        return out, totals

    with progress(f"compute {spec.id}", read_plan.n_bytes) as done:
        found = scan.each_piece(snapshot, read_plan, columns, visit, done, _JOB_BYTES)
        for partial, totals in found:
            sums += totals
            if partial is not None:
                yield partial
    if stored.verify:
        check_totals(stored.meta, selection, sums)


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
