"""What CSR and CSC share: the tensor flattened to a matrix, one side of it as pointers, the other as ids.

A line is a row of the matrix for CSR and a column for CSC. A run has one pointer for each line of its
box, or, where most of those are empty, the ids of the others and one pointer for each of them (doubly
compressed sparse rows: Buluc and Gilbert, 2008): a box may have far more lines than elements.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import ravel, unravel
from tensorlake_spark.layouts.coding.buffers import check_ints, pack_ints, unpack_ints
from tensorlake_spark.layouts.coding.integer_sequences import gaps, join, split, unpack_ascending
from tensorlake_spark.layouts.sparse.element_keys import checked_axes
from tensorlake_spark.layouts.sparse.element_runs import RunLayout, volume
from tensorlake_spark.layouts.verification import integers, params_of
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

SPARSE_LINES = 4
"""Lines are named where a box has more than so many times as many lines as have elements."""


class CompressedLayout(RunLayout):
    """Pointers over the major side of the matrix, ids on the minor side."""

    rows_are_major = True

    def choose_params(
        self, ndim: int, order: Sequence[int] | None, row_axes: Sequence[int] | None
    ) -> dict[str, Any]:
        super().choose_params(ndim, order, None)
        axes = range(-(-ndim // 2)) if row_axes is None else row_axes
        return {"row_axes": checked_axes(axes, ndim, "row_axes")}

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

    def row_params(self, spec: TensorSpec) -> str | None:
        return json.dumps({"row_axes": list(spec.params["row_axes"])}, separators=(",", ":"))

    def encode_run(self, inside: Array, sides: Sequence[int], spec: TensorSpec) -> bytes:
        major, minor = self.sides_of(spec.params["row_axes"], spec.ndim)
        line = ravel(inside[list(major)], [sides[k] for k in major])
        ids = ravel(inside[list(minor)], [sides[k] for k in minor])
        starts = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
        named, lines = line[starts], volume(sides, major)
        counts = np.diff(starts, append=len(line))
        if lines <= SPARSE_LINES * len(named):
            counts = np.bincount(line, minlength=lines)
            named = named[:0]
        number, first = np.array([len(named)]), np.zeros(len(named[:1]), np.int64)
        parts = number, gaps(named, first), counts, gaps(ids, starts)
        return join([pack_ints(part, spec.codec != "raw") for part in parts])

    def decode_run(
        self, index: Any, count: int, sides: Sequence[int], params: str | None, wanted: Box
    ) -> tuple[Array | None, Array]:
        ndim = len(sides)
        major, minor = self.sides_of(_row_axes(params, ndim), ndim)
        parts = split(index, 4)
        line, counts = _lines(parts[:3], count, volume(sides, major))
        ids = unpack_ascending(parts[3], counts, volume(sides, minor))
        first, last = _span(wanted, minor, sides)
        kept = None
        if last - first + 1 < volume(sides, minor):
            # Unsigned: what lies before the first is far behind the last.
            kept = np.flatnonzero(ids - ids.dtype.type(first) <= ids.dtype.type(last - first))
            ids = ids[kept]
            line = line[np.searchsorted(np.cumsum(counts), kept, side="right")]
        else:
            line = np.repeat(line, counts)
        out = np.empty((ndim, len(ids)), np.int64)
        for axes, flat in ((major, line), (minor, ids)):
            part = np.empty((len(axes), len(ids)), np.int64)
            unravel(flat, [sides[k] for k in axes], part)
            out[list(axes)] = part
        return kept, out


def _span(box: Box, axes: Sequence[int], sides: Sequence[int]) -> tuple[int, int]:
    """Return the least and the greatest place in C order, on some axes, of a box that is not empty.

    Examples
    --------
    >>> _span(Box((0, 1, 2), (1, 3, 4)), (1, 2), (9, 5, 10))
    (12, 23)
    """
    first = last = 0
    for k in axes:
        first = first * sides[k] + box.lo[k]
        last = last * sides[k] + box.hi[k] - 1
    return first, last


def _lines(parts: Sequence[Any], count: int, lines: int) -> tuple[Array, Array]:
    """Return the lines of a run that have elements, and how many each has."""
    (number,) = unpack_ints(parts[:1], [1]).tolist()
    if number > count or (not number and lines > SPARSE_LINES * count):
        raise CorruptDataError(f"a run of {count} elements has {number} of {lines} lines")
    stored = number or lines
    check_ints(parts[2:], [stored], least=1)
    counts = unpack_ints(parts[2:], [stored]).astype(np.int64)
    if (counts < 0).any() or (counts > count).any() or counts.sum() != count:
        raise CorruptDataError("the pointers of a run do not add up to its elements")
    if not number:
        line = np.flatnonzero(counts)
        return line, counts[line]
    if not counts.all():
        raise CorruptDataError("a line that is named has no element")
    return unpack_ascending(parts[1], np.array([number]), lines), counts


def _row_axes(params: str | None, ndim: int) -> list[int]:
    """Return the axes that are the rows of the matrix."""
    found = params_of(params).get("row_axes")
    count = len(found) if isinstance(found, list) else ndim
    axes = integers(found, count, "row axes")
    if len(set(axes)) != count or not set(axes) <= set(range(ndim)):
        raise CorruptDataError(
            f"row axes {axes!r:.200} are not distinct axes of a tensor of rank {ndim}"
        )
    return axes
