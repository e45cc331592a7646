"""FTSF, the flattened tensor storage format (Delta Tensor, section IV-A): one row is one dense chunk.

The paper keeps the last Dc axes whole in a chunk and flattens the others into a sequence; here a
chunk is any hyper-rectangle, and ``chunk_rank=Dc`` gives the paper's. A chunk that is full of the fill
value is not stored.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing import AnySelection, Box
from tensorlake_spark.layouts import result_memory
from tensorlake_spark.layouts.coding import codec as codecs
from tensorlake_spark.layouts.coding.chain import KNOWN, TRANSPOSE, parted
from tensorlake_spark.layouts.coding.codec_choice import choose_codec, smallest_codec
from tensorlake_spark.layouts.dense_rows import DenseRows
from tensorlake_spark.layouts.layout import Layout, grid_of
from tensorlake_spark.layouts.quantization import bit_rounding, quantized_block
from tensorlake_spark.layouts.quantization.kinds import quantization_in
from tensorlake_spark.layouts.verification import boxes, checked, naming
from tensorlake_spark.rows.row import Row, Totals
from tensorlake_spark.rows.row import checked as with_crc
from tensorlake_spark.tensor.spec import TensorSpec, native

Array = np.ndarray[Any, Any]

CHUNK_BYTES = 768 << 10
"""Size of a chunk before coding: small enough for a crop, large enough that zstd and vector
additions, not Python, take the time (docs/benchmarks.md)."""

_ROW_BYTES = 4 << 10  # a chunk's last axis is kept whole up to this


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
    has_threads = True
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
        result_memory.keep_freed()
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
        found = checked(batch, spec, wanted, lo, hi, KNOWN, later=True)
        rows = DenseRows(dict(zip(wanted, found.each(), strict=True)), lo, hi, spec, selection)
        with naming(spec):
            return rows.put(result)

    def finish(self, spec: TensorSpec, selection: AnySelection, result: Array) -> Any:
        return selection.finish(result)

    def row_bound(self, spec: TensorSpec, selection: AnySelection) -> int:
        return grid_of(spec).count(selection.box)


def is_fill(part: Array, fill: Array) -> bool:
    """Whether every element has the bits of `fill`; one look at the first decides most cases."""
    have, want = codecs.words(part), codecs.words(np.ascontiguousarray(fill))
    if want.size == 2:  # the two parts of a complex number
        have = have.reshape(-1, 2)
        return bool((have[0] == want).all() and (have == want).all())
    return bool(have.flat[0] == want[0] and (have == want[0]).all())
