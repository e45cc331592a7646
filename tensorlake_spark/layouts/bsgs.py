"""BSGS, block sparse generic storage (Delta Tensor, section IV-E): one row is one non-empty block.

An element is an offset in its block: a bit field of its coordinates there, so that a slice is tested, and
a coordinate is found, by shift and mask. The sorted offsets are stored as differences. A block that is
smaller as an array is stored as one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.indexing import Run, Selection, locate
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts.base import AnySelection, grid_of
from tensorlake_spark.layouts.buffers import (
    MAX_ELEMENTS,
    pack_many_ints,
    pack_many_values,
    pack_values,
    unpack_ints,
    unpack_values,
)
from tensorlake_spark.layouts.sparse import (
    Rows,
    SparseLayout,
    axis_order,
    checked_order,
    params_of,
)
from tensorlake_spark.row import Row
from tensorlake_spark.sparse import nonzero
from tensorlake_spark.spec import TensorSpec

Array = np.ndarray[Any, Any]

_CELLS = 200  # a block of a tensor whose elements are spread evenly would hold about so many
_FIRST = 32  # by how much the first axis is cut finer than the others
_DENSE = 8  # a block is tried as an array if it has at least one element in so many cells
_TABLE_BITS = 12  # bits of an offset that one table look-up takes


class Bsgs(SparseLayout):
    """Blocks of non-zeros."""

    name = "bsgs"

    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        """Return a block whose sides are powers of two, and no more than a third of their axes.

        Its volume follows from the density; the first axis, along which tensors grow and are read, is
        cut finest (docs/parameters.md).

        Examples
        --------
        >>> Bsgs().default_block((183, 24, 1140, 1717), np.dtype("f8"), 3.85e-4)
        (4, 8, 128, 128)
        >>> Bsgs().default_block((100_000, 50_000), np.dtype("f8"), 1e-4)
        (256, 8192)
        """
        wanted = _CELLS / max(density, 1e-12)
        volume = 1 << min(40, max(10, round(math.log2(wanted))))
        block = [_floor_power(n // 3) if n > 4 else max(1, n) for n in shape]
        weight = [_FIRST if k == 0 and len(block) > 1 else 1 for k in range(len(block))]
        while math.prod(block) > volume and any(b > 1 for b in block):
            k = max(range(len(block)), key=lambda k: (block[k] > 1, block[k] * weight[k]))
            block[k] = _floor_power(block[k] - 1)
        return tuple(block)

    def choose_params(
        self, ndim: int, order: Sequence[int] | None, row_axes: Sequence[int] | None
    ) -> dict[str, Any]:
        super().choose_params(ndim, None, row_axes)
        return {} if order is None else {"order": checked_order(order, ndim)}

    def encode_elements(
        self, coords: Array, values: Array, spec: TensorSpec, hi: Sequence[int]
    ) -> list[Row]:
        bits = [_bits(b) for b in spec.block_shape]
        if sum(bits) > 62:
            raise InvalidOptionError(
                f"block shape {spec.block_shape} has more than 2**62 cells; choose shorter sides"
            )
        order = tuple(spec.params.get("order", range(spec.ndim)))
        number, origin = _blocks(coords, spec)
        offset = np.zeros(coords.shape[1], np.int64)
        for k in order:
            offset <<= bits[k]
            offset |= coords[k] - origin[k]
        place = _by_block(number, offset)
        number, offset, values = number[:, place], offset[place], values[place]
        fresh = (number[:, 1:] != number[:, :-1]).any(axis=0)
        starts = np.concatenate([[0], np.flatnonzero(fresh) + 1])
        stops = np.append(starts[1:], len(offset))
        gaps = np.diff(offset, prepend=0)
        gaps[starts] = offset[starts]
        compress = spec.codec != "raw"
        lows = (
            np.stack([origin[k][place[starts]] for k in range(spec.ndim)], axis=1)
            if spec.ndim
            else np.zeros((1, 0), np.int64)
        )
        highs = _block_ends(lows, spec, hi)
        params = json.dumps({"order": order, "bits": bits}, separators=(",", ":"))
        rows = []
        for a, b, low, high, index, packed in zip(
            starts.tolist(), stops.tolist(), lows.tolist(), highs.tolist(),
            pack_many_ints(gaps, starts, compress), pack_many_values(values, starts, compress),
            strict=True,
        ):  # fmt: skip
            if b - a > MAX_ELEMENTS:
                raise InvalidOptionError(
                    f"a block of {spec.block_shape} of tensor {spec.id!r} holds {b - a} elements, the "
                    f"limit is {MAX_ELEMENTS}; choose a smaller block_shape"
                )
            row = Row(tuple(low), tuple(high), b - a, spec.codec, packed, index, params)
            cells = math.prod(high_k - low_k for low_k, high_k in zip(low, high, strict=True))
            if low and (b - a) * _DENSE >= cells:
                row = self._dense(row, offset[a:b], values[a:b], bits, order) or row
            rows.append(row)
        return rows

    def _dense(
        self, row: Row, offset: Array, values: Array, bits: Sequence[int], order: Sequence[int]
    ) -> Row | None:
        """Return the row stored as an array, if that is smaller and loses no explicit zero."""
        if not nonzero(values).all():
            return None
        block = np.zeros(tuple(h - a for a, h in zip(row.lo, row.hi, strict=True)), values.dtype)
        block[tuple(_unpack(offset, bits, order))] = values
        packed = pack_values(block.reshape(-1), row.codec != "raw")
        if len(packed) >= row.nbytes:
            return None
        return Row(row.lo, row.hi, row.nnz, row.codec, packed, None, row.params)

    def pick(
        self, rows: Rows, spec: TensorSpec, selection: AnySelection
    ) -> tuple[Array, Array, Array]:
        found = []
        names = [(p.params, p.index is None) for p in rows.payloads]
        for name in dict.fromkeys(names):
            chosen = [i for i, other in enumerate(names) if other == name]
            some = rows if len(chosen) == len(names) else _take(rows, chosen)
            keys, values, row = (_pick_dense if name[1] else _pick_sparse)(some, spec, selection)
            found.append((keys, values, row if some is rows else np.array(chosen)[row]))
        if len(found) == 1:
            return found[0]
        keys, values, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return keys, values, row

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return grid_of(spec).count(selection.box)


def _floor_power(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1) if n > 0 else 1


def _bits(length: int) -> int:
    return (length - 1).bit_length()


def _take(rows: Rows, chosen: Sequence[int]) -> Rows:
    return Rows(
        rows.lo[list(chosen)], rows.hi[list(chosen)], [rows.counts[i] for i in chosen],
        rows.seqs[list(chosen)], [rows.payloads[i] for i in chosen],
    )  # fmt: skip


def _blocks(coords: Array, spec: TensorSpec) -> tuple[Array, list[Array]]:
    """Return for every element the number of its block on each axis, and where that block begins."""
    number = np.empty(coords.shape, np.int64)
    origin = []
    for k, (axis, side) in enumerate(zip(coords, spec.block_shape, strict=True)):
        segments = spec.segments[k]
        if len(segments) == 1:
            number[k] = axis >> _bits(side) if side == 1 << _bits(side) else axis // side
            origin.append(number[k] * side)
            continue
        starts = np.array(segments, np.int64)
        run = np.searchsorted(starts, axis, side="right") - 1
        inside = (axis - starts[run]) // side
        origin.append(starts[run] + inside * side)
        # Blocks of earlier runs come first, the last of a run may be clipped.
        before = np.concatenate([[0], np.cumsum(-(-np.diff(starts) // side))])
        number[k] = before[run] + inside
    return number, origin


def _block_ends(lows: Array, spec: TensorSpec, hi: Sequence[int]) -> Array:
    """Return the upper corners of blocks: clipped to the next run of the grid, and to the tensor."""
    ends: Array = np.minimum(lows + np.array(spec.block_shape, np.int64), np.array(hi, np.int64))
    for k, segments in enumerate(spec.segments):
        if len(segments) > 1:
            following = np.array([*segments[1:], np.iinfo(np.int64).max])
            run = np.searchsorted(np.array(segments), lows[:, k], side="right") - 1
            ends[:, k] = np.minimum(ends[:, k], following[run])
    return ends


def _by_block(number: Array, offset: Array) -> Array:
    """Return the order by block, and by offset in it: one sort of packed integers where they fit."""
    count = len(offset)
    if not len(number):
        return np.arange(count)
    lo, hi = number.min(axis=1), number.max(axis=1)
    sides = (hi - lo + 1).tolist()
    low_bits = int(offset.max()).bit_length()
    place_bits = (count - 1).bit_length()
    if math.prod(sides).bit_length() + low_bits + place_bits > 63:
        return np.lexsort((offset, *number[::-1]))
    key: Array = ravel(number - lo[:, None], sides)
    key <<= low_bits
    key |= offset
    key <<= place_bits
    key |= np.arange(count)
    key.sort()
    key &= (1 << place_bits) - 1
    return key


def _unpack(offset: Array, bits: Sequence[int], order: Sequence[int]) -> list[Array]:
    """Return the coordinates in the block, axis by axis."""
    out: list[Array] = [offset] * len(bits)
    shift = 0
    for k in reversed(order):
        field = offset >> offset.dtype.type(shift) if shift else offset
        out[k] = field & offset.dtype.type((1 << bits[k]) - 1)
        shift += bits[k]
    return out


def _fields(params: str | None, ndim: int) -> tuple[list[int], tuple[int, ...]]:
    """Return bits and order of a row's offsets, checked."""
    found = params_of(params)
    bits, order = found.get("bits"), axis_order(found, ndim)
    if (
        not isinstance(bits, list)
        or len(bits) != ndim
        or not all(isinstance(b, int) and 0 <= b <= 62 for b in bits)
        or sum(bits) > 62
    ):
        raise CorruptDataError(f"{bits!r} are no widths of the coordinates of {ndim} axes")
    return bits, order


def _offsets(rows: Rows, bits: Sequence[int]) -> Array:
    """Return the offsets of all elements of some rows."""
    counts = np.array(rows.counts, np.int64)
    if (counts < 1).any():
        raise CorruptDataError("a block without elements has an index")
    gaps = unpack_ints([p.index for p in rows.payloads], rows.counts)
    if sum(bits) > 31:
        gaps = gaps.astype(np.uint64)
    starts = np.cumsum(counts) - counts
    # One running sum over all rows, modulo the word: what had come before a row is taken away again.
    sums = np.cumsum(gaps, dtype=gaps.dtype)
    sums -= np.repeat(sums[starts] - gaps[starts], counts)
    ascend = sums[1:] > sums[:-1]
    ascend[starts[1:] - 1] = True
    if not ascend.all() or int(sums.max()) >> sum(bits):
        raise CorruptDataError("the offsets of a block do not ascend, or leave it")
    return sums


def _pick_sparse(
    rows: Rows, spec: TensorSpec, selection: AnySelection
) -> tuple[Array, Array, Array]:
    """Pick from rows that store offsets, all with the same bit fields."""
    bits, order = _fields(rows.payloads[0].params, spec.ndim)
    offset = _offsets(rows, bits)
    _check_inside(offset, rows, bits, order)
    runs = (
        [axis for axis in selection.axes if isinstance(axis, Run)]
        if isinstance(selection, Selection)
        else []
    )
    if len(runs) == spec.ndim:
        take, keys, row = _pick_runs(offset, rows, bits, order, runs)
        return keys, _values(rows, spec, take, row), row
    row = np.repeat(np.arange(len(rows.counts)), rows.counts)
    coords = np.empty((spec.ndim, len(offset)), np.int64)
    for k, inside in enumerate(_unpack(offset, bits, order)):
        np.add(inside, rows.lo[row, k], out=coords[k], casting="unsafe")
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
    values = unpack_values([packed[i] for i in some], counts[hit].tolist(), spec.dtype)
    left_out = np.cumsum(np.where(hit, 0, counts))
    return np.asarray(values[take - left_out[row]])


def _check_inside(offset: Array, rows: Rows, bits: Sequence[int], order: Sequence[int]) -> None:
    """Raise if an element lies outside of its box; most boxes are whole blocks, which need no look."""
    sides = rows.hi - rows.lo
    clipped = [k for k, b in enumerate(bits) if (sides[:, k] != 1 << b).any()]
    if not clipped:
        return
    inside = _unpack(offset, bits, order)
    for k in clipped:
        if (inside[k] >= np.repeat(sides[:, k].astype(offset.dtype), rows.counts)).any():
            raise CorruptDataError("an element of a block lies outside of its box")


def _pick_runs(
    offset: Array, rows: Rows, bits: Sequence[int], order: Sequence[int], runs: Sequence[Run]
) -> tuple[Array | None, Array, Array]:
    """Pick by ranges on the packed offsets; keys are made of what is left only."""
    strides = [math.prod(r.count for r in runs[k + 1 :]) for k in range(len(runs))]
    word = offset.dtype.type
    shifts, shift = [0] * len(bits), 0
    for k in reversed(order):
        shifts[k] = shift
        shift += bits[k]
    row = np.repeat(np.arange(len(rows.counts)), rows.counts)
    take: Array | None = None
    for k in sorted(
        range(len(runs)), key=lambda k: runs[k].count / (int(rows.hi[:, k].max()) or 1)
    ):
        start, stop = runs[k].bounds
        if runs[k].step == 1 and (rows.lo[:, k] >= start).all() and (rows.hi[:, k] <= stop).all():
            continue
        at = (offset >> word(shifts[k])) & word((1 << bits[k]) - 1)
        # Modulo the word, what lies before the start is far behind the stop.
        first = (start - rows.lo[:, k]).astype(offset.dtype)
        at -= first[0] if (first == first[0]).all() else first[row]
        mask = at < word(stop - start) if (stop - start) >> (8 * at.itemsize) == 0 else at >= 0
        if runs[k].step > 1:
            mask &= at % word(runs[k].step) == 0
        kept = np.flatnonzero(mask)
        offset, row = offset[kept], row[kept]
        take = kept if take is None else take[kept]
    base = np.zeros(len(rows.counts), np.int64)
    if all(r.step == 1 for r in runs):
        for k, r in enumerate(runs):
            base += (rows.lo[:, k] - r.bounds[0]) * strides[k]
        keys = base[row]
        for at_bit, table in enumerate(_tables(tuple(bits), tuple(shifts), tuple(strides))):
            keys += table[(offset >> word(at_bit * _TABLE_BITS)) & word(len(table) - 1)]
        return take, keys, row
    keys = np.zeros(len(offset), np.int64)
    for k, r in enumerate(runs):
        inside = ((offset >> word(shifts[k])) & word((1 << bits[k]) - 1)).astype(np.int64)
        keys += (inside + (rows.lo[row, k] - r.bounds[0])) // r.step * strides[k]
    return take, keys, row


@lru_cache(maxsize=64)
def _tables(
    bits: tuple[int, ...], shifts: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[Array, ...]:
    """Return what some bits of an offset add to a key: a look-up in place of four steps for each axis."""
    tables = []
    for low in range(0, max(1, sum(bits)), _TABLE_BITS):
        field = np.arange(1 << min(_TABLE_BITS, max(0, sum(bits) - low)), dtype=np.int64) << low
        table = np.zeros(len(field), np.int64)
        for b, shift, stride in zip(bits, shifts, strides, strict=True):
            table += ((field >> shift) & ((1 << b) - 1)) * stride
        tables.append(table)
    return tuple(tables)


def _pick_dense(
    rows: Rows, spec: TensorSpec, selection: AnySelection
) -> tuple[Array, Array, Array]:
    """Pick from rows that store their block as an array."""
    sides = rows.hi - rows.lo
    volumes = [math.prod(side) for side in sides.tolist()]
    cells = unpack_values([p.values for p in rows.payloads], volumes, spec.dtype)
    stored = np.flatnonzero(nonzero(cells))
    ends = np.cumsum(volumes)
    row = np.searchsorted(ends, stored, side="right")
    if (np.bincount(row, minlength=len(volumes)) != rows.counts).any():
        raise CorruptDataError("a block holds another number of elements than its row says")
    rest = stored - (ends - volumes)[row]
    coords = np.empty((spec.ndim, len(stored)), np.int64)
    for k in reversed(range(spec.ndim)):
        rest, coords[k] = np.divmod(rest, sides[row, k])
    coords += rows.lo[row].T
    take, out = locate(selection, coords)
    return ravel(out, selection.storage_shape), cells[stored][take], row[take]
