"""BSGS, block sparse generic storage (Delta Tensor, section IV-F): one row is one non-empty block.

An element is an offset in its block: a bit field of its coordinates there, so that a slice is tested, and
a coordinate is found, by shift and mask. The sorted offsets are stored as differences. A block that is
smaller as an array is stored as one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.indexing import AnySelection, locate
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.layouts.coding.buffers import (
    MAX_ELEMENTS,
    is_same,
    pack_many_ints,
    pack_many_values,
    pack_values,
    unpack_values,
)
from tensorlake_spark.layouts.coding.integer_sequences import gaps
from tensorlake_spark.layouts.layout import grid_of
from tensorlake_spark.layouts.sparse.element_blocks import block_sides, gather, widths
from tensorlake_spark.layouts.sparse.element_keys import Rows, SparseLayout, checked_order
from tensorlake_spark.layouts.sparse.offsets import MAX_BITS, Fields, fields_of, pick_offsets
from tensorlake_spark.ops.elements import nonzero_bits
from tensorlake_spark.rows.row import Row
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

_DENSE = object()  # stands for rows that store their block as an array
_CELLS = 600  # a block of a tensor whose elements are spread evenly would hold about so many
_SHORT = 32  # an axis of hours, channels or weekdays is not cut while a longer one can be
_FIRST = 32  # by how much the first axis is cut finer than the others
_DENSE = 8  # a block is tried as an array if it has at least one element in so many cells


class Bsgs(SparseLayout):
    """Blocks of non-zeros."""

    name = "bsgs"

    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        """Return a block whose sides are powers of two, and at most a third of an axis that is not short.

        Its volume follows from the density; the first axis, along which tensors grow and are read, is
        cut finest (docs/parameters.md). The dtype has no say: from one byte to sixteen an element, blocks of
        half and of twice the volume are within 2 % in size and about a fifth in the reads; values are narrowed,
        so that a dtype does not tell how many bytes are stored; and cells of one tensor are grouped by blocks
        before its dtype is known.

        Examples
        --------
        >>> Bsgs().default_block((183, 24, 1140, 1717), np.dtype("f8"), 3.85e-4)
        (4, 24, 128, 128)
        >>> Bsgs().default_block((100_000, 50_000), np.dtype("f8"), 1e-4)
        (512, 16384)
        """
        wanted = _CELLS / max(density, 1e-12)
        volume = 1 << min(40, max(10, round(math.log2(wanted))))
        block = [_floor_power(n // 3) if n > _SHORT else max(1, n) for n in shape]
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
        sides = block_sides(spec.block_shape, hi)
        fields = Fields(tuple(widths(sides)), tuple(spec.params.get("order", range(spec.ndim))))
        if fields.total > MAX_BITS:
            raise InvalidOptionError(
                f"the places in a block of shape {sides} of tensor {spec.id!r} take {fields.total} bits, "
                f"the limit is {MAX_BITS}; choose shorter sides"
            )
        params = json.dumps({"order": fields.order, "bits": fields.bits}, separators=(",", ":"))
        blocks = gather(coords, values, sides, spec.segments, fields.order, hi)
        steps = gaps(blocks.offset, blocks.starts)
        compress = spec.codec != "raw"
        rows = []
        for a, b, low, high, index, packed in zip(
            blocks.starts.tolist(), blocks.stops.tolist(), blocks.lo.tolist(), blocks.hi.tolist(),
            pack_many_ints(steps, blocks.starts, compress),
            pack_many_values(blocks.values, blocks.starts, compress),
            strict=True,
        ):  # fmt: skip
            row = Row(tuple(low), tuple(high), b - a, spec.codec, packed, index, params)
            cells = math.prod(high_k - low_k for low_k, high_k in zip(low, high, strict=True))
            if low and cells <= min((b - a) * _DENSE, MAX_ELEMENTS):
                row = self._dense(row, blocks.offset[a:b], blocks.values[a:b], fields) or row
            rows.append(row)
        return rows

    @staticmethod
    def _dense(row: Row, offset: Array, values: Array, fields: Fields) -> Row | None:
        """Return the row stored as an array, if that is smaller and loses no explicit zero."""
        if not nonzero_bits(values).all():
            return None
        block = np.zeros(tuple(h - a for a, h in zip(row.lo, row.hi, strict=True)), values.dtype)
        block[tuple(fields.unpack(offset))] = values
        packed = pack_values(block.reshape(-1), row.codec != "raw")
        if len(packed) >= row.nbytes:
            return None
        return Row(row.lo, row.hi, row.nnz, row.codec, packed, None, row.params)

    def pick(
        self, rows: Rows, spec: TensorSpec, selection: AnySelection
    ) -> tuple[Array, Array, Array]:
        ndim = spec.ndim
        forms = [
            _DENSE if data is None else text
            for data, text in zip(rows.payloads.index, rows.payloads.params, strict=True)
        ]
        found = []
        for form in dict.fromkeys(forms):
            chosen = [i for i, other in enumerate(forms) if other == form]
            some = rows if len(chosen) == len(forms) else _take(rows, chosen)
            if form is _DENSE:
                keys, values, row = _pick_dense(some, spec, selection)
            else:
                keys, values, row = pick_offsets(some, fields_of(form, ndim), spec, selection)
            found.append((keys, values, row if some is rows else np.array(chosen)[row]))
        if len(found) == 1:
            return found[0]
        keys, values, row = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return keys, values, row

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return grid_of(spec).count(selection.box)


def _floor_power(n: int) -> int:
    return 1 << max(0, n.bit_length() - 1) if n > 0 else 1


def _take(rows: Rows, chosen: Sequence[int]) -> Rows:
    return Rows(
        rows.lo[list(chosen)], rows.hi[list(chosen)], [rows.counts[i] for i in chosen],
        rows.seqs[list(chosen)], rows.payloads.take(chosen),
    )  # fmt: skip


def _pick_dense(
    rows: Rows, spec: TensorSpec, selection: AnySelection
) -> tuple[Array, Array, Array]:
    """Pick from rows that store their block as an array."""
    sides = rows.hi - rows.lo
    volumes = [math.prod(side) for side in sides.tolist()]
    for packed, volume, count in zip(rows.payloads.values, volumes, rows.counts, strict=True):
        if is_same(packed) and volume != count:
            raise CorruptDataError(f"a block of {volume} equal cells says that it holds {count}")
    cells = unpack_values(rows.payloads.values, volumes, spec.dtype)
    stored = np.flatnonzero(nonzero_bits(cells))
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
