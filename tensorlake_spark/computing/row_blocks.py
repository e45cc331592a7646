"""Rows of a batch become blocks of a selection: what a map takes, in the place that NumPy's answer has for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tensorlake_spark.computing.composing import axes_of
from tensorlake_spark.computing.fold import Fold, Place
from tensorlake_spark.indexing import Selection, place
from tensorlake_spark.indexing.coords import ravel, sort_places, unravel
from tensorlake_spark.indexing.selection import Points
from tensorlake_spark.layouts import stored_layout
from tensorlake_spark.layouts.result_memory import scratch
from tensorlake_spark.layouts.sparse.element_keys import Gathered
from tensorlake_spark.layouts.verification import boxes
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.threads import THREADS

Array = np.ndarray[Any, Any]
Partial = TypeVar("Partial")

BLOCK_BYTES = max(4 << 20, (48 << 20) // THREADS)
"""Neighbouring rows of a dense tensor are decoded into one block of at most this size: large blocks over one part of
an answer are combined before they leave a thread."""

BLOCK_ELEMENTS = max(512 << 10, (2 << 20) // THREADS)
"""Rows of a sparse tensor are decoded together up to so many elements: each block costs Python a third of a ms."""


def fold_rows(
    fold: Fold[Partial],
    batch: pa.RecordBatch,
    spec: TensorSpec,
    selection: Selection,
    out: Partial | None = None,
    of_file: AbstractContextManager[None] | None = None,
) -> tuple[Partial | None, Totals]:
    """Return the partial of a batch of rows, and what was decoded of it.

    Parameters
    ----------
    fold : Fold
        The operation.
    batch : pyarrow.RecordBatch
        Data rows of the tensor, with the columns of its layout, as a scan gives them.
    spec : TensorSpec
        The tensor.
    selection : Selection
        What is asked for; an index array in it has rank 1.
    out : optional
        The partial of rows before these, which goes into the one that is returned, and may be changed for it.
    of_file : context manager, optional
        Entered whenever rows are decoded, and left before the fold gets them: errors of the fold are not the file's.

    Raises
    ------
    CorruptDataError
        If a row is not what was written.
    """
    decoding = nullcontext() if of_file is None else of_file
    if stored_layout(spec).is_sparse:
        blocks: Iterator[tuple[Place, Any, Totals]]
        blocks = element_blocks(batch, spec, selection, fold.in_order)
    else:
        blocks = dense_blocks(batch, spec, selection)
    totals = Totals()
    while True:
        with decoding:
            decoded = next(blocks, None)
        if decoded is None:
            return out, totals
        where, block, found = decoded
        totals += found
        out = fold.add(out, where, block)


def dense_blocks(
    batch: pa.RecordBatch, spec: TensorSpec, selection: Selection
) -> Iterator[tuple[Place, Array, Totals]]:
    """Yield the blocks of rows of a dense tensor, each with its place. A block is overwritten by the next one."""
    layout = stored_layout(spec)
    lo, hi = boxes(batch, spec.ndim)
    hit = np.flatnonzero(selection.hits(lo, hi))
    apart = any(isinstance(axis, Points) for axis in selection.axes)
    scratch = np.empty(0, spec.dtype)
    most = 0 if apart else BLOCK_BYTES // spec.dtype.itemsize
    stretches = np.split(hit, np.flatnonzero(np.diff(hit) > 1) + 1)
    runs = (run for rows in stretches for run in _tilings(lo, hi, rows.tolist(), most))
    for first, stop in runs:
        low, high = lo[first:stop].min(axis=0), hi[first:stop].max(axis=0)
        where = _where(selection, low.tolist(), high.tolist())
        shape = [_length(part) for part in where]
        size = math.prod(shape)
        if size > scratch.size:
            scratch = np.empty(size, spec.dtype)
        block = scratch[:size].reshape(shape)
        totals = layout.decode(
            batch.slice(first, stop - first), spec, selection, _Frame(block, where)
        )
        yield *oriented(selection, where, block), totals


def fill_blocks(
    spec: TensorSpec, selection: Selection, lo: Sequence[int], hi: Sequence[int]
) -> tuple[Place, Array]:
    """Return the block of a box that no row stores: all of it is the fill value, in memory once."""
    where = _where(selection, lo, hi)
    block = np.broadcast_to(spec.fill_value, [_length(part) for part in where])
    return oriented(selection, where, block)


def element_blocks(
    batch: pa.RecordBatch, spec: TensorSpec, selection: Selection, in_order: bool = True
) -> Iterator[tuple[Place, Elements, Totals]]:
    """Yield the elements of rows of a sparse tensor, some rows at a time; the place is the whole selection.

    They are in C order, or as they are stored if nobody wants the order.
    """
    layout = stored_layout(spec)
    counts = np.cumsum(batch.column("nnz").to_numpy())
    first = 0
    while first < batch.num_rows:
        before = int(counts[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(counts, before + BLOCK_ELEMENTS, "right")))
        found = Gathered(in_order)
        totals = layout.decode(batch.slice(first, stop - first), spec, selection, found)
        first = stop
        for keys, values, _ in found.parts:
            if values.dtype != spec.dtype:
                short, values = values, scratch(values.shape, spec.dtype)
                values[:] = short
            yield whole_place(selection.result_shape), _answered(selection, keys, values), totals
            totals = Totals()
        if not found.parts:
            yield (
                whole_place(selection.result_shape),
                _answered(selection, np.zeros(0, np.int64), np.zeros(0, spec.dtype)),
                totals,
            )


def whole_place(shape: Sequence[int]) -> Place:
    """Return the place of a block that is all of a selection."""
    return tuple(slice(0, n) for n in shape)


def _answered(selection: Selection, keys: Array, values: Array) -> Elements:
    """Return elements in the answer from their ascending places in storage."""
    shape = selection.result_shape
    if not (selection.flips or selection.moved):
        return Elements._trusted(None, values, shape, keys)
    coords = place(selection, unravel(keys, selection.storage_shape))
    keys, by = sort_places(ravel(coords, shape))
    return Elements._trusted(None, values[by], shape, keys)


def oriented(
    selection: Selection, where: Sequence[slice | Array], block: Array
) -> tuple[Place, Array]:
    """Return the place of a block in NumPy's answer, and the block as it lies there: a view, but for index arrays.

    Parameters
    ----------
    selection : Selection
        What is asked for.
    where : sequence of slice or int64 ndarray
        Where the block lies in ``selection.storage_shape``.
    block : ndarray
        As storage has it, every axis kept.

    Examples
    --------
    >>> from tensorlake_spark.indexing import select
    >>> backwards = select((slice(None, None, -1), 1), (9, 4))
    >>> oriented(backwards, (slice(0, 2), slice(0, 1)), np.array([[5], [6]]))
    ((slice(7, 9, None),), array([6, 5]))
    """
    parts: list[slice | Array] = []
    for k, part in enumerate(where):
        if isinstance(part, slice):
            count = selection.storage_shape[k]
            turned = slice(count - part.stop, count - part.start)
            parts.append(turned if k in selection.flips else slice(part.start, part.stop))
            continue
        order = np.argsort(part, kind="stable")
        parts.append(part[order])
        block = np.take(block, order, axis=k)
    if selection.flips:
        block = np.flip(block, selection.flips)
    axes = axes_of(selection)
    kept = [axis for axis in axes if axis is not None]
    chosen = (*(0 if k in selection.drops else slice(None) for k in range(block.ndim)), ...)
    block = block[chosen]
    if kept != sorted(kept):
        block = block.transpose([sorted(kept).index(axis) for axis in kept])
    for position in selection.newaxes:
        block = np.expand_dims(block, position)
    return tuple(slice(0, 1) if axis is None else parts[axis] for axis in axes), block


class _Frame:
    """A part of a result that a layout decodes into as if it were all of it."""

    def __init__(self, array: Array, where: Sequence[slice | Array]) -> None:
        self._array = array
        self._begin = [part.start if isinstance(part, slice) else 0 for part in where]

    def __getitem__(self, where: tuple[Any, ...]) -> Array:
        return np.asarray(self._array[self._here(where)])

    def __setitem__(self, where: tuple[Any, ...], part: Array) -> None:
        self._array[self._here(where)] = part

    def _here(self, where: tuple[Any, ...]) -> tuple[Any, ...]:
        out = [
            # An index array is that of the only row that is decoded: it is here from end to end.
            slice(part.start - begin, part.stop - begin)
            if isinstance(part, slice)
            else np.arange(part.size).reshape(part.shape)
            for part, begin in zip(where, self._begin, strict=False)
        ]
        return (*out, *where[len(out) :])


def _where(selection: Selection, lo: Sequence[int], hi: Sequence[int]) -> list[slice | Array]:
    """Return where a box of the tensor lies in ``selection.storage_shape``."""
    sides = zip(selection.axes, lo, hi, strict=True)
    return [axis.within(int(a), int(b))[1] for axis, a, b in sides]


def _length(part: slice | Array) -> int:
    return part.stop - part.start if isinstance(part, slice) else len(part)


def _tilings(lo: Array, hi: Array, rows: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of neighbouring rows whose boxes tile a larger box of at most `most` cells; a row at least.

    Examples
    --------
    >>> lo = np.array([[0, 0], [0, 4], [2, 0], [2, 4], [4, 0]])
    >>> list(_tilings(lo, lo + [2, 4], range(5), 40))
    [(0, 4), (4, 5)]
    """
    lows, highs = lo.tolist(), hi.tolist()
    waiting = list(rows)
    while waiting:
        first, stop = waiting[0], waiting[0] + 1
        low, high, cells = lows[first], highs[first], 0
        for row in waiting:
            low, high = list(map(min, low, lows[row])), list(map(max, high, highs[row]))
            cells += math.prod(b - a for a, b in zip(lows[row], highs[row], strict=True))
            hull = math.prod(b - a for a, b in zip(low, high, strict=True))
            if hull > most:
                break
            if hull == cells:
                stop = row + 1
        yield first, stop
        del waiting[: stop - first]
