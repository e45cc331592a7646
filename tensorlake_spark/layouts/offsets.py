"""Offsets in blocks: bit fields of coordinates, looked through without taking them apart.

Rows come many at a time, all with the same fields; what is picked of them is found on the packed offsets,
and only what is left is made a key of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Run, Selection, locate
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts.base import AnySelection
from tensorlake_spark.layouts.buffers import check_ints, unpack_ints, unpack_values
from tensorlake_spark.layouts.check import integers, params_of
from tensorlake_spark.layouts.sequences import ascending
from tensorlake_spark.layouts.sparse import Rows, axis_order
from tensorlake_spark.spec import TensorSpec

Array = np.ndarray[Any, Any]

MAX_BITS = 62
"""Of an offset."""

_TABLE_BITS = 12  # bits of an offset that one table look-up takes
_FEW = 4  # elements are taken out when fewer than one in so many is left
_UNSEEN = 1 << 20  # so many elements are believed before their buffers are asked


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
        return np.asarray((offset >> word(self.shifts[k])) & word((1 << self.bits[k]) - 1))

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
    buffers = [p.index for p in rows.payloads]
    if int(counts.sum()) > _UNSEEN:
        for buffer, count in zip(buffers, rows.counts, strict=True):
            check_ints([buffer], [count], least=int(count > 1))
    gaps = unpack_ints(buffers, rows.counts)
    if fields.total > 31:
        gaps = gaps.astype(np.uint64)
    offset = ascending(gaps, counts)
    if int(offset.max()) >> fields.total:
        raise CorruptDataError("an offset leaves its block")
    _check_inside(offset, np.cumsum(counts) - counts, rows, fields)
    return offset


def _check_inside(offset: Array, starts: Array, rows: Rows, fields: Fields) -> None:
    """Raise if an element lies outside of its box; most boxes are as long as fields allow, or all alike."""
    for k, bits in enumerate(fields.bits):
        sides = np.minimum(rows.hi[:, k] - rows.lo[:, k], 1 << bits)
        most = int(sides.max())
        outside = most < 1 << bits and int(fields.axis(offset, k).max()) >= most
        shorter = np.flatnonzero(sides < most).tolist()
        if shorter and not outside:
            counts = [rows.counts[i] for i in shorter]
            spans = zip(starts[shorter].tolist(), counts, strict=True)
            some = np.concatenate([offset[start : start + count] for start, count in spans])
            limit = np.repeat(sides[shorter].astype(offset.dtype), counts)
            outside = bool((fields.axis(some, k) >= limit).any())
        if outside:
            raise CorruptDataError("an element of a block lies outside of its box")


def pick_offsets(
    rows: Rows, fields: Fields, spec: TensorSpec, selection: AnySelection
) -> tuple[Array, Array, Array]:
    """Return what a selection picks of rows that store offsets; see `SparseLayout.pick`."""
    offset = unpack_offsets(rows, fields)
    runs = (
        [axis for axis in selection.axes if isinstance(axis, Run)]
        if isinstance(selection, Selection)
        else []
    )
    if len(runs) == spec.ndim:
        offset, row, take = _within(offset, rows, fields, runs)
        return _keys(offset, row, rows, fields, runs), _values(rows, spec, take, row), row
    row = np.repeat(np.arange(len(rows.counts)), rows.counts)
    coords = np.empty((spec.ndim, len(offset)), np.int64)
    for k in range(spec.ndim):
        coords[k] = fields.axis(offset, k)
        coords[k] += rows.lo[row, k]
    take, out = locate(selection, coords)
    row = row[take]
    return ravel(out, selection.storage_shape), _values(rows, spec, take, row), row


def _values(rows: Rows, spec: TensorSpec, take: Array | None, row: Array) -> Array:
    """Return the values of the taken elements; rows without one are not decompressed."""
    packed = [p.values for p in rows.payloads]
    if take is None:
        return unpack_values(packed, rows.counts, spec.dtype)
    counts = np.array(rows.counts, np.int64)
    hit = np.bincount(row, minlength=len(counts)) > 0
    some = np.flatnonzero(hit).tolist()
    if not hit.all():
        take = take - np.cumsum(np.where(hit, 0, counts))[row]
    return unpack_values([packed[i] for i in some], counts[hit].tolist(), spec.dtype, take)


def _within(
    offset: Array, rows: Rows, fields: Fields, runs: Sequence[Run]
) -> tuple[Array, Array, Array | None]:
    """Return the elements that lie in all ranges: offset, row and place; no places where that is all."""
    take: Array | None = None
    ends = np.cumsum(rows.counts)
    row: Array | None = None
    mask: Array | None = None
    tested = [k for k in range(len(runs)) if not _covers(runs[k], rows, k)]
    tested.sort(key=lambda k: runs[k].count / (int(rows.hi[:, k].max()) or 1))
    for k in tested:
        start, stop = runs[k].bounds
        at = fields.axis(offset, k)
        # Modulo the word, what lies before the start is far behind the stop: 31 bits hold all distances.
        if max(int(rows.hi[:, k].max()), stop) >= 1 << 31:
            at = at.astype(np.uint64)
        first = (start - rows.lo[:, k]).astype(at.dtype)
        if (first == first[0]).all():
            at -= first[0]
        else:
            at -= np.repeat(first, rows.counts) if row is None else first[row]
        found = at < at.dtype.type(stop - start)
        if runs[k].step > 1:
            found &= at % at.dtype.type(runs[k].step) == 0
        mask = found if mask is None else mask & found
        # Elements are taken out once, unless the next test is much cheaper on what is left.
        if k != tested[-1] and np.count_nonzero(mask) * _FEW > len(mask):
            continue
        kept = np.flatnonzero(mask)
        mask = None
        if row is None:
            counts = np.diff(np.searchsorted(kept, ends), prepend=0)
            row = np.repeat(np.arange(len(counts)), counts)
        else:
            row = row[kept]
        offset, take = offset[kept], kept if take is None else take[kept]
    if row is None:
        row = np.repeat(np.arange(len(ends)), rows.counts)
    return offset, row, take


def _covers(run: Run, rows: Rows, k: int) -> bool:
    """Whether all of some rows lie in a range without gaps."""
    start, stop = run.bounds
    inside = (rows.lo[:, k] >= start).all() and (rows.hi[:, k] <= stop).all()
    return run.step == 1 and bool(inside)


def _keys(offset: Array, row: Array, rows: Rows, fields: Fields, runs: Sequence[Run]) -> Array:
    """Return the places of elements in C order in the shape that ranges pick."""
    strides = [math.prod(r.count for r in runs[k + 1 :]) for k in range(len(runs))]
    if any(r.step > 1 for r in runs):
        keys = np.zeros(len(offset), np.int64)
        for k, r in enumerate(runs):
            inside = fields.axis(offset, k).astype(np.int64)
            keys += (inside + (rows.lo[row, k] - r.bounds[0])) // r.step * strides[k]
        return keys
    base = np.zeros(len(rows.counts), np.int64)
    for k, r in enumerate(runs):
        base += (rows.lo[:, k] - r.bounds[0]) * strides[k]
    keys = base[row]
    word = offset.dtype.type
    for at_bit, table in enumerate(_tables(fields, tuple(strides))):
        keys += table[(offset >> word(at_bit * _TABLE_BITS)) & word(len(table) - 1)]
    return keys


@lru_cache(maxsize=64)
def _tables(fields: Fields, strides: tuple[int, ...]) -> tuple[Array, ...]:
    """Return what some bits of an offset add to a key: a look-up in place of four steps for each axis."""
    tables = []
    for low in range(0, max(1, fields.total), _TABLE_BITS):
        width = min(_TABLE_BITS, fields.total - low)
        field = np.arange(1 << width, dtype=np.int64) << low
        table = np.zeros(len(field), np.int64)
        for k, stride in enumerate(strides):
            table += fields.axis(field, k) * stride
        tables.append(table)
    return tuple(tables)
