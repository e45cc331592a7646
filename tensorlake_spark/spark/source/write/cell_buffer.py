"""Cells that wait to be encoded: a bounded number of them, handed on as regions in storage order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.indexing import Grid
from tensorlake_spark.indexing.coords import order, ravel, sort_places
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.spark.source.read.overlapping_rows import numbers_of
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]

BUFFER_CELLS = 4 << 20
"""Cells that a task sorts and encodes at a time."""

_BUFFER_BYTES = 160 << 20
_REGION = 64 << 10  # cells that one thread encodes at a time
_LONGEST = 16 * _REGION  # a leading index with more cells than this is cut


class CellBuffer:
    """Cells that wait to be sorted and encoded; memory is bounded whatever arrives.

    Parameters
    ----------
    spec : TensorSpec
        The tensor.
    shape : sequence of int, optional
        Its shape, where it is known.
    """

    def __init__(self, spec: TensorSpec, shape: Sequence[int] | None) -> None:
        self._spec = spec
        narrow = shape is not None and max(shape, default=0) < 2**31
        kind = np.dtype(np.int32 if narrow else np.int64)
        size = kind.itemsize * spec.ndim + spec.dtype.itemsize
        capacity = max(1, min(BUFFER_CELLS, _BUFFER_BYTES // size))
        self._coords = np.empty((spec.ndim, capacity), kind)
        self._values = np.empty(capacity, spec.dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether there is room for no further cell."""
        return self._count == len(self._values)

    def add(self, coords: Array, values: Array) -> int:
        """Take as many cells as there is room for, and return how many."""
        some = slice(self._count, min(self._count + len(values), len(self._values)))
        count = some.stop - some.start
        self._coords[:, some] = coords[:, :count]
        self._values[some] = values[:count]
        self._count = some.stop
        return count

    def extent(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the corners of the smallest box around all cells, at least one."""
        coords = self._coords[:, : self._count]
        lo, hi = coords.min(axis=1), coords.max(axis=1).astype(np.int64) + 1
        return tuple(lo.tolist()), tuple(hi.tolist())

    def regions(
        self, spec: TensorSpec, last: bool
    ) -> Iterator[tuple[tuple[int, ...], SparseTensor]]:
        """Yield the cells as ``(offset, part)`` of the tensor, in storage order, and keep none of them.

        But for the `last` time, those in the block of the newest cell are kept, to wait for the rest of their
        block: where cells arrive sorted by block, it comes out whole.

        Parameters
        ----------
        spec : TensorSpec
            The tensor, its shape large enough for all cells.
        last : bool
            Whether no further cell comes.

        Raises
        ------
        InvalidTensorError
            If a cell is there twice and the tensor does not say what that means.
        """
        rule = str(spec.params.get("duplicates", "error"))
        count, self._count = self._count, 0
        coords, values = self._coords[:, :count], self._values[:count]
        keys, group = self._keys(coords, spec)
        newest = keys[-1]
        held = np.flatnonzero(keys == newest) if spec.block_shape and not last else keys[:0]
        held = held if 2 * len(held) <= count else held[:0]
        keys, by = sort_places(keys)
        first, after = np.searchsorted(keys, (newest, newest + 1)) if len(held) else (count, count)
        for some_keys, some_by in ((keys[:first], by[:first]), (keys[after:], by[after:])):
            for start, stop in _cuts(some_keys, group):
                some = some_by[start:stop]
                part = order(coords[:, some].astype(np.int64), values[some], spec.shape, rule)
                yield (0,) * spec.ndim, SparseTensor._trusted(*part, spec.shape)
        for row in (*coords, values):
            row[: len(held)] = row[held]
        self._count = len(held)

    @staticmethod
    def _keys(coords: Array, spec: TensorSpec) -> tuple[Array, int]:
        """Return by what cells are sorted, and how many keys belong together.

        That is the number of the block, or the place in C order with the axis first that the layout begins
        with, whose indices are not divided.
        """
        if spec.block_shape or not spec.ndim:
            grid = Grid(spec.shape, spec.block_shape, spec.segments)
            return numbers_of(grid, coords), 1
        lead = layout_of(spec.layout).leading_axis(spec)
        axes = [lead, *(k for k in range(spec.ndim) if k != lead)]
        lengths = [spec.shape[k] for k in axes]
        return ravel(coords[axes] if lead else coords, lengths), math.prod(lengths[1:])


def _cuts(keys: Array, group: int) -> Iterator[tuple[int, int]]:
    """Cut sorted keys into runs of about `_REGION`, between groups of `group` keys unless one is very long."""
    start = 0
    while start < len(keys):
        near = min(start + _REGION, len(keys)) - 1
        stop = int(np.searchsorted(keys, (keys[near] // group + 1) * group))
        if stop - start > _LONGEST:
            stop = int(np.searchsorted(keys, keys[near], side="right"))
        yield start, stop
        start = stop
