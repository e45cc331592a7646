"""FTSF, the flattened tensor storage format (Delta Tensor, section IV-A): one row is one dense chunk.

The paper keeps the last Dc axes whole in a chunk and flattens the others into a sequence; here a
chunk is any hyper-rectangle, and ``chunk_rank=Dc`` gives the paper's. A chunk that is full of the fill
value is not stored.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing import AnySelection, Box
from tensorlake_spark.layouts import result_memory
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.block_stacks import decode_stack
from tensorlake_spark.layouts.coding.chain import KNOWN, TRANSPOSE, parted
from tensorlake_spark.layouts.coding.codec_choice import choose_codec, smallest_codec
from tensorlake_spark.layouts.layout import Layout, grid_of
from tensorlake_spark.layouts.quantization import bit_rounding, quantized_block
from tensorlake_spark.layouts.quantization.kinds import quantization_in
from tensorlake_spark.layouts.quantization.native_blocks import decode_native
from tensorlake_spark.layouts.verification import Payload, boxes, checked, naming
from tensorlake_spark.rows.row import Row, Totals
from tensorlake_spark.rows.row import checked as with_crc
from tensorlake_spark.tensor.spec import TensorSpec, native

Array = np.ndarray[Any, Any]

CHUNK_BYTES = 768 << 10
"""Size of a chunk before coding: small enough for a crop, large enough that zstd and vector
additions, not Python, take the time (docs/benchmarks.md)."""

_ROW_BYTES = 4 << 10  # a chunk's last axis is kept whole up to this
_STACK_ROW = 64 << 10  # chunks up to this size are decoded many at once
_STACK_BYTES = 4 << 20


def paper_block(shape: Sequence[int], chunk_rank: int) -> tuple[int, ...]:
    """Return the paper's chunk: the last `chunk_rank` axes whole, the others one at a time.

    Raises
    ------
    InvalidOptionError
        If `chunk_rank` is not between 0 and the rank.

    Examples
    --------
    >>> paper_block((24, 3, 1024, 1024), 2)
    (1, 1, 1024, 1024)
    """
    rank = len(shape)
    if not 0 <= chunk_rank <= rank:
        raise InvalidOptionError(f"chunk_rank {chunk_rank} is not between 0 and the rank {rank}")
    lead = rank - chunk_rank
    return (1,) * lead + tuple(max(1, n) for n in shape[lead:])


class Ftsf(Layout):
    """Dense chunks."""

    name = "ftsf"
    columns = ("lo", "hi", "layout", "params", "dtype", "codec", "index", "values", "crc")

    def default_block(
        self, shape: Sequence[int], dtype: np.dtype[Any], density: float = 1.0
    ) -> tuple[int, ...]:
        """Return a chunk of about `CHUNK_BYTES` whose rows are wide and few.

        The last axis stays whole while a row of it is at most 4 KiB. With four axes or more the first
        one counts samples: a chunk holds one of them if it is large, else as many as fit. With three axes a
        chunk is cut finer along the first one: planes are read more often than what lies across them.

        Examples
        --------
        >>> Ftsf().default_block((64, 3, 1024, 1024), np.dtype("uint8"))
        (1, 3, 256, 1024)
        >>> Ftsf().default_block((512, 512, 512), np.dtype("float32"))
        (8, 32, 512)
        """
        block = [max(1, n) for n in shape]
        if not block:
            return ()
        limit = max(1, CHUNK_BYTES // dtype.itemsize)
        if len(block) >= 4:
            sample = math.prod(block[1:])
            block[0] = min(block[0], max(1, limit // sample))
        inner = list(range(1 if len(block) >= 4 else 0, len(block) - 1))
        row = max(1, _ROW_BYTES // dtype.itemsize)
        if inner:
            while block[-1] > row and math.prod(block) > limit:
                block[-1] = -(-block[-1] // 2)
        while math.prod(block) > limit and any(block[k] > 1 for k in inner):
            widest = max(inner, key=lambda k: block[k] if k else 2 * block[k])
            block[widest] = -(-block[widest] // 2)
        if math.prod(block) > limit:
            block[-1] = max(1, limit // math.prod(block[:-1]))
        return tuple(block)

    def choose_codec(self, sample: Array) -> str:
        return choose_codec(np.ascontiguousarray(native(sample)))

    def smallest_codec(self, sample: Array) -> str:
        return smallest_codec(np.ascontiguousarray(native(sample)))

    def check_codec(self, name: str) -> str:
        return name if name in KNOWN else codecs.codec_of(name).name

    def pieces(self, spec: TensorSpec, box: Box) -> Iterator[Box]:
        for cell in grid_of(spec).cells(box):
            yield cell.intersect(box)

    def encode(self, part: Any, lo: Sequence[int], spec: TensorSpec) -> list[Row]:
        turned = str(spec.codec).startswith(TRANSPOSE)
        stored = np.ascontiguousarray(native(part).T if turned else native(part))
        if part.size == 0 or is_fill(stored, spec.fill_value):
            return []
        return [self.chunk((stored.T if turned else stored).reshape(part.shape), lo, spec)]

    @staticmethod
    def chunk(part: Array, lo: Sequence[int], spec: TensorSpec) -> Row:
        """Return the row of a chunk in native byte order, whatever it holds.

        It is C-contiguous, or its transpose is where the codec transposes.
        """
        hi = tuple(a + n for a, n in zip(lo, part.shape, strict=True))
        known = quantization_in(spec)
        if known is not None and known.bound is not None and known.kind == "relative":
            part = bit_rounding.within(part, known.bound)
        if not parted(spec.codec)[0]:
            codec, values = codecs.encode(part, codecs.codec_of(spec.codec))
            return Row(tuple(lo), hi, part.size, codec, values)
        codec, values, index = quantized_block.encode(part, spec.codec, spec.id, lo)
        row = Row(tuple(lo), hi, part.size, codec, values)
        if index is not None:  # `values` are read alone too, so they have a checksum of their own
            crc = struct.pack("<I", with_crc(spec, [row])[0].crc)
            row = Row(tuple(lo), hi, part.size, codec, crc + values, index)
        return row

    def new_result(self, spec: TensorSpec, selection: AnySelection, full: bool) -> Array:
        shape = selection.storage_shape
        if full:
            return result_memory.empty(shape, spec.dtype)
        if not any(spec.fill):
            return np.zeros(shape, spec.dtype)
        return np.full(shape, spec.fill_value)

    def decode(
        self, batch: pa.RecordBatch, spec: TensorSpec, selection: AnySelection, result: Array
    ) -> Totals:
        """Decode rows into a result of the tensor's dtype, or of the one that `native_dtype` names.

        A batch without the column ``index`` has the upper halves of ``split`` alone.
        """
        lo, hi = boxes(batch, spec.ndim)
        wanted = np.flatnonzero(selection.hits(lo, hi)).tolist()
        found = checked(batch, spec, wanted, lo, hi, KNOWN)
        payload = dict(zip(wanted, found.each(), strict=True))
        with naming(spec):
            return self._put(payload, lo, hi, spec, selection, result)

    @staticmethod
    def _put(
        payload: Mapping[int, Payload],
        lo: Array,
        hi: Array,
        spec: TensorSpec,
        selection: AnySelection,
        result: Array,
    ) -> Totals:
        """Decode checked rows, by their number in the batch, into the result."""
        wanted = list(payload)
        sliced = (
            all(isinstance(d, slice) for d in selection.project(lo[0], hi[0])[1])
            if wanted
            else True
        )
        count = size = 0
        for (shape, name), group in groupby(
            ((i, tuple((hi[i] - lo[i]).tolist())) for i in wanted),
            key=lambda pair: (pair[1], payload[pair[0]].codec),
        ):
            rows = [i for i, _ in group]
            if parted(name)[0] or _is_native(result, spec):
                for i in rows:
                    src, dst = selection.project(lo[i].tolist(), hi[i].tolist())
                    found = payload[i]
                    count += _put_quantized(found, shape, spec, src, result, dst, sliced)
                    size += len(found.values) + len(found.index or b"")
                continue
            codec = codecs.codec_of(name)
            for some in _runs(rows, math.prod(shape) * spec.dtype.itemsize):
                stack = None
                if len(some) > 1:
                    values = [payload[i].values for i in some]
                    stack = decode_stack(values, codec, shape, spec.dtype)
                for place, i in enumerate(some):
                    src, dst = selection.project(lo[i].tolist(), hi[i].tolist())
                    if stack is not None:
                        part = stack[place][src]
                        result[dst] = part
                    elif sliced:
                        view = (*dst, ...)  # a view, of a 0-d result too
                        part = result[view]
                        codecs.decode_into(payload[i].values, codec, shape, spec.dtype, src, part)
                    else:
                        part = codecs.decode_part(payload[i].values, codec, shape, spec.dtype, src)
                        result[dst] = part
                    count += part.size
                    size += len(payload[i].values)
        if not spec.shape:  # the one element is put wherever it is picked
            count = selection.size
        return Totals(len(wanted), count, size)

    def finish(self, spec: TensorSpec, selection: AnySelection, result: Array) -> Any:
        return selection.finish(result)

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return grid_of(spec).count(selection.box)


def _is_native(result: Array, spec: TensorSpec) -> bool:
    """Whether a result takes what is stored: not so what takes blocks apart and has no dtype of its own."""
    return isinstance(result, np.ndarray) and bool(result.dtype != spec.dtype)


def _put_quantized(
    found: Payload,
    shape: Sequence[int],
    spec: TensorSpec,
    src: Any,
    result: Array,
    dst: Any,
    sliced: bool,
) -> int:
    """Decode a row whose codec quantises, or as it is stored; return how many elements it gave."""
    if _is_native(result, spec):
        part = decode_native(found.values, found.codec, shape, spec, result.dtype)[src]
        result[dst] = part
    elif sliced:
        view = (*dst, ...)  # a view, of a 0-d result too
        part = result[view]
        quantized_block.decode_into(
            found.values, found.index, found.codec, shape, spec.dtype, src, part
        )
    else:
        whole = quantized_block.decode(found.values, found.index, found.codec, shape, spec.dtype)
        part = whole[src]
        result[dst] = part
    return int(part.size)


def is_fill(part: Array, fill: Array) -> bool:
    """Whether every element has the bits of `fill`; one look at the first decides most cases."""
    have, want = codecs.words(part), codecs.words(np.ascontiguousarray(fill))
    if want.size == 2:  # the two parts of a complex number
        have = have.reshape(-1, 2)
        return bool((have[0] == want).all() and (have == want).all())
    return bool(have.flat[0] == want[0] and (have == want[0]).all())


def _runs(rows: list[int], row_bytes: int) -> Iterator[list[int]]:
    """Split rows into stacks: large chunks alone, small ones as many as fill a few MiB."""
    step = 1 if row_bytes > _STACK_ROW else max(1, _STACK_BYTES // max(1, row_bytes))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
