"""An elementwise result in memory: tasks compute parts of it, and a tree puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tensorlake_spark.computing.fold import Block, Fold, Place
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.tiles import State, Tiles, unite, whole
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
class Gather(Fold[Any]):
    """The fold that puts blocks into their places: of a dense result tiles of it, of a sparse one its elements.

    Attributes
    ----------
    shape : tuple of int
        Of the result.
    dtype : dtype
        Of its elements.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def map(self, place: Place, block: Block) -> Any:
        if not isinstance(block, Elements):
            return Tiles.of(self.shape, place, (np.array(block, self.dtype),))
        corner = np.array([part.start for part in place if isinstance(part, slice)], np.int64)
        return [(block.coords + corner.reshape(-1, 1), block.values)]

    def combine(self, one: Any, other: Any) -> Any:
        return unite(one, other, self) if isinstance(one, Tiles) else one + other

    def finish(self, partial: Any) -> Any:
        if isinstance(partial, Tiles):
            (out,) = whole(partial, self)
            return out if out.ndim else out[()]
        coords, values = zip(*partial, strict=True)
        return canonical(np.concatenate(coords, axis=1), np.concatenate(values), self.shape)

    def blank(self, shape: Sequence[int]) -> State:
        """Return room for a part of the result."""
        return (np.zeros(shape, self.dtype),)

    def wide(self, state: State) -> State:
        """Return the state, which others can be put into."""
        return state

    def absorb(self, state: State, other: State) -> None:
        """Put a block into its place."""
        state[0][...] = other[0]
