"""Products with arrays in memory, summed over the axes that the answer does not have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Block, Place
from tensorlake_spark.computing.operations.element_reductions import Cells, run_starts
from tensorlake_spark.computing.operations.products.sums_of_products import (
    SumOfProducts,
    part_of,
)
from tensorlake_spark.computing.operations.tiles import Tiles, whole
from tensorlake_spark.indexing.coords import ravel, sort_places
from tensorlake_spark.ops.elements import Elements

Array = np.ndarray[Any, Any]

_AT_ONCE = 1 << 20  # products of sparse elements that are in memory at a time
_PIECE = 16 << 20  # bytes of a product, about, that are computed before they are added to others


@dataclass(frozen=True, eq=False)
class Contraction(SumOfProducts):
    """A sum of products with arrays."""

    def map(self, place: Place, block: Block) -> Any:
        if isinstance(block, Elements):
            return self._cells(block)
        # NumPy has no sums of products of bfloat16, whose kind is V.
        dtype = np.dtype("f8") if self.dtype.kind == "V" else self.dtype
        args: list[Any] = [block.astype(dtype, copy=False), list(range(block.ndim))]
        for array, numbers in self.operands:
            args += [part_of(array, numbers, place).astype(dtype, copy=False), list(numbers)]
        found = np.asarray(np.einsum(*args, list(self.axes), optimize=len(self.operands) > 0))
        found = found.astype(self.dtype, copy=False)
        if np.may_share_memory(found, block):  # with nothing to multiply it is a view
            found = found.copy()
        lengths = self._lengths
        where = tuple(place[k] if k < len(self.shape) else slice(0, lengths[k]) for k in self.axes)
        return Tiles.of(tuple(lengths[k] for k in self.axes), where, (found,))

    def add(self, partial: Any, place: Place, block: Block) -> Any:
        if isinstance(block, Elements):
            return super().add(partial, place, block)
        for where, some in self._pieces(place, block):
            partial = super().add(partial, where, some)
        return partial

    def finish(self, partial: Any) -> Any:
        lengths = self._lengths
        shape = tuple(lengths[k] for k in self.axes)
        if isinstance(partial, Tiles):
            (out,) = whole(partial, self._adding)
        else:
            own, new = self._own, self._new
            out = np.zeros([lengths[k] for k in (*own, *new)], self.dtype)
            width = math.prod(lengths[k] for k in new)
            rows = out.reshape(math.prod(self.shape[k] for k in own), width)
            parts = partial.parts if partial else []
            while parts:  # each goes as soon as it is in the answer, and nothing has to be sorted
                cells, _, found = parts.pop()
                with np.errstate(all="ignore"):
                    rows[cells] += found.reshape(len(cells), width)
                del found
            order = [*own, *new]
            out = out.transpose([order.index(k) for k in self.axes])
        out = np.asarray(out, self.dtype).reshape(shape)
        return out[()] if not out.ndim else out

    def _pieces(self, place: Place, block: Array) -> Iterator[tuple[Place, Array]]:
        """Yield parts of a block, and where they lie, that give about `_PIECE` bytes of the answer each."""
        lengths = dict(enumerate(block.shape))
        cells = math.prod(lengths.get(k, self._lengths[k]) for k in self.axes)
        count = -(-cells * self.dtype.itemsize // _PIECE)
        axis = max(self._own, key=lambda k: block.shape[k], default=None)
        part = None if axis is None else place[axis]
        if axis is None or count < 2 or not isinstance(part, slice):
            yield place, block
            return
        step = max(1, block.shape[axis] // count)
        for first in range(0, block.shape[axis], step):
            key = (*(slice(None) for _ in range(axis)), slice(first, first + step))
            some = block[key]
            here = slice(part.start + first, part.start + first + some.shape[axis])
            yield (*place[:axis], here, *place[axis + 1 :]), some

    def _cells(self, block: Elements) -> Cells:
        """Return the products of elements, summed for each cell of the axes of theirs that stay."""
        step = max(1, _AT_ONCE // max(1, math.prod(self._lengths[k] for k in self._new)))
        found = [
            self._products(
                block.coords[:, first : first + step], block.values[first : first + step]
            )
            for first in range(0, block.nnz, step)
        ]
        out: Cells = self._reduction.combine_all(found) or Cells([])
        return out

    def _products(self, coords: Array, values: Array) -> Cells:
        own, new, ndim = self._own, self._new, len(self.shape)
        cells = ravel(coords[list(own)], [self.shape[k] for k in own])
        if (cells[1:] < cells[:-1]).any():
            cells, by = sort_places(cells)
            coords, values = coords[:, by], values[by]
        out = values.astype(self.dtype, copy=False).reshape(-1, *(1,) * len(new))
        for array, numbers in self.operands:
            mine = [k for k in numbers if k < ndim]
            rest = [k for k in numbers if k >= ndim]
            turned = array.transpose(
                [numbers.index(k) for k in (*mine, *sorted(rest, key=new.index))]
            )
            rows = turned[tuple(coords[k] for k in mine)] if mine else turned[None]
            lengths = [self._lengths[k] if k in rest else 1 for k in new]
            out = out * rows.reshape(len(rows), *lengths)
        starts = run_starts(cells)
        counts = np.diff(starts, append=len(cells))
        with np.errstate(all="ignore"):
            sums = out if len(starts) == len(cells) else np.add.reduceat(out, starts, axis=0)
        return Cells([(cells[starts], counts, sums.astype(self.dtype, copy=False))])

    @property
    def _own(self) -> tuple[int, ...]:
        """Axes of the selection that the answer has."""
        return tuple(k for k in self.axes if k < len(self.shape))

    @property
    def _new(self) -> tuple[int, ...]:
        """Axes of operands that the answer has."""
        return tuple(k for k in self.axes if k >= len(self.shape))
