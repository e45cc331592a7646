"""Products with a sparse tensor in memory, summed over pairs of axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Block, Fold, Place
from tensorlake_spark.computing.operations.element_reductions import Cells
from tensorlake_spark.computing.operations.products.sums_of_products import SumOfProducts, cut, free
from tensorlake_spark.computing.operations.tiles import Tiles, whole
from tensorlake_spark.indexing import Box
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products.contraction import multiply

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class SparseContraction(SumOfProducts):
    """A sum of products of a tensor and a sparse one. The answer is sparse if both are, or if nothing is summed.

    Attributes
    ----------
    shape : tuple of int
        Of the selection, whose axes have the numbers from 0 on.
    dtype : dtype
        Of the answer.
    other : Elements
        The second factor.
    numbers : tuple of int
        A number for each of its axes: below the selection's rank it is that axis of it, over which is summed.
    is_sparse : bool
        Whether the answer is sparse.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    other: Elements
    numbers: tuple[int, ...]
    is_sparse: bool

    def map(self, place: Place, block: Block) -> Any:
        mine, out = [*range(len(self.shape))], self._axes
        if isinstance(block, Elements):
            return self._cells(multiply(block, mine, self.other, self.numbers, out))
        if self.is_sparse:  # nothing is summed
            return self._cells(
                multiply(self._placed(place, block), mine, self.other, self.numbers, out)
            )
        other: Any = self.other
        for axis, number in enumerate(self.numbers):
            if number < len(place):
                some: Any = [slice(None)] * axis + [place[number]]
                other = other[tuple(some)]
        found = multiply(block, mine, other, self.numbers, out)
        lengths = self.answer_shape
        where = [
            place[k] if k < len(place) else slice(0, n) for k, n in zip(out, lengths, strict=True)
        ]
        return Tiles.of(lengths, tuple(where), (found.astype(self.dtype, copy=False),))

    def finish(self, partial: Any) -> Any:
        if self.is_sparse:
            return self._reduction.finish(partial)
        if partial is None:
            out = np.zeros(self.answer_shape, self.dtype)
        else:
            (out,) = whole(partial, self._adding)
        return out[()] if not out.ndim else out

    @property
    def answer_shape(self) -> tuple[int, ...]:
        lengths = {
            **dict(zip(self.numbers, self.other.shape, strict=True)),
            **dict(enumerate(self.shape)),
        }
        return tuple(lengths[k] for k in self._axes)

    def part(self, box: Box) -> tuple[tuple[slice, ...], Fold[Any]]:
        sides = dict(zip(self._axes, box.slices(), strict=True))
        key, shape = cut(self.shape, sides)
        some: Any = self.other
        key_of_other = tuple(sides.get(k, slice(None)) for k in self.numbers)
        other = some[key_of_other] if key_of_other else some
        return key, replace(self, shape=shape, other=other)

    @property
    def _axes(self) -> list[int]:
        """Axes of the answer: those of the selection, then those of the other, over which is not summed."""
        return free(self.numbers, len(self.shape))

    def _placed(self, place: Place, block: Array) -> Elements:
        """Return the elements of a dense block, with their coordinates in the selection."""
        found = np.nonzero(block)
        coords = [
            part.start + row if isinstance(part, slice) else part[row]
            for part, row in zip(place, found, strict=True)
        ]
        return Elements._trusted(
            np.array(coords, np.int64).reshape(block.ndim, -1), block[found], self.shape
        )

    def _cells(self, found: Any) -> Cells:
        """Return a sparse product as cells of the answer."""
        values = found.values.astype(self.dtype, copy=False)
        cells = ravel(found.coords, self.answer_shape)
        return Cells([(cells, np.ones(len(cells), np.int64), values)])

    @property
    def _cell_shape(self) -> tuple[int, ...]:
        return self.answer_shape
