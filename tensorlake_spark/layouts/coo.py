"""COO, the coordinate list (Delta Tensor, section IV-C): one row is a run of sorted non-zeros.

The index is one buffer for every axis: the differences between neighbours, folded to be non-negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Box
from tensorlake_spark.layouts.coding.buffers import check_ints, pack_ints, unpack_ints
from tensorlake_spark.layouts.coding.integer_sequences import (
    check_inside,
    fold,
    join,
    split,
    unfold,
)
from tensorlake_spark.layouts.sparse.element_runs import RunLayout
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]


class Coo(RunLayout):
    """Coordinates, axis by axis."""

    name = "coo"

    def storage_order(self, spec: TensorSpec) -> tuple[int, ...]:
        return tuple(range(spec.ndim))

    def encode_run(self, inside: Array, sides: Sequence[int], spec: TensorSpec) -> bytes:
        compress = spec.codec != "raw"
        return join([pack_ints(fold(np.diff(axis, prepend=0)), compress) for axis in inside])

    def decode_run(
        self, index: Any, count: int, sides: Sequence[int], params: str | None, wanted: Box
    ) -> tuple[Array | None, Array]:
        buffers = split(index, len(sides))
        check_ints(buffers, [count] * len(sides))
        if count > 1 and max((bytes(buffer[:1]) for buffer in buffers), default=b"\0") == b"\0":
            raise CorruptDataError(f"all of {count} elements of a run have one place")
        out = np.empty((len(sides), count), np.int64)
        for axis, buffer, side in zip(out, buffers, sides, strict=True):
            np.cumsum(unfold(unpack_ints([buffer], [count])), out=axis)
            check_inside(axis, side)
        return None, out
