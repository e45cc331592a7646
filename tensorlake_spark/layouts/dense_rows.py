"""The rows of a batch of dense blocks: which of them are decoded together, by which threads, and where they go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from tensorlake_spark.indexing import AnySelection, Selection
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.block_stacks import decode_stack
from tensorlake_spark.layouts.coding.chain import Codec, is_copied, is_packed, parted
from tensorlake_spark.layouts.coding.packed_parts import put_parts
from tensorlake_spark.layouts.quantization import quantized_block
from tensorlake_spark.layouts.quantization.native_blocks import decode_native
from tensorlake_spark.layouts.verification import Payload, hold
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.threads import THREADS, at_once

Array = np.ndarray[Any, Any]

_STACK_ROW = 64 << 10  # blocks up to this size are decoded many at once
_STACK_BYTES = 4 << 20
_LONG = 512 << 10  # bytes of blocks that several threads decode sooner than one
_PACKED = 4  # times as many of packed ones
_PACKED_ROWS = 8  # that one call decodes


class RowRun(NamedTuple):
    """Rows of a batch that have one shape and one codec, and are decoded together."""

    rows: list[int]
    shape: tuple[int, ...]
    codec: str


@dataclass(frozen=True)
class DenseRows:
    """Rows that fit their tensor; those that are not held against their checksums yet are before they are decoded.

    Attributes
    ----------
    payload : mapping of int to Payload
        What they hold, by their number in the batch.
    lo, hi : int64 ndarray, shape (rows of the batch, ndim)
        The boxes of all rows of the batch.
    spec : TensorSpec
        The tensor.
    selection : Selection, PointSelection or MixedSelection
        What is picked of it.
    """

    payload: Mapping[int, Payload]
    lo: Array
    hi: Array
    spec: TensorSpec
    selection: AnySelection

    def put(self, result: Array) -> Totals:
        """Decode the rows into a result; see `Layout.decode`."""
        runs = self._runs()
        rest = iter(runs)  # a thread that is free takes the next one

        def put_some(_: int) -> int:
            return sum(self._put_run(run, result) for run in rest)

        count = sum(at_once(put_some, range(THREADS if self._takes_long(runs, result) else 1)))
        if not self.spec.shape:  # the one element is put wherever it is picked
            count = self.selection.size
        nbytes = sum(len(row.values) + len(row.index or b"") for row in self.payload.values())
        return Totals(len(self.payload), count, nbytes)

    def _runs(self) -> list[RowRun]:
        """Return the rows in their order: large blocks alone, small ones as many as fill a few MiB."""
        sides = (self.hi - self.lo).tolist()
        out = []
        for (shape, codec), group in groupby(
            self.payload, key=lambda i: (tuple(sides[i]), self.payload[i].codec)
        ):
            rows, nbytes = list(group), math.prod(shape) * self.spec.dtype.itemsize
            step = max(1, _STACK_BYTES // max(1, nbytes))
            if nbytes > _STACK_ROW:
                step = _PACKED_ROWS if is_packed(codec) else 1
            for start in range(0, len(rows), step):
                out.append(RowRun(rows[start : start + step], shape, codec))
        return out

    def _takes_long(self, runs: Sequence[RowRun], result: Array) -> bool:
        """Whether several threads decode runs sooner than one: they wait for each other at every turn of Python."""
        if len(runs) < 2 or not isinstance(result, np.ndarray):
            return False
        itemsize = self.spec.dtype.itemsize
        packed = nbytes = 0
        for run in runs:
            size = len(run.rows) * math.prod(run.shape) * itemsize
            if is_packed(run.codec):
                packed += size
            elif not is_copied(run.codec):
                nbytes += size
        return nbytes + min(packed, self.selection.size * itemsize) // _PACKED >= _LONG

    def _put_run(self, run: RowRun, result: Array) -> int:
        """Decode a run; return how many elements of the selection it gave."""
        for i in run.rows:
            hold(self.payload[i], self.spec, self.lo[i], self.hi[i])
        # What takes blocks apart is no array, and has no dtype of its own.
        is_native = isinstance(result, np.ndarray) and bool(result.dtype != self.spec.dtype)
        if parted(run.codec)[0] or is_native:
            return sum(self._put_quantized(i, run, result, is_native) for i in run.rows)
        codec, dtype = codecs.codec_of(run.codec), self.spec.dtype
        values = [self.payload[i].values for i in run.rows]
        stack, count = None, 0
        if math.prod(run.shape) * dtype.itemsize > _STACK_ROW:
            count = self._put_parts(values, codec, run, result)
            if count:
                return count
        elif len(run.rows) > 1:
            stack = decode_stack(values, codec, run.shape, dtype)
        for place, i in enumerate(run.rows):
            src, dst = self._places(i)
            if stack is not None:
                part = stack[place][src]
                result[dst] = part
            elif _is_sliced(dst):
                part = _room(result, dst)
                codecs.decode_into(values[place], codec, run.shape, dtype, src, part)
            else:
                part = codecs.decode_part(values[place], codec, run.shape, dtype, src)
                result[dst] = part
            count += part.size
        return count

    def _put_parts(self, values: Sequence[Any], codec: Codec, run: RowRun, result: Array) -> int:
        """Decode the blocks of a run by one call, if there is one; return how many elements they gave, 0 if not."""
        selection = self.selection
        if not (codec.packed and isinstance(result, np.ndarray)):
            return 0
        if not (isinstance(selection, Selection) and selection.is_box):
            return 0
        lo, hi, first = self.lo[run.rows], self.hi[run.rows], np.array(selection.box.lo)
        low, high = np.maximum(lo, first), np.minimum(hi, selection.box.hi)
        parts = low - lo, high - lo, low - first
        if not put_parts(values, codec, run.shape, self.spec.dtype, *parts, result):
            return 0
        return int((high - low).prod(axis=1).sum())

    def _put_quantized(self, i: int, run: RowRun, result: Array, is_native: bool) -> int:
        """Decode a row whose codec quantises, or as it is stored."""
        (src, dst), row, dtype = self._places(i), self.payload[i], self.spec.dtype
        what = row.values, row.index, row.codec, run.shape, dtype
        if is_native:
            part = decode_native(row.values, row.codec, run.shape, self.spec, result.dtype)[src]
            result[dst] = part
        elif _is_sliced(dst):
            part = _room(result, dst)
            quantized_block.decode_into(*what, src, part)
        else:
            part = quantized_block.decode(*what)[src]
            result[dst] = part
        return int(part.size)

    def _places(self, i: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return which part of a block is picked, and where it goes."""
        return self.selection.project(self.lo[i].tolist(), self.hi[i].tolist())


def _is_sliced(dst: tuple[Any, ...]) -> bool:
    return all(isinstance(part, slice) for part in dst)


def _room(result: Array, dst: tuple[Any, ...]) -> Array:
    """Return a part of a result as a view, of a 0-d result too."""
    view: Any = (*dst, ...)
    part: Array = result[view]
    return part
