"""An elementwise result in memory: tasks compute parts of it, and a tree puts them together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tensorlake_spark.computing.fold import Block, Fold, Place
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.indexing import Box
from tensorlake_spark.ops.elements import Elements, canonical
from tensorlake_spark.rows.row import Totals

Array = np.ndarray[Any, Any]
Partial = TypeVar("Partial")


@dataclass(frozen=True, eq=False)
class MappedShare:
    """Boxes of an elementwise result that one task computes."""

    mapped: Mapped
    boxes: tuple[Box, ...]

    def fold(self, fold: Fold[Partial]) -> tuple[Partial | None, Totals]:
        """Return the partial of the share; rows are not counted, as boxes may share them."""
        found = (fold.map(box.slices(), self.mapped.part(box)) for box in self.boxes)
        return fold.combine_all(found), Totals()


@dataclass(frozen=True)
class Gather(Fold[list[Any]]):
    """The fold that puts blocks of a result into their places; the partial is a list of them.

    Attributes
    ----------
    shape : tuple of int
        Of the result.
    dtype : dtype
        Of its elements.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def map(self, place: Place, block: Block) -> list[Any]:
        if not isinstance(block, Elements):
            return [(place, np.array(block, self.dtype))]
        corner = np.array([part.start for part in place if isinstance(part, slice)], np.int64)
        return [(block.coords + corner.reshape(-1, 1), block.values)]

    def combine(self, one: list[Any], other: list[Any]) -> list[Any]:
        return one + other

    def finish(self, partial: list[Any] | None) -> Any:
        places, blocks = zip(*(partial or []), strict=True)
        if not isinstance(places[0], tuple):
            return canonical(np.concatenate(places, axis=1), np.concatenate(blocks), self.shape)
        out = np.empty(self.shape, self.dtype)
        for place, block in zip(places, blocks, strict=True):
            out[place] = block
        return out if out.ndim else out[()]
