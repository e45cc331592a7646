"""Offsets in blocks: bit fields of coordinates, looked through without taking them apart.

Rows come many at a time, all with the same fields; what is picked of them is found on the packed offsets,
and only what is left is made a key of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import AnySelection, Run, Selection, locate
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.kernel_switch import compiled
from tensorlake_spark.layouts.coding.buffers import (
    check_several,
    int_planes,
    unpack_ints,
    unpack_values,
)
from tensorlake_spark.layouts.coding.integer_sequences import ascending
from tensorlake_spark.layouts.sparse.element_keys import LOOPS, Rows, axis_order, combines
from tensorlake_spark.layouts.verification import integers, params_of
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

MAX_BITS = 62
"""Of an offset."""

_FEW = 4  # elements are taken out when fewer than one in so many is left


@dataclass(frozen=True, eq=False)
class Fields:
    """Where in an offset the coordinates of each axis are.

    Compared by identity, because every row of a batch has some; `fields_of` gives rows the same ones.

    Attributes
    ----------
    bits : tuple of int
        Width of every axis.
    order : tuple of int
        The axes, the highest bits first.

    Examples
    --------
    >>> fields = Fields((2, 3), (1, 0))
    >>> fields.total, fields.shifts, [axis.tolist() for axis in fields.unpack(np.array([0b101_11]))]
    (5, (0, 2), [[3], [5]])
    """

    bits: tuple[int, ...]
    order: tuple[int, ...]

    @cached_property
    def total(self) -> int:
        """Bits of an offset."""
        return sum(self.bits)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """For every axis the bits below its own."""
        out, shift = [0] * len(self.bits), 0
        for k in reversed(self.order):
            out[k] = shift
            shift += self.bits[k]
        return tuple(out)

    def axis(self, offset: Array, k: int) -> Array:
        """Return the coordinates on one axis, in the word of the offsets."""
        word = offset.dtype.type
        out: Array = offset >> word(self.shifts[k])
        out &= word((1 << self.bits[k]) - 1)
        return out

    def unpack(self, offset: Array) -> list[Array]:
        """Return the coordinates in the block, axis by axis."""
        return [self.axis(offset, k) for k in range(len(self.bits))]


@lru_cache(maxsize=256)
def fields_of(params: str | None, ndim: int) -> Fields:
    """Return the fields that the parameters of a row name.

    Raises
    ------
    CorruptDataError
        If they name none.
    """
    found = params_of(params)
    bits = integers(found.get("bits"), ndim, "widths of coordinates")
    if sum(bits) > MAX_BITS:
        raise CorruptDataError(f"offsets of {sum(bits)} bits; they have {MAX_BITS} at the most")
    return _fields(tuple(bits), axis_order(found, ndim))


@lru_cache(maxsize=256)
def _fields(bits: tuple[int, ...], order: tuple[int, ...]) -> Fields:
    return Fields(bits, order)


def unpack_offsets(rows: Rows, fields: Fields) -> Array:
    """Return the offsets of all elements of some rows: uint32, or uint64 where their bits need it.

    Raises
    ------
    CorruptDataError
        If they do not ascend, or lie outside of their boxes.
    """
    counts = np.array(rows.counts, np.int64)
    buffers = rows.payloads.index
    check_several(buffers, rows.counts)
    gaps = unpack_ints(buffers, rows.counts)
    if fields.total > 31:
        gaps = gaps.astype(np.uint64)
    offset = ascending(gaps, counts)
    if int(offset[np.cumsum(counts) - 1].max()) >> fields.total:
        raise CorruptDataError("an offset leaves its block")
    return offset


def _coordinates(offset: Array, counts: Array, rows: Rows, fields: Fields) -> Iterator[Array]:
    """Yield the coordinates in their blocks of some elements, axis by axis, in the word of the offsets.

    Parameters
    ----------
    offset : ndarray, shape (n,)
        Row by row.
    counts : int64 ndarray, shape (rows,)
        How many are of each row.

    Raises
    ------
    CorruptDataError
        If an element lies outside of the box of its row.
    """
    longest = np.array([1 << bits for bits in fields.bits], np.int64)
    sides = np.minimum(rows.hi - rows.lo, longest).astype(offset.dtype)
    for k, shortest in enumerate(sides.min(axis=0)):
        at = fields.axis(offset, k)
        # One look at the greatest is enough where all boxes are as long as it needs.
        if at.max(initial=0) >= shortest and (at >= np.repeat(sides[:, k], counts)).any():
            raise CorruptDataError("an element of a block lies outside of its box")
        yield at


def pick_offsets(
    rows: Rows, fields: Fields, spec: TensorSpec, selection: AnySelection
) -> tuple[Array, Array, Array]:
    """Return what a selection picks of rows that store offsets; see `SparseLayout.pick`."""
    row = np.arange(len(rows.counts))
    runs = (
        [axis for axis in selection.axes if isinstance(axis, Run)]
        if isinstance(selection, Selection)
        else []
    )
    loops = None
    if len(runs) == spec.ndim > 0:
        loops = compiled(LOOPS, "pick", nbytes=8 * sum(rows.counts))
    if loops is not None:
        buffers = rows.payloads.index
        check_several(buffers, rows.counts)
        planes, widths = int_planes(buffers, rows.counts)
        packed = loops.Packed(
            planes, widths, rows.counts, fields.bits, fields.shifts, rows.lo, rows.hi
        )
        ranges = [(*run.bounds, run.step) for run in runs]
        strides = [math.prod(r.count for r in runs[k + 1 :]) for k in range(spec.ndim)]
        keys, take, counts = loops.pick(packed, ranges, strides)
        return keys, _values(rows, spec, take, counts), _rows_of(row, counts, spec)
    offset = unpack_offsets(rows, fields)
    counts = np.array(rows.counts, np.int64)
    if len(runs) == spec.ndim and isinstance(selection, Selection):
        offset, counts, take = _within(offset, counts, rows, fields, runs)
        keys = _keys(offset, counts, rows, fields, runs)
        return keys, _values(rows, spec, take, counts), _rows_of(row, counts, spec)
    coords = np.empty((spec.ndim, len(offset)), np.int64)
    for k, at in enumerate(_coordinates(offset, counts, rows, fields)):
        coords[k] = at
        coords[k] += np.repeat(rows.lo[:, k], counts)
    take, out = locate(selection, coords)
    row = np.repeat(row, counts)[take]
    counts = np.bincount(row, minlength=len(counts))
    return ravel(out, selection.storage_shape), _values(rows, spec, take, counts), row


def _rows_of(row: Array, counts: Array, spec: TensorSpec) -> Array:
    return np.repeat(row, counts) if combines(spec) else row[:0]


def _values(rows: Rows, spec: TensorSpec, take: Array | None, counts: Array) -> Array:
    """Return the values of the taken elements, so many of each row; rows without one are not decompressed."""
    packed = rows.payloads.values
    if take is None:
        return unpack_values(packed, rows.counts, spec.dtype, widened=False)
    stored = np.array(rows.counts, np.int64)
    hit = counts > 0
    some = np.flatnonzero(hit).tolist()
    if not hit.all():
        take = take - np.repeat(np.cumsum(np.where(hit, 0, stored)), counts)
    return unpack_values([packed[i] for i in some], stored[hit].tolist(), spec.dtype, take, False)


def _within(
    offset: Array, counts: Array, rows: Rows, fields: Fields, runs: Sequence[Run]
) -> tuple[Array, Array, Array | None]:
    """Return the elements that lie in all ranges: offsets, how many of each row, and places; None for all."""
    take: Array | None = None
    mask: Array | None = None
    low, high = rows.lo.min(axis=0).tolist(), rows.hi.max(axis=0).tolist()
    tested = []
    for k, run in enumerate(runs):
        start, stop = run.bounds
        if run.step > 1 or low[k] < start or high[k] > stop:
            tested.append(k)
    if tested and fields.order[0] in tested:
        lead = fields.order[0]
        take, counts = _leading(offset, counts, rows, fields, runs[lead])
        offset = offset[take]
        if runs[lead].step == 1:
            tested.remove(lead)
    tested.sort(key=lambda k: runs[k].count / (high[k] or 1))
    for k in tested:
        start, stop = runs[k].bounds
        at = fields.axis(offset, k)
        # Modulo the word, what lies before the start is far behind the stop: 31 bits hold all distances.
        if max(high[k], stop) >= 1 << 31:
            at = at.astype(np.uint64)
        first = (start - rows.lo[:, k]).astype(at.dtype)
        at -= first[0] if (first == first[0]).all() else np.repeat(first, counts)
        found = at < at.dtype.type(stop - start)
        if runs[k].step > 1:
            found &= at % at.dtype.type(runs[k].step) == 0
        mask = found if mask is None else mask & found
        # Elements are taken out once, unless the next test is much cheaper on what is left.
        if k != tested[-1] and np.count_nonzero(mask) * _FEW > len(mask):
            continue
        kept = np.flatnonzero(mask)
        mask = None
        counts = np.diff(np.searchsorted(kept, np.cumsum(counts)), prepend=0)
        offset, take = offset[kept], kept if take is None else take[kept]
    return offset, counts, take


def _leading(
    offset: Array, counts: Array, rows: Rows, fields: Fields, run: Run
) -> tuple[Array, Array]:
    """Return places of the elements in the range of the leading field, and how many each row has.

    Offsets ascend, so that these lie side by side in each row.
    """
    k = fields.order[0]
    edges = np.clip(np.array(run.bounds) - rows.lo[:, k, None], 0, 1 << fields.bits[k])
    edges = (edges << fields.shifts[k]).astype(offset.dtype)
    starts = np.cumsum(counts) - counts
    spans = zip(starts.tolist(), rows.counts, edges, strict=True)
    cuts = np.array([offset[start : start + n].searchsorted(edge) for start, n, edge in spans])
    first, counts = starts + cuts[:, 0], cuts[:, 1] - cuts[:, 0]
    skipped = first - (np.cumsum(counts) - counts)
    return np.arange(counts.sum()) + np.repeat(skipped, counts), counts


def _keys(offset: Array, counts: Array, rows: Rows, fields: Fields, runs: Sequence[Run]) -> Array:
    """Return the places of elements in C order in the shape that ranges pick."""
    # Modulo the word, what one row's box adds may be negative.
    word = np.uint32 if math.prod(r.count for r in runs) <= 1 << 32 else np.uint64
    keys = np.zeros(len(offset), word)
    base = np.zeros(len(counts), np.int64)
    stride = math.prod(r.count for r in runs)
    for k, (run, at) in enumerate(
        zip(runs, _coordinates(offset, counts, rows, fields), strict=True)
    ):
        stride //= run.count
        shift = rows.lo[:, k] - run.bounds[0]
        if run.step > 1:
            at = (at.astype(np.int64) + np.repeat(shift, counts)) // run.step
        else:
            base += shift * stride
        at = at.astype(word, copy=False)
        at *= word(stride)
        keys += at
    keys += np.repeat(base.astype(word), counts)
    return keys.astype(np.int64)
