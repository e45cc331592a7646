"""What CSR and CSC share: the tensor flattened to a matrix, one side of it as pointers, the other as ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError
from tensorlake_spark.indexing.coords import ravel, unravel
from tensorlake_spark.layouts.buffers import gaps, join, pack_ints, split, sums, unpack_ints
from tensorlake_spark.layouts.runs import RunLayout, check_inside, volume
from tensorlake_spark.layouts.sparse import params_of
from tensorlake_spark.spec import TensorSpec

Array = np.ndarray[Any, Any]

_POINTERS = 1 << 22  # of a row: what a run that is nearly empty can cost a reader


class CompressedLayout(RunLayout):
    """Pointers over the major side of the matrix, ids on the minor side."""

    rows_are_major = True

    def choose_params(
        self, ndim: int, order: Sequence[int] | None, row_axes: Sequence[int] | None
    ) -> dict[str, Any]:
        super().choose_params(ndim, order, None)
        if row_axes is None:
            row_axes = range(-(-ndim // 2))
        axes = [int(k) for k in row_axes]
        if len(set(axes)) != len(axes) or not all(0 <= k < ndim for k in axes):
            raise InvalidOptionError(f"row_axes {tuple(axes)} are not distinct axes below {ndim}")
        return {"row_axes": axes}

    def sides_of(
        self, row_axes: Sequence[int], ndim: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the axes of the major and of the minor side."""
        rows, columns = tuple(row_axes), tuple(k for k in range(ndim) if k not in row_axes)
        return (rows, columns) if self.rows_are_major else (columns, rows)

    def storage_order(self, spec: TensorSpec) -> tuple[int, ...]:
        major, minor = self.sides_of(spec.params["row_axes"], spec.ndim)
        return (*major, *minor)

    def whole_axes(self, spec: TensorSpec) -> int:
        return len(self.sides_of(spec.params["row_axes"], spec.ndim)[0])

    def fits(self, sides: Sequence[int], spec: TensorSpec) -> bool:
        return volume(sides, self.sides_of(spec.params["row_axes"], spec.ndim)[0]) <= _POINTERS

    def row_params(self, spec: TensorSpec) -> str | None:
        return json.dumps({"row_axes": list(spec.params["row_axes"])}, separators=(",", ":"))

    def encode_run(self, inside: Array, sides: Sequence[int], spec: TensorSpec) -> bytes:
        major, minor = self.sides_of(spec.params["row_axes"], spec.ndim)
        line = ravel(inside[list(major)], [sides[k] for k in major])
        ids = ravel(inside[list(minor)], [sides[k] for k in minor])
        counts = np.bincount(line, minlength=volume(sides, major))
        starts = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
        compress = spec.codec != "raw"
        return join([pack_ints(counts, compress), pack_ints(gaps(ids, starts), compress)])

    def decode_run(self, index: Any, count: int, sides: Sequence[int], params: str | None) -> Array:
        ndim = len(sides)
        row_axes = params_of(params).get("row_axes")
        if not isinstance(row_axes, list) or not set(row_axes) <= set(range(ndim)):
            raise CorruptDataError(f"{row_axes!r} are no row axes of {ndim}")
        major, minor = self.sides_of(row_axes, ndim)
        lines = volume(sides, major)
        if lines > _POINTERS:
            raise CorruptDataError(f"a run has {lines} pointers, the limit is {_POINTERS}")
        pointers, ids = split(index, 2)
        counts = unpack_ints([pointers], [lines]).astype(np.int64)
        if (counts > count).any() or counts.sum() != count:
            raise CorruptDataError("the pointers of a run do not add up to its elements")
        column = sums(unpack_ints([ids], [count]), counts[counts > 0])
        check_inside(column, volume(sides, minor))
        out = np.empty((ndim, count), np.int64)
        for axes, flat in ((major, np.repeat(np.arange(lines), counts)), (minor, column)):
            part = np.empty((len(axes), count), np.int64)
            unravel(flat, [sides[k] for k in axes], part)
            out[list(axes)] = part
        return out
