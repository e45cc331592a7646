"""The first index along an axis at which a condition holds, of dense and of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tensorlake_spark.computing.fold import AxesFold, Block, Fold, Place, indices_at
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.block_reductions import reduced_axes
from tensorlake_spark.computing.operations.cell_tables import joined
from tensorlake_spark.computing.operations.element_reductions import cells_and_places, run_starts
from tensorlake_spark.computing.operations.reduction_kernels import UfuncKernel
from tensorlake_spark.computing.operations.tiles import Tiles, unite, whole
from tensorlake_spark.indexing.coords import ravel
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import axis_to_search
from tensorlake_spark.ops.reducing.index_reductions import predicate_of

Array = np.ndarray[Any, Any]

_NEVER = np.iinfo(np.int64).max
_LEAST = UfuncKernel(np.minimum, np.dtype("i8"), np.dtype("i8"))


def first_index(
    stored: Stored, condition: Any, axis: int | None = None, keepdims: bool = False
) -> Fold[Any]:
    """Return the fold of ``first_index``.

    Raises
    ------
    AxisError
        If there is no such axis. InvalidKeyTypeError if it is not an integer.
    InvalidOptionError, InvalidTensorError
        If the condition is none, or does not return a bool for each value.
    """
    ndim = len(stored.shape)
    axes = reduced_axes(axis_to_search(axis, ndim), ndim)
    predicate_of(condition)(np.zeros(1, stored.dtype))
    make = FirstElements if stored.is_sparse else FirstOfBlocks
    return make(stored.shape, axes, stored.dtype, condition, keepdims)


@dataclass(frozen=True)
class FirstOfBlocks(AxesFold[Tiles]):
    """First indices of a dense tensor: the state of a cell is the first one so far.

    Attributes
    ----------
    shape : tuple of int
        Of the selection.
    axes : tuple of int
        One axis, or all.
    dtype : dtype
        Of its elements.
    condition : (str, value) or callable
        As `predicate_of` takes it.
    keepdims : bool
        Whether axes stay, with length 1.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    condition: Any
    keepdims: bool = False

    def map(self, place: Place, block: Block) -> Tiles:
        dense = cast("Array", block)
        kept, lengths = self.kept(place), self.kept(dense.shape)
        if not dense.size:
            return Tiles.of(self.kept(self.shape), kept, _LEAST.blank(lengths))
        holds = predicate_of(self.condition)(dense)
        found = np.asarray(holds.argmax(self.axes[0] if len(self.axes) == 1 else None))
        inside = [found] if len(self.axes) == 1 else np.unravel_index(found, holds.shape)
        rows = [
            np.asarray(indices_at(part, at)).reshape(-1)
            for part, at in zip([place[k] for k in self.axes], inside, strict=True)
        ]
        at = np.zeros(1, np.int64)
        if rows:
            at = ravel(np.stack(rows).astype(np.int64), [self.shape[k] for k in self.axes])
        first = np.where(holds.any(axis=self.axes), at.reshape(lengths), _NEVER)
        return Tiles.of(self.kept(self.shape), kept, (first,))

    def combine(self, one: Tiles, other: Tiles) -> Tiles:
        return unite(one, other, _LEAST)

    def cut(self, partial: Tiles, count: int) -> Iterator[tuple[int, Tiles]]:
        return partial.cut(count)

    def finish(self, partial: Tiles | None) -> Any:
        found = (
            _LEAST.blank(self.kept(self.shape)) if partial is None else whole(partial, _LEAST)
        )[0]
        found = np.where(found == _NEVER, -1, found)
        return np.expand_dims(found, self.axes)[()] if self.keepdims else found[()]


@dataclass(frozen=True)
class FirstElements(AxesFold[list[tuple[Array, Array]]]):
    """First indices of a sparse tensor. The partial has cells and places of elements that are unlike a zero.

    If the condition does not hold for zero, these are where it holds. Else they are where it does not, and the first
    index of a cell is the first place that they leave free.

    Attributes are those of `FirstOfBlocks`.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    condition: Any
    keepdims: bool = False

    def map(self, place: Place, block: Block) -> list[tuple[Array, Array]]:
        some = cast("Elements", block)
        unlike = predicate_of(self.condition)(some.values) != self._zero_holds
        some = Elements._trusted(None, some.values[unlike], some.shape, some.places[unlike])
        return [cells_and_places(some, self.axes)]

    @property
    def in_order(self) -> bool:
        return False

    def combine(self, one: Any, other: Any) -> list[tuple[Array, Array]]:
        both = [*one, *other]
        if self._zero_holds or sum(len(cells) for cells, _ in both) < 2 * self._cells:
            return both
        first = self._least(both)
        cells = np.flatnonzero(first != _NEVER)
        return [(cells, first[cells])]

    def finish(self, partial: list[tuple[Array, Array]] | None) -> Any:
        parts = partial or []
        if self._zero_holds:
            found = self._free(parts)
        else:
            found = self._least(parts)
            found[found == _NEVER] = -1
        return found.reshape(self.answer_shape)[()]

    def _least(self, parts: list[tuple[Array, Array]]) -> Array:
        """Return the least place in each cell."""
        out = np.full(self._cells, _NEVER)
        for cells, places in parts:
            np.minimum.at(out, cells, places)
        return out

    def _free(self, parts: list[tuple[Array, Array]]) -> Array:
        """Return the first place in each cell that is not in the parts, -1 where there is none."""
        total = math.prod(self.shape[k] for k in self.axes)
        out = np.zeros(self._cells, np.int64)
        if parts:
            cells, places = joined(parts)
            by = np.lexsort((places, cells))
            cells, places = cells[by], places[by]
            starts = run_starts(cells)
            counts = np.diff(starts, append=len(cells))
            ranks = np.arange(len(cells)) - np.repeat(starts, counts)
            out[cells[starts]] = counts
            late = np.flatnonzero(places != ranks)[::-1]
            out[cells[late]] = ranks[late]
        out[out >= total] = -1
        return out

    @property
    def _zero_holds(self) -> bool:
        return bool(predicate_of(self.condition)(np.zeros(1, self.dtype))[0])

    @property
    def _cells(self) -> int:
        return math.prod(self.kept(self.shape))
