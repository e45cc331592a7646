"""Products with sparse tensors in memory, or with a sparse answer, summed over the axes that it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Block, Place, indices_at
from tensorlake_spark.computing.operations.element_reductions import Cells
from tensorlake_spark.computing.operations.products.sums_of_products import (
    SumOfProducts,
    part_of,
)
from tensorlake_spark.computing.operations.tiles import Tiles, whole
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products.contraction import dense_of
from tensorlake_spark.ops.products.einsum import contracted

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class SparseContraction(SumOfProducts):
    """A sum of products with sparse tensors, or with a sparse answer.

    The answer is sparse if all tensors are, or if one is and nothing is summed. Operands have the answer's dtype or one
    that becomes it.

    Attributes
    ----------
    is_sparse : bool
        Whether the answer is sparse.
    """

    is_sparse: bool

    def map(self, place: Place, block: Block) -> Any:
        others = [other for other, _ in self.operands]
        where: Sequence[slice | Array] = place
        if not isinstance(block, Elements) and self.is_sparse:  # nothing is summed
            block = self._placed(place, block)
        if isinstance(block, Elements):  # their coordinates are in the whole selection
            where = [slice(0, n) for n in self.shape]
        else:
            others = [part_of(other, numbers, place) for other, numbers in self.operands]
        labels = [range(len(self.shape)), *(numbers for _, numbers in self.operands)]
        found = contracted([block, *others], labels, self.axes)
        if self.is_sparse:
            return self._cells(found)
        lengths = self.answer_shape
        tile = [
            where[k] if k < len(where) else slice(0, n)
            for k, n in zip(self.axes, lengths, strict=True)
        ]
        return Tiles.of(lengths, tuple(tile), (dense_of(found).astype(self.dtype, copy=False),))

    def finish(self, partial: Any) -> Any:
        if self.is_sparse:
            return self._reduction.finish(partial)
        if partial is None:
            out = np.zeros(self.answer_shape, self.dtype)
        else:
            (out,) = whole(partial, self._adding)
        return out[()] if not out.ndim else out

    def _placed(self, place: Place, block: Array) -> Elements:
        """Return the elements of a dense block, with their coordinates in the selection."""
        found = np.nonzero(np.atleast_1d(block))
        values = np.atleast_1d(block)[found]
        coords = np.empty((block.ndim, len(values)), np.int64)
        for axis, part in enumerate(place):
            coords[axis] = indices_at(part, found[axis])
        return Elements._trusted(coords, values, self.shape)

    def _cells(self, found: Any) -> Cells:
        """Return a sparse product as cells of the answer."""
        values = found.values.astype(self.dtype, copy=False)
        cells = ravel(found.coords, self.answer_shape)
        return Cells([(cells, np.ones(len(cells), np.int64), values)])

    @property
    def _cell_shape(self) -> tuple[int, ...]:
        return self.answer_shape
